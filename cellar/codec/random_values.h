// Random values for property tests and benchmarks of the codecs. Values are drawn so that edges and
// near misses (a value and its neighbour, a string and its extension) come up often.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/codec/key.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar::codec::testing {

inline std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (char c : bytes) {
    out.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    out.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return out;
}

inline std::string FromHex(std::string_view hex) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return out;
}

// With CELLAR_LONG_TESTS set, properties run this many times longer.
inline size_t Rounds(size_t ordinary, size_t in_long_mode) {
  return std::getenv("CELLAR_LONG_TESTS") == nullptr ? ordinary : in_long_mode;
}

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  uint64_t Bits() { return random_(); }
  // 0..n-1.
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  // Any magnitude is as likely as another; edges of the encoding come often.
  int64_t Integer() {
    if (OneIn(4)) {
      constexpr int64_t kEdges[] = {INT64_MIN, INT64_MIN + 1,
                                    -65537,    -65536,
                                    -257,      -256,
                                    -10,       -9,
                                    -8,        -1,
                                    0,         1,
                                    54,        55,
                                    56,        255,
                                    256,       65535,
                                    65536,     1LL << 31,
                                    INT64_MAX};
      return kEdges[Below(std::size(kEdges))];
    }
    auto value = static_cast<int64_t>(Bits() >> Below(64));
    return OneIn(2) ? value : -value;
  }
  int64_t IntegerIn(int64_t least, int64_t greatest) {
    while (true) {
      int64_t value = Integer();
      if (value >= least && value <= greatest) return value;
    }
  }

  double Float(bool single) {
    constexpr double kEdges[] = {0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.7976931348623157e308};
    if (OneIn(4)) {
      if (OneIn(4)) return std::numeric_limits<double>::quiet_NaN();
      if (OneIn(3)) return OneIn(2) ? HUGE_VAL : -HUGE_VAL;
      double edge = kEdges[Below(std::size(kEdges))];
      return single ? static_cast<float>(edge) : edge;
    }
    if (single) {
      auto value = std::bit_cast<float>(static_cast<uint32_t>(Bits()));
      return std::isnan(value) ? 0.5F : value;
    }
    auto value = std::bit_cast<double>(Bits());
    return std::isnan(value) ? 0.5 : value;
  }

  std::string_view Bytes(Arena* arena) {
    size_t size = OneIn(8) ? Below(40) : Below(6);
    char* out = arena->Allocate(size + 1);
    constexpr char kLikely[] = {0, 1, 'a', 'b', static_cast<char>(0xFE), static_cast<char>(0xFF)};
    for (size_t i = 0; i < size; ++i) {
      out[i] = OneIn(4) ? static_cast<char>(Bits()) : kLikely[Below(std::size(kLikely))];
    }
    return {out, size};
  }
  std::string_view Text(Arena* arena) {
    size_t size = OneIn(8) ? Below(40) : Below(6);
    char* out = arena->Allocate(size + 1);
    for (size_t i = 0; i < size; ++i)
      out[i] = static_cast<char>(OneIn(2) ? 'a' + Below(3) : 1 + Below(127));
    return {out, size};
  }

  std::string_view Numeric(Arena* arena) {
    if (OneIn(16)) {
      if (OneIn(3)) return numeric::MakeNaN();
      return numeric::MakeInfinity(OneIn(2));
    }
    if (OneIn(16)) {
      std::string text = OneIn(2) ? "-" : "";
      for (size_t n = 1 + Below(60); n > 0; --n) text.push_back(static_cast<char>('0' + Below(10)));
      if (OneIn(2)) {
        text.push_back('.');
        for (size_t n = 1 + Below(40); n > 0; --n)
          text.push_back(static_cast<char>('0' + Below(10)));
      }
      return *numeric::Parse(text, arena);
    }
    int64_t unscaled = Integer();
    if (OneIn(2)) unscaled = static_cast<int64_t>(Below(1000)) - 500;
    return numeric::Make(unscaled, static_cast<int>(Below(OneIn(8) ? 60 : 6)), arena);
  }

  int64_t Time() { return OneIn(8) ? kMicrosPerDay : static_cast<int64_t>(Below(kMicrosPerDay)); }

  Datum Interval(Arena* arena) {
    cellar::Interval value;
    if (OneIn(4)) {
      value = {Integer(), static_cast<int32_t>(Bits()), static_cast<int32_t>(Bits())};
    } else {
      value = {static_cast<int64_t>(Below(5)) * 12 * kMicrosPerHour,
               static_cast<int32_t>(Below(62)), static_cast<int32_t>(Below(3))};
    }
    return MakeDatum(value, arena);
  }

  // Never NULL.
  Datum Scalar(Type type, Arena* arena) {
    switch (type.id) {
      case TypeId::kBool: return Datum::Bool(OneIn(2));
      case TypeId::kInt2: return Datum::Int(IntegerIn(INT16_MIN, INT16_MAX));
      case TypeId::kInt4: return Datum::Int(IntegerIn(INT32_MIN, INT32_MAX));
      case TypeId::kOid: return Datum::Int(IntegerIn(0, UINT32_MAX));
      case TypeId::kDate: {
        if (OneIn(8)) return Datum::Int(OneIn(2) ? kDateInfinity : kDateNegativeInfinity);
        return Datum::Int(IntegerIn(kMinDate, kEndDate - 1));
      }
      case TypeId::kTimestamp:
      case TypeId::kTimestamptz: {
        if (OneIn(8)) return Datum::Int(OneIn(2) ? kTimestampInfinity : kTimestampNegativeInfinity);
        return Datum::Int(IntegerIn(kMinTimestamp, kEndTimestamp - 1));
      }
      case TypeId::kTime: return Datum::Int(Time());
      case TypeId::kTimetz: {
        auto zone = static_cast<int32_t>(Below(5)) * 3600 - 7200;
        return MakeDatum(
            TimeTz{OneIn(2) ? static_cast<int64_t>(Below(24)) * kMicrosPerHour : Time(), zone},
            arena);
      }
      case TypeId::kFloat4: return Datum::Double(Float(true));
      case TypeId::kFloat8: return Datum::Double(Float(false));
      case TypeId::kNumeric: return Datum::Bytes(Numeric(arena));
      case TypeId::kText:
      case TypeId::kVarchar: return Datum::Bytes(Text(arena));
      case TypeId::kBpchar: {
        std::string_view text = Text(arena);
        while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
        return Datum::Bytes(text);
      }
      case TypeId::kBytea: return Datum::Bytes(Bytes(arena));
      case TypeId::kInterval: return Interval(arena);
      case TypeId::kUuid: {
        char* out = arena->Allocate(16);
        for (int i = 0; i < 16; ++i) out[i] = static_cast<char>(OneIn(2) ? 0 : Bits());
        return Datum::Bytes({out, 16});
      }
      default: return Datum::Int(Integer());
    }
  }

  Datum Array(Type type, Arena* arena) {
    Type element = ElementTypeOf(type);
    ArrayBuilder builder(element);
    size_t rows = Below(4);
    if (rows > 0 && OneIn(8)) {
      int32_t lengths[2] = {static_cast<int32_t>(rows), 2};
      int32_t bounds[2] = {static_cast<int32_t>(Below(3)), 1};
      for (size_t i = 0; i < 2 * rows; ++i) builder.Add(Element(element, arena));
      return Datum::Bytes(builder.Finish(lengths, bounds, arena));
    }
    for (size_t i = 0; i < rows; ++i) builder.Add(Element(element, arena));
    return Datum::Bytes(
        builder.Finish(arena, rows > 0 && OneIn(4) ? static_cast<int32_t>(Below(4)) - 1 : 1));
  }

  Datum Value(Type type, Arena* arena) {
    return type.array ? Array(type, arena) : Scalar(type, arena);
  }
  Datum ValueOrNull(Type type, Arena* arena) { return OneIn(8) ? Datum() : Value(type, arena); }

 private:
  // Few different ones, so that arrays share their beginnings.
  Datum Element(Type element, Arena* arena) {
    if (OneIn(8)) return Datum();
    if (element.id == TypeId::kInt4) return Datum::Int(static_cast<int64_t>(Below(3)));
    return Scalar(element, arena);
  }

  std::mt19937_64 random_;
};

// SQL's order of two values of a key column.
inline int CompareInColumn(Datum a, Datum b, const KeyColumn& column) {
  if (a.is_null() || b.is_null()) {
    int order = static_cast<int>(a.is_null()) - static_cast<int>(b.is_null());
    return column.nulls == NullPlacement::kLast ? order : -order;
  }
  int order = CompareDatums(a, b, column.type);
  return column.direction == Direction::kAscending ? order : -order;
}

inline int SignOf(int order) { return (order > 0) - (order < 0); }

// The four combinations of direction and NULL placement.
inline std::vector<KeyColumn> AllColumnsOf(Type type) {
  std::vector<KeyColumn> columns;
  for (Direction direction : {Direction::kAscending, Direction::kDescending}) {
    for (NullPlacement nulls : {NullPlacement::kFirst, NullPlacement::kLast}) {
      columns.push_back({type, direction, nulls});
    }
  }
  return columns;
}

}  // namespace cellar::codec::testing
