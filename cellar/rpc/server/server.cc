#include "cellar/rpc/server/server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <fstream>
#include <sstream>

#include "cellar/monitor/log.h"
#include "cellar/rpc/server/calls.h"
#include "cellar/rpc/server/data_service.h"
#include "cellar/v1/auth.grpc.pb.h"

namespace cellar::rpc {
namespace {

constexpr int kMaxPollers = 16;

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) return InvalidError("could not read \"{}\"", path);
  return content.str();
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const ServerOptions& options) {
  if (!IsLoopback(options.host) && options.tls_client_ca.empty()) {
    return InvalidError("gRPC on \"{}\" needs certificates on both sides", options.host)
        .WithHint("Give --tls-cert, --tls-key and --grpc-client-ca, or listen on 127.0.0.1.");
  }
  if (options.tls_certificate.empty()) {
    if (options.tls_client_ca.empty()) return grpc::InsecureServerCredentials();
    return InvalidError("clients' certificates need one of the server")
        .WithHint("Give --tls-cert and --tls-key.");
  }
  grpc::SslServerCredentialsOptions tls(
      options.tls_client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  CELLAR_TRY_ASSIGN(std::string key, ReadFile(options.tls_key));
  CELLAR_TRY_ASSIGN(std::string certificate, ReadFile(options.tls_certificate));
  tls.pem_key_cert_pairs.push_back({std::move(key), std::move(certificate)});
  if (!options.tls_client_ca.empty()) {
    CELLAR_TRY_ASSIGN(tls.pem_root_certs, ReadFile(options.tls_client_ca));
    if (tls.pem_root_certs.find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
      return InvalidError("\"{}\" holds no certificate in PEM", options.tls_client_ca);
    }
  }
  return grpc::SslServerCredentials(tls);
}

class AuthService : public v1::Auth::Service {
 public:
  explicit AuthService(IdentityService* identities) : identities_(identities) {}

  grpc::Status StartScram(grpc::ServerContext* context, const v1::StartScramRequest* request,
                          v1::StartScramResponse* response) override {
    CallerClaims claims = ClaimsOf(*context);
    claims.user = request->user();
    claims.database = request->database();
    Result<IdentityService::Started> started =
        identities_->StartScram(claims, request->client_first());
    if (!started.ok()) {
      LogRefused(claims);
      return ToGrpc(started.status(), context);
    }
    response->set_exchange(std::move(started->exchange));
    response->set_server_first(std::move(started->server_first));
    return grpc::Status::OK;
  }

  grpc::Status FinishScram(grpc::ServerContext* context, const v1::FinishScramRequest* request,
                           v1::FinishScramResponse* response) override {
    CallerClaims claims = ClaimsOf(*context);
    Result<IdentityService::Finished> finished = identities_->FinishScram(
        claims, request->exchange(), request->client_final(), &claims.user);
    if (!finished.ok()) {
      LogRefused(claims);
      return ToGrpc(finished.status(), context);
    }
    response->set_server_final(std::move(finished->server_final));
    response->set_token(std::move(finished->token));
    return grpc::Status::OK;
  }

 private:
  IdentityService* identities_;
};

class GrpcServer : public Server {
 public:
  GrpcServer(const ServerOptions& options, auth::RoleDirectory* roles,
             std::function<auth::LoginPolicy()> policy, StoreFactory factory,
             const std::vector<ServiceFactory>& services)
      : identities_(roles, std::move(policy)),
        calls_(options, &identities_, std::move(factory)),
        auth_(&identities_),
        data_(MakeDataService(&calls_)) {
    for (const ServiceFactory& make : services) more_.push_back(make(&calls_));
  }
  ~GrpcServer() override { Stop(std::chrono::milliseconds(0)); }

  Status Listen() {
    static std::once_flag once;
    std::call_once(once, [] {
      gpr_set_log_function([](gpr_log_func_args* line) {
        const bool error = line->severity == GPR_LOG_SEVERITY_ERROR;
        monitor::Log(error ? monitor::LogLevel::kWarning : monitor::LogLevel::kInfo, "grpc",
                     {{"text", line->message}});
      });
      grpc::EnableDefaultHealthCheckService(true);
      grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    });
    const ServerOptions& options = calls_.options();
    CELLAR_TRY_ASSIGN(std::shared_ptr<grpc::ServerCredentials> credentials,
                      MakeCredentials(options));
    const std::string host = options.host == "*" ? "0.0.0.0" : options.host;
    const std::string address = fmt::format(
        "{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", options.port);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, credentials, &port);
    builder.RegisterService(&auth_);
    builder.RegisterService(data_.get());
    for (const auto& service : more_) builder.RegisterService(service.get());
    builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
    builder.SetMaxSendMessageSize(-1);
    // Threads that wait for calls, so that bursts need not make and end some each time.
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, kMaxPollers);
    // Two servers must not share a port by accident.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      server_.reset();
      return Status(Code::kUnavailable, fmt::format("cannot listen on {}", address));
    }
    grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
    for (const char* name : {"cellar.v1.Auth", "cellar.v1.Data"})
      health->SetServingStatus(name, true);
    if (!more_.empty()) health->SetServingStatus("cellar.v1.Admin", true);
    port_ = static_cast<uint16_t>(port);
    return Status();
  }

  uint16_t port() const override { return port_; }

  void Stop(std::chrono::milliseconds grace) override {
    if (server_ == nullptr) return;
    server_->GetHealthCheckService()->SetServingStatus(false);
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    server_.reset();
  }

 private:
  IdentityService identities_;
  Calls calls_;
  AuthService auth_;
  std::unique_ptr<grpc::Service> data_;
  std::vector<std::unique_ptr<grpc::Service>> more_;
  uint16_t port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                              auth::RoleDirectory* roles,
                                              std::function<auth::LoginPolicy()> policy,
                                              StoreFactory factory,
                                              const std::vector<ServiceFactory>& services) {
  auto server =
      std::make_unique<GrpcServer>(options, roles, std::move(policy), std::move(factory), services);
  CELLAR_TRY(server->Listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace cellar::rpc
