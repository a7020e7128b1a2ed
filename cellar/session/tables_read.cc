// Reads of the table API: by key, by index, by range.
#include <algorithm>

#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"
#include "cellar/session/still_current.h"
#include "cellar/session/tables_internal.h"
#include "cellar/tableapi/restarting_scanner.h"

namespace cellar::session::tables {
namespace {

constexpr size_t kMaxKeys = 10000;
constexpr size_t kKeysAtOnce = 256;  // rows may be long
constexpr uint8_t kTokenVersion = 1;

Status TooManyKeys() {
  return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "more than {} keys in one call",
                  kMaxKeys);
}

// The keys' values, row by row, for table::Access::Lookup.
Status KeysToBatch(std::span<const Key> keys, const std::vector<Type>& types, RowBatch* batch) {
  batch->Reset(types);
  batch->Resize(keys.size());
  for (size_t row = 0; row < keys.size(); ++row) {
    if (keys[row].size() != types.size()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "{} values given for a key of {}", keys[row].size(), types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      CELLAR_TRY_ASSIGN(Datum value, keys[row][i].To(types[i], batch->arena()));
      batch->column(i).Set(row, value);
    }
  }
  batch->SetSize(keys.size());
  return Status();
}

// Appends rows as Lookup returned them, put in the order of their keys, of which the first is
// `first_key`. `fresh`: they are the first ones.
void OrderByKey(const RowBatch& found, const std::vector<uint32_t>& key_row, uint32_t first_key,
                bool fresh, RowSet* rows) {
  std::vector<uint32_t> order(found.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key_row[a] < key_row[b]; });
  std::vector<Type> types;
  for (const ColumnVector& column : found.columns()) types.push_back(column.type());
  if (fresh) rows->mutable_batch()->Reset(types);
  // AppendRows takes rows in any order.
  rows->mutable_batch()->AppendRows(found, order);
  for (uint32_t row : order) rows->mutable_key_positions()->push_back(first_key + key_row[row]);
}

// The rows with these keys, in their order. 53200 when they are longer than `limit` together.
Status FindRows(table::Access* access, const table::ScanSpec& spec, const RowBatch& keys,
                size_t limit, RowSet* rows) {
  std::vector<uint32_t>& key_row = *rows->mutable_key_positions();
  key_row.clear();
  if (keys.size() == 1) {
    CELLAR_TRY(access->Lookup(spec, keys, rows->mutable_batch(), &key_row));
    access->NoteReads(*spec.table, rows->size());
    return Status();
  }
  RowBatch part, found;
  std::vector<uint32_t> found_keys;
  for (size_t first = 0;; first += kKeysAtOnce) {
    if (keys.size() > kKeysAtOnce) {
      SliceBatch(keys, first, std::min(keys.size(), first + kKeysAtOnce), &part);
    }
    const RowBatch& some = keys.size() > kKeysAtOnce ? part : keys;
    CELLAR_TRY(access->Lookup(spec, some, &found, &found_keys));
    OrderByKey(found, found_keys, static_cast<uint32_t>(first), first == 0, rows);
    if (rows->batch().footprint_bytes() > limit) {
      return SqlError(Code::kLimit, sqlstate::kOutOfMemory,
                      "the rows of these keys are too long for one call")
          .WithHint("Ask for fewer keys, or fewer columns.");
    }
    if (first + kKeysAtOnce >= keys.size()) break;
  }
  access->NoteReads(*spec.table, rows->size());
  return Status();
}

