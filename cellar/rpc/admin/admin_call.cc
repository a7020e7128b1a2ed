#include "cellar/rpc/admin/admin_call.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/session/catalog_of.h"
#include "cellar/session/discarding_sink.h"
#include "cellar/session/markers.h"

namespace cellar::rpc {
namespace {

constexpr int kMaxAttempts = 10;

// Keeps rows as texts.
class TextSink : public session::DiscardingSink {
 public:
  TextSink(session::Session* session, std::vector<std::string>* notices)
      : session_(session), notices_(notices) {}
  TextRows rows;

  Status OnColumns(std::span<const session::ResultColumn> columns) override {
    types_.clear();
    for (const session::ResultColumn& column : columns) types_.push_back(column.type);
    return Status();
  }
  Status OnRows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.size(); ++row) {
      auto& line = rows.emplace_back(batch.num_columns());
      for (size_t column = 0; column < batch.num_columns(); ++column) {
        if (batch.column(column).IsNull(row)) continue;
        std::string& text = line[column].emplace();
        session_->AppendText(batch.column(column).Get(row), types_[column], &text);
      }
    }
    return Status();
  }
  Status OnNotice(const session::Notice& notice) override {
    notices_->push_back(notice.message);
    return Status();
  }

 private:
  session::Session* session_;
  std::vector<std::string>* notices_;
  std::vector<Type> types_;
};

Result<std::vector<std::string>> SplitPath(std::string_view path, size_t least, size_t most) {
  std::vector<std::string> names;
  bool bad = path.empty();
  for (size_t at = 0; at < path.size() && !bad;) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    bad = path[at] != '/' || end == at + 1;
    names.emplace_back(path.substr(std::min(at + 1, path.size()), end - at - 1));
    at = end;
  }
  constexpr size_t kMostNameBytes = 63;
  for (const std::string& name : names) {
    if (name.size() <= kMostNameBytes) continue;
    return SqlError(Code::kInvalid, sqlstate::kNameTooLong, "a name has at most {} bytes",
                    kMostNameBytes)
        .WithDetail(fmt::format("The path is \"{}\".", path));
  }
  if (bad || names.size() < least) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidName, "not a path of what is wanted here")
        .WithDetail(fmt::format("The path is \"{}\".", path));
  }
  if (names.size() > most) {
    return UnsupportedError("namespaces lie two names deep, tables three")
        .WithDetail(fmt::format("The path is \"{}\".", path));
  }
  return names;
}

}  // namespace

Result<Place> RelationPlace(std::string_view path) {
  CELLAR_TRY_ASSIGN(std::vector<std::string> names, SplitPath(path, 2, 3));
  if (names.size() == 2) return Place{names[0], "public", names[1]};
  return Place{names[0], names[1], names[2]};
}

Result<Place> NamespacePlace(std::string_view path) {
  CELLAR_TRY_ASSIGN(std::vector<std::string> names, SplitPath(path, 1, 2));
  return Place{names[0], names.size() == 2 ? names[1] : "", ""};
}

void AdminCall::Leave() {
  if (session_ == nullptr) return;
  services_->watcher.Remove(context_, session_.get());
  session_.reset();
}

Status AdminCall::Enter(const std::string& database) {
  if (session_ != nullptr && (database.empty() || database == identity_.database)) return Status();
  Leave();
  CELLAR_TRY_ASSIGN(identity_, services_->calls->Identify(*context_, database));
  CELLAR_TRY_ASSIGN(session_, services_->sessions(identity_));
  services_->watcher.Add(context_, session_.get());
  return id_.empty() || repeats_ ? Status()
                                 : session::SetCommitMarker(session_.get(), id_, number_);
}

Result<bool> AdminCall::Repeats() {
  if (id_.empty()) return false;
  if (session_ == nullptr) CELLAR_TRY(Enter(""));
  CELLAR_TRY_ASSIGN(repeats_, session::HasCommitted(session_.get(), id_, number_));
  return repeats_;
}

Status AdminCall::KeepId() {
  if (id_.empty() || repeats_) return Status();
  CELLAR_TRY_ASSIGN(const bool kept, session::HasCommitted(session_.get(), id_, number_));
  return kept ? Status() : session::KeepCommitMarker(session_.get());
}

