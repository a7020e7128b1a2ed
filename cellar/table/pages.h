// Finding rows by key in tables with layout `pages`: the delta first, then the page. Private to the
// layer.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/compiled.h"
#include "cellar/table/page_cache.h"
#include "cellar/table/page_directory.h"
#include "cellar/table/reader.h"

namespace cellar::table {

// A page that was read; the view points into the pinned bytes, or those of a page kept at hand.
// Stays where it is.
struct OpenPage {
  std::string boundary;
  kv::PinnedValue pin;
  std::shared_ptr<const CachedPage> cached;
  codec::PageView view;
};

// Parses the bytes of a page that were just read, and sees to their checksum. Errors: kCorruption.
Status ParsePage(AccessContext* context, const CompiledTable& table, std::string_view bytes,
                 codec::PageView* view);
// A scan has read a page through its cursor: if there is room, it is read once more, to be kept at
// hand. Cost: a Get of a page just read.
void OfferPage(AccessContext* context, const CompiledTable& table, std::string_view page_key,
               const kv::ReadView* view, std::string_view boundary);
// The key of the page that begins at `boundary` (a RowRef; empty: the first page).
void AppendPageKey(const CompiledTable& table, std::string_view boundary, std::string* key);
// The other way; borrowed. Errors: kCorruption.
Result<std::string_view> BoundaryOf(const CompiledTable& table, std::string_view page_key);
// An error about a page, with the table and the keys that it holds: "page /(5) - /(9) of ...".
Status DamagedPage(const CompiledTable& table, std::string_view boundary, const Status& cause);

// The place of a RowRef among a page's rows, ascending: the first row that is not before it, and
// whether it is that very row. Errors: kCorruption.
struct PagePlace {
  uint32_t row = 0;
  bool found = false;
};
Result<PagePlace> FindInPage(const CompiledTable& table, const codec::PageView& page,
                             std::string_view ref);
// The first row whose row key, without the index prefix, is not below `bound`, which may be any
// bytes (ends of key ranges are). Errors: kCorruption.
Result<uint32_t> PageLowerBound(const CompiledTable& table, const codec::PageView& page,
                                std::string_view bound);

// Appends the RowRef of a row of the page. Cost: 5-20 ns, more for the first of a page.
Status AppendPageRef(const CompiledTable& table, const codec::PageView& page, uint32_t row,
                     std::string* ref);

// May the table have pages, as the view sees it? Takes its snapshot.
Result<bool> MayHavePages(AccessContext* context, const CompiledTable& table,
                          const kv::ReadView* view);

// kCorruption when there are pages all the same: then the first one, which is before all keys, is
// missing. Cost: a short scan.
Status RequireNoPages(AccessContext* context, const CompiledTable& table, const kv::ReadView* view);

// Opens the page that is responsible for `ref`; false when the table has no pages. Pages are read
// without tracking: they change no meaning (README). Cost: 0.1 us when the page is kept at hand; a
// Get when the directory knows it; else a short scan.
Result<bool> OpenPageOf(AccessContext* context, const CompiledTable& table, std::string_view ref,
                        const kv::ReadView* view, OpenPage* page);

// Many rows at once. The rows found point into the fetcher until the next Fetch.
class RowFetcher {
 public:
  // `row_keys` are whole keys of rows; rows[i] is set where (*found)[i] is 1. Any layout. Cost: a
  // MultiGet of the keys, with those of wanted parts where rows are split, and with pages a second
  // one of the pages of those that are not in the delta. The keys are tracked, pages are not.
  Status Fetch(AccessContext* context, const CompiledTable& table,
               std::span<const std::string_view> row_keys, const kv::ReadView* view,
               std::vector<StoredRow>* rows, std::vector<uint8_t>* found,
               const WantedValues& wanted = {});

 private:
  Status FetchParts(AccessContext* context, const CompiledTable& table,
                    std::span<const std::string_view> row_keys, const kv::ReadView* view,
                    std::vector<StoredRow>* rows, std::vector<uint8_t>* found,
                    const WantedValues& wanted);
  Status FetchFromPages(AccessContext* context, const CompiledTable& table,
                        std::span<const std::string_view> row_keys,
                        std::span<const uint32_t> places, const kv::ReadView* view,
                        std::vector<StoredRow>* rows, std::vector<uint8_t>* found);

  std::vector<kv::PinnedValue> pins_;
  std::vector<std::unique_ptr<OpenPage>> pages_;
  std::deque<std::string> long_rows_;
  std::vector<std::string_view> parts_;
};

}  // namespace cellar::table
