#include "cellar/rpc/admin/messages.h"

#include <google/protobuf/util/field_mask_util.h>

#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/text_io.h"
#include "cellar/v1/admin.pb.h"

namespace cellar::rpc {
namespace {

using google::protobuf::util::FieldMaskUtil;

constexpr int64_t kMicros = 1000000;

void PutDuration(int64_t micros, google::protobuf::Duration* duration) {
  duration->set_seconds(micros / kMicros);
  duration->set_nanos(static_cast<int32_t>(micros % kMicros * 1000));
}

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string NameOf(const catalog::TableDescriptor& table, catalog::ColumnId id) {
  const catalog::ColumnDescriptor* column = table.FindColumn(id);
  return column == nullptr ? "" : column->name;
}

v1::ForeignKey::Action ActionOf(catalog::ForeignKeyAction action) {
  switch (action) {
    case catalog::ForeignKeyAction::kNoAction: break;
    case catalog::ForeignKeyAction::kRestrict: return v1::ForeignKey::ACTION_RESTRICT;
    case catalog::ForeignKeyAction::kCascade: return v1::ForeignKey::ACTION_CASCADE;
    case catalog::ForeignKeyAction::kSetNull: return v1::ForeignKey::ACTION_SET_NULL;
    case catalog::ForeignKeyAction::kSetDefault: return v1::ForeignKey::ACTION_SET_DEFAULT;
  }
  return v1::ForeignKey::ACTION_NO_ACTION;
}

void PutColumn(const catalog::ColumnDescriptor& column, v1::Column* message) {
  message->set_name(column.name);
  message->set_id(column.id.value);
  message->set_type(FormatType(column.type));
  message->set_not_null(column.not_null);
  message->set_default_expression(column.default_sql);
  message->set_generated_expression(column.generated_sql);
  message->set_identity(static_cast<v1::Column::Identity>(column.identity));
  if (column.type.collation != nullptr) message->set_collation(column.type.collation->name);
  message->set_comment(column.comment);
}

Status BadPath(const std::string& path, const char* why) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "field mask path \"{}\" {}",
                  path, why);
}

// FieldMaskUtil::IsValidPath, for a descriptor that is known only now.
bool IsField(const google::protobuf::Descriptor* descriptor, const std::string& path) {
  return FieldMaskUtil::GetFieldDescriptors(descriptor, path, nullptr);
}

}  // namespace

void PutZone(const catalog::ZoneSettings& zone, v1::Zone* message) {
  if (zone.retention_micros) PutDuration(*zone.retention_micros, message->mutable_retention());
  if (zone.row_quota) message->set_row_quota(*zone.row_quota);
  if (zone.byte_quota) message->set_byte_quota(*zone.byte_quota);
  if (zone.read_rate) message->set_read_rate(*zone.read_rate);
  if (zone.write_rate) message->set_write_rate(*zone.write_rate);
  if (zone.priority) message->set_priority(*zone.priority);
  if (!zone.placement.empty()) message->set_placement(zone.placement);
}

void PutZoneTexts(const std::string& lines, v1::Zone* message) {
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view line = std::string_view(lines).substr(at, end - at);
    at = end + 1;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals), value = line.substr(equals + 1);
    if (name == "retention") {
      const Result<Interval> interval = ParseInterval(value, -1, FormatSettings());
      if (!interval.ok()) continue;
      constexpr int64_t kDaySeconds = 86400;
      PutDuration(interval->days * kDaySeconds * kMicros + interval->micros,
                  message->mutable_retention());
    } else if (name == "placement") {
      message->set_placement(std::string(value));
    } else if (name == "priority") {
      message->set_priority(static_cast<int32_t>(NumberIn(value)));
    } else if (name == "row_quota") {
      message->set_row_quota(NumberIn(value));
    } else if (name == "byte_quota") {
      message->set_byte_quota(NumberIn(value));
    } else if (name == "read_rate") {
      message->set_read_rate(NumberIn(value));
    } else if (name == "write_rate") {
      message->set_write_rate(NumberIn(value));
    }
  }
}

void PutNamespace(const catalog::CatalogSnapshot& catalog,
                  const catalog::NamespaceDescriptor& space, v1::Namespace* message) {
  message->set_path(catalog.PathOf(space.id));
  message->set_id(space.id.value);
  message->set_version(space.version);
  message->set_owner(space.owner);
  message->set_comment(space.comment);
  PutZone(space.zone, message->mutable_zone());
}

void PutIndex(const catalog::TableDescriptor& table, const catalog::IndexDescriptor& index,
              v1::Index* message) {
  message->set_name(index.name);
  message->set_id(index.id.value);
  message->set_primary(index.primary);
  message->set_unique(index.unique);
  message->set_constraint(index.constraint);
  message->set_nulls_not_distinct(index.nulls_not_distinct);
  for (const catalog::IndexColumn& part : index.key) {
    v1::IndexColumn* column = message->add_key();
    if (part.expression.empty()) {
      column->set_column(NameOf(table, part.column));
    } else {
      column->set_expression(part.expression);
    }
    column->set_descending(part.direction == codec::Direction::kDescending);
    column->set_nulls_first(part.nulls == codec::NullPlacement::kFirst);
    if (part.collation != nullptr) column->set_collation(part.collation->name);
  }
  for (const catalog::ColumnId id : index.stored) message->add_stored(NameOf(table, id));
  message->set_predicate(index.predicate);
  message->set_shards(index.shards);
  switch (index.state) {
    case catalog::IndexState::kPublic: message->set_state(v1::Index::STATE_READY); break;
    case catalog::IndexState::kWriteOnly: message->set_state(v1::Index::STATE_BUILDING); break;
    default: message->set_state(v1::Index::STATE_DROPPING);
  }
  message->set_job(index.job);
  message->set_comment(index.comment);
}

