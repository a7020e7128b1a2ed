// The layer's own tests run in memory; tests/table runs the same ones on RocksDB.
#include "cellar/kv/memory_engine.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {

std::unique_ptr<kv::Engine> MakeTestEngine() { return kv::MakeMemoryEngine(); }

}  // namespace cellar::table
