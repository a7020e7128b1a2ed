#include "cellar/store/database_backup.h"

#include <charconv>
#include <chrono>
#include <future>

#include "cellar/base/cancel.h"
#include "cellar/dump/dump.h"
#include "cellar/dump/place.h"
#include "cellar/dump/texts.h"
#include "cellar/engines/rocksdb/rocks_backup.h"
#include "cellar/kv/engine.h"
#include "cellar/kv/store_header.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/store/open.h"

namespace cellar::store {
namespace {

constexpr const char* kFirstDatabase = "cellar";
constexpr size_t kCacheOfCopy = 32 << 20;
constexpr std::chrono::milliseconds kPoll{50};

// Of what store the backups say they are: ids of databases are never used again in a store, so the
// backups of another database, or of one that has the same name later, are not taken for them.
Result<std::array<uint8_t, 16>> IdOf(session::Database* store, session::Session* in) {
  const std::unique_ptr<kv::Transaction> reader = store->engine()->Begin();
  kv::PinnedValue bytes;
  CELLAR_TRY_ASSIGN(const bool found,
                    reader->Get(kv::kStoreHeaderKey, &bytes, kv::ReadMode::kSnapshot));
  if (!found) return CorruptionError("the store has lost its header record");
  CELLAR_TRY_ASSIGN(const kv::StoreHeader header, kv::ParseStoreHeader(bytes.view()));
  CELLAR_TRY_ASSIGN(const std::vector<dump::TextRow> rows,
                    dump::QueryTexts(in,
                                     "SELECT oid::bigint FROM pg_catalog.pg_database"
                                     " WHERE datname = pg_catalog.current_database()"));
  const std::string oid = rows.empty() ? "" : rows[0][0].value_or("");
  uint64_t number = 0;
  if (std::from_chars(oid.data(), oid.data() + oid.size(), number).ec != std::errc()) {
    return SqlError(Code::kNotFound, "3D000", "the database was dropped meanwhile");
  }
  std::array<uint8_t, 16> id = header.store_id;
  for (size_t i = 0; i < sizeof(number); ++i) {
    id[id.size() - 1 - i] ^= static_cast<uint8_t>(number >> (8 * i));
  }
  return id;
}

Status Copy(session::Session* from, session::Database* to, const std::string& name) {
  // These two are in every store.
  if (name != kFirstDatabase && name != "postgres") {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<dump::Place> first,
                      dump::OpenPlace(to, kFirstDatabase));
    CELLAR_TRY(first->Statement("CREATE DATABASE " + sql::QuoteIdentifier(name)));
  }
  CELLAR_TRY_ASSIGN(const std::unique_ptr<dump::Place> place, dump::OpenPlace(to, name));
  dump::DumpContents contents;
  contents.roles = true;
  contents.database = true;
  CELLAR_TRY(dump::DumpDatabase(from, contents, place.get()));
  return dump::DumpSettings(from, name, place.get());
}

// On a thread of its own: here a statement runs, which is charged for what this thread takes, and
// has to hear of its end meanwhile.
Status CopyUntilCancelled(session::Session* from, session::Database* to, const std::string& name,
                          const CancelToken* cancel) {
  std::future<Status> copied = std::async(std::launch::async, [&] { return Copy(from, to, name); });
  Status cancelled;
  while (copied.wait_for(kPoll) != std::future_status::ready) {
    if (cancel == nullptr || !cancelled.ok()) continue;
    cancelled = cancel->Check();
    if (cancelled.ok()) continue;
    from->Cancel(/*shutdown=*/true);
    to->BeginShutdown();
  }
  Status status = copied.get();
  return cancelled.ok() ? status : cancelled;
}

}  // namespace

Result<kv::BackupInfo> BackupDatabase(session::Database* from, const std::string& store,
                                      const std::string& user, const std::string& name,
                                      const kv::BackupOptions& options) {
  session::SessionOptions as;
  as.user = user;
  as.database = name;
  as.settings = {{"application_name", "cellar backup"}};
  CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> session,
                    session::Session::Open(from, as));
  kv::BackupOptions built = options;
  CELLAR_TRY_ASSIGN(built.as_store, IdOf(from, session.get()));
  CELLAR_TRY_ASSIGN(const std::unique_ptr<engines::BackupYard> yard,
                    engines::BackupYard::Open(options.directory, store, *built.as_store));
  StoreOptions scratch;
  scratch.directory = yard->store();
  scratch.durable_commits = false;  // the backup makes it durable
  scratch.cache_bytes = kCacheOfCopy;
  CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Database> to, OpenDatabase(scratch));
  CELLAR_TRY(CopyUntilCancelled(session.get(), to.get(), name, options.cancel));
  CELLAR_TRY_ASSIGN(const kv::BackupInfo info, to->engine()->Backup(built));
  to->BeginShutdown();
  CELLAR_TRY(to->engine()->Close());
  return info;
}

}  // namespace cellar::store
