// Arrays: PostgreSQL's arrays of any element type, up to six dimensions.
//
// In-memory bytes (a Datum's kBytes; not persisted):
//   [dimensions: u8][has NULLs: u8][0 0][elements: u32]  then per dimension [length: i32][lower
//   bound: i32], then, when has NULLs, one byte an element (1 is NULL), padded to 4; elements of
//   kInt64 and kDouble: 8 bytes each (NULL: 0); of kBytes: end offsets u32 each, then the bytes.
// All little-endian. An empty array has no dimensions. int2vector and oidvector values have this
// form too, with elements int2 and oid and lower bound 0.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datum.h"
#include "cellar/types/text_io.h"
#include "cellar/types/type.h"

namespace cellar {

inline constexpr int kMaxArrayDimensions = 6;
inline constexpr size_t kMaxArrayElements = 134217727;

// The type of an array's elements: int4 for int4[], int2 for int2vector. Other types: kInvalid.
Type ElementTypeOf(Type array);

// Errors: 54000 where a subscript would be 2147483647 or more. Bounds that are left out are 1.
Status CheckArrayBounds(std::span<const int32_t> lengths, std::span<const int32_t> lower_bounds);

// Borrows the bytes of an array whose elements have the given physical form. Access is O(1). Bytes
// that cannot be such an array are an empty one, and no element reaches beyond the bytes.
class ArrayView {
 public:
  ArrayView(std::string_view bytes, Type element);

  // Whether the bytes were an array of such elements, as far as their sizes tell.
  bool valid() const { return valid_; }
  int dimensions() const { return dimensions_; }
  size_t size() const { return size_; }  // elements of all dimensions together
  int32_t length(int dimension) const { return ReadInt(8 + 8 * static_cast<size_t>(dimension)); }
  int32_t lower_bound(int dimension) const {
    return ReadInt(12 + 8 * static_cast<size_t>(dimension));
  }
  bool has_nulls() const { return nulls_ != nullptr; }
  // `i` counts from 0 in storage order.
  bool IsNull(size_t i) const { return nulls_ != nullptr && nulls_[i] != 0; }
  Datum Get(size_t i) const {
    if (IsNull(i)) return Datum();
    if (physical_ == Physical::kBytes) {
      const uint32_t start = i == 0 ? 0 : ReadEnd(i - 1), end = ReadEnd(i);
      if (start > end || end > data_bytes_) return Datum::Bytes({});
      return Datum::Bytes({data_ + 4 * size_ + start, end - start});
    }
    int64_t word;
    std::memcpy(&word, data_ + 8 * i, 8);
    if (physical_ == Physical::kInt64) return Datum::Int(word);
    double value;
    std::memcpy(&value, &word, 8);
    return Datum::Double(value);
  }
  // a[subscript] of a one-dimensional array: NULL outside its bounds.
  Datum At(int64_t subscript) const;
  // a[s1][s2].. : NULL outside the bounds or for a wrong number of subscripts.
  Datum At(std::span<const int64_t> subscripts) const;

 private:
  int32_t ReadInt(size_t offset) const {
    int32_t value;
    std::memcpy(&value, bytes_ + offset, 4);
    return value;
  }
  uint32_t ReadEnd(size_t i) const {
    uint32_t value;
    std::memcpy(&value, data_ + 4 * i, 4);
    return value;
  }

  const char* bytes_;
  const char* nulls_ = nullptr;
  const char* data_ = nullptr;
  size_t size_ = 0;
  size_t data_bytes_ = 0;  // of elements that are bytes, all together
  int dimensions_ = 0;
  Physical physical_;
  bool valid_ = false;
};

// Collects elements and makes the bytes. Reusable after Finish. One thread at a time.
class ArrayBuilder {
 public:
  explicit ArrayBuilder(Type element) : element_(element) {}
  // Borrows the datum's bytes until Finish.
  void Add(Datum element) { elements_.push_back(element); }
  // The same, unless the array would be larger than a new value may be. Errors: 54000.
  Status TryAdd(Datum element);
  size_t size() const { return elements_.size(); }
  // One dimension with this lower bound; no elements: the empty array.
  std::string_view Finish(Arena* arena, int32_t lower_bound = 1);
  // Several dimensions; the product of lengths is size(). Lower bounds may be empty (all 1).
  std::string_view Finish(std::span<const int32_t> lengths, std::span<const int32_t> lower_bounds,
                          Arena* arena);

 private:
  Type element_;
  std::vector<Datum> elements_;
  size_t bytes_ = 0;  // of elements that are bytes, as TryAdd counts them
};

// Makes an array of one dimension more out of arrays of one shape: ARRAY[a, b], ARRAY(SELECT a),
// array_agg(a). One thread at a time.
class ArrayStacker {
 public:
  // Of the arrays' elements.
  explicit ArrayStacker(Type element) : element_(element), builder_(element) {}
  // Borrows the array until Finish. False: its lengths are not those of the first one.
  Result<bool> Add(std::string_view array);
  // Arrays without elements make one without any. Errors: 54000 for more than six dimensions.
  Result<std::string_view> Finish(Arena* arena);

 private:
  Type element_;
  ArrayBuilder builder_;
  size_t arrays_ = 0;
  std::vector<int32_t> lengths_, bounds_;
};

// The array of some values, which array_agg and ARRAY(SELECT ..) make: of arrays, one of one
// dimension more. Errors: 22004 and 2202E for arrays that are NULL, empty or of several shapes,
// 54000.
Result<std::string_view> AccumulateArray(std::span<const Datum> values, Type type, Arena* arena);

// Element by element, then by number of elements, dimensions and bounds, as PostgreSQL's array_cmp
// (NULL elements are greatest and equal).
int CompareArrays(std::string_view a, std::string_view b, Type element);
// What decides where the elements that both have are equal.
int CompareArrayShapes(const ArrayView& a, const ArrayView& b);
uint64_t HashArray(std::string_view bytes, Type element);

// a || b, and with an element at either end. Errors: 2202E "cannot concatenate incompatible
// arrays".
Result<std::string_view> ConcatenateArrays(std::string_view a, std::string_view b, Type element,
                                           Arena* arena);
Result<std::string_view> AppendElement(std::string_view array, Datum value, Type element,
                                       Arena* arena);
Result<std::string_view> PrependElement(Datum value, std::string_view array, Type element,
                                        Arena* arena);

// '{1,2,NULL,"a b"}', '{{1,2},{3,4}}', '[0:1]={1,2}'. Errors: 22P02 "malformed array literal", and
// the element's own.
Result<std::string_view> ParseArray(std::string_view text, Type element,
                                    const FormatSettings& settings, Arena* arena);
void AppendArrayText(std::string_view bytes, Type element, const FormatSettings& settings,
                     std::string* out);
// array_send / array_recv.
void AppendArrayBinary(std::string_view bytes, Type element, std::string* out);
Result<std::string_view> ParseArrayBinary(std::string_view bytes, Type element, Arena* arena);

}  // namespace cellar
