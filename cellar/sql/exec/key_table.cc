#include "cellar/sql/exec/key_table.h"

#include <algorithm>

namespace cellar::sql::exec {
namespace {

uint64_t Mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  value ^= value >> 32;
  return value;
}

// Types whose equal values have equal bytes.
bool ComparesAsBytes(Type type) {
  if (type.array) return false;
  switch (type.id) {
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kName:
    case TypeId::kUnknown:
    case TypeId::kBytea:
    case TypeId::kUuid: return true;
    default: return false;
  }
}

}  // namespace

void KeyTable::Reset(std::span<const Type> types) {
  types_.assign(types.begin(), types.end());
  keys_.Reset(types);
  hashes_.clear();
  slots_.assign(16, 0);
}

void KeyTable::Hash(std::span<const ColumnVector* const> keys, size_t rows,
                    std::vector<uint64_t>* out) const {
  out->assign(rows, 0x9e3779b97f4a7c15u);
  uint64_t* hashes = out->data();
  for (size_t k = 0; k < keys.size(); ++k) {
    const ColumnVector& column = *keys[k];
    if (column.physical() == Physical::kInt64) {
      const int64_t* values = column.ints();
      const uint8_t* nulls = column.nulls();
      for (size_t i = 0; i < rows; ++i) {
        uint64_t value = nulls[i] ? 0x51ed270b : static_cast<uint64_t>(values[i]);
        hashes[i] = Mix(hashes[i] * 31 + value);
      }
      continue;
    }
    for (size_t i = 0; i < rows; ++i) {
      hashes[i] = Mix(hashes[i] * 31 + HashDatum(column.Get(i), types_[k]));
    }
  }
}

bool KeyTable::Equal(std::span<const ColumnVector* const> keys, size_t row, uint32_t id) const {
  for (size_t k = 0; k < keys.size(); ++k) {
    const ColumnVector& a = *keys[k];
    const ColumnVector& b = keys_.column(k);
    if (a.IsNull(row) || b.IsNull(id)) {
      if (a.IsNull(row) != b.IsNull(id)) return false;
      continue;
    }
    if (a.physical() == Physical::kInt64) {
      if (a.ints()[row] != b.ints()[id]) return false;
    } else if (ComparesAsBytes(types_[k])) {
      if (a.bytes()[row] != b.bytes()[id]) return false;
    } else if (CompareDatums(a.Get(row), b.Get(id), types_[k]) != 0) {
      return false;
    }
  }
  return true;
}

void KeyTable::Grow() {
  std::vector<uint32_t> slots(slots_.size() * 4, 0);
  const size_t mask = slots.size() - 1;
  for (uint32_t id = 0; id < hashes_.size(); ++id) {
    size_t at = hashes_[id] & mask;
    while (slots[at] != 0) at = (at + 1) & mask;
    slots[at] = id + 1;
  }
  slots_ = std::move(slots);
}

void KeyTable::FindOrInsert(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids,
                            uint8_t* fresh) {
  Hash(keys, rows, &scratch_);
  for (size_t i = 0; i < rows; ++i) {
    if ((hashes_.size() + 1) * 2 > slots_.size()) Grow();
    const size_t mask = slots_.size() - 1;
    const uint64_t hash = scratch_[i];
    size_t at = hash & mask;
    while (true) {
      const uint32_t slot = slots_[at];
      if (slot == 0) {
        const uint32_t id = static_cast<uint32_t>(hashes_.size());
        slots_[at] = id + 1;
        hashes_.push_back(hash);
        for (size_t k = 0; k < keys.size(); ++k) {
          keys_.column(k).Append(CopyDatum(keys[k]->Get(i), types_[k], keys_.arena()));
        }
        keys_.SetSize(id + 1);
        ids[i] = id;
        if (fresh != nullptr) fresh[i] = 1;
        break;
      }
      if (hashes_[slot - 1] == hash && Equal(keys, i, slot - 1)) {
        ids[i] = slot - 1;
        if (fresh != nullptr) fresh[i] = 0;
        break;
      }
      at = (at + 1) & mask;
    }
  }
}

void KeyTable::Find(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids) const {
  Hash(keys, rows, &scratch_);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t hash = scratch_[i];
    size_t at = hash & mask;
    ids[i] = kAbsent;
    while (slots_[at] != 0) {
      const uint32_t id = slots_[at] - 1;
      if (hashes_[id] == hash && Equal(keys, i, id)) {
        ids[i] = id;
        break;
      }
      at = (at + 1) & mask;
    }
  }
}

}  // namespace cellar::sql::exec
