// kill -9 in the midst of sealing: every acknowledged change is there, and CHECK finds nothing.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"
#include "tests/table/seal_told.h"

namespace cellar::table {
namespace {

// A writer that is silent for so long makes no progress.
constexpr int kHangMillis = 100000;

// A running seal_writer.
class SealWriter {
 public:
  SealWriter(const std::string& directory, int seed) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execl(CELLAR_SEAL_WRITER, CELLAR_SEAL_WRITER, directory.c_str(),
              std::to_string(seed).c_str(), nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    from_child_ = ends[0];
  }

  // Kills it when it has told of so many things, wherever its sealer is then. False if it ended
  // otherwise. `rows` follows what is acknowledged; *open is what was begun and not acknowledged.
  bool KillAfter(int count, std::map<int, int>* rows, std::optional<SealTold>* open) {
    SealTold told;
    pollfd waiting{from_child_, POLLIN, 0};
    while (true) {
      if (::poll(&waiting, 1, kHangMillis) == 0) {
        ADD_FAILURE() << "the writer tells of nothing any more";
        ::kill(child_, SIGKILL);
      }
      if (::read(from_child_, &told, sizeof told) != sizeof told) break;
      if (told.acknowledged) {
        (*rows)[told.id] = told.version;
        open->reset();
        ++acknowledged_;
      } else {
        *open = told;
      }
      if (--count == 0) ::kill(child_, SIGKILL);
    }
    ::close(from_child_);
    int exit_status = 0;
    return ::waitpid(child_, &exit_status, 0) == child_ && WIFSIGNALED(exit_status) &&
           WTERMSIG(exit_status) == SIGKILL;
  }
  int acknowledged() const { return acknowledged_; }

 private:
  pid_t child_ = -1;
  int from_child_ = -1;
  int acknowledged_ = 0;
};

class SealKill : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = (std::filesystem::temp_directory_path() / "cellar_seal_XXXXXX").string();
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<kv::Engine> Open() {
    engines::RocksOptions options;
    options.directory = directory_ + "/store";
    options.cache_bytes = 8 << 20;
    return Must(engines::OpenRocksEngine(options));
  }

  std::string directory_;
};

TEST_F(SealKill, AcknowledgedChangesSurviveAndPagesAgree) {
  {
    Store store(Open());
    TableDescriptor table;
    table.name = "sealed";
    table.layout = catalog::Layout::kPages;
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true),
                     MakeColumn(2, "version", TypeId::kInt4), MakeColumn(3, "x", TypeId::kText)};
    table.indexes = {MakePrimary("sealed_pkey", {{1}}), MakeIndex("sealed_version", {{2}}, true)};
    store.Create(table);
  }
  std::map<int, int> rows;
  int acknowledged = 0;
  size_t pages = 0;
  for (int round = 1; round <= 10; ++round) {
    SCOPED_TRACE(round);
    SealWriter writer(directory_ + "/store", round);
    const int told = SealWritesDurably(round) ? 60 + round * 20 : 400 + round * 100;
    std::optional<SealTold> open;
    ASSERT_TRUE(writer.KillAfter(told, &rows, &open));
    acknowledged += writer.acknowledged();

    Store store(Open());
    const TablePtr table = Must(FindSealTable(*store.catalog()->Current()));
    std::unique_ptr<kv::Transaction> transaction = store.engine()->Begin();
    EXPECT_EQ(Check(table, transaction.get()), std::vector<std::string>());
    Access access(transaction.get(), nullptr, store.tables());
    std::map<int, int> found;
    for (const Row& row : ScanRows(&access, SpecOf(table, table->primary()))) {
      found[std::stoi(*row[0])] = std::stoi(*row[1]);
      EXPECT_EQ(*row[2], SealTextOf(std::stoi(*row[0])));
    }
    if (open.has_value() && found[open->id] == open->version) rows[open->id] = open->version;
    std::erase_if(rows, [](const auto& row) { return row.second == 0; });
    std::erase_if(found, [](const auto& row) { return row.second == 0; });
    ASSERT_EQ(found, rows);
    pages = Must(Sealer(store.engine(), store.tables()).StateOf(table)).page_rows;
  }
  EXPECT_GT(acknowledged, 1000);
  EXPECT_GT(pages, 0u);
}

}  // namespace
}  // namespace cellar::table
