// Pages from rows: which encoding each column gets, and the bytes (docs/formats/page.md).
#include <algorithm>
#include <cmath>

#include "cellar/base/check.h"
#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"
#include "cellar/codec/page.h"
#include "cellar/codec/page_bytes.h"
#include "cellar/types/numeric.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

// Grows *out and returns the new bytes, which are zeros.
char* Grow(std::string* out, size_t bytes) {
  const size_t at = out->size();
  out->resize(at + bytes);
  return out->data() + at;
}

template <typename T>
void AppendFixed(T value, std::string* out) {
  Store(value, Grow(out, sizeof value));
}

template <typename T>
void StoreCodes(const uint64_t* codes, size_t rows, char* out) {
  for (size_t i = 0; i < rows; ++i) Store(static_cast<T>(codes[i]), out + i * sizeof(T));
}

void AppendCodes(const uint64_t* codes, size_t rows, uint32_t bits, std::string* out) {
  char* to = Grow(out, CodeBytes(bits, rows));
  switch (bits) {
    case 0: return;
    case 1:
    case 2:
    case 4:
      for (size_t i = 0; i < rows; ++i) {
        const size_t at = i * bits;
        to[at / 8] = static_cast<char>(static_cast<uint8_t>(to[at / 8]) | codes[i] << (at % 8));
      }
      return;
    case 8: return StoreCodes<uint8_t>(codes, rows, to);
    case 16: return StoreCodes<uint16_t>(codes, rows, to);
    case 32: return StoreCodes<uint32_t>(codes, rows, to);
    case 64: return StoreCodes<uint64_t>(codes, rows, to);
    default:
      // Each store's high bytes are zeros that the next one overwrites.
      for (size_t i = 0; i < rows; ++i) {
        if (bits == 24 && i + 1 == rows) {
          std::memcpy(to + 3 * i, codes + i, 3);
          break;
        }
        Store(codes[i], to + i * (bits / 8));
      }
      return;
  }
}

// Makes the chunks of one page.
class Builder {
 public:
  Builder(size_t rows, size_t limit_bytes, std::string* out)
      : rows_(rows), limit_bytes_(limit_bytes), out_(out) {}

  // Appends the chunk of rows [first, first + rows). False when the page grows beyond its limit.
  bool Append(const ColumnVector& column, size_t first);

 private:
  void AppendHeader(ChunkEncoding encoding, uint32_t bits, uint32_t extra, bool wide);
  void AppendFrame(ChunkEncoding encoding, uint32_t exponent, const int64_t* values);
  void AppendInts(const int64_t* values);
  void AppendDoubles(const double* values);
  bool FindDecimals(const double* values, uint32_t* exponent);
  bool FindScaled(const std::string_view* values, int* scale, size_t* bytes);
  bool AppendScaled(const std::string_view* values);
  bool AppendBytes(const std::string_view* values);
  bool FindDictionary(const std::string_view* values, size_t plain_bytes);
  void AppendDictionary();
  bool FindLetters(const std::string_view* values, uint64_t total);
  void PackLetters(const std::string_view* values, uint64_t total);
  bool is_null(size_t i) const { return has_nulls_ && nulls_[i] != 0; }

  const size_t rows_;
  const size_t limit_bytes_;
  std::string* const out_;
  const uint8_t* nulls_ = nullptr;
  bool has_nulls_ = false;
  size_t null_count_ = 0;
  int64_t ints_[kMaxPageRows];
  uint64_t codes_[kMaxPageRows];
  // FindDictionary's.
  std::string_view entries_[256];
  size_t entry_count_ = 0;
  size_t entry_bytes_ = 0;
  // FindLetters': those that there are, ascending, and the code of each byte.
  uint8_t letters_[kMaxLetters];
  uint8_t letter_codes_[256];
  uint32_t letter_count_ = 0;
};

