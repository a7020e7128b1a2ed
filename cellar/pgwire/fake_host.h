// A database for tests of the protocol: a few made-up statements, no store.
//
//   rows N        two columns, n int4 and t text (NULL in every third row), N rows
//   one           one row of every interesting type
//   boom          an error with every field
//   fatal         57P01
//   begin, end    a transaction block
//   copyin        COPY FROM STDIN; the tag counts lines
//   copyout N     COPY TO STDOUT of N lines
//   notice        a notice, then a changed parameter
//   sleep         runs until it is cancelled
//   params        one row: the parameters as they came ("t:abc", "b:3 bytes", NULL)
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/pgwire/backend.h"
#include "cellar/pgwire/errors.h"

namespace cellar::pgwire {

class FakeHost;

class FakeConversation : public Conversation {
 public:
  FakeConversation(FakeHost* host, int32_t pid) : host_(host), pid_(pid) {}
  ~FakeConversation() override;

  Status ExecuteSimple(std::string_view text, session::ResultSink* sink) override {
    if (text.find_first_not_of(" ;\n") == std::string_view::npos) return sink->OnEmptyQuery();
    while (!text.empty()) {
      const size_t end = text.find(';');
      CELLAR_TRY(Run(std::string(text.substr(0, end)), {}, 0, true, sink).status());
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return Status();
  }
  Status Parse(const std::string& name, std::string_view text, std::span<const uint32_t> oids,
               session::ResultSink*) override {
    statements_[name] = {std::string(text), std::vector<uint32_t>(oids.begin(), oids.end())};
    if (text == "bad syntax") return SqlError(Code::kInvalid, "42601", "syntax error");
    return Status();
  }
  Result<session::StatementDescription> DescribeStatement(const std::string& name) override {
    auto at = statements_.find(name);
    if (at == statements_.end()) return SqlError(Code::kNotFound, "26000", "no such statement");
    session::StatementDescription description;
    description.parameter_oids = at->second.oids;
    description.columns = ColumnsOf(at->second.text);
    description.returns_rows = !description.columns.empty();
    return description;
  }
  Status Bind(const std::string& portal, const std::string& statement,
              std::span<const session::BoundParameter> parameters) override {
    auto at = statements_.find(statement);
    if (at == statements_.end()) return SqlError(Code::kNotFound, "26000", "no such statement");
    if (parameters.size() != at->second.oids.size()) {
      return SqlError(Code::kInvalid, "08P01", "bind message supplies {} parameters, not {}",
                      parameters.size(), at->second.oids.size());
    }
    Portal& made = portals_[portal];
    made = {at->second.text, {}, 0};
    for (const session::BoundParameter& parameter : parameters) {
      made.parameters.push_back(parameter.is_null ? "NULL"
                                : parameter.binary
                                    ? fmt::format("b:{} bytes", parameter.bytes.size())
                                    : "t:" + std::string(parameter.bytes));
    }
    return Status();
  }
  Result<std::vector<session::ResultColumn>> DescribePortal(const std::string& portal,
                                                            bool* returns_rows) override {
    auto at = portals_.find(portal);
    if (at == portals_.end()) return SqlError(Code::kNotFound, "34000", "no such portal");
    std::vector<session::ResultColumn> columns = ColumnsOf(at->second.text);
    *returns_rows = !columns.empty();
    return columns;
  }
  Result<session::ExecuteOutcome> ExecutePortal(const std::string& portal, uint64_t max_rows,
                                                bool sync_follows,
                                                session::ResultSink* sink) override {
    auto at = portals_.find(portal);
    if (at == portals_.end()) return SqlError(Code::kNotFound, "34000", "no such portal");
    last_sync_follows = sync_follows;
    return Run(at->second.text, at->second.parameters, max_rows, false, sink, &at->second.sent);
  }
  Status CloseStatement(const std::string& name) override {
    statements_.erase(name);
    return Status();
  }
  Status ClosePortal(const std::string& name) override {
    portals_.erase(name);
    return Status();
  }
  Status Sync(session::ResultSink*) override {
    if (!in_block_) portals_.clear();
    return Status();
  }
  void Fail() override { failed_ = in_block_; }
  char transaction_status() const override { return !in_block_ ? 'I' : failed_ ? 'E' : 'T'; }
  const FormatSettings& format() const override { return format_; }
  std::vector<std::pair<std::string, std::string>> ReportedParameters() const override {
    return {{"server_version", "15.0"}, {"client_encoding", "UTF8"}};
  }
  int32_t pid() const override { return pid_; }
  int32_t cancel_secret() const override { return pid_ * 7 + 1; }
  void AppendText(Datum value, Type, std::string* out) override {
    out->append(fmt::format("reg{}", value.int_value()));
  }
  int64_t SettingNumber(std::string_view) override { return 0; }
  bool listening() const override { return false; }
  void ClientGone() override {
    gone_ = true;
    Cancel();
  }
  void SetWake(std::function<void()> wake) override {
    std::lock_guard lock(wake_mutex_);
    wake_ = std::move(wake);
  }
  bool ending() const override { return ending_; }
  // As pg_terminate_backend.
  void End() {
    ending_ = true;
    Cancel();
    std::lock_guard lock(wake_mutex_);
    if (wake_) wake_();
  }
  Status TakeNotifications(session::ResultSink*) override { return Status(); }
  void Cancel() { cancelled_ = true; }

  bool last_sync_follows = false;

 private:
  struct Statement {
    std::string text;
    std::vector<uint32_t> oids;
  };
  struct Portal {
    std::string text;
    std::vector<std::string> parameters;
    uint64_t sent = 0;
  };

  static uint64_t NumberIn(const std::string& text) {
    const size_t space = text.find(' ');
    return space == std::string::npos ? 0 : std::strtoull(text.c_str() + space, nullptr, 10);
  }
  static std::vector<session::ResultColumn> ColumnsOf(const std::string& text) {
    const auto column = [](const char* name, TypeId id) {
      return session::ResultColumn{name, MakeType(id), 0, 0};
    };
    if (text.rfind("rows", 0) == 0) {
      return {{"n", MakeType(TypeId::kInt4), 16384, 1}, column("t", TypeId::kText)};
    }
    if (text == "params") return {column("p", TypeId::kText)};
    if (text == "one") {
      return {column("b", TypeId::kBool),     column("s", TypeId::kInt2),
              column("l", TypeId::kInt8),     column("f", TypeId::kFloat8),
              column("r", TypeId::kRegclass), column("y", TypeId::kBytea)};
    }
    return {};
  }

  Result<session::ExecuteOutcome> Run(const std::string& text,
                                      const std::vector<std::string>& parameters, uint64_t max_rows,
                                      bool simple, session::ResultSink* sink,
                                      uint64_t* sent = nullptr);

  FakeHost* host_;
  int32_t pid_;
  FormatSettings format_;
  std::map<std::string, Statement> statements_;
  std::map<std::string, Portal> portals_;
  bool in_block_ = false, failed_ = false;
  std::atomic<bool> cancelled_{false}, gone_{false}, ending_{false};
  std::mutex wake_mutex_;
  std::function<void()> wake_;
};

class FakeHost : public Host {
 public:
  Result<std::unique_ptr<Conversation>> Open(const session::SessionOptions& options) override {
    if (options.database == "nowhere") {
      return SqlError(Code::kNotFound, "3D000", "database \"nowhere\" does not exist");
    }
    std::lock_guard lock(mutex_);
    last_options = options;
    auto conversation = std::make_unique<FakeConversation>(this, ++pids_);
    conversations_[pids_] = conversation.get();
    return std::unique_ptr<Conversation>(std::move(conversation));
  }
  bool Cancel(int32_t pid, int32_t secret) override {
    std::lock_guard lock(mutex_);
    auto at = conversations_.find(pid);
    if (at == conversations_.end() || at->second->cancel_secret() != secret) return false;
    at->second->Cancel();
    return true;
  }
  std::optional<std::string> PasswordVerifier(std::string_view role) override {
    auto at = verifiers.find(role);
    return at == verifiers.end() ? std::nullopt : std::optional(at->second);
  }
  bool IsSuperuser(std::string_view role) override { return role == "root"; }
  void End(int32_t pid) {
    std::lock_guard lock(mutex_);
    conversations_.at(pid)->End();
  }
  int32_t last_pid() {
    std::lock_guard lock(mutex_);
    return pids_;
  }
  // That run "sleep", and what the last of them ended with.
  int sleepers() const { return sleepers_; }
  std::string last_end() {
    std::lock_guard lock(mutex_);
    return last_end_;
  }
  void Slept(const Status& status) {
    std::lock_guard lock(mutex_);
    last_end_ = status.sqlstate();
    --sleepers_;
  }
  void Sleeps() { ++sleepers_; }
  bool RoleExists(std::string_view role) override {
    return role == "cellar" || role == "root" || verifiers.count(role) != 0;
  }
  bool IsMember(std::string_view user, std::string_view role) override { return user == role; }
  void CancelAll() {
    std::lock_guard lock(mutex_);
    for (auto& [pid, conversation] : conversations_) conversation->Cancel();
  }
  void Forget(int32_t pid) {
    std::lock_guard lock(mutex_);
    conversations_.erase(pid);
  }

