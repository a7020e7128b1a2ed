#include "cellar/table/pages.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/patch.h"
#include "cellar/table/long_values.h"
#include "cellar/table/split_rows.h"
#include "cellar/table/string_list.h"

namespace cellar::table {
namespace {

Result<Datum> IntKeyOf(const CompiledTable& table, std::string_view ref) {
  Arena unused;
  std::string_view in = ref;
  CELLAR_TRY_ASSIGN(const Datum key,
                    codec::TakeKeyField(&in, table.primary().key_columns.front(), &unused));
  if (!in.empty()) return CorruptionError("a key is not one integer");
  return key;
}

Status OpenKeyChunk(const CompiledTable& table, const codec::PageView& page, codec::Chunk* chunk) {
  const codec::RowFormat* format = table.FindFormat(page.format_id());
  if (format == nullptr) return CorruptionError("a page has unknown row format");
  CELLAR_TRY_ASSIGN(const uint32_t place, table.KeyChunkOf(*format));
  return page.GetChunk(place, format->columns()[place].type, chunk);
}

// -1, 0 or 1 as a row's key `prefix` `suffix` kGroupZero compares with `bound`.
int CompareRowKey(std::string_view prefix, std::string_view suffix, std::string_view bound) {
  for (std::string_view part : {prefix, suffix, std::string_view(&kGroupZero, 1)}) {
    const size_t common = std::min(part.size(), bound.size());
    const int order = common == 0 ? 0 : std::memcmp(part.data(), bound.data(), common);
    if (order != 0) return order;
    if (part.size() > bound.size()) return 1;
    bound.remove_prefix(part.size());
  }
  return bound.empty() ? 0 : -1;
}

// The page with the greatest key below `end`; false: there is none.
Result<bool> ReadPageBelow(AccessContext* context, const CompiledTable& table, std::string_view end,
                           const kv::ReadView* view, OpenPage* page) {
  kv::ScanOptions options;
  options.reverse = true;
  options.limit = 1;
  options.mode = kv::ReadMode::kSnapshot;
  options.view = view;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context->transaction->Scan(table.page_prefix(), end, options));
  kv::Block block;
  ++context->stats.trips;
  CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
  page->boundary.clear();
  if (!more) return false;
  CELLAR_TRY_ASSIGN(const std::string_view boundary, BoundaryOf(table, block.key(0)));
  page->boundary = boundary;
  page->pin.Assign(block.value(0));
  context->stats.bytes_read += block.bytes();
  return true;
}

// Opens the page with the greatest boundary that is not above `ref`.
Result<bool> OpenPageBelow(AccessContext* context, const CompiledTable& table, std::string_view ref,
                           const kv::ReadView* view, OpenPage* page) {
  // Up to the key of the page that begins at `ref` itself.
  std::string end;
  AppendPageKey(table, ref, &end);
  end.push_back('\0');
  CELLAR_TRY_ASSIGN(bool found, ReadPageBelow(context, table, end, view, page));
  if (found && page->boundary > ref) {
    // `ref` is the beginning of a key, and this page's goes on with less than what ends a page's.
    CELLAR_TRY_ASSIGN(
        found, ReadPageBelow(context, table, table.page_prefix() + std::string(ref), view, page));
  }
  if (!found) {
    CELLAR_TRY(RequireNoPages(context, table, view));
    return false;
  }
  CELLAR_TRY(ParsePage(context, table, page->pin.view(), &page->view));
  if (!page->view.Covers(ref)) return CorruptionError("its keys end too early");
  return true;
}

}  // namespace

static void KeepPage(AccessContext* context, const CompiledTable& table, const kv::ReadView* view,
                     OpenPage* page) {
  PageDirectory& directory = context->DirectoryOf(table);
  if (!context->keep_pages || directory.cache() == nullptr || !directory.cache()->Admits()) return;
  std::shared_ptr<CachedPage> kept =
      CachedPage::Make(table, std::move(page->pin), page->view, directory.cache());
  if (kept == nullptr) return;
  page->view = kept->view();
  page->cached = kept;
  directory.Keep(page->boundary, context->transaction->snapshot_version(view), std::move(kept));
}