void Builder::AppendHeader(ChunkEncoding encoding, uint32_t bits, uint32_t extra, bool wide) {
  char* p = Grow(out_, kChunkHeaderBytes);
  p[kChunkEncodingAt] = static_cast<char>(encoding);
  p[kChunkFlagsAt] =
      static_cast<char>((null_count_ > 0 ? kChunkHasNulls : 0) | (wide ? kChunkWide : 0));
  p[kChunkBitsAt] = static_cast<char>(bits);
  p[kChunkExtraAt] = static_cast<char>(extra);
  Store(static_cast<uint16_t>(null_count_), p + kChunkNullsAt);
  if (null_count_ == 0) return;
  char* bits_at = Grow(out_, (rows_ + 7) / 8);
  for (size_t i = 0; i < rows_; ++i) {
    bits_at[i / 8] = static_cast<char>(static_cast<uint8_t>(bits_at[i / 8]) | nulls_[i] << (i % 8));
  }
}

void Builder::AppendFrame(ChunkEncoding encoding, uint32_t exponent, const int64_t* values) {
  int64_t least = INT64_MAX;
  int64_t greatest = INT64_MIN;
  if (null_count_ == 0) {
    for (size_t i = 0; i < rows_; ++i) {
      least = std::min(least, values[i]);
      greatest = std::max(greatest, values[i]);
    }
  } else {
    for (size_t i = 0; i < rows_; ++i) {
      if (nulls_[i] != 0) continue;
      least = std::min(least, values[i]);
      greatest = std::max(greatest, values[i]);
    }
  }
  if (null_count_ == rows_) least = greatest = 0;
  const uint64_t base = static_cast<uint64_t>(least);
  const uint32_t bits = CodeBitsFor(static_cast<uint64_t>(greatest) - base);
  AppendHeader(encoding, bits, exponent, false);
  AppendFixed(least, out_);
  AppendFixed(greatest, out_);
  if (bits == 0) return;
  for (size_t i = 0; i < rows_; ++i) codes_[i] = static_cast<uint64_t>(values[i]) - base;
  if (null_count_ > 0) {
    for (size_t i = 0; i < rows_; ++i) codes_[i] = nulls_[i] != 0 ? 0 : codes_[i];
  }
  AppendCodes(codes_, rows_, bits, out_);
}

void Builder::AppendInts(const int64_t* values) {
  if (null_count_ == 0 && rows_ >= 2 && values[1] != values[0]) {
    int64_t step;
    int64_t reach;
    int64_t last;
    const bool fits = !__builtin_sub_overflow(values[1], values[0], &step) &&
                      !__builtin_mul_overflow(step, static_cast<int64_t>(rows_ - 1), &reach) &&
                      !__builtin_add_overflow(values[0], reach, &last);
    size_t i = 1;
    while (fits && i < rows_ && values[i] == values[i - 1] + step) ++i;
    // Two rows are always in sequence, and as a frame they are smaller.
    if (i == rows_ && rows_ > 2) {
      AppendHeader(ChunkEncoding::kSequence, 0, 0, false);
      AppendFixed(std::min(values[0], last), out_);
      AppendFixed(std::max(values[0], last), out_);
      AppendFixed(step, out_);
      return;
    }
  }
  AppendFrame(ChunkEncoding::kFrame, 0, values);
}

// The integer n for which n / power is exactly `value`, in every bit.
bool ToDecimal(double value, double power, int64_t* n) {
  const double scaled = value * power;
  if (!(std::abs(scaled) < static_cast<double>(kDecimalLimit) - 1)) return false;
  *n = static_cast<int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  return std::bit_cast<uint64_t>(static_cast<double>(*n) / power) == std::bit_cast<uint64_t>(value);
}

bool Builder::FindDecimals(const double* values, uint32_t* exponent) {
  uint32_t e = 0;
  bool raised = false;
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) {
      ints_[i] = 0;
      continue;
    }
    while (!ToDecimal(values[i], kPowersOfTen[e], &ints_[i])) {
      if (e == kMaxExponent) return false;
      ++e;
      raised = i > 0;
    }
  }
  *exponent = e;
  for (size_t i = 0; raised && i < rows_; ++i) {
    if (!is_null(i) && !ToDecimal(values[i], kPowersOfTen[e], &ints_[i])) return false;
  }
  return true;
}