// The same, locked until the transaction ends; what changed while it was waited for is read again.
// `rows` is empty and has its columns.
Status LockRows(table::Access* access, const table::ScanSpec& spec, const RowBatch& keys,
                RowSet* rows) {
  rows->mutable_key_positions()->clear();
  CELLAR_TRY_ASSIGN(const kv::ReadViewPtr view, access->OpenView());
  for (uint32_t key = 0; key < keys.size(); ++key) {
    table::ScanSpec one = spec;
    table::Span span;
    for (const ColumnVector& column : keys.columns()) span.equal.push_back(column.Get(key));
    one.spans = {span};
    one.view = view;
    one.with_row_ref = true;
    if (std::any_of(span.equal.begin(), span.equal.end(),
                    [](Datum value) { return value.is_null(); })) {
      continue;
    }
    CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> reader, access->Scan(one));
    RowBatch found;
    while (true) {
      CELLAR_TRY_ASSIGN(bool more, reader->Next(&found));
      if (!more) break;
      const size_t width = one.columns.size();
      const std::span<const std::string_view> refs(found.column(width).bytes(), found.size());
      std::vector<table::RowLockOutcome> outcomes;
      kv::ReadViewPtr newest;
      CELLAR_TRY(access->LockRows(*one.table, refs, {}, view.get(), &outcomes, &newest));
      std::vector<uint32_t> kept;
      std::vector<std::string> changed;
      for (uint32_t i = 0; i < found.size(); ++i) {
        if (outcomes[i] == table::RowLockOutcome::kLocked) {
          kept.push_back(i);
        } else {
          changed.emplace_back(refs[i]);
        }
      }
      found.Keep(kept);
      const auto add = [&](RowBatch* some) {
        some->columns().resize(width);
        for (size_t i = 0; i < some->size(); ++i) rows->mutable_key_positions()->push_back(key);
        rows->mutable_batch()->AppendAll(*some);
      };
      add(&found);
      if (changed.empty()) continue;
      table::ScanSpec again = one;
      again.view = newest;
      CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> rereader,
                        access->ScanRows(std::move(again), changed));
      RowBatch now;
      while (true) {
        CELLAR_TRY_ASSIGN(more, rereader->Next(&now));
        if (!more) break;
        add(&now);
      }
    }
  }
  access->NoteReads(*spec.table, rows->size());
  return Status();
}

}  // namespace

// ---- TableImpl: what all calls share ----

SchemaPtr TableImpl::schema() const {
  std::lock_guard lock(mutex_);
  return schema_;
}

Result<SchemaPtr> TableImpl::Refresh() {
  CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(store_.get(), {}));
  CELLAR_TRY_ASSIGN(KnownTable * known, Find(lease.get(), {}));
  return known->schema;
}

Result<KnownTable*> TableImpl::Find(Worker* worker, const CallOptions& call) {
  CELLAR_TRY_ASSIGN(KnownTable * known, worker->Find(id_));
  {
    std::lock_guard lock(mutex_);
    if (schema_ != known->schema && schema_->version <= known->schema->version)
      schema_ = known->schema;
  }
  if (call.schema_version != 0 && call.schema_version != known->schema->version) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "table \"{}\" has changed: it is at version {}, the call at {}",
                    known->table->name, known->schema->version, call.schema_version)
        .WithTable("", known->table->name);
  }
  return known;
}

// ---- By key ----

