// What Cellar's SQL has beyond PostgreSQL's grammar: the statements of ast::OwnStmt, ALTER TABLE
// [IF EXISTS] t SEAL [FULL], ALTER TABLE t ALTER PRIMARY KEY USING COLUMNS (..), column groups
// (own_groups.h), WITH (row_quota = n, ..) of CREATE SCHEMA and CREATE DATABASE, and `row` as a
// value in (layout = row), which is a keyword there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/sql/parser/ast_ddl.h"
#include "cellar/sql/parser/parser.h"

namespace cellar::sql {

// What a clause of ours was replaced by.
struct StandIn {
  enum class Kind : unsigned char {
    kSeal,
    kSealFull,
    kLayoutRow,
    kStatement,
    kGroups,
    kAlterKey,
    kSpaceOptions,  // of CREATE SCHEMA, as the first of its elements, and of CREATE DATABASE
  };
  Kind kind;
  size_t at = 0;  // in the text: of SEAL, of `layout`, of PRIMARY, of the statement, of the clause
  ast::StmtPtr statement = nullptr;  // kStatement, kSpaceOptions
  std::string_view tag = {};         // of `statement`; static storage
  std::vector<ast::GroupChange> groups = {};
};

// Writes over every clause of ours in `text` something that the grammar does know and is as long,
// so that all positions stay. In the text's order.
std::vector<StandIn> ReplaceOwnGrammar(std::string* text);

// Makes of a parsed statement what a stand-in of it stands for. `location`: as locations in the
// tree count.
void ApplyStandIn(StandIn* stand_in, int location, Statement* statement);

}  // namespace cellar::sql
