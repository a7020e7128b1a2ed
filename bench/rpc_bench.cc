// The gRPC door beside a bare gRPC echo of the same sizes, in one process over loopback.
//
//   rpc_bench [DIRECTORY] [ROWS] [ETCD]   a store made there, by default in /tmp; 1,000,000 rows
//
// ETCD is the address of an etcd that runs by itself, one member, plain text, its data on the same
// disk: its Range of one key and its Put are measured in turn with ours.
//
// Prints calls a second of Get (one row of four columns) and of the echo by 1 and 16 callers, Put
// of one row with one index, and rows a second of a scan of the whole table through the client:
// medians of rounds that take turns.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "bench/echo.grpc.pb.h"
#include "bench/etcd.grpc.pb.h"
#include "cellar/client.h"
#include "cellar/pgwire/backend.h"
#include "cellar/rpc/server/server.h"
#include "cellar/session/discarding_sink.h"
#include "cellar/session/tables.h"
#include "cellar/store/open.h"

namespace cellar::bench {
namespace {

using Clock = std::chrono::steady_clock;

template <typename T>
T Check(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.status().ToString());
    std::exit(1);
  }
  return std::move(*result);
}
void Check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.ToString());
  std::exit(1);
}

class EchoService : public Echo::Service {
 public:
  grpc::Status Call(grpc::ServerContext*, const Payload* request, Payload* response) override {
    response->set_data(std::string(request->answer_bytes(), 'x'));
    return grpc::Status::OK;
  }
};

constexpr int kRounds = 5;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Calls a second of `callers` threads, each with a `make`() of its own to call.
struct Pace {
  double rate = 0;        // calls a second
  double cpu_micros = 0;  // a call, of the whole process: client and server
};

double ProcessMicros() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

template <typename Make>
Pace Rate(int callers, const Make& make) {
  constexpr std::chrono::seconds kTime{1};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> calls{0};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  const double cpu = ProcessMicros();
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      auto call = make(i);
      uint64_t done = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        call();
        ++done;
      }
      calls += done;
    });
  }
  std::this_thread::sleep_for(kTime);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const auto count = static_cast<double>(calls.load());
  return {count / std::chrono::duration<double>(Clock::now() - start).count(),
          (ProcessMicros() - cpu) / count};
}

// Calls to etcd of one row or key of about the sizes of ours.
class Etcd {
 public:
  explicit Etcd(const std::string& target) {
    for (size_t i = 0; i < ClientOptions().channels; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(etcdserverpb::KV::NewStub(
          grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments)));
    }
    for (int64_t key = 0; key < kKeys; ++key) Put(0, key);
  }
  void Put(size_t caller, int64_t key) {
    etcdserverpb::PutRequest request;
    etcdserverpb::PutResponse response;
    request.set_key(KeyOf(key));
    request.set_value(std::string(40, 'v'));
    grpc::ClientContext context;
    Done(stubs_[caller % stubs_.size()]->Put(&context, request, &response));
  }
  void Get(size_t caller, int64_t key) {
    etcdserverpb::RangeRequest request;
    etcdserverpb::RangeResponse response;
    request.set_key(KeyOf(key));
    grpc::ClientContext context;
    Done(stubs_[caller % stubs_.size()]->Range(&context, request, &response));
    if (response.kvs_size() != 1) std::exit(1);
  }
  static constexpr int64_t kKeys = 1000;

 private:
  static std::string KeyOf(int64_t key) { return fmt::format("/cellar/{:012}", key); }
  static void Done(const grpc::Status& status) {
    if (status.ok()) return;
    fmt::print(stderr, "etcd: {}\n", status.error_message());
    std::exit(1);
  }
  std::vector<std::unique_ptr<etcdserverpb::KV::Stub>> stubs_;
};

