// Descriptors to and from protobuf bytes (docs/formats/catalog.md).
//
// Decoding trusts nothing: a field that names an unknown enumerator, type, or a column that the
// table does not have is kCorruption, so that upper layers may rely on a decoded descriptor.
#include <google/protobuf/stubs/logging.h>

#include <map>
#include <set>
#include <string>

#include "cellar/catalog/catalog_internal.h"
#include "cellar/codec/key.h"
#include "cellar/codec/sealed.h"
#include "cellar/types/text_io.h"
#include "proto/descriptor.pb.h"

namespace cellar::catalog {
namespace {

void PackType(const Type& type, proto::Type* out) {
  out->set_id(static_cast<uint32_t>(type.id));
  out->set_array(type.array);
  out->set_modifier_plus_one(int64_t{type.modifier} + 1);
  if (type.enumeration != nullptr) out->set_enumeration(type.enumeration->oid);
  if (type.collation != nullptr) out->set_collation(type.collation->oid);
}

void PackCollation(const Collation& in, proto::Collation* out) {
  out->set_oid(in.oid);
  out->set_name(in.name);
  out->set_built_in(in.built_in);
  out->set_locale(in.locale);
  out->set_deterministic(in.deterministic);
  out->set_version(in.version);
}

Result<const Collation*> UnpackCollation(const proto::Collation& in) {
  if (in.oid() == 0 || in.oid() == ByBytes()->oid || in.name().empty()) {
    return CorruptionError("collation {} is malformed", in.oid());
  }
  Collation out;
  out.oid = in.oid();
  out.name = in.name();
  out.built_in = in.built_in();
  out.locale = in.locale();
  out.deterministic = in.deterministic();
  out.version = in.version();
  if (out.built_in) {
    // Object ids of built-in ones differ between releases of ICU.
    const Collation* known = FindBuiltInCollation(out.name);
    if (known != nullptr) out.oid = known->oid;
  }
  return Intern(std::move(out));
}

void PackEnum(const EnumType& in, proto::EnumType* out) {
  out->set_oid(in.oid);
  out->set_array_oid(in.array_oid);
  out->set_name(in.name);
  for (const EnumLabel& label : in.labels) {
    proto::EnumLabel* packed = out->add_labels();
    packed->set_code(label.code);
    packed->set_oid(label.oid);
    packed->set_name(label.name);
  }
}

Result<const EnumType*> UnpackEnum(const proto::EnumType& in) {
  EnumType out;
  out.oid = in.oid();
  out.array_oid = in.array_oid();
  out.name = in.name();
  bool good = out.oid != 0 && out.array_oid != 0 && !out.name.empty();
  std::set<std::string_view> names;
  for (const proto::EnumLabel& label : in.labels()) {
    good = good && (out.labels.empty() || out.labels.back().code < label.code()) &&
           names.insert(label.name()).second;
    out.labels.push_back({label.code(), label.oid(), label.name()});
  }
  if (!good) return CorruptionError("enum type {} is malformed", in.oid());
  return Intern(std::move(out));
}

// What types of a descriptor refer to, by the oid that it uses.
struct Definitions {
  std::map<uint32_t, const EnumType*> enums;
  std::map<uint32_t, const Collation*> collations;
};

Result<const Collation*> CollationAt(uint32_t oid, const Definitions& known) {
  if (oid == 0) return nullptr;
  const auto found = known.collations.find(oid);
  if (found == known.collations.end()) {
    return CorruptionError("descriptor names unknown collation {}", oid);
  }
  return found->second;
}

Result<Type> UnpackType(const proto::Type& in, const Definitions& known) {
  Type type;
  type.id = static_cast<TypeId>(in.id());
  type.array = in.array();
  type.modifier = static_cast<int32_t>(in.modifier_plus_one() - 1);
  if (type.id == TypeId::kEnum) {
    auto found = known.enums.find(in.enumeration());
    if (found == known.enums.end()) {
      return CorruptionError("descriptor names unknown enum type {}", in.enumeration());
    }
    type.enumeration = found->second;
  }
  CELLAR_TRY_ASSIGN(type.collation, CollationAt(in.collation(), known));
  if (in.id() > 255 || (type.id != TypeId::kInvalid && OidOf(type) == 0)) {
    return CorruptionError("descriptor names unknown type {}", in.id());
  }
  return type;
}

void PackAcl(const Acl& in, proto::Acl* out) {
  for (const AclItem& item : in.items) {
    proto::AclItem* packed = out->add_items();
    packed->set_grantee(item.grantee);
    packed->set_grantor(item.grantor);
    packed->set_privileges(item.privileges);
    packed->set_grant_options(item.grant_options);
  }
}

Acl UnpackAcl(const proto::Acl& in) {
  Acl out;
  out.set = true;
  for (const proto::AclItem& item : in.items()) {
    out.items.push_back({item.grantee(), item.grantor(), item.privileges(), item.grant_options()});
  }
  return out;
}

void PackZone(const ZoneSettings& in, proto::Zone* out) {
  if (in.retention_micros) out->set_retention_micros(*in.retention_micros);
  if (in.row_quota) out->set_row_quota(*in.row_quota);
  if (in.byte_quota) out->set_byte_quota(*in.byte_quota);
  if (in.read_rate) out->set_read_rate(*in.read_rate);
  if (in.write_rate) out->set_write_rate(*in.write_rate);
  if (in.priority) out->set_priority(*in.priority);
  out->set_placement(in.placement);
}

ZoneSettings UnpackZone(const proto::Zone& in) {
  ZoneSettings out;
  if (in.has_retention_micros()) out.retention_micros = in.retention_micros();
  if (in.has_row_quota()) out.row_quota = in.row_quota();
  if (in.has_byte_quota()) out.byte_quota = in.byte_quota();
  if (in.has_read_rate()) out.read_rate = in.read_rate();
  if (in.has_write_rate()) out.write_rate = in.write_rate();
  if (in.has_priority()) out.priority = in.priority();
  out.placement = in.placement();
  return out;
}

void PackColumn(const ColumnDescriptor& in, proto::Column* out) {
  out->set_id(in.id.value);
  out->set_name(in.name);
  PackType(in.type, out->mutable_type());
  out->set_not_null(in.not_null);
  out->set_hidden(in.hidden);
  out->set_dropped(in.dropped);
  out->set_default_sql(in.default_sql);
  out->set_generated_sql(in.generated_sql);
  out->set_identity(static_cast<uint32_t>(in.identity));
  if (in.initial_value.has_value()) {
    proto::Constant* constant = out->mutable_initial_value();
    PackType(in.initial_value->type(), constant->mutable_type());
    if (in.initial_value->is_null()) {
      constant->set_null(true);
    } else {
      AppendDatumBinary(in.initial_value->datum(), in.initial_value->type(),
                        constant->mutable_bytes());
    }
  }
  out->set_sequence(in.sequence.value);
  if (in.acl.set) PackAcl(in.acl, out->mutable_acl());
  out->set_comment(in.comment);
}

Result<ColumnDescriptor> UnpackColumn(const proto::Column& in, const Definitions& known) {
  ColumnDescriptor out;
  out.id.value = static_cast<uint32_t>(in.id());
  out.name = in.name();
  CELLAR_TRY_ASSIGN(out.type, UnpackType(in.type(), known));
  out.not_null = in.not_null();
  out.hidden = in.hidden();
  out.dropped = in.dropped();
  out.default_sql = in.default_sql();
  out.generated_sql = in.generated_sql();
  if (in.identity() > 2) return CorruptionError("column has unknown identity {}", in.identity());
  out.identity = static_cast<Identity>(in.identity());
  if (in.has_initial_value()) {
    CELLAR_TRY_ASSIGN(Type type, UnpackType(in.initial_value().type(), known));
    Datum datum;
    Arena arena;
    if (!in.initial_value().null()) {
      Result<Datum> parsed = ParseDatumBinary(in.initial_value().bytes(), type, &arena);
      if (!parsed.ok()) {
        return CorruptionError("column has an unreadable initial value: {}",
                               parsed.status().message());
      }
      datum = parsed.value();
    }
    out.initial_value.emplace(type, datum);
  }
  out.sequence.value = in.sequence();
  if (in.has_acl()) out.acl = UnpackAcl(in.acl());
  out.comment = in.comment();
  return out;
}

void PackIndex(const IndexDescriptor& in, proto::Index* out) {
  out->set_id(in.id.value);
  out->set_oid(in.oid);
  out->set_name(in.name);
  out->set_primary(in.primary);
  out->set_unique(in.unique);
  out->set_constraint(in.constraint);
  out->set_nulls_not_distinct(in.nulls_not_distinct);
  out->set_state(static_cast<uint32_t>(in.state));
  for (const IndexColumn& column : in.key) {
    proto::IndexColumn* packed = out->add_key();
    packed->set_column(column.column.value);
    packed->set_expression(column.expression);
    if (column.collation != nullptr) packed->set_collation(column.collation->oid);
    packed->set_opclass(column.opclass);
    packed->set_descending(column.direction == codec::Direction::kDescending);
    packed->set_nulls_first(column.nulls == codec::NullPlacement::kFirst);
  }
  for (ColumnId column : in.stored) out->add_stored(column.value);
  out->set_predicate(in.predicate);
  out->set_shards(in.shards);
  out->set_job(in.job);
  out->set_comment(in.comment);
  out->set_deferrable(in.deferrable);
  out->set_constraint_comment(in.constraint_comment);
}

Result<IndexDescriptor> UnpackIndex(const proto::Index& in, const Definitions& known) {
  IndexDescriptor out;
  out.id.value = static_cast<uint32_t>(in.id());
  out.oid = in.oid();
  out.name = in.name();
  out.primary = in.primary();
  out.unique = in.unique();
  out.constraint = in.constraint();
  out.nulls_not_distinct = in.nulls_not_distinct();
  if (in.state() < 1 || in.state() > 4) {
    return CorruptionError("index has unknown state {}", in.state());
  }
  out.state = static_cast<IndexState>(in.state());
  for (const proto::IndexColumn& packed : in.key()) {
    IndexColumn column;
    column.column.value = static_cast<uint32_t>(packed.column());
    column.expression = packed.expression();
    if (packed.collation() == ByBytes()->oid) {
      column.collation = ByBytes();
    } else {
      CELLAR_TRY_ASSIGN(column.collation, CollationAt(packed.collation(), known));
    }
    column.opclass = packed.opclass();
    column.direction =
        packed.descending() ? codec::Direction::kDescending : codec::Direction::kAscending;
    column.nulls =
        packed.nulls_first() ? codec::NullPlacement::kFirst : codec::NullPlacement::kLast;
    out.key.push_back(std::move(column));
  }
  for (uint64_t column : in.stored()) {
    out.stored.push_back(ColumnId{static_cast<uint32_t>(column)});
  }
  out.predicate = in.predicate();
  out.shards = in.shards();
  out.job = in.job();
  out.comment = in.comment();
  out.deferrable = in.deferrable();
  out.constraint_comment = in.constraint_comment();
  return out;
}

void PackForeignKey(const ForeignKey& in, proto::ForeignKey* out) {
  out->set_name(in.name);
  out->set_oid(in.oid);
  for (ColumnId column : in.columns) out->add_columns(column.value);
  out->set_referenced_table(in.referenced_table.value);
  for (ColumnId column : in.referenced_columns) out->add_referenced_columns(column.value);
  out->set_on_delete(static_cast<uint32_t>(in.on_delete));
  out->set_on_update(static_cast<uint32_t>(in.on_update));
  out->set_deferrable(in.deferrable);
  out->set_initially_deferred(in.initially_deferred);
  out->set_not_validated(!in.validated);
  for (ColumnId column : in.on_delete_columns) out->add_on_delete_columns(column.value);
  out->set_comment(in.comment);
}

Result<ForeignKey> UnpackForeignKey(const proto::ForeignKey& in) {
  ForeignKey out;
  out.name = in.name();
  out.oid = in.oid();
  for (uint64_t column : in.columns()) {
    out.columns.push_back(ColumnId{static_cast<uint32_t>(column)});
  }
  out.referenced_table.value = in.referenced_table();
  for (uint64_t column : in.referenced_columns()) {
    out.referenced_columns.push_back(ColumnId{static_cast<uint32_t>(column)});
  }
  for (uint32_t action : {in.on_delete(), in.on_update()}) {
    if (action < 1 || action > 5) {
      return CorruptionError("foreign key has unknown action {}", action);
    }
  }
  out.on_delete = static_cast<ForeignKeyAction>(in.on_delete());
  out.on_update = static_cast<ForeignKeyAction>(in.on_update());
  out.deferrable = in.deferrable();
  out.initially_deferred = in.initially_deferred();
  out.validated = !in.not_validated();
  for (uint64_t column : in.on_delete_columns()) {
    out.on_delete_columns.push_back(ColumnId{static_cast<uint32_t>(column)});
  }
  out.comment = in.comment();
  return out;
}

void PackSequence(const SequenceOptions& in, proto::SequenceOptions* out) {
  PackType(in.type, out->mutable_type());
  out->set_start(in.start);
  out->set_increment(in.increment);
  out->set_min(in.min);
  out->set_max(in.max);
  out->set_cache(in.cache);
  out->set_cycle(in.cycle);
  out->set_owner_table(in.owner_table.value);
  out->set_owner_column(in.owner_column.value);
}

Result<SequenceOptions> UnpackSequence(const proto::SequenceOptions& in) {
  SequenceOptions out;
  CELLAR_TRY_ASSIGN(out.type, UnpackType(in.type(), {}));
  out.start = in.start();
  out.increment = in.increment();
  out.min = in.min();
  out.max = in.max();
  out.cache = in.cache();
  out.cycle = in.cycle();
  out.owner_table.value = in.owner_table();
  out.owner_column.value = in.owner_column();
  return out;
}

Result<ObjectState> UnpackState(uint32_t state) {
  if (state < 1 || state > 3) return CorruptionError("descriptor has unknown state {}", state);
  return static_cast<ObjectState>(state);
}

// Ids that other parts of the descriptor rely on name things that are there.
Status CheckReferences(const TableDescriptor& table) {
  auto known = [&](ColumnId id) { return table.OrdinalOf(id) >= 0; };
  for (size_t i = 0; i < table.indexes.size(); ++i) {
    const IndexDescriptor& index = table.indexes[i];
    bool good = index.primary == (i == 0) && !index.key.empty();
    for (const IndexColumn& column : index.key) {
      good = good && (!column.expression.empty() || known(column.column));
    }
    for (ColumnId column : index.stored) good = good && known(column);
    if (!good) return CorruptionError("index {} of relation {} is malformed", i, table.id.value);
  }
  for (const ColumnGroup& group : table.groups) {
    for (ColumnId column : group.columns) {
      if (known(column)) continue;
      return CorruptionError("column group {} of relation {} is malformed", group.id,
                             table.id.value);
    }
  }
  if (table.kind == RelationKind::kTable && table.indexes.empty()) {
    return CorruptionError("table {} has no primary index", table.id.value);
  }
  if (table.kind == RelationKind::kTable && table.row_formats.empty()) {
    return CorruptionError("table {} has no row format", table.id.value);
  }
  return Status();
}

Result<TableDescriptor> UnpackTable(const proto::Relation& in) {
  TableDescriptor out;
  out.id.value = in.id();
  out.parent.value = in.parent();
  out.name = in.name();
  out.version = in.version();
  CELLAR_TRY_ASSIGN(out.state, UnpackState(in.state()));
  out.dropped_at_micros = in.dropped_at_micros();
  out.dropped_at_ticks = in.dropped_at_ticks();
  out.drop_group = in.drop_group();
  out.truncated = in.truncated();
  if (in.has_keep_micros()) out.keep_micros = in.keep_micros();
  out.dropped_by = in.dropped_by();
  for (const proto::LostForeignKey& packed : in.lost_keys()) {
    CELLAR_TRY_ASSIGN(ForeignKey key, UnpackForeignKey(packed.key()));
    out.lost_keys.push_back({TableId{packed.table()}, std::move(key)});
  }
  if (in.kind() < 1 || in.kind() > 5) {
    return CorruptionError("relation has unknown kind {}", in.kind());
  }
  out.kind = static_cast<RelationKind>(in.kind());
  Definitions known;
  for (const proto::EnumType& packed : in.enums()) {
    CELLAR_TRY_ASSIGN(const EnumType* type, UnpackEnum(packed));
    known.enums[type->oid] = type;
    out.enumeration = type;
  }
  for (const proto::Collation& packed : in.collations()) {
    CELLAR_TRY_ASSIGN(const Collation* collation, UnpackCollation(packed));
    known.collations[packed.oid()] = collation;
    out.collation = collation;
  }
  if (out.kind != RelationKind::kCollation) {
    out.collation = nullptr;
  } else if (out.collation == nullptr || out.collation->oid != out.oid()) {
    return CorruptionError("collation {} has no definition", in.id());
  }
  if (out.kind != RelationKind::kType) {
    out.enumeration = nullptr;
  } else if (out.enumeration == nullptr || out.enumeration->oid != out.oid()) {
    return CorruptionError("type {} has no definition", in.id());
  }
  if (in.layout() < 1 || in.layout() > 4) {
    return CorruptionError("relation has unknown layout {}", in.layout());
  }
  out.layout = static_cast<Layout>(in.layout());
  for (const proto::Column& packed : in.columns()) {
    CELLAR_TRY_ASSIGN(ColumnDescriptor column, UnpackColumn(packed, known));
    out.columns.push_back(std::move(column));
  }
  for (const proto::Index& packed : in.indexes()) {
    CELLAR_TRY_ASSIGN(IndexDescriptor index, UnpackIndex(packed, known));
    out.indexes.push_back(std::move(index));
  }
  for (const proto::CheckConstraint& packed : in.checks()) {
    CheckConstraint check;
    check.name = packed.name();
    check.expression = packed.expression();
    check.oid = packed.oid();
    check.validated = !packed.not_validated();
    check.comment = packed.comment();
    out.checks.push_back(std::move(check));
  }
  for (const proto::ForeignKey& packed : in.foreign_keys()) {
    CELLAR_TRY_ASSIGN(ForeignKey key, UnpackForeignKey(packed));
    out.foreign_keys.push_back(std::move(key));
  }
  for (const proto::RowFormat& packed : in.row_formats()) {
    RowFormatDescriptor format;
    format.id = packed.id();
    for (uint64_t column : packed.columns()) {
      format.columns.push_back(ColumnId{static_cast<uint32_t>(column)});
    }
    for (const proto::Type& type_packed : packed.types()) {
      CELLAR_TRY_ASSIGN(Type type, UnpackType(type_packed, known));
      format.types.push_back(type);
    }
    if (format.types.size() != format.columns.size()) {
      return CorruptionError("row format {} has {} columns and {} types", format.id,
                             format.columns.size(), format.types.size());
    }
    out.row_formats.push_back(std::move(format));
  }
  for (const proto::ColumnGroup& packed : in.groups()) {
    ColumnGroup group;
    group.id = packed.id();
    group.name = packed.name();
    for (uint64_t column : packed.columns()) {
      group.columns.push_back(ColumnId{static_cast<uint32_t>(column)});
    }
    out.groups.push_back(std::move(group));
  }
  if (in.next_group_id() != 0) out.next_group_id = in.next_group_id();
  out.storage.value = in.storage();
  out.job = in.job();
  out.next_column_id = in.next_column_id();
  out.next_index_id = in.next_index_id();
  out.next_row_format_id = in.next_row_format_id();
  out.view_sql = in.view_sql();
  if (in.has_sequence()) {
    CELLAR_TRY_ASSIGN(out.sequence, UnpackSequence(in.sequence()));
  }
  out.temporary = in.temporary();
  out.counted_since_micros = in.counted_since_micros();
  out.owner = in.owner();
  if (in.has_acl()) out.acl = UnpackAcl(in.acl());
  out.zone = UnpackZone(in.zone());
  out.comment = in.comment();
  CELLAR_TRY(CheckReferences(out));
  return out;
}

Result<NamespaceDescriptor> UnpackNamespace(const proto::Namespace& in) {
  NamespaceDescriptor out;
  out.id.value = in.id();
  out.parent.value = in.parent();
  out.name = in.name();
  out.version = in.version();
  CELLAR_TRY_ASSIGN(out.state, UnpackState(in.state()));
  out.dropped_at_micros = in.dropped_at_micros();
  out.dropped_at_ticks = in.dropped_at_ticks();
  out.drop_group = in.drop_group();
  if (in.has_keep_micros()) out.keep_micros = in.keep_micros();
  out.dropped_by = in.dropped_by();
  out.owner = in.owner();
  if (in.has_acl()) out.acl = UnpackAcl(in.acl());
  for (const proto::DefaultAcl& packed : in.default_acls()) {
    out.default_acls.push_back(
        {packed.role(), static_cast<char>(packed.object_type()), UnpackAcl(packed.acl())});
  }
  out.zone = UnpackZone(in.zone());
  out.comment = in.comment();
  return out;
}

Result<proto::Descriptor> ParseDescriptor(std::string_view bytes) {
  proto::Descriptor message;
  // What is wrong is our caller's to report, not the library's.
  google::protobuf::LogSilencer silencer;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return CorruptionError("descriptor is not readable");
  }
  return message;
}

}  // namespace

