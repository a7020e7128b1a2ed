// The file system that RocksDB works on: files are for their owner alone, and tests can make calls
// fail.
#pragma once

#include <memory>

#include "cellar/engines/rocksdb/rocks_engine.h"

namespace rocksdb {
class Env;
}

namespace cellar::engines {

std::unique_ptr<rocksdb::Env> MakePrivateEnv(
    std::function<Status(FileCall, std::string_view path)> fault);

}  // namespace cellar::engines
