#include "engines.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "cellar/kv/memory_engine.h"

namespace cellar::kv {

TempDirectory::TempDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "cellar-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
  path_ = name;
}

TempDirectory::~TempDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string KindName(EngineKind kind) {
  switch (kind) {
    case EngineKind::kMemory: return "Memory";
    case EngineKind::kRocks: return "Rocks";
    case EngineKind::kRocksSpilling: return "RocksSpilling";
  }
  return "Unknown";
}

std::string NameOf(const testing::TestParamInfo<EngineKind>& info) { return KindName(info.param); }

engines::RocksOptions TestOptions(const std::string& directory) {
  engines::RocksOptions options;
  options.directory = directory;
  options.cache_bytes = 8 << 20;
  options.write_buffer_bytes = 4 << 20;
  return options;
}

std::unique_ptr<Engine> OpenEngine(EngineKind kind, const std::string& directory) {
  if (kind == EngineKind::kMemory) return MakeMemoryEngine();
  engines::RocksOptions options = TestOptions(directory);
  if (kind == EngineKind::kRocksSpilling) options.spill_bytes = 6 << 10;
  Result<std::unique_ptr<Engine>> engine = engines::OpenRocksEngine(options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status().ToString();
    return nullptr;
  }
  return std::move(engine).value();
}

void EngineTest::Put(std::string_view key, std::string_view value) {
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put(key, value));
  ASSERT_OK(transaction->Commit(CommitOptions{false}));
}

std::optional<std::string> EngineTest::Read(std::string_view key) {
  auto transaction = engine_->Begin({.read_only = true});
  return Get(transaction.get(), key);
}

std::optional<std::string> Get(Transaction* transaction, std::string_view key, ReadMode mode) {
  PinnedValue value;
  Result<bool> found = transaction->Get(key, &value, mode);
  if (!found.ok()) {
    ADD_FAILURE() << found.status().ToString();
    return std::nullopt;
  }
  if (!*found) return std::nullopt;
  return std::string(value.view());
}

Pairs ScanAll(Transaction* transaction, std::string_view start, std::string_view end,
              const ScanOptions& options) {
  Pairs pairs;
  auto cursor = transaction->Scan(start, end, options);
  if (!cursor.ok()) {
    ADD_FAILURE() << cursor.status().ToString();
    return pairs;
  }
  Block block;
  while (true) {
    Result<bool> more = (*cursor)->NextBlock(&block);
    if (!more.ok()) ADD_FAILURE() << more.status().ToString();
    if (!more.ok() || !*more) break;
    EXPECT_FALSE(block.empty());
    for (size_t i = 0; i < block.size(); ++i) pairs.emplace_back(block.key(i), block.value(i));
  }
  EXPECT_TRUE(block.empty());
  return pairs;
}

std::string Key(int number) { return fmt::format("k{:08}", number); }

}  // namespace cellar::kv
