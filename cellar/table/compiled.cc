#include "cellar/table/compiled.h"

#include <algorithm>

#include "cellar/base/check.h"
#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"
#include "cellar/catalog/catalog.h"

namespace cellar::table {
namespace {

// Compiled scans kept for one table version; further ones are compiled for each use.
constexpr size_t kMaxCachedScans = 256;
constexpr size_t kMaxFreeEvaluators = 16;

Type RowRefType() { return MakeType(TypeId::kBytea); }

Value DefaultOf(const catalog::ColumnDescriptor& column) {
  if (column.initial_value.has_value()) return *column.initial_value;
  return Value(column.type, Datum::Null());
}

}  // namespace

bool TypeMayLoseInformation(Type type) {
  if (type.collation != nullptr && !type.collation->deterministic) return true;
  switch (type.id) {
    case TypeId::kBool:
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kEnum:
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBytea:
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz:
    case TypeId::kUuid:
    case TypeId::kOid: return false;
    default: return true;
  }
}

Status DamagedEntry(const TableDescriptor& table, const IndexDescriptor& index,
                    const Status& cause) {
  if (cause.code() != Code::kCorruption) return cause;
  if (index.primary) {
    return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                    "a row of table \"{}\" is damaged: {}", table.name, cause.message());
  }
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "an entry of index \"{}\" of table \"{}\" is damaged: {}", index.name, table.name,
                  cause.message());
}

// ---- IndexCodec ----

bool IndexCodec::EscapesUniqueness(const RowBatch& rows, size_t row) const {
  if (!unique) return true;
  if (!nulls_distinct) return false;
  for (uint32_t position : key_positions) {
    if (rows.column(position).IsNull(row)) return true;
  }
  return false;
}

void IndexCodec::FillShard(size_t place, std::string* key) const {
  const uint32_t hash = Crc32c(std::string_view(*key).substr(place + 1));
  (*key)[place] = ShardField(hash % shards);
}

void AppendRowPlace(const IndexCodec& primary, std::string_view ref, std::string* key) {
  const size_t shard = key->size();
  if (primary.shards != 0) key->push_back('\0');
  key->append(ref);
  if (primary.shards != 0) primary.FillShard(shard, key);
  key->push_back(kGroupZero);
}

void AppendRowKey(const IndexCodec& primary, std::string_view ref, std::string* key) {
  key->append(primary.prefix);
  AppendRowPlace(primary, ref, key);
}

void IndexCodec::AppendKey(const RowBatch& rows, size_t row, std::string_view ref,
                           std::string* key) const {
  if (primary) return AppendRowKey(*this, ref, key);
  key->append(prefix);
  const size_t shard = key->size();
  if (shards != 0) key->push_back('\0');
  codec::AppendKeyFields(rows, row, key_positions, key_columns, key);
  if (shards != 0) FillShard(shard, key);
  if (EscapesUniqueness(rows, row)) {
    if (holds_no_ref_column()) {
      key->append(ref);
    } else {
      codec::AppendKeyFields(rows, row, rest_positions, rest_columns, key);
    }
  }
  codec::FinishKey(key);
}

Status IndexCodec::AppendValue(const RowBatch& rows, size_t row, std::string_view ref,
                               std::vector<Datum>* scratch, std::string* value) const {
  if (unique) value->append(ref);
  scratch->clear();
  for (uint32_t position : entry_positions) scratch->push_back(rows.column(position).Get(row));
  return codec::RowEncoder::AppendUnlessEmpty(entry_format, *scratch, value);
}

