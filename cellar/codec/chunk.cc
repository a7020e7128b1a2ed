// Columns of pages: reading them (docs/formats/page.md). Parse checks what costs little; lengths of
// values and codes of dictionaries are checked where they are used.
#include <algorithm>
#include <cmath>

#include "cellar/codec/page.h"
#include "cellar/codec/page_bytes.h"
#include "cellar/types/numeric.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

Physical PhysicalOfEncoding(ChunkEncoding encoding) {
  switch (encoding) {
    case ChunkEncoding::kFrame:
    case ChunkEncoding::kSequence: return Physical::kInt64;
    case ChunkEncoding::kDecimal:
    case ChunkEncoding::kDouble: return Physical::kDouble;
    case ChunkEncoding::kDictionary:
    case ChunkEncoding::kBytes:
    case ChunkEncoding::kLetters:
    case ChunkEncoding::kScaled: break;
  }
  return Physical::kBytes;
}

bool IsCheckedType(Type type) {
  switch (type.id) {
    case TypeId::kNumeric:
    case TypeId::kUuid:
    case TypeId::kInterval:
    case TypeId::kTimetz: return true;
    default: return IsArrayType(type);
  }
}

}  // namespace

// ---- Parsing ----

const char* Chunk::ParseInts(std::string_view payload) {
  if (payload.size() < 16) return "it is too short";
  least_ = Load<int64_t>(payload.data());
  greatest_ = Load<int64_t>(payload.data() + 8);
  if (greatest_ < least_) return "its bounds are wrong";
  const uint64_t span = static_cast<uint64_t>(greatest_) - static_cast<uint64_t>(least_);
  payload.remove_prefix(16);
  if (encoding_ == ChunkEncoding::kSequence) {
    if (payload.size() != 8 || code_bits_ != 0) return "its length is wrong";
    if (null_count_ != 0 || rows_ < 2) return "it is no sequence";
    step_ = Load<int64_t>(payload.data());
    const uint64_t step = step_ < 0 ? -static_cast<uint64_t>(step_) : static_cast<uint64_t>(step_);
    uint64_t reach;
    if (__builtin_mul_overflow(step, uint64_t{rows_} - 1, &reach) || reach != span) {
      return "its bounds are wrong";
    }
  } else {
    if (payload.size() != CodeBytes(code_bits_, rows_)) return "its length is wrong";
    if (code_bits_ < 64 && span >> code_bits_ != 0) return "its bounds are wrong";
    codes_ = payload.data();
  }
  if (encoding_ == ChunkEncoding::kDecimal) {
    if (exponent_ > kMaxExponent || code_bits_ > 56 || least_ <= -kDecimalLimit ||
        greatest_ >= kDecimalLimit) {
      return "its bounds are wrong";
    }
    return nullptr;
  }
  if (type_.id != TypeId::kBool) return nullptr;
  // Of booleans every code must be one.
  if (least_ < 0 || greatest_ > 1 || code_bits_ > 1 || (code_bits_ == 1 && least_ != 0)) {
    return "its bounds are wrong";
  }
  return nullptr;
}

const char* Chunk::ParseDoubles(std::string_view payload) {
  if (code_bits_ != 32 && code_bits_ != 64) return "its width is unknown";
  if (payload.size() != 16 + size_t{rows_} * (code_bits_ / 8)) return "its length is wrong";
  least_ = Load<int64_t>(payload.data());
  greatest_ = Load<int64_t>(payload.data() + 8);
  codes_ = payload.data() + 16;
  return nullptr;
}

