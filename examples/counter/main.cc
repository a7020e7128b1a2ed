// Counters that many threads raise, and calls that may be sent twice but count once.
#include <cellar/db.h>
#include <cellar/table.h>

#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 4, kHits = 50;

cellar::Status Run(const char* directory) {
  CELLAR_TRY_ASSIGN(auto database, cellar::Database::Open(directory, {.durable = false}));
  CELLAR_TRY_ASSIGN(auto connection, database->Connect());
  CELLAR_TRY(connection->ExecuteScript(
      "DROP TABLE IF EXISTS counter; CREATE TABLE counter (name text PRIMARY KEY, hits bigint)"));
  CELLAR_TRY_ASSIGN(auto store, database->Tables());
  CELLAR_TRY_ASSIGN(auto counter, store->OpenTable("/cellar/counter"));

  std::vector<std::thread> threads;
  std::vector<cellar::Status> statuses(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int hit = 0; hit < kHits && statuses[static_cast<size_t>(i)].ok(); ++hit)
        statuses[static_cast<size_t>(i)] = counter->Increment({"page"}, "hits", 1).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const cellar::Status& status : statuses) CELLAR_TRY(status);

  // The answer to the first call is lost, say: the second one does nothing. Ids are remembered for
  // a day, so each call that is meant anew needs one that was never used: a UUID, say.
  std::random_device random;
  const std::string id = "visit 4711, " + std::to_string(random()) + std::to_string(random());
  const cellar::Table::RowChange change{{"page"}, {{"hits", 1000}}};
  const cellar::IncrementOptions once{.call = {.idempotency_id = id}};
  for (int attempt = 0; attempt < 2; ++attempt) {
    CELLAR_TRY_ASSIGN(auto result, counter->Increment(std::span(&change, 1), once));
    std::printf("repeated: %d\n", result.write.repeated ? 1 : 0);
  }
  CELLAR_TRY_ASSIGN(cellar::RowSet rows, counter->Get({"page"}, {"hits"}));
  std::printf("%lld hits\n", static_cast<long long>(rows[0].GetInt(0)));
  return cellar::Status();
}

}  // namespace

int main(int argc, char** argv) {
  const cellar::Status status = Run(argc > 1 ? argv[1] : "counter-store");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
