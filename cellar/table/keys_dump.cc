#include "cellar/table/keys_dump.h"

#include "cellar/codec/key.h"
#include "cellar/codec/patch.h"
#include "cellar/table/check_pages.h"
#include "cellar/types/text_io.h"

namespace cellar::table {
namespace {

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (unsigned char c : bytes) {
    out.push_back(kDigits[c >> 4]);
    out.push_back(kDigits[c & 15]);
  }
  return out;
}

DumpedField FieldOf(const codec::DecodedField& field, std::string name) {
  DumpedField out;
  out.name = std::move(name);
  out.type = field.type;
  out.descending = field.direction == codec::Direction::kDescending;
  out.value = field.value;
  return out;
}

bool TakeId(std::string_view* in, uint64_t* id) {
  Result<uint64_t> taken = codec::TakeKeyUint(in);
  if (taken.ok()) *id = taken.value();
  return taken.ok();
}

const catalog::IndexDescriptor* OwnerOf(const catalog::TableDescriptor& table, uint64_t index_id,
                                        uint64_t* offset) {
  for (const catalog::IndexDescriptor& index : table.indexes) {
    const uint64_t width = index.primary ? codec::kIndexIdsOfPrimary : 1;
    if (index_id < index.id.value || index_id >= index.id.value + width) continue;
    *offset = index_id - index.id.value;
    return &index;
  }
  return nullptr;
}

std::string PartOf(const catalog::IndexDescriptor& index, uint64_t offset) {
  if (!index.primary) return index.unique ? "unique" : "index";
  switch (offset) {
    case codec::kRowsOfPrimary: return "row";
    case codec::kPagesOfPrimary: return "pages";
    case codec::kDirectoryOfPrimary: return "directory";
    default: return "overflow";
  }
}

std::string ColumnName(const catalog::TableDescriptor& table, codec::ColumnId id) {
  const catalog::ColumnDescriptor* column = table.FindColumn(id);
  return column == nullptr ? "" : column->name;
}

// Names of the key's fields after table and index.
std::vector<std::string> FieldNames(const catalog::TableDescriptor& table,
                                    const catalog::IndexDescriptor& index, uint64_t offset) {
  std::vector<std::string> names;
  for (const catalog::IndexColumn& column : index.key) {
    names.push_back(ColumnName(table, column.column));
  }
  if (index.primary) {
    if (table.layout == catalog::Layout::kDatum) names.insert(names.begin(), "column");
    if (offset <= codec::kPagesOfPrimary) names.push_back("group");
    return names;
  }
  // Entries of a unique index hold these only beside a NULL.
  for (const catalog::IndexColumn& column : table.primary().key) {
    bool held = false;
    for (const catalog::IndexColumn& own : index.key) held |= own.column == column.column;
    if (!held) names.push_back(ColumnName(table, column.column));
  }
  return names;
}

// Layout `pages`: what lies under a row's own key.
Status DescribeDelta(const catalog::TableDescriptor& table, std::string_view value,
                     DumpedKey* out) {
  CELLAR_TRY_ASSIGN(const codec::DeltaKind kind, codec::DeltaKindOf(value));
  if (kind == codec::DeltaKind::kTombstone) out->part = "tombstone";
  if (kind == codec::DeltaKind::kLongRow) out->part = "long row";
  if (kind != codec::DeltaKind::kPatch) return Status();
  out->part = "patch";
  CELLAR_TRY_ASSIGN(codec::PatchReader reader, codec::PatchReader::Make(value));
  while (true) {
    codec::ColumnId id;
    std::string_view bytes;
    bool null = false;
    CELLAR_TRY_ASSIGN(const bool more, reader.Next(&id, &bytes, &null));
    if (!more) return Status();
    out->patched.push_back(ColumnName(table, id));
  }
}

Status DescribePage(const catalog::TableDescriptor& table, std::string_view value, bool bounds,
                    DumpedKey* out) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  codec::PageView view;
  CELLAR_TRY(view.Parse(value));
  DumpedPage& page = out->page.emplace();
  page.rows = view.rows();
  page.format_id = view.format_id();
  if (!view.fence().empty()) page.fence = DescribeRef(view.fence());
  const codec::RowFormat* format = compiled->FindFormat(view.format_id());
  if (format == nullptr) return CorruptionError("its row format is unknown");
  for (uint32_t i = 0; i < format->columns().size(); ++i) {
    const codec::RowColumn& column = format->columns()[i];
    codec::Chunk chunk;
    CELLAR_TRY(view.GetChunk(i, column.type, &chunk));
    DumpedPage::Column& dumped = page.columns.emplace_back();
    dumped.name = ColumnName(table, column.id);
    dumped.encoding = chunk.Describe();
    dumped.bytes = chunk.size_bytes();
    dumped.nulls = chunk.null_count();
    Arena arena;
    Datum least, greatest;
    if (!bounds || !chunk.Bounds(&arena, &least, &greatest)) continue;
    AppendDatumText(least, column.type, FormatSettings(), &dumped.least);
    AppendDatumText(greatest, column.type, FormatSettings(), &dumped.greatest);
  }
  return view.VerifyChecksum();
}

