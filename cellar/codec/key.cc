// Encoding of key fields and whole keys (docs/formats/key.md). Decoding is in key_decode.cc.
#include "cellar/codec/key.h"

#include <cmath>

#include "cellar/base/check.h"
#include "cellar/codec/key_bytes.h"
#include "cellar/types/array.h"
#include "cellar/types/collation.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

// No fixed field is longer.
constexpr size_t kMaxFixedField = 20;
constexpr size_t kBufferBytes = 256;
// Texts of more bytes are appended run by run.
constexpr size_t kLongText = 256;

char* WriteFloat8(double value, char* out) {
  *out++ = static_cast<char>(kTagFloat8);
  if (std::isnan(value)) return StoreBig64(~uint64_t{0}, out);
  uint64_t bits = std::bit_cast<uint64_t>(value + 0.0);  // -0.0 + 0.0 is +0.0
  return StoreBig64((bits & kSign64) != 0 ? ~bits : bits | kSign64, out);
}

char* WriteFloat4(double value, char* out) {
  *out++ = static_cast<char>(kTagFloat4);
  if (std::isnan(value)) return StoreBig32(~uint32_t{0}, out);
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value) + 0.0F);
  return StoreBig32((bits & kSign32) != 0 ? ~bits : bits | kSign32, out);
}

char* WriteInt64(uint8_t tag, int64_t value, char* out) {
  *out++ = static_cast<char>(tag);
  return StoreBig64(static_cast<uint64_t>(value) ^ kSign64, out);
}

char* WriteTimetz(std::string_view bytes, char* out) {
  TimeTz value = TimeTzOf(bytes);
  out = WriteInt64(kTagTimetz, value.micros + value.zone * kMicrosPerSecond, out);
  return StoreBig32(static_cast<uint32_t>(value.zone) ^ kSign32, out);
}

char* WriteInterval(std::string_view bytes, char* out) {
  auto key = static_cast<uint128_t>(IntervalKey(bytes));
  out = WriteInt64(kTagInterval, static_cast<int64_t>(key >> 64), out);
  return StoreBig64(static_cast<uint64_t>(key), out);
}

// Ascending forms of at most kMaxFixedField bytes; null for kinds of other sizes.
inline char* WriteFixed(KeyKind kind, const Datum& value, char* out) {
  switch (kind) {
    case KeyKind::kInt: return WriteInt(value.int_value(), out);
    case KeyKind::kBool:
      *out = static_cast<char>(value.bool_value() ? kTagTrue : kTagFalse);
      return out + 1;
    case KeyKind::kFloat4: return WriteFloat4(value.double_value(), out);
    case KeyKind::kFloat8: return WriteFloat8(value.double_value(), out);
    case KeyKind::kTimestamp: return WriteInt64(kTagTimestamp, value.int_value(), out);
    case KeyKind::kTimestamptz: return WriteInt64(kTagTimestamptz, value.int_value(), out);
    case KeyKind::kTime: return WriteInt64(kTagTime, value.int_value(), out);
    case KeyKind::kDate:
      *out = static_cast<char>(kTagDate);
      return StoreBig32(static_cast<uint32_t>(value.int_value()) ^ kSign32, out + 1);
    case KeyKind::kTimetz: return WriteTimetz(value.bytes(), out);
    case KeyKind::kInterval: return WriteInterval(value.bytes(), out);
    case KeyKind::kUuid:
      *out = static_cast<char>(kTagUuid);
      std::memcpy(out + 1, value.bytes().data(), 16);
      return out + 17;
    default: return nullptr;
  }
}

uint8_t EscapedTag(KeyKind kind) { return kind == KeyKind::kText ? kTagText : kTagBytes; }

void Complement(char* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] = static_cast<char>(~p[i]);
}

void AppendEscaped(uint8_t tag, std::string_view bytes, std::string* key) {
  char buffer[kBufferBytes];
  if (MaxEscapedSize(bytes.size()) <= sizeof buffer) {
    char* end = WriteEscaped(tag, bytes, buffer);
    key->append(buffer, static_cast<size_t>(end - buffer));
    return;
  }
  key->push_back(static_cast<char>(tag));
  while (!bytes.empty()) {
    const void* zero = std::memchr(bytes.data(), 0, bytes.size());
    size_t run = zero == nullptr
                     ? bytes.size()
                     : static_cast<size_t>(static_cast<const char*>(zero) - bytes.data());
    key->append(bytes.data(), run);
    bytes.remove_prefix(run);
    if (zero != nullptr) {
      key->append("\x00\xFF", 2);
      bytes.remove_prefix(1);
    }
  }
  key->append("\x00\x01", 2);
}

