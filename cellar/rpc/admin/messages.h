// Descriptors as messages, and field masks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"

namespace google::protobuf {
class FieldMask;
class Message;
}  // namespace google::protobuf
namespace cellar::v1 {
class Index;
class Namespace;
class ObjectName;
class Table;
class Zone;
}  // namespace cellar::v1

namespace cellar::rpc {

void PutZone(const catalog::ZoneSettings& zone, v1::Zone* message);
// From options as the catalog's views show them: "row_quota=5", one a line.
void PutZoneTexts(const std::string& lines, v1::Zone* message);
void PutNamespace(const catalog::CatalogSnapshot& catalog,
                  const catalog::NamespaceDescriptor& space, v1::Namespace* message);
void PutTable(const catalog::CatalogSnapshot& catalog, const catalog::TableDescriptor& table,
              v1::Table* message);
void PutIndex(const catalog::TableDescriptor& table, const catalog::IndexDescriptor& index,
              v1::Index* message);
void PutObject(const catalog::CatalogSnapshot& catalog, const catalog::TableDescriptor& table,
               v1::ObjectName* message);
void PutObject(const catalog::CatalogSnapshot& catalog, const catalog::NamespaceDescriptor& space,
               v1::ObjectName* message);

// Leaves in `message` what the mask names; all of it for an empty mask. 22023 for unknown paths.
Status TrimTo(const google::protobuf::FieldMask& mask, google::protobuf::Message* message);
// The paths of an update of `message`; "zone" stands for its fields, each "zone.x". 22023 when
// there is none, or for one that is no field or not among `changeable`.
Result<std::set<std::string>> UpdatePaths(const google::protobuf::FieldMask& mask,
                                          const google::protobuf::Message& message,
                                          const std::set<std::string>& changeable);

}  // namespace cellar::rpc
