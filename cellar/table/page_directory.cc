#include "cellar/table/page_directory.h"

#include <algorithm>

#include "cellar/codec/key.h"
#include "cellar/table/page_cache.h"

namespace cellar::table {
namespace {

Result<bool> AnyPage(kv::Engine* engine, std::string_view page_prefix, uint64_t* version) {
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  std::unique_ptr<kv::Transaction> transaction = engine->Begin(read_only);
  kv::ScanOptions options;
  options.keys_only = true;
  options.limit = 1;
  options.mode = kv::ReadMode::kSnapshot;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(page_prefix, codec::PrefixEnd(page_prefix), options));
  *version = transaction->snapshot_version();
  kv::Block block;
  return cursor->NextBlock(&block);
}

}  // namespace

bool PageDirectory::TryLease() { return !leased_.exchange(true, std::memory_order_acq_rel); }

void PageDirectory::EndLease(uint64_t version) {
  {
    std::lock_guard lock(entries_mutex_);
    RaiseWritten(version);
    announced_.clear();
  }
  leased_.store(false, std::memory_order_release);
}

void PageDirectory::RaiseWritten(uint64_t version) {
  if (version > written_version()) written_version_.store(version, std::memory_order_release);
}

Status PageDirectory::Resolve(kv::Engine* engine, std::string_view page_prefix) {
  // Nobody is between writing pages and having committed them while the lease is free. If somebody
  // holds it, pages are on their way.
  if (!TryLease()) return Status();
  uint64_t version = 0;
  const Result<bool> any = AnyPage(engine, page_prefix, &version);
  if (any.ok() && state() == State::kUnknown) {
    none_since_.store(version, std::memory_order_release);
    state_.store(*any ? State::kSome : State::kNone, std::memory_order_release);
  }
  EndLease(written_version());
  return any.status();
}

uint64_t PageDirectory::HeadOf(std::string_view bytes) {
  uint64_t head = 0;
  for (size_t i = 0; i < sizeof head; ++i) {
    head = head << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
  }
  return head;
}

size_t PageDirectory::UpperBound(const Chunk& chunk, uint64_t head, std::string_view ref) {
  const auto [low, high] = std::equal_range(chunk.heads.begin(), chunk.heads.end(), head);
  const auto first = chunk.entries.begin() + (low - chunk.heads.begin());
  const auto last = chunk.entries.begin() + (high - chunk.heads.begin());
  const auto after = std::upper_bound(
      first, last, ref,
      [](std::string_view bytes, const Entry& entry) { return bytes < entry.boundary; });
  return static_cast<size_t>(after - chunk.entries.begin());
}

size_t PageDirectory::ChunkOf(uint64_t head, std::string_view ref) const {
  auto after =
      std::upper_bound(chunks_.begin(), chunks_.end(), ref,
                       [head](std::string_view bytes, const std::unique_ptr<Chunk>& c) {
                         const uint64_t other = c->heads.front();
                         return head != other ? head < other : bytes < c->entries.front().boundary;
                       });
  return after == chunks_.begin() ? 0 : static_cast<size_t>(after - chunks_.begin()) - 1;
}

const PageDirectory::Entry* PageDirectory::EntryFor(std::string_view ref) const {
  if (chunks_.empty()) return nullptr;
  const uint64_t head = HeadOf(ref);
  const Chunk& chunk = *chunks_[ChunkOf(head, ref)];
  const size_t after = UpperBound(chunk, head, ref);
  return after == 0 ? nullptr : &chunk.entries[after - 1];
}

PageDirectory::Entry* PageDirectory::EntryAt(std::string_view boundary) {
  const Entry* entry = EntryFor(boundary);
  if (entry == nullptr || entry->boundary != boundary) return nullptr;
  return const_cast<Entry*>(entry);  // NOLINT: found in our own list
}

bool PageDirectory::Find(std::string_view ref, uint64_t snapshot, std::string* boundary,
                         std::shared_ptr<const CachedPage>* page) const {
  std::shared_lock lock(entries_mutex_);
  const Entry* entry = EntryFor(ref);
  if (entry == nullptr) return false;
  boundary->assign(entry->boundary);
  if (entry->page != nullptr && entry->page->since() <= snapshot) {
    *page = entry->page;
    (*page)->NoteUse();
  }
  return true;
}

bool PageDirectory::Find(std::string_view ref, std::string* boundary) const {
  std::shared_lock lock(entries_mutex_);
  const Entry* entry = EntryFor(ref);
  if (entry == nullptr) return false;
  boundary->assign(entry->boundary);
  return true;
}

std::shared_ptr<const CachedPage> PageDirectory::PageAt(std::string_view boundary,
                                                        uint64_t snapshot) const {
  std::shared_lock lock(entries_mutex_);
  const Entry* entry = EntryFor(boundary);
  if (entry == nullptr || entry->page == nullptr || entry->boundary != boundary ||
      entry->page->since() > snapshot) {
    return nullptr;
  }
  entry->page->NoteUse();
  return entry->page;
}

