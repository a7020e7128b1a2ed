// Column groups in Cellar's grammar:
//   CREATE TABLE t (.., GROUP g (column, ..))
//   ALTER TABLE t change, ..    all of one statement being
//     ADD GROUP [IF NOT EXISTS] g (column, ..) | DROP GROUP [IF EXISTS] g |
//     ALTER [COLUMN] c SET GROUP g | ALTER [COLUMN] c DROP GROUP | RENAME GROUP g TO h
//   ALTER TABLE t ADD [COLUMN] c type .. GROUP g, ..
// Private to the layer.
#pragma once

#include <vector>

#include "cellar/sql/parser/own_grammar.h"
#include "cellar/sql/parser/own_tokens.h"

namespace cellar::sql {

// The token behind the name in ALTER TABLE [IF EXISTS] [ONLY] name [*]; 0: another statement.
size_t AfterAlteredTable(const Tokens& tokens);

// As ReplaceOwnGrammar, of one statement.
void ReplaceGroups(Tokens* tokens, std::vector<StandIn>* replaced);

void ApplyGroups(StandIn* stand_in, int location, ast::Node* statement);

}  // namespace cellar::sql
