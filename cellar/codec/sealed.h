// Values of system records with a checksum that covers their key too, so that neither a damaged
// record nor one that lies under another's key is taken for what it should be. The bytes are
// specified in docs/formats/catalog.md, section "Sealed records".
#pragma once

#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar::codec {

// The value of the record of this key. Cost: a copy, and a checksum of both.
std::string Seal(std::string_view key, std::string_view content);
// Its content, as a view into `value`. A value that was never sealed, as programs before format 2
// of the store wrote them, is its own content. Errors: kCorruption when the checksum is not that of
// key and content; kUnsupported for a newer version.
Result<std::string_view> Unseal(std::string_view key, std::string_view value);

}  // namespace cellar::codec
