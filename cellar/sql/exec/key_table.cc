#include "cellar/sql/exec/key_table.h"

#include <algorithm>

#include "cellar/types/collation.h"

namespace cellar::sql::exec {
namespace {

constexpr uint64_t kSeed = 0x9e3779b97f4a7c15u;
constexpr uint64_t kNullInt = 0x51ed270b;
constexpr size_t kMostCodes = 1024;  // of the key columns of a batch together
constexpr size_t kRecentBits = 8, kRecent = size_t{1} << kRecentBits;
constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;

uint64_t MixInt(uint64_t hash, uint64_t value) {
  value += hash * 31;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  value ^= value >> 32;
  return value;
}

// The first bytes and the size: tells most values apart.
uint64_t WordOf(std::string_view value) {
  const size_t size = value.size();
  uint64_t word = 0;
  if (size >= 8) {
    std::memcpy(&word, value.data(), 8);
  } else if (size >= 4) {
    uint32_t first, last;
    std::memcpy(&first, value.data(), 4);
    std::memcpy(&last, value.data() + size - 4, 4);
    word = first | uint64_t{last} << 32;
  } else if (size > 0) {
    word = static_cast<uint8_t>(value[0]) |
           static_cast<uint64_t>(static_cast<uint8_t>(value[size / 2])) << 8 |
           static_cast<uint64_t>(static_cast<uint8_t>(value[size - 1])) << 16;
  }
  return word ^ (uint64_t{size} << 56);
}

// Types whose equal values have equal bytes.
bool ComparesAsBytes(Type type) {
  if (type.array || (type.collation != nullptr && !type.collation->deterministic)) return false;
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
  CountedVector<uint32_t> slots(slots_.size() * 4, 0);
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

size_t KeyTable::CountCodes(std::span<const ColumnVector* const> keys) {
  size_t size = keys.empty() ? 0 : 1;
  for (const ColumnVector* key : keys) {
    if (!key->has_codes() || key->has_nulls()) return 0;
    size *= key->dictionary().size();
    if (size > kMostCodes) return 0;
  }
  return size;
}

const uint16_t* KeyTable::CombineCodes(std::span<const ColumnVector* const> keys, size_t rows) {
  codes_.resize(rows);
  std::copy_n(keys[0]->codes(), rows, codes_.begin());
  for (size_t k = 1; k < keys.size(); ++k) {
    const uint8_t* codes = keys[k]->codes();
    const size_t width = keys[k]->dictionary().size();
    for (size_t i = 0; i < rows; ++i) {
      codes_[i] = static_cast<uint16_t>(codes_[i] * width + codes[i]);
    }
  }
  return codes_.data();
}

uint32_t KeyTable::LocateFresh(std::span<const ColumnVector* const> keys, size_t row, uint64_t hash,
                               uint8_t* fresh) {
  const size_t before = hashes_.size();
  const uint32_t id = Locate(keys, row, hash);
  if (fresh != nullptr) fresh[row] = hashes_.size() != before ? 1 : 0;
  return id;
}

template <typename Code>
void KeyTable::FindByCodes(std::span<const ColumnVector* const> keys, const Code* codes,
                           size_t size, size_t rows, uint32_t* ids, uint8_t* fresh) {
  // Batches of one table tend to mean the same by a code.
  code_ids_.resize(size, kAbsent);
  code_known_.assign(size, 0);
  const uint8_t* known = code_known_.data();
  for (size_t i = 0; i < rows; ++i) {
    const Code code = codes[i];
    if (!known[code]) [[unlikely]] {
      uint32_t& id = code_ids_[code];
      if (id == kAbsent || !Equal(keys, i, id)) id = LocateFresh(keys, i, HashRow(keys, i), fresh);
      code_known_[code] = 1;
    }
    ids[i] = code_ids_[code];
  }
}

// One column of integers, or of bytes that compare as bytes: values seen lately are found without
// a hash and a probe.
void KeyTable::FindByRecent(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids,
                            uint8_t* fresh) {
  const ColumnVector& key = *keys[0];
  const uint8_t* nulls = key.nulls();
  recent_.resize(kRecent);
  const auto find = [&](size_t i, uint64_t word, auto&& matches) {
    Recent& recent = recent_[(word * kSpread) >> (64 - kRecentBits)];
    if (nulls[i] != 0) [[unlikely]] {
      ids[i] = LocateFresh(keys, i, HashRow(keys, i), fresh);
      return;
    }
    if (recent.word != word || recent.id == kAbsent || !matches(recent.id)) {
      recent = {word, LocateFresh(keys, i, HashRow(keys, i), fresh)};
    }
    ids[i] = recent.id;
  };
  if (key.physical() == Physical::kInt64) {
    const int64_t* values = key.ints();
    for (size_t i = 0; i < rows; ++i) {
      find(i, static_cast<uint64_t>(values[i]), [](uint32_t) { return true; });
    }
    return;
  }
  const std::string_view* values = key.bytes();
  for (size_t i = 0; i < rows; ++i) {
    const std::string_view value = values[i];
    find(i, WordOf(value), [&](uint32_t id) { return keys_.column(0).bytes()[id] == value; });
  }
}

bool KeyTable::FindOrInsert(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids,
                            uint8_t* fresh) {
  if (fresh != nullptr) std::fill_n(fresh, rows, uint8_t{0});
  if (const size_t size = CountCodes(keys); size != 0) {
    if (keys.size() == 1) {
      FindByCodes(keys, keys[0]->codes(), size, rows, ids, fresh);
    } else {
      FindByCodes(keys, CombineCodes(keys, rows), size, rows, ids, fresh);
    }
  } else if (keys.size() == 1 &&
             (keys[0]->physical() == Physical::kInt64 || ComparesAsBytes(types_[0]))) {
    FindByRecent(keys, rows, ids, fresh);
  } else {
    Hash(keys, rows, &scratch_);
    for (size_t i = 0; i < rows; ++i) ids[i] = LocateFresh(keys, i, scratch_[i], fresh);
  }
  return std::all_of(ids, ids + rows, [first = ids](uint32_t id) { return id == *first; });
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
