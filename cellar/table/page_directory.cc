#include "cellar/table/page_directory.h"

#include <algorithm>

#include "cellar/codec/key.h"

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
  written_version_.store(version, std::memory_order_release);
  leased_.store(false, std::memory_order_release);
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

bool PageDirectory::Less(uint64_t head, std::string_view bytes, const Entry& entry) {
  return head != entry.head ? head < entry.head : bytes < entry.boundary;
}

size_t PageDirectory::ChunkOf(uint64_t head, std::string_view ref) const {
  auto after = std::upper_bound(chunks_.begin(), chunks_.end(), ref,
                                [head](std::string_view bytes, const std::unique_ptr<Chunk>& c) {
                                  return Less(head, bytes, c->front());
                                });
  return after == chunks_.begin() ? 0 : static_cast<size_t>(after - chunks_.begin()) - 1;
}

bool PageDirectory::Find(std::string_view ref, std::string* boundary) const {
  const uint64_t head = HeadOf(ref);
  std::shared_lock lock(entries_mutex_);
  if (chunks_.empty()) return false;
  const Chunk& chunk = *chunks_[ChunkOf(head, ref)];
  auto after = std::upper_bound(
      chunk.begin(), chunk.end(), ref,
      [head](std::string_view bytes, const Entry& entry) { return Less(head, bytes, entry); });
  if (after == chunk.begin()) return false;
  boundary->assign((after - 1)->boundary);
  return true;
}

void PageDirectory::Learn(std::string_view boundary) {
  const uint64_t head = HeadOf(boundary);
  std::lock_guard lock(entries_mutex_);
  if (chunks_.empty()) {
    chunks_.push_back(std::make_unique<Chunk>());
    chunks_.back()->push_back({head, std::string(boundary)});
    return;
  }
  const size_t place = ChunkOf(head, boundary);
  Chunk& chunk = *chunks_[place];
  auto after = std::upper_bound(
      chunk.begin(), chunk.end(), boundary,
      [head](std::string_view bytes, const Entry& entry) { return Less(head, bytes, entry); });
  if (after != chunk.begin() && (after - 1)->boundary == boundary) return;
  chunk.insert(after, {head, std::string(boundary)});
  if (chunk.size() <= kChunkEntries) return;
  auto half = std::make_unique<Chunk>();
  const auto middle = chunk.begin() + static_cast<ptrdiff_t>(chunk.size() / 2);
  half->assign(std::make_move_iterator(middle), std::make_move_iterator(chunk.end()));
  chunk.erase(middle, chunk.end());
  chunks_.insert(chunks_.begin() + static_cast<ptrdiff_t>(place) + 1, std::move(half));
}

void PageDirectory::Forget(std::string_view boundary) {
  const uint64_t head = HeadOf(boundary);
  std::lock_guard lock(entries_mutex_);
  if (chunks_.empty()) return;
  const size_t place = ChunkOf(head, boundary);
  Chunk& chunk = *chunks_[place];
  auto after = std::upper_bound(
      chunk.begin(), chunk.end(), boundary,
      [head](std::string_view bytes, const Entry& entry) { return Less(head, bytes, entry); });
  if (after == chunk.begin() || (after - 1)->boundary != boundary) return;
  chunk.erase(after - 1);
  if (chunk.empty()) chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(place));
}

}  // namespace cellar::table