std::string EncodeTable(const TableDescriptor& table) {
  proto::Descriptor message;
  proto::Relation* out = message.mutable_relation();
  out->set_id(table.id.value);
  out->set_parent(table.parent.value);
  out->set_name(table.name);
  out->set_version(table.version);
  out->set_state(static_cast<uint32_t>(table.state));
  out->set_dropped_at_micros(table.dropped_at_micros);
  out->set_dropped_at_ticks(table.dropped_at_ticks);
  out->set_drop_group(table.drop_group);
  out->set_truncated(table.truncated);
  if (table.keep_micros) out->set_keep_micros(*table.keep_micros);
  out->set_dropped_by(table.dropped_by);
  for (const LostForeignKey& lost : table.lost_keys) {
    proto::LostForeignKey* packed = out->add_lost_keys();
    packed->set_table(lost.table.value);
    PackForeignKey(lost.key, packed->mutable_key());
  }
  out->set_kind(static_cast<uint32_t>(table.kind));
  out->set_layout(static_cast<uint32_t>(table.layout));
  for (const ColumnDescriptor& column : table.columns) PackColumn(column, out->add_columns());
  for (const IndexDescriptor& index : table.indexes) PackIndex(index, out->add_indexes());
  for (const CheckConstraint& check : table.checks) {
    proto::CheckConstraint* packed = out->add_checks();
    packed->set_name(check.name);
    packed->set_expression(check.expression);
    packed->set_oid(check.oid);
    packed->set_not_validated(!check.validated);
    packed->set_comment(check.comment);
  }
  for (const ForeignKey& key : table.foreign_keys) PackForeignKey(key, out->add_foreign_keys());
  for (const RowFormatDescriptor& format : table.row_formats) {
    proto::RowFormat* packed = out->add_row_formats();
    packed->set_id(format.id);
    for (ColumnId column : format.columns) packed->add_columns(column.value);
    for (const Type& type : format.types) PackType(type, packed->add_types());
  }
  for (const ColumnGroup& group : table.groups) {
    proto::ColumnGroup* packed = out->add_groups();
    packed->set_id(group.id);
    packed->set_name(group.name);
    for (ColumnId column : group.columns) packed->add_columns(column.value);
  }
  if (table.next_group_id != 1) out->set_next_group_id(table.next_group_id);
  out->set_storage(table.storage.value);
  out->set_job(table.job);
  out->set_next_column_id(table.next_column_id);
  out->set_next_index_id(table.next_index_id);
  out->set_next_row_format_id(table.next_row_format_id);
  out->set_view_sql(table.view_sql);
  if (table.kind == RelationKind::kSequence) {
    PackSequence(table.sequence, out->mutable_sequence());
  }
  out->set_temporary(table.temporary);
  out->set_counted_since_micros(table.counted_since_micros);
  out->set_owner(table.owner);
  if (table.acl.set) PackAcl(table.acl, out->mutable_acl());
  if (table.zone != ZoneSettings()) PackZone(table.zone, out->mutable_zone());
  out->set_comment(table.comment);
  if (table.enumeration != nullptr) PackEnum(*table.enumeration, out->add_enums());
  for (const EnumType* type : EnumsOf(table)) PackEnum(*type, out->add_enums());
  if (table.collation != nullptr) PackCollation(*table.collation, out->add_collations());
  for (const Collation* one : CollationsOf(table)) PackCollation(*one, out->add_collations());
  return message.SerializeAsString();
}