Status ParsePage(AccessContext* context, const CompiledTable& table, std::string_view bytes,
                 codec::PageView* view) {
  const std::shared_ptr<PageCache>& cache = context->DirectoryOf(table).cache();
  if (cache != nullptr) return cache->Open(bytes, view);
  CELLAR_TRY(view->Parse(bytes));
  return view->VerifyChecksum();
}

void OfferPage(AccessContext* context, const CompiledTable& table, std::string_view page_key,
               const kv::ReadView* view, std::string_view boundary) {
  PageDirectory& directory = context->DirectoryOf(table);
  if (!context->keep_pages || directory.cache() == nullptr || !directory.cache()->HasRoom()) return;
  OpenPage again;
  // An error is the next reader's: this one has the page.
  Result<bool> found =
      context->transaction->Get(page_key, &again.pin, {kv::ReadMode::kSnapshot, view});
  if (!found.ok() || !*found || !ParsePage(context, table, again.pin.view(), &again.view).ok()) {
    return;
  }
  again.boundary = boundary;
  KeepPage(context, table, view, &again);
}

void AppendPageKey(const CompiledTable& table, std::string_view boundary, std::string* key) {
  key->append(table.page_prefix());
  if (boundary.empty()) return codec::FinishKey(key);
  key->append(boundary);
  key->push_back(kGroupZero);
}

Result<std::string_view> BoundaryOf(const CompiledTable& table, std::string_view page_key) {
  const size_t prefix = table.page_prefix().size();
  if (page_key.size() <= prefix + 1 && codec::AtKeyEnd(page_key.substr(prefix))) {
    return std::string_view();
  }
  if (page_key.size() < prefix + 2 || page_key.back() != kGroupZero) {
    return CorruptionError("the key of a page does not end in column group 0");
  }
  return page_key.substr(prefix, page_key.size() - prefix - 1);
}

Status DamagedPage(const CompiledTable& table, std::string_view boundary, const Status& cause) {
  if (cause.code() != Code::kCorruption) return cause;
  std::string key;
  AppendPageKey(table, boundary, &key);
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "page {} of table \"{}\" is damaged: {}", codec::PrintKey(key),
                  table.table().name, cause.message());
}

Result<PagePlace> FindInPage(const CompiledTable& table, const codec::PageView& page,
                             std::string_view ref) {
  if (page.keys() != table.page_keys()) return CorruptionError("a page is keyed otherwise");
  PagePlace place;
  if (page.keys() == codec::PageKeys::kInt) {
    CELLAR_TRY_ASSIGN(const Datum key, IntKeyOf(table, ref));
    if (key.is_null()) {
      // Nobody's key; asked for by "key IS NULL".
      const bool first = table.primary().key_columns.front().nulls == codec::NullPlacement::kFirst;
      place.row = first ? 0 : page.rows();
      return place;
    }
    codec::Chunk chunk;
    CELLAR_TRY(OpenKeyChunk(table, page, &chunk));
    place.row = chunk.LowerBound(key.int_value());
    if (place.row == page.rows()) return place;
    CELLAR_TRY_ASSIGN(const Datum there, chunk.Get(place.row, nullptr));
    place.found = !there.is_null() && there.int_value() == key.int_value();
    return place;
  }
  place.row = page.LowerBound(ref);
  if (place.row == page.rows()) return place;
  const std::string_view prefix = page.key_prefix();
  place.found = ref.starts_with(prefix) && ref.substr(prefix.size()) == page.key_suffix(place.row);
  return place;
}

