// CRC-32C (Castagnoli), as RFC 3720 gives it: the checksum of bytes on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace cellar {

// The checksum of `bytes`, or of what `crc` is the checksum of followed by `bytes`. Cost: about
// 0.15 ns a byte where the processor has the instruction.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

}  // namespace cellar
