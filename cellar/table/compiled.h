// Codecs of one table version, compiled once and kept beside its descriptor. Private to the layer.
//
// Layout `row` (docs/formats/key.md section 4, docs/formats/row.md):
//   row          prefix pk.. GroupID(0)           -> ROW of a format of the table
//   secondary    prefix key.. pk-not-in-key..     -> ROW of format 0, or nothing
//   unique       prefix key..                     -> pk.. then ROW of format 0, or nothing
//   unique, NULL in the key (unless NULLS NOT DISTINCT):
//                prefix key.. pk-not-in-key..     -> as unique
// A RowRef is the pk.. bytes: it names a row for as long as the row keeps its primary key.
// Layout `pages` (docs/formats/page.md) differs in the rows:
//   delta        prefix pk.. GroupID(0)           -> ROW, PATCH over the page's row, or nothing:
//   deleted page         page-prefix boundary GroupID(0)  -> PAGE of the rows from the boundary (a
//   RowRef) on first page   page-prefix                      -> PAGE of the rows before all other
//   boundaries
// Rows that are split into parts (docs/formats/key.md section 4; split_rows.h): column groups of
// layout `row`, and layout `cell`, where each column outside the primary key is a part:
//   row          prefix pk.. GroupID(0)           -> ROW of the columns in no part
//   part         prefix pk.. GroupID              -> PATCH of the part's columns, or no entry
// Layout `datum`, with P the ids of table and index:
//   row          P ColumnID(0) pk.. GroupID(0)    -> ROW of the key columns; `prefix` is P
//   ColumnID(0) part         P ColumnID pk.. GroupID(0)       -> PATCH of the column, or no entry
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/descriptor.h"
#include "cellar/codec/key.h"
#include "cellar/codec/page.h"
#include "cellar/codec/row.h"
#include "cellar/table/computed.h"
#include "cellar/types/batch.h"

namespace cellar::table {

using catalog::IndexDescriptor;
using catalog::TableDescriptor;
using codec::ColumnId;
using codec::IndexId;

// The encoding of GroupID 0, which ends every key of a row.
inline constexpr char kGroupZero = 0x15;

// The field of a shard, int(shard) of docs/formats/key.md: one byte.
inline constexpr uint32_t kMaxShards = 32;
inline char ShardField(uint32_t shard) { return static_cast<char>(kGroupZero + shard); }

// May the key form of some value of this type lose something (codec::KeyLosesInformation)?
bool TypeMayLoseInformation(Type type);

// How rows become entries of one index. Positions are places among the table's living columns, in
// ordinal order, and behind them its computed ones: the columns of IndexedRows. Immutable.
struct IndexCodec {
  const IndexDescriptor* index = nullptr;
  std::string prefix;
  bool primary = false;
  bool unique = false;
  bool nulls_distinct = true;                 // unique only: NULLs make a key unlike any other
  std::vector<codec::KeyColumn> key_columns;  // its own
  std::vector<uint32_t> key_positions;
  std::vector<codec::KeyColumn> rest_columns;  // of the primary key, those not among its own
  std::vector<uint32_t> rest_positions;
  std::vector<codec::KeyColumn> ref_columns;  // the primary key
  std::vector<uint32_t> ref_places;           // of its columns in key_columns + rest_columns
  codec::RowFormat entry_format;              // secondary indexes only
  std::vector<uint32_t> entry_positions;      // of entry_format's columns
  std::vector<uint32_t> all_positions;        // everything that an entry depends on, unique

  // A hash of the key fields spreads keys over so many ranges, in front of the fields; 0: none.
  uint32_t shards = 0;
  int predicate_position = -1;  // of a partial index: rows have entries where it is true

  // Has this row an entry?
  bool Holds(const RowBatch& rows, size_t row) const {
    if (predicate_position < 0) return true;
    const ColumnVector& predicate = rows.column(static_cast<size_t>(predicate_position));
    return !predicate.IsNull(row) && predicate.ints()[row] != 0;
  }
  // Where the fields begin: behind the shard's.
  size_t fields_start() const { return prefix.size() + (shards == 0 ? 0 : 1); }
  // Puts the shard of the fields that follow it into the byte at `place`, which was left for it.
  void FillShard(size_t place, std::string* key) const;
  bool holds_no_ref_column() const { return rest_columns.size() == ref_columns.size(); }

