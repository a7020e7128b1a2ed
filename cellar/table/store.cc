// Row ids in blocks, and estimates of table sizes.
#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/statistics.h"
#include "cellar/codec/page.h"
#include "cellar/codec/row.h"
#include "cellar/table/access.h"
#include "cellar/table/page_cache.h"
#include "cellar/table/page_directory.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

// Row ids taken from the store at once; those not handed out when the process ends are lost.
constexpr uint64_t kRowIdBlock = 4096;
constexpr int kMaxRetries = 100;
// The sample that tells how many rows a byte on disk holds.
constexpr size_t kSampleBytes = 256 << 10;
constexpr uint64_t kExactRows = 500;

std::string RowIdKey(codec::TableId table) { return codec::SystemKey("rowid", {table.value}); }

// Advances the stored counter by `count` and returns its old value, the first free id.
Result<int64_t> AdvanceCounter(codec::TableId table, uint64_t count, kv::Transaction* transaction) {
  const std::string key = RowIdKey(table);
  const Type type = MakeType(TypeId::kInt8);
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(bool found, transaction->Get(key, &value));
  int64_t next = 1;
  if (found) {
    CELLAR_TRY_ASSIGN(Datum stored, codec::ParseCell(value.view(), type));
    if (stored.is_null()) return CorruptionError("counter of row ids is NULL");
    next = stored.int_value();
  }
  if (next < 1 || static_cast<uint64_t>(INT64_MAX - next) < count) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "table is out of row ids");
  }
  std::string cell;
  codec::AppendCell(Datum::Int(next + static_cast<int64_t>(count)), type, &cell);
  CELLAR_TRY(transaction->Put(key, cell));
  return next;
}

}  // namespace

Result<std::optional<int64_t>> NextRowId(const TableDescriptor& table,
                                         kv::Transaction* transaction) {
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(const bool found, transaction->Get(RowIdKey(table.storage_id()), &value,
                                                       kv::ReadMode::kSnapshot));
  if (!found) return std::optional<int64_t>();
  CELLAR_TRY_ASSIGN(const Datum stored, codec::ParseCell(value.view(), MakeType(TypeId::kInt8)));
  if (stored.is_null()) return CorruptionError("counter of row ids is NULL");
  return std::optional<int64_t>(stored.int_value());
}

Status PutNextRowId(const TableDescriptor& table, int64_t next, kv::Transaction* transaction) {
  std::string cell;
  codec::AppendCell(Datum::Int(next), MakeType(TypeId::kInt8), &cell);
  return transaction->Put(RowIdKey(table.storage_id()), cell);
}

Result<int64_t> GreatestRowId(AccessContext* context, const TablePtr& table) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  ScanSpec spec;
  spec.table = table;
  spec.index = compiled->primary().index->id;
  spec.spans = {Span{}};
  spec.columns = {table->primary().key.front().column};
  spec.reverse = true;
  spec.limit_hint = 1;
  CELLAR_TRY_ASSIGN(const std::unique_ptr<Reader> reader, OpenScan(context, std::move(spec)));
  RowBatch rows;
  while (true) {
    CELLAR_TRY_ASSIGN(const bool more, reader->Next(&rows));
    if (!more) return int64_t{0};
    if (rows.size() != 0) return rows.column(0).ints()[0];
  }
}

Result<int64_t> TakeRowIdsInTransaction(const TableDescriptor& table, uint64_t count,
                                        kv::Transaction* transaction) {
  return AdvanceCounter(table.storage_id(), count, transaction);
}

struct TableStore::Impl {
  struct Ids {
    std::mutex mutex;
    int64_t next = 0, end = 0;
  };
  struct Density {
    uint64_t rows = 0, bytes = 0;  // of the sample
    uint64_t table_bytes = 0;      // when it was taken
  };

  kv::Engine* engine;
  std::mutex mutex;  // of the maps
  std::map<uint64_t, std::unique_ptr<Ids>> ids;
  std::map<std::pair<uint64_t, bool>, Density> densities;  // by table; true: of its pages
  std::map<std::pair<uint64_t, uint32_t>, std::shared_ptr<PageDirectory>> directories;

