#include "cellar/session/statistics.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/still_current.h"
#include "cellar/session/system_rows.h"
#include "cellar/table/usage.h"

namespace cellar::session {
namespace {

// As PostgreSQL's autovacuum_analyze_threshold and autovacuum_analyze_scale_factor.
constexpr int64_t kFewChanges = 50;
constexpr double kChangedShare = 0.1;
constexpr std::chrono::seconds kLookEvery{10};
constexpr size_t kSampleRows = 10'000;
// As PostgreSQL's default_statistics_target.
constexpr size_t kTarget = 100;
// Longer values are counted, but neither common nor bounds.
constexpr size_t kLongValue = 1024;
constexpr int kMaxRetries = 20;

// How many different hashes there were, to 2 % or so: HyperLogLog (Flajolet and others, 2007) of
// 4096 registers, by linear counting while few are set.
class Sketch {
 public:
  Sketch() : registers_(kRegisters, 0) {}
  void Add(uint64_t hash) {
    // Hashes of small integers need not be spread: the finalizer of SplitMix64 does that.
    hash += 0x9E3779B97F4A7C15;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    hash ^= hash >> 31;
    uint8_t& slot = registers_[hash & (kRegisters - 1)];
    const auto rank = static_cast<uint8_t>(std::countl_zero(hash | (kRegisters - 1)) + 1);
    slot = std::max(slot, rank);
  }
  double Estimate() const {
    constexpr double kCount = kRegisters;
    double sum = 0, zeros = 0;
    for (const uint8_t slot : registers_) {
      sum += std::ldexp(1.0, -slot);
      zeros += slot == 0;
    }
    const double estimate = 0.7213 / (1 + 1.079 / kCount) * kCount * kCount / sum;
    if (estimate <= 2.5 * kCount && zeros > 0) return kCount * std::log(kCount / zeros);
    return estimate;
  }

 private:
  static constexpr size_t kRegisters = 4096;
  std::vector<uint8_t> registers_;
};

struct ColumnGatherer {
  catalog::ColumnId id;
  Type type;
  bool ordered = true;  // values of it can be compared
  uint64_t nulls = 0, bytes = 0;
  Sketch sketch;
  std::vector<Value> sample;   // by place in the sample; NULLs and long values are NULL here
  std::vector<bool> left_out;  // long ones
};

// Which rows are kept: each with the same chance (Vitter's algorithm R). The seed is fixed, so that
// the same table always has the same statistics.
class Reservoir {
 public:
  // The place of the next row; kSampleRows: none.
  size_t Next() {
    const uint64_t row = rows_++;
    if (row < kSampleRows) return row;
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return std::min<uint64_t>(state_ % rows_, kSampleRows);
  }
  uint64_t rows() const { return rows_; }

