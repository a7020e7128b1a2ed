// The bytes of records.
#include "cellar/types/record.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/array.h"
#include "cellar/types/value_size.h"

namespace cellar {
namespace {

constexpr size_t kHeader = 12, kFieldHeader = 12;
// In the second byte of a field.
constexpr uint8_t kArrayFlag = 1, kCollatedFlag = 2;

// Where a record begins: no bytes of a user are taken for one.
uint64_t Mark() {
  static const uint64_t mark = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return mark;
}

std::string_view NameOf(const RecordField& field) { return field.name.substr(0, 255); }

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '(' || c == ')' || c == ',' || c == ' ' ||
        (c >= '\t' && c <= '\r')) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::string_view> MakeRecord(const std::vector<RecordField>& fields, Arena* arena) {
  size_t size = kHeader;
  for (const RecordField& field : fields) {
    size += kFieldHeader + NameOf(field).size();
    if (field.type.id == TypeId::kEnum) size += sizeof(field.type.enumeration);
    if (field.type.collation != nullptr) size += sizeof(field.type.collation);
    if (field.value.is_null()) continue;
    size += PhysicalOf(field.type) == Physical::kBytes ? field.value.bytes().size() : 8;
  }
  CELLAR_TRY(CheckValueSize(size));
  char* out = arena->Allocate(size);
  char* next = out;
  auto put = [&next](const void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(next, data, bytes);
    next += bytes;
  };
  const uint64_t mark = Mark();
  put(&mark, 8);
  const auto count = static_cast<uint32_t>(fields.size());
  put(&count, 4);
  for (const RecordField& field : fields) {
    const auto form = static_cast<uint8_t>((field.type.array ? kArrayFlag : 0) |
                                           (field.type.collation != nullptr ? kCollatedFlag : 0));
    uint8_t head[4] = {static_cast<uint8_t>(field.type.id), form, field.value.is_null(),
                       static_cast<uint8_t>(NameOf(field).size())};
    put(head, 4);
    put(&field.type.modifier, 4);
    const bool bytes = PhysicalOf(field.type) == Physical::kBytes;
    uint32_t length = field.value.is_null() ? 0
                      : bytes               ? static_cast<uint32_t>(field.value.bytes().size())
                                            : 8;
    put(&length, 4);
    put(NameOf(field).data(), NameOf(field).size());
    if (field.type.id == TypeId::kEnum) {
      put(&field.type.enumeration, sizeof(field.type.enumeration));
    }
    if (field.type.collation != nullptr) {
      put(&field.type.collation, sizeof(field.type.collation));
    }
    if (field.value.is_null()) continue;
    if (bytes) {
      put(field.value.bytes().data(), length);
    } else if (PhysicalOf(field.type) == Physical::kDouble) {
      const double word = field.value.double_value();
      put(&word, 8);
    } else {
      const int64_t word = field.value.int_value();
      put(&word, 8);
    }
  }
  return std::string_view(out, size);
}

bool IsRecord(std::string_view bytes) {
  const uint64_t mark = Mark();
  return bytes.size() >= kHeader && std::memcmp(bytes.data(), &mark, 8) == 0;
}

std::vector<RecordField> RecordFields(std::string_view record) {
  std::vector<RecordField> out;
  if (!IsRecord(record)) return out;
  uint32_t count;
  std::memcpy(&count, record.data() + 8, 4);
  const char* next = record.data() + kHeader;
  for (uint32_t i = 0; i < count; ++i) {
    RecordField& field = out.emplace_back();
    field.type.id = static_cast<TypeId>(next[0]);
    const auto form = static_cast<uint8_t>(next[1]);
    field.type.array = (form & kArrayFlag) != 0;
    std::memcpy(&field.type.modifier, next + 4, 4);
    uint32_t size;
    std::memcpy(&size, next + 8, 4);
    const bool null = next[2] != 0;
    const size_t name_size = static_cast<uint8_t>(next[3]);
    next += kFieldHeader;
    field.name = {next, name_size};
    next += name_size;
    if (field.type.id == TypeId::kEnum) {
      std::memcpy(&field.type.enumeration, next, sizeof(field.type.enumeration));
      next += sizeof(field.type.enumeration);
    }
    if ((form & kCollatedFlag) != 0) {
      std::memcpy(&field.type.collation, next, sizeof(field.type.collation));
      next += sizeof(field.type.collation);
    }
    if (null) continue;
    if (PhysicalOf(field.type) == Physical::kBytes) {
      field.value = Datum::Bytes({next, size});
    } else if (PhysicalOf(field.type) == Physical::kInt64) {
      int64_t word;
      std::memcpy(&word, next, 8);
      field.value = Datum::Int(word);
    } else {
      double word;
      std::memcpy(&word, next, 8);
      field.value = Datum::Double(word);
    }
    next += size;
  }
  return out;
}

void AppendRecordText(std::string_view record, const FormatSettings& settings, std::string* out) {
  FormatSettings inner = settings;
  inner.max_text_bytes = std::min(settings.max_text_bytes, kMaxValueBytes);
  *out += '(';
  bool first = true;
  std::string text;
  for (const RecordField& field : RecordFields(record)) {
    if (!first) *out += ',';
    first = false;
    if (field.value.is_null()) continue;
    text.clear();
    AppendDatumText(field.value, field.type, inner, &text);
    PollBytes(text.size());
    if (out->size() + text.size() > inner.max_text_bytes) {
      // What is too long without quotes gets none: levels of nesting cost a copy each.
      out->append(text, 0, inner.max_text_bytes - std::min(inner.max_text_bytes, out->size()) + 1);
      return;
    }
    if (!NeedsQuotes(text)) {
      *out += text;
      continue;
    }
    *out += '"';
    InPieces(text, [&](std::string_view piece) {
      if (out->size() > inner.max_text_bytes) return;
      for (char c : piece) {
        if (c == '"' || c == '\\') *out += c;
        *out += c;
      }
    });
    if (out->size() > inner.max_text_bytes) return;
    *out += '"';
  }
  *out += ')';
}

Result<int> CompareRecords(std::string_view a, std::string_view b) {
  std::vector<RecordField> left = RecordFields(a), right = RecordFields(b);
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (!left[i].type.SameKind(right[i].type)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "cannot compare dissimilar column types {} and {} at record column {}",
                      FormatType(left[i].type), FormatType(right[i].type), i + 1);
    }
    const bool null_left = left[i].value.is_null(), null_right = right[i].value.is_null();
    if (null_left && null_right) continue;
    if (null_left != null_right) return null_left ? 1 : -1;
    CELLAR_TRY_ASSIGN(const int order,
                      CompareWithRecords(left[i].value, right[i].value, left[i].type));
    if (order != 0) return order;
  }
  if (left.size() != right.size()) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "cannot compare record types with different numbers of columns");
  }
  return 0;
}

