// Foreign keys of a statement that changes rows: keys are gathered while it runs and checked at its
// end, as SQL wants of constraints that are not deferred. Private to this layer.
#pragma once

#include <memory>
#include <vector>

#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

// Living columns in ordinal order, hidden ones included.
std::vector<catalog::ColumnId> LivingColumns(const catalog::TableDescriptor& table);
std::vector<Type> LivingTypes(const catalog::TableDescriptor& table);
// "(1, abc, null)" of the visible columns, for error details.
std::string DescribeRow(const catalog::TableDescriptor& table, const RowBatch& rows, size_t row,
                        const FormatSettings& format);

// Referencing side: values written into referencing columns must exist.
class ReferenceChecks {
 public:
  ReferenceChecks(const catalog::TablePtr& table, const std::vector<ForeignKeyCheck>& checks,
                  ExecState* state);
  void Add(const RowBatch& rows);  // living columns
  Status Finish();

 private:
  catalog::TablePtr table_;
  const std::vector<ForeignKeyCheck>& checks_;
  ExecState& state_;
  std::vector<KeyTable> keys_;
};

// Referenced side: keys that go or change, and what that does to the rows that reference them.
class ReferencedChecks {
 public:
  ReferencedChecks(const catalog::TablePtr& table, ExecState* state);
  // No table references this one.
  bool empty() const { return links_.empty(); }
  void AddDeleted(const RowBatch& old_rows);
  void AddUpdated(const RowBatch& old_rows, const RowBatch& new_rows);
  // Errors: 23503. Cascades are carried out here, depth first.
  Status Finish(int depth = 0);

 private:
  struct Link {
    catalog::TablePtr child;
    const catalog::ForeignKey* key;
    std::vector<int> columns;        // positions of the referenced columns among our living ones
    std::vector<int> child_columns;  // positions among the child's living ones
    KeyTable gone;                   // old keys
    RowBatch replacement;            // row i: what gone key i became; only for updates
    bool updates = false;
  };
  Status FinishLink(Link* link, int depth);
  Status FindChildren(const Link& link, const RowBatch& keys, RowBatch* rows,
                      std::vector<uint32_t>* key_of);
  Status StillThere(const Link& link, std::vector<uint8_t>* there);

  catalog::TablePtr table_;
  ExecState& state_;
  std::vector<Link> links_;
};

}  // namespace cellar::sql::exec
