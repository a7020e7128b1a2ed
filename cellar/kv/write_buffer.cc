#include "cellar/kv/write_buffer.h"

#include <algorithm>
#include <memory>

#include "cellar/base/check.h"

namespace cellar::kv {

uint64_t WriteBuffer::Prefix(std::string_view key) {
  uint64_t word = 0;
  std::memcpy(&word, key.data(), std::min<size_t>(key.size(), 8));
  return __builtin_bswap64(word);
}

bool WriteBuffer::Less(const Entry& entry, uint64_t prefix, std::string_view key) {
  if (entry.prefix != prefix) return entry.prefix < prefix;
  return entry.node->key() < key;
}

WriteBuffer::Position WriteBuffer::LowerBound(std::string_view key) const {
  if (leaves_.empty()) return End();
  const uint64_t prefix = Prefix(key);
  // The first leaf whose last key is not below `key` holds the place.
  size_t low = 0, high = leaves_.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (Less(leaves_[middle].back(), prefix, key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == leaves_.size()) return End();
  const std::vector<Entry>& leaf = leaves_[low];
  size_t first = 0, last = leaf.size();
  while (first < last) {
    const size_t middle = (first + last) / 2;
    if (Less(leaf[middle], prefix, key)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(first)};
}

const WriteBuffer::Node* WriteBuffer::Add(WriteKind kind, std::string_view key,
                                          std::string_view value, uint32_t epoch) {
  char* room = arena_.Allocate(sizeof(Node) + key.size() + value.size());
  Node* node = std::construct_at(reinterpret_cast<Node*>(room));
  node->older = nullptr;
  node->seq = ++seq_;
  node->key_bytes = static_cast<uint32_t>(key.size());
  node->value_bytes = static_cast<uint32_t>(value.size());
  node->epoch = epoch;
  node->kind = kind;
  char* bytes = room + sizeof(Node);
  std::memcpy(bytes, key.data(), key.size());
  if (!value.empty()) std::memcpy(bytes + key.size(), value.data(), value.size());
  if (keep_undo_) undo_.push_back(node);

  const Entry entry{Prefix(key), node};
  if (leaves_.empty() || Less(leaves_.back().back(), entry.prefix, key)) {
    // Ascending keys fill leaves to the brim instead of splitting them.
    if (leaves_.empty() || leaves_.back().size() >= kLeafEntries) leaves_.emplace_back();
    leaves_.back().push_back(entry);
    ++keys_;
    return nullptr;
  }
  const Position at = LowerBound(key);
  Entry& found = leaves_[at.leaf][at.index];
  if (found.prefix == entry.prefix && found.node->key() == key) {
    node->older = found.node;
    found.node = node;
    return node->older;
  }
  Insert(at, entry);
  ++keys_;
  return nullptr;
}

void WriteBuffer::Insert(Position at, Entry entry) {
  std::vector<Entry>* leaf = &leaves_[at.leaf];
  if (leaf->size() >= kLeafEntries) {
    constexpr size_t kHalf = kLeafEntries / 2;
    std::vector<Entry> upper;
    upper.reserve(kLeafEntries);
    upper.assign(leaf->begin() + kHalf, leaf->end());
    leaf->resize(kHalf);
    leaves_.insert(leaves_.begin() + at.leaf + 1, std::move(upper));
    if (at.index > kHalf) at = {at.leaf + 1, at.index - static_cast<uint32_t>(kHalf)};
    leaf = &leaves_[at.leaf];
  }
  leaf->insert(leaf->begin() + at.index, entry);
}

void WriteBuffer::AddRangeDeletion(std::string_view start, std::string_view end, uint32_t epoch) {
  ranges_.push_back({std::string(start), std::string(end), ++seq_, epoch});
}

const WriteBuffer::Node* WriteBuffer::FindNode(std::string_view key, uint64_t seq) const {
  if (keys_ == 0) return nullptr;
  const Position at = LowerBound(key);
  return at != End() && At(at)->key() == key ? At(at, seq) : nullptr;
}

WriteBuffer::Found WriteBuffer::Find(std::string_view key, uint64_t seq, const Node** node) const {
  const Node* newest = FindNode(key, seq);
  if (!ranges_.empty() && RangeDeleted(key, newest == nullptr ? 0 : newest->seq, seq)) {
    return Found::kDeleted;
  }
  if (newest == nullptr) return Found::kNothing;
  if (newest->kind == WriteKind::kDelete) return Found::kDeleted;
  *node = newest;
  return Found::kPut;
}

bool WriteBuffer::RangeDeleted(std::string_view key, uint64_t since, uint64_t seq) const {
  for (const RangeDeletion& range : ranges_) {
    if (range.seq > since && range.seq <= seq && key >= range.start &&
        (range.end.empty() || key < range.end)) {
      return true;
    }
  }
  return false;
}

void WriteBuffer::Erase(std::string_view key) {
  const Position at = LowerBound(key);
  std::vector<Entry>& leaf = leaves_[at.leaf];
  leaf.erase(leaf.begin() + at.index);
  if (leaf.empty()) leaves_.erase(leaves_.begin() + at.leaf);
  --keys_;
}

void WriteBuffer::RollbackTo(uint64_t seq) {
  while (!undo_.empty() && undo_.back()->seq > seq) {
    Node* node = undo_.back();
    undo_.pop_back();
    if (node->older == nullptr) {
      Erase(node->key());
    } else {
      const Position at = LowerBound(node->key());
      leaves_[at.leaf][at.index].node = node->older;
    }
  }
  while (!ranges_.empty() && ranges_.back().seq > seq) ranges_.pop_back();
}

void WriteBuffer::KeepUndo(bool keep) {
  keep_undo_ = keep;
  if (!keep) undo_.clear();
}

void WriteBuffer::ClearKeys() {
  leaves_.clear();
  undo_.clear();
  arena_ = Arena();
  keys_ = 0;
}

}  // namespace cellar::kv