 private:
  uint64_t rows_ = 0, state_ = 0x2545F4914F6CDD1D;
};

void AddColumn(const ColumnVector& values, std::span<const size_t> places, ColumnGatherer* to) {
  const int64_t width = TypeLength(to->type);
  const bool is_bytes = values.physical() == Physical::kBytes;
  for (size_t row = 0; row < values.size(); ++row) {
    const bool null = values.IsNull(row);
    const Datum value = values.Get(row);
    to->nulls += null;
    if (!null) {
      to->bytes += is_bytes ? value.bytes().size() : static_cast<uint64_t>(width);
      if (to->ordered) to->sketch.Add(HashDatum(value, to->type));
    }
    const size_t place = places[row];
    if (place == kSampleRows || !to->ordered) continue;
    if (place >= to->sample.size()) {
      to->sample.resize(place + 1);
      to->left_out.resize(place + 1);
    }
    const bool long_value = !null && is_bytes && value.bytes().size() > kLongValue;
    to->left_out[place] = long_value;
    to->sample[place] = null || long_value ? Value() : Value(to->type, value);
  }
}

// Common values and bounds from the sample.
void Summarize(ColumnGatherer* from, double rows, catalog::ColumnStatistics* to) {
  const double there = rows - static_cast<double>(from->nulls);
  to->column = from->id;
  to->type = from->type;
  to->null_fraction = rows > 0 ? static_cast<double>(from->nulls) / rows : 0;
  to->average_width = there > 0 ? static_cast<double>(from->bytes) / there : 0;
  if (!from->ordered || there <= 0) return;
  struct Sampled {
    Datum datum;
    const Value* value;
  };
  std::vector<Sampled> values;
  values.reserve(from->sample.size());
  for (const Value& value : from->sample) {
    if (!value.is_null()) values.push_back({value.datum(), &value});
  }
  std::sort(values.begin(), values.end(), [&](const Sampled& a, const Sampled& b) {
    return CompareDatums(a.datum, b.datum, from->type) < 0;
  });
  struct Run {
    size_t start, count;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || CompareDatums(values[i - 1].datum, values[i].datum, from->type) != 0) {
      runs.push_back({i, 0});
    }
    ++runs.back().count;
  }
  const bool whole = rows <= static_cast<double>(kSampleRows) &&
                     std::count(from->left_out.begin(), from->left_out.end(), true) == 0;
  double distinct =
      whole ? static_cast<double>(runs.size())
            : std::clamp(from->sketch.Estimate(), static_cast<double>(runs.size()), there);
  // The sketch errs by 2 %: what looks unique is.
  if (!whole && distinct > 0.95 * there) distinct = there;
  // As PostgreSQL: many values are taken to grow with the table.
  to->distinct = distinct > 0.1 * rows ? -distinct / rows : std::max(1.0, std::round(distinct));
  const double sampled = static_cast<double>(from->sample.size());
  std::vector<Run> common;
  const double average = static_cast<double>(values.size()) / std::max(1.0, distinct);
  const bool few = runs.size() <= kTarget && distinct < static_cast<double>(runs.size()) * 1.05;
  for (const Run& run : runs) {
    if (run.count < 2) continue;
    if (few || static_cast<double>(run.count) > std::max(2.0, 1.25 * average)) {
      common.push_back(run);
    }
  }
  std::stable_sort(common.begin(), common.end(),
                   [](const Run& a, const Run& b) { return a.count > b.count; });
  if (common.size() > kTarget) common.resize(kTarget);
  std::vector<bool> is_common(values.size(), false);
  for (const Run& run : common) {
    to->common.push_back(*values[run.start].value);
    to->frequencies.push_back(static_cast<double>(run.count) / sampled);
    std::fill_n(is_common.begin() + static_cast<std::ptrdiff_t>(run.start), run.count, true);
  }
  std::vector<const Value*> rest;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_common[i]) rest.push_back(values[i].value);
  }
  if (rest.size() < 2) return;
  const size_t bounds = std::min(rest.size(), kTarget + 1);
  for (size_t i = 0; i < bounds; ++i) {
    to->bounds.push_back(*rest[i * (rest.size() - 1) / (bounds - 1)]);
  }
}

}  // namespace

bool StatisticsAreStale(double rows, int64_t changes_since) {
  return changes_since > kFewChanges &&
         static_cast<double>(changes_since - kFewChanges) > kChangedShare * rows;
}

StatisticsService::Pointer StatisticsService::Find(const catalog::TableDescriptor& table) {
  const uint64_t id = table.storage_id().value;
  {
    std::lock_guard lock(mutex_);
    const auto at = known_.find(id);
    if (at != known_.end()) return at->second;
  }
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  const std::unique_ptr<kv::Transaction> transaction = engine_->Begin(read_only);
  kv::PinnedValue value;
  const Result<bool> found = transaction->Get(catalog::StatisticsKey(table), &value);
  if (!found.ok()) return nullptr;  // the statement that reads the table will say why
  Pointer read;
  if (*found) {
    Result<catalog::TableStatistics> decoded = catalog::DecodeStatistics(table, value.view());
    if (decoded.ok()) {
      read = std::make_shared<const catalog::TableStatistics>(std::move(*decoded));
    }
  }
  std::lock_guard lock(mutex_);
  return known_.try_emplace(id, read).first->second;
}