const char* Chunk::ParseDictionary(std::string_view payload) {
  if (code_bits_ > 8) return "its width is unknown";
  const size_t width = wide_ ? 4 : 2;
  const size_t ends_bytes = entries_ * width;
  const size_t codes_bytes = CodeBytes(code_bits_, rows_);
  if (payload.size() < ends_bytes + codes_bytes) return "it is too short";
  offsets_ = payload.data();
  bytes_ = offsets_ + ends_bytes;
  const size_t bytes_size = payload.size() - ends_bytes - codes_bytes;
  codes_ = bytes_ + bytes_size;
  size_t start = 0;
  for (uint32_t i = 0; i < entries_; ++i) {
    const size_t end = Anchor(i);
    if (end < start) return "its dictionary is broken";
    start = end;
  }
  if (start != bytes_size) return "its dictionary is broken";
  bytes_size_ = static_cast<uint32_t>(bytes_size);
  return nullptr;
}

const char* Chunk::ParseBytes(std::string_view payload) {
  if (code_bits_ > 32) return "its width is unknown";
  const size_t codes_bytes = CodeBytes(code_bits_, rows_);
  const size_t anchors = code_bits_ == 0 || rows_ == 0 ? 0 : (rows_ - 1) / kRowsPerAnchor;
  const size_t head = 4 + codes_bytes + anchors * (wide_ ? 4 : 2);
  if (payload.size() < head) return "it is too short";
  if (payload.size() - head > UINT32_MAX) return "it is too long";
  base_length_ = Load<uint32_t>(payload.data());
  codes_ = payload.data() + 4;
  offsets_ = codes_ + codes_bytes;
  bytes_ = payload.data() + head;
  bytes_size_ = static_cast<uint32_t>(payload.size() - head);
  if (code_bits_ == 0 && uint64_t{base_length_} * rows_ != bytes_size_) return kBadLengths;
  return nullptr;
}

const char* Chunk::ParseLetters(std::string_view payload) {
  if (code_bits_ > 32) return "its width is unknown";
  if (entries_ > kMaxLetters) return "it has too many letters";
  const size_t codes_bytes = CodeBytes(code_bits_, rows_);
  const size_t anchors = code_bits_ == 0 || rows_ == 0 ? 0 : (rows_ - 1) / kRowsPerAnchor;
  const size_t head = 8 + codes_bytes + anchors * (wide_ ? 4 : 2) + entries_;
  if (payload.size() < head) return "it is too short";
  base_length_ = Load<uint32_t>(payload.data());
  bytes_size_ = Load<uint32_t>(payload.data() + 4);
  codes_ = payload.data() + 8;
  offsets_ = codes_ + codes_bytes;
  letters_ = payload.data() + head - entries_;
  bytes_ = payload.data() + head;
  if (payload.size() - head != LettersBytes(LetterBits(entries_), bytes_size_)) {
    return kBadLengths;
  }
  if (code_bits_ == 0 && uint64_t{base_length_} * rows_ != bytes_size_) return kBadLengths;
  return nullptr;
}

