// RocksDB's answers as ours.
#pragma once

#include <string_view>

#include "cellar/base/status.h"

namespace rocksdb {
class Status;
}

namespace cellar::engines {

// `what` opens the message: "could not read the store". OK maps to OK.
Status FromRocks(const rocksdb::Status& status, std::string_view what);
bool IsDiskFull(const rocksdb::Status& status);

}  // namespace cellar::engines
