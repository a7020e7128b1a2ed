// The file system that RocksDB works on: files are for their owner alone, a failing log is told of,
// and tests can make calls fail.
#pragma once

#include <memory>

#include "cellar/engines/rocksdb/log_gate.h"
#include "cellar/engines/rocksdb/rocks_engine.h"

namespace rocksdb {
class Env;
}

namespace cellar::engines {

// `gate` hears of errors on logs and outlives the environment; null: none of the files is a log
// that RocksDB writes.
std::unique_ptr<rocksdb::Env> MakePrivateEnv(
    std::function<Status(FileCall, std::string_view path)> fault, LogGate* gate);

}  // namespace cellar::engines