Result<TableDescriptor> DecodeTable(std::string_view bytes) {
  CELLAR_TRY_ASSIGN(proto::Descriptor message, ParseDescriptor(bytes));
  if (!message.has_relation()) return CorruptionError("descriptor is not a relation's");
  return UnpackTable(message.relation());
}

std::string EncodeNamespace(const NamespaceDescriptor& space) {
  proto::Descriptor message;
  proto::Namespace* out = message.mutable_namespace_();
  out->set_id(space.id.value);
  out->set_parent(space.parent.value);
  out->set_name(space.name);
  out->set_version(space.version);
  out->set_state(static_cast<uint32_t>(space.state));
  out->set_dropped_at_micros(space.dropped_at_micros);
  out->set_dropped_at_ticks(space.dropped_at_ticks);
  out->set_drop_group(space.drop_group);
  if (space.keep_micros) out->set_keep_micros(*space.keep_micros);
  out->set_dropped_by(space.dropped_by);
  out->set_owner(space.owner);
  if (space.acl.set) PackAcl(space.acl, out->mutable_acl());
  for (const DefaultAcl& item : space.default_acls) {
    proto::DefaultAcl* packed = out->add_default_acls();
    packed->set_role(item.role);
    packed->set_object_type(static_cast<unsigned char>(item.object_type));
    PackAcl(item.acl, packed->mutable_acl());
  }
  if (space.zone != ZoneSettings()) PackZone(space.zone, out->mutable_zone());
  out->set_comment(space.comment);
  return message.SerializeAsString();
}