// `value` may be null: then nothing is said of it.
void DescribeData(const codec::DecodedKey& decoded, const catalog::CatalogSnapshot& catalog,
                  const std::string_view* value, bool bounds, DumpedKey* out) {
  std::string_view in = out->key;
  uint64_t table_id = 0, index_id = 0;
  if (!TakeId(&in, &table_id) || !TakeId(&in, &index_id)) {
    out->readable = false;
    out->problem = "does not begin with a table's and an index's id";
    return;
  }
  catalog::TablePtr table = catalog.GetTableByStorage(codec::TableId{table_id});
  if (table != nullptr && table->state == catalog::ObjectState::kPublic) {
    out->path = catalog.PathOf(*table);
  } else if (table != nullptr) {
    out->path = "(dropped) " + catalog.PathOf(*table);
  } else {
    out->path = fmt::format("table {}", table_id);
  }
  std::vector<std::string> names;
  uint64_t offset = 0;
  const catalog::IndexDescriptor* index =
      table == nullptr ? nullptr : OwnerOf(*table, index_id, &offset);
  if (index == nullptr) {
    out->part = fmt::format("index {}", index_id);
  } else {
    out->index = index->name;
    out->part = PartOf(*index, offset);
    names = FieldNames(*table, *index, offset);
  }
  constexpr size_t kIds = 2;
  for (size_t i = kIds; i < decoded.fields.size(); ++i) {
    out->fields.push_back(
        FieldOf(decoded.fields[i], i - kIds < names.size() ? names[i - kIds] : ""));
  }
  if (value == nullptr || index == nullptr || !index->primary) return;
  Status status;
  if (table->layout != catalog::Layout::kPages) {
    status = DescribeDelta(*table, *value, out);
    if (out->part == "patch") out->part = "part";
    out->damage = status.message();
    return;
  }
  if (offset == codec::kRowsOfPrimary) status = DescribeDelta(*table, *value, out);
  if (offset == codec::kPagesOfPrimary) status = DescribePage(*table, *value, bounds, out);
  out->damage = status.message();
}

DumpedKey Describe(std::string_view key, const std::string_view* value, bool bounds,
                   const catalog::CatalogSnapshot& catalog) {
  DumpedKey out;
  out.key = key;
  out.hex = Hex(key);
  Result<codec::DecodedKey> decoded = codec::DecodeKey(key);
  if (!decoded.ok()) {
    out.problem = decoded.status().message();
    return out;
  }
  out.readable = true;
  if (!decoded.value().word.empty()) {
    out.system_word = decoded.value().word;
    for (const codec::DecodedField& field : decoded.value().fields) {
      out.fields.push_back(FieldOf(field, ""));
    }
    return out;
  }
  DescribeData(decoded.value(), catalog, value, bounds, &out);
  return out;
}

void AppendPage(const DumpedPage& page, uint64_t bytes, std::string* head, std::string* columns) {
  *head +=
      fmt::format(" to ({}), {} rows, {} bytes, format {}",
                  page.fence.empty() ? "the end" : page.fence, page.rows, bytes, page.format_id);
  for (const DumpedPage::Column& column : page.columns) {
    *columns += fmt::format("\n    {}: {}, {} bytes", column.name.empty() ? "?" : column.name,
                            column.encoding, column.bytes);
    if (column.nulls > 0) *columns += fmt::format(", {} NULL", column.nulls);
    if (!column.least.empty()) {
      *columns += fmt::format(", {} to {}", column.least, column.greatest);
    }
  }
}

}  // namespace

DumpedKey DescribeKey(std::string_view key, const catalog::CatalogSnapshot& catalog) {
  return Describe(key, nullptr, false, catalog);
}

std::string DumpedKey::ToString() const {
  std::string out;
  if (!readable) {
    out = "UNREADABLE " + problem;
  } else if (!system_word.empty()) {
    out = "system " + system_word;
  } else {
    out = path + " " + part;
    if (!index.empty()) out += " " + index;
  }
  if (!fields.empty()) {
    out += " (";
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) out += ", ";
      if (!fields[i].name.empty()) out += fields[i].name + "=";
      out += fields[i].value;
      if (fields[i].descending) out += " desc";
    }
    out += ")";
  }
  std::string columns;
  for (size_t i = 0; i < patched.size(); ++i) {
    out += (i == 0 ? " of " : ", ") + (patched[i].empty() ? "?" : patched[i]);
  }
  if (page.has_value()) AppendPage(*page, value_bytes, &out, &columns);
  if (!damage.empty()) out += " DAMAGED " + damage;
  return out + "  " + hex + columns;
}

Result<DumpTotals> DumpKeys(kv::Transaction* transaction, const catalog::CatalogSnapshot& catalog,
                            const DumpOptions& options,
                            const std::function<Status(const DumpedKey&)>& sink) {
  codec::KeyRange range;
  if (options.table.has_value()) {
    range = codec::PrefixRange(codec::TablePrefix(*options.table));
  } else if (!options.system_records) {
    range.start = std::string(1, '\x01');  // system records begin with 00
  }
  kv::ScanOptions scan;
  scan.mode = kv::ReadMode::kSnapshot;
  scan.limit = options.limit;
  scan.fill_cache = false;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(range.start, range.end, scan));
  DumpTotals totals;
  kv::Block block;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) return totals;
    for (size_t i = 0; i < block.size(); ++i) {
      const std::string_view value = block.value(i);
      DumpedKey dumped = Describe(block.key(i), &value, options.bounds, catalog);
      dumped.value_bytes = value.size();
      ++totals.keys;
      totals.unreadable += dumped.readable ? 0 : 1;
      totals.key_bytes += block.key(i).size();
      totals.value_bytes += block.value(i).size();
      CELLAR_TRY(sink(dumped));
    }
  }
}

}  // namespace cellar::table