Result<uint32_t> PageLowerBound(const CompiledTable& table, const codec::PageView& page,
                                std::string_view bound) {
  if (page.keys() != table.page_keys()) return CorruptionError("a page is keyed otherwise");
  codec::Chunk chunk;
  const codec::KeyColumn& column = table.primary().key_columns.front();
  const bool ints = page.keys() == codec::PageKeys::kInt;
  if (ints) CELLAR_TRY(OpenKeyChunk(table, page, &chunk));
  std::string key;
  uint32_t low = 0, high = page.rows();
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    int order;
    if (ints) {
      CELLAR_TRY_ASSIGN(const Datum there, chunk.Get(middle, nullptr));
      key.clear();
      codec::AppendKeyField(there, column, &key);
      order = CompareRowKey({}, key, bound);
    } else {
      order = CompareRowKey(page.key_prefix(), page.key_suffix(middle), bound);
    }
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<bool> MayHavePages(AccessContext* context, const CompiledTable& table,
                          const kv::ReadView* view) {
  PageDirectory& directory = context->DirectoryOf(table);
  if (directory.state() == PageDirectory::State::kSome) return true;
  // The snapshot comes first: see PageDirectory::none_since.
  const uint64_t version = context->transaction->snapshot_version(view);
  if (directory.state() == PageDirectory::State::kUnknown && context->store != nullptr) {
    CELLAR_TRY(directory.Resolve(context->store->engine(), table.page_prefix()));
  }
  return directory.state() != PageDirectory::State::kNone || version < directory.none_since();
}

Status RequireNoPages(AccessContext* context, const CompiledTable& table,
                      const kv::ReadView* view) {
  kv::ScanOptions options;
  options.keys_only = true;
  options.limit = 1;
  options.mode = kv::ReadMode::kSnapshot;
  options.view = view;
  const std::string& prefix = table.page_prefix();
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context->transaction->Scan(prefix, codec::PrefixEnd(prefix), options));
  kv::Block block;
  ++context->stats.trips;
  CELLAR_TRY_ASSIGN(const bool any, cursor->NextBlock(&block));
  return any ? CorruptionError("it is missing, and others are there") : Status();
}

Result<bool> OpenPageOf(AccessContext* context, const CompiledTable& table, std::string_view ref,
                        const kv::ReadView* view, OpenPage* page) {
  PageDirectory& directory = context->DirectoryOf(table);
  page->cached.reset();
  const uint64_t snapshot = context->transaction->snapshot_version(view);
  if (directory.Find(ref, snapshot, &page->boundary, &page->cached)) {
    if (page->cached != nullptr && page->cached->view().Covers(ref)) {
      page->view = page->cached->view();
      ++context->stats.rows_read;
      return true;
    }
    page->cached.reset();
    std::string key;
    AppendPageKey(table, page->boundary, &key);
    CELLAR_TRY_ASSIGN(const bool found, context->GetUntracked(key, view, &page->pin));
    if (found) {
      Status status = ParsePage(context, table, page->pin.view(), &page->view);
      if (!status.ok()) {
        return DamagedPage(table, page->boundary, status);
      }
      if (page->view.Covers(ref)) {
        KeepPage(context, table, view, page);
        return true;
      }
    } else {
      directory.Forget(page->boundary);
    }
  }
  Result<bool> below = OpenPageBelow(context, table, ref, view, page);
  if (!below.ok()) return DamagedPage(table, page->boundary, below.status());
  if (*below) directory.Learn(page->boundary);
  return below;
}

// ---- RowFetcher ----

