// CSV records and types by trial.
#include "cellar/cli/csv_scan.h"

#include <cctype>

#include "cellar/base/arena.h"
#include "cellar/types/text_io.h"

namespace cellar::cli {
namespace {

// In order of preference.
constexpr TypeId kCandidates[] = {TypeId::kBool,        TypeId::kInt4, TypeId::kInt8,
                                  TypeId::kNumeric,     TypeId::kDate, TypeId::kTimestamp,
                                  TypeId::kTimestamptz, TypeId::kUuid};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Does the text look like a literal of the type? Input functions take more than that ('now', ' 1 ',
// 'infinity', '007'), and a guess must not.
bool LooksLike(TypeId id, std::string_view text) {
  if (text.empty()) return false;
  switch (id) {
    case TypeId::kBool: return text == "true" || text == "false" || text == "t" || text == "f";
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kNumeric: {
      if (text[0] == '-') text.remove_prefix(1);
      if (text.empty() || !IsDigit(text[0]) || !IsDigit(text.back())) return false;
      return !(text.size() > 1 && text[0] == '0' && IsDigit(text[1]));
    }
    case TypeId::kDate: return text.size() == 10 && IsDigit(text[0]) && text[4] == '-';
    case TypeId::kTimestamp:
      if (text.size() < 10 || text.find_first_of("+Z", 10) != std::string_view::npos) return false;
      return text[4] == '-' && text.find('-', 10) == std::string_view::npos;
    case TypeId::kTimestamptz: return text.size() >= 10 && IsDigit(text[0]) && text[4] == '-';
    case TypeId::kUuid: return text.size() == 36 && text[8] == '-';
    default: return false;
  }
}

}  // namespace

std::optional<std::vector<CsvValue>> TakeCsvRecord(char delimiter, bool at_end,
                                                   std::string_view* text) {
  std::vector<CsvValue> record(1);
  bool inside = false;
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    CsvValue& value = record.back();
    if (inside) {
      if (c != '"') {
        value.text += c;
      } else if (i + 1 < text->size() && (*text)[i + 1] == '"') {
        value.text += '"';
        ++i;
      } else {
        inside = false;
      }
    } else if (c == '"') {
      inside = value.quoted = true;
    } else if (c == delimiter) {
      record.emplace_back();
    } else if (c == '\n' || c == '\r') {
      const bool pair = c == '\r' && i + 1 < text->size() && (*text)[i + 1] == '\n';
      text->remove_prefix(i + (pair ? 2 : 1));
      return record;
    } else {
      value.text += c;
    }
  }
  if (!at_end || inside || text->empty()) return std::nullopt;
  text->remove_prefix(text->size());
  return record;
}

void TypeGuess::Add(std::string_view value) {
  seen_ = true;
  Arena arena;
  const FormatSettings settings;
  for (size_t i = 0; i < std::size(kCandidates); ++i) {
    const uint32_t bit = uint32_t{1} << i;
    if ((possible_ & bit) == 0) continue;
    if (!LooksLike(kCandidates[i], value) ||
        !ParseDatum(value, MakeType(kCandidates[i]), settings, &arena).ok()) {
      possible_ &= ~bit;
    }
  }
}

Type TypeGuess::type() const {
  if (seen_) {
    for (size_t i = 0; i < std::size(kCandidates); ++i) {
      if ((possible_ & (uint32_t{1} << i)) != 0) return MakeType(kCandidates[i]);
    }
  }
  return MakeType(TypeId::kText);
}

std::string ColumnNameFrom(std::string_view field, size_t number) {
  std::string name;
  for (char c : field) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0) {
      name += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty()) return fmt::format("column_{}", number);
  if (IsDigit(name[0])) name = "_" + name;
  return name;
}

}  // namespace cellar::cli
