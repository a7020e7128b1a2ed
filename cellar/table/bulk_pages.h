// Bulk loads into an empty table, or behind its last row, write pages right away. Private to the
// layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/table/page_packer.h"
#include "cellar/table/pages.h"
#include "cellar/table/string_list.h"

namespace cellar::table {

// One bulk load of one table. It takes batches as long as their rows ascend behind everything that
// is in the table. One thread at a time.
class BulkPages {
 public:
  BulkPages(AccessContext* context, TablePtr table, const CompiledTable* compiled)
      : context_(context), table_(std::move(table)), compiled_(compiled) {}

  // Takes all rows of the batch, or none: false. They are tracked as if each key had been probed
  // and found absent, unless `fresh`: no other transaction can have these keys.
  Result<bool> Add(const RowBatch& rows, const StringList& refs, bool fresh);
  // Makes what was taken visible to the own reads. Later batches may still be taken.
  Status Flush();

 private:
  Status Start(std::string_view first);
  Status AddRows(const RowBatch& rows, const StringList& refs);

  AccessContext* context_;
  TablePtr table_;
  const CompiledTable* compiled_;
  bool over_ = false;  // nothing is taken any more
  std::optional<PagePacker> packer_;
  std::string first_ref_, last_ref_;  // of what was taken since Start
  RowBatch with_refs_;
};

}  // namespace cellar::table
