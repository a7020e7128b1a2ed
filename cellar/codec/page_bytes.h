// The bytes of pages: header places, codes of few bits, and the loops over them. Private to this
// layer (docs/formats/page.md).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cellar/base/status.h"
#include "cellar/codec/row_bytes.h"

namespace cellar::codec::internal {

inline constexpr uint8_t kKindPage = 0x04;

// Places in a page.
inline constexpr size_t kPageFlagsAt = 1;
inline constexpr size_t kPageRowsAt = 2;
inline constexpr size_t kPageColumnsAt = 4;
inline constexpr size_t kPageFormatAt = 6;
inline constexpr size_t kPageChecksumAt = 10;
inline constexpr size_t kPageFenceAt = 14;
inline constexpr size_t kPageHeaderBytes = 18;
inline constexpr uint8_t kPageHasRefs = 0x01;
inline constexpr uint8_t kPageWideRefs = 0x02;

// Places in a chunk.
inline constexpr size_t kChunkEncodingAt = 0;
inline constexpr size_t kChunkFlagsAt = 1;
inline constexpr size_t kChunkBitsAt = 2;
inline constexpr size_t kChunkExtraAt = 3;
inline constexpr size_t kChunkNullsAt = 4;
inline constexpr size_t kChunkHeaderBytes = 6;
inline constexpr uint8_t kChunkHasNulls = 0x01;
inline constexpr uint8_t kChunkWide = 0x02;

inline constexpr uint32_t kRowsPerAnchor = 32;
inline constexpr int kMaxExponent = 9;
// Decimals are of integers below this: all of them and all their differences are exact doubles.
inline constexpr int64_t kDecimalLimit = int64_t{1} << 50;
inline constexpr double kPowersOfTen[kMaxExponent + 1] = {1e0, 1e1, 1e2, 1e3, 1e4,
                                                          1e5, 1e6, 1e7, 1e8, 1e9};

// Codes have 0, 1, 2 or 4 bits or whole bytes.
inline bool IsCodeBits(uint32_t bits) {
  return bits <= 2 || bits == 4 || (bits <= 64 && bits % 8 == 0);
}
inline uint32_t CodeBitsFor(uint64_t greatest_code) {
  const auto bits = static_cast<uint32_t>(std::bit_width(greatest_code));
  if (bits <= 2) return bits;
  return bits <= 4 ? 4 : (bits + 7) / 8 * 8;
}
// Codes of 3, 5, 6 or 7 bytes are read eight bytes at a time, so the last one has bytes behind it.
inline size_t CodeBytes(uint32_t bits, size_t rows) {
  const size_t bytes = (rows * bits + 7) / 8;
  const bool padded = bits > 16 && !std::has_single_bit(bits) && rows > 0;
  return padded ? bytes + 8 - bits / 8 : bytes;
}

// Letters lie in groups of eight, which are as many bytes as a letter has bits, and are read eight
// bytes at a time.
inline constexpr uint32_t kLettersPerGroup = 8;
inline constexpr uint32_t kMaxLetters = 64;
inline uint32_t LetterBits(uint32_t different_letters) {
  return different_letters <= 2 ? 1 : static_cast<uint32_t>(std::bit_width(different_letters - 1));
}
inline size_t LettersBytes(uint32_t bits, size_t letters) {
  return letters == 0 ? 0 : (letters + kLettersPerGroup - 1) / kLettersPerGroup * bits + 8 - bits;
}

inline uint64_t CodeAt(const char* codes, uint32_t bits, size_t row) {
  switch (bits) {
    case 0: return 0;
    case 1:
    case 2:
    case 4: {
      const size_t at = row * bits;
      return static_cast<uint8_t>(codes[at / 8]) >> (at % 8) & ((1U << bits) - 1);
    }
    case 8: return static_cast<uint8_t>(codes[row]);
    case 16: return Load<uint16_t>(codes + 2 * row);
    case 32: return Load<uint32_t>(codes + 4 * row);
    case 64: return Load<uint64_t>(codes + 8 * row);
    default: return Load<uint64_t>(codes + bits / 8 * row) & ((uint64_t{1} << bits) - 1);
  }
}

// The loops over codes of rows [first, first + count). Each exists for any processor and for those
// with AVX2; which one runs is chosen at run time.
struct CodeLoops {
  // out[i] = base + code, modulo 2^64.
  void (*ints)(const char* codes, uint32_t bits, size_t first, size_t count, uint64_t base,
               int64_t* out);
  // out[i] = (base + code) / divisor; base + code below 2^53 for honest codes.
  void (*decimals)(const char* codes, uint32_t bits, size_t first, size_t count, int64_t base,
                   double divisor, double* out);
  // Codes of at most 32 bits.
  void (*lengths)(const char* codes, uint32_t bits, size_t first, size_t count, uint32_t base,
                  uint32_t* out);
  // Codes of at most 8 bits; returns the greatest one.
  uint8_t (*bytes)(const char* codes, uint32_t bits, size_t first, size_t count, uint8_t* out);
  // mask[i] &= (least <= code <= greatest) != negate; least <= greatest.
  void (*range)(const char* codes, uint32_t bits, size_t first, size_t count, uint64_t least,
                uint64_t greatest, bool negate, uint8_t* mask);
  // out = alphabet[code] for groups of eight letters of 1 to 6 bits; reads 8 - bits bytes beyond.
  void (*letters)(const char* packed, uint32_t bits, size_t groups,
                  const uint8_t (&alphabet)[kMaxLetters], char* out);
};
const CodeLoops& PortableLoops();
// Null when this processor or build lacks it.
const CodeLoops* Avx2Loops();
const CodeLoops& Loops();

inline Status BadChunk(const char* what) {
  return CorruptionError("chunk of a page makes no sense: {}", what);
}
inline constexpr const char* kBadLengths = "its lengths exceed its bytes";
inline constexpr const char* kBadCode = "a code exceeds its dictionary";
inline constexpr const char* kBadValue = "a value in it is broken";

}  // namespace cellar::codec::internal
