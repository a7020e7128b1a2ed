// The rows of a key range of a table with layout `pages`: its pages and the delta over them, merged
// in key order, upwards or downwards. Private to the layer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/codec/patch.h"
#include "cellar/table/pages.h"

namespace cellar::table {

// Rows that come next, in the order of the merge. Borrowed until the merge loads (see Next).
struct MergeRun {
  enum class Kind : uint8_t {
    kPage,     // rows [first, first + count) of `page`; downwards: the last one comes first
    kPatched,  // row `first` of `page`, with `patch` over it
    kRows,     // packed rows of the delta: `keys` and `values`
    kLoad,     // nothing before something is loaded
    kEnd,
  };
  Kind kind = Kind::kEnd;
  const OpenPage* page = nullptr;
  bool whole = false;  // kPage: all rows of the page
  uint32_t first = 0, count = 0;
  std::string_view patch;
  std::span<const std::string_view> keys, values;
};

// One thread at a time; must not outlive the transaction.
class PageMerge {
 public:
  // [start, end) are keys of rows; both lie in the primary index. The view of the options, if any,
  // must outlive the merge.
  PageMerge(AccessContext* context, const CompiledTable* table, std::string start, std::string end,
            const kv::ScanOptions& options, WantedValues wanted = {});

  // Before the first Next: of the delta only what is before `end` is merged, all rows of pages are.
  void EndDelta(std::string end) { delta_end_ = std::move(end); }

  // Before the first Next: rows with long values are left out, and the page's row under them shows.
  void SkipLongRows() { skip_long_ = true; }

  // The next run. What earlier runs pointed to stays as long as nothing is loaded; with `may_load`
  // false, a merge that would have to load answers kLoad instead. Errors: kCorruption naming the
  // page; those of the engine. Cost: a trip per page and per block of the delta.
  Status Next(bool may_load, MergeRun* run);

 private:
  struct DeltaEntry {
    std::string_view key, value, ref;
    codec::DeltaKind kind;
  };

  Status Open();
  Status OpenPages();
  // Opens the cursor of pages from the page that begins at `boundary`, whose key is passed over if
  // it is not there.
  Status OpenPageCursor(std::string_view boundary);
  // Upwards: is the page that comes next kept at hand? It is then open_.
  bool TakeCached();
  // Puts the cursor in front of the page that comes next.
  Status CatchUp();
  // open_ is a page of the range; checks and bounds it.
  Status EnterPage();
  bool NeedsPage() const { return page_ == nullptr && !pages_ended_; }
  bool NeedsBlock() const { return delta_at_ == delta_.size() && !delta_ended_; }
  Status LoadPage();
  Status LoadBlock();
  // Sets [low_, high_) of the page just loaded.
  Status BoundPage();
  // Pages reach from fence to fence: the page just loaded begins where the one before it ended, and
  // none is missing at the end. A scan would not notice the rows of a missing page otherwise.
  Status CheckJoint();
  Status CheckLast();
  Status CheckEnd();
  bool EndsBefore(std::string_view fence) const;
  // Does the delta entry come before the end of the page in the direction of the merge?
  bool InPage(const DeltaEntry& entry) const;
  void EmitPage(uint32_t first, uint32_t count, MergeRun* run) const;
  // Hands out all packed rows of the block from delta_at_ on that nothing of a page comes between.
  void EmitRows(MergeRun* run);
  Status MergeEntry(MergeRun* run, bool* emitted);

  AccessContext* context_;
  const CompiledTable* table_;
  const bool reverse_;
  const std::string start_;
  std::string delta_end_;
  std::string low_bound_, high_bound_;  // the same without the index prefix; high empty: none
  const kv::ScanOptions options_;
  const WantedValues wanted_;
  bool skip_long_ = false;
  std::deque<std::string> long_rows_;  // of the block
  bool opened_ = false;

  std::unique_ptr<kv::Cursor> delta_cursor_;
  kv::Block block_;
  size_t block_at_ = 0;  // entries before it have been taken
  std::vector<DeltaEntry> delta_;
  std::vector<std::string_view> run_keys_, run_values_;
  size_t delta_at_ = 0;
  bool delta_ended_ = false;
  bool placed_ = false;  // place_ is that of delta_[delta_at_] in the page
  PagePlace place_;

  std::unique_ptr<kv::Cursor> page_cursor_;
  // Pages kept at hand are passed over without the cursor. It is then behind, and is opened anew
  // when it is needed, unless that would show what was committed or written since Open.
  bool behind_ = false;
  uint64_t snapshot_ = 0;
  uint32_t page_writes_ = 0;
  size_t from_cursor_ = 0;  // pages in a row
  OpenPage open_;
  OpenPage* page_ = nullptr;
  bool pages_ended_ = false;
  bool last_page_ = false;      // no page after this one has rows of the range
  bool joined_ = false;         // a page has been loaded
  std::string joint_;           // its fence; downwards its boundary
  std::string first_boundary_;  // upwards: where the cursor must begin, if the directory is right
  bool check_first_ = false;
  uint32_t low_ = 0, high_ = 0;  // rows of the page that are left
};

}  // namespace cellar::table