Result<std::string_view> IndexCodec::FindRef(std::string_view key, std::string_view value,
                                             std::string* scratch, RowBatch* scratch_row) const {
  if (primary) {
    if (key.size() <= fields_start() || key.back() != kGroupZero) {
      return CorruptionError("key does not end in column group 0");
    }
    return key.substr(fields_start(), key.size() - fields_start() - 1);
  }
  if (unique) {
    std::string_view rest = value;
    for (size_t i = 0; i < ref_columns.size(); ++i) CELLAR_TRY(codec::SkipKeyField(&rest));
    return value.substr(0, value.size() - rest.size());
  }
  if (key.size() < fields_start()) return CorruptionError("key is too short");
  std::string_view rest = key.substr(fields_start());
  if (holds_no_ref_column()) {
    for (size_t i = 0; i < key_columns.size(); ++i) CELLAR_TRY(codec::SkipKeyField(&rest));
    std::string_view ref = rest;
    for (size_t i = 0; i < ref_columns.size(); ++i) CELLAR_TRY(codec::SkipKeyField(&rest));
    return ref.substr(0, ref.size() - rest.size());
  }
  // Some of the primary key's columns lie among the index's own, perhaps in another direction:
  // gather them by value. The row's place in scratch_row: own columns, then the rest.
  std::vector<Type> types;
  for (const codec::KeyColumn& column : key_columns) types.push_back(column.type);
  for (const codec::KeyColumn& column : rest_columns) types.push_back(column.type);
  scratch_row->Reset(types);
  scratch_row->Resize(1);
  size_t next = 0;
  for (const auto* columns : {&key_columns, &rest_columns}) {
    for (const codec::KeyColumn& column : *columns) {
      CELLAR_TRY_ASSIGN(Datum datum, codec::TakeKeyField(&rest, column, scratch_row->arena()));
      scratch_row->column(next++).Set(0, datum);
    }
  }
  scratch->clear();
  codec::AppendKeyFields(*scratch_row, 0, ref_places, ref_columns, scratch);
  return std::string_view(*scratch);
}

// ---- ScanCodec ----

Status ScanCodec::Decode(std::span<const std::string_view> keys,
                         std::span<const std::string_view> values, size_t first_row,
                         RowBatch* batch) const {
  CELLAR_DCHECK(covering_);
  return index_->primary ? DecodeRows(keys, values, first_row, batch)
                         : DecodeEntries(keys, values, first_row, batch);
}

Status ScanCodec::DecodeRows(std::span<const std::string_view> keys,
                             std::span<const std::string_view> values, size_t first_row,
                             RowBatch* batch) const {
  const size_t prefix = index_->fields_start();
  if (needs_key_) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].size() < prefix) return CorruptionError("key is too short");
      std::string_view in = keys[i].substr(prefix);
      CELLAR_TRY(key_decoder_.Decode(&in, first_row + i, batch));
    }
  }
  if (needs_row_) CELLAR_TRY(rows_.Decode(values, first_row, batch));
  if (with_row_ref_) {
    std::string_view* refs = batch->column(columns_.size()).bytes() + first_row;
    for (size_t i = 0; i < keys.size(); ++i) {
      std::string_view ref = keys[i].substr(prefix, keys[i].size() - prefix - 1);
      refs[i] = copy_ ? batch->arena()->Copy(ref) : ref;
    }
  }
  return Status();
}

Status ScanCodec::DecodeEntries(std::span<const std::string_view> keys,
                                std::span<const std::string_view> values, size_t first_row,
                                RowBatch* batch) const {
  const size_t prefix = index_->fields_start();
  if (needs_key_) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].size() < prefix) return CorruptionError("key is too short");
      std::string_view in = keys[i].substr(prefix);
      CELLAR_TRY(key_decoder_.Decode(&in, first_row + i, batch));
    }
  }
  if (needs_value_ && index_->unique) {
    for (size_t i = 0; i < keys.size(); ++i) {
      std::string_view in = values[i];
      CELLAR_TRY(ref_decoder_.Decode(&in, first_row + i, batch));
      if (needs_row_) CELLAR_TRY(entry_->Decode(in, first_row + i, batch));
    }
  } else if (needs_row_) {
    CELLAR_TRY(entry_->Decode(values, first_row, batch));
  }
  if (with_row_ref_) {
    std::string scratch;
    RowBatch scratch_row;
    for (size_t i = 0; i < keys.size(); ++i) {
      CELLAR_TRY_ASSIGN(std::string_view ref,
                        index_->FindRef(keys[i], values[i], &scratch, &scratch_row));
      const bool own = copy_ || ref.data() == scratch.data();
      batch->column(columns_.size()).bytes()[first_row + i] = own ? batch->arena()->Copy(ref) : ref;
    }
  }
  return Status();
}

// ---- EvaluatorPool ----

