// Rows of a table as its next shape has them: after ALTER TYPE, ADD COLUMN, a new key or layout.
// Private to this layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cellar/session/session_internal.h"

namespace cellar::session {

// One thread at a time. The session, which has a transaction, outlives it.
class RowConverter {
 public:
  // Columns are those of the same id, but for `column`, if one is given: it is computed by
  // `expression`, text over the columns of `from`; if that is empty, as `to` says of a new column
  // (its initial value, if it has one), or by a cast.
  static Result<std::unique_ptr<RowConverter>> Make(Session::Impl* session,
                                                    const catalog::TablePtr& from,
                                                    const catalog::TablePtr& to,
                                                    catalog::ColumnId column,
                                                    const std::string& expression);

  // All living columns of either. Bytes are borrowed from `from`. Errors: those of the expression;
  // 23502 for a NULL where there may be none any more; 23514 for a row that breaks a constraint on
  // a column whose type changes.
  Status Convert(const RowBatch& from, RowBatch* to);

 private:
  Status Bind(Session::Impl* session, const catalog::TablePtr& from, catalog::ColumnId column,
              const std::string& expression);

  // A validated CHECK constraint that names the column.
  struct Check {
    std::string name;
    sql::ExprPtr bound;
    std::optional<sql::Evaluator> evaluator;
  };
  Status BindChecks(Session::Impl* session, catalog::ColumnId column);
  Status VerifyChecks(const RowBatch& rows);

  catalog::TablePtr to_;
  std::vector<int> sources_;   // of each column of `to`; -1: none
  std::vector<Datum> values_;  // of each column of `to` without a source
  int computed_ = -1;          // of `to`
  Type type_;
  std::vector<size_t> without_nulls_;  // of `to`: to be looked at
  std::vector<std::string> names_;
  Arena arena_;
  sql::EvalContext eval_;
  sql::ExprPtr bound_;
  std::optional<sql::Evaluator> evaluator_;
  std::vector<std::unique_ptr<Check>> checks_;
};

// For ALTER TABLE and its job.
Status ContainsNulls(const std::string& column, const catalog::TableDescriptor& table);
Status BreaksCheck(const std::string& check, const catalog::TableDescriptor& table);

}  // namespace cellar::session
