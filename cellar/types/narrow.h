// Integers into narrower ones, for getters that are asked for a C++ type.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace cellar {

// `value` as a T. Where T has no such value: the nearest that it has, and *fits is false; it is
// left alone otherwise.
template <std::integral T>
T NarrowTo(int64_t value, bool* fits) {
  if constexpr (std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                std::same_as<T, char16_t> || std::same_as<T, char32_t>) {
    using Number = std::conditional_t<std::numeric_limits<T>::is_signed, std::make_signed_t<T>,
                                      std::make_unsigned_t<T>>;
    return static_cast<T>(NarrowTo<Number>(value, fits));
  } else {
    if (std::in_range<T>(value)) return static_cast<T>(value);
    *fits = false;
    return value < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
}

}  // namespace cellar