Status TableImpl::Get(std::span<const Key> keys, const GetOptions& options, RowSet* rows) {
  if (keys.size() > kMaxKeys) return TooManyKeys();
  CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(store_.get(), options.call));
  Session::Impl& s = *lease->s;
  auto run = [&]() -> Status {
    CELLAR_TRY_ASSIGN(KnownTable * known, Find(lease.get(), options.call));
    CELLAR_TRY_ASSIGN(const KnownKey* by, KeyOf(known, options.index));
    if (options.columns.schema() == known->schema) {
      lease->positions.assign(options.columns.positions().begin(),
                              options.columns.positions().end());
    } else {
      CELLAR_TRY_ASSIGN(lease->positions, PositionsOf(*known, options.columns));
    }
    const std::vector<uint32_t>& positions = lease->positions;
    CELLAR_TRY(lease->CheckSelect(known, positions));
    CELLAR_TRY(lease->CheckSelect(known, by->positions));
    RowBatch& batch = lease->keys;
    CELLAR_TRY(KeysToBatch(keys, by->types, &batch));
    table::ScanSpec& spec = lease->spec;
    spec.table = known->table;
    spec.index = by->index->id;
    spec.lock.reset();
    spec.spans.clear();
    spec.columns.clear();
    for (uint32_t position : positions) spec.columns.push_back(known->ids[position]);
    rows->SetColumns(known->schema, positions);
    if (lease.alone() && !options.for_update) {
      // Nothing that a session's transaction does besides matters to one read.
      kv::TransactionOptions read_only;
      read_only.read_only = read_only.autocommit = true;
      const std::unique_ptr<kv::Transaction> transaction = s.db->engine->Begin(read_only);
      table::Access access(transaction.get(), &s.cancel, s.db->tables.get());
      access.set_limits(s.db->quotas->Active());
      Status found = FindRows(&access, spec, batch, s.settings.hot().work_mem_bytes, rows);
      // First: behind a change of the table what was met says nothing.
      CELLAR_TRY(CheckStillCurrent(*known->table, transaction.get(), nullptr));
      return found;
    }
    CELLAR_TRY(s.EnsureTransaction(false));
    CELLAR_TRY(s.RefreshStatementSnapshot());
    CELLAR_TRY(lease->Use(*known, options.for_update));
    table::Access& access = *s.transaction->access;
    Status found;
    if (options.for_update) {
      std::vector<Type> types;
      for (uint32_t position : positions) types.push_back(known->schema->columns[position].type);
      rows->mutable_batch()->Reset(types);
      if (by->index->primary) {
        // The key of a row is known before it is read: locked first, it is read once.
        spec.lock.emplace();
        found = FindRows(&access, spec, batch, s.settings.hot().work_mem_bytes, rows);
      } else {
        found = LockRows(&access, spec, batch, rows);
      }
    } else {
      found = FindRows(&access, spec, batch, s.settings.hot().work_mem_bytes, rows);
    }
    if (found.code() == Code::kConflict) return found;
    CELLAR_TRY(CheckStillCurrent(*known->table, s.transaction->kv.get(), nullptr));
    CELLAR_TRY(std::move(found));
    return lease.alone() ? s.Commit(nullptr) : Status();
  };
  for (int attempt = 0;; ++attempt) {
    Status status = s.Guarded(run);
    if (status.ok()) return status;
    s.Fail();
    if (!lease.alone() || !s.RetryAfter(status, attempt)) return status;
  }
}

Status TableImpl::Lookup(std::string_view index_name, std::span<const Key> keys,
                         const Projection& projection, const LookupOptions& options, RowSet* rows) {
  if (keys.size() > kMaxKeys) return TooManyKeys();
  for (int attempt = 0;; ++attempt) {
    Status status = LookupOnce(index_name, keys, projection, options, rows);
    if (status.code() != Code::kConflict || options.call.transaction != nullptr) return status;
    CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(store_.get(), options.call));
    if (!lease->s->RetryAfter(status, attempt)) return status;
  }
}

