// What Cellar's SQL has beyond PostgreSQL's grammar: ALTER TABLE [IF EXISTS] t SEAL [FULL], and
// `row` as a value in (layout = row), which is a keyword there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cellar/sql/parser/ast.h"

namespace cellar::sql {

// What a clause of ours was replaced by.
struct StandIn {
  enum class Kind : unsigned char { kSeal, kSealFull, kLayoutRow };
  Kind kind;
  size_t at = 0;  // in the text: of SEAL, of `layout`
};

// Writes over every clause of ours in `text` something that the grammar does know and is as long,
// so that all positions stay. In the text's order.
std::vector<StandIn> ReplaceOwnGrammar(std::string* text);

// Makes of a parsed statement what a stand-in of it stands for. `location`: as locations in the
// tree count.
void ApplyStandIn(StandIn::Kind kind, int location, ast::Node* statement);

}  // namespace cellar::sql
