// Texts of the types that print an oid as a name: regclass and its like, and arrays of them.
#pragma once

#include <string>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/types/array.h"
#include "cellar/types/text_io.h"

namespace cellar::sql {

inline bool PrintsName(TypeId id) { return id >= TypeId::kRegclass && id <= TypeId::kRegrole; }

// `print` tells the name of an oid. O(elements) calls.
template <typename Print>
void AppendNamesOfArray(std::string_view array, Type element, const FormatSettings& settings,
                        Print&& print, std::string* out) {
  const ArrayView view(array, element);
  std::vector<std::string> names;
  names.reserve(view.size());
  const Type text = MakeType(TypeId::kText);
  ArrayBuilder builder(text);
  for (size_t i = 0; i < view.size(); ++i) {
    if (view.IsNull(i)) {
      builder.Add(Datum());
      continue;
    }
    names.push_back(print(static_cast<uint32_t>(view.Get(i).int_value())));
    builder.Add(Datum::Bytes(names.back()));
  }
  std::vector<int32_t> lengths, bounds;
  for (int i = 0; i < view.dimensions(); ++i) {
    lengths.push_back(view.length(i));
    bounds.push_back(view.lower_bound(i));
  }
  Arena arena;
  AppendArrayText(
      lengths.empty() ? builder.Finish(&arena) : builder.Finish(lengths, bounds, &arena), text,
      settings, out);
}

}  // namespace cellar::sql
