#include "cellar/rpc/client/channel.h"

#include <grpcpp/grpcpp.h>

#include <random>
#include <thread>

#include "cellar/auth/scram.h"
#include "cellar/auth/scram_client.h"
#include "cellar/base/sqlstate.h"
#include "cellar/rpc/wire/convert.h"
#include "cellar/v1/auth.grpc.pb.h"
#include "cellar/v1/data.pb.h"

namespace cellar::rpc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{5}, kLongestPause{200};
constexpr milliseconds kLoginTimeout{30000};
constexpr int kFirstReconnectMillis = 20, kLongestReconnectMillis = 200;
constexpr int kConnectTimeoutMillis = 5000;
constexpr int kKeepAliveMillis = 20000;

// Half to all of it, so that clients do not come in step.
milliseconds Jitter(milliseconds pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return pause / 2 + milliseconds(random() % static_cast<uint64_t>(pause.count() / 2 + 1));
}

}  // namespace

Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return Status();
  const auto& trailer = context.GetServerTrailingMetadata();
  if (const auto at = trailer.find(kErrorDetailKey); at != trailer.end()) {
    v1::ErrorDetail detail;
    if (detail.ParseFromArray(at->second.data(), static_cast<int>(at->second.size())) &&
        detail.code() != v1::ERROR_CODE_UNSPECIFIED) {
      return TakeError(detail);
    }
  }
  return TransportError(static_cast<int>(status.error_code()), status.error_message());
}

ChannelPool::ChannelPool(std::string target, ClientOptions options)
    : target_(std::move(target)), options_(std::move(options)) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!options_.ca.empty() || !options_.certificate.empty()) {
    credentials = grpc::SslCredentials({options_.ca, options_.key, options_.certificate});
  }
  for (size_t i = 0; i < std::max<size_t>(1, options_.channels); ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMillis);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMillis);
    // In spite of its name how long one attempt may take.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMillis);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveMillis);
    // Each its own connection: equal arguments would share one.
    arguments.SetInt("cellar.channel", static_cast<int>(i));
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels_.push_back(grpc::CreateCustomChannel(target_, credentials, arguments));
  }
}

ChannelPool::~ChannelPool() = default;

std::string ChannelPool::token() {
  std::lock_guard lock(mutex_);
  return token_;
}

void ChannelPool::Prepare(const Call& call, grpc::ClientContext* context) {
  context->AddMetadata("cellar-user", options_.user);
  context->AddMetadata("cellar-database", options_.database);
  if (std::string held = token(); !held.empty()) {
    context->AddMetadata("authorization", "Bearer " + held);
  }
  const milliseconds timeout =
      call.timeout > milliseconds(0) ? call.timeout : options_.default_timeout;
  if (timeout > milliseconds(0)) {
    context->set_deadline(std::chrono::system_clock::now() + timeout);
  }
}

Status ChannelPool::Login() {
  if (options_.password.empty()) return Status();
  const Clock::time_point end = Clock::now() + options_.retry_for;
  for (milliseconds pause = kFirstPause;; pause = std::min(kLongestPause, pause * 2)) {
    const auto try_once = [&]() -> Status {
      const auto stub = v1::Auth::NewStub(channels_[Next()]);
      auth::ScramClient scram(options_.password, auth::MakeScramNonce());
      v1::StartScramRequest start;
      v1::StartScramResponse started;
      start.set_user(options_.user);
      start.set_database(options_.database);
      start.set_client_first(scram.First());
      grpc::ClientContext first;
      first.set_deadline(std::chrono::system_clock::now() + kLoginTimeout);
      CELLAR_TRY(FromGrpc(stub->StartScram(&first, start, &started), first));
      v1::FinishScramRequest finish;
      v1::FinishScramResponse finished;
      finish.set_exchange(started.exchange());
      CELLAR_TRY_ASSIGN(std::string final, scram.Final(started.server_first()));
      finish.set_client_final(std::move(final));
      grpc::ClientContext second;
      second.set_deadline(std::chrono::system_clock::now() + kLoginTimeout);
      CELLAR_TRY(FromGrpc(stub->FinishScram(&second, finish, &finished), second));
      CELLAR_TRY(scram.Verify(finished.server_final()));
      std::lock_guard lock(mutex_);
      token_ = finished.token();
      return Status();
    };
    const Status status = try_once();
    if (status.code() != Code::kUnavailable || Clock::now() + pause > end) return status;
    std::this_thread::sleep_for(Jitter(pause));
  }
}

Status ChannelPool::Run(
    const Call& call,
    const std::function<grpc::Status(size_t channel, grpc::ClientContext*)>& send) {
  const Clock::time_point end = Clock::now() + options_.retry_for;
  bool logged_in_again = false;
  for (milliseconds pause = kFirstPause;; pause = std::min(kLongestPause, pause * 2)) {
    grpc::ClientContext context;
    Prepare(call, &context);
    const grpc::Status answer = send(Next(), &context);
    if (answer.ok()) return Status();
    const bool from_server = context.GetServerTrailingMetadata().count(kErrorDetailKey) != 0;
    Status status = FromGrpc(answer, context);
    if (answer.error_code() == grpc::StatusCode::UNAUTHENTICATED && !options_.password.empty() &&
        !logged_in_again) {
      logged_in_again = true;
      CELLAR_TRY(Login());
      continue;
    }
    if (status.code() != Code::kUnavailable || from_server) {
      // Past the deadline, or cancelled on the way: a change may have been made.
      if (call.changes && !from_server &&
          (answer.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
           answer.error_code() == grpc::StatusCode::CANCELLED)) {
        return SqlError(Code::kCommitUnknown, sqlstate::kStatementCompletionUnknown, "{}",
                        answer.error_message());
      }
      return status;
    }
    if (!call.safe_to_repeat) {
      if (!call.changes) return status;
      return SqlError(Code::kCommitUnknown, sqlstate::kStatementCompletionUnknown,
                      "the connection broke during a change: {}", answer.error_message())
          .WithHint("Give changes an idempotency id to have them sent again.");
    }
    if (Clock::now() + pause > end) return status;
    if (call.cancel != nullptr) CELLAR_TRY(call.cancel->Check());
    std::this_thread::sleep_for(Jitter(pause));
  }
}

}  // namespace cellar::rpc