bool PageDirectory::KnowsBehind(std::string_view boundary) const {
  std::shared_lock lock(entries_mutex_);
  return !chunks_.empty() && chunks_.back()->entries.back().boundary > boundary;
}

void PageDirectory::Learn(std::string_view boundary) {
  std::lock_guard lock(entries_mutex_);
  LearnEntry(boundary);
}

PageDirectory::Entry* PageDirectory::LearnEntry(std::string_view boundary) {
  const uint64_t head = HeadOf(boundary);
  if (chunks_.empty()) chunks_.push_back(std::make_unique<Chunk>());
  size_t place = chunks_.front()->heads.empty() ? 0 : ChunkOf(head, boundary);
  Chunk* chunk = chunks_[place].get();
  size_t at = UpperBound(*chunk, head, boundary);
  if (at > 0 && chunk->entries[at - 1].boundary == boundary) return &chunk->entries[at - 1];
  if (chunk->heads.size() == kChunkEntries) {
    constexpr size_t kHalf = kChunkEntries / 2;
    auto half = std::make_unique<Chunk>();
    half->heads.assign(chunk->heads.begin() + kHalf, chunk->heads.end());
    chunk->heads.resize(kHalf);
    half->entries.assign(std::make_move_iterator(chunk->entries.begin() + kHalf),
                         std::make_move_iterator(chunk->entries.end()));
    chunk->entries.resize(kHalf);
    const auto next = static_cast<ptrdiff_t>(place) + 1;
    const bool upper = at > kHalf;
    chunk = chunks_.insert(chunks_.begin() + next, std::move(half))->get();
    if (upper) {
      at -= kHalf;
    } else {
      chunk = chunks_[place].get();
    }
  }
  chunk->heads.insert(chunk->heads.begin() + static_cast<ptrdiff_t>(at), head);
  return &*chunk->entries.insert(chunk->entries.begin() + static_cast<ptrdiff_t>(at),
                                 {std::string(boundary), nullptr});
}

void PageDirectory::Keep(std::string_view boundary, uint64_t snapshot,
                         std::shared_ptr<CachedPage> page) {
  if (page == nullptr) return;
  std::shared_ptr<CachedPage> old;  // let go of without the lock
  {
    std::lock_guard lock(entries_mutex_);
    if (barriers_ != 0 || snapshot < written_version()) return;
    for (const Range& range : announced_) {
      if (range.Holds(boundary)) return;
    }
    page->since_ = written_version();
    page->boundary_.assign(boundary);
    page->owner_ = weak_from_this();
    Entry* entry = LearnEntry(boundary);
    old = std::move(entry->page);
    entry->page = page;
  }
  cache_->Added(page);
}

void PageDirectory::Drop(std::string_view boundary, const CachedPage* page) {
  std::shared_ptr<CachedPage> old;
  std::lock_guard lock(entries_mutex_);
  Entry* entry = EntryAt(boundary);
  if (entry != nullptr && entry->page.get() == page) old = std::move(entry->page);
}

void PageDirectory::TakeOut(const Range& range, Pages* out) {
  if (chunks_.empty()) return;
  for (size_t i = ChunkOf(HeadOf(range.begin), range.begin); i < chunks_.size(); ++i) {
    if (!range.end.empty() && chunks_[i]->entries.front().boundary >= range.end) return;
    for (Entry& entry : chunks_[i]->entries) {
      if (entry.page != nullptr && range.Holds(entry.boundary)) {
        out->push_back(std::move(entry.page));
      }
    }
  }
}

void PageDirectory::Announce(std::string_view begin, std::string_view end) {
  if (cache_ == nullptr) return;
  Pages old;
  std::lock_guard lock(entries_mutex_);
  Range range{std::string(begin), std::string(end)};
  if (announced_.size() == kMaxAnnounced) {
    announced_.clear();
    range = Range();
  }
  TakeOut(range, &old);
  announced_.push_back(std::move(range));
}

void PageDirectory::BeginBarrier() {
  Pages old;
  std::lock_guard lock(entries_mutex_);
  ++barriers_;
  TakeOut(Range(), &old);
}

void PageDirectory::EndBarrier(uint64_t version) {
  std::lock_guard lock(entries_mutex_);
  --barriers_;
  RaiseWritten(version);
}

void PageDirectory::Forget(std::string_view boundary) {
  std::shared_ptr<CachedPage> old;
  const uint64_t head = HeadOf(boundary);
  std::lock_guard lock(entries_mutex_);
  if (chunks_.empty()) return;
  const size_t place = ChunkOf(head, boundary);
  Chunk& chunk = *chunks_[place];
  const size_t after = UpperBound(chunk, head, boundary);
  if (after == 0 || chunk.entries[after - 1].boundary != boundary) return;
  const auto at = static_cast<ptrdiff_t>(after) - 1;
  old = std::move(chunk.entries[after - 1].page);
  chunk.heads.erase(chunk.heads.begin() + at);
  chunk.entries.erase(chunk.entries.begin() + at);
  if (chunk.heads.empty()) chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(place));
}

}  // namespace cellar::table