std::unique_ptr<RowEvaluator> EvaluatorPool::Take() const {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  std::unique_ptr<RowEvaluator> evaluator = std::move(free_.back());
  free_.pop_back();
  return evaluator;
}

void EvaluatorPool::Return(std::unique_ptr<RowEvaluator> evaluator) const {
  std::lock_guard lock(mutex_);
  if (free_.size() < kMaxFreeEvaluators) free_.push_back(std::move(evaluator));
}

// ---- CompiledTable ----

CompiledTable::~CompiledTable() {
  // Iteratively: the chain may be long.
  while (owner_ != nullptr) owner_ = std::move(owner_->next);
}

Result<const CompiledTable*> CompiledTable::Of(const TableDescriptor& table) {
  const void* kept = table.derived.Get();
  if (kept == nullptr) {
    Result<std::shared_ptr<const CompiledTable>> made = Make(table);
    if (!made.ok()) {
      return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                      "the descriptor of table \"{}\" is damaged: {}", table.name,
                      made.status().message());
    }
    kept = table.derived.SetOnce(std::move(made).value());
  }
  return static_cast<const CompiledTable*>(kept);
}

int CompiledTable::PositionOf(ColumnId id) const {
  for (size_t i = 0; i < living_ids_.size(); ++i) {
    if (living_ids_[i] == id) return static_cast<int>(i);
  }
  return -1;
}

const IndexCodec* CompiledTable::FindIndex(IndexId id) const {
  for (const IndexCodec& index : indexes_) {
    if (index.index->id == id) return &index;
  }
  return nullptr;
}

Result<std::shared_ptr<const CompiledTable>> CompiledTable::Make(const TableDescriptor& table) {
  if (table.kind != catalog::RelationKind::kTable || table.indexes.empty()) {
    return CorruptionError("it is not a table's");
  }
  auto out = std::make_shared<CompiledTable>();
  out->table_ = &table;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const catalog::ColumnDescriptor& column = table.columns[i];
    if (column.dropped) continue;
    if (column.hidden) out->row_id_position_ = static_cast<int>(out->living_.size());
    out->living_.push_back(static_cast<uint32_t>(i));
    out->living_types_.push_back(column.type);
    out->living_ids_.push_back(column.id);
  }
  for (const IndexDescriptor& index : table.indexes) {
    for (const catalog::IndexColumn& column : index.key) {
      if (!column.expression.empty()) out->AddComputed(column.expression, false);
    }
    if (!index.predicate.empty()) out->AddComputed(index.predicate, true);
  }
  out->types_ = out->living_types_;
  if (!out->computed_.empty()) {
    CELLAR_TRY_ASSIGN(std::unique_ptr<RowEvaluator> evaluator,
                      MakeEvaluator(table, out->computed_));
    out->types_.insert(out->types_.end(), evaluator->types().begin(), evaluator->types().end());
    out->evaluators_.Return(std::move(evaluator));
  }
  out->indexes_.resize(table.indexes.size());
  for (size_t i = 0; i < table.indexes.size(); ++i) {
    CELLAR_TRY(out->CompileIndex(table.indexes[i], &out->indexes_[i]));
  }
  out->counter_name_ = catalog::CounterNameOf(table);
  const IndexCodec& primary = out->indexes_.front();
  out->page_prefix_ = codec::TablePrefix(table.storage_id(),
                                         IndexId{primary.index->id.value + codec::kPagesOfPrimary});
  if (primary.key_columns.size() == 1) {
    const codec::KeyColumn& key = primary.key_columns.front();
    if (key.direction == codec::Direction::kAscending && PhysicalOf(key.type) == Physical::kInt64 &&
        !TypeMayLoseInformation(key.type)) {
      out->page_keys_ = codec::PageKeys::kInt;
    }
  }
  out->CompileParts();
  CELLAR_TRY(out->CompileFormats());
  return std::shared_ptr<const CompiledTable>(std::move(out));
}

int CompiledTable::FindComputed(const std::string& sql, bool predicate) const {
  for (size_t i = 0; i < computed_.size(); ++i) {
    if (computed_[i].sql == sql && computed_[i].predicate == predicate) {
      return static_cast<int>(living_.size() + i);
    }
  }
  return -1;
}