Status StatisticsService::Gather(const catalog::TablePtr& table,
                                 std::span<const catalog::ColumnId> columns, bool automatic,
                                 const CancelToken* cancel) {
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  const std::unique_ptr<kv::Transaction> reading = engine_->Begin(read_only);
  table::Access access(reading.get(), cancel, tables_);
  std::vector<ColumnGatherer> gatherers;
  for (const catalog::ColumnDescriptor& column : table->columns) {
    if (column.dropped || column.hidden) continue;
    if (!columns.empty() && std::count(columns.begin(), columns.end(), column.id) == 0) continue;
    ColumnGatherer& gatherer = gatherers.emplace_back();
    gatherer.id = column.id;
    gatherer.type = column.type;
    gatherer.ordered = column.type.id != TypeId::kJson;
  }
  table::ScanSpec spec;
  spec.table = table;
  spec.index = table->primary().id;
  spec.spans = {table::Span{}};
  for (const ColumnGatherer& gatherer : gatherers) spec.columns.push_back(gatherer.id);
  CELLAR_TRY_ASSIGN(const std::unique_ptr<table::Reader> reader, access.Scan(std::move(spec)));
  Reservoir reservoir;
  RowBatch batch;
  std::vector<size_t> places;
  for (bool checked = false;; checked = true) {
    const Result<bool> more = reader->Next(&batch);
    // Behind a change of the table what was met says nothing.
    if (!more.ok() || !checked) CELLAR_TRY(CheckStillCurrent(*table, reading.get(), nullptr));
    CELLAR_TRY(more.status());
    if (!*more) break;
    places.resize(batch.size());
    for (size_t& place : places) place = reservoir.Next();
    for (size_t c = 0; c < gatherers.size(); ++c) AddColumn(batch.column(c), places, &gatherers[c]);
  }
  catalog::TableStatistics statistics;
  statistics.rows = static_cast<double>(reservoir.rows());
  statistics.gathered_micros = NowMicros();
  statistics.automatic = automatic;
  CELLAR_TRY_ASSIGN(const std::optional<table::TableUsage> usage,
                    table::UsageOf(*table, reading.get()));
  if (usage) statistics.changes = usage->inserted + usage->updated + usage->deleted;
  if (const Pointer before = Find(*table); before != nullptr && !columns.empty()) {
    for (const catalog::ColumnStatistics& column : before->columns) {
      if (std::count(columns.begin(), columns.end(), column.column) == 0) {
        statistics.columns.push_back(column);
      }
    }
  }
  for (ColumnGatherer& gatherer : gatherers) {
    Summarize(&gatherer, statistics.rows, &statistics.columns.emplace_back());
  }
  const std::string key = catalog::StatisticsKey(*table);
  const std::string record = catalog::EncodeStatistics(statistics);
  Status last;
  for (int attempt = 0; attempt < kMaxRetries; ++attempt) {
    const std::unique_ptr<kv::Transaction> writing = engine_->Begin();
    CELLAR_TRY(writing->Put(key, record));
    kv::CommitOptions options;
    options.durable = false;  // lost ones are gathered again
    last = writing->Commit(options).status();
    if (last.code() != Code::kConflict) break;
  }
  CELLAR_TRY(std::move(last));
  std::lock_guard lock(mutex_);
  known_[table->storage_id().value] =
      std::make_shared<const catalog::TableStatistics>(std::move(statistics));
  return Status();
}

void StatisticsService::Start() {
  // Signals are for the threads of whoever opened the store.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StatisticsService::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  cancel_.Cancel(CancelToken::Reason::kShutdown);
  changed_.notify_all();
  if (ending.joinable()) ending.join();
}

void StatisticsService::Run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kLookEvery, [this] { return stopping_; })) return;
    }
    LookAtAll();
  }
}

void StatisticsService::LookAtAll() {
  for (const catalog::TablePtr& table : catalog_->Current()->ListAllTables()) {
    if (table->kind != catalog::RelationKind::kTable || table->temporary) continue;
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    int64_t changes = 0;
    const Result<bool> stale = IsStale(*table, &changes);
    if (!stale.ok() || !*stale) continue;
    const uint64_t id = table->storage_id().value;
    const auto failed = given_up_.find(id);
    if (failed != given_up_.end() && failed->second == changes) continue;
    const Status status = CatchOutOfMemory([&] { return Gather(table, {}, true, &cancel_); });
    if (status.ok()) {
      given_up_.erase(id);
      continue;
    }
    // Not again before something changes.
    given_up_[id] = changes;
    if (status.code() == Code::kCancelled || status.code() == Code::kConflict) continue;
    std::fprintf(stderr, "cellar: gathering statistics of table \"%s\" failed: %s\n",
                 table->name.c_str(), status.ToString().c_str());
  }
}

