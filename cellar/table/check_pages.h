// CHECK's walk over the pages and the delta of a table with layout `pages`. Private to the layer.
//
// Readers stop at the first damage; this goes on behind it. What it cannot make sense of becomes a
// finding and a damaged range of keys, in which nothing is known of the rows.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/table/pages.h"

namespace cellar::table {

// The primary key's values, "5, x", of a RowRef; "?" when it is none.
std::string DescribeRef(std::string_view ref);

// One thread at a time; one Run.
class PageCheck {
 public:
  struct Sink {
    // A finding, about the table.
    std::function<void(std::string text)> find;
    // Rows that count, columns as `whole` decodes them; to be taken or left.
    std::function<Status(RowBatch* rows)> page_rows;
    // Packed rows of the delta, not decoded yet. `readable`: they lie outside of damaged ranges.
    std::function<Status(std::span<const std::string_view> keys,
                         std::span<const std::string_view> values, bool readable)>
        delta_rows;
  };

  // `whole` decodes all living columns and the RowRef of rows of the primary index, and borrows.
  PageCheck(AccessContext* context, const CompiledTable* table, const ScanCodec* whole, Sink sink)
      : context_(context), table_(table), whole_(whole), sink_(std::move(sink)) {}

  // Errors: those of the engine only.
  Status Run();

  // After Run: does the RowRef lie where nothing is known of the rows?
  bool IsDamaged(std::string_view ref) const;
  bool found_damage() const { return !damaged_.empty(); }
  // Pages of which nothing is known, so that the rows they hold are neither there nor gone.
  uint64_t unread_pages() const { return unread_pages_; }

 private:
  struct RawPage {
    std::string key, boundary, bytes;
  };
  static constexpr size_t kNone = SIZE_MAX;

  Status OpenCursors();
  // Skips pages whose keys make no sense: their place is found missing.
  Result<bool> NextPage(RawPage* page);
  // `end`: where the next page begins; empty: nowhere.
  Status CheckPage(const RawPage& page, std::string_view end);
  // Everything about one page alone; its rows are in rows_ afterwards. Errors: kCorruption.
  Status Examine(const RawPage& page);
  Status ExamineChunk(uint32_t place, const codec::RowColumn& column);
  // Looks at the entries of the delta up to `end` (empty: all) and hands out its rows. Entries
  // change rows_ when `merge`; `readable`: pages below them are known.
  Status TakeDelta(std::string_view end, bool merge, bool readable);
  Status CheckRows();
  Status HandOutDelta(bool readable);
  void CheckEntry(std::string_view key, std::string_view value, bool merge, bool readable);
  void CheckPatch(std::string_view key, std::string_view ref, std::string_view patch, bool merge,
                  bool readable);
  Status ReadPatch(std::string_view patch) const;
  Status CheckLongColumns(std::string_view value) const;
  Status HandOutRows(const RawPage& page, std::string_view end);
  // Of rows_; kNone: not there.
  size_t PlaceOf(std::string_view ref) const;
  std::string_view RefAt(size_t row) const;
  Status CheckKey(std::string_view ref) const;
  void MarkDamaged(std::string_view start, std::string_view end);
  void FindInPage(const RawPage& page, std::string_view end, std::string_view text);
  std::string KeysText(std::string_view start, std::string_view end) const;

  AccessContext* context_;
  const CompiledTable* table_;
  const ScanCodec* whole_;
  const Sink sink_;
  std::unique_ptr<kv::Cursor> page_cursor_, delta_cursor_;
  std::vector<std::pair<std::string, std::string>> damaged_;  // ascending, disjoint
  uint64_t unread_pages_ = 0;

  kv::Block block_;
  size_t block_at_ = 0;
  bool delta_ended_ = false;
  std::vector<std::string_view> delta_keys_, delta_values_;
  std::deque<std::string> long_rows_;  // of those
  uint64_t long_pieces_ = 0;

  // Of the page at hand.
  codec::PageView view_;
  RowBatch rows_;
  std::vector<uint8_t> covered_;  // by the delta
  ColumnVector scratch_;
  Arena scratch_arena_;
};

}  // namespace cellar::table
