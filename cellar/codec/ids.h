// The ids of catalog objects, as distinct types: a swapped argument does not compile.
//
// Table and namespace ids come from one sequence of the store; column, group and index ids are
// local to their table. None is ever reused. 0 is "none", except for groups and indexes, where 0 is
// the first.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace cellar::codec {

struct TableId {
  uint64_t value = 0;
  auto operator<=>(const TableId&) const = default;
};
struct NamespaceId {
  uint64_t value = 0;
  auto operator<=>(const NamespaceId&) const = default;
};
struct IndexId {
  uint32_t value = 0;
  auto operator<=>(const IndexId&) const = default;
};
struct ColumnId {
  uint32_t value = 0;
  auto operator<=>(const ColumnId&) const = default;
};
struct GroupId {
  uint32_t value = 0;
  auto operator<=>(const GroupId&) const = default;
};

// A primary index owns four consecutive index ids; these are their offsets from the first
// (docs/formats/key.md, "Whole keys").
inline constexpr uint32_t kRowsOfPrimary = 0;
inline constexpr uint32_t kPagesOfPrimary = 1;
inline constexpr uint32_t kDirectoryOfPrimary = 2;
inline constexpr uint32_t kOverflowOfPrimary = 3;
inline constexpr uint32_t kIndexIdsOfPrimary = 4;

// Spreads consecutive ids (the finaliser of splitmix64).
inline size_t HashId(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return static_cast<size_t>(value ^ (value >> 31));
}

}  // namespace cellar::codec

template <>
struct std::hash<cellar::codec::TableId> {
  size_t operator()(cellar::codec::TableId id) const noexcept {
    return cellar::codec::HashId(id.value);
  }
};
template <>
struct std::hash<cellar::codec::NamespaceId> {
  size_t operator()(cellar::codec::NamespaceId id) const noexcept {
    return cellar::codec::HashId(id.value);
  }
};
template <>
struct std::hash<cellar::codec::IndexId> {
  size_t operator()(cellar::codec::IndexId id) const noexcept {
    return cellar::codec::HashId(id.value);
  }
};
template <>
struct std::hash<cellar::codec::ColumnId> {
  size_t operator()(cellar::codec::ColumnId id) const noexcept {
    return cellar::codec::HashId(id.value);
  }
};
template <>
struct std::hash<cellar::codec::GroupId> {
  size_t operator()(cellar::codec::GroupId id) const noexcept {
    return cellar::codec::HashId(id.value);
  }
};
