// The first record of every store: which format it has, and which store it is.
// The bytes are specified in docs/formats/store.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar::kv {

// The newest format that this program reads and the one it writes. A store of format 1 becomes one
// of format 2 when it is opened for writing.
inline constexpr uint32_t kStoreFormatVersion = 2;
// Sorts below all other keys that Cellar writes, but for other system records.
inline constexpr std::string_view kStoreHeaderKey{"\0store-", 7};

struct StoreHeader {
  uint32_t format_version = kStoreFormatVersion;
  std::array<uint8_t, 16> store_id{};  // random, made with the store, never changed

  bool operator==(const StoreHeader&) const = default;
};

std::string EncodeStoreHeader(const StoreHeader& header);
// Errors: kUnsupported for a newer format, with a hint; kCorruption for anything else.
Result<StoreHeader> ParseStoreHeader(std::string_view bytes);
// The error for a store of format `version`, greater than ours.
Status NewerStoreFormat(uint32_t version);

}  // namespace cellar::kv
