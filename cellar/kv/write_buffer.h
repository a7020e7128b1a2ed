// The writes of one transaction: sorted, readable, with undo.
//
// Invariants:
//   1. Every write is a node in the arena with the next sequence number; nodes never move and live
//      until ClearKeys. A slot holds the newest node of its key, which links to older ones.
//   2. A view at sequence s is, per key, the newest node with seq <= s, unless a range deletion
//      with node.seq < seq <= s covers it. Cursors and savepoints are such views.
//   3. Leaves are non-empty, sorted, at most kLeafEntries long, and in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"

namespace cellar::kv {

enum class WriteKind : uint8_t {
  kPut,
  kPutIfAbsent,  // a put whose key is still to be looked for in the snapshot
  kDelete,
};

class WriteBuffer {
 public:
  static constexpr uint64_t kNewest = UINT64_MAX;

  struct Node {
    Node* older;
    uint64_t seq;
    uint32_t key_bytes;
    uint32_t value_bytes;
    uint32_t epoch;  // which of the transaction's snapshots was current
    WriteKind kind;

    const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
    std::string_view key() const { return {bytes(), key_bytes}; }
    std::string_view value() const { return {bytes() + key_bytes, value_bytes}; }
  };
  struct RangeDeletion {
    std::string start, end;  // [start, end); empty end: unbounded
    uint64_t seq;
    uint32_t epoch;
  };
  enum class Found : uint8_t { kNothing, kPut, kDeleted };

  // Returns the node that this one replaces, or null. Cost: about 100 ns, less for ascending keys.
  const Node* Add(WriteKind kind, std::string_view key, std::string_view value, uint32_t epoch);
  void AddRangeDeletion(std::string_view start, std::string_view end, uint32_t epoch);

  // The newest node of a key with node.seq <= seq, whatever range deletions say; or null.
  const Node* FindNode(std::string_view key, uint64_t seq) const;
  // The view at `seq` of one key; `*node` is set for kPut.
  Found Find(std::string_view key, uint64_t seq, const Node** node) const;
  // Whether the view at `seq` deletes `key` by range, counting deletions after `since`.
  bool RangeDeleted(std::string_view key, uint64_t since, uint64_t seq) const;
  bool HasRangeDeletions() const { return !ranges_.empty(); }
  const std::vector<RangeDeletion>& range_deletions() const { return ranges_; }

  // A place in key order. Valid until the next Add, RollbackTo or ClearKeys.
  struct Position {
    uint32_t leaf = 0;
    uint32_t index = 0;
    bool operator==(const Position&) const = default;
  };
  Position LowerBound(std::string_view key) const;  // first key >= `key`
  Position End() const { return {static_cast<uint32_t>(leaves_.size()), 0}; }
  Position Begin() const { return {0, 0}; }
  Position Next(Position at) const {
    if (++at.index >= leaves_[at.leaf].size()) at = {at.leaf + 1, 0};
    return at;
  }
  // Undefined at Begin().
  Position Previous(Position at) const {
    if (at.index == 0) {
      --at.leaf;
      at.index = static_cast<uint32_t>(leaves_[at.leaf].size());
    }
    --at.index;
    return at;
  }
  // The newest node at a place.
  const Node* At(Position at) const { return leaves_[at.leaf][at.index].node; }
  // The node of the view at `seq`, or null.
  const Node* At(Position at, uint64_t seq) const {
    const Node* node = At(at);
    while (node != nullptr && node->seq > seq) node = node->older;
    return node;
  }

  // Sequence number of the newest write ever made; grows over ClearKeys.
  uint64_t seq() const { return seq_; }
  // Forgets every write after `seq`. The undo log must reach back that far (see KeepUndo).
  void RollbackTo(uint64_t seq);
  // Whether to log from here on what RollbackTo needs; without it, the log is dropped.
  void KeepUndo(bool keep);
  // Forgets all keys, keeps range deletions and the count of sequence numbers.
  void ClearKeys();

  size_t keys() const { return keys_; }
  bool empty() const { return keys_ == 0 && ranges_.empty(); }
  size_t footprint_bytes() const { return arena_.footprint_bytes() + keys_ * sizeof(Entry); }

  // Calls fn(node) for the newest node of every key that no later range deletion covers.
  template <typename Fn>
  void ForEachFinal(Fn&& fn) const {
    for (const std::vector<Entry>& leaf : leaves_) {
      for (const Entry& entry : leaf) {
        const Node& node = *entry.node;
        if (!ranges_.empty() && RangeDeleted(node.key(), node.seq, kNewest)) continue;
        fn(node);
      }
    }
  }

 private:
  static constexpr size_t kLeafEntries = 128;
  struct Entry {
    uint64_t prefix;  // first 8 bytes of the key as a big-endian number
    Node* node;
  };

  static uint64_t Prefix(std::string_view key);
  static bool Less(const Entry& entry, uint64_t prefix, std::string_view key);
  void Insert(Position at, Entry entry);
  void Erase(std::string_view key);

  Arena arena_;
  std::vector<std::vector<Entry>> leaves_;
  std::vector<RangeDeletion> ranges_;
  std::vector<Node*> undo_;
  bool keep_undo_ = false;
  uint64_t seq_ = 0;
  size_t keys_ = 0;
};

}  // namespace cellar::kv