Result<int> CompareWithRecords(Datum a, Datum b, Type type) {
  if (type.id != TypeId::kRecord) return CompareDatums(a, b, type);
  if (!type.array) return CompareRecords(a.bytes(), b.bytes());
  const ArrayView left(a.bytes(), ElementTypeOf(type)), right(b.bytes(), ElementTypeOf(type));
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    PollSteps();
    const bool null_left = left.IsNull(i), null_right = right.IsNull(i);
    if (null_left && null_right) continue;
    if (null_left != null_right) return null_left ? 1 : -1;
    CELLAR_TRY_ASSIGN(const int order, CompareRecords(left.Get(i).bytes(), right.Get(i).bytes()));
    if (order != 0) return order;
  }
  return CompareArrayShapes(left, right);
}

uint64_t HashRecord(std::string_view record) {
  uint64_t hash = 0;
  for (const RecordField& field : RecordFields(record)) {
    hash = hash * 0x9E3779B97F4A7C15 + HashDatum(field.value, field.type);
  }
  return hash;
}

void AppendRecordBinary(std::string_view record, std::string* out) {
  const auto put = [out](uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(word >> shift));
  };
  std::vector<RecordField> fields = RecordFields(record);
  put(static_cast<uint32_t>(fields.size()));
  std::string bytes;
  for (const RecordField& field : fields) {
    put(OidOf(field.type));
    if (field.value.is_null()) {
      put(UINT32_MAX);
      continue;
    }
    bytes.clear();
    AppendDatumBinary(field.value, field.type, &bytes);
    put(static_cast<uint32_t>(bytes.size()));
    *out += bytes;
  }
}

}  // namespace cellar