Status Chunk::Parse(std::string_view bytes, uint32_t rows, Type type, Chunk* out) {
  *out = Chunk();
  if (rows > kMaxPageRows) return BadChunk("it has too many rows");
  if (bytes.size() < kChunkHeaderBytes) return BadChunk("it is too short");
  const char* p = bytes.data();
  const auto encoding = static_cast<uint8_t>(p[kChunkEncodingAt]);
  const auto flags = static_cast<uint8_t>(p[kChunkFlagsAt]);
  const auto extra = static_cast<uint8_t>(p[kChunkExtraAt]);
  if (encoding < static_cast<uint8_t>(ChunkEncoding::kFrame) ||
      encoding > static_cast<uint8_t>(ChunkEncoding::kScaled)) {
    return BadChunk("its encoding is unknown");
  }
  if ((flags & ~(kChunkHasNulls | kChunkWide)) != 0) return BadChunk("it has unknown flags");
  Chunk chunk;
  chunk.type_ = type;
  chunk.encoding_ = static_cast<ChunkEncoding>(encoding);
  if (PhysicalOfEncoding(chunk.encoding_) != PhysicalOf(type)) {
    return BadChunk("it is of another physical form than its column");
  }
  if (chunk.encoding_ == ChunkEncoding::kScaled && (type.id != TypeId::kNumeric || type.array)) {
    return BadChunk("its column is not numeric");
  }
  chunk.code_bits_ = static_cast<uint8_t>(p[kChunkBitsAt]);
  if (!IsCodeBits(chunk.code_bits_)) return BadChunk("its width is unknown");
  chunk.wide_ = (flags & kChunkWide) != 0;
  chunk.checked_ = IsCheckedType(type);
  chunk.rows_ = static_cast<uint16_t>(rows);
  chunk.null_count_ = Load<uint16_t>(p + kChunkNullsAt);
  chunk.size_ = bytes.size();
  if (chunk.null_count_ > rows) return BadChunk("it has too many NULLs");
  const bool has_nulls = (flags & kChunkHasNulls) != 0;
  if (has_nulls != (chunk.null_count_ > 0)) return BadChunk("its NULLs are broken");
  std::string_view payload = bytes.substr(kChunkHeaderBytes);
  if (has_nulls) {
    const size_t nulls_bytes = (rows + 7) / 8;
    if (payload.size() < nulls_bytes) return BadChunk("it is too short");
    chunk.nulls_ = payload.data();
    payload.remove_prefix(nulls_bytes);
  }
  const char* wrong = nullptr;
  switch (chunk.encoding_) {
    case ChunkEncoding::kDecimal:
    case ChunkEncoding::kScaled: chunk.exponent_ = extra; [[fallthrough]];
    case ChunkEncoding::kFrame:
    case ChunkEncoding::kSequence: wrong = chunk.ParseInts(payload); break;
    case ChunkEncoding::kDouble: wrong = chunk.ParseDoubles(payload); break;
    case ChunkEncoding::kDictionary:
      chunk.entries_ = uint32_t{extra} + 1;
      wrong = chunk.ParseDictionary(payload);
      break;
    case ChunkEncoding::kBytes: wrong = chunk.ParseBytes(payload); break;
    case ChunkEncoding::kLetters:
      chunk.entries_ = uint32_t{extra} + 1;
      wrong = chunk.ParseLetters(payload);
      break;
  }
  if (wrong != nullptr) return BadChunk(wrong);
  *out = chunk;
  return Status();
}

// ---- Single values ----

bool Chunk::IsNull(uint32_t row) const {
  return nulls_ != nullptr && (static_cast<uint8_t>(nulls_[row >> 3]) >> (row & 7) & 1) != 0;
}

int64_t Chunk::IntAt(uint32_t row) const {
  if (encoding_ == ChunkEncoding::kSequence) {
    const auto base = static_cast<uint64_t>(step_ < 0 ? greatest_ : least_);
    return static_cast<int64_t>(base + row * static_cast<uint64_t>(step_));
  }
  return static_cast<int64_t>(static_cast<uint64_t>(least_) + CodeAt(codes_, code_bits_, row));
}

double Chunk::DoubleAt(uint32_t row) const {
  if (encoding_ == ChunkEncoding::kDecimal) {
    return static_cast<double>(IntAt(row)) / kPowersOfTen[exponent_];
  }
  if (code_bits_ == 32) return Load<float>(codes_ + size_t{4} * row);
  return Load<double>(codes_ + size_t{8} * row);
}

// The i-th of the offsets.
uint32_t Chunk::Anchor(uint32_t i) const {
  return wide_ ? Load<uint32_t>(offsets_ + size_t{4} * i)
               : Load<uint16_t>(offsets_ + size_t{2} * i);
}

// `code` < entries_.
std::string_view Chunk::Entry(uint32_t code) const {
  const uint32_t start = code == 0 ? 0 : Anchor(code - 1);
  return {bytes_ + start, Anchor(code) - start};
}