  struct Reads {
    std::string counter_name;
    uint64_t rows = 0;
  };
  std::mutex reads_mutex;
  std::unordered_map<uint64_t, Reads> reads;  // by storage; not written down yet

  std::shared_ptr<PageCache> pages = std::make_shared<PageCache>(PageCache::DefaultBytes());

  Result<int64_t> TakeBlock(codec::TableId table, uint64_t count);
  Result<Density> Sample(const codec::KeyRange& range, bool pages, bool* exact);
  Result<uint64_t> EstimateRange(codec::TableId table, const codec::KeyRange& range, bool pages);
};

TableStore::TableStore(kv::Engine* engine) : impl_(std::make_unique<Impl>()) {
  impl_->engine = engine;
}
TableStore::~TableStore() = default;

kv::Engine* TableStore::engine() const { return impl_->engine; }

std::shared_ptr<PageDirectory> TableStore::DirectoryOf(codec::TableId table, IndexId primary) {
  std::lock_guard lock(impl_->mutex);
  std::shared_ptr<PageDirectory>& slot = impl_->directories[{table.value, primary.value}];
  if (slot == nullptr) slot = std::make_shared<PageDirectory>(impl_->pages);
  return slot;
}

Status TableStore::DeleteRecords(const TableDescriptor& table, kv::Transaction* transaction) {
  CELLAR_TRY(transaction->DropCounter(catalog::CounterNameOf(table)));
  CELLAR_TRY(transaction->Delete(catalog::StatisticsKey(table)));
  return transaction->Delete(RowIdKey(table.storage_id()));
}

void TableStore::Forget(codec::TableId storage) {
  std::lock_guard lock(impl_->mutex);
  impl_->densities.erase({storage.value, false});
  impl_->densities.erase({storage.value, true});
  std::erase_if(impl_->directories,
                [&](const auto& entry) { return entry.first.first == storage.value; });
}

void TableStore::NoteReads(const TableDescriptor& table, uint64_t rows) {
  std::lock_guard lock(impl_->reads_mutex);
  Impl::Reads& reads = impl_->reads[table.storage_id().value];
  if (reads.rows == 0) reads.counter_name = catalog::CounterNameOf(table);
  reads.rows += rows;
}

Status TableStore::FlushReads() {
  std::unordered_map<uint64_t, Impl::Reads> taken;
  {
    std::lock_guard lock(impl_->reads_mutex);
    taken.swap(impl_->reads);
  }
  if (taken.empty()) return Status();
  kv::TransactionOptions options;
  options.durable = false;
  const std::unique_ptr<kv::Transaction> transaction = impl_->engine->Begin(options);
  const auto write = [&]() -> Status {
    for (const auto& [storage, reads] : taken) {
      CELLAR_TRY(
          CountRead(transaction.get(), reads.counter_name, static_cast<int64_t>(reads.rows)));
    }
    return transaction->Commit().status();
  };
  Status written = write();
  if (written.ok()) return written;
  std::lock_guard lock(impl_->reads_mutex);
  for (auto& [storage, reads] : taken) {
    Impl::Reads& kept = impl_->reads[storage];
    reads.rows += kept.rows;
    kept = std::move(reads);
  }
  return written;
}

Result<int64_t> TableStore::Impl::TakeBlock(codec::TableId table, uint64_t count) {
  Status last;
  for (int attempt = 0; attempt < kMaxRetries; ++attempt) {
    std::unique_ptr<kv::Transaction> transaction = engine->Begin();
    CELLAR_TRY_ASSIGN(int64_t first, AdvanceCounter(table, count, transaction.get()));
    // Durable, or a crash could bring back ids whose rows are durable.
    kv::CommitOptions options;
    options.durable = true;
    Result<uint64_t> committed = transaction->Commit(options);
    if (committed.ok()) return first;
    last = std::move(committed).status();
    // After an unknown outcome the block may or may not be ours: taking another one is safe.
    if (last.code() != Code::kConflict && last.code() != Code::kCommitUnknown) return last;
  }
  return last;
}