Status TableImpl::LookupOnce(std::string_view index_name, std::span<const Key> keys,
                             const Projection& projection, const LookupOptions& options,
                             RowSet* rows) {
  rows->mutable_key_positions()->clear();
  ScanOptions scan;
  scan.index = index_name;
  scan.columns = projection;
  scan.call = options.call;
  scan.max_rows = options.max_rows + 1;
  bool first = true;
  // Each key is a scan of its own within one transaction, so that the rows come key by key.
  std::unique_ptr<TableTransaction> own;
  if (keys.size() > 1 && scan.call.transaction == nullptr) {
    TableTransactionOptions read_only;
    read_only.read_only = true;
    CELLAR_TRY_ASSIGN(own, store_->Begin(read_only));
    scan.call.transaction = own.get();
  }
  for (uint32_t key = 0; key < keys.size(); ++key) {
    if (keys[key].empty()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "an empty key");
    }
    scan.spans = {KeySpan::Prefix(keys[key])};
    CELLAR_TRY_ASSIGN(std::unique_ptr<Scanner> scanner, Scan(scan));
    while (const RowSet* batch = scanner->NextBatch()) {
      if (first) {
        std::vector<uint32_t> positions;
        for (const TableColumn& column : batch->columns())
          positions.push_back(static_cast<uint32_t>(batch->schema()->FindColumn(column.id)));
        rows->SetColumns(batch->schema(), positions);
        std::vector<Type> types;
        for (const TableColumn& column : batch->columns()) types.push_back(column.type);
        rows->mutable_batch()->Reset(types);
        first = false;
      }
      rows->mutable_batch()->AppendAll(batch->batch());
      rows->mutable_key_positions()->insert(rows->mutable_key_positions()->end(), batch->size(),
                                            key);
    }
    CELLAR_TRY(scanner->status());
    if (rows->key_positions().size() > options.max_rows) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "more than {} rows were found",
                      options.max_rows)
          .WithHint("Use Scan.");
    }
    scan.max_rows = options.max_rows + 1 - rows->key_positions().size();
  }
  if (first) {
    CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(store_.get(), options.call));
    CELLAR_TRY_ASSIGN(KnownTable * known, Find(lease.get(), options.call));
    CELLAR_TRY_ASSIGN(std::vector<uint32_t> positions, PositionsOf(*known, projection));
    rows->SetColumns(known->schema, positions);
    std::vector<Type> types;
    for (uint32_t position : positions) types.push_back(known->schema->columns[position].type);
    rows->mutable_batch()->Reset(types);
  }
  return Status();
}

// ---- By range ----

namespace {

class ScannerImpl : public Scanner, public DirectRun {
 public:
  ScannerImpl(Lease lease, std::shared_ptr<const ScanOptions> options,
              std::optional<std::chrono::steady_clock::time_point> deadline)
      : options_(std::move(options)),
        lease_(std::move(lease)),
        cancel_(options_->call.cancel),
        max_rows_(options_->max_rows),
        max_bytes_(options_->max_bytes),
        deadline_(deadline) {}
  ~ScannerImpl() override { Close(); }

  Status Open(KnownTable* known);
  EndReason end_reason() const override { return end_; }
  std::string resume_token() const override { return end_ == EndReason::kComplete ? "" : Token(); }
  uint64_t rows_examined() const override { return examined_; }
  void Interrupt() override {
    reader_.reset();
    registered_ = false;
    interrupted_ = true;
    lease_.Abandon();
  }

 protected:
  Result<const RowSet*> DoNext() override;

 private:
  Result<const RowSet*> Read();
  Status SetRanges(const catalog::IndexDescriptor& index, const ScanOptions& options);
  Status Resume(std::string_view token);
  std::string Token() const;
  uint64_t ColumnMark(size_t i) const;
  // Remembers row `row` of what was read as the last one.
  void KeepLast(size_t row);
  void Close();

  const std::shared_ptr<const ScanOptions> options_;  // the filter's values lie there
  Lease lease_;
  const CancelToken* cancel_;
  uint64_t max_rows_, max_bytes_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  catalog::TablePtr table_;
  codec::IndexId index_;
  bool reverse_ = false, unique_ = false, nulls_not_distinct_ = false, tokens_ = true;
  bool checked_ = false;                 // still current
  size_t key_size_ = 0;                  // of order_, the index's own columns
  std::vector<codec::KeyColumn> order_;  // of the index's entries
  std::vector<codec::ColumnId> order_ids_;
  std::vector<int> order_places_;  // of them in what is read
  size_t wanted_ = 0;              // columns that go out: the first ones
  Arena arena_;
  std::vector<KeyRange> ranges_;
  table::ScanSpec spec_;
  std::unique_ptr<table::Reader> reader_;
  BoundFilter filter_;
  std::optional<sql::Evaluator> evaluator_;
  sql::EvalContext context_;
  Arena eval_arena_;
  RowBatch batch_;
  RowSet out_;
  std::string last_;   // key fields of the last row handed out
  std::string given_;  // the token that the scan began with
  uint64_t rows_ = 0, bytes_ = 0, examined_ = 0;
  EndReason end_ = EndReason::kNone;
  bool registered_ = false, interrupted_ = false;
};

Status BadToken() {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "this is no resume token of a scan of this table in this direction");
}

