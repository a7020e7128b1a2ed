#include "cellar/table/sorted_entries.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

namespace cellar::table {
namespace {

constexpr size_t kManyEntries = 256;
constexpr int kBucketBits = 11;
constexpr uint32_t kNobody = UINT32_MAX;
constexpr size_t kFetchAhead = 512;  // bytes of a piece

// What lies before an entry's key and value.
struct Header {
  uint32_t key_bytes;
  uint32_t value_bytes;  // and in the highest bit whether it asks
};
constexpr uint32_t kAsks = uint32_t{1} << 31;

Header HeaderAt(const char* at) {
  Header header;
  std::memcpy(&header, at, sizeof header);
  return header;
}
std::string_view KeyAt(const char* at) { return {at + sizeof(Header), HeaderAt(at).key_bytes}; }

size_t EntryBytes(const char* at) {
  const Header header = HeaderAt(at);
  return sizeof header + header.key_bytes + (header.value_bytes & ~kAsks);
}

uint64_t OrderOf(std::string_view key) {
  uint64_t order = 0;
  if (key.size() >= sizeof order) {
    std::memcpy(&order, key.data(), sizeof order);
    if constexpr (std::endian::native == std::endian::little) order = __builtin_bswap64(order);
    return order;
  }
  for (size_t i = 0; i < sizeof order; ++i) {
    order = order << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
  }
  return order;
}

}  // namespace

// ---- PieceSorter ----

void PieceSorter::Add(std::string_view key, std::string_view value, bool asks) {
  const Header header = {static_cast<uint32_t>(key.size()),
                         static_cast<uint32_t>(value.size()) | (asks ? kAsks : 0)};
  entries_.push_back({OrderOf(key), static_cast<uint32_t>(bytes_.size())});
  bytes_.append(reinterpret_cast<const char*>(&header), sizeof header).append(key).append(value);
}

bool PieceSorter::Before(const Entry& a, const Entry& b) const {
  if (a.order != b.order) return a.order < b.order;
  return KeyAt(bytes_.data() + a.at) < KeyAt(bytes_.data() + b.at);
}

// The highest bits that differ part many entries into buckets of a few.
void PieceSorter::Sort() {
  const auto before = [this](const Entry& a, const Entry& b) { return Before(a, b); };
  if (std::is_sorted(entries_.begin(), entries_.end(), before)) return;
  if (entries_.size() < kManyEntries) {
    std::sort(entries_.begin(), entries_.end(), before);
    return;
  }
  uint64_t differing = 0;
  for (const Entry& entry : entries_) differing |= entry.order ^ entries_.front().order;
  const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - kBucketBits);
  const auto bucket_of = [shift](const Entry& entry) {
    return entry.order >> shift & ((size_t{1} << kBucketBits) - 1);
  };
  ends_.assign((size_t{1} << kBucketBits) + 1, 0);
  for (const Entry& entry : entries_) ++ends_[bucket_of(entry) + 1];
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  sorted_.resize(entries_.size());
  for (const Entry& entry : entries_) sorted_[ends_[bucket_of(entry)]++] = entry;
  // Each end is now where it says.
  size_t start = 0;
  for (const size_t end : ends_) {
    std::sort(sorted_.begin() + static_cast<ptrdiff_t>(start),
              sorted_.begin() + static_cast<ptrdiff_t>(end), before);
    start = end;
  }
  std::swap(entries_, sorted_);
}

SortedPiece PieceSorter::Take() {
  Sort();
  SortedPiece piece;
  piece.size = bytes_.size();
  piece.bytes = std::make_unique_for_overwrite<char[]>(bytes_.size());
  char* to = piece.bytes.get();
  for (const Entry& entry : entries_) {
    const char* from = bytes_.data() + entry.at;
    const size_t bytes = EntryBytes(from);
    std::memcpy(to, from, bytes);
    to += bytes;
  }
  entries_.clear();
  bytes_.clear();
  return piece;
}

// ---- PieceMerge ----

PieceMerge::PieceMerge(std::span<const SortedPiece> pieces)
    : heads_(pieces.size()), losers_(pieces.size(), kNobody) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    heads_[i].end = pieces[i].bytes.get() + pieces[i].size;
    Load(&heads_[i], pieces[i].bytes.get());
  }
  for (uint32_t i = 0; i < heads_.size(); ++i) Play(i);
}

void PieceMerge::Load(Head* head, const char* at) {
  if (at == head->end) {
    head->at = nullptr;
    head->order = UINT64_MAX;
    return;
  }
  head->at = at;
  head->order = OrderOf(KeyAt(at));
  __builtin_prefetch(at + kFetchAhead);
}

bool PieceMerge::Before(uint32_t a, uint32_t b) const {
  const Head& left = heads_[a];
  const Head& right = heads_[b];
  if (left.order != right.order) return left.order < right.order;
  if (left.at == nullptr || right.at == nullptr) return right.at == nullptr && left.at != nullptr;
  return KeyAt(left.at) < KeyAt(right.at);
}

// Leaf i hangs under node (i + n) / 2. Where no rival has come yet, the piece waits for one.
void PieceMerge::Play(uint32_t piece) {
  for (size_t node = (piece + heads_.size()) / 2; node > 0; node /= 2) {
    uint32_t& loser = losers_[node];
    if (loser == kNobody) {
      loser = piece;
      return;
    }
    if (Before(loser, piece)) std::swap(loser, piece);
  }
  losers_[0] = piece;
}

bool PieceMerge::Next() {
  if (heads_.empty()) return false;
  if (started_) {
    const uint32_t winner = losers_[0];
    Head& head = heads_[winner];
    if (head.at == nullptr) return false;
    Load(&head, head.at + EntryBytes(head.at));
    Play(winner);
  }
  started_ = true;
  const char* at = heads_[losers_[0]].at;
  if (at == nullptr) return false;
  const Header header = HeaderAt(at);
  key_ = {at + sizeof header, header.key_bytes};
  value_ = {key_.data() + key_.size(), header.value_bytes & ~kAsks};
  asks_ = (header.value_bytes & kAsks) != 0;
  return true;
}

// ---- PiecePool ----

void PiecePool::Add(SortedPiece piece) {
  {
    std::lock_guard lock(mutex_);
    bytes_ += piece.size;
    pieces_.push_back(std::move(piece));
    if (bytes_ < most_bytes_) return;
  }
  changed_.notify_all();
}

std::vector<SortedPiece> PiecePool::TakeAll() {
  std::lock_guard lock(mutex_);
  return std::exchange(pieces_, {});
}

void PiecePool::Release(std::vector<SortedPiece> pieces) {
  size_t bytes = 0;
  for (const SortedPiece& piece : pieces) bytes += piece.size;
  pieces.clear();
  {
    std::lock_guard lock(mutex_);
    bytes_ -= bytes;
  }
  changed_.notify_all();
}

bool PiecePool::full() const {
  std::lock_guard lock(mutex_);
  return bytes_ >= most_bytes_;
}

bool PiecePool::AwaitRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || bytes_ < most_bytes_; });
  return !stopped_;
}

void PiecePool::AwaitFull() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return left_ || bytes_ >= most_bytes_; });
}

void PiecePool::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void PiecePool::Leave() {
  {
    std::lock_guard lock(mutex_);
    left_ = true;
  }
  changed_.notify_all();
}

}  // namespace cellar::table
