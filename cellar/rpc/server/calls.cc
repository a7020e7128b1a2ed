#include "cellar/rpc/server/calls.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/monitor/log.h"
#include "cellar/rpc/wire/convert.h"
#include "cellar/v1/data.pb.h"

namespace cellar::rpc {
namespace {

constexpr std::chrono::milliseconds kWatchInterval{20};
constexpr size_t kMaxStores = 1000;

// "ipv4:127.0.0.1:5555", "ipv6:%5B::1%5D:5555", "ipv6:[::1]:5555", "unix:path".
std::string AddressOf(std::string peer) {
  const auto erase = [&](std::string_view part) {
    for (size_t at; (at = peer.find(part)) != std::string::npos;) peer.erase(at, part.size());
  };
  if (peer.rfind("unix", 0) == 0) return "127.0.0.1";
  const size_t scheme = peer.find(':'), port = peer.rfind(':');
  if (scheme == std::string::npos || port <= scheme) return peer;
  peer = peer.substr(scheme + 1, port - scheme - 1);
  for (std::string_view part : {"%5B", "%5D", "%5b", "%5d", "[", "]", "::ffff:"}) {
    if (part != "::ffff:" || peer.rfind(part, 0) == 0) erase(part);
  }
  return peer;
}

std::string Metadata(const grpc::ServerContext& context, const char* name) {
  const auto at = context.client_metadata().find(name);
  if (at == context.client_metadata().end()) return "";
  return std::string(at->second.data(), at->second.size());
}

}  // namespace

CallerClaims ClaimsOf(const grpc::ServerContext& context) {
  CallerClaims claims;
  claims.address = AddressOf(context.peer());
  claims.loopback = claims.address == "::1" || claims.address.rfind("127.", 0) == 0;
  claims.user = Metadata(context, "cellar-user");
  claims.database = Metadata(context, "cellar-database");
  const std::string authorization = Metadata(context, "authorization");
  if (authorization.rfind("Bearer ", 0) == 0) claims.token = authorization.substr(7);
  const std::shared_ptr<const grpc::AuthContext> secure = context.auth_context();
  if (secure == nullptr) return claims;
  for (const grpc::string_ref& kind : secure->FindPropertyValues("transport_security_type")) {
    if (kind == "ssl") claims.encrypted = true;
  }
  if (claims.encrypted && secure->IsPeerAuthenticated()) {
    for (const grpc::string_ref& name : secure->FindPropertyValues("x509_common_name")) {
      claims.certificate_name = std::string(name.data(), name.size());
    }
  }
  return claims;
}

void LogRefused(const CallerClaims& claims) {
  const std::string user =
      claims.user.empty() ? claims.certificate_name.value_or("cellar") : claims.user;
  monitor::Log(monitor::LogLevel::kWarning, "login refused",
               {{"door", "grpc"},
                {"user", user},
                {"database", claims.database.empty() ? "cellar" : claims.database},
                {"from", claims.address}});
}

grpc::Status ToGrpc(const Status& given, grpc::ServerContext* context) {
  if (given.ok()) return grpc::Status::OK;
  // We stop, and not because the caller has asked for it.
  const bool stopping =
      given.code() == Code::kCancelled && given.sqlstate() == sqlstate::kAdminShutdown;
  const Status status = stopping ? Status(Code::kUnavailable, std::string(given.message()))
                                       .WithSqlState(sqlstate::kAdminShutdown)
                                 : given;
  v1::ErrorDetail detail;
  PutError(status, &detail);
  context->AddTrailingMetadata(kErrorDetailKey, detail.SerializeAsString());
  auto code = static_cast<grpc::StatusCode>(GrpcCodeOf(status));
  if (code == grpc::StatusCode::CANCELLED &&
      context->deadline() <= std::chrono::system_clock::now()) {
    code = grpc::StatusCode::DEADLINE_EXCEEDED;
  }
  v1::RpcStatus standard;
  standard.set_code(static_cast<int>(code));
  standard.set_message(std::string(status.message()));
  standard.add_details()->PackFrom(detail);
  return grpc::Status(code, std::string(status.message()), standard.SerializeAsString());
}

std::chrono::milliseconds TimeLeft(const grpc::ServerContext& context) {
  const auto deadline = context.deadline();
  const auto now = std::chrono::system_clock::now();
  if (deadline >= now + std::chrono::hours(24 * 365)) return std::chrono::milliseconds(0);
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now));
}

// ---- CallWatcher ----

CallWatcher::CallWatcher() : thread_([this] { Loop(); }) {}

CallWatcher::~CallWatcher() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CallWatcher::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (watched_.empty()) {
      wake_.wait(lock);
      continue;
    }
    wake_.wait_for(lock, kWatchInterval);
    for (const auto& [context, token] : watched_) {
      if (context->IsCancelled()) token->Cancel(CancelToken::Reason::kUser);
    }
  }
}

CallWatcher::Watch::Watch(CallWatcher* watcher, grpc::ServerContext* context, CancelToken* token)
    : watcher_(watcher), entry_(context, token) {
  std::lock_guard lock(watcher_->mutex_);
  watcher_->watched_.insert(entry_);
  if (watcher_->watched_.size() == 1) watcher_->wake_.notify_one();
}

CallWatcher::Watch::~Watch() {
  std::lock_guard lock(watcher_->mutex_);
  watcher_->watched_.erase(entry_);
}

// ---- Calls ----

Calls::Calls(const ServerOptions& options, IdentityService* identities, StoreFactory factory)
    : options_(options),
      identities_(identities),
      factory_(std::move(factory)),
      transactions_(options.max_transactions) {}

Result<Identity> Calls::Identify(const grpc::ServerContext& context, std::string database) {
  CallerClaims claims = ClaimsOf(context);
  if (!database.empty()) claims.database = std::move(database);
  Result<Identity> identity = identities_->Identify(claims);
  if (identity.ok()) return identity;
  if (meters() != nullptr) meters()->logins_refused.fetch_add(1, std::memory_order_relaxed);
  LogRefused(claims);
  return identity;
}

Result<Calls::Caller> Calls::Admit(const grpc::ServerContext& context) {
  Caller caller;
  CELLAR_TRY_ASSIGN(caller.identity, Identify(context));
  const std::pair key(caller.identity.user, caller.identity.database);
  {
    std::lock_guard lock(mutex_);
    if (const auto at = stores_.find(key); at != stores_.end()) {
      caller.store = at->second;
      return caller;
    }
  }
  // Opening takes a while: others need not wait for it.
  CELLAR_TRY_ASSIGN(std::shared_ptr<TableStore> opened, factory_(caller.identity));
  std::lock_guard lock(mutex_);
  caller.store = stores_.emplace(key, std::move(opened)).first->second;
  if (stores_.size() > kMaxStores) {
    // Any that no call uses now: the next call opens it again.
    const auto idle = std::find_if(stores_.begin(), stores_.end(),
                                   [](const auto& entry) { return entry.second.use_count() == 1; });
    if (idle != stores_.end()) stores_.erase(idle);
  }
  return caller;
}

}  // namespace cellar::rpc
