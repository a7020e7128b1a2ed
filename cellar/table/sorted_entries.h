// Entries of an index on their way into it: sorted in pieces that fit into a processor's cache, and
// merged. Private to the layer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::table {

// Entries in the order of their keys, one behind the other.
struct SortedPiece {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
};

// One thread.
class PieceSorter {
 public:
  // `asks`: nobody else may have the key. What is borrowed is copied.
  void Add(std::string_view key, std::string_view value, bool asks);
  bool empty() const { return entries_.empty(); }
  // It is time to Take.
  bool full() const { return bytes_.size() >= kPieceBytes; }
  // All entries since the last call.
  SortedPiece Take();

 private:
  static constexpr size_t kPieceBytes = size_t{512} << 10;

  struct Entry {
    uint64_t order;  // the first bytes of the key
    uint32_t at;     // in bytes_
  };
  bool Before(const Entry& a, const Entry& b) const;
  void Sort();

  std::string bytes_;
  std::vector<Entry> entries_, sorted_;
  std::vector<uint32_t> ends_;
};

// All entries of some pieces, in order. Equal keys come in no certain order.
class PieceMerge {
 public:
  // Borrows the pieces.
  explicit PieceMerge(std::span<const SortedPiece> pieces);
  // False at the end. What the entry's parts borrow lives as long as the pieces.
  bool Next();
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }
  bool asks() const { return asks_; }

 private:
  struct Head {
    uint64_t order = 0;
    const char* at = nullptr;  // null: the piece has ended
    const char* end = nullptr;
  };
  bool Before(uint32_t a, uint32_t b) const;
  void Load(Head* head, const char* at);
  // Lets the piece's head rise as far as it wins.
  void Play(uint32_t piece);

  std::vector<Head> heads_;
  std::vector<uint32_t> losers_;  // a tree; at 0 the winner
  bool started_ = false;
  std::string_view key_, value_;
  bool asks_ = false;
};

// Pieces of several threads, and how much memory they may take together. Thread-safe.
class PiecePool {
 public:
  explicit PiecePool(size_t most_bytes) : most_bytes_(most_bytes) {}

  void Add(SortedPiece piece);
  // Those that are there. They count until Release.
  std::vector<SortedPiece> TakeAll();
  void Release(std::vector<SortedPiece> pieces);
  bool full() const;
  // Until there is room for more; false: Stop was called.
  bool AwaitRoom();
  void Stop();
  // Until it is full or Leave was called.
  void AwaitFull();
  // Of who will add nothing more.
  void Leave();

 private:
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<SortedPiece> pieces_;
  size_t bytes_ = 0;
  bool stopped_ = false, left_ = false;
};

}  // namespace cellar::table
