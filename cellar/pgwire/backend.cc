// The interfaces over a real database.
#include "cellar/pgwire/backend.h"

namespace cellar::pgwire {
namespace {

using session::ResultSink;

class SessionConversation : public Conversation {
 public:
  explicit SessionConversation(std::unique_ptr<session::Session> session)
      : session_(std::move(session)) {}

  Status ExecuteSimple(std::string_view text, ResultSink* sink) override {
    return session_->ExecuteSimple(text, sink);
  }
  Status Parse(const std::string& name, std::string_view text,
               std::span<const uint32_t> parameter_oids, ResultSink* sink) override {
    return session_->Parse(name, text, parameter_oids, sink);
  }
  Result<session::StatementDescription> DescribeStatement(const std::string& name) override {
    return session_->DescribeStatement(name);
  }
  Status Bind(const std::string& portal, const std::string& statement,
              std::span<const session::BoundParameter> parameters) override {
    return session_->Bind(portal, statement, parameters);
  }
  Result<std::vector<session::ResultColumn>> DescribePortal(const std::string& portal,
                                                            bool* returns_rows) override {
    return session_->DescribePortal(portal, returns_rows);
  }
  Result<session::ExecuteOutcome> ExecutePortal(const std::string& portal, uint64_t max_rows,
                                                bool sync_follows, ResultSink* sink) override {
    return session_->ExecutePortal(portal, max_rows, sync_follows, sink);
  }
  Status CloseStatement(const std::string& name) override { return session_->CloseStatement(name); }
  Status ClosePortal(const std::string& name) override { return session_->ClosePortal(name); }
  Status Sync(ResultSink* sink) override { return session_->Sync(sink); }
  void Fail() override { session_->Fail(); }
  char transaction_status() const override { return session_->transaction_status(); }
  const FormatSettings& format() const override { return session_->format(); }
  std::vector<std::pair<std::string, std::string>> ReportedParameters() const override {
    return session_->ReportedParameters();
  }
  int32_t pid() const override { return session_->pid(); }
  int32_t cancel_secret() const override { return session_->cancel_secret(); }
  void AppendText(Datum value, Type type, std::string* out) override {
    session_->AppendText(value, type, out);
  }
  int64_t SettingNumber(std::string_view name) override { return session_->SettingNumber(name); }
  void ClientGone() override { session_->ClientGone(); }
  void SetWake(std::function<void()> wake) override { session_->SetWake(std::move(wake)); }
  bool ending() const override { return session_->ending(); }
  bool listening() const override { return session_->listening(); }
  Status TakeNotifications(ResultSink* sink) override { return session_->TakeNotifications(sink); }

 private:
  std::unique_ptr<session::Session> session_;
};

class DatabaseHost : public Host {
 public:
  explicit DatabaseHost(session::Database* database) : database_(database) {}

  Result<std::unique_ptr<Conversation>> Open(const session::SessionOptions& options) override {
    CELLAR_TRY_ASSIGN(std::unique_ptr<session::Session> session,
                      session::Session::Open(database_, options));
    return std::unique_ptr<Conversation>(std::make_unique<SessionConversation>(std::move(session)));
  }
  bool Cancel(int32_t pid, int32_t secret) override { return database_->Cancel(pid, secret); }
  bool IsSuperuser(std::string_view role) override { return database_->IsSuperuser(role); }
  std::optional<std::string> PasswordVerifier(std::string_view role) override {
    return database_->PasswordVerifier(role);
  }
  bool RoleExists(std::string_view role) override { return database_->RoleExists(role); }
  bool IsMember(std::string_view user, std::string_view role) override {
    return database_->IsMember(user, role);
  }

 private:
  session::Database* database_;
};

}  // namespace

std::unique_ptr<Host> MakeHost(session::Database* database) {
  return std::make_unique<DatabaseHost>(database);
}

}  // namespace cellar::pgwire