void AppendNumeric(std::string_view value, std::string* key) {
  switch (numeric::KindOf(value)) {
    case numeric::Kind::kNegativeInfinity:
      key->push_back(static_cast<char>(kTagDecimalNegativeInfinity));
      return;
    case numeric::Kind::kInfinity: key->push_back(static_cast<char>(kTagDecimalInfinity)); return;
    case numeric::Kind::kNaN: key->push_back(static_cast<char>(kTagDecimalNaN)); return;
    case numeric::Kind::kFinite: break;
  }
  if (numeric::SignOf(value) == 0) {
    key->push_back(static_cast<char>(kTagDecimalZero));
    return;
  }
  numeric::KeyDigits digits;
  numeric::ToKeyDigits(value, &digits);
  std::span<const uint8_t> d = digits.digits();
  size_t start = key->size();
  key->push_back(static_cast<char>(digits.negative ? kTagDecimalNegative : kTagDecimalPositive));
  AppendKeyInt(digits.exponent, key);
  for (size_t i = 0; i + 1 < d.size(); ++i) key->push_back(static_cast<char>(2 * d[i] + 2));
  key->push_back(static_cast<char>(2 * d.back() + 1));
  if (digits.negative) Complement(key->data() + start + 1, key->size() - start - 1);
}

void AppendAscending(Datum value, KeyKind kind, Type type, std::string* key);

void AppendElement(Datum value, KeyKind kind, Type type, std::string* key) {
  if (value.is_null()) {
    key->push_back(static_cast<char>(kTagNullLast));
  } else {
    AppendAscending(value, kind, type, key);
  }
}

void AppendArray(std::string_view bytes, Type type, std::string* key) {
  Type element = ElementTypeOf(type);
  KeyKind kind = KindOf(element);
  ArrayView array(bytes, element);
  key->push_back(static_cast<char>(kTagArray));
  for (size_t i = 0; i < array.size(); ++i) AppendElement(array.Get(i), kind, element, key);
  int dimensions = array.dimensions();
  if (dimensions == 0 || (dimensions == 1 && array.lower_bound(0) == 1)) {
    key->push_back(static_cast<char>(kArrayEndPlain));
    return;
  }
  if (dimensions == 1 && array.lower_bound(0) < 1) {
    key->push_back(static_cast<char>(kArrayEndBelow));
    AppendKeyInt(array.lower_bound(0), key);
    return;
  }
  key->push_back(static_cast<char>(kArrayEndShape));
  AppendKeyInt(dimensions, key);
  for (int i = 0; i < dimensions; ++i) AppendKeyInt(array.length(i), key);
  for (int i = 0; i < dimensions; ++i) AppendKeyInt(array.lower_bound(i), key);
}

// A non-NULL value.
void AppendAscending(Datum value, KeyKind kind, Type type, std::string* key) {
  char buffer[kMaxFixedField];
  if (char* end = WriteFixed(kind, value, buffer); end != nullptr) {
    key->append(buffer, static_cast<size_t>(end - buffer));
    return;
  }
  switch (kind) {
    case KeyKind::kText:
    case KeyKind::kBytes: {
      std::string_view bytes = value.bytes();
      if (type.id == TypeId::kBpchar) bytes = WithoutTrailingBlanks(bytes);
      AppendEscaped(EscapedTag(kind), bytes, key);
      return;
    }
    case KeyKind::kCollated: {
      std::string_view text = value.bytes();
      if (type.id == TypeId::kBpchar) text = WithoutTrailingBlanks(text);
      std::string sort_key;
      AppendSortKey(text, *type.collation, &sort_key);
      AppendEscaped(kTagCollated, sort_key, key);
      return;
    }
    case KeyKind::kNumeric: AppendNumeric(value.bytes(), key); return;
    case KeyKind::kArray: AppendArray(value.bytes(), type, key); return;
    default: CELLAR_CHECK(IsKeyType(type));
  }
}

char NullByte(NullPlacement nulls) {
  return static_cast<char>(nulls == NullPlacement::kFirst ? kTagNullFirst : kTagNullLast);
}

// Writes fields straight into the string, which is grown ahead and cut at the end. (Writing them to
// a buffer and appending that costs a stall: the copy's wide loads have to wait for the narrow
// stores.)
class FieldWriter {
 public:
  FieldWriter(std::string* key, size_t fields) : key_(key) { Grow(12 * fields + kMaxFixedField); }
  ~FieldWriter() { key_->resize(static_cast<size_t>(at_ - key_->data())); }
  FieldWriter(const FieldWriter&) = delete;
  FieldWriter& operator=(const FieldWriter&) = delete;

  void Add(const Datum& value, const KeyColumn& column) {
    if (column.type.id == TypeId::kInt8 && !value.is_null() && room() >= kMaxFixedField &&
        column.direction == Direction::kAscending && !column.type.array) {
      at_ = WriteInt(value.int_value(), at_);
      return;
    }
    AddOther(value, column);
  }