void PutTable(const catalog::CatalogSnapshot& catalog, const catalog::TableDescriptor& table,
              v1::Table* message) {
  message->set_path(catalog.PathOf(table));
  message->set_id(table.id.value);
  message->set_version(table.version);
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped && !column.hidden) PutColumn(column, message->add_columns());
  }
  for (const catalog::IndexDescriptor& index : table.indexes) {
    const bool hidden = index.primary && !index.key.empty() && index.key[0].expression.empty() &&
                        table.FindColumn(index.key[0].column) != nullptr &&
                        table.FindColumn(index.key[0].column)->hidden;
    if (!hidden) PutIndex(table, index, message->add_indexes());
  }
  for (const catalog::CheckConstraint& check : table.checks) {
    v1::CheckConstraint* out = message->add_checks();
    out->set_name(check.name);
    out->set_expression(check.expression);
    out->set_validated(check.validated);
  }
  for (const catalog::ForeignKey& key : table.foreign_keys) {
    v1::ForeignKey* out = message->add_foreign_keys();
    out->set_name(key.name);
    for (const catalog::ColumnId id : key.columns) out->add_columns(NameOf(table, id));
    if (const catalog::TablePtr other = catalog.GetTable(key.referenced_table)) {
      out->set_referenced_table(catalog.PathOf(*other));
      for (const catalog::ColumnId id : key.referenced_columns) {
        out->add_referenced_columns(NameOf(*other, id));
      }
    }
    out->set_on_delete(ActionOf(key.on_delete));
    out->set_on_update(ActionOf(key.on_update));
    out->set_deferrable(key.deferrable);
    out->set_initially_deferred(key.initially_deferred);
    out->set_validated(key.validated);
  }
  for (const catalog::ColumnGroup& group : table.groups) {
    v1::ColumnGroup* out = message->add_groups();
    out->set_name(group.name);
    for (const catalog::ColumnId id : group.columns) {
      const catalog::ColumnDescriptor* column = table.FindColumn(id);
      if (column != nullptr && !column->dropped) out->add_columns(column->name);
    }
  }
  message->set_layout(static_cast<v1::Layout>(table.layout));
  message->set_owner(table.owner);
  message->set_comment(table.comment);
  PutZone(table.zone, message->mutable_zone());
  message->set_job(table.job);
}

void PutObject(const catalog::CatalogSnapshot& catalog, const catalog::TableDescriptor& table,
               v1::ObjectName* message) {
  message->set_path(catalog.PathOf(table));
  message->set_kind(table.kind == catalog::RelationKind::kTable  ? v1::OBJECT_KIND_TABLE
                    : table.kind == catalog::RelationKind::kView ? v1::OBJECT_KIND_VIEW
                                                                 : v1::OBJECT_KIND_SEQUENCE);
  message->set_id(table.id.value);
  message->set_comment(table.comment);
}

void PutObject(const catalog::CatalogSnapshot& catalog, const catalog::NamespaceDescriptor& space,
               v1::ObjectName* message) {
  message->set_path(catalog.PathOf(space.id));
  message->set_kind(v1::OBJECT_KIND_NAMESPACE);
  message->set_id(space.id.value);
  message->set_comment(space.comment);
}

Status TrimTo(const google::protobuf::FieldMask& mask, google::protobuf::Message* message) {
  if (mask.paths().empty()) return Status();
  for (const std::string& path : mask.paths()) {
    if (!IsField(message->GetDescriptor(), path)) {
      return BadPath(path, "is not a field");
    }
  }
  FieldMaskUtil::TrimMessage(mask, message);
  return Status();
}

Result<std::set<std::string>> UpdatePaths(const google::protobuf::FieldMask& mask,
                                          const google::protobuf::Message& message,
                                          const std::set<std::string>& changeable) {
  if (mask.paths().empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "an update needs an update_mask that names what changes");
  }
  std::set<std::string> paths;
  for (const std::string& path : mask.paths()) {
    if (!IsField(message.GetDescriptor(), path)) return BadPath(path, "is not a field");
    const std::string top = path.substr(0, path.find('.'));
    if (!changeable.contains(top)) return BadPath(path, "cannot be changed");
    if (top != "zone") {
      paths.insert(top);
    } else if (path == "zone") {
      const google::protobuf::Descriptor* zone = v1::Zone::descriptor();
      for (int i = 0; i < zone->field_count(); ++i) paths.insert("zone." + zone->field(i)->name());
    } else {
      // What is below a field, as "zone.retention.seconds", is the field.
      paths.insert(path.substr(0, path.find('.', top.size() + 1)));
    }
  }
  return paths;
}

}  // namespace cellar::rpc
