#include "cellar/codec/sealed.h"

#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"

namespace cellar::codec {
namespace {

// No record that is not sealed begins with this byte, or with one that differs in a bit.
constexpr char kSealed = '\xE5';
constexpr char kVersion = 1;
constexpr size_t kHeaderBytes = 1 + 1 + 4;

// Of the key and its length, so that bytes do not pass from one to the other, and the content.
uint32_t ChecksumOf(std::string_view key, std::string_view content) {
  const uint32_t length = static_cast<uint32_t>(key.size());
  char bytes[4];
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(length >> (24 - 8 * i));
  return Crc32c(content, Crc32c(key, Crc32c(std::string_view(bytes, sizeof(bytes)))));
}

uint32_t StoredChecksum(std::string_view value) {
  uint32_t out = 0;
  for (size_t i = 2; i < kHeaderBytes; ++i) out = out << 8 | static_cast<unsigned char>(value[i]);
  return out;
}

}  // namespace

std::string Seal(std::string_view key, std::string_view content) {
  std::string out;
  out.reserve(kHeaderBytes + content.size());
  out.push_back(kSealed);
  out.push_back(kVersion);
  const uint32_t checksum = ChecksumOf(key, content);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(checksum >> shift));
  out.append(content);
  return out;
}

Result<std::string_view> Unseal(std::string_view key, std::string_view value) {
  const bool sealed = !value.empty() && value[0] == kSealed;
  if (value.size() < kHeaderBytes) {
    return sealed ? Result<std::string_view>(CorruptionError("the record is cut off"))
                  : Result<std::string_view>(value);
  }
  const std::string_view content = value.substr(kHeaderBytes);
  const bool matches = StoredChecksum(value) == ChecksumOf(key, content);
  if (matches && sealed && value[1] == kVersion) return content;
  // The first bytes alone are damaged: what follows them is no record of old either.
  if (matches) return CorruptionError("the record's first bytes are damaged");
  if (!sealed) return value;
  if (value[1] > kVersion && value[1] <= kVersion + 8) {
    return SqlError(Code::kUnsupported, sqlstate::kObjectNotInPrerequisiteState,
                    "the record has version {}, this program reads up to version {}",
                    static_cast<int>(value[1]), static_cast<int>(kVersion))
        .WithHint("Use the newer release that wrote it.");
  }
  return CorruptionError("the record's checksum is wrong");
}

}  // namespace cellar::codec