 private:
  size_t room() const { return static_cast<size_t>(end_ - at_); }
  void Grow(size_t bytes) {
    size_t used = at_ == nullptr ? key_->size() : static_cast<size_t>(at_ - key_->data());
    key_->resize(used + bytes);
    at_ = key_->data() + used;
    end_ = at_ + bytes;
  }
  void AddOther(const Datum& value, const KeyColumn& column) {
    if (room() < kMaxFixedField) Grow(4 * kMaxFixedField);
    if (value.is_null()) {
      *at_++ = NullByte(column.nulls);
      return;
    }
    char* end = WriteAscending(KindOf(column), value, column);
    if (end == nullptr) return;  // appended already, complemented too
    if (column.direction == Direction::kDescending) {
      Complement(at_, static_cast<size_t>(end - at_));
    }
    at_ = end;
  }
  // Returns where the ascending field at at_ ends, or null when it appended the whole field itself.
  char* WriteAscending(KeyKind kind, const Datum& value, const KeyColumn& column) {
    if (kind == KeyKind::kText || kind == KeyKind::kBytes) {
      std::string_view bytes = value.bytes();
      if (column.type.id == TypeId::kBpchar) bytes = WithoutTrailingBlanks(bytes);
      if (bytes.size() <= kLongText) {
        if (room() < MaxEscapedSize(bytes.size())) {
          Grow(MaxEscapedSize(bytes.size()) + 2 * kMaxFixedField);
        }
        return WriteEscaped(EscapedTag(kind), bytes, at_);
      }
    }
    if (char* end = WriteFixed(kind, value, at_); end != nullptr) return end;
    key_->resize(static_cast<size_t>(at_ - key_->data()));
    AppendKeyField(value, column, key_);
    at_ = nullptr;
    Grow(2 * kMaxFixedField);
    return nullptr;
  }