Status RowFetcher::FetchParts(AccessContext* context, const CompiledTable& table,
                              std::span<const std::string_view> row_keys, const kv::ReadView* view,
                              std::vector<StoredRow>* rows, std::vector<uint8_t>* found,
                              const WantedValues& wanted) {
  std::vector<const RowPart*> parts;
  for (const RowPart& part : table.parts()) {
    const bool any =
        std::any_of(part.positions.begin(), part.positions.end(),
                    [&](uint32_t position) { return wanted.Has(table.living_ids()[position]); });
    if (any) parts.push_back(&part);
  }
  StringList part_keys;
  for (std::string_view row_key : row_keys) {
    for (const RowPart* part : parts) {
      AppendPartKey(table, *part, row_key, part_keys.buffer());
      part_keys.End();
    }
  }
  std::vector<std::string_view> keys(row_keys.begin(), row_keys.end());
  for (size_t i = 0; i < part_keys.size(); ++i) keys.push_back(part_keys[i]);
  std::vector<uint8_t> there;
  CELLAR_TRY(context->MultiGet(keys, view, &pins_, &there));
  found->assign(there.begin(), there.begin() + static_cast<ptrdiff_t>(row_keys.size()));
  parts_.clear();
  parts_.reserve(part_keys.size());
  for (size_t i = 0; i < row_keys.size(); ++i) {
    if (!(*found)[i]) continue;
    const size_t begin = parts_.size();
    for (size_t k = 0; k < parts.size(); ++k) {
      const size_t at = row_keys.size() + i * parts.size() + k;
      if (there[at]) parts_.push_back(pins_[at].view());
    }
    (*rows)[i].value = pins_[i].view();
    (*rows)[i].parts = std::span(parts_).subspan(begin);
  }
  return Status();
}

Status RowFetcher::Fetch(AccessContext* context, const CompiledTable& table,
                         std::span<const std::string_view> row_keys, const kv::ReadView* view,
                         std::vector<StoredRow>* rows, std::vector<uint8_t>* found,
                         const WantedValues& wanted) {
  pages_.clear();
  long_rows_.clear();
  rows->assign(row_keys.size(), StoredRow());
  if (table.split()) return FetchParts(context, table, row_keys, view, rows, found, wanted);
  CELLAR_TRY(context->MultiGet(row_keys, view, &pins_, found));
  if (!table.paged()) {
    for (size_t i = 0; i < row_keys.size(); ++i) {
      if ((*found)[i]) (*rows)[i].value = pins_[i].view();
    }
    return Status();
  }
  std::vector<uint32_t> places;  // of rows that pages must tell of
  for (size_t i = 0; i < row_keys.size(); ++i) {
    if (!(*found)[i]) {
      places.push_back(static_cast<uint32_t>(i));
      continue;
    }
    const std::string_view value = pins_[i].view();
    Result<codec::DeltaKind> kind = codec::DeltaKindOf(value);
    if (!kind.ok()) return DamagedEntry(table.table(), table.table().primary(), kind.status());
    switch (*kind) {
      case codec::DeltaKind::kTombstone: (*found)[i] = 0; break;
      case codec::DeltaKind::kRow: (*rows)[i].value = value; break;
      case codec::DeltaKind::kLongRow: {
        const size_t prefix = table.primary().prefix.size();
        const std::string_view ref = row_keys[i].substr(prefix, row_keys[i].size() - prefix - 1);
        Result<std::string_view> row =
            ReadLongRow(context, table, ref, value, view, wanted, &long_rows_.emplace_back());
        if (!row.ok()) return DamagedEntry(table.table(), table.table().primary(), row.status());
        (*rows)[i].value = *row;
        break;
      }
      case codec::DeltaKind::kPatch:
        (*rows)[i].patch = value;
        places.push_back(static_cast<uint32_t>(i));
        break;
    }
  }
  if (places.empty()) return Status();
  CELLAR_TRY_ASSIGN(const bool pages, MayHavePages(context, table, view));
  if (!pages) return Status();
  return FetchFromPages(context, table, row_keys, places, view, rows, found);
}