void CompiledTable::AddComputed(const std::string& sql, bool predicate) {
  if (FindComputed(sql, predicate) < 0) computed_.push_back({sql, predicate});
}

const codec::RowFormat* CompiledTable::FindFormat(uint32_t format_id) const {
  // The newest are the commonest.
  for (auto format = formats_.rbegin(); format != formats_.rend(); ++format) {
    if (format->id() == format_id) return &*format;
  }
  return nullptr;
}

Result<uint32_t> CompiledTable::KeyChunkOf(const codec::RowFormat& format) const {
  const ColumnId key = living_ids_[primary().key_positions.front()];
  for (size_t i = 0; i < format.columns().size(); ++i) {
    if (format.columns()[i].id == key) return static_cast<uint32_t>(i);
  }
  return CorruptionError("row format {} lacks the key", format.id());
}

Status CompiledTable::CompileIndex(const IndexDescriptor& index, IndexCodec* out) const {
  out->index = &index;
  out->prefix = codec::TablePrefix(table_->storage_id(), index.id);
  if (index.primary && table_->layout == catalog::Layout::kDatum) {
    codec::AppendKeyUint(0, &out->prefix);
  }
  out->primary = index.primary;
  out->unique = index.unique || index.primary;
  // Rows of the other layouts lie together: a shard between them would break their order.
  const bool whole_rows = table_->layout == catalog::Layout::kRow && table_->groups.empty();
  if (index.shards > kMaxShards || (index.primary && index.shards != 0 && !whole_rows)) {
    return CorruptionError("index {} has {} shards", index.id.value, index.shards);
  }
  out->shards = index.shards;
  out->nulls_distinct = !index.nulls_not_distinct && !index.primary;

  std::vector<codec::RowColumn> entry_columns;
  auto add = [&](const catalog::IndexColumn& column, std::vector<codec::KeyColumn>* columns,
                 std::vector<uint32_t>* positions) -> Status {
    const int position = column.expression.empty() ? PositionOf(column.column)
                                                   : FindComputed(column.expression, false);
    if (position < 0) return CorruptionError("index {} lacks a column", index.id.value);
    codec::KeyColumn key;
    key.type = types_[static_cast<size_t>(position)];
    if (column.collation != nullptr) {
      key.type.collation = column.collation == catalog::ByBytes() ? nullptr : column.collation;
    }
    key.direction = column.direction;
    key.nulls = column.nulls;
    if (!codec::IsKeyType(key.type)) {
      return CorruptionError("index {} has a column without an order", index.id.value);
    }
    columns->push_back(key);
    positions->push_back(static_cast<uint32_t>(position));
    return Status();
  };
  // `type`: of the key field, by whose collation the entry knows what the key loses.
  auto add_entry_column = [&](uint32_t position, bool in_key, Type type) {
    if (std::find(out->all_positions.begin(), out->all_positions.end(), position) !=
        out->all_positions.end()) {
      return;
    }
    out->all_positions.push_back(position);
    if (position >= living_.size()) return;  // nobody asks an entry for its expressions
    out->entry_positions.push_back(position);
    codec::RowColumn column;
    column.id = living_ids_[position];
    column.type = type;
    column.type.modifier = -1;
    column.in_key = in_key;
    entry_columns.push_back(column);
  };

  std::vector<uint32_t> ref_positions;
  for (const catalog::IndexColumn& column : table_->primary().key) {
    CELLAR_TRY(add(column, &out->ref_columns, &ref_positions));
  }
  for (const catalog::IndexColumn& column : index.key) {
    CELLAR_TRY(add(column, &out->key_columns, &out->key_positions));
    add_entry_column(out->key_positions.back(), true, out->key_columns.back().type);
  }
  for (size_t i = 0; i < ref_positions.size(); ++i) {
    auto held = std::find(out->key_positions.begin(), out->key_positions.end(), ref_positions[i]);
    // Only a field that gives the value back stands for the primary key's.
    const auto gives_back = [&](const codec::KeyColumn& column) {
      return column.type.collation == nullptr || column.type.collation->deterministic;
    };
    if (held != out->key_positions.end() &&
        gives_back(out->key_columns[static_cast<size_t>(held - out->key_positions.begin())])) {
      out->ref_places.push_back(static_cast<uint32_t>(held - out->key_positions.begin()));
      continue;
    }
    out->ref_places.push_back(
        static_cast<uint32_t>(out->key_positions.size() + out->rest_positions.size()));
    out->rest_positions.push_back(ref_positions[i]);
    out->rest_columns.push_back(out->ref_columns[i]);
    add_entry_column(ref_positions[i], true, out->ref_columns[i].type);
  }
  if (!index.predicate.empty()) {
    out->predicate_position = FindComputed(index.predicate, true);
    out->all_positions.push_back(static_cast<uint32_t>(out->predicate_position));
  }
  for (ColumnId stored : index.stored) {
    const int position = PositionOf(stored);
    if (position < 0) return CorruptionError("index {} lacks a stored column", index.id.value);
    add_entry_column(static_cast<uint32_t>(position), false,
                     living_types_[static_cast<size_t>(position)]);
  }
  if (!index.primary) {
    CELLAR_TRY_ASSIGN(out->entry_format,
                      codec::RowFormat::Make(codec::kIndexRowFormat, std::move(entry_columns)));
  }
  return Status();
}

