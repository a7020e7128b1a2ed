#include "cellar/sql/exec/key_table.h"

#include <algorithm>

namespace cellar::sql::exec {
namespace {

constexpr uint64_t kSeed = 0x9e3779b97f4a7c15u;
constexpr uint64_t kNullInt = 0x51ed270b;
constexpr size_t kMostCodes = 1024;  // of the key columns of a batch together
constexpr size_t kRecentInts = 256;

uint64_t MixInt(uint64_t hash, uint64_t value) {
  value += hash * 31;
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
  code_ids_.clear();
  recent_.clear();
}

void KeyTable::Hash(std::span<const ColumnVector* const> keys, size_t rows,
                    std::vector<uint64_t>* out) const {
  out->assign(rows, kSeed);
  uint64_t* hashes = out->data();
  for (size_t k = 0; k < keys.size(); ++k) {
    const ColumnVector& column = *keys[k];
    if (column.physical() == Physical::kInt64) {
      const int64_t* values = column.ints();
      const uint8_t* nulls = column.nulls();
      for (size_t i = 0; i < rows; ++i) {
        hashes[i] = MixInt(hashes[i], nulls[i] ? kNullInt : static_cast<uint64_t>(values[i]));
      }
      continue;
    }
    for (size_t i = 0; i < rows; ++i) {
      hashes[i] = MixInt(hashes[i], HashDatum(column.Get(i), types_[k]));
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

uint32_t KeyTable::Locate(std::span<const ColumnVector* const> keys, size_t row, uint64_t hash) {
  if ((hashes_.size() + 1) * 2 > slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (const uint32_t slot = slots_[at]) {
    if (hashes_[slot - 1] == hash && Equal(keys, row, slot - 1)) return slot - 1;
    at = (at + 1) & mask;
  }
  const uint32_t id = static_cast<uint32_t>(hashes_.size());
  slots_[at] = id + 1;
  hashes_.push_back(hash);
  for (size_t k = 0; k < keys.size(); ++k) {
    keys_.column(k).Append(CopyDatum(keys[k]->Get(row), types_[k], keys_.arena()));
  }
  keys_.SetSize(id + 1);
  return id;
}

uint64_t KeyTable::HashRow(std::span<const ColumnVector* const> keys, size_t row) const {
  uint64_t hash = kSeed;
  for (size_t k = 0; k < keys.size(); ++k) {
    const ColumnVector& column = *keys[k];
    if (column.physical() == Physical::kInt64) {
      const bool null = column.IsNull(row);
      hash = MixInt(hash, null ? kNullInt : static_cast<uint64_t>(column.ints()[row]));
    } else {
      hash = MixInt(hash, HashDatum(column.Get(row), types_[k]));
    }
  }
  return hash;
}

size_t KeyTable::CombineCodes(std::span<const ColumnVector* const> keys, size_t rows) {
  if (keys.empty()) return 0;
  size_t size = 1;
  for (const ColumnVector* key : keys) {
    if (!key->has_codes() || key->has_nulls()) return 0;
    size *= key->dictionary().size();
    if (size > kMostCodes || size == 0) return 0;
  }
  codes_.resize(rows);
  std::copy_n(keys[0]->codes(), rows, codes_.begin());
  for (size_t k = 1; k < keys.size(); ++k) {
    const uint8_t* codes = keys[k]->codes();
    const size_t width = keys[k]->dictionary().size();
    for (size_t i = 0; i < rows; ++i) {
      codes_[i] = static_cast<uint16_t>(codes_[i] * width + codes[i]);
    }
  }
  return size;
}

bool KeyTable::FindOrInsert(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids,
                            uint8_t* fresh) {
  uint32_t differ = 0;
  const auto found = [&](size_t i, uint32_t id) {
    ids[i] = id;
    differ |= id ^ ids[0];
  };
  const auto locate = [&](size_t i, uint64_t hash) {
    const size_t before = hashes_.size();
    const uint32_t id = Locate(keys, i, hash);
    if (fresh != nullptr && hashes_.size() != before) fresh[i] = 1;
    return id;
  };
  if (fresh != nullptr) std::fill_n(fresh, rows, uint8_t{0});
  if (const size_t size = CombineCodes(keys, rows); size != 0) {
    // Batches of one table tend to mean the same by a code.
    code_ids_.resize(size, kAbsent);
    code_known_.assign(size, 0);
    for (size_t i = 0; i < rows; ++i) {
      const uint16_t code = codes_[i];
      if (!code_known_[code]) [[unlikely]] {
        uint32_t& id = code_ids_[code];
        if (id == kAbsent || !Equal(keys, i, id)) id = locate(i, HashRow(keys, i));
        code_known_[code] = 1;
      }
      found(i, code_ids_[code]);
    }
  } else if (keys.size() == 1 && keys[0]->physical() == Physical::kInt64 && !keys[0]->has_nulls()) {
    const int64_t* values = keys[0]->ints();
    recent_.resize(kRecentInts);
    for (size_t i = 0; i < rows; ++i) {
      Recent& recent = recent_[static_cast<uint64_t>(values[i]) % kRecentInts];
      if (recent.value != values[i] || recent.id == kAbsent) {
        recent = {values[i], locate(i, HashRow(keys, i))};
      }
      found(i, recent.id);
    }
  } else {
    Hash(keys, rows, &scratch_);
    for (size_t i = 0; i < rows; ++i) found(i, locate(i, scratch_[i]));
  }
  return differ == 0;
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