Status RowFetcher::FetchFromPages(AccessContext* context, const CompiledTable& table,
                                  std::span<const std::string_view> row_keys,
                                  std::span<const uint32_t> places, const kv::ReadView* view,
                                  std::vector<StoredRow>* rows, std::vector<uint8_t>* found) {
  const size_t prefix = table.primary().prefix.size();
  const auto ref_of = [&](uint32_t place) {
    const std::string_view key = row_keys[place];
    return key.substr(prefix, key.size() - prefix - 1);
  };
  std::vector<uint32_t> order(places.begin(), places.end());
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return row_keys[a] < row_keys[b]; });

  // All pages that the directory names, in one trip.
  PageDirectory& directory = context->DirectoryOf(table);
  const uint64_t snapshot = context->transaction->snapshot_version(view);
  std::string boundary, keys;
  std::vector<size_t> ends;
  for (uint32_t place : order) {
    const std::string_view ref = ref_of(place);
    if (!pages_.empty() && pages_.back()->cached != nullptr && pages_.back()->view.Covers(ref)) {
      continue;
    }
    std::shared_ptr<const CachedPage> cached;
    if (!directory.Find(ref, snapshot, &boundary, &cached)) continue;
    if (!pages_.empty() && pages_.back()->boundary == boundary) continue;
    pages_.push_back(std::make_unique<OpenPage>());
    pages_.back()->boundary = boundary;
    if (cached != nullptr) {
      pages_.back()->view = cached->view();
      pages_.back()->cached = std::move(cached);
      ++context->stats.rows_read;
      continue;
    }
    AppendPageKey(table, boundary, &keys);
    ends.push_back(keys.size());
  }
  std::vector<std::string_view> page_keys;
  for (size_t i = 0, start = 0; i < ends.size(); start = ends[i++]) {
    page_keys.push_back(std::string_view(keys).substr(start, ends[i] - start));
  }
  std::vector<kv::PinnedValue> pins;
  std::vector<uint8_t> there;
  CELLAR_TRY(context->MultiGetUntracked(page_keys, view, &pins, &there));
  size_t kept = 0;
  for (size_t i = 0, read = 0; i < pages_.size(); ++i) {
    if (pages_[i]->cached == nullptr) {
      const size_t at = read++;
      if (!there[at]) {
        directory.Forget(pages_[i]->boundary);
        continue;
      }
      pages_[i]->pin = std::move(pins[at]);
      Status status = ParsePage(context, table, pages_[i]->pin.view(), &pages_[i]->view);
      if (!status.ok()) {
        return DamagedPage(table, pages_[i]->boundary, status);
      }
      KeepPage(context, table, view, pages_[i].get());
    }
    if (kept != i) pages_[kept] = std::move(pages_[i]);
    ++kept;
  }
  pages_.resize(kept);

  size_t next = 0;  // of the pages that were read at once
  const OpenPage* page = nullptr;
  std::vector<std::unique_ptr<OpenPage>> others;
  for (uint32_t place : order) {
    const std::string_view ref = ref_of(place);
    while (next < kept && pages_[next]->boundary <= ref) page = pages_[next++].get();
    if (page == nullptr || !page->view.Covers(ref)) {
      auto opened = std::make_unique<OpenPage>();
      CELLAR_TRY_ASSIGN(const bool any, OpenPageOf(context, table, ref, view, opened.get()));
      if (!any) {
        (*found)[place] = 0;
        continue;
      }
      page = opened.get();
      others.push_back(std::move(opened));
    }
    Result<PagePlace> at = FindInPage(table, page->view, ref);
    if (!at.ok()) return DamagedPage(table, page->boundary, at.status());
    StoredRow& row = (*rows)[place];
    if (!at->found) {
      if (!row.patch.empty()) {
        return DamagedPage(table, page->boundary, CorruptionError("a patched row is missing"));
      }
      (*found)[place] = 0;
      continue;
    }
    (*found)[place] = 1;
    row.page = &page->view;
    row.position = at->row;
  }
  for (std::unique_ptr<OpenPage>& other : others) pages_.push_back(std::move(other));
  return Status();
}

}  // namespace cellar::table