void Builder::AppendDoubles(const double* values) {
  uint32_t exponent;
  if (FindDecimals(values, &exponent)) {
    return AppendFrame(ChunkEncoding::kDecimal, exponent, ints_);
  }
  double least = 0;
  double greatest = 0;
  bool first = true;
  bool floats = true;
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) continue;
    const double value = values[i];
    const auto narrow = static_cast<float>(value);
    floats = floats &&
             std::bit_cast<uint64_t>(static_cast<double>(narrow)) == std::bit_cast<uint64_t>(value);
    // NaN is greatest.
    const bool nan = std::isnan(value);
    if (first || (nan ? false : std::isnan(least) || value < least)) least = value;
    if (first || (nan ? !std::isnan(greatest) : value > greatest)) greatest = value;
    first = false;
  }
  AppendHeader(ChunkEncoding::kDouble, floats ? 32 : 64, 0, false);
  AppendFixed(least, out_);
  AppendFixed(greatest, out_);
  char* to = Grow(out_, rows_ * (floats ? 4 : 8));
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) continue;
    if (floats) {
      Store(static_cast<float>(values[i]), to + 4 * i);
    } else {
      Store(values[i], to + 8 * i);
    }
  }
}

uint64_t HashOf(std::string_view value) {
  uint64_t head = 0;
  uint64_t tail = 0;
  const size_t n = value.size();
  if (n >= 8) {
    head = Load<uint64_t>(value.data());
    tail = Load<uint64_t>(value.data() + n - 8);
  } else {
    for (size_t i = 0; i < n; ++i) head = head << 8 | static_cast<uint8_t>(value[i]);
  }
  uint64_t hash = (head ^ n * 0x9E3779B97F4A7C15ULL) * 0xFF51AFD7ED558CCDULL;
  hash = (hash ^ hash >> 32 ^ tail) * 0xC4CEB9FE1A85EC53ULL;
  return hash ^ hash >> 32;
}

// Fills entries_ and codes_. False when the dictionary would not be smaller than `plain_bytes`.
bool Builder::FindDictionary(const std::string_view* values, size_t plain_bytes) {
  constexpr size_t kSlots = 1024;
  uint16_t slots[kSlots] = {};  // entry + 1
  entry_count_ = 0;
  entry_bytes_ = 0;
  size_t seen = 0;
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) {
      codes_[i] = 0;
      continue;
    }
    const std::string_view value = values[i];
    size_t slot = HashOf(value) % kSlots;
    while (slots[slot] != 0 && entries_[slots[slot] - 1] != value) slot = (slot + 1) % kSlots;
    if (slots[slot] == 0) {
      if (entry_count_ == 256) return false;
      // Values that hardly ever come again.
      if (entry_count_ >= 32 && entry_count_ * 8 > seen * 7) return false;
      entries_[entry_count_++] = value;
      entry_bytes_ += value.size();
      slots[slot] = static_cast<uint16_t>(entry_count_);
      if (entry_bytes_ > plain_bytes) return false;
    }
    codes_[i] = slots[slot] - 1;
    ++seen;
  }
  if (entry_count_ == 0) return false;
  const size_t width = entry_bytes_ > UINT16_MAX ? 4 : 2;
  const size_t bytes =
      entry_count_ * width + entry_bytes_ + CodeBytes(CodeBitsFor(entry_count_ - 1), rows_);
  return bytes < plain_bytes;
}

void Builder::AppendDictionary() {
  const bool wide = entry_bytes_ > UINT16_MAX;
  const uint32_t bits = CodeBitsFor(entry_count_ - 1);
  AppendHeader(ChunkEncoding::kDictionary, bits, static_cast<uint32_t>(entry_count_ - 1), wide);
  size_t end = 0;
  for (size_t i = 0; i < entry_count_; ++i) {
    end += entries_[i].size();
    if (wide) {
      AppendFixed(static_cast<uint32_t>(end), out_);
    } else {
      AppendFixed(static_cast<uint16_t>(end), out_);
    }
  }
  for (size_t i = 0; i < entry_count_; ++i) out_->append(entries_[i]);
  AppendCodes(codes_, rows_, bits, out_);
}