Result<NamespaceDescriptor> DecodeNamespace(std::string_view bytes) {
  CELLAR_TRY_ASSIGN(proto::Descriptor message, ParseDescriptor(bytes));
  if (!message.has_namespace_()) return CorruptionError("descriptor is not a namespace's");
  return UnpackNamespace(message.namespace_());
}

std::string EncodeNameRecord(const NameRecord& record) {
  proto::NameRecord out;
  out.set_namespace_id(record.namespace_id);
  out.set_relation_id(record.relation_id);
  out.set_index_id_plus_one(record.is_index ? uint64_t{record.index.value} + 1 : 0);
  return out.SerializeAsString();
}

Result<NameRecord> DecodeNameRecord(std::string_view key, std::string_view value) {
  CELLAR_TRY_ASSIGN(const std::string_view bytes, codec::Unseal(key, value));
  proto::NameRecord in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return CorruptionError("name record is not readable");
  }
  NameRecord record;
  record.namespace_id = in.namespace_id();
  record.relation_id = in.relation_id();
  record.is_index = in.index_id_plus_one() != 0;
  if (record.is_index) record.index.value = static_cast<uint32_t>(in.index_id_plus_one() - 1);
  return record;
}

Status PutNameRecord(std::string_view key, const NameRecord& record, kv::Transaction* transaction) {
  return transaction->Put(key, codec::Seal(key, EncodeNameRecord(record)));
}

