#include "cellar/table/page_packer.h"

#include <algorithm>

#include "cellar/table/pages.h"

namespace cellar::table {
namespace {

// Rows that are collected before full pages are written.
constexpr size_t kBufferedPages = 4;

}  // namespace

PagePacker::PagePacker(const CompiledTable* table, kv::Transaction* transaction, std::string begin,
                       std::string end, size_t page_bytes)
    : table_(table),
      transaction_(transaction),
      begin_(std::move(begin)),
      end_(std::move(end)),
      page_bytes_(page_bytes),
      types_(TypesOf(*table)),
      next_boundary_(begin_) {
  buffer_.Reset(types_);
  spare_.Reset(types_);
}

std::vector<Type> PagePacker::TypesOf(const CompiledTable& table) {
  std::vector<Type> types(table.living_types().begin(), table.living_types().end());
  if (table.page_keys() == codec::PageKeys::kRefs) types.push_back(MakeType(TypeId::kBytea));
  return types;
}

std::string PagePacker::BoundaryAt(size_t row) const {
  const size_t columns = table_->living_types().size();
  if (table_->page_keys() == codec::PageKeys::kRefs) {
    return std::string(buffer_.column(columns).bytes()[row]);
  }
  std::string boundary;
  codec::AppendKeyFields(buffer_, row, table_->primary().key_positions,
                         table_->primary().key_columns, &boundary);
  return boundary;
}

Status PagePacker::Encode(size_t first, size_t count, std::string* out) const {
  codec::PageRows page;
  page.format = &table_->write_format();
  page.batch = &buffer_;
  page.positions = table_->write_positions();
  page.first = first;
  page.count = count;
  page.keys = table_->page_keys();
  if (page.keys == codec::PageKeys::kInt) {
    CELLAR_TRY_ASSIGN(page.key_column, table_->KeyChunkOf(*page.format));
  } else {
    page.refs = {buffer_.column(table_->living_types().size()).bytes() + first, count};
  }
  const std::string fence = first + count < buffer_.size() ? BoundaryAt(first + count) : end_;
  page.fence = fence;
  return codec::AppendPage(page, out);
}

Result<size_t> PagePacker::WritePage(size_t first, size_t count) {
  count = std::min({count, buffer_.size() - first, codec::kMaxPageRows});
  while (true) {
    page_.clear();
    CELLAR_TRY(Encode(first, count, &page_));
    const double fill = static_cast<double>(page_.size()) / static_cast<double>(page_bytes_);
    if (count > 0) {
      rows_per_page_ = std::clamp<size_t>(static_cast<size_t>(static_cast<double>(count) / fill), 1,
                                          codec::kMaxPageRows);
      measured_ = true;
    }
    if (fill <= kPageSlack || count <= 1) break;
    count = std::max<size_t>(1, std::min(rows_per_page_, count - 1));
  }
  std::string key;
  AppendPageKey(*table_, next_boundary_, &key);
  CELLAR_TRY(transaction_->Put(key, page_));
  boundaries_.push_back(next_boundary_);
  rows_ += count;
  bytes_ += page_.size();
  next_boundary_ = first + count < buffer_.size() ? BoundaryAt(first + count) : end_;
  return count;
}

void PagePacker::DropFirst(size_t rows) {
  std::vector<uint32_t> rest;
  for (size_t i = rows; i < buffer_.size(); ++i) rest.push_back(static_cast<uint32_t>(i));
  spare_.Reset(types_);
  spare_.AppendRows(buffer_, rest);
  std::swap(buffer_, spare_);
}

Status PagePacker::Add(const RowBatch& rows) {
  buffer_.AppendAll(rows);
  return Added();
}

Status PagePacker::Added() {
  // One page more stays behind, so that a fence is known and the last pages come out alike.
  if (buffer_.size() < (kBufferedPages + 2) * rows_per_page_) return Status();
  size_t first = 0;
  while (buffer_.size() - first > 2 * rows_per_page_) {
    CELLAR_TRY_ASSIGN(const size_t count, WritePage(first, rows_per_page_));
    first += count;
  }
  DropFirst(first);
  return Status();
}

Status PagePacker::Finish() {
  size_t first = 0;
  while (first < buffer_.size()) {
    size_t count = rows_per_page_;
    const size_t left = buffer_.size() - first;
    // What fits into one page stays together. Elsewhere than at the end of the table, where more
    // rows are to be expected, what is left is divided evenly.
    const double pages = static_cast<double>(left) / static_cast<double>(rows_per_page_);
    if (measured_ && pages <= kPageSlack) {
      count = left;
    } else if (measured_ && !end_.empty() && pages < 3) {
      count = (left + 1) / 2;
    }
    CELLAR_TRY_ASSIGN(const size_t taken, WritePage(first, count));
    first += taken;
  }
  if (boundaries_.empty()) CELLAR_TRY(WritePage(0, 0).status());
  buffer_.Reset(types_);
  return Status();
}

}  // namespace cellar::table
