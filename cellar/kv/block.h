// What reads hand out: PinnedValue, the owner of one value, and Block, the pairs of one read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/check.h"

namespace cellar::kv {

// Owner of the bytes of one value, reusable for many reads. Either holds a copy, or pins the
// engine's own memory (a cached block), so that large values are not copied. Must not outlive the
// engine. One thread at a time; movable.
class PinnedValue {
 public:
  // How an engine's pin, built in place in `storage`, is moved, read and dropped.
  struct PinOps {
    void (*move)(void* from, void* to);  // constructs at `to`, leaves `from` to be destroyed
    std::string_view (*view)(const void* pin);
    void (*clear)(void* pin);  // releases what is pinned, keeps the object for the next read
    void (*destroy)(void* pin);
  };
  static constexpr size_t kPinBytes = 128;

  PinnedValue() = default;
  PinnedValue(PinnedValue&& other) noexcept { MoveFrom(&other); }
  PinnedValue& operator=(PinnedValue&& other) noexcept {
    if (this != &other) {
      DropPin();
      MoveFrom(&other);
    }
    return *this;
  }
  ~PinnedValue() { DropPin(); }

  // The bytes; valid until this object is assigned, reset, read into again, moved or destroyed.
  std::string_view view() const { return view_; }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }

  // Forgets the value and releases what it pins.
  void Reset() {
    if (ops_ != nullptr) ops_->clear(pin_);
    view_ = {};
  }
  // Becomes a copy of `bytes`.
  void Assign(std::string_view bytes) {
    Reset();
    own_.assign(bytes);
    view_ = own_;
  }

  // For engines: room for a pin. Construct an object of at most kPinBytes with std::construct_at
  // when ops() differs from yours, then call SetPin; after a read into it, call Refresh.
  const PinOps* ops() const { return ops_; }
  void* pin() { return pin_; }
  void DropPin() {
    if (ops_ != nullptr) ops_->destroy(pin_);
    ops_ = nullptr;
    view_ = {};
  }
  void SetPin(const PinOps* ops) { ops_ = ops; }
  void Refresh() { view_ = ops_->view(pin_); }

 private:
  void MoveFrom(PinnedValue* other) {
    const bool pinned = other->ops_ != nullptr && !other->OwnsCopy();
    const bool owns = other->OwnsCopy();
    if (other->ops_ != nullptr) {
      other->ops_->move(other->pin_, pin_);
      ops_ = other->ops_;
    }
    own_ = std::move(other->own_);
    if (owns) {
      view_ = own_;
    } else if (pinned) {
      view_ = ops_->view(pin_);
    }
    other->DropPin();
  }
  bool OwnsCopy() const { return view_.data() != nullptr && view_.data() == own_.data(); }

  std::string_view view_;
  std::string own_;
  const PinOps* ops_ = nullptr;
  alignas(16) char pin_[kPinBytes];
};

// The pairs of one read, copied into one reusable buffer. Entries are in the order of the cursor.
// One thread at a time; reuse one object for all blocks of a scan to save its allocations.
class Block {
 public:
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // Valid until the block is changed (the next NextBlock call into it).
  std::string_view key(size_t i) const {
    const Entry& entry = entries_[i];
    return {bytes_.get() + entry.offset, entry.key_bytes};
  }
  // Empty when the scan asked for keys only.
  std::string_view value(size_t i) const {
    const Entry& entry = entries_[i];
    return {bytes_.get() + entry.offset + entry.key_bytes, entry.value_bytes};
  }
  // Bytes of keys and values held.
  size_t bytes() const { return used_; }

  // For engines and tests.
  void Clear() {
    entries_.clear();
    used_ = 0;
  }
  void Append(std::string_view key, std::string_view value) {
    const size_t need = key.size() + value.size();
    if (used_ + need > capacity_) Grow(need);
    char* out = bytes_.get() + used_;
    std::memcpy(out, key.data(), key.size());
    if (!value.empty()) std::memcpy(out + key.size(), value.data(), value.size());
    entries_.push_back(
        {used_, static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())});
    used_ += need;
  }
  void Truncate(size_t size) {
    if (size < entries_.size()) {
      used_ = entries_[size].offset;
      entries_.resize(size);
    }
  }

 private:
  struct Entry {
    size_t offset;
    uint32_t key_bytes;
    uint32_t value_bytes;
  };
  void Grow(size_t need) {
    size_t capacity = capacity_ == 0 ? 1024 : capacity_ * 2;
    while (capacity < used_ + need) capacity *= 2;
    // Not make_unique: that would clear bytes which are about to be overwritten.
    std::unique_ptr<char[]> grown = std::make_unique_for_overwrite<char[]>(capacity);
    if (used_ != 0) std::memcpy(grown.get(), bytes_.get(), used_);
    bytes_ = std::move(grown);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  size_t used_ = 0;
  size_t capacity_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace cellar::kv