  std::string* key_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace

namespace internal {

int128_t IntervalKey(std::string_view interval) {
  Interval value = IntervalOf(interval);
  int128_t days = int128_t{value.months} * 30 + value.days;
  return days * kMicrosPerDay + value.micros;
}

}  // namespace internal

bool IsKeyType(Type type) { return KindOf(type) != KeyKind::kNone; }

void AppendKeyField(Datum value, const KeyColumn& column, std::string* key) {
  if (value.is_null()) {
    key->push_back(NullByte(column.nulls));
    return;
  }
  size_t start = key->size();
  AppendAscending(value, KindOf(column), column.type, key);
  if (column.direction == Direction::kDescending) {
    Complement(key->data() + start, key->size() - start);
  }
}

void AppendKeyFields(std::span<const Datum> values, std::span<const KeyColumn> columns,
                     std::string* key) {
  CELLAR_DCHECK(values.size() == columns.size());
  FieldWriter writer(key, columns.size());
  for (size_t i = 0; i < columns.size(); ++i) writer.Add(values[i], columns[i]);
}

void AppendKeyFields(const RowBatch& batch, size_t row, std::span<const uint32_t> positions,
                     std::span<const KeyColumn> columns, std::string* key) {
  FieldWriter writer(key, columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    writer.Add(batch.column(positions[i]).Get(row), columns[i]);
  }
}

void AppendKeyInt(int64_t value, std::string* key) {
  if (value >= -8 && value <= 55) {
    key->push_back(static_cast<char>(kTagIntZero + value));
    return;
  }
  size_t start = key->size();
  key->resize(start + kMaxIntBytes);
  key->resize(static_cast<size_t>(WriteInt(value, key->data() + start) - key->data()));
}

void AppendKeyUint(uint64_t value, std::string* key) {
  if (value <= INT64_MAX) return AppendKeyInt(static_cast<int64_t>(value), key);
  char buffer[kMaxIntBytes];
  key->append(buffer, static_cast<size_t>(WriteUint(value, buffer) - buffer));
}

void AppendKeyText(std::string_view text, std::string* key) { AppendEscaped(kTagText, text, key); }

void AppendKeyBytes(std::string_view bytes, std::string* key) {
  AppendEscaped(kTagBytes, bytes, key);
}

void AppendKeyTuple(std::span<const Datum> values, std::span<const Type> types, Direction direction,
                    std::string* key) {
  size_t start = key->size();
  key->push_back(static_cast<char>(kTagTuple));
  for (size_t i = 0; i < types.size(); ++i) {
    AppendElement(values[i], KindOf(types[i]), types[i], key);
  }
  key->push_back(static_cast<char>(kTagEnd));
  if (direction == Direction::kDescending) {
    Complement(key->data() + start, key->size() - start);
  }
}

bool KeyLosesInformation(Datum value, Type type) {
  if (value.is_null()) return false;
  // Blanks at the end of character without a length.
  if (type.id == TypeId::kBpchar && !type.array && value.bytes().ends_with(' ')) return true;
  switch (KindOf(type)) {
    case KeyKind::kNumeric: {
      std::string_view n = value.bytes();
      return numeric::IsFinite(n) && numeric::MinScale(n) != numeric::DisplayScale(n);
    }
    case KeyKind::kFloat4:
    case KeyKind::kFloat8: {
      double d = value.double_value();
      constexpr uint64_t kPlainNaN = 0x7FF8000000000000;
      if (std::isnan(d)) return std::bit_cast<uint64_t>(d) != kPlainNaN;
      return d == 0 && std::signbit(d);
    }
    case KeyKind::kInterval: {
      char justified[16];
      return !IntervalFromKey(IntervalKey(value.bytes()), justified) ||
             value.bytes() != std::string_view(justified, 16);
    }
    case KeyKind::kArray: {
      Type element = ElementTypeOf(type);
      ArrayView array(value.bytes(), element);
      for (size_t i = 0; i < array.size(); ++i) {
        if (KeyLosesInformation(array.Get(i), element)) return true;
      }
      return false;
    }
    case KeyKind::kCollated: return !type.collation->deterministic;
    default: return false;
  }
}

// ---- Whole keys ----

void AppendTablePrefix(TableId table, IndexId index, std::string* key) {
  char buffer[2 * kMaxIntBytes];
  char* end = WriteUint(index.value, WriteUint(table.value, buffer));
  key->append(buffer, static_cast<size_t>(end - buffer));
}

std::string TablePrefix(TableId table, IndexId index) {
  std::string key;
  AppendTablePrefix(table, index, &key);
  return key;
}

std::string TablePrefix(TableId table) {
  std::string key;
  AppendKeyUint(table.value, &key);
  return key;
}

void FinishKey(std::string* key) {
  if (!key->empty() && key->back() == '\0') key->push_back(static_cast<char>(kTagEnd));
}

bool AtKeyEnd(std::string_view rest) {
  return rest.empty() || (rest.size() == 1 && rest[0] == static_cast<char>(kTagEnd));
}

std::string EncodePartitionKey(std::span<const Datum> values, std::span<const KeyColumn> columns,
                               size_t partition_columns) {
  std::string key;
  AppendKeyFields(values.first(partition_columns), columns.first(partition_columns), &key);
  return key;
}

std::string EncodeRangeKey(std::span<const Datum> values, std::span<const KeyColumn> columns,
                           size_t partition_columns) {
  std::string key;
  AppendKeyFields(values.subspan(partition_columns), columns.subspan(partition_columns), &key);
  return key;
}

// ---- Bounds ----

std::string PrefixEnd(std::string_view prefix) {
  while (!prefix.empty() && prefix.back() == static_cast<char>(0xFF)) prefix.remove_suffix(1);
  std::string end(prefix);
  if (!end.empty()) end.back() = static_cast<char>(static_cast<uint8_t>(end.back()) + 1);
  return end;
}

std::string BelowValues(std::string_view prefix) {
  std::string bound(prefix);
  bound.push_back(static_cast<char>(kTagEnd));
  return bound;
}

std::string AboveValues(std::string_view prefix) {
  std::string bound(prefix);
  bound.push_back(static_cast<char>(kBoundAboveValues));
  return bound;
}

KeyRange PrefixRange(std::string_view prefix) { return {std::string(prefix), PrefixEnd(prefix)}; }

KeyRange NullRange(std::string_view prefix, NullPlacement nulls) {
  std::string start(prefix);
  start.push_back(NullByte(nulls));
  std::string end = PrefixEnd(start);
  return {std::move(start), std::move(end)};
}

KeyRange NonNullRange(std::string_view prefix) {
  return {BelowValues(prefix), AboveValues(prefix)};
}

// ---- System records ----

std::string SystemPrefix(std::string_view word) {
  std::string key(1, '\0');
  key.append(word);
  key.push_back('-');
  return key;
}

std::string SystemKey(std::string_view word, std::initializer_list<uint64_t> fields) {
  std::string key = SystemPrefix(word);
  for (uint64_t field : fields) AppendKeyUint(field, &key);
  FinishKey(&key);
  return key;
}

std::string NameKey(NamespaceId parent, std::string_view name) {
  std::string key = SystemPrefix("name");
  AppendKeyUint(parent.value, &key);
  AppendKeyText(name, &key);
  return key;
}

std::string DescriptorKey(uint64_t id) { return SystemKey("desc", {id}); }

}  // namespace cellar::codec