// Where the row's bytes lie among those of all; false when they are not inside.
bool Chunk::FindBytes(uint32_t row, uint64_t* at, uint64_t* size) const {
  const uint32_t first = row / kRowsPerAnchor * kRowsPerAnchor;
  if (code_bits_ == 0) {
    *at = uint64_t{row} * base_length_;
    *size = base_length_;
    return true;
  }
  uint64_t start = first == 0 ? 0 : Anchor(row / kRowsPerAnchor - 1);
  start += uint64_t{base_length_} * (row - first);
  if (code_bits_ == 8) {  // the commonest width, without a branch for each
    const auto* lengths = reinterpret_cast<const uint8_t*>(codes_);
    uint32_t sum = 0;
    for (uint32_t i = first; i < row; ++i) sum += lengths[i];
    start += sum;
  } else {
    for (uint32_t i = first; i < row; ++i) start += CodeAt(codes_, code_bits_, i);
  }
  *at = start;
  *size = base_length_ + CodeAt(codes_, code_bits_, row);
  return *at + *size <= bytes_size_;
}

void Chunk::PrefetchBytes(uint32_t row) const {
  if (row >= rows_) return;
  if (encoding_ == ChunkEncoding::kDictionary) {
    const uint64_t code = CodeAt(codes_, code_bits_, row);
    if (code < entries_) __builtin_prefetch(Entry(static_cast<uint32_t>(code)).data());
    return;
  }
  if (encoding_ != ChunkEncoding::kBytes && encoding_ != ChunkEncoding::kLetters) return;
  uint64_t at, size;
  if (!FindBytes(row, &at, &size) || size == 0) return;
  uint64_t last = at + size - 1;
  if (encoding_ == ChunkEncoding::kLetters) {
    const uint32_t bits = LetterBits(entries_);
    at = at / kLettersPerGroup * bits;
    last = last / kLettersPerGroup * bits;
  }
  __builtin_prefetch(bytes_ + at);
  __builtin_prefetch(bytes_ + last);
}

const char* Chunk::Text(uint64_t at, uint64_t size, Arena* arena) const {
  if (encoding_ != ChunkEncoding::kLetters) return bytes_ + at;
  if (size == 0) return bytes_;
  // Codes that no letter has read as zeros: another value of the same length, as elsewhere.
  uint8_t alphabet[kMaxLetters] = {};
  std::memcpy(alphabet, letters_, entries_);
  const uint64_t first = at / kLettersPerGroup;
  const uint64_t groups = (at + size + kLettersPerGroup - 1) / kLettersPerGroup - first;
  const uint32_t bits = LetterBits(entries_);
  char* out = arena->Allocate(groups * kLettersPerGroup);
  Loops().letters(bytes_ + first * bits, bits, groups, alphabet, out);
  return out + at % kLettersPerGroup;
}

std::string_view Chunk::Scaled(int64_t unscaled, Arena* arena) const {
  char* out = arena->Allocate(numeric::kSmallBytes);
  numeric::WriteSmall(unscaled, exponent_, out);
  return {out, numeric::kSmallBytes};
}

Result<Datum> Chunk::Get(uint32_t row, Arena* arena) const {
  if (row >= rows_) return BadChunk("it has too few rows");
  if (IsNull(row)) return Datum();
  std::string_view value;
  switch (encoding_) {
    case ChunkEncoding::kFrame:
    case ChunkEncoding::kSequence: return Datum::Int(IntAt(row));
    case ChunkEncoding::kDecimal:
    case ChunkEncoding::kDouble: return Datum::Double(DoubleAt(row));
    case ChunkEncoding::kScaled: return Datum::Bytes(Scaled(IntAt(row), arena));
    case ChunkEncoding::kDictionary: {
      const auto code = static_cast<uint32_t>(CodeAt(codes_, code_bits_, row));
      if (code >= entries_) return BadChunk(kBadCode);
      value = Entry(code);
      break;
    }
    case ChunkEncoding::kBytes:
    case ChunkEncoding::kLetters: {
      uint64_t at;
      uint64_t size;
      if (!FindBytes(row, &at, &size)) return BadChunk(kBadLengths);
      value = {Text(at, size, arena), size};
      break;
    }
  }
  if (checked_ && !IsValidStored(value, type_)) return BadChunk(kBadValue);
  return Datum::Bytes(value);
}

