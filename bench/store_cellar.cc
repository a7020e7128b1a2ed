// Cellar embedded: prepared statements of a session, as cellar/db.h runs them, and the tables below
// them without SQL.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "bench/cellar_sink.h"
#include "bench/store.h"
#include "cellar/catalog/catalog.h"
#include "cellar/store/open.h"
#include "cellar/table/access.h"

namespace cellar::bench {
namespace {

constexpr size_t kCacheBytes = size_t{256} << 20;

class SessionClient : public Client {
 public:
  SessionClient(session::Database* database, const Sql& sql)
      : session_(Check(session::Session::Open(database, {}))) {
    Parse("begin", "BEGIN");
    Parse("commit", "COMMIT");
    Parse("by_id", sql.by_id);
    Parse("by_k", sql.by_k);
    Parse("range", sql.range);
    Parse("sum", sql.sum);
    Parse("count", sql.count);
    Parse("count_filtered", sql.count_filtered);
    Parse("q6", sql.q6);
    Parse("group_by", sql.group_by);
    Parse("scan", sql.scan);
    Parse("insert", sql.insert);
    Parse("update", sql.update);
  }
  void Begin() override { Run("begin", {}); }
  void Commit() override { Run("commit", {}); }
  int64_t PointById(int64_t id) override {
    const uint64_t bytes = htobe64(static_cast<uint64_t>(id));
    return Run("by_id", {{false, true, View(bytes)}});
  }
  int64_t PointByK(int32_t k) override {
    const uint32_t bytes = htobe32(static_cast<uint32_t>(k));
    return Run("by_k", {{false, true, View(bytes)}});
  }
  int64_t Range(int64_t start, int64_t end) override {
    const uint64_t low = htobe64(static_cast<uint64_t>(start));
    const uint64_t high = htobe64(static_cast<uint64_t>(end));
    return Run("range", {{false, true, View(low)}, {false, true, View(high)}});
  }
  int64_t SumQty() override {
    Run("sum", {});
    return sink_.last_int;
  }
  int64_t Count() override {
    Run("count", {});
    return sink_.last_int;
  }
  int64_t CountFiltered() override {
    Run("count_filtered", {});
    return sink_.last_int;
  }
  double Q6() override {
    Run("q6", {});
    return sink_.last_double;
  }
  int64_t GroupBy() override { return Run("group_by", {}); }
  int64_t ScanAll() override { return Run("scan", {}); }
  void SetDurable(bool durable) override {
    Check(session_->ExecuteSimple(
        durable ? "SET synchronous_commit = on" : "SET synchronous_commit = off", &sink_));
  }
  void KeepChangesApart() override {
    Check(session_->ExecuteSimple("SET cellar.seal = off", &sink_));
  }
  void Insert(const Row& row) override {
    const uint64_t id = htobe64(static_cast<uint64_t>(row.id));
    const uint32_t k = htobe32(static_cast<uint32_t>(row.k));
    const uint64_t at = htobe64(static_cast<uint64_t>(row.at));
    uint64_t price = 0;
    std::memcpy(&price, &row.price, sizeof price);
    price = htobe64(price);
    const uint32_t qty = htobe32(static_cast<uint32_t>(row.qty));
    const char flag = row.flag ? 1 : 0;
    const uint64_t code = htobe64(static_cast<uint64_t>(row.code));
    Run("insert", {{false, true, View(id)},
                   {false, true, View(k)},
                   {false, true, View(at)},
                   {false, true, View(price)},
                   {false, true, row.name},
                   {false, true, row.kind},
                   {false, true, View(qty)},
                   {false, true, View(flag)},
                   {false, true, row.note},
                   {!row.has_code, true, View(code)}});
  }
  void AddToQty(int64_t id) override {
    const uint64_t bytes = htobe64(static_cast<uint64_t>(id));
    Run("update", {{false, true, View(bytes)}});
  }