  std::map<std::string, std::string, std::less<>> verifiers;  // set before the first connection
  session::SessionOptions last_options;

 private:
  std::mutex mutex_;
  int32_t pids_ = 0;
  std::string last_end_;
  std::atomic<int> sleepers_{0};
  std::map<int32_t, FakeConversation*> conversations_;
};

inline FakeConversation::~FakeConversation() { host_->Forget(pid_); }

inline Result<session::ExecuteOutcome> FakeConversation::Run(
    const std::string& text, const std::vector<std::string>& parameters, uint64_t max_rows,
    bool simple, session::ResultSink* sink, uint64_t* sent) {
  using session::ExecuteOutcome;
  const auto complete = [&](const std::string& tag) -> Result<ExecuteOutcome> {
    CELLAR_TRY(sink->OnComplete(tag));
    return ExecuteOutcome::kComplete;
  };
  if (failed_ && text != "end") {
    return SqlError(Code::kInvalid, "25P02", "current transaction is aborted");
  }
  if (text == "begin" || text == "end") {
    in_block_ = text == "begin";
    failed_ = false;
    return complete(in_block_ ? "BEGIN" : "COMMIT");
  }
  if (text == "boom") {
    failed_ = in_block_;
    return SqlError(Code::kConstraint, "23505", "duplicate key")
        .WithDetail("Key (a)=(1) already exists.")
        .WithHint("Take another.")
        .WithContext("COPY t, line 3")
        .WithPosition(5)
        .WithTable("public", "t")
        .WithColumn("a")
        .WithConstraint("t_pkey");
  }
  if (text == "fatal") {
    return SqlError(Code::kCancelled, "57P01", "terminating connection");
  }
  if (text == "notice") {
    session::Notice notice;
    notice.severity = session::Severity::kWarning;
    notice.sqlstate = "01000";
    notice.message = "mind the gap";
    CELLAR_TRY(sink->OnNotice(notice));
    CELLAR_TRY(sink->OnParameter("TimeZone", "UTC"));
    return complete("SET");
  }
  if (text == "sleep") {
    host_->Sleeps();
    for (int i = 0; i < 2000 && !cancelled_.load(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const char* state = gone_ ? "08006" : ending_ ? "57P01" : "57014";
    const Status status = SqlError(Code::kCancelled, state, "canceling statement");
    host_->Slept(status);
    return status;
  }
  if (text == "copyin") {
    CELLAR_TRY(sink->OnCopyIn(2, false));
    std::string chunk;
    size_t lines = 0;
    while (true) {
      CELLAR_TRY_ASSIGN(bool more, sink->ReadCopyData(&chunk));
      if (!more) break;
      for (char c : chunk) lines += c == '\n' ? 1 : 0;
      if (chunk.find("bad") != std::string::npos) {
        return SqlError(Code::kInvalid, "22P04", "bad line");
      }
    }
    return complete(fmt::format("COPY {}", lines));
  }
  if (text.rfind("copyout", 0) == 0) {
    CELLAR_TRY(sink->OnCopyOut(1, false));
    for (uint64_t i = 0; i < NumberIn(text); ++i) {
      CELLAR_TRY(sink->OnCopyData(fmt::format("line {}\n", i)));
    }
    CELLAR_TRY(sink->OnCopyOutEnd());
    return complete("COPY");
  }
  std::vector<session::ResultColumn> columns = ColumnsOf(text);
  if (columns.empty()) {
    return SqlError(Code::kInvalid, "42601", "syntax error at or near \"{}\"", text);
  }
  if (simple) CELLAR_TRY(sink->OnColumns(columns));
  std::vector<Type> types;
  for (const session::ResultColumn& column : columns) types.push_back(column.type);
  RowBatch batch;
  batch.Reset(types);
  uint64_t total = 1, from = sent != nullptr ? *sent : 0;
  if (text == "params") {
    for (const std::string& parameter : parameters) {
      const Datum row[] = {parameter == "NULL" ? Datum() : Datum::Bytes(parameter)};
      batch.AppendRow(row);
    }
    total = from = 0;
  } else if (text == "one") {
    const Datum row[] = {Datum::Bool(true),   Datum::Int(-7), Datum::Int(int64_t{1} << 40),
                         Datum::Double(0.25), Datum::Int(42), Datum::Bytes("\x01\xff")};
    batch.AppendRow(row);
    total = from = 0;
  } else {
    total = NumberIn(text);
  }
  for (uint64_t count = 0; from < total; ++from, ++count) {
    if (max_rows != 0 && count == max_rows) break;
    if (batch.size() == 1000) {
      CELLAR_TRY(sink->OnRows(batch));
      batch.Clear();
    }
    const std::string value = fmt::format("value {}", from);
    const Datum row[] = {Datum::Int(static_cast<int64_t>(from)),
                         from % 3 == 2 ? Datum() : Datum::Bytes(value)};
    batch.AppendRow(row);
  }
  if (sent != nullptr) *sent = from;
  CELLAR_TRY(sink->OnRows(batch));
  if (max_rows != 0 && from < total) return ExecuteOutcome::kSuspended;
  return complete(fmt::format("SELECT {}", total));
}

}  // namespace cellar::pgwire
