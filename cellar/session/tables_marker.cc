// Markers of transactions: what became of the one with an id that a program chose
// (docs/formats/markers.md).
#include <algorithm>
#include <atomic>

#include "cellar/base/sqlstate.h"
#include "cellar/session/markers.h"
#include "cellar/session/tables_internal.h"

namespace cellar::session::tables {
namespace {

constexpr size_t kMaxIdBytes = 64;
constexpr int64_t kHourMicros = int64_t{3600} * 1000000;
constexpr int64_t kKeepHours = 26;  // at least a day, whatever the hour was when it began
constexpr uint64_t kCommitsPerSweep = 1024;
constexpr size_t kMarkersPerSweep = 4096;
constexpr int kMaxAttempts = 50;

constexpr std::string_view kInvalidTransactionInitiation = "0B000";
constexpr int64_t kCommitted = 1, kAborted = 2;

// Each role has ids of its own.
std::string OwnId(const CallId& call) {
  std::string id;
  for (int shift = 24; shift >= 0; shift -= 8) id.push_back(static_cast<char>(call.role >> shift));
  return id.append(call.id);
}

std::string MarkerKey(std::string_view id) {
  std::string key = codec::SystemPrefix("txn");
  codec::AppendKeyBytes(id, &key);
  codec::FinishKey(&key);
  return key;
}

std::string HourKey(int64_t hour, std::string_view id) {
  std::string key = codec::SystemPrefix("txn_hour");
  codec::AppendKeyInt(hour, &key);
  codec::AppendKeyBytes(id, &key);
  codec::FinishKey(&key);
  return key;
}

struct Marker {
  int64_t state = 0;
  int64_t hour = 0;
  WriteResult result;
  // Of the call that it was given to; 0: of any.
  int64_t kind = 0;
  uint64_t target = 0;
};

// Integers of docs/formats/key.md, one after the other.
std::string Encode(const Marker& marker) {
  std::string value;
  codec::AppendKeyInt(marker.state, &value);
  codec::AppendKeyInt(marker.hour, &value);
  codec::AppendKeyInt(marker.result.applied ? 1 : 0, &value);
  for (uint64_t count : {marker.result.inserted, marker.result.updated, marker.result.deleted,
                         static_cast<uint64_t>(marker.result.unmet.size())}) {
    codec::AppendKeyUint(count, &value);
  }
  for (uint32_t row : marker.result.unmet) codec::AppendKeyUint(row, &value);
  codec::AppendKeyInt(marker.kind, &value);
  codec::AppendKeyUint(marker.target, &value);
  return value;
}

Result<Marker> Decode(std::string_view value) {
  Marker marker;
  CELLAR_TRY_ASSIGN(marker.state, codec::TakeKeyInt(&value));
  CELLAR_TRY_ASSIGN(marker.hour, codec::TakeKeyInt(&value));
  CELLAR_TRY_ASSIGN(int64_t applied, codec::TakeKeyInt(&value));
  marker.result.applied = applied != 0;
  CELLAR_TRY_ASSIGN(marker.result.inserted, codec::TakeKeyUint(&value));
  CELLAR_TRY_ASSIGN(marker.result.updated, codec::TakeKeyUint(&value));
  CELLAR_TRY_ASSIGN(marker.result.deleted, codec::TakeKeyUint(&value));
  CELLAR_TRY_ASSIGN(uint64_t unmet, codec::TakeKeyUint(&value));
  for (uint64_t i = 0; i < unmet; ++i) {
    CELLAR_TRY_ASSIGN(uint64_t row, codec::TakeKeyUint(&value));
    marker.result.unmet.push_back(static_cast<uint32_t>(row));
  }
  if (!value.empty()) {
    CELLAR_TRY_ASSIGN(marker.kind, codec::TakeKeyInt(&value));
    CELLAR_TRY_ASSIGN(marker.target, codec::TakeKeyUint(&value));
  }
  marker.result.repeated = true;
  return marker;
}

Result<std::optional<Marker>> Find(kv::Transaction* transaction, const CallId& call) {
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(bool found, transaction->Get(MarkerKey(OwnId(call)), &value));
  if (!found) return std::optional<Marker>();
  CELLAR_TRY_ASSIGN(Marker marker, Decode(value.view()));
  return std::optional<Marker>(std::move(marker));
}

}  // namespace

Status CheckId(std::string_view id) {
  if (!id.empty() && id.size() <= kMaxIdBytes) return Status();
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "an idempotency id has 1 to {} bytes", kMaxIdBytes);
}

Result<std::optional<WriteResult>> ReadMarker(kv::Transaction* transaction, const CallId& call) {
  CELLAR_TRY_ASSIGN(std::optional<Marker> marker, Find(transaction, call));
  if (!marker.has_value()) return std::optional<WriteResult>();
  if (marker->state == kAborted) {
    return SqlError(Code::kInvalid, kInvalidTransactionInitiation,
                    "the transaction with this id has been declared aborted");
  }
  if (marker->kind != 0 &&
      (marker->kind != static_cast<int64_t>(call.kind) || marker->target != call.target)) {
    return SqlError(Code::kInvalid, kInvalidTransactionInitiation,
                    "the idempotency id is that of another call")
        .WithHint("Give each call an id of its own.");
  }
  return std::optional<WriteResult>(std::move(marker->result));
}