bool Chunk::Bounds(Arena* arena, Datum* least, Datum* greatest) const {
  if (null_count_ == rows_) return false;
  switch (encoding_) {
    case ChunkEncoding::kFrame:
    case ChunkEncoding::kSequence:
      *least = Datum::Int(least_);
      *greatest = Datum::Int(greatest_);
      return true;
    case ChunkEncoding::kDecimal:
      *least = Datum::Double(static_cast<double>(least_) / kPowersOfTen[exponent_]);
      *greatest = Datum::Double(static_cast<double>(greatest_) / kPowersOfTen[exponent_]);
      return true;
    case ChunkEncoding::kDouble:
      *least = Datum::Double(std::bit_cast<double>(least_));
      *greatest = Datum::Double(std::bit_cast<double>(greatest_));
      return true;
    case ChunkEncoding::kScaled:
      *least = Datum::Bytes(Scaled(least_, arena));
      *greatest = Datum::Bytes(Scaled(greatest_, arena));
      return true;
    case ChunkEncoding::kDictionary:
    case ChunkEncoding::kBytes:
    case ChunkEncoding::kLetters: break;
  }
  return false;
}

std::string Chunk::Describe() const {
  std::string width;
  if (code_bits_ == 0) {
    width = ", constant";
  } else if (code_bits_ < 8) {
    width = fmt::format(", {} bit{}", code_bits_, code_bits_ == 1 ? "" : "s");
  } else {
    width = fmt::format(", {} byte{}", code_bits_ / 8, code_bits_ == 8 ? "" : "s");
  }
  switch (encoding_) {
    case ChunkEncoding::kFrame: return "frame" + width;
    case ChunkEncoding::kSequence: return fmt::format("sequence by {}", step_);
    case ChunkEncoding::kDecimal: return fmt::format("decimal of {} places{}", exponent_, width);
    case ChunkEncoding::kDouble: return code_bits_ == 32 ? "float" : "double";
    case ChunkEncoding::kDictionary: return fmt::format("dictionary of {}", entries_);
    case ChunkEncoding::kBytes: return "bytes";
    case ChunkEncoding::kLetters: return fmt::format("letters, {} of them", entries_);
    case ChunkEncoding::kScaled: return fmt::format("numeric of {} places{}", exponent_, width);
  }
  return {};
}