Result<bool> StatisticsService::IsStale(const catalog::TableDescriptor& table, int64_t* changes) {
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  const std::unique_ptr<kv::Transaction> transaction = engine_->Begin(read_only);
  CELLAR_TRY_ASSIGN(const std::optional<table::TableUsage> usage,
                    table::UsageOf(table, transaction.get()));
  if (!usage) return false;
  *changes = usage->inserted + usage->updated + usage->deleted;
  const Pointer known = Find(table);
  return known == nullptr ? StatisticsAreStale(0, *changes)
                          : StatisticsAreStale(known->rows, *changes - known->changes);
}

// ---- ANALYZE
// ----------------------------------------------------------------------------------------------

Status Session::Impl::Analyze(const ast::VacuumStmt& statement,
                              const std::vector<catalog::TablePtr>& tables, ResultSink* sink) {
  struct Target {
    catalog::TablePtr table;
    std::vector<catalog::ColumnId> columns;
  };
  std::vector<Target> targets;
  for (const catalog::TablePtr& table : tables) {
    Target target;
    target.table = table;
    for (const ast::VacuumStmt::Target& named : statement.tables) {
      if (sql::FindRelation(*CurrentCatalog(), Scope(), named.table.schema, named.table.name) !=
          table) {
        continue;
      }
      for (const std::string& name : named.columns) {
        const auto at =
            std::find_if(table->columns.begin(), table->columns.end(), [&](const auto& column) {
              return !column.dropped && !column.hidden && column.name == name;
            });
        if (at == table->columns.end()) {
          return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                          "column \"{}\" of relation \"{}\" does not exist", name, table->name);
        }
        if (std::count(target.columns.begin(), target.columns.end(), at->id) != 0) {
          return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                          "column \"{}\" of relation \"{}\" appears more than once", name,
                          table->name);
        }
        target.columns.push_back(at->id);
      }
    }
    if (table->kind == catalog::RelationKind::kTable) {
      targets.push_back(std::move(target));
    } else if (!statement.tables.empty()) {
      CELLAR_TRY(Notify(sink, Severity::kWarning, "01000",
                        fmt::format("skipping \"{}\" --- cannot analyze non-tables or special "
                                    "system tables",
                                    table->name)));
    }
  }
  if (!db->options.read_only) {
    const catalog::SnapshotPtr committed = db->catalog->Current();
    for (const Target& target : targets) {
      // What this transaction has made or changed is nobody's yet.
      if (committed->GetTable(target.table->id) != target.table) continue;
      CELLAR_TRY(db->statistics->Gather(target.table, target.columns, false, &cancel));
    }
  }
  std::lock_guard lock(db->estimates_mutex);
  db->estimates.clear();
  return Status();
}

// ---- System tables
// ----------------------------------------------------------------------------------------------

namespace {

Value RealValue(double value) {
  return {MakeType(TypeId::kFloat4), Datum::Double(static_cast<float>(value))};
}

}  // namespace

void StatisticsRows(Session::Impl* session, SystemRow* row) {
  for (const catalog::TablePtr& table : session->CurrentCatalog()->ListAllTables()) {
    // Values are for those who may read the table whatever its grants say.
    if (table->kind != catalog::RelationKind::kTable || !session->Owns(*table)) continue;
    const StatisticsService::Pointer known = session->db->statistics->Find(*table);
    if (known == nullptr) continue;
    for (const catalog::ColumnDescriptor& column : table->columns) {
      const catalog::ColumnStatistics* one = known->Find(column.id);
      if (column.dropped || column.hidden || one == nullptr) continue;
      row->Text("schemaname", session->SchemaName(table->parent))
          .Text("tablename", table->name)
          .Text("attname", column.name)
          .Bool("inherited", false)
          .Double("null_frac", static_cast<float>(one->null_fraction))
          .Int("avg_width", static_cast<int64_t>(std::lround(one->average_width)))
          .Double("n_distinct", static_cast<float>(one->distinct));
      const auto texts = [&](const std::vector<Value>& values) {
        std::vector<Value> out;
        for (const Value& value : values) {
          std::string text;
          AppendDatumText(value.datum(), value.type(), session->settings.format(), &text);
          out.emplace_back(MakeType(TypeId::kText), Datum::Bytes(text));
        }
        return out;
      };
      if (!one->common.empty()) {
        std::vector<Value> shares;
        for (const double frequency : one->frequencies) shares.push_back(RealValue(frequency));
        row->Array("most_common_vals", texts(one->common)).Array("most_common_freqs", shares);
      }
      if (!one->bounds.empty()) row->Array("histogram_bounds", texts(one->bounds));
      row->Emit();
    }
  }
}

}  // namespace cellar::session
