// A value as programs give it: for a cell of a record, a key, a filter.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar {

// Owns its bytes. It becomes the type of the column that it is for: a number of that range, text in
// that type's syntax ("2024-02-29" for a date), as PostgreSQL would read it.
class Cell {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInt, kDouble, kText, kBytes };

  Cell() = default;        // NULL
  Cell(std::nullptr_t) {}  // NOLINT: implicit by design, here and below
  Cell(std::nullopt_t) {}  // NOLINT
  template <std::same_as<bool> T>
  Cell(T value) : kind_(Kind::kBool), int_(value ? 1 : 0) {}  // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool>) Cell(T value)
      : kind_(Kind::kInt), int_(static_cast<int64_t>(value)) {  // NOLINT
    static_assert(sizeof(T) < 8 || std::is_signed_v<T>, "pass an int64_t, or text for a numeric");
  }
  template <std::floating_point T>
  Cell(T value) : kind_(Kind::kDouble), double_(static_cast<double>(value)) {}  // NOLINT
  Cell(std::string_view text) : kind_(Kind::kText), bytes_(text) {}             // NOLINT
  Cell(const std::string& text) : kind_(Kind::kText), bytes_(text) {}           // NOLINT
  Cell(std::string&& text) : kind_(Kind::kText), bytes_(std::move(text)) {}     // NOLINT
  // A null pointer is NULL.
  Cell(const char* text) {  // NOLINT
    if (text == nullptr) return;
    kind_ = Kind::kText;
    bytes_ = text;
  }
  Cell(std::span<const std::byte> bytes)
      : Cell(Bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {}  // NOLINT
  // Not inlined: under the address sanitizer g++ 12 takes an empty optional for one that is used.
  template <typename T>
  [[gnu::noinline]] Cell(const std::optional<T>& value) {  // NOLINT
    if (value.has_value()) *this = Cell(*value);
  }
  // A bytea, or the 16 bytes of a uuid.
  static Cell Bytes(std::string_view bytes) {
    Cell cell(bytes);
    cell.kind_ = Kind::kBytes;
    return cell;
  }
  static const Cell& Null() {
    static const Cell null;
    return null;
  }
  // Of a value of this type, for what is of no C++ type its text.
  static Cell Of(Datum value, Type type);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  int64_t int_value() const { return int_; }
  double double_value() const { return double_; }
  const std::string& bytes() const { return bytes_; }
  bool operator==(const Cell&) const = default;

  // As a value of `type`; bytes are borrowed from this cell or lie in `arena`. Errors: 22P02,
  // 22003, 22001, 22021, 42804: it does not read as one.
  Result<Datum> To(Type type, Arena* arena) const;

 private:
  Kind kind_ = Kind::kNull;
  int64_t int_ = 0;
  double double_ = 0;
  std::string bytes_;
};

// Values of the first columns of an index's key, in the key's order: Key{"kimball", 7}.
class Key {
 public:
  Key() = default;
  Key(std::initializer_list<Cell> cells) : cells_(cells) {}
  explicit Key(std::vector<Cell> cells) : cells_(std::move(cells)) {}
  size_t size() const { return cells_.size(); }
  bool empty() const { return cells_.empty(); }
  // NULL behind the last one.
  const Cell& operator[](size_t i) const { return i < cells_.size() ? cells_[i] : Cell::Null(); }
  const std::vector<Cell>& cells() const { return cells_; }
  void Add(Cell cell) { cells_.push_back(std::move(cell)); }
  bool operator==(const Key&) const = default;

 private:
  std::vector<Cell> cells_;
};

// Keys in the order of an index, whatever the directions of its columns are. Both ends are prefixes
// of keys and stand for all keys that begin with them.
struct KeySpan {
  Key start;                     // empty: from the first key on
  bool start_exclusive = false;  // leaves out all keys that begin with `start`
  Key end;                       // empty: to the last key
  bool end_inclusive = false;    // takes in all keys that begin with `end`

  static KeySpan All() { return {}; }
  // All keys that begin with these values.
  static KeySpan Prefix(Key prefix) { return {prefix, false, prefix, true}; }
  // From `start` on, before `end`.
  static KeySpan Between(Key start, Key end) {
    return {std::move(start), false, std::move(end), false};
  }
  static KeySpan From(Key start) { return {std::move(start), false, {}, false}; }
  static KeySpan After(Key start) { return {std::move(start), true, {}, false}; }
  static KeySpan Before(Key end) { return {{}, false, std::move(end), false}; }
};

}  // namespace cellar
