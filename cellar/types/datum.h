// One value, borrowed: a Datum does not own its bytes. Whoever hands one out says how long they
// live; usually the arena, batch or plan that it came from.
//
// A Datum knows which of the three physical forms it has. Asked for another one it answers 0 or no
// bytes, so that a type that does not fit its value never becomes an address or foreign memory;
// HasForm tells in time, and the evaluator asks it of every result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/types/type.h"

namespace cellar {

class Datum {
 public:
  Datum() = default;  // NULL
  static Datum Null() { return Datum(); }
  static Datum Int(int64_t value) {
    Datum d;
    d.kind_ = Kind::kInt;
    d.int_ = value;
    return d;
  }
  static Datum Bool(bool value) { return Int(value ? 1 : 0); }
  static Datum Double(double value) {
    Datum d;
    d.kind_ = Kind::kDouble;
    d.double_ = value;
    return d;
  }
  static Datum Bytes(std::string_view value) {
    Datum d;
    d.kind_ = Kind::kBytes;
    d.data_ = value.data();
    d.size_ = static_cast<uint32_t>(value.size());
    return d;
  }

  bool is_null() const { return kind_ == Kind::kNull; }
  // Which of the three is valid follows from the value's Type; see PhysicalOf.
  int64_t int_value() const { return kind_ == Kind::kInt ? int_ : 0; }
  bool bool_value() const { return int_value() != 0; }
  double double_value() const { return kind_ == Kind::kDouble ? double_ : 0; }
  std::string_view bytes() const {
    return kind_ == Kind::kBytes ? std::string_view(data_, size_) : std::string_view();
  }
  size_t byte_count() const { return size_; }  // 0 of the other forms
  // NULL, or a value of this physical form.
  bool Is(Physical form) const {
    return is_null() || kind_ == static_cast<Kind>(static_cast<uint8_t>(form) + 1);
  }

 private:
  enum class Kind : uint8_t { kNull = 0, kInt, kDouble, kBytes };  // a Physical and one

  Kind kind_ = Kind::kNull;
  uint32_t size_ = 0;
  union {
    int64_t int_ = 0;
    double double_;
    const char* data_;
  };
};

// Whether a value can be one of the type: its physical form, and for arrays, records and types of
// one size what their bytes say of themselves. Cost: O(1). Not a check of bytes from a disk.
bool HasForm(Datum value, Type type);

// The same value with its bytes copied into `arena`.
inline Datum CopyDatum(Datum datum, Type type, Arena* arena) {
  if (datum.is_null() || PhysicalOf(type) != Physical::kBytes) return datum;
  return Datum::Bytes(arena->Copy(datum.bytes()));
}

// A typed value that owns its bytes: constants in plans, defaults in descriptors, parameters.
// Copies share long ones. Copies may be read by any thread.
class Value {
 public:
  Value() = default;
  // Copies the datum's bytes, which are charged to the account that the thread works for. Throws
  // OutOfMemory.
  Value(Type type, Datum datum);
  const Type& type() const { return type_; }
  bool is_null() const { return datum_.is_null(); }
  // Borrowed from this Value: valid until it is changed, moved from or destroyed.
  Datum datum() const {
    if (long_ != nullptr || datum_.is_null() || PhysicalOf(type_) != Physical::kBytes) {
      return datum_;
    }
    return Datum::Bytes(short_);
  }

 private:
  Type type_;
  Datum datum_;  // points into long_, if that is set
  std::string short_;
  std::shared_ptr<const char[]> long_;
};

// SQL order of two non-NULL values of one type: negative, zero, positive. Floats: NaN is greatest
// and equal to itself. Text: by UTF-8 bytes (collation C); bpchar without trailing blanks. Arrays
// by element.
int CompareDatums(Datum a, Datum b, Type type);
// Equal under CompareDatums gives the same hash (1.0 and 1.00, -0.0 and +0.0). NULL has a hash too.
uint64_t HashDatum(Datum datum, Type type);

}  // namespace cellar