Status ScannerImpl::Resume(std::string_view token) {
  if (!tokens_) {
    return UnsupportedError("scans of an index with expressions or collations cannot be resumed");
  }
  if (token.size() < 5) return BadToken();
  const std::string_view body = token.substr(0, token.size() - 4);
  uint32_t sum = 0;
  for (size_t i = 0; i < 4; ++i)
    sum |= uint32_t{static_cast<uint8_t>(token[body.size() + i])} << (8 * i);
  if (sum != Crc32c(body) || static_cast<uint8_t>(body[0]) != kTokenVersion) return BadToken();
  std::string_view in = body.substr(1);
  Result<uint64_t> table = codec::TakeKeyUint(&in);
  if (!table.ok() || *table != table_->id.value) return BadToken();
  Result<uint64_t> backwards = codec::TakeKeyUint(&in);
  Result<uint64_t> count = codec::TakeKeyUint(&in);
  if (!backwards.ok() || !count.ok() || *backwards != (reverse_ ? 1 : 0)) return BadToken();
  const Status changed =
      SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
               "the scan cannot go on: the key columns of its index have changed")
          .WithDetail(
              "The token was made when the index had other columns, or columns of "
              "other types or directions.");
  if (*count != order_.size()) return changed;
  for (size_t i = 0; i < order_.size(); ++i) {
    Result<uint64_t> column = codec::TakeKeyUint(&in);
    if (!column.ok()) return BadToken();
    if (*column != ColumnMark(i)) return changed;
  }
  KeyEdge edge;
  for (size_t i = 0; !in.empty(); ++i) {
    Result<Datum> value = i < order_.size()
                              ? codec::TakeKeyField(&in, order_[i], &arena_)
                              : Result<Datum>(CorruptionError("more fields than columns"));
    if (!value.ok()) {
      return changed;
    }
    edge.values.push_back(*value);
  }
  edge.after = !reverse_;
  edge.SetBytes(order_);
  KeyRange rest = KeyRange::All();
  (reverse_ ? rest.to : rest.from) = std::move(edge);
  ranges_ = IntersectRanges(ranges_, {rest});
  given_ = token;
  return Status();
}

// What a token says of a column of the order: an index of the same columns in the same order has
// the same rows in the same places, whatever became of the one that the scan began with.
uint64_t ScannerImpl::ColumnMark(size_t i) const {
  return uint64_t{order_ids_[i].value} * 4 +
         (order_[i].direction == codec::Direction::kDescending ? 2 : 0) +
         (order_[i].nulls == codec::NullPlacement::kFirst ? 1 : 0);
}

std::string ScannerImpl::Token() const {
  if (!tokens_) return "";
  if (last_.empty()) return given_;
  std::string token(1, static_cast<char>(kTokenVersion));
  codec::AppendKeyUint(table_->id.value, &token);
  codec::AppendKeyUint(reverse_ ? 1 : 0, &token);
  codec::AppendKeyUint(order_.size(), &token);
  for (size_t i = 0; i < order_.size(); ++i) codec::AppendKeyUint(ColumnMark(i), &token);
  token += last_;
  const uint32_t sum = Crc32c(token);
  for (int i = 0; i < 4; ++i) token.push_back(static_cast<char>(sum >> (8 * i)));
  return token;
}

