// The tests of cellar/table once more, on RocksDB.
#include "cellar/engines/rocksdb/rocks_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

// Directories of the stores of this run, removed at its end.
class Directories : public testing::Environment {
 public:
  static Directories& Get() {
    static Directories directories;
    return directories;
  }
  std::string Make() {
    std::string name = (std::filesystem::temp_directory_path() / "cellar_table_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    made_.push_back(name);
    return name + "/store";
  }
  ~Directories() override {
    for (const std::string& name : made_) std::filesystem::remove_all(name);
  }

 private:
  std::vector<std::string> made_;
};

}  // namespace

std::unique_ptr<kv::Engine> MakeTestEngine() {
  engines::RocksOptions options;
  options.directory = Directories::Get().Make();
  options.cache_bytes = 8 << 20;
  options.write_buffer_bytes = 1 << 20;
  return Must(engines::OpenRocksEngine(options));
}

}  // namespace cellar::table