bool CompiledTable::InPart(ColumnId column) const {
  if (table_->layout == catalog::Layout::kCell || table_->layout == catalog::Layout::kDatum) {
    const std::vector<catalog::IndexColumn>& key = table_->primary().key;
    return std::none_of(key.begin(), key.end(), [column](const catalog::IndexColumn& part) {
      return part.column == column;
    });
  }
  if (table_->layout != catalog::Layout::kRow) return false;
  return std::any_of(table_->groups.begin(), table_->groups.end(), [column](const auto& group) {
    return std::find(group.columns.begin(), group.columns.end(), column) != group.columns.end();
  });
}

void CompiledTable::CompileParts() {
  const auto add = [this](uint32_t id, std::span<const ColumnId> columns) {
    RowPart& part = parts_.emplace_back();
    part.id = id;
    for (ColumnId column : columns) {
      const int position = PositionOf(column);
      if (position >= 0) part.positions.push_back(static_cast<uint32_t>(position));
    }
    if (table_->layout == catalog::Layout::kDatum) {
      part.prefix = codec::TablePrefix(table_->storage_id(), table_->primary().id);
      codec::AppendKeyUint(id, &part.prefix);
      part.suffix.push_back(kGroupZero);
    } else {
      codec::AppendKeyUint(id, &part.suffix);
      codec::FinishKey(&part.suffix);
    }
  };
  if (table_->layout == catalog::Layout::kRow) {
    for (const catalog::ColumnGroup& group : table_->groups) add(group.id, group.columns);
  } else if (table_->layout != catalog::Layout::kPages) {
    for (const catalog::ColumnDescriptor& column : table_->columns) {
      if (InPart(column.id)) add(column.id.value, {&column.id, 1});
    }
  }
  std::sort(parts_.begin(), parts_.end(),
            [](const RowPart& a, const RowPart& b) { return a.id < b.id; });
}

Status CompiledTable::CompileFormats() {
  if (table_->row_formats.empty()) return CorruptionError("it has no row format");
  const std::vector<uint32_t>& primary = indexes_.front().key_positions;
  for (const catalog::RowFormatDescriptor& descriptor : table_->row_formats) {
    if (descriptor.types.size() != descriptor.columns.size()) {
      return CorruptionError("row format {} is malformed", descriptor.id);
    }
    std::vector<codec::RowColumn> columns;
    for (size_t i = 0; i < descriptor.columns.size(); ++i) {
      if (InPart(descriptor.columns[i])) continue;
      codec::RowColumn column;
      column.id = descriptor.columns[i];
      column.type = descriptor.types[i];
      const int position = PositionOf(column.id);
      const auto in_key =
          std::find(primary.begin(), primary.end(), static_cast<uint32_t>(position));
      column.in_key = position >= 0 && in_key != primary.end();
      if (column.in_key) {
        const auto place = static_cast<size_t>(in_key - primary.begin());
        column.type.collation = indexes_.front().key_columns[place].type.collation;
      }
      columns.push_back(column);
    }
    CELLAR_TRY_ASSIGN(codec::RowFormat format,
                      codec::RowFormat::Make(descriptor.id, std::move(columns)));
    formats_.push_back(std::move(format));
  }
  write_format_ = formats_.back();
  for (const codec::RowColumn& column : write_format_.columns()) {
    const int position = PositionOf(column.id);
    if (position < 0) return CorruptionError("its last row format holds a dropped column");
    write_positions_.push_back(static_cast<uint32_t>(position));
  }
  return Status();
}

