// A hash table from rows of key values to dense ids 0, 1, 2, ... in order of first appearance: the
// heart of grouping, DISTINCT, hash joins and set operations. NULLs equal each other here. Private
// to this layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cellar/types/batch.h"

namespace cellar::sql::exec {

class KeyTable {
 public:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  // Empty, for keys of these types.
  void Reset(std::span<const Type> types);
  // ids[i] becomes the id of row i of the key columns, made if new (fresh[i] = 1, when `fresh` is
  // given). True when all rows (there are some) have the same id. Cost: under 1 ns a row for
  // columns with codes and for an integer column of few values, else a hash and a probe each.
  bool FindOrInsert(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids,
                    uint8_t* fresh = nullptr);
  // ids[i] becomes the id, or kAbsent.
  void Find(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids) const;
  size_t size() const { return keys_.size(); }
  // The distinct keys by id.
  const RowBatch& keys() const { return keys_; }
  size_t footprint_bytes() const {
    return keys_.footprint_bytes() + hashes_.size() * 8 + slots_.size() * 4;
  }

 private:
  void Hash(std::span<const ColumnVector* const> keys, size_t rows,
            std::vector<uint64_t>* out) const;
  uint64_t HashRow(std::span<const ColumnVector* const> keys, size_t row) const;
  // The id of one row, whose hash this is, made if new.
  uint32_t Locate(std::span<const ColumnVector* const> keys, size_t row, uint64_t hash);
  uint32_t LocateFresh(std::span<const ColumnVector* const> keys, size_t row, uint64_t hash,
                       uint8_t* fresh);
  // How many codes the columns have together; 0: not all have some, or too many.
  static size_t CountCodes(std::span<const ColumnVector* const> keys);
  const uint16_t* CombineCodes(std::span<const ColumnVector* const> keys, size_t rows);
  template <typename Code>
  void FindByCodes(std::span<const ColumnVector* const> keys, const Code* codes, size_t size,
                   size_t rows, uint32_t* ids, uint8_t* fresh);
  void FindByRecent(std::span<const ColumnVector* const> keys, size_t rows, uint32_t* ids,
                    uint8_t* fresh);
  bool Equal(std::span<const ColumnVector* const> keys, size_t row, uint32_t id) const;
  void Grow();

  std::vector<Type> types_;
  RowBatch keys_;
  CountedVector<uint64_t> hashes_;  // by id
  CountedVector<uint32_t> slots_;   // id + 1, 0 is free; size is a power of two
  mutable std::vector<uint64_t> scratch_;
  std::vector<uint16_t> codes_;      // of several columns together, a row
  std::vector<uint32_t> code_ids_;   // the id of each code, of the last batch with codes
  std::vector<uint8_t> code_known_;  // 1: code_ids_ holds for this batch
  struct Recent {
    uint64_t word = 0;  // the integer, or the first bytes and the size
    uint32_t id = kAbsent;
  };
  std::vector<Recent> recent_;
};

}  // namespace cellar::sql::exec
