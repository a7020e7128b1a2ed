// What the protocol asks of the database: session::Session and session::Database as interfaces, so
// that frames can be tested without a store. Everything else here is written against these.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/auth/policy.h"
#include "cellar/session/session.h"

namespace cellar::pgwire {

// See session::Session for what each call means.
class Conversation {
 public:
  virtual ~Conversation() = default;
  virtual Status ExecuteSimple(std::string_view text, session::ResultSink* sink) = 0;
  virtual Status Parse(const std::string& name, std::string_view text,
                       std::span<const uint32_t> parameter_oids, session::ResultSink* sink) = 0;
  virtual Result<session::StatementDescription> DescribeStatement(const std::string& name) = 0;
  virtual Status Bind(const std::string& portal, const std::string& statement,
                      std::span<const session::BoundParameter> parameters) = 0;
  virtual Result<std::vector<session::ResultColumn>> DescribePortal(const std::string& portal,
                                                                    bool* returns_rows) = 0;
  virtual Result<session::ExecuteOutcome> ExecutePortal(const std::string& portal,
                                                        uint64_t max_rows, bool sync_follows,
                                                        session::ResultSink* sink) = 0;
  virtual Status CloseStatement(const std::string& name) = 0;
  virtual Status ClosePortal(const std::string& name) = 0;
  virtual Status Sync(session::ResultSink* sink) = 0;
  // An error that the protocol found: the transaction block fails.
  virtual void Fail() = 0;
  virtual char transaction_status() const = 0;
  virtual const FormatSettings& format() const = 0;
  virtual std::vector<std::pair<std::string, std::string>> ReportedParameters() const = 0;
  virtual int32_t pid() const = 0;
  virtual int32_t cancel_secret() const = 0;
  // Text of a value of a reg* type.
  virtual void AppendText(Datum value, Type type, std::string* out) = 0;
  // A setting's value in its unit; 0 when there is none.
  virtual int64_t SettingNumber(std::string_view name) = 0;
  // See session::Session. From any thread.
  virtual void ClientGone() = 0;
  virtual void SetWake(std::function<void()> wake) = 0;
  virtual bool ending() const = 0;
  // True while the client listens on a channel; and passes on what has come.
  virtual bool listening() const = 0;
  virtual Status TakeNotifications(session::ResultSink* sink) = 0;
};

// Thread-safe.
class Host : public auth::RoleDirectory {
 public:
  virtual Result<std::unique_ptr<Conversation>> Open(const session::SessionOptions& options) = 0;
  virtual bool Cancel(int32_t pid, int32_t secret) = 0;
  virtual bool IsSuperuser(std::string_view role) = 0;
};

// `database` outlives the host and its conversations.
std::unique_ptr<Host> MakeHost(session::Database* database);

}  // namespace cellar::pgwire