Result<std::shared_ptr<const ScanCodec>> CompiledTable::Scan(IndexId index,
                                                             std::span<const ColumnId> columns,
                                                             bool with_row_ref,
                                                             ScanBytes bytes) const {
  const bool copy = bytes == ScanBytes::kCopy;
  for (const CachedScan* scan = first_.load(std::memory_order_acquire); scan != nullptr;
       scan = scan->next.get()) {
    const ScanCodec& codec = *scan->codec;
    if (codec.index().index->id == index && codec.with_row_ref_ == with_row_ref &&
        codec.copy_ == copy &&
        std::equal(columns.begin(), columns.end(), codec.columns_.begin(), codec.columns_.end())) {
      return scan->codec;
    }
  }
  const IndexCodec* found = FindIndex(index);
  if (found == nullptr) {
    return InternalError("table \"{}\" has no index {}", table_->name, index.value);
  }
  CELLAR_TRY_ASSIGN(std::shared_ptr<const ScanCodec> made,
                    CompileScan(*found, columns, with_row_ref, bytes));
  std::lock_guard lock(mutex_);
  if (cached_ < kMaxCachedScans) {
    ++cached_;
    auto entry = std::make_unique<CachedScan>();
    entry->codec = made;
    entry->next = std::move(owner_);
    owner_ = std::move(entry);
    first_.store(owner_.get(), std::memory_order_release);
  }
  return made;
}