 private:
  template <typename T>
  static std::string_view View(const T& bytes) {
    return {reinterpret_cast<const char*>(&bytes), sizeof bytes};
  }
  void Parse(const std::string& name, std::string_view text) {
    Check(session_->Parse(name, text, {}, &sink_));
  }
  // As a wire client's Bind, Execute, Sync. Conflicts of concurrent writers are run again.
  int64_t Run(const std::string& name, std::initializer_list<session::BoundParameter> parameters) {
    while (true) {
      sink_.rows = 0;
      const Status status = Once(name, parameters);
      if (status.ok()) return sink_.rows;
      if (status.code() != Code::kConflict) Check(status);
    }
  }
  Status Once(const std::string& name, std::initializer_list<session::BoundParameter> parameters) {
    Status status = session_->Bind("", name, {parameters.begin(), parameters.size()});
    if (status.ok()) status = session_->ExecutePortal("", 0, true, &sink_).status();
    if (!status.ok()) session_->Fail();
    Status end = session_->Sync(&sink_);
    return status.ok() ? std::move(end) : std::move(status);
  }

  std::unique_ptr<session::Session> session_;
  Sink sink_;
};

class CellarStore : public Store {
 public:
  CellarStore(const std::string& directory, const Shape& shape, const std::string& layout)
      : directory_(directory),
        shape_(shape),
        layout_(layout),
        sql_(MakeSql(shape, Dialect::kPostgres)) {
    store::StoreOptions options;
    options.directory = directory;
    options.cache_bytes = kCacheBytes;
    database_ = Check(store::OpenDatabase(options));
  }
  std::string name() const override { return "cellar-" + layout_; }

  void Create(bool index) override {
    Run(sql_.create_table + " WITH (layout = " + layout_ + ")");
    if (index) Run(sql_.create_index);
  }
  void Load(const std::string& csv) override {
    std::FILE* file = std::fopen(csv.c_str(), "rb");
    if (file == nullptr) Die("cannot read " + csv);
    Run("COPY " + shape_.table + " FROM STDIN (FORMAT csv)", file);
    std::fclose(file);
  }
  void CreateIndex() override { Run(sql_.create_index); }
  void Settle() override { Run("VACUUM ANALYZE " + shape_.table); }
  uint64_t Bytes() override {
    if (layout_ == "pages") Run("ALTER TABLE " + shape_.table + " SEAL");
    Check(database_->engine()->Compact("", "\xff"));
    return BytesInDirectory(directory_);
  }
  std::unique_ptr<Client> Connect() override {
    return std::make_unique<SessionClient>(database_.get(), sql_);
  }
  session::Database* database() { return database_.get(); }
  const Shape& shape() const { return shape_; }

 private:
  void Run(std::string_view text, std::FILE* copy = nullptr) {
    Sink sink;
    sink.copy = copy;
    Check(Check(session::Session::Open(database_.get(), {}))->ExecuteSimple(text, &sink));
  }
  std::string directory_;
  Shape shape_;
  std::string layout_;
  Sql sql_;
  std::unique_ptr<session::Database> database_;
};

class TableClient : public Client {
 public:
  TableClient(kv::Engine* engine, table::TableStore* tables, table::TablePtr table)
      : engine_(engine), tables_(tables), table_(std::move(table)) {
    for (const catalog::ColumnDescriptor& column : table_->columns) columns_.push_back(column.id);
  }
  void Begin() override {
    transaction_ = engine_->Begin({.read_only = true});
    access_.emplace(transaction_.get(), nullptr, tables_);
  }
  void Commit() override {
    access_.reset();
    Check(transaction_->Commit());
    transaction_.reset();
  }
  int64_t PointById(int64_t id) override {
    table::Span span;
    span.equal = {Datum::Int(id)};
    return Read(Spec(table_->primary().id, std::move(span), columns_));
  }
  int64_t PointByK(int32_t k) override {
    table::Span span;
    span.equal = {Datum::Int(k)};
    return Read(Spec(IndexOfK().id, std::move(span), columns_));
  }
  int64_t Range(int64_t start, int64_t end) override {
    table::Span span;
    span.lower = {table::Bound::Kind::kInclusive, Datum::Int(start)};
    span.upper = {table::Bound::Kind::kExclusive, Datum::Int(end)};
    return Read(Spec(table_->primary().id, std::move(span), columns_));
  }
  int64_t SumQty() override {
    int64_t sum = 0;
    Read(Spec(table_->primary().id, table::Span(), {columns_[6]}), [&sum](const RowBatch& batch) {
      const int64_t* values = batch.column(0).ints();
      for (size_t row = 0; row < batch.size(); ++row) sum += values[row];
    });
    return sum;
  }
  int64_t Count() override {
    return Read(Spec(table_->primary().id, table::Span(), {}), [](const RowBatch&) {});
  }
  int64_t ScanAll() override { return Read(Spec(table_->primary().id, table::Span(), columns_)); }