Status ScannerImpl::SetRanges(const catalog::IndexDescriptor& index, const ScanOptions& options) {
  ranges_ = {KeyRange::All()};
  if (!options.spans.empty()) {
    CELLAR_TRY(IndexOf(*table_, options.index, true).status());
    ranges_.clear();
    for (const KeySpan& span : options.spans) {
      KeyRange range = KeyRange::All();
      CELLAR_TRY_ASSIGN(range.from.values,
                        KeyValues(span.start, order_, 0, index.key.size(), &arena_));
      range.from.after = span.start_exclusive;
      CELLAR_TRY_ASSIGN(range.to.values, KeyValues(span.end, order_, 0, index.key.size(), &arena_));
      range.to.after = span.end_inclusive || span.end.empty();
      range.from.SetBytes(order_);
      range.to.SetBytes(order_);
      ranges_.push_back(std::move(range));
    }
    NormaliseRanges(&ranges_);
  }
  if (options.filter && tokens_) {
    ranges_ = IntersectRanges(
        ranges_, RangesOf(*options.filter, *table_, std::span(order_).first(index.key.size()),
                          order_ids_, &arena_));
  }
  return options.resume_token.empty() ? Status() : Resume(options.resume_token);
}

Status ScannerImpl::Open(KnownTable* known) {
  const ScanOptions& options = *options_;
  Session::Impl& s = *lease_->s;
  table_ = known->table;
  reverse_ = options.reverse;
  CELLAR_TRY_ASSIGN(const catalog::IndexDescriptor* index, IndexOf(*table_, options.index, false));
  index_ = index->id;
  unique_ = index->unique;
  nulls_not_distinct_ = index->nulls_not_distinct;
  key_size_ = index->key.size();
  order_ = OrderOf(*table_, *index, &order_ids_);
  for (size_t i = 0; i < order_.size(); ++i) {
    tokens_ &= order_ids_[i].value != 0 && order_[i].type.collation == nullptr;
  }
  CELLAR_TRY_ASSIGN(std::vector<uint32_t> positions, PositionsOf(*known, options.columns));
  CELLAR_TRY(lease_->CheckSelect(known, positions));
  for (uint32_t position : positions) spec_.columns.push_back(known->ids[position]);
  wanted_ = positions.size();
  auto place = [&](codec::ColumnId id) {
    auto at = std::find(spec_.columns.begin(), spec_.columns.end(), id);
    const auto found = static_cast<int>(at - spec_.columns.begin());
    if (at == spec_.columns.end()) spec_.columns.push_back(id);
    return found;
  };
  if (options.filter) {
    CELLAR_TRY_ASSIGN(filter_, BindFilter(&s, *known, *options.filter));
    for (codec::ColumnId id : filter_.columns) {
      const catalog::ColumnDescriptor* column = table_->FindColumn(id);
      CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known->schema, column->name));
      CELLAR_TRY(lease_->CheckSelect(known, std::span(&position, 1)));
    }
    sql::VisitExprMutable(filter_.expr.get(), [&](sql::Expr* part) {
      if (part->kind == sql::ExprKind::kColumn)
        part->index = place(filter_.columns[static_cast<size_t>(part->index)]);
    });
    evaluator_.emplace(filter_.expr.get());
    // The scan passes over what does not meet these, and does not come back for that long.
    if (!deadline_) spec_.filters = ScanFiltersOf(*options.filter, *table_, &arena_);
  }
  // The order of rows tells of what orders them, and tokens say it. Without the right to read the
  // primary key, a scan by it shows no token.
  const bool computed = std::any_of(order_ids_.begin(), order_ids_.end(),
                                    [](codec::ColumnId id) { return id.value == 0; });
  // Expressions and predicates may look at any column.
  if (computed || !index->predicate.empty()) CELLAR_TRY(lease_->CheckSelect(known, known->all));
  for (size_t i = 0; i < order_ids_.size(); ++i) {
    if (order_ids_[i].value == 0) continue;
    Result<uint32_t> position = PositionOf(*known->schema, table_->FindColumn(order_ids_[i])->name);
    if (!position.ok()) continue;  // the hidden row id
    const Status allowed = lease_->CheckSelect(known, std::span(&*position, 1));
    if (allowed.ok()) continue;
    if (!index->primary || !options.resume_token.empty()) return allowed;
    tokens_ = false;
  }
  if (tokens_) {
    for (codec::ColumnId id : order_ids_) order_places_.push_back(place(id));
  }
  CELLAR_TRY(SetRanges(*index, options));
  if (!options.spans.empty()) {
    for (size_t i = 0; i < index->key.size(); ++i) {
      CELLAR_TRY_ASSIGN(uint32_t position,
                        PositionOf(*known->schema, table_->FindColumn(order_ids_[i])->name));
      CELLAR_TRY(lease_->CheckSelect(known, std::span(&position, 1)));
    }
  }
  out_.SetColumns(known->schema, positions);
  CELLAR_TRY(s.EnsureTransaction(lease_.alone()));
  CELLAR_TRY(s.RefreshStatementSnapshot());
  CELLAR_TRY(lease_->Use(*known, false));
  s.SetUpContext(&context_);
  spec_.table = table_;
  spec_.index = index_;
  spec_.reverse = reverse_;
  for (const KeyRange& range : ranges_) AppendSpans(range, order_, &spec_.spans);
  if (reverse_) std::reverse(spec_.spans.begin(), spec_.spans.end());
  if (!options.filter) spec_.limit_hint = max_rows_;
  if (!spec_.spans.empty()) {
    CELLAR_TRY_ASSIGN(reader_, s.transaction->access->Scan(spec_));
  }
  if (!lease_.alone()) {
    s.direct_runs.push_back(this);
    registered_ = true;
  }
  return Status();
}