// The share of the first bytes that a block compressor would replace by references to earlier ones:
// those of repeated words of four bytes.
double RepeatedShare(const std::string_view* values, size_t rows) {
  constexpr size_t kSampleBytes = 4096, kWord = 4, kSlots = 1024, kPatience = 128;
  char sample[kSampleBytes];
  size_t size = 0;
  for (size_t i = 0; i < rows && size < kSampleBytes; ++i) {
    const size_t n = std::min(values[i].size(), kSampleBytes - size);
    if (n > 0) std::memcpy(sample + size, values[i].data(), n);
    size += n;
  }
  uint16_t places[kSlots] = {};
  size_t repeated = 0;
  size_t missed = 0;
  for (size_t at = 0; at + kWord <= size;) {
    const auto word = Load<uint32_t>(sample + at);
    uint16_t& place = places[word * 2654435761U >> 22];
    const size_t before = place;
    place = static_cast<uint16_t>(at);
    if (before >= at || Load<uint32_t>(sample + before) != word) {
      // Where nothing repeats itself, fewer places are tried, as compressors do.
      at += 1 + missed++ / kPatience;
      continue;
    }
    missed = 0;
    size_t n = kWord;
    while (at + n < size && sample[before + n] == sample[at + n]) ++n;
    repeated += n;
    at += n;
  }
  return size == 0 ? 0 : static_cast<double>(repeated) / static_cast<double>(size);
}

// Fills letters_ and letter_codes_. False when bytes as they are, which engines may compress, are
// likely to be smaller, or hardly larger.
bool Builder::FindLetters(const std::string_view* values, uint64_t total) {
  constexpr uint64_t kLeastBytes = 512;
  // A repeated byte costs a compressor about a third of what it replaces.
  constexpr double kCompressed = 0.7;
  // After so many bytes, do they have too many different ones already?
  constexpr size_t kFirstLook = 1024;
  if (total < kLeastBytes || total > UINT32_MAX - kLettersPerGroup) return false;
  bool there[256] = {};
  size_t looked_at = 0;
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) continue;
    for (char c : values[i]) there[static_cast<uint8_t>(c)] = true;
    const bool look = looked_at < kFirstLook && looked_at + values[i].size() >= kFirstLook;
    looked_at += values[i].size();
    if (look && std::count(there, there + 256, true) > ptrdiff_t{kMaxLetters}) return false;
  }
  letter_count_ = 0;
  for (size_t c = 0; c < 256; ++c) {
    if (!there[c]) continue;
    if (letter_count_ == kMaxLetters) return false;
    letter_codes_[c] = static_cast<uint8_t>(letter_count_);
    letters_[letter_count_++] = static_cast<uint8_t>(c);
  }
  const uint32_t bits = LetterBits(letter_count_);
  const size_t bytes = 4 + letter_count_ + LettersBytes(bits, total);
  if (bytes * 8 > total * 7) return false;
  const double saved = 1 - static_cast<double>(bytes) / static_cast<double>(total);
  return null_count_ == rows_ || RepeatedShare(values, rows_) * kCompressed < saved;
}

void Builder::PackLetters(const std::string_view* values, uint64_t total) {
  out_->append(reinterpret_cast<const char*>(letters_), letter_count_);
  const uint32_t bits = LetterBits(letter_count_);
  char* to = Grow(out_, LettersBytes(bits, total));
  uint64_t group = 0;
  uint32_t filled = 0;
  const auto add = [&](uint8_t c) {
    group |= uint64_t{letter_codes_[c]} << (filled * bits);
    if (++filled < kLettersPerGroup) return;
    Store(group, to);
    to += bits;
    group = 0;
    filled = 0;
  };
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) continue;
    const auto* from = reinterpret_cast<const uint8_t*>(values[i].data());
    const uint8_t* const end = from + values[i].size();
    while (filled != 0 && from != end) add(*from++);
    for (; end - from >= static_cast<ptrdiff_t>(kLettersPerGroup); from += kLettersPerGroup) {
      uint64_t whole = 0;
      for (uint32_t k = 0; k < kLettersPerGroup; ++k) {
        whole |= uint64_t{letter_codes_[from[k]]} << (k * bits);
      }
      Store(whole, to);
      to += bits;
    }
    while (from != end) add(*from++);
  }
  if (filled > 0) Store(group, to);
}