Status WriteMarker(kv::Transaction* transaction, const CallId& call, bool committed,
                   const WriteResult& result) {
  Marker marker;
  marker.kind = static_cast<int64_t>(call.kind);
  marker.target = call.target;
  const std::string id = OwnId(call);
  marker.state = committed ? kCommitted : kAborted;
  marker.hour = NowMicros() / kHourMicros;
  marker.result = result;
  CELLAR_TRY(transaction->Put(MarkerKey(id), Encode(marker)));
  return transaction->Put(HourKey(marker.hour, id), "");
}

Status MarkCommit(Session::Impl* s, kv::Transaction* transaction) {
  const CallId call{s->login_oid, s->commit_marker, CallKind::kAdmin, s->commit_marker_call};
  CELLAR_TRY_ASSIGN(std::optional<WriteResult> before, ReadMarker(transaction, call));
  if (before.has_value()) {
    return SqlError(Code::kExists, kInvalidTransactionInitiation,
                    "a transaction with this id has committed");
  }
  return WriteMarker(transaction, call, true, {});
}

Result<Outcome> ResolveMarker(kv::Engine* engine, const CallId& call) {
  CELLAR_TRY(CheckId(call.id));
  for (int attempt = 0;; ++attempt) {
    const std::unique_ptr<kv::Transaction> transaction = engine->Begin();
    CELLAR_TRY_ASSIGN(std::optional<Marker> marker, Find(transaction.get(), call));
    if (marker.has_value()) {
      return marker->state == kCommitted ? Outcome::kCommitted : Outcome::kAborted;
    }
    CELLAR_TRY(WriteMarker(transaction.get(), call, false, {}));
    Status status = transaction->Commit().status();
    if (status.ok()) return Outcome::kAborted;
    if (status.code() != Code::kConflict || attempt >= kMaxAttempts) return status;
  }
}

void SweepMarkers(kv::Engine* engine, int64_t now_micros) {
  const std::string start = codec::SystemPrefix("txn_hour");
  std::string end = start;
  codec::AppendKeyInt(now_micros / kHourMicros - kKeepHours, &end);
  const std::unique_ptr<kv::Transaction> transaction = engine->Begin();
  kv::ScanOptions options;
  options.keys_only = true;
  options.limit = kMarkersPerSweep;
  options.mode = kv::ReadMode::kSnapshot;
  // What cannot be deleted now is met again by the next sweep.
  Result<std::unique_ptr<kv::Cursor>> cursor = transaction->Scan(start, end, options);
  kv::Block block;
  while (cursor.ok()) {
    Result<bool> more = (*cursor)->NextBlock(&block);
    if (!more.ok() || !*more) break;
    for (size_t i = 0; i < block.size(); ++i) {
      const std::string_view key = block.key(i);
      std::string_view rest = key.substr(start.size());
      Arena arena;
      if (!codec::TakeKeyInt(&rest).ok()) return;
      Result<Datum> id =
          codec::TakeKeyField(&rest, codec::KeyColumn{MakeType(TypeId::kBytea)}, &arena);
      if (!id.ok()) return;
      if (!transaction->Delete(MarkerKey(id->bytes())).ok()) return;
      if (!transaction->Delete(key).ok()) return;
    }
  }
  (void)transaction->Commit();
}

void ForgetOldMarkers(kv::Engine* engine) {
  static std::atomic<uint64_t> commits{0};
  if (commits.fetch_add(1, std::memory_order_relaxed) % kCommitsPerSweep != kCommitsPerSweep - 1)
    return;
  SweepMarkers(engine, NowMicros());
}

}  // namespace cellar::session::tables

namespace cellar::session {

Status SetCommitMarker(Session* session, std::string id, uint32_t call) {
  CELLAR_TRY(tables::CheckId(id));
  session->impl()->commit_marker = std::move(id);
  session->impl()->commit_marker_call = call;
  return Status();
}

Result<bool> HasCommitted(Session* session, std::string_view id, uint32_t call) {
  CELLAR_TRY(tables::CheckId(id));
  const tables::CallId own{session->impl()->login_oid, id, tables::CallKind::kAdmin, call};
  const std::unique_ptr<kv::Transaction> transaction = session->impl()->db->engine->Begin();
  CELLAR_TRY_ASSIGN(std::optional<WriteResult> found, tables::ReadMarker(transaction.get(), own));
  return found.has_value();
}

Status KeepCommitMarker(Session* session) {
  Session::Impl* s = session->impl();
  if (s->commit_marker.empty()) return Status();
  const std::unique_ptr<kv::Transaction> transaction = s->db->engine->Begin();
  CELLAR_TRY(tables::MarkCommit(s, transaction.get()));
  CELLAR_TRY(transaction->Commit().status());
  s->commit_marker.clear();
  return Status();
}

}  // namespace cellar::session