Result<int64_t> TableStore::TakeRowIds(codec::TableId table, uint64_t count) {
  Impl::Ids* ids = nullptr;
  {
    std::lock_guard lock(impl_->mutex);
    std::unique_ptr<Impl::Ids>& slot = impl_->ids[table.value];
    if (slot == nullptr) slot = std::make_unique<Impl::Ids>();
    ids = slot.get();
  }
  std::lock_guard lock(ids->mutex);
  if (static_cast<uint64_t>(ids->end - ids->next) < count) {
    // The rest of the old block is given up: ids of one batch are consecutive.
    const uint64_t block = std::max(kRowIdBlock, count * 4);
    CELLAR_TRY_ASSIGN(ids->next, impl_->TakeBlock(table, block));
    ids->end = ids->next + static_cast<int64_t>(block);
  }
  const int64_t first = ids->next;
  ids->next += static_cast<int64_t>(count);
  return first;
}

Result<TableStore::Impl::Density> TableStore::Impl::Sample(const codec::KeyRange& range, bool pages,
                                                           bool* exact) {
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  std::unique_ptr<kv::Transaction> transaction = engine->Begin(read_only);
  kv::ScanOptions options;
  options.keys_only = !pages;
  options.fill_cache = false;
  options.mode = kv::ReadMode::kSnapshot;
  options.first_block_bytes = options.block_bytes = kSampleBytes / 8;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(range.start, range.end, options));
  Density density;
  std::string last;
  kv::Block block;
  size_t read = 0;
  *exact = false;
  while (read < kSampleBytes) {
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) {
      *exact = true;
      return density;
    }
    for (size_t i = 0; pages && i < block.size(); ++i) {
      codec::PageView page;
      CELLAR_TRY(page.Parse(block.value(i)));
      density.rows += page.rows();
    }
    // Of rows in several keys, the own one ends in group 0.
    for (size_t i = 0; !pages && i < block.size(); ++i) {
      density.rows += block.key(i).back() == kGroupZero ? 1 : 0;
    }
    read += block.bytes();
    last = block.key(block.size() - 1);
  }
  density.bytes = engine->ApproximateBytes(range.start, last);
  return density;
}

// The bytes on disk of the table over those of a sample, times the sample's rows. Both figures come
// from the same measure, so that compression cancels out.
Result<uint64_t> TableStore::EstimateRows(const TableDescriptor& table) {
  if (table.indexes.empty()) return uint64_t{0};
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  CELLAR_TRY_ASSIGN(const uint64_t rows,
                    impl_->EstimateRange(table.storage_id(),
                                         codec::PrefixRange(compiled->primary().prefix), false));
  CELLAR_TRY_ASSIGN(const uint64_t in_pages, EstimatePagedRows(table));
  return rows + in_pages;
}

Result<uint64_t> TableStore::EstimatePagedRows(const TableDescriptor& table) {
  if (table.layout != catalog::Layout::kPages || table.indexes.empty()) return uint64_t{0};
  const IndexId pages{table.primary().id.value + codec::kPagesOfPrimary};
  return impl_->EstimateRange(
      table.storage_id(), codec::PrefixRange(codec::TablePrefix(table.storage_id(), pages)), true);
}

Result<uint64_t> TableStore::Impl::EstimateRange(codec::TableId table, const codec::KeyRange& range,
                                                 bool pages) {
  const uint64_t bytes = engine->ApproximateBytes(range.start, range.end);
  const std::pair<uint64_t, bool> key{table.value, pages};
  {
    std::lock_guard lock(mutex);
    auto known = densities.find(key);
    if (known != densities.end()) {
      const Density& density = known->second;
      // Good until the table has grown or shrunk by half.
      if (bytes / 2 <= density.table_bytes && density.table_bytes <= bytes * 2 &&
          density.bytes > 0) {
        return static_cast<uint64_t>(static_cast<double>(density.rows) *
                                     static_cast<double>(bytes) /
                                     static_cast<double>(density.bytes));
      }
    }
  }
  bool exact = false;
  CELLAR_TRY_ASSIGN(Density density, Sample(range, pages, &exact));
  if (exact) return density.rows;
  density.table_bytes = bytes;
  if (density.bytes == 0 || bytes < density.bytes) return std::max(density.rows, kExactRows);
  std::lock_guard lock(mutex);
  densities[key] = density;
  return static_cast<uint64_t>(static_cast<double>(density.rows) * static_cast<double>(bytes) /
                               static_cast<double>(density.bytes));
}

}  // namespace cellar::table