// Fills ints_. False when values are not all of the small form and of one display scale.
bool Builder::FindScaled(const std::string_view* values, int* scale, size_t* bytes) {
  *scale = -1;
  int64_t least = INT64_MAX;
  int64_t greatest = INT64_MIN;
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i)) {
      ints_[i] = 0;
      continue;
    }
    int its_scale;
    if (!numeric::AsSmall(values[i], &ints_[i], &its_scale)) return false;
    if (*scale < 0) *scale = its_scale;
    if (its_scale != *scale) return false;
    least = std::min(least, ints_[i]);
    greatest = std::max(greatest, ints_[i]);
  }
  if (*scale < 0) return false;
  const uint64_t span = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least);
  *bytes = 2 * sizeof(int64_t) + CodeBytes(CodeBitsFor(span), rows_);
  return true;
}

bool Builder::AppendScaled(const std::string_view* values) {
  int scale;
  size_t bytes;
  if (!FindScaled(values, &scale, &bytes)) return false;
  // Bounds and sums are worth more than a little space; few values far apart are better in a
  // dictionary.
  if (bytes > 2 * rows_ && FindDictionary(values, bytes / 2)) {
    AppendDictionary();
  } else {
    AppendFrame(ChunkEncoding::kScaled, static_cast<uint32_t>(scale), ints_);
  }
  return true;
}

bool Builder::AppendBytes(const std::string_view* values) {
  uint64_t total = 0;
  size_t least = SIZE_MAX;
  size_t greatest = 0;
  for (size_t i = 0; i < rows_; ++i) {
    const size_t size = is_null(i) ? 0 : values[i].size();
    total += size;
    least = std::min(least, size);
    greatest = std::max(greatest, size);
  }
  if (rows_ == 0) least = 0;
  if (greatest > limit_bytes_) return false;
  const uint32_t bits = CodeBitsFor(greatest - least);
  const bool wide = total > UINT16_MAX;
  const size_t anchors = bits == 0 || rows_ == 0 ? 0 : (rows_ - 1) / kRowsPerAnchor;
  const size_t head = 4 + CodeBytes(bits, rows_) + anchors * (wide ? 4 : 2);
  if (FindDictionary(values, head + total)) {
    if (out_->size() + entry_bytes_ > limit_bytes_) return false;
    AppendDictionary();
    return true;
  }
  if (out_->size() + head + total > limit_bytes_) return false;
  const bool letters = FindLetters(values, total);
  if (letters) {
    AppendHeader(ChunkEncoding::kLetters, bits, letter_count_ - 1, wide);
  } else {
    AppendHeader(ChunkEncoding::kBytes, bits, 0, wide);
  }
  AppendFixed(static_cast<uint32_t>(least), out_);
  if (letters) AppendFixed(static_cast<uint32_t>(total), out_);
  if (bits > 0) {
    for (size_t i = 0; i < rows_; ++i) codes_[i] = (is_null(i) ? 0 : values[i].size()) - least;
    AppendCodes(codes_, rows_, bits, out_);
  }
  size_t start = 0;
  for (size_t i = 0; anchors > 0 && i < rows_; ++i) {
    if (i > 0 && i % kRowsPerAnchor == 0) {
      if (wide) {
        AppendFixed(static_cast<uint32_t>(start), out_);
      } else {
        AppendFixed(static_cast<uint16_t>(start), out_);
      }
    }
    start += codes_[i] + least;
  }
  if (letters) {
    PackLetters(values, total);
    return true;
  }
  char* to = Grow(out_, total);
  for (size_t i = 0; i < rows_; ++i) {
    if (is_null(i) || values[i].empty()) continue;
    std::memcpy(to, values[i].data(), values[i].size());
    to += values[i].size();
  }
  return true;
}

