// CRC-32C by the processor's instruction, or eight bytes at a time by tables.
#include "cellar/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#endif

namespace cellar {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t i = 0; i < 256; ++i) {
      tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
    }
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

uint32_t ByTables(std::string_view bytes, uint32_t crc) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][word >> (8 * i) & 255];
  }
  for (; left != 0; --left, ++at) {
    crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<uint8_t>(*at)) & 255];
  }
  return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::string_view bytes, uint32_t crc) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t wide = crc;
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; left != 0; --left, ++at) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(*at));
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~ByInstruction(bytes, ~crc);
#endif
  return ~ByTables(bytes, ~crc);
}

}  // namespace cellar
