// The loops over codes. They are written once, plainly, for a compiler that vectorises; the AVX2
// versions are the same text compiled for AVX2.
#include "cellar/codec/page_bytes.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define CELLAR_HAS_AVX2 1
#include <immintrin.h>
#else
#define CELLAR_HAS_AVX2 0
#endif

#define CELLAR_LOOP [[gnu::always_inline]] inline
// A lambda takes its attributes between parameters and body.
#define CELLAR_INLINE __attribute__((always_inline))

namespace cellar::codec::internal {
namespace {

constexpr size_t kBlock = 256;  // codes unpacked at a time; a multiple of 8

// One, two or four bits a code into a byte each.
CELLAR_LOOP void Unpack(const char* codes, uint32_t bits, size_t first, size_t count,
                        uint8_t* out) {
  const size_t per_byte = 8 / bits;
  const auto mask = static_cast<uint8_t>((1U << bits) - 1);
  size_t i = 0;
  for (; i < count && (first + i) % per_byte != 0; ++i) {
    out[i] = static_cast<uint8_t>(CodeAt(codes, bits, first + i));
  }
  const auto* from = reinterpret_cast<const uint8_t*>(codes) + (first + i) / per_byte;
  const size_t whole = (count - i) / per_byte;
  uint8_t* to = out + i;
  if (bits == 1) {
    for (size_t k = 0; k < whole; ++k) {
      uint64_t spread = (from[k] * 0x0101010101010101ULL) & 0x8040201008040201ULL;
      spread = ((spread + 0x7F7F7F7F7F7F7F7FULL) | spread) >> 7 & 0x0101010101010101ULL;
      std::memcpy(to + 8 * k, &spread, 8);
    }
  } else if (bits == 2) {
    for (size_t k = 0; k < whole; ++k) {
      for (size_t j = 0; j < 4; ++j) to[4 * k + j] = from[k] >> (2 * j) & mask;
    }
  } else {
    for (size_t k = 0; k < whole; ++k) {
      to[2 * k] = from[k] & mask;
      to[2 * k + 1] = from[k] >> 4;
    }
  }
  for (i += whole * per_byte; i < count; ++i) {
    out[i] = static_cast<uint8_t>(CodeAt(codes, bits, first + i));
  }
}

template <typename T>
CELLAR_LOOP T LoadAt(const char* p, size_t i) {
  return Load<T>(p + i * sizeof(T));
}

// Calls visit(load, start, n) for runs of codes, where load(i) is the code of row first + start +
// i.
template <typename Visit>
CELLAR_LOOP void ForCodes(const char* codes, uint32_t bits, size_t first, size_t count,
                          Visit visit) {
  const char* p = codes + bits / 8 * first;
  switch (bits) {
    case 0: return visit([](size_t) { return uint8_t{0}; }, 0, count);
    case 1:
    case 2:
    case 4: {
      uint8_t block[kBlock];
      for (size_t start = 0; start < count; start += kBlock) {
        const size_t n = count - start < kBlock ? count - start : kBlock;
        Unpack(codes, bits, first + start, n, block);
        const uint8_t* unpacked = block;
        visit([unpacked](size_t i) CELLAR_INLINE { return unpacked[i]; }, start, n);
      }
      return;
    }
    case 8: return visit([p](size_t i) CELLAR_INLINE { return LoadAt<uint8_t>(p, i); }, 0, count);
    case 16: return visit([p](size_t i) CELLAR_INLINE { return LoadAt<uint16_t>(p, i); }, 0, count);
    case 24:
      return visit(
          [p](size_t i) CELLAR_INLINE {
            return static_cast<uint32_t>(Load<uint16_t>(p + 3 * i)) |
                   static_cast<uint32_t>(static_cast<uint8_t>(p[3 * i + 2])) << 16;
          },
          0, count);
    case 32: return visit([p](size_t i) CELLAR_INLINE { return LoadAt<uint32_t>(p, i); }, 0, count);
    case 64: return visit([p](size_t i) CELLAR_INLINE { return LoadAt<uint64_t>(p, i); }, 0, count);
    default: {
      const size_t width = bits / 8;
      const uint64_t mask = (uint64_t{1} << bits) - 1;
      return visit([p, width, mask](size_t i)
                       CELLAR_INLINE { return Load<uint64_t>(p + width * i) & mask; },
                   0, count);
    }
  }
}

CELLAR_LOOP void IntsLoop(const char* codes, uint32_t bits, size_t first, size_t count,
                          uint64_t base, int64_t* out) {
  ForCodes(codes, bits, first, count, [=](auto load, size_t start, size_t n) CELLAR_INLINE {
    for (size_t i = 0; i < n; ++i) {
      out[start + i] = static_cast<int64_t>(base + uint64_t{load(i)});
    }
  });
}

CELLAR_LOOP void DecimalsLoop(const char* codes, uint32_t bits, size_t first, size_t count,
                              int64_t base, double divisor, double* out) {
  ForCodes(codes, bits, first, count, [=](auto load, size_t start, size_t n) CELLAR_INLINE {
    if constexpr (sizeof(load(0)) < 8) {
      // Both are exact, and so is their sum.
      const auto base_double = static_cast<double>(base);
      for (size_t i = 0; i < n; ++i) {
        const uint64_t bits_of = 0x4330000000000000ULL | uint64_t{load(i)};  // 2^52 + code
        out[start + i] =
            (std::bit_cast<double>(bits_of) - 4503599627370496.0 + base_double) / divisor;
      }
    } else {
      for (size_t i = 0; i < n; ++i) {
        const uint64_t sum = static_cast<uint64_t>(base) + load(i);
        out[start + i] = static_cast<double>(static_cast<int64_t>(sum)) / divisor;
      }
    }
  });
}

CELLAR_LOOP void LengthsLoop(const char* codes, uint32_t bits, size_t first, size_t count,
                             uint32_t base, uint32_t* out) {
  ForCodes(codes, bits, first, count, [=](auto load, size_t start, size_t n) CELLAR_INLINE {
    for (size_t i = 0; i < n; ++i) out[start + i] = base + static_cast<uint32_t>(load(i));
  });
}

CELLAR_LOOP uint8_t BytesLoop(const char* codes, uint32_t bits, size_t first, size_t count,
                              uint8_t* out) {
  if (bits == 0) {
    std::memset(out, 0, count);
    return 0;
  }
  if (bits == 8) {
    std::memcpy(out, codes + first, count);
  } else {
    Unpack(codes, bits, first, count, out);
  }
  uint8_t greatest = 0;
  for (size_t i = 0; i < count; ++i) greatest = out[i] > greatest ? out[i] : greatest;
  return greatest;
}

CELLAR_LOOP void RangeLoop(const char* codes, uint32_t bits, size_t first, size_t count,
                           uint64_t least, uint64_t greatest, bool negate, uint8_t* mask) {
  ForCodes(codes, bits, first, count, [=](auto load, size_t start, size_t n) CELLAR_INLINE {
    using Code = decltype(load(0));
    uint8_t* to = mask + start;
    const auto flip = static_cast<uint8_t>(negate ? 1 : 0);
    constexpr auto kGreatest = static_cast<uint64_t>(static_cast<Code>(~Code{0}));
    if (least > kGreatest) {
      if (!negate) std::memset(to, 0, n);
      return;
    }
    const auto low = static_cast<Code>(least);
    const auto span = static_cast<Code>((greatest < kGreatest ? greatest : kGreatest) - least);
    for (size_t i = 0; i < n; ++i) {
      const bool inside = static_cast<Code>(load(i) - low) <= span;
      to[i] = static_cast<uint8_t>(to[i] & (static_cast<uint8_t>(inside) ^ flip));
    }
  });
}

CELLAR_LOOP uint64_t LettersMask(uint32_t bits) {
  return ((uint64_t{1} << bits) - 1) * 0x0101010101010101ULL;
}

void PortableLetters(const char* packed, uint32_t bits, size_t groups,
                     const uint8_t (&alphabet)[kMaxLetters], char* out) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (size_t g = 0; g < groups; ++g, packed += bits, out += kLettersPerGroup) {
    auto codes = Load<uint64_t>(packed);
    for (size_t i = 0; i < kLettersPerGroup; ++i, codes >>= bits) {
      out[i] = static_cast<char>(alphabet[codes & mask]);
    }
  }
}

#if CELLAR_HAS_AVX2
// Bits are spread by pdep, letters looked up by shuffles of 16 each; the code's upper bits choose
// among the shuffles.
__attribute__((target("avx2,bmi,bmi2"))) void Avx2Letters(const char* packed, uint32_t bits,
                                                          size_t groups,
                                                          const uint8_t (&alphabet)[kMaxLetters],
                                                          char* out) {
  const uint64_t mask = LettersMask(bits);
  const auto table = [&](size_t i) __attribute__((target("avx2,bmi,bmi2"))) {
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(alphabet + 16 * i)));
  };
  const __m256i first = table(0), second = table(1), third = table(2), fourth = table(3);
  size_t g = 0;
  for (; g + 4 <= groups; g += 4, packed += 4 * bits, out += 32) {
    // Not by way of memory: a wide load of what was just stored in parts waits for it.
    const auto spread = [&](size_t i) __attribute__((target("avx2,bmi,bmi2"))) {
      return static_cast<int64_t>(_pdep_u64(Load<uint64_t>(packed + i * bits), mask));
    };
    const __m256i codes = _mm256_set_epi64x(spread(3), spread(2), spread(1), spread(0));
    __m256i letters = _mm256_shuffle_epi8(first, codes);
    if (bits > 4) {
      const __m256i bit4 = _mm256_slli_epi16(codes, 3);
      letters = _mm256_blendv_epi8(letters, _mm256_shuffle_epi8(second, codes), bit4);
      if (bits > 5) {
        const __m256i upper = _mm256_blendv_epi8(_mm256_shuffle_epi8(third, codes),
                                                 _mm256_shuffle_epi8(fourth, codes), bit4);
        letters = _mm256_blendv_epi8(letters, upper, _mm256_slli_epi16(codes, 2));
      }
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), letters);
  }
  PortableLetters(packed, bits, groups - g, alphabet, out);
}
#endif