void ScannerImpl::KeepLast(size_t row) {
  last_.clear();
  if (!tokens_) return;
  bool nulls = false;
  for (size_t i = 0; i < order_.size(); ++i) {
    // An entry of a unique index without NULLs has nothing behind its own columns.
    if (unique_ && i == key_size_ && (!nulls || nulls_not_distinct_)) return;
    const Datum value = batch_.column(static_cast<size_t>(order_places_[i])).Get(row);
    nulls |= value.is_null();
    codec::AppendKeyField(value, order_[i], &last_);
  }
}

Result<const RowSet*> ScannerImpl::DoNext() {
  if (end_ != EndReason::kNone) return nullptr;
  if (lease_.get() == nullptr || interrupted_) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidCursorState,
                    "the transaction has ended before all rows were read");
  }
  Result<const RowSet*> next = lease_->s->Guarded([this] { return Read(); });
  if (!next.ok()) {
    Session::Impl& s = *lease_->s;
    if (next.status().code() != Code::kConflict && s.transaction != nullptr) {
      // Behind a change of the table what was met says nothing.
      Status current = CheckStillCurrent(*table_, s.transaction->kv.get(), nullptr);
      if (!current.ok()) next = std::move(current);
    }
    reader_.reset();
    s.Fail();
    Close();
  } else if (*next == nullptr) {
    Close();
  }
  return next;
}