void Run(const std::string& directory, int64_t rows, const std::string& etcd_target) {
  std::filesystem::remove_all(directory);
  store::StoreOptions options;
  options.directory = directory;
  auto database = Check(store::OpenDatabase(options));
  auto embedded = Check(session::OpenTables(database.get(), {}));
  {
    auto session = Check(session::Session::Open(database.get(), {}));
    session::DiscardingSink quiet;
    Check(session->ExecuteSimple(
        "CREATE TABLE t (id bigint PRIMARY KEY, v int, name text, at timestamptz)", &quiet));
    Check(session->ExecuteSimple(
        fmt::format("INSERT INTO t SELECT i, i % 1000, 'name ' || i, '2024-01-01' FROM "
                    "generate_series(1, {}) i",
                    rows),
        &quiet));
    Check(session->ExecuteSimple("ALTER TABLE t SEAL", &quiet));
    Check(session->ExecuteSimple("CREATE TABLE w (id bigint PRIMARY KEY, v int)", &quiet));
    Check(session->ExecuteSimple("CREATE INDEX ON w (v)", &quiet));
  }
  auto host = pgwire::MakeHost(database.get());
  auto server = Check(rpc::Server::Start(
      {}, host.get(), [] { return auth::LoginPolicy{.trust_loopback = true}; },
      [&](const rpc::Identity& identity) {
        session::SessionOptions session;
        session.user = identity.user;
        session.database = identity.database;
        return session::OpenTables(database.get(), session);
      }));
  EchoService echo;
  grpc::ServerBuilder builder;
  int echo_port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &echo_port);
  builder.RegisterService(&echo);
  auto echo_server = builder.BuildAndStart();

  const std::string target = fmt::format("127.0.0.1:{}", server->port());
  auto remote = Check(Connect(target));
  auto table = Check(remote->OpenTable("/cellar/t"));
  // About what a Get of one row sends and gets.
  constexpr size_t kAskBytes = 120, kAnswerBytes = 150;
  // As many connections as the client has.
  std::vector<std::shared_ptr<grpc::Channel>> echo_channels;
  for (size_t i = 0; i < ClientOptions().channels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    echo_channels.push_back(grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", echo_port), grpc::InsecureChannelCredentials(), arguments));
  }
  for (int callers : {1, 16}) {
    // In turn, so that both meet the machine in the same state.
    std::vector<double> bare, get, ratios, bare_cpu, get_cpu;
    for (int round = 0; round < kRounds; ++round) {
      const Pace echo_pace = Rate(callers, [&](int i) {
        const auto& channel = echo_channels[static_cast<size_t>(i) % echo_channels.size()];
        return [stub = std::shared_ptr<Echo::Stub>(Echo::NewStub(channel)), ask = Payload(),
                answer = Payload()]() mutable {
          grpc::ClientContext context;
          ask.set_data(std::string(kAskBytes, 'a'));
          ask.set_answer_bytes(kAnswerBytes);
          if (!stub->Call(&context, ask, &answer).ok()) std::exit(1);
        };
      });
      const Pace get_pace = Rate(callers, [&](int i) {
        return
            [&, random = std::minstd_rand(static_cast<unsigned>(i) + 1), row = RowSet()]() mutable {
              Check(table->Get(
                  Key{static_cast<int64_t>(random() % static_cast<uint64_t>(rows)) + 1}, {}, &row));
              if (row.size() != 1) std::exit(1);
            };
      });
      bare.push_back(echo_pace.rate);
      get.push_back(get_pace.rate);
      bare_cpu.push_back(echo_pace.cpu_micros);
      get_cpu.push_back(get_pace.cpu_micros);
      ratios.push_back(get.back() / bare.back());
    }
    fmt::print(
        "{:2} callers: get {:8.0f}/s, echo {:8.0f}/s, ratio {:.2f} (goal 0.7); "
        "CPU {:.0f} and {:.0f} us a call, ratio {:.2f}\n",
        callers, Median(get), Median(bare), Median(ratios), Median(get_cpu), Median(bare_cpu),
        Median(bare_cpu) / Median(get_cpu));
  }
  auto local = Check(embedded->OpenTable("/cellar/t"));
  const Pace inside = Rate(1, [&](int) {
    return [&, random = std::minstd_rand(1), row = RowSet()]() mutable {
      Check(local->Get(Key{static_cast<int64_t>(random() % static_cast<uint64_t>(rows)) + 1}, {},
                       &row));
    };
  });
  fmt::print("in the program: get {:.0f}/s ({:.2f} us)\n", inside.rate, 1e6 / inside.rate);
  auto written = Check(remote->OpenTable("/cellar/w"));
  std::unique_ptr<Etcd> etcd;
  if (!etcd_target.empty()) etcd = std::make_unique<Etcd>(etcd_target);
  for (int callers : {1, 16}) {
    std::vector<double> put, etcd_put, etcd_get;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t first = (callers * kRounds + round) * int64_t{10000000};
      put.push_back(Rate(callers, [&](int i) {
                      return [&, n = first + int64_t{i} * 100000,
                              record = written->NewRecord()]() mutable {
                        record.Set(size_t{0}, n++);
                        record.Set(size_t{1}, n % 1000);
                        Check(written->Put(record).status());
                      };
                    }).rate);
      if (etcd == nullptr) continue;
      etcd_put.push_back(Rate(callers, [&](int i) {
                           return [&, i, n = first + int64_t{i} * 100000]() mutable {
                             etcd->Put(static_cast<size_t>(i), n++);
                           };
                         }).rate);
      etcd_get.push_back(Rate(callers, [&](int i) {
                           return [&, i, n = int64_t{0}]() mutable {
                             etcd->Get(static_cast<size_t>(i), n++ % Etcd::kKeys);
                           };
                         }).rate);
    }
    fmt::print("{:2} callers: durable put with one index {:8.0f}/s\n", callers, Median(put));
    if (etcd == nullptr) continue;
    fmt::print("{:2} callers: etcd put {:8.0f}/s, range of one key {:8.0f}/s\n", callers,
               Median(etcd_put), Median(etcd_get));
  }
  for (Table* from : {table.get(), local.get()}) {
    const auto start = Clock::now();
    auto scan = Check(from->Scan({}));
    int64_t seen = 0, sum = 0;
    while (const RowSet* batch = scan->NextBatch()) {
      for (Row row : *batch) sum += row.GetInt(1) + static_cast<int64_t>(row.GetText(2).size());
      seen += static_cast<int64_t>(batch->size());
    }
    Check(scan->status());
    if (seen != rows || sum == 0) std::exit(1);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print("scan of {} rows {}: {:.2f} million rows/s{}\n", seen,
               from == table.get() ? "through the client" : "in the program",
               static_cast<double>(seen) / seconds / 1e6, from == table.get() ? " (goal 1.5)" : "");
  }
  echo_server->Shutdown();
  written.reset();
  table.reset();
  local.reset();
  remote.reset();
  server.reset();
  embedded.reset();
  host.reset();
  database.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace cellar::bench

int main(int argc, char** argv) {
  cellar::bench::Run(argc > 1 ? argv[1] : "/tmp/cellar-rpc-bench",
                     argc > 2 ? std::atoll(argv[2]) : 1000000, argc > 3 ? argv[3] : "");
  return 0;
}