  // Is a NULL among the key columns of this row, so that a unique index lets it be?
  bool EscapesUniqueness(const RowBatch& rows, size_t row) const;
  // Appends the whole, finished key of the row's entry; `ref` is the row's RowRef.
  void AppendKey(const RowBatch& rows, size_t row, std::string_view ref, std::string* key) const;
  // Appends the value of a secondary entry. `scratch` is reused between calls.
  Status AppendValue(const RowBatch& rows, size_t row, std::string_view ref,
                     std::vector<Datum>* scratch, std::string* value) const;
  // Finds the RowRef in an entry: borrowed from key or value. Errors: kCorruption.
  Result<std::string_view> FindRef(std::string_view key, std::string_view value,
                                   std::string* scratch, RowBatch* scratch_row) const;
};

// Append the whole key of the row with this RowRef, and what of it follows the primary index's
// prefix.
void AppendRowKey(const IndexCodec& primary, std::string_view ref, std::string* key);
void AppendRowPlace(const IndexCodec& primary, std::string_view ref, std::string* key);

// Some columns of a row whose values lie under a key of their own.
struct RowPart {
  uint32_t id = 0;                  // GroupID or ColumnID; parts are sorted by it
  std::vector<uint32_t> positions;  // among the living columns; none: they were dropped
  std::string prefix;               // of its keys; empty: the row's own
  std::string suffix;               // of its keys, finished
};

// Where one row was found. Borrowed.
struct StoredRow {
  std::span<const std::string_view> parts = {};  // PATCHes over the value
  std::string_view value;                        // a ROW, unless:
  const codec::PageView* page = nullptr;         // the row lies in this page
  uint32_t position = 0;                         // there
  std::string_view patch;                        // over the page's row; empty: none
};

// Whose bytes a decoded batch holds.
enum class ScanBytes : uint8_t { kBorrow, kCopy };

// How entries of one index become a batch of the wanted columns. Immutable.
class CompiledTable;

class ScanCodec {
 public:
  const IndexCodec& index() const { return *index_; }
  std::span<const ColumnId> columns() const { return columns_; }
  // Of the result batch: the wanted columns, then bytea for the RowRef.
  std::span<const Type> types() const { return types_; }
  bool with_row_ref() const { return with_row_ref_; }
  // The entry holds all wanted columns.
  bool covering() const { return covering_; }
  // Of the wanted columns, some may hold bytes that are borrowed.
  bool borrows() const { return borrows_; }
  // Decodes rows wherever they lie; `keys` are their row keys. Only for the primary index.
  Status DecodeStored(std::span<const std::string_view> keys, std::span<const StoredRow> rows,
                      size_t first_row, RowBatch* batch) const;
  // Decodes rows [first, first + count) of a page. Bytes are copied if `copy` or the mode says so.
  Status DecodePage(const codec::PageView& page, uint32_t first, uint32_t count, size_t first_row,
                    bool copy, RowBatch* batch) const;
  // The same for some rows, ascending.
  Status DecodePageRows(const codec::PageView& page, std::span<const uint32_t> rows,
                        size_t first_row, bool copy, RowBatch* batch) const;
  // Overwrites the columns that the patch holds.
  Status ApplyPatch(std::string_view patch, size_t row, bool copy, RowBatch* batch) const;
  // Of a table of split rows: which parts hold wanted columns, as places in parts(), ascending.
  std::span<const uint32_t> wanted_parts() const { return wanted_parts_; }
  // The wanted columns that lie in parts, of rows first_row.. of the batch, whose other columns are
  // decoded.
  Status ApplyParts(std::span<const StoredRow> rows, size_t first_row, RowBatch* batch) const;
  // Decode needs the values under the rows' own keys.
  bool needs_row() const { return needs_row_; }
  // ... and those keys.
  bool needs_key() const { return needs_key_ || with_row_ref_; }
  // Values of entries are not needed: neither for columns nor to find the RowRef.
  bool keys_only(bool needs_ref) const {
    return needs_ref && index_->unique && !index_->primary ? false : !needs_value_;
  }

