// What each RPC does; admin_service.cc puts the transport around it.
#pragma once

#include <functional>
#include <string>

#include "cellar/rpc/admin/admin_call.h"
#include "cellar/v1/admin.pb.h"

namespace cellar::rpc::admin {

// namespaces.cc
Status CreateNamespace(AdminCall* call, const v1::CreateNamespaceRequest& request,
                       v1::Namespace* answer);
Status GetNamespace(AdminCall* call, const v1::GetNamespaceRequest& request, v1::Namespace* answer);
Status UpdateNamespace(AdminCall* call, const v1::UpdateNamespaceRequest& request,
                       v1::Namespace* answer);
Status List(AdminCall* call, const v1::ListRequest& request, v1::ListResponse* answer);
Status Move(AdminCall* call, const v1::MoveRequest& request, v1::ObjectName* answer);
// tables.cc
Status CreateTable(AdminCall* call, const v1::CreateTableRequest& request, v1::Table* answer);
Status GetTable(AdminCall* call, const v1::GetTableRequest& request, v1::Table* answer);
Status UpdateTable(AdminCall* call, const v1::UpdateTableRequest& request, v1::Table* answer);
// columns.cc
Status AddColumn(AdminCall* call, const v1::AddColumnRequest& request, v1::Table* answer);
Status UpdateColumn(AdminCall* call, const v1::UpdateColumnRequest& request, v1::Table* answer);
Status DropColumn(AdminCall* call, const v1::DropColumnRequest& request, v1::Table* answer);
Status CreateIndex(AdminCall* call, const v1::CreateIndexRequest& request, v1::Index* answer);
Status UpdateIndex(AdminCall* call, const v1::UpdateIndexRequest& request, v1::Index* answer);
Status DropIndex(AdminCall* call, const v1::DropIndexRequest& request, v1::Table* answer);
Status AddConstraint(AdminCall* call, const v1::AddConstraintRequest& request, v1::Table* answer);
Status ValidateConstraint(AdminCall* call, const v1::ValidateConstraintRequest& request,
                          v1::Table* answer);
Status DropConstraint(AdminCall* call, const v1::DropConstraintRequest& request, v1::Table* answer);
// bin.cc
Status Drop(AdminCall* call, const v1::DropRequest& request, v1::Empty* answer);
Status Truncate(AdminCall* call, const v1::TruncateRequest& request, v1::Empty* answer);
Status ListDropped(AdminCall* call, const v1::ListDroppedRequest& request,
                   v1::ListDroppedResponse* answer);
Status Undrop(AdminCall* call, const v1::UndropRequest& request, v1::ObjectName* answer);
Status UpdateDropped(AdminCall* call, const v1::UpdateDroppedRequest& request,
                     v1::DroppedObject* answer);
Status Purge(AdminCall* call, const v1::PurgeRequest& request, v1::Empty* answer);
// access.cc
Status CreateRole(AdminCall* call, const v1::CreateRoleRequest& request, v1::Role* answer);
Status UpdateRole(AdminCall* call, const v1::UpdateRoleRequest& request, v1::Role* answer);
Status DropRole(AdminCall* call, const v1::DropRoleRequest& request, v1::Empty* answer);
Status ListRoles(AdminCall* call, const v1::ListRolesRequest& request,
                 v1::ListRolesResponse* answer);
Status ListGrants(AdminCall* call, const v1::ListGrantsRequest& request,
                  v1::ListGrantsResponse* answer);
Status GrantPrivileges(AdminCall* call, const v1::GrantRequest& request,
                       v1::ListGrantsResponse* answer);
Status RevokePrivileges(AdminCall* call, const v1::RevokeRequest& request,
                        v1::ListGrantsResponse* answer);
// operations.cc
Status GetJob(AdminCall* call, const v1::GetJobRequest& request, v1::Job* answer);
Status ListJobs(AdminCall* call, const v1::ListJobsRequest& request, v1::ListJobsResponse* answer);
Status CancelJob(AdminCall* call, const v1::CancelJobRequest& request, v1::Job* answer);
Status GetUsage(AdminCall* call, const v1::GetUsageRequest& request, v1::GetUsageResponse* answer);
Status Seal(AdminCall* call, const v1::SealRequest& request, v1::Empty* answer);
Status CreateBackup(AdminCall* call, const v1::CreateBackupRequest& request, v1::Backup* answer);
// `send` is false when the caller has gone.
Status Check(AdminCall* call, const v1::CheckRequest& request,
             const std::function<bool(const v1::CheckFinding&)>& send);

// A path of whatever kind, resolved: enters its database.
struct Named {
  v1::ObjectKind kind = v1::OBJECT_KIND_UNSPECIFIED;
  Place place;
  uint32_t oid = 0;
  bool database() const { return kind == v1::OBJECT_KIND_NAMESPACE && place.schema.empty(); }
  std::string Keyword() const;  // "TABLE", "VIEW", "SEQUENCE", "SCHEMA", "DATABASE"
  std::string Name() const;     // quoted
};
// Unspecified: whatever has the name; 42725 when two things have it.
Result<Named> Resolve(AdminCall* call, const std::string& path, v1::ObjectKind kind);
// Without looking: the kind must be said, or follow from the path's depth.
Result<Named> NameFor(const std::string& path, v1::ObjectKind kind);

// 22023: the request itself makes no sense.
Status BadRequest(std::string message);
// A number in a row; 0 for NULL.
int64_t NumberOf(const std::optional<std::string>& text);

}  // namespace cellar::rpc::admin