// The loops as functions, with what attributes `target` says.
#define CELLAR_LOOPS(name, target, letters)                                                   \
  struct name {                                                                               \
    target static void Ints(const char* codes, uint32_t bits, size_t first, size_t count,     \
                            uint64_t base, int64_t* out) {                                    \
      IntsLoop(codes, bits, first, count, base, out);                                         \
    }                                                                                         \
    target static void Decimals(const char* codes, uint32_t bits, size_t first, size_t count, \
                                int64_t base, double divisor, double* out) {                  \
      DecimalsLoop(codes, bits, first, count, base, divisor, out);                            \
    }                                                                                         \
    target static void Lengths(const char* codes, uint32_t bits, size_t first, size_t count,  \
                               uint32_t base, uint32_t* out) {                                \
      LengthsLoop(codes, bits, first, count, base, out);                                      \
    }                                                                                         \
    target static uint8_t Bytes(const char* codes, uint32_t bits, size_t first, size_t count, \
                                uint8_t* out) {                                               \
      return BytesLoop(codes, bits, first, count, out);                                       \
    }                                                                                         \
    target static void Range(const char* codes, uint32_t bits, size_t first, size_t count,    \
                             uint64_t least, uint64_t greatest, bool negate, uint8_t* mask) { \
      RangeLoop(codes, bits, first, count, least, greatest, negate, mask);                    \
    }                                                                                         \
    static constexpr CodeLoops kLoops = {Ints, Decimals, Lengths, Bytes, Range, letters};     \
  }

CELLAR_LOOPS(Portable, , PortableLetters);
#if CELLAR_HAS_AVX2
CELLAR_LOOPS(Avx2, __attribute__((target("avx2,bmi,bmi2"))), Avx2Letters);
#endif

}  // namespace

const CodeLoops& PortableLoops() { return Portable::kLoops; }

const CodeLoops* Avx2Loops() {
#if CELLAR_HAS_AVX2
  static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return supported ? &Avx2::kLoops : nullptr;
#else
  return nullptr;
#endif
}

const CodeLoops& Loops() {
  static const CodeLoops& chosen = Avx2Loops() != nullptr ? *Avx2Loops() : PortableLoops();
  return chosen;
}

}  // namespace cellar::codec::internal
