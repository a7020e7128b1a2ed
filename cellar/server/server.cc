// Wiring, signals, and an orderly end.
#include "cellar/server/server.h"

#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "cellar/auth/crypto.h"
#include "cellar/auth/hba.h"
#include "cellar/kv/store_header.h"
#include "cellar/monitor/exposition.h"
#include "cellar/monitor/http.h"
#include "cellar/monitor/log.h"
#include "cellar/pgwire/listener.h"
#include "cellar/rpc/admin/admin_service.h"
#include "cellar/rpc/server/server.h"
#include "cellar/server/start_checks.h"
#include "cellar/server/superuser_url.h"
#include "cellar/session/server_files.h"
#include "cellar/session/tables.h"

namespace cellar::server {
namespace {

using monitor::Log;
using monitor::LogLevel;

constexpr const char* kDefaultDatabase = "cellar";

// Blocks the signals that Serve waits for; threads started from here on inherit that.
sigset_t BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// A connection is a file descriptor, and a store some hundreds.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::shared_ptr<const pgwire::TlsContext>> MakeTls(const ServeOptions& options) {
  if (!options.tls_certificate.empty()) {
    CELLAR_TRY(CheckKeyFile(options.tls_key, ::geteuid()));
    return pgwire::TlsContext::Load(options.tls_certificate, options.tls_key);
  }
  if (options.tls_self_signed) return pgwire::TlsContext::SelfSigned(options.host);
  return std::shared_ptr<const pgwire::TlsContext>();
}

std::optional<kv::StoreHeader> ReadHeader(kv::Engine* engine) {
  kv::TransactionOptions options;
  options.read_only = true;
  std::unique_ptr<kv::Transaction> reader = engine->Begin(options);
  kv::PinnedValue value;
  Result<bool> found = reader->Get(kv::kStoreHeaderKey, &value, kv::ReadMode::kSnapshot);
  if (!found.ok() || !*found) return std::nullopt;
  Result<kv::StoreHeader> header = kv::ParseStoreHeader(value.view());
  return header.ok() ? std::optional(*header) : std::nullopt;
}

// The store's id, which nobody outside ever sees and a restart does not change.
std::string MockSecret(const std::optional<kv::StoreHeader>& header) {
  if (header) return std::string(header->store_id.begin(), header->store_id.end());
  std::string secret(16, '\0');
  (void)!::getrandom(secret.data(), secret.size(), 0);
  return secret;
}

std::string UrlHost(const std::string& host) {
  if (host == "*" || host == "0.0.0.0" || host == "::") return "127.0.0.1";
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

// What clients of this machine connect to.
std::string Authority(const std::string& host, uint16_t port) {
  return fmt::format("{}:{}", UrlHost(host), port);
}

// What is listened on.
std::string Address(const std::string& host, uint16_t port) {
  return fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Absolute, without a slash at its end.
std::string AbsoluteDirectory(const std::string& directory) {
  std::error_code error;
  std::string path = std::filesystem::absolute(directory, error).lexically_normal().string();
  if (error) return directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Where the rules are; empty: there are none.
std::string HbaPath(const ServeOptions& options) {
  if (!options.hba_file.empty() || options.store.directory.empty()) return options.hba_file;
  std::string path = options.store.directory + "/hba.conf";
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : std::string();
}

// Who may come in, as the doors ask for it. Thread-safe but for `policy`.
struct LoginRules {
  auth::LoginPolicy policy;
  mutable std::mutex mutex;
  auth::LoginPolicy Now() const {
    std::lock_guard lock(mutex);
    return policy;
  }
  void Set(std::shared_ptr<const auth::HbaRules> rules) {
    std::lock_guard lock(mutex);
    policy.rules = std::move(rules);
  }
};

Result<std::shared_ptr<const auth::HbaRules>> LoadRules(const std::string& path) {
  CELLAR_TRY(CheckRulesFile(path));
  CELLAR_TRY_ASSIGN(std::shared_ptr<const auth::HbaRules> rules, auth::HbaRules::Load(path));
  std::string trusting;
  for (const auth::HbaRule& rule : rules->rules()) {
    if (rule.method != auth::HbaMethod::kTrust) continue;
    trusting += fmt::format("{}{}", trusting.empty() ? "" : " ", rule.line);
  }
  Log("connection rules loaded",
      {{"file", path}, {"rules", std::to_string(rules->rules().size())}});
  if (!trusting.empty()) {
    Log(LogLevel::kWarning, "some connection rules ask for no password", {{"lines", trusting}});
  }
  return rules;
}

// Who may come in, for the log. With rules, LoadRules has said it.
void LogLogins(const ServeOptions& options, bool rules, const SuperuserUrl& superuser) {
  if (options.trust_local) {
    Log(LogLevel::kWarning,
        "local connections need no password for roles that have none (--trust-local)");
  } else if (!rules) {
    Log("every connection needs a password");
  }
  if (options.allow_plaintext && !rules && !IsLoopback(options.host)) {
    Log(LogLevel::kWarning, "other machines may connect without TLS (--allow-plaintext)");
  }
  if (superuser.stale) {
    Log("a file was removed whose password is not the superuser's", {{"file", superuser.path}});
  }
  const monitor::LogFields where = {{"superuser", superuser.user}, {"file", superuser.path}};
  if (superuser.secret == SuperuserSecret::kMade) {
    Log("a password was made for the superuser; the URL with it is in a file", where);
  } else if (superuser.secret == SuperuserSecret::kKept) {
    Log("the superuser's URL is in a file", where);
  } else if (superuser.verifier.empty() && !options.trust_local && !rules) {
    Log(LogLevel::kWarning, "the superuser cannot log in", {{"superuser", superuser.user}});
  }
}

void LogDoors(const ServeOptions& options, uint16_t port, const rpc::Server* grpc,
              const monitor::HttpServer* http) {
  const char* const grpc_tls = options.tls_certificate.empty() ? "off" : "on";
  const char* const tls = options.tls_self_signed ? "on" : grpc_tls;
  Log("PostgreSQL's protocol is served", {{"address", Address(options.host, port)}, {"tls", tls}});
  if (grpc != nullptr) {
    Log("gRPC is served", {{"address", Address(options.grpc_host, grpc->port())},
                           {"tls", grpc_tls},
                           {"login", options.grpc_client_ca.empty() ? "as for PostgreSQL's protocol"
                                                                    : "by certificate"}});
  }
  if (http != nullptr) {
    Log("HTTP is served",
        {{"address", Address(options.http_host, http->port())}, {"tls", "off"}, {"login", "none"}});
  }
}

Status LimitFiles(const ServeOptions& options, session::Database* database) {
  CELLAR_TRY_ASSIGN(session::ServerFiles files,
                    session::ServerFiles::Below(options.copy_directories));
  CELLAR_TRY(CheckCopyDirectories(options.copy_directories, options.store.directory));
  session::LimitServerFiles(database, std::move(files));
  std::string list;
  for (const std::string& directory : options.copy_directories) {
    list += fmt::format("{}{}", list.empty() ? "" : " ", directory);
  }
  if (list.empty()) {
    Log("COPY and BACKUP use no files of this machine");
  } else {
    Log("COPY and BACKUP may use files of this machine", {{"directories", list}});
  }
  return Status();
}

session::SessionOptions SessionOf(const rpc::Identity& identity) {
  session::SessionOptions session;
  session.user = identity.user;
  session.database = identity.database;
  session.client_address = identity.address;
  return session;
}

Result<std::unique_ptr<rpc::Server>> StartGrpc(const ServeOptions& options,
                                               session::Database* database, pgwire::Host* host,
                                               const LoginRules* login,
                                               monitor::DoorMeters* meters) {
  rpc::ServerOptions grpc;
  grpc.host = options.grpc_host;
  grpc.port = options.grpc_port;
  grpc.tls_certificate = options.tls_certificate;
  grpc.tls_key = options.tls_key;
  grpc.tls_client_ca = options.grpc_client_ca;
  grpc.meters = meters;
  return rpc::Server::Start(
      grpc, host, [login] { return login->Now(); },
      [database](const rpc::Identity& identity) {
        return session::OpenTables(database, SessionOf(identity));
      },
      {rpc::AdminServiceFactory([database](const rpc::Identity& identity) {
        return session::Session::Open(database, SessionOf(identity));
      })});
}

// Waits for a signal that ends the server, reading certificate and rules again meanwhile.
void WaitForEnd(const sigset_t& signals, const ServeOptions& options, const std::string& hba_path,
                LoginRules* login, pgwire::Listener* listener) {
  while (true) {
    int signal = 0;
    if (::sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) return;
    if (!hba_path.empty()) {
      auto rules = LoadRules(hba_path);
      if (rules.ok()) {
        listener->SetRules(*rules);
        login->Set(*rules);
      } else {
        Log(LogLevel::kError, "the connection rules stay as they were",
            {{"reason", rules.status().ToString()}});
      }
    }
    auto tls = MakeTls(options);
    if (tls.ok()) {
      listener->SetTls(*tls);
      Log("certificate loaded");
    } else {
      Log(LogLevel::kError, "the certificate stays as it was",
          {{"reason", tls.status().ToString()}});
    }
  }
}

std::vector<monitor::Reading> ReadEngine(session::Database* database) {
  const kv::EngineStats stats = database->engine()->stats();
  const auto counter = [](const char* name, const char* help, uint64_t value) {
    return monitor::Reading{name, help, true, static_cast<double>(value)};
  };
  const auto gauge = [](const char* name, const char* help, uint64_t value) {
    return monitor::Reading{name, help, false, static_cast<double>(value)};
  };
  return {
      counter("cellar_transactions_total", "Transactions begun.", stats.begins),
      counter("cellar_engine_trips_total", "Calls that reached the engine.", stats.trips),
      counter("cellar_commits_total", "Commits with writes.", stats.commits),
      counter("cellar_conflicts_total", "Commits refused because of others.", stats.conflicts),
      counter("cellar_retries_total", "Requests run again by the server after a conflict.",
              database->retries()),
      counter("cellar_log_writes_total", "Writes to the log, of one or more commits each.",
              stats.groups),
      counter("cellar_log_syncs_total", "Syncs of the log.", stats.synced_groups),
      counter("cellar_lock_waits_total", "Waits for row locks.", stats.lock_waits),
      counter("cellar_deadlocks_total", "Deadlocks broken.", stats.deadlocks),
      gauge("cellar_cache_bytes", "Block cache in use.", stats.cache_bytes),
      gauge("cellar_memory_bytes", "Caches and write buffers of the engine.", stats.memory_bytes),
      gauge("cellar_disk_bytes", "Live files of the store.", stats.disk_bytes),
  };
}

// While the server goes down: names, once the grace is over, the sessions whose statements do not
// look whether to stop, and ends the process when they still run kGracesToEnd times as late. What
// was acknowledged is on disk by then; the store opens as after a crash.
class EndWatch {
 public:
  EndWatch(session::Database* database, std::chrono::milliseconds grace)
      : thread_([this, database, grace] { Run(database, grace); }) {}
  ~EndWatch() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  static constexpr int kGracesToEnd = 6;

  void Run(session::Database* database, std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    for (int graces = 1;; ++graces) {
      if (changed_.wait_for(lock, grace, [this] { return ended_; })) return;
      for (const std::string& session : database->RunningSessions()) {
        Log(LogLevel::kWarning, "a session still runs its statement", {{"session", session}});
      }
      if (graces < kGracesToEnd) continue;
      Log(LogLevel::kError, "the process ends without waiting for them");
      std::_Exit(1);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;  // last: it uses the others
};

monitor::HttpRoutes OperatorRoutes(session::Database* database,
                                   std::vector<const monitor::DoorMeters*> doors,
                                   const std::atomic<bool>* stopping) {
  monitor::HttpRoutes routes;
  routes["/metrics"] = [database, doors] {
    return monitor::HttpAnswer{200, "text/plain; version=0.0.4; charset=utf-8",
                               monitor::RenderMetrics(doors, ReadEngine(database))};
  };
  routes["/healthz"] = [] { return monitor::HttpAnswer{200, "text/plain", "ok\n"}; };
  routes["/readyz"] = [database, stopping] {
    if (stopping->load()) return monitor::HttpAnswer{503, "text/plain", "shutting down\n"};
    kv::TransactionOptions options;
    options.read_only = true;
    kv::PinnedValue value;
    const Result<bool> found = database->engine()->Begin(options)->Get(kv::kStoreHeaderKey, &value,
                                                                       kv::ReadMode::kSnapshot);
    if (!found.ok()) return monitor::HttpAnswer{503, "text/plain", "the store does not answer\n"};
    return monitor::HttpAnswer{200, "text/plain", "ok\n"};
  };
  return routes;
}

}  // namespace

Result<std::pair<std::string, uint16_t>> ParseListenAddress(std::string_view text) {
  std::string_view host, port = text;
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return InvalidError("write an IPv6 address in brackets: \"[{}]:{}\"", host, port);
  }
  uint16_t number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || parsed.ec != std::errc() || parsed.ptr != port.data() + port.size()) {
    return InvalidError("\"{}\" is not an address to listen on; write HOST:PORT", text);
  }
  return std::pair(host.empty() ? std::string("127.0.0.1") : std::string(host), number);
}

Status Serve(const ServeOptions& options,
             const std::function<void(const std::string& url)>& ready) {
  const sigset_t signals = BlockSignals();
  RaiseFileLimit();
  const std::string directory = AbsoluteDirectory(options.store.directory);
  Log("starting",
      {{"version", CELLAR_VERSION}, {"store", directory}, {"process", std::to_string(::getpid())}});
  CELLAR_TRY(CheckStoreDirectory(directory, ::geteuid()));
  const std::string hba_path = HbaPath(options);
  if (options.trust_local && !hba_path.empty()) {
    return InvalidError("--trust-local has no effect beside the connection rules of \"{}\"",
                        hba_path)
        .WithHint("Let the rules trust whom you mean, or leave --trust-local away.");
  }
  CELLAR_TRY_ASSIGN(std::shared_ptr<const pgwire::TlsContext> tls, MakeTls(options));
  if (options.superuser_reserved_connections >= options.max_connections) {
    return InvalidError(
        "superuser_reserved_connections ({}) must be less than max_connections ({})",
        options.superuser_reserved_connections, options.max_connections);
  }
  // Before there are threads: each takes from what the process has only a few of.
  CELLAR_TRY(auth::ReadyCrypto());
  store::StoreOptions store = options.store;
  store.max_connections = options.max_connections;
  store.superuser_reserved_connections = options.superuser_reserved_connections;
  CELLAR_TRY_ASSIGN(std::unique_ptr<session::Database> database, store::OpenDatabase(store));
  const std::optional<kv::StoreHeader> header = ReadHeader(database->engine());
  Log("the store is open", {{"format", header ? std::to_string(header->format_version) : "?"}});
  for (const std::string& warning : StartWarnings(directory, ::geteuid()))
    Log(LogLevel::kWarning, warning);
  CELLAR_TRY(LimitFiles(options, database.get()));
  LoginRules login;
  login.policy.trust_loopback = options.trust_local;
  login.policy.require_encryption_off_loopback = !options.allow_plaintext;
  login.policy.mock_secret = MockSecret(header);
  if (!hba_path.empty()) {
    CELLAR_TRY_ASSIGN(login.policy.rules, LoadRules(hba_path));
  }
  CELLAR_TRY_ASSIGN(const SuperuserUrl superuser,
                    PrepareSuperuserUrl(database.get(), directory, !options.trust_local,
                                        Authority(options.host, options.port), kDefaultDatabase));
  // Nobody chose it, so who wants no passwords is not asked for it.
  if (superuser.secret != SuperuserSecret::kNone) login.policy.made_verifier = superuser.verifier;
  LogLogins(options, login.policy.rules != nullptr, superuser);
  std::unique_ptr<pgwire::Host> host = pgwire::MakeHost(database.get());
  pgwire::ListenerOptions listen;
  listen.host = options.host;
  listen.port = options.port;
  listen.tls = std::move(tls);
  listen.max_connections = static_cast<size_t>(options.max_connections);
  listen.reserved_connections = static_cast<size_t>(options.superuser_reserved_connections);
  listen.login = login.policy;
  monitor::DoorMeters sql_meters("sql"), table_meters("table");
  listen.meters = &sql_meters;
  CELLAR_TRY_ASSIGN(std::unique_ptr<pgwire::Listener> listener,
                    pgwire::Listener::Start(host.get(), listen));
  std::unique_ptr<rpc::Server> grpc;
  if (!options.grpc_host.empty()) {
    CELLAR_TRY_ASSIGN(grpc, StartGrpc(options, database.get(), host.get(), &login, &table_meters));
  }
  std::atomic<bool> stopping{false};
  std::unique_ptr<monitor::HttpServer> http;
  if (!options.http_host.empty()) {
    CELLAR_TRY_ASSIGN(http,
                      monitor::HttpServer::Start(
                          options.http_host, options.http_port,
                          OperatorRoutes(database.get(), {&sql_meters, &table_meters}, &stopping)));
  }
  const std::string authority = Authority(options.host, listener->port());
  // The secret opens the store at any address: a full disk does not keep the doors shut.
  const Status updated = UpdateSuperuserUrl(superuser, authority, kDefaultDatabase);
  if (!updated.ok()) {
    Log(LogLevel::kWarning, "the superuser's URL names another address",
        {{"reason", updated.ToString()}});
  }
  LogDoors(options, listener->port(), grpc.get(), http.get());
  ready(fmt::format("postgresql://{}@{}/{}", PercentEncoded(superuser.user), authority,
                    kDefaultDatabase));
  if (grpc != nullptr) ready("grpc://" + Authority(options.grpc_host, grpc->port()));
  if (http != nullptr) {
    ready(fmt::format("http://{}/metrics", Authority(options.http_host, http->port())));
  }
  WaitForEnd(signals, options, hba_path, &login, listener.get());
  Log("shutting down");
  stopping.store(true);
  std::optional<EndWatch> watch;
  watch.emplace(database.get(), options.shutdown_grace);
  database->BeginShutdown();
  if (grpc != nullptr) grpc->Stop(options.shutdown_grace / 2);
  if (!listener->Stop(options.shutdown_grace)) {
    Log(LogLevel::kWarning, "some connections had to be broken off");
  }
  watch.reset();
  listener.reset();
  grpc.reset();
  http.reset();
  Status closed = database->engine()->Close();
  database.reset();
  if (closed.ok()) Log("the store is closed");
  return closed;
}

}  // namespace cellar::server