  // Decodes entries into rows first_row.. of a batch of types() that has those rows. Only for a
  // covering codec. In mode kBorrow keys and values must outlive the batch's content.
  Status Decode(std::span<const std::string_view> keys, std::span<const std::string_view> values,
                size_t first_row, RowBatch* batch) const;

 private:
  friend class CompiledTable;
  Status DecodeRows(std::span<const std::string_view> keys,
                    std::span<const std::string_view> values, size_t first_row,
                    RowBatch* batch) const;
  Status DecodeEntries(std::span<const std::string_view> keys,
                       std::span<const std::string_view> values, size_t first_row,
                       RowBatch* batch) const;

  // How pages of one row format become the wanted columns.
  struct PagePlan {
    struct Step {
      uint32_t chunk;
      uint32_t position;  // of the batch
      Type type;          // as stored
    };
    struct Default {
      uint32_t position;
      Value value;
    };
    uint32_t format_id;
    std::vector<Step> steps;
    std::vector<Default> defaults;
  };
  // A wanted column that lies in a part.
  struct PartColumn {
    ColumnId id;
    uint32_t position;  // of the batch
    Type type;
    Value missing;  // the value of a column that no part holds
  };
  Result<const PagePlan*> PlanOf(const codec::PageView& page) const;
  // decode(step's chunk, step's column) for all columns, then RowRefs, copies and defaults.
  template <typename DecodeChunk, typename RowAt>
  Status DecodePageColumns(const codec::PageView& page, size_t count, size_t first_row, bool copy,
                           RowBatch* batch, DecodeChunk&& decode, RowAt&& row_at) const;

  const CompiledTable* table_ = nullptr;
  const IndexCodec* index_ = nullptr;
  std::vector<PagePlan> page_plans_;
  std::vector<uint32_t> wanted_parts_;
  std::vector<PartColumn> part_columns_;
  bool borrows_ = false;
  std::vector<ColumnId> columns_;
  std::vector<Type> types_;
  bool with_row_ref_ = false;
  bool covering_ = false;
  bool copy_ = false;
  bool needs_value_ = false;  // columns come from the ROW part or the value's primary key
  bool needs_row_ = false;    // columns come from the ROW part
  bool needs_key_ = false;
  codec::KeyDecoder key_decoder_{{}, {}};
  codec::KeyDecoder ref_decoder_{{}, {}};   // of a unique entry's value
  codec::RowDecoders rows_;                 // primary
  std::optional<codec::RowDecoder> entry_;  // secondary
};

// Evaluators of one table that nobody uses at the moment. Thread-safe.
class EvaluatorPool {
 public:
  // Null when there is none.
  std::unique_ptr<RowEvaluator> Take() const;
  void Return(std::unique_ptr<RowEvaluator> evaluator) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<RowEvaluator>> free_;
};

// Immutable apart from its caches; thread-safe. Lives in the descriptor's slot, as long as it.
class CompiledTable {
 public:
  // Compiles at the first call for a descriptor. Errors: kCorruption when it makes no sense.
  static Result<const CompiledTable*> Of(const TableDescriptor& table);
  ~CompiledTable();

  const TableDescriptor& table() const { return *table_; }
  std::span<const uint32_t> living() const { return living_; }  // ordinals
  std::span<const Type> living_types() const { return living_types_; }
  std::span<const ColumnId> living_ids() const { return living_ids_; }
  const catalog::ColumnDescriptor& living_column(size_t position) const {
    return table_->columns[living_[position]];
  }
  // What indexes ask of rows beyond their columns, each once.
  std::span<const ComputedColumn> computed() const { return computed_; }
  const EvaluatorPool& evaluators() const { return evaluators_; }
  // Of IndexedRows: living columns, then computed ones.
  std::span<const Type> types() const { return types_; }
  // For messages: a column's name, or an expression's text.
  const std::string& NameAt(uint32_t position) const {
    return position < living_.size() ? living_column(position).name
                                     : computed_[position - living_.size()].sql;
  }
  int PositionOf(ColumnId id) const;
  int row_id_position() const { return row_id_position_; }  // of the hidden row id, or -1
  // Whether somebody has seen that new row ids are greater than those of the rows.
  std::atomic<bool>& row_ids_checked() const { return row_ids_checked_; }
  const std::vector<IndexCodec>& indexes() const { return indexes_; }
  const IndexCodec& primary() const { return indexes_.front(); }
  const IndexCodec* FindIndex(IndexId id) const;