bool Builder::Append(const ColumnVector& column, size_t first) {
  nulls_ = column.nulls() + first;
  null_count_ = 0;
  if (column.has_nulls()) {
    for (size_t i = 0; i < rows_; ++i) null_count_ += nulls_[i] != 0 ? 1 : 0;
  }
  has_nulls_ = null_count_ > 0;
  switch (column.physical()) {
    case Physical::kInt64: AppendInts(column.ints() + first); break;
    case Physical::kDouble: AppendDoubles(column.doubles() + first); break;
    case Physical::kBytes:
      if (column.type().id == TypeId::kNumeric && !column.type().array &&
          AppendScaled(column.bytes() + first)) {
        break;
      }
      if (!AppendBytes(column.bytes() + first)) return false;
      break;
  }
  return out_->size() <= limit_bytes_;
}

bool AppendKeyChunk(std::span<const std::string_view> refs, size_t limit_bytes, bool* wide,
                    std::string* out) {
  std::string_view prefix;
  if (!refs.empty()) {
    // They are in order, so what the first and the last have in common all have.
    const std::string_view a = refs.front();
    const std::string_view b = refs.back();
    const size_t most = std::min(a.size(), b.size());
    size_t n = 0;
    while (n < most && a[n] == b[n]) ++n;
    prefix = a.substr(0, n);
  }
  uint64_t total = 0;
  for (std::string_view ref : refs) total += ref.size() - prefix.size();
  if (out->size() + prefix.size() + total > limit_bytes) return false;
  *wide = total > UINT16_MAX;
  AppendFixed(static_cast<uint32_t>(prefix.size()), out);
  out->append(prefix);
  size_t end = 0;
  for (std::string_view ref : refs) {
    end += ref.size() - prefix.size();
    if (*wide) {
      AppendFixed(static_cast<uint32_t>(end), out);
    } else {
      AppendFixed(static_cast<uint16_t>(end), out);
    }
  }
  for (std::string_view ref : refs) out->append(ref.substr(prefix.size()));
  return true;
}

}  // namespace

Status AppendPage(const PageRows& rows, std::string* out) {
  const size_t start = out->size();
  const size_t columns = rows.format->columns().size();
  CELLAR_DCHECK(rows.count <= kMaxPageRows && rows.positions.size() == columns);
  const bool has_refs = rows.keys == PageKeys::kRefs;
  CELLAR_DCHECK(!has_refs || rows.refs.size() == rows.count);
  const auto too_large = [&] {
    out->resize(start);
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "page is too big: maximum size {}", kMaxRowBytes);
  };
  const size_t limit_bytes = start + kMaxRowBytes;
  const size_t chunks = columns + (has_refs ? 1 : 0);
  const size_t head_bytes = kPageHeaderBytes + 4 * (chunks + 1);
  if (rows.fence.size() > kMaxRowBytes - head_bytes) return too_large();
  Grow(out, head_bytes);
  out->append(rows.fence);
  const auto set_offset = [&](size_t i) {
    Store(static_cast<uint32_t>(out->size() - start),
          out->data() + start + kPageHeaderBytes + 4 * i);
  };
  Builder builder(rows.count, limit_bytes, out);
  for (size_t i = 0; i < columns; ++i) {
    set_offset(i);
    if (!builder.Append(rows.batch->column(rows.positions[i]), rows.first)) return too_large();
  }
  uint8_t flags = 0;
  if (has_refs) {
    set_offset(columns);
    bool wide;
    if (!AppendKeyChunk(rows.refs, limit_bytes, &wide, out)) return too_large();
    flags = kPageHasRefs | (wide ? kPageWideRefs : 0);
  }
  set_offset(chunks);

  char* p = out->data() + start;
  p[0] = static_cast<char>(kKindPage);
  p[kPageFlagsAt] = static_cast<char>(flags);
  Store(static_cast<uint16_t>(rows.count), p + kPageRowsAt);
  Store(static_cast<uint16_t>(columns), p + kPageColumnsAt);
  Store(rows.format->id(), p + kPageFormatAt);
  Store(static_cast<uint32_t>(rows.fence.size()), p + kPageFenceAt);
  const std::string_view page(p, out->size() - start);
  const uint32_t head = Crc32c(page.substr(0, kPageChecksumAt));
  Store(Crc32c(page.substr(kPageChecksumAt + 4), head), p + kPageChecksumAt);
  return Status();
}

}  // namespace cellar::codec
