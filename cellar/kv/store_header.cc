#include "cellar/kv/store_header.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"

namespace cellar::kv {
namespace {

constexpr std::string_view kMagic = "cellar";
constexpr size_t kHeaderBytes = 6 + 4 + 16;

}  // namespace

std::string EncodeStoreHeader(const StoreHeader& header) {
  std::string out(kMagic);
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(header.format_version >> shift));
  }
  out.append(header.store_id.begin(), header.store_id.end());
  return out;
}

Result<StoreHeader> ParseStoreHeader(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + 4 || !bytes.starts_with(kMagic)) {
    return CorruptionError("the store's header record makes no sense");
  }
  StoreHeader header;
  header.format_version = 0;
  for (size_t i = 0; i < 4; ++i) {
    header.format_version =
        header.format_version << 8 | static_cast<uint8_t>(bytes[kMagic.size() + i]);
  }
  // A newer header may be longer, so its version is looked at first.
  if (header.format_version > kStoreFormatVersion) return NewerStoreFormat(header.format_version);
  if (header.format_version == 0 || bytes.size() != kHeaderBytes) {
    return CorruptionError("the store's header record makes no sense");
  }
  const std::string_view id = bytes.substr(kMagic.size() + 4);
  std::copy(id.begin(), id.end(), header.store_id.begin());
  return header;
}

Status NewerStoreFormat(uint32_t version) {
  return SqlError(Code::kUnsupported, sqlstate::kObjectNotInPrerequisiteState,
                  "the store has format {}, this program reads up to format {}", version,
                  kStoreFormatVersion)
      .WithHint("Use the newer release that wrote it, or dump it there and load it here.");
}

}  // namespace cellar::kv