std::string IdKey() { return codec::SystemKey("ids"); }

Status PutIdSequence(uint64_t next, kv::Transaction* transaction) {
  proto::IdSequence out;
  out.set_next(next);
  const std::string key = IdKey();
  return transaction->Put(key, codec::Seal(key, out.SerializeAsString()));
}

Result<uint64_t> DecodeIdSequence(std::string_view value) {
  CELLAR_TRY_ASSIGN(const std::string_view bytes, codec::Unseal(IdKey(), value));
  proto::IdSequence in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || in.next() < 2) {
    return CorruptionError("the sequence of ids is not readable");
  }
  return in.next();
}

Status PutDescriptor(const TableDescriptor& table, kv::Transaction* transaction) {
  const std::string key = codec::DescriptorKey(table.id.value);
  return transaction->Put(key, codec::Seal(key, EncodeTable(table)));
}

Status PutDescriptor(const NamespaceDescriptor& space, kv::Transaction* transaction) {
  const std::string key = codec::DescriptorKey(space.id.value);
  return transaction->Put(key, codec::Seal(key, EncodeNamespace(space)));
}

Result<AnyDescriptor> DecodeAny(std::string_view key, std::string_view value,
                                uint64_t commit_version) {
  CELLAR_TRY_ASSIGN(const std::string_view bytes, codec::Unseal(key, value));
  CELLAR_TRY_ASSIGN(proto::Descriptor message, ParseDescriptor(bytes));
  AnyDescriptor out;
  if (message.has_relation()) {
    CELLAR_TRY_ASSIGN(TableDescriptor table, UnpackTable(message.relation()));
    table.commit_version = commit_version;
    out.table = std::make_shared<const TableDescriptor>(std::move(table));
  } else if (message.has_namespace_()) {
    CELLAR_TRY_ASSIGN(NamespaceDescriptor space, UnpackNamespace(message.namespace_()));
    space.commit_version = commit_version;
    out.space = std::make_shared<const NamespaceDescriptor>(std::move(space));
  } else {
    return CorruptionError("descriptor is of an unknown kind");
  }
  return out;
}

}  // namespace cellar::catalog