Result<const RowSet*> ScannerImpl::Read() {
  Session::Impl& s = *lease_->s;
  while (true) {
    if (cancel_ != nullptr) CELLAR_TRY(cancel_->Check());
    CELLAR_TRY(s.cancel.Check());
    if (max_rows_ != 0 && rows_ >= max_rows_) {
      end_ = EndReason::kRows;
      return nullptr;
    }
    if (max_bytes_ != 0 && bytes_ >= max_bytes_) {
      end_ = EndReason::kBytes;
      return nullptr;
    }
    if (deadline_ && std::chrono::steady_clock::now() >= *deadline_) {
      end_ = EndReason::kTime;
      return nullptr;
    }
    bool more = false;
    RowBatch& shown = *out_.mutable_batch();
    for (size_t c = 0; c < shown.num_columns(); ++c) std::swap(shown.column(c), batch_.column(c));
    shown.columns().clear();
    if (reader_ != nullptr) {
      CELLAR_TRY_ASSIGN(more, reader_->Next(&batch_));
      if (!checked_) {
        CELLAR_TRY(CheckStillCurrent(*table_, s.transaction->kv.get(), nullptr));
        checked_ = true;
      }
    }
    if (!more) {
      end_ = EndReason::kComplete;
      return nullptr;
    }
    examined_ += batch_.size();
    s.transaction->access->NoteReads(*table_, batch_.size());
    const size_t read = batch_.size();
    if (evaluator_) {
      eval_arena_.Reset();
      context_.set_arena(&eval_arena_);
      std::vector<uint32_t> passing;
      CELLAR_TRY(
          evaluator_->Filter(batch_, sql::Selection{nullptr, batch_.size()}, context_, &passing));
      // Where a scan goes on must move along, even over rows that do not pass.
      if (deadline_ && tokens_ && passing.empty()) {
        KeepLast(read - 1);
      }
      if (passing.empty()) continue;
      if (passing.size() != batch_.size()) batch_.Keep(passing);
    }
    if (max_rows_ != 0 && rows_ + batch_.size() > max_rows_) {
      std::vector<uint32_t> first(max_rows_ - rows_);
      for (uint32_t i = 0; i < first.size(); ++i) first[i] = i;
      batch_.Keep(first);
    }
    if (max_bytes_ != 0) {
      // As many rows as fit; one at least.
      size_t count = 0;
      while (count < batch_.size() && bytes_ < max_bytes_) {
        for (size_t c = 0; c < wanted_; ++c) {
          const ColumnVector& column = batch_.column(c);
          bytes_ += column.physical() == Physical::kBytes ? column.bytes()[count].size() : 8;
        }
        ++count;
      }
      if (count < batch_.size()) {
        std::vector<uint32_t> first(count);
        for (uint32_t i = 0; i < count; ++i) first[i] = i;
        batch_.Keep(first);
      }
    }
    rows_ += batch_.size();
    KeepLast(batch_.size() - 1);
    // What is read besides is not shown: the wanted columns change places with the reader's.
    shown.columns().resize(wanted_);
    for (size_t c = 0; c < wanted_; ++c) std::swap(shown.column(c), batch_.column(c));
    shown.SetSize(batch_.size());
    return &out_;
  }
}

void ScannerImpl::Close() {
  reader_.reset();
  if (lease_.get() == nullptr) return;
  Session::Impl& s = *lease_->s;
  if (registered_) {
    std::erase(s.direct_runs, static_cast<DirectRun*>(this));
    registered_ = false;
  }
  if (lease_.alone() && s.transaction != nullptr) (void)s.Commit(nullptr);
  lease_.Release();
}

}  // namespace

Result<std::unique_ptr<Scanner>> TableImpl::OpenScan(
    const std::shared_ptr<const ScanOptions>& options,
    std::optional<std::chrono::steady_clock::time_point> deadline, Status failed, int attempt) {
  for (;; ++attempt) {
    CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(store_.get(), options->call));
    Session::Impl& s = *lease->s;
    const bool alone = lease.alone();
    if (!failed.ok() && (!alone || !s.RetryAfter(failed, attempt))) return failed;
    Result<KnownTable*> known = Find(lease.get(), options->call);
    if (!known.ok()) {
      s.Fail();
      return known.status();
    }
    auto scanner = std::make_unique<ScannerImpl>(std::move(lease), options, deadline);
    failed = scanner->Open(*known);
    if (failed.ok()) return std::unique_ptr<Scanner>(std::move(scanner));
    s.Fail();
    if (!alone || failed.code() != Code::kConflict) return failed;
  }
}

Result<std::unique_ptr<Scanner>> TableImpl::Scan(const ScanOptions& options) {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  if (options.max_time.count() > 0) deadline = std::chrono::steady_clock::now() + options.max_time;
  const auto kept = std::make_shared<const ScanOptions>(options);
  CELLAR_TRY_ASSIGN(std::unique_ptr<Scanner> scan, OpenScan(kept, deadline, Status(), 0));
  if (options.call.transaction != nullptr) return scan;
  return std::unique_ptr<Scanner>(std::make_unique<RestartingScanner>(
      std::move(scan),
      [table = shared_from_this(), kept, deadline](const Status& failed, int attempt) {
        return table->OpenScan(kept, deadline, failed, attempt);
      }));
}

}  // namespace cellar::session::tables