catalog::SnapshotPtr AdminCall::Catalog() { return session::CatalogOf(session_.get()); }

bool AdminCall::cancelled() const { return context_->IsCancelled(); }

Result<TextRows> AdminCall::Query(const std::string& statement) {
  TextSink sink(session_.get(), &notices_);
  CELLAR_TRY(RunStatement(session_.get(), statement, &sink));
  return std::move(sink.rows);
}

Status AdminCall::Run(const std::string& statement) {
  return repeats_ ? Status() : Query(statement).status();
}

Status AdminCall::Atomically(const std::function<Status()>& work) {
  for (int attempt = 1;; ++attempt) {
    CELLAR_TRY(Run("BEGIN"));
    Status status = work();
    if (status.ok()) {
      status = Run("COMMIT");
    } else {
      (void)Run("ROLLBACK");  // the first error is the one to tell
    }
    if (status.code() != Code::kConflict || refused_ || attempt == kMaxAttempts) return status;
  }
}

Status AdminCall::RunAll(const std::vector<std::string>& statements) {
  if (statements.empty()) return Status();
  if (statements.size() == 1) return Run(statements.front());
  return Atomically([&]() -> Status {
    for (const std::string& statement : statements) CELLAR_TRY(Run(statement));
    return Status();
  });
}

Result<uint64_t> AdminCall::RunOrLeave(const std::string& statement, bool wait,
                                       const std::string& relation) {
  if (wait || repeats_) {
    CELLAR_TRY(Run(statement));
    return 0;
  }
  CELLAR_TRY(services_->background.MakeRoom());
  const std::string list = fmt::format(
      "SELECT job FROM pg_catalog.cellar_jobs WHERE created_by = session_user AND "
      "right(object, length({0})) = {0} ORDER BY job",
      sql::QuoteLiteral(fmt::format(" of table \"{}\"", relation)));
  CELLAR_TRY_ASSIGN(const TextRows before, Query(list));
  const std::string database = identity_.database;
  services_->watcher.Remove(context_, session_.get());
  auto running = std::make_unique<BackgroundStatement>(std::move(session_), statement);
  CELLAR_TRY(Enter(database));
  constexpr std::chrono::milliseconds kLookEvery{5};
  while (!running->WaitFor(kLookEvery)) {
    if (cancelled()) {
      running->Cancel(false);
      continue;
    }
    CELLAR_TRY_ASSIGN(const TextRows now, Query(list));
    for (const auto& row : now) {
      if (std::find(before.begin(), before.end(), row) != before.end()) continue;
      uint64_t job = 0;
      std::from_chars(row[0]->data(), row[0]->data() + row[0]->size(), job);
      services_->background.Keep(std::move(running));
      return job;
    }
  }
  CELLAR_TRY(running->status());
  return 0;
}

Result<catalog::NamespacePtr> AdminCall::FindNamespace(const Place& place) {
  const catalog::SnapshotPtr catalog = Catalog();
  catalog::ForgetUnreadableMet();
  catalog::NamespacePtr space = catalog->FindNamespace(catalog::kRootNamespace, place.database);
  if (space == nullptr) {
    return catalog::ExplainUnreadable(SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                                               "database \"{}\" does not exist", place.database));
  }
  if (place.schema.empty() || place.schema == "public") return space;
  space = catalog->FindNamespace(space->id, place.schema);
  if (space != nullptr) return space;
  return catalog::ExplainUnreadable(SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                                             "schema \"{}\" does not exist", place.schema));
}

Result<catalog::TablePtr> AdminCall::FindRelation(const Place& place) {
  CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, FindNamespace(place));
  catalog::TablePtr table = Catalog()->FindTable(space->id, place.name);
  if (table != nullptr) return table;
  Status missing =
      SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
               place.schema == "public" ? place.name : place.schema + "." + place.name);
  return catalog::ExplainUnreadable(std::move(missing).WithTable(place.schema, place.name));
}

Status AdminCall::CheckVersion(uint64_t expected, uint64_t version) {
  if (expected == 0 || expected == version || repeats_) return Status();
  refused_ = true;
  return SqlError(Code::kConflict, sqlstate::kObjectNotInPrerequisiteState,
                  "it has been changed: its version is {}, not {}", version, expected)
      .WithHint("Read it again.");
}

}  // namespace cellar::rpc