Result<std::shared_ptr<const ScanCodec>> CompiledTable::CompileScan(
    const IndexCodec& index, std::span<const ColumnId> columns, bool with_row_ref,
    ScanBytes bytes) const {
  auto out = std::make_shared<ScanCodec>();
  out->table_ = this;
  out->index_ = &index;
  out->columns_.assign(columns.begin(), columns.end());
  out->with_row_ref_ = with_row_ref;
  out->copy_ = bytes == ScanBytes::kCopy;
  out->covering_ = true;

  // Where each living column goes in the batch, or -1.
  std::vector<int> wanted_at(living_.size(), -1);
  std::vector<codec::WantedColumn> wanted;
  for (size_t i = 0; i < columns.size(); ++i) {
    const int position = PositionOf(columns[i]);
    if (position < 0) {
      return InternalError("table \"{}\" has no column {}", table_->name, columns[i].value);
    }
    if (wanted_at[static_cast<size_t>(position)] >= 0) {
      return InternalError("column {} is wanted twice", columns[i].value);
    }
    wanted_at[static_cast<size_t>(position)] = static_cast<int>(i);
    const catalog::ColumnDescriptor& column = living_column(static_cast<size_t>(position));
    out->types_.push_back(column.type);
    out->borrows_ |= PhysicalOf(column.type) == Physical::kBytes;
    codec::WantedColumn want;
    want.id = column.id;
    want.type = column.type;
    want.position = static_cast<uint32_t>(i);
    want.default_value = DefaultOf(column);
    wanted.push_back(std::move(want));
    if (!index.primary && std::find(index.all_positions.begin(), index.all_positions.end(),
                                    static_cast<uint32_t>(position)) == index.all_positions.end()) {
      out->covering_ = false;
    }
  }
  if (with_row_ref) out->types_.push_back(RowRefType());
  if (index.primary && paged()) {
    for (const codec::RowFormat& format : formats_) {
      // A format that does not fit has no pages; were one left, decoding it would answer
      // kCorruption.
      if (!codec::RowDecoder::Make(format, wanted, codec::RowBytes::kBorrow).ok()) continue;
      ScanCodec::PagePlan& plan = out->page_plans_.emplace_back();
      plan.format_id = format.id();
      for (const codec::WantedColumn& want : wanted) {
        const auto columns_of = format.columns();
        const auto at = std::find_if(columns_of.begin(), columns_of.end(),
                                     [&](const codec::RowColumn& c) { return c.id == want.id; });
        if (at == columns_of.end()) {
          plan.defaults.push_back({want.position, want.default_value});
        } else {
          plan.steps.push_back(
              {static_cast<uint32_t>(at - columns_of.begin()), want.position, at->type});
        }
      }
    }
  }
  if (index.primary) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const size_t before = out->part_columns_.size();
      for (uint32_t position : parts_[i].positions) {
        if (wanted_at[position] < 0) continue;
        const catalog::ColumnDescriptor& column = living_column(position);
        out->part_columns_.push_back({column.id, static_cast<uint32_t>(wanted_at[position]),
                                      column.type, DefaultOf(column)});
        std::erase_if(wanted,
                      [&](const codec::WantedColumn& want) { return want.id == column.id; });
        wanted_at[position] = -1;
      }
      if (out->part_columns_.size() > before) {
        out->wanted_parts_.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  if (!out->covering_) return std::shared_ptr<const ScanCodec>(std::move(out));

  // Fields to decode, up to the last wanted one.
  std::vector<bool> from_fields(living_.size(), false);
  bool keys_lose = false;
  auto fields = [&](std::vector<codec::KeyColumn> key_columns, std::vector<uint32_t> positions,
                    bool all, bool* any) {
    std::vector<int> targets;
    size_t used = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      // Nobody wants computed values.
      const bool take = positions[i] < wanted_at.size() && wanted_at[positions[i]] >= 0 &&
                        !from_fields[positions[i]];
      targets.push_back(take ? wanted_at[positions[i]] : -1);
      if (!take) continue;
      from_fields[positions[i]] = true;
      keys_lose |= TypeMayLoseInformation(key_columns[i].type);
      used = i + 1;
    }
    *any = used > 0;
    if (!all) {
      targets.resize(used);
      key_columns.resize(used);
    }
    return codec::KeyDecoder(std::move(key_columns), std::move(targets));
  };
  std::vector<codec::KeyColumn> key_columns = index.key_columns;
  std::vector<uint32_t> key_positions = index.key_positions;
  if (!index.unique) {
    key_columns.insert(key_columns.end(), index.rest_columns.begin(), index.rest_columns.end());
    key_positions.insert(key_positions.end(), index.rest_positions.begin(),
                         index.rest_positions.end());
  }
  out->key_decoder_ =
      fields(std::move(key_columns), std::move(key_positions), false, &out->needs_key_);
  bool ref_wanted = false;
  if (index.unique && !index.primary) {
    out->ref_decoder_ =
        fields(index.ref_columns, indexes_.front().key_positions, true, &ref_wanted);
  }
  for (size_t position = 0; position < living_.size(); ++position) {
    if (wanted_at[position] < 0) continue;
    if (!from_fields[position]) out->needs_row_ = true;
  }
  out->needs_row_ |= keys_lose;
  out->needs_value_ = out->needs_row_ || ref_wanted;
  if (!out->needs_row_) return std::shared_ptr<const ScanCodec>(std::move(out));

  const codec::RowBytes row_bytes =
      bytes == ScanBytes::kCopy ? codec::RowBytes::kCopy : codec::RowBytes::kBorrow;
  if (!index.primary) {
    CELLAR_TRY_ASSIGN(codec::RowDecoder decoder,
                      codec::RowDecoder::Make(index.entry_format, std::move(wanted), row_bytes));
    out->entry_ = std::move(decoder);
    return std::shared_ptr<const ScanCodec>(std::move(out));
  }
  for (const codec::RowFormat& format : formats_) {
    Result<codec::RowDecoder> decoder = codec::RowDecoder::Make(format, wanted, row_bytes);
    // A format whose types do not fit any more has no rows: changing a type so rewrites them all.
    // Were one left, decoding it would answer kCorruption.
    if (decoder.ok()) {
      out->rows_.Add(std::move(decoder).value());
    } else if (&format == &formats_.back()) {
      return std::move(decoder).status();
    }
  }
  return std::shared_ptr<const ScanCodec>(std::move(out));
}

}  // namespace cellar::table