uint32_t Chunk::LowerBound(int64_t value) const {
  if (PhysicalOfEncoding(encoding_) != Physical::kInt64) return 0;
  if (rows_ == 0 || value <= least_) return 0;
  if (value > greatest_) return rows_;
  uint32_t low = 0;
  uint32_t high = rows_;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (IntAt(middle) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// ---- Runs of rows ----

void Chunk::DecodeNulls(uint32_t first, uint32_t count, uint8_t* out) const {
  if (nulls_ == nullptr) {
    std::memset(out, 0, count);
  } else {
    Loops().bytes(nulls_, 1, first, count, out);
  }
}

const char* Chunk::DecodeDictionary(uint32_t first, uint32_t count, size_t at,
                                    ColumnVector* column) const {
  std::string_view entries[256];
  for (uint32_t i = 0; i < entries_; ++i) {
    entries[i] = Entry(i);
    if (checked_ && !IsValidStored(entries[i], type_)) return kBadValue;
  }
  uint8_t on_stack[kMaxPageRows];
  uint8_t* codes = on_stack;
  if (at == 0 && count == column->size()) codes = column->SetDictionary({entries, entries_});
  if (Loops().bytes(codes_, code_bits_, first, count, codes) >= entries_) return kBadCode;
  std::string_view* out = column->bytes() + at;
  for (uint32_t i = 0; i < count; ++i) out[i] = entries[codes[i]];
  return nullptr;
}

const char* Chunk::DecodeBytes(uint32_t first, uint32_t count, std::string_view* out,
                               Arena* arena) const {
  if (code_bits_ == 0) {
    const char* next = Text(uint64_t{first} * base_length_, uint64_t{count} * base_length_, arena);
    for (uint32_t i = 0; i < count; ++i, next += base_length_) out[i] = {next, base_length_};
    return nullptr;
  }
  uint64_t start;
  uint64_t size;
  if (!FindBytes(first, &start, &size)) return kBadLengths;
  uint32_t lengths[kMaxPageRows];
  Loops().lengths(codes_, code_bits_, first, count, base_length_, lengths);
  // What the lengths say and what the starts of blocks say must agree.
  uint64_t total = start;
  for (uint32_t i = 0; i < count;) {
    const uint32_t row = first + i;
    if (row != 0 && row % kRowsPerAnchor == 0 && total != Anchor(row / kRowsPerAnchor - 1)) {
      return kBadLengths;
    }
    const uint32_t end = std::min(count, i + kRowsPerAnchor - row % kRowsPerAnchor);
    for (; i < end; ++i) total += lengths[i];
  }
  if (total > bytes_size_ || (first + count == rows_ && total != bytes_size_)) return kBadLengths;
  const char* next = Text(start, total - start, arena);
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = {next, lengths[i]};
    next += lengths[i];
  }
  return nullptr;
}

void Chunk::DecodeScaled(uint32_t first, uint32_t count, size_t at, ColumnVector* column,
                         Arena* arena) const {
  std::string_view* out = column->bytes() + at;
  const uint64_t span = static_cast<uint64_t>(greatest_) - static_cast<uint64_t>(least_);
  if (code_bits_ <= 8 && at == 0 && count == column->size() && count > span) {
    // Each value is written once, and operators see that they are few.
    char* to = arena->Allocate(numeric::kSmallBytes * (span + 1));
    std::string_view entries[256];
    for (uint64_t i = 0; i <= span; ++i, to += numeric::kSmallBytes) {
      numeric::WriteSmall(least_ + static_cast<int64_t>(i), exponent_, to);
      entries[i] = {to, numeric::kSmallBytes};
    }
    uint8_t codes[kMaxPageRows];
    if (Loops().bytes(codes_, code_bits_, first, count, codes) <= span) {
      std::memcpy(column->SetDictionary({entries, span + 1}), codes, count);
      for (uint32_t i = 0; i < count; ++i) out[i] = entries[codes[i]];
      return;
    }
  }
  int64_t values[kMaxPageRows];
  Loops().ints(codes_, code_bits_, first, count, static_cast<uint64_t>(least_), values);
  char* to = arena->Allocate(numeric::kSmallBytes * count);
  for (uint32_t i = 0; i < count; ++i, to += numeric::kSmallBytes) {
    numeric::WriteSmall(values[i], exponent_, to);
    out[i] = {to, numeric::kSmallBytes};
  }
}

Status Chunk::Decode(uint32_t first, uint32_t count, size_t at, ColumnVector* column,
                     Arena* arena) const {
  if (first > rows_ || count > rows_ - first || at + count > column->size() ||
      column->physical() != PhysicalOfEncoding(encoding_)) {
    return BadChunk("it has too few rows");
  }
  if (count == 0) return Status();
  uint8_t* nulls = column->nulls() + at;
  DecodeNulls(first, count, nulls);
  if (nulls_ != nullptr) column->set_has_nulls();
  switch (encoding_) {
    case ChunkEncoding::kFrame:
      Loops().ints(codes_, code_bits_, first, count, static_cast<uint64_t>(least_),
                   column->ints() + at);
      break;
    case ChunkEncoding::kSequence: {
      int64_t* out = column->ints() + at;
      auto value = static_cast<uint64_t>(IntAt(first));
      for (uint32_t i = 0; i < count; ++i) {
        out[i] = static_cast<int64_t>(value);
        value += static_cast<uint64_t>(step_);
      }
      break;
    }
    case ChunkEncoding::kDecimal:
      Loops().decimals(codes_, code_bits_, first, count, least_, kPowersOfTen[exponent_],
                       column->doubles() + at);
      break;
    case ChunkEncoding::kDouble: {
      double* out = column->doubles() + at;
      if (code_bits_ == 64) {
        std::memcpy(out, codes_ + size_t{8} * first, size_t{8} * count);
      } else {
        for (uint32_t i = 0; i < count; ++i) out[i] = DoubleAt(first + i);
      }
      break;
    }
    case ChunkEncoding::kScaled: DecodeScaled(first, count, at, column, arena); break;
    case ChunkEncoding::kDictionary:
      if (const char* wrong = DecodeDictionary(first, count, at, column); wrong != nullptr) {
        return BadChunk(wrong);
      }
      break;
    case ChunkEncoding::kBytes:
    case ChunkEncoding::kLetters: {
      std::string_view* out = column->bytes() + at;
      if (const char* wrong = DecodeBytes(first, count, out, arena); wrong != nullptr) {
        return BadChunk(wrong);
      }
      if (!checked_) break;
      for (uint32_t i = 0; i < count; ++i) {
        if (nulls[i] == 0 && !IsValidStored(out[i], type_)) return BadChunk(kBadValue);
      }
      break;
    }
  }
  if (nulls_ == nullptr) return Status();
  // As ColumnVector::SetNull leaves them.
  if (column->physical() == Physical::kBytes) {
    std::string_view* out = column->bytes() + at;
    for (uint32_t i = 0; i < count; ++i) {
      if (nulls[i] != 0) out[i] = {};
    }
  } else {
    int64_t* out = column->ints() + at;
    for (uint32_t i = 0; i < count; ++i) out[i] &= int64_t{nulls[i]} - 1;
  }
  return Status();
}

Status Chunk::Gather(std::span<const uint32_t> rows, size_t at, ColumnVector* column,
                     Arena* arena) const {
  if (at + rows.size() > column->size() || column->physical() != PhysicalOfEncoding(encoding_)) {
    return BadChunk("it has too few rows");
  }
  if (rows.empty()) return Status();
  // From this many on one pass over all lengths costs less than finding each row's bytes.
  constexpr size_t kManyRows = 32;
  const bool has_lengths =
      encoding_ == ChunkEncoding::kBytes || encoding_ == ChunkEncoding::kLetters;
  if (has_lengths && rows.size() >= kManyRows && rows.back() < rows_) {
    std::string_view values[kMaxPageRows];
    const uint32_t first = rows.front();
    const char* wrong = DecodeBytes(first, rows.back() + 1 - first, values, arena);
    if (wrong != nullptr) return BadChunk(wrong);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (IsNull(rows[i])) {
        column->SetNull(at + i);
        continue;
      }
      const std::string_view value = values[rows[i] - first];
      if (checked_ && !IsValidStored(value, type_)) return BadChunk(kBadValue);
      column->Set(at + i, Datum::Bytes(value));
    }
    return Status();
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t row = rows[i];
    if (row >= rows_) return BadChunk("it has too few rows");
    if (IsNull(row)) {
      column->SetNull(at + i);
    } else if (column->physical() == Physical::kInt64) {
      column->Set(at + i, Datum::Int(IntAt(row)));
    } else if (column->physical() == Physical::kDouble) {
      column->Set(at + i, Datum::Double(DoubleAt(row)));
    } else {
      CELLAR_TRY_ASSIGN(Datum value, Get(row, arena));
      column->Set(at + i, value);
    }
  }
  return Status();
}

}  // namespace cellar::codec
