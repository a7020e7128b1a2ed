// Wiring, signals, and an orderly end.
#include "cellar/server/server.h"

#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "cellar/auth/hba.h"
#include "cellar/kv/store_header.h"
#include "cellar/pgwire/listener.h"

namespace cellar::server {
namespace {

constexpr const char* kDefaultUser = "cellar";
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
    return pgwire::TlsContext::Load(options.tls_certificate, options.tls_key);
  }
  if (options.tls_self_signed) return pgwire::TlsContext::SelfSigned(options.host);
  return std::shared_ptr<const pgwire::TlsContext>();
}

// The store's id, which nobody outside ever sees and a restart does not change.
std::string MockSecret(kv::Engine* engine) {
  kv::TransactionOptions options;
  options.read_only = true;
  std::unique_ptr<kv::Transaction> reader = engine->Begin(options);
  kv::PinnedValue value;
  Result<bool> found = reader->Get(kv::kStoreHeaderKey, &value, kv::ReadMode::kSnapshot);
  if (found.ok() && *found) {
    Result<kv::StoreHeader> header = kv::ParseStoreHeader(value.view());
    if (header.ok()) return std::string(header->store_id.begin(), header->store_id.end());
  }
  std::string secret(16, '\0');
  (void)!::getrandom(secret.data(), secret.size(), 0);
  return secret;
}

std::string UrlHost(const std::string& host) {
  if (host == "*" || host == "0.0.0.0" || host == "::") return "127.0.0.1";
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

void Log(const std::string& text) { std::fprintf(stderr, "cellar: %s\n", text.c_str()); }

// Where the rules are; empty: there are none.
std::string HbaPath(const ServeOptions& options) {
  if (!options.hba_file.empty() || options.store.directory.empty()) return options.hba_file;
  std::string path = options.store.directory + "/hba.conf";
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : std::string();
}

// Waits for a signal that ends the server, reading certificate and rules again meanwhile.
void WaitForEnd(const sigset_t& signals, const ServeOptions& options, const std::string& hba_path,
                pgwire::Listener* listener) {
  while (true) {
    int signal = 0;
    if (::sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) return;
    if (!hba_path.empty()) {
      auto rules = auth::HbaRules::Load(hba_path);
      if (rules.ok()) {
        listener->SetRules(*rules);
        Log("connection rules loaded");
      } else {
        Log("the connection rules stay as they were: " + rules.status().ToString());
      }
    }
    auto tls = MakeTls(options);
    if (tls.ok()) {
      listener->SetTls(*tls);
      Log("certificate loaded");
    } else {
      Log("the certificate stays as it was: " + tls.status().ToString());
    }
  }
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
  CELLAR_TRY_ASSIGN(std::shared_ptr<const pgwire::TlsContext> tls, MakeTls(options));
  CELLAR_TRY_ASSIGN(std::unique_ptr<session::Database> database,
                    store::OpenDatabase(options.store));
  const std::string hba_path = HbaPath(options);
  std::shared_ptr<const auth::HbaRules> rules;
  if (!hba_path.empty()) {
    CELLAR_TRY_ASSIGN(rules, auth::HbaRules::Load(hba_path));
  }
  std::unique_ptr<pgwire::Host> host = pgwire::MakeHost(database.get());
  pgwire::ListenerOptions listen;
  listen.host = options.host;
  listen.port = options.port;
  listen.tls = std::move(tls);
  listen.login.rules = rules;
  listen.max_connections = options.max_connections;
  listen.login.trust_loopback = !options.always_ask_password;
  listen.login.require_encryption_off_loopback = !options.allow_plaintext;
  listen.login.mock_secret = MockSecret(database->engine());
  CELLAR_TRY_ASSIGN(std::unique_ptr<pgwire::Listener> listener,
                    pgwire::Listener::Start(host.get(), listen));
  if (rules != nullptr) {
    Log("connection rules of \"" + hba_path + "\"");
  } else if (!options.always_ask_password) {
    Log("users of this machine need no password for roles that have none");
  }
  ready(fmt::format("postgresql://{}@{}:{}/{}", kDefaultUser, UrlHost(options.host),
                    listener->port(), kDefaultDatabase));
  WaitForEnd(signals, options, hba_path, listener.get());
  Log("shutting down");
  database->BeginShutdown();
  if (!listener->Stop(options.shutdown_grace)) Log("some connections had to be broken off");
  listener.reset();
  Status closed = database->engine()->Close();
  database.reset();
  if (closed.ok()) Log("the store is closed");
  return closed;
}

}  // namespace cellar::server
