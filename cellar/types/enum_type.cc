#include "cellar/types/enum_type.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cellar/base/sqlstate.h"

namespace cellar {
namespace {

// The content as bytes that are equal when it is.
std::string Fingerprint(const EnumType& type) {
  std::string out;
  auto add = [&out](std::string_view text) {
    out += std::to_string(text.size());
    out += ':';
    out += text;
  };
  add(std::to_string(type.oid));
  add(std::to_string(type.array_oid));
  add(type.name);
  for (const EnumLabel& label : type.labels) {
    add(std::to_string(label.code));
    add(std::to_string(label.oid));
    add(label.name);
  }
  return out;
}

}  // namespace

const EnumLabel* EnumType::FindCode(int64_t code) const {
  auto at = std::lower_bound(labels.begin(), labels.end(), code,
                             [](const EnumLabel& label, int64_t c) { return label.code < c; });
  return at == labels.end() || at->code != code ? nullptr : &*at;
}

const EnumLabel* EnumType::FindName(std::string_view label) const {
  for (const EnumLabel& candidate : labels) {
    if (candidate.name == label) return &candidate;
  }
  return nullptr;
}

const EnumType* Intern(EnumType definition) {
  static std::mutex mutex;
  static auto& known = *std::make_unique<  // lives to the end, beyond static destructors
                            std::unordered_map<std::string, std::unique_ptr<const EnumType>>>()
                            .release();
  std::string key = Fingerprint(definition);
  std::lock_guard lock(mutex);
  std::unique_ptr<const EnumType>& slot = known[std::move(key)];
  if (slot == nullptr) slot = std::make_unique<const EnumType>(std::move(definition));
  return slot.get();
}

Result<int64_t> ParseEnum(std::string_view label, Type type) {
  const EnumLabel* found =
      type.enumeration == nullptr ? nullptr : type.enumeration->FindName(label);
  if (found != nullptr) return found->code;
  return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                  "invalid input value for enum {}: \"{}\"", FormatType(type), label);
}

void AppendEnum(int64_t code, Type type, std::string* out) {
  const EnumLabel* found = type.enumeration == nullptr ? nullptr : type.enumeration->FindCode(code);
  *out += found != nullptr ? found->name : std::to_string(code);
}

std::optional<int64_t> NextEnumCode(const std::vector<EnumLabel>& labels, size_t position) {
  if (labels.empty()) return kEnumCodeGap;
  if (position >= labels.size()) {
    const int64_t last = labels.back().code;
    if (last > INT64_MAX - kEnumCodeGap) return std::nullopt;
    return last + kEnumCodeGap;
  }
  const int64_t above = labels[position].code;
  if (position == 0) {
    if (above < INT64_MIN + kEnumCodeGap) return std::nullopt;
    return above - kEnumCodeGap;
  }
  const int64_t below = labels[position - 1].code;
  const auto apart = static_cast<uint64_t>(above) - static_cast<uint64_t>(below);
  if (apart < 2) return std::nullopt;
  return below + static_cast<int64_t>(apart / 2);
}

}  // namespace cellar
