// Conditions on rows, as a tree that is built in C++ and sent as it is.
//
//   Filter young = Col("age") < 30 && !Col("name").StartsWith("k");
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cellar/tableapi/cell.h"

namespace cellar {

// A value, or a condition, over the columns of a row: SQL's operators with its three-valued logic;
// rows for which a condition is true pass. Types are checked when a call gets it: 42703 unknown
// column, 42883 no such operator for these types, 42804 no condition. Immutable, shared when
// copied, thread-safe.
class Filter {
 public:
  // The numbers are those of cellar.v1.Operator.
  enum class Op : uint8_t {
    kLiteral = 1,
    kColumn = 2,
    kAnd = 10,
    kOr = 11,
    kNot = 12,
    kXor = 13,
    kEqual = 20,
    kNotEqual = 21,
    kLess = 22,
    kLessOrEqual = 23,
    kGreater = 24,
    kGreaterOrEqual = 25,
    kIn = 26,
    kIsNull = 27,
    kIsNotNull = 28,
    kStartsWith = 30,
    kEndsWith = 31,
    kContains = 32,
    kConcat = 33,
    kAdd = 40,
    kSubtract = 41,
    kMultiply = 42,
    kDivide = 43,
    kModulo = 44,
    kNegate = 45,
  };
  static constexpr size_t kMaxDepth = 90;     // levels; 54001 beyond
  static constexpr size_t kMaxNodes = 10000;  // 54001 beyond

  // A literal: takes the type of what it is compared with.
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_convertible_v<const T&, std::string_view> ||
           std::is_same_v<T, std::nullptr_t> || std::is_same_v<T, Cell>)
      Filter(const T& value)  // NOLINT: implicit by design
      : Filter(Literal(Cell(value), {})) {}
  // A literal of the SQL type `type` ("" as above): Filter::Literal("2024-02-29", "date").
  static Filter Literal(Cell value, std::string type);
  static Filter Column(std::string name);
  // Any number of arguments for kAnd and kOr, one or more for kIn, else the operator's.
  static Filter Call(Op op, std::vector<Filter> args);

  Op op() const { return node_->op; }
  const std::vector<Filter>& args() const { return node_->args; }
  const std::string& column() const { return node_->name; }        // kColumn
  const std::string& literal_type() const { return node_->name; }  // kLiteral
  const Cell& literal() const { return node_->literal; }
  size_t depth() const { return node_->depth; }
  size_t nodes() const { return node_->nodes; }
  std::string ToString() const;  // for logs

  Filter In(std::vector<Filter> values) const;
  Filter IsNull() const { return Call(Op::kIsNull, {*this}); }
  Filter IsNotNull() const { return Call(Op::kIsNotNull, {*this}); }
  Filter StartsWith(Filter text) const { return Call(Op::kStartsWith, {*this, std::move(text)}); }
  Filter EndsWith(Filter text) const { return Call(Op::kEndsWith, {*this, std::move(text)}); }
  Filter Contains(Filter text) const { return Call(Op::kContains, {*this, std::move(text)}); }
  Filter Concat(Filter text) const { return Call(Op::kConcat, {*this, std::move(text)}); }

  friend Filter operator&&(const Filter& a, const Filter& b) { return Call(Op::kAnd, {a, b}); }
  friend Filter operator||(const Filter& a, const Filter& b) { return Call(Op::kOr, {a, b}); }
  friend Filter operator^(const Filter& a, const Filter& b) { return Call(Op::kXor, {a, b}); }
  friend Filter operator!(const Filter& a) { return Call(Op::kNot, {a}); }
  friend Filter operator==(const Filter& a, const Filter& b) { return Call(Op::kEqual, {a, b}); }
  friend Filter operator!=(const Filter& a, const Filter& b) { return Call(Op::kNotEqual, {a, b}); }
  friend Filter operator<(const Filter& a, const Filter& b) { return Call(Op::kLess, {a, b}); }
  friend Filter operator<=(const Filter& a, const Filter& b) {
    return Call(Op::kLessOrEqual, {a, b});
  }
  friend Filter operator>(const Filter& a, const Filter& b) { return Call(Op::kGreater, {a, b}); }
  friend Filter operator>=(const Filter& a, const Filter& b) {
    return Call(Op::kGreaterOrEqual, {a, b});
  }
  friend Filter operator+(const Filter& a, const Filter& b) { return Call(Op::kAdd, {a, b}); }
  friend Filter operator-(const Filter& a, const Filter& b) { return Call(Op::kSubtract, {a, b}); }
  friend Filter operator*(const Filter& a, const Filter& b) { return Call(Op::kMultiply, {a, b}); }
  friend Filter operator/(const Filter& a, const Filter& b) { return Call(Op::kDivide, {a, b}); }
  friend Filter operator%(const Filter& a, const Filter& b) { return Call(Op::kModulo, {a, b}); }
  friend Filter operator-(const Filter& a) { return Call(Op::kNegate, {a}); }

 private:
  struct Node {
    Op op = Op::kLiteral;
    std::string name;
    Cell literal;
    std::vector<Filter> args;
    size_t depth = 1, nodes = 1;
  };
  explicit Filter(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

inline Filter Col(std::string_view name) { return Filter::Column(std::string(name)); }

}  // namespace cellar