  const std::string& counter_name() const { return counter_name_; }

  // ---- Layout `pages` ----
  bool paged() const { return table_->layout == catalog::Layout::kPages; }
  // ---- Split rows: any layout but `pages` ----
  bool split() const { return !parts_.empty(); }
  const std::vector<RowPart>& parts() const { return parts_; }
  // Does a NULL in this living column stand in its part? Where none is there, the column has the
  // value that it was added with.
  bool WritesNull(size_t position) const {
    return living_column(position).initial_value.has_value();
  }
  const std::string& page_prefix() const { return page_prefix_; }
  codec::PageKeys page_keys() const { return page_keys_; }
  // Of a page's row format. Null: there is none of this id.
  const codec::RowFormat* FindFormat(uint32_t format_id) const;
  const codec::RowFormat& write_format() const { return write_format_; }
  // Of the columns of write_format among the living ones.
  std::span<const uint32_t> write_positions() const { return write_positions_; }
  // kInt: the key column in a format.
  Result<uint32_t> KeyChunkOf(const codec::RowFormat& format) const;

  // Appends the ROW of a row of all living columns.
  Status AppendRow(const RowBatch& rows, size_t row, std::string* value) const {
    return codec::RowEncoder::Append(write_format_, rows, row, write_positions_, value);
  }
  // Compiled at the first call for these arguments. Errors: kInternal for an unknown index or
  // column.
  Result<std::shared_ptr<const ScanCodec>> Scan(IndexId index, std::span<const ColumnId> columns,
                                                bool with_row_ref, ScanBytes bytes) const;

 private:
  struct CachedScan {
    std::shared_ptr<const ScanCodec> codec;
    std::unique_ptr<CachedScan> next;
  };
  static Result<std::shared_ptr<const CompiledTable>> Make(const TableDescriptor& table);
  Status CompileIndex(const IndexDescriptor& index, IndexCodec* out) const;
  void CompileParts();
  bool InPart(ColumnId column) const;
  // Positions of computed columns; -1: unknown.
  void AddComputed(const std::string& sql, bool predicate);
  int FindComputed(const std::string& sql, bool predicate) const;
  Status CompileFormats();
  Result<std::shared_ptr<const ScanCodec>> CompileScan(const IndexCodec& index,
                                                       std::span<const ColumnId> columns,
                                                       bool with_row_ref, ScanBytes bytes) const;

  const TableDescriptor* table_ = nullptr;
  std::vector<uint32_t> living_;
  std::vector<Type> living_types_;
  std::vector<ColumnId> living_ids_;
  std::vector<ComputedColumn> computed_;
  std::vector<Type> types_;
  EvaluatorPool evaluators_;
  int row_id_position_ = -1;
  mutable std::atomic<bool> row_ids_checked_ = false;
  std::vector<IndexCodec> indexes_;
  std::string counter_name_;
  std::string page_prefix_;
  codec::PageKeys page_keys_ = codec::PageKeys::kRefs;
  std::vector<codec::RowFormat> formats_;
  codec::RowFormat write_format_;
  std::vector<uint32_t> write_positions_;
  std::vector<RowPart> parts_;

  mutable std::mutex mutex_;
  mutable size_t cached_ = 0;
  mutable std::unique_ptr<CachedScan> owner_;
  mutable std::atomic<const CachedScan*> first_{nullptr};
};

// The error for stored bytes that make no sense; names table and index, never values. XX001.
Status DamagedEntry(const TableDescriptor& table, const IndexDescriptor& index,
                    const Status& cause);

}  // namespace cellar::table