 private:
  const catalog::IndexDescriptor& IndexOfK() const {
    return *std::find_if(table_->indexes.begin(), table_->indexes.end(),
                         [](const catalog::IndexDescriptor& index) { return !index.primary; });
  }
  table::ScanSpec Spec(codec::IndexId index, table::Span span,
                       std::vector<codec::ColumnId> columns) const {
    table::ScanSpec spec;
    spec.table = table_;
    spec.index = index;
    spec.spans.push_back(std::move(span));
    spec.columns = std::move(columns);
    return spec;
  }
  int64_t Read(table::ScanSpec spec) {
    return Read(std::move(spec), [this](const RowBatch& batch) { reading_.Add(batch); });
  }
  template <typename Take>
  int64_t Read(table::ScanSpec spec, Take take) {
    if (access_) return Drain(&*access_, std::move(spec), take);
    const auto transaction = engine_->Begin({.read_only = true, .autocommit = true});
    table::Access access(transaction.get(), nullptr, tables_);
    return Drain(&access, std::move(spec), take);
  }
  template <typename Take>
  int64_t Drain(table::Access* access, table::ScanSpec spec, Take take) {
    const auto reader = Check(access->Scan(std::move(spec)));
    int64_t rows = 0;
    while (Check(reader->Next(&batch_))) {
      rows += static_cast<int64_t>(batch_.size());
      take(batch_);
    }
    return rows;
  }

  kv::Engine* engine_;
  table::TableStore* tables_;
  table::TablePtr table_;
  std::vector<codec::ColumnId> columns_;
  std::unique_ptr<kv::Transaction> transaction_;
  std::optional<table::Access> access_;
  RowBatch batch_;
  Reading reading_;
};

class TableLayer : public Store {
 public:
  explicit TableLayer(CellarStore* cellar)
      : engine_(cellar->database()->engine()),
        name_(cellar->name() + "-table"),
        table_(cellar->shape().table) {}
  std::string name() const override { return name_; }
  Abilities abilities() const override {
    return {.load = false, .analytics = false, .writes = false};
  }
  void Load(const std::string&) override {}
  void CreateIndex() override {}
  std::unique_ptr<Client> Connect() override {
    // The session's own catalog made the table; this one only reads it.
    if (catalog_ == nullptr) catalog_ = Check(catalog::Catalog::Open(engine_));
    const std::vector<table::TablePtr> all = catalog_->Current()->ListAllTables();
    const auto found = std::find_if(all.begin(), all.end(), [this](const table::TablePtr& table) {
      return table->name == table_;
    });
    if (found == all.end()) Die("cellar: the table is absent");
    // Not the session's TableStore: what this one has learnt does not outlast its writes.
    tables_.push_back(std::make_unique<table::TableStore>(engine_));
    return std::make_unique<TableClient>(engine_, tables_.back().get(), *found);
  }

 private:
  kv::Engine* engine_;
  std::vector<std::unique_ptr<table::TableStore>> tables_;
  std::string name_, table_;
  std::unique_ptr<catalog::Catalog> catalog_;
};

}  // namespace

std::unique_ptr<Store> OpenCellar(const std::string& directory, const Shape& shape,
                                  const std::string& layout) {
  return std::make_unique<CellarStore>(directory, shape, layout);
}

std::unique_ptr<Store> OpenCellarTables(Store* cellar) {
  return std::make_unique<TableLayer>(static_cast<CellarStore*>(cellar));
}

}  // namespace cellar::bench
