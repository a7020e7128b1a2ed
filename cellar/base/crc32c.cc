// CRC-32C by the processor's instruction, or eight bytes at a time by tables.
#include "cellar/base/crc32c.h"

#include <array>
#include <cstring>
#include <string>

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
// What a register becomes by so many zero bytes. That is linear, so the register behind two pieces
// is the first one's, moved by the second's length, and the second's begun from zero.
class ByZeros {
 public:
  explicit ByZeros(size_t count) {
    const std::string zeros(count, '\0');
    std::array<uint32_t, 32> of_bit{};
    for (uint32_t bit = 0; bit < 32; ++bit) of_bit[bit] = ByTables(zeros, 1u << bit);
    for (size_t byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) {
        for (uint32_t bit = 0; bit < 8; ++bit) {
          if ((value >> bit & 1) != 0) of_[byte][value] ^= of_bit[8 * byte + bit];
        }
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return of_[0][crc & 255] ^ of_[1][crc >> 8 & 255] ^ of_[2][crc >> 16 & 255] ^ of_[3][crc >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> of_{};
};

// The instruction gives a result each cycle, but each only three cycles after it was begun: three
// lanes at once, in pieces of kLane bytes.
constexpr size_t kLane = 512;

__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::string_view bytes, uint32_t crc) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t wide = crc;
  if (left >= 3 * kLane) {
    static const ByZeros by_lane(kLane);
    for (; left >= 3 * kLane; left -= 3 * kLane, at += 3 * kLane) {
      uint64_t second = 0, third = 0;
      for (size_t i = 0; i < kLane; i += 8) {
        uint64_t words[3];
        std::memcpy(&words[0], at + i, 8);
        std::memcpy(&words[1], at + kLane + i, 8);
        std::memcpy(&words[2], at + 2 * kLane + i, 8);
        wide = _mm_crc32_u64(wide, words[0]);
        second = _mm_crc32_u64(second, words[1]);
        third = _mm_crc32_u64(third, words[2]);
      }
      wide = by_lane(static_cast<uint32_t>(wide)) ^ second;
      wide = by_lane(static_cast<uint32_t>(wide)) ^ third;
    }
  }
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
