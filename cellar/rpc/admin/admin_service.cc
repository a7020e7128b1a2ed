#include "cellar/rpc/admin/admin_service.h"

#include <grpcpp/grpcpp.h>

#include "cellar/base/crc32c.h"
#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/v1/admin.grpc.pb.h"

namespace cellar::rpc {
namespace {

using grpc::ServerContext;

// Numbers that an enum does not have would be taken for its default.
Status CheckEnums(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CELLAR_TRY(CheckEnums(field->is_repeated()
                                  ? reflection->GetRepeatedMessage(message, field, i)
                                  : reflection->GetMessage(message, field)));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        const int value = field->is_repeated() ? reflection->GetRepeatedEnumValue(message, field, i)
                                               : reflection->GetEnumValue(message, field);
        if (field->enum_type()->FindValueByNumber(value) != nullptr) continue;
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "field {} has no value {}", field->name(), value);
      }
    }
  }
  return Status();
}

class AdminService : public v1::Admin::Service {
 public:
  AdminService(Calls* calls, SessionFactory sessions)
      : services_{calls, std::move(sessions), {}, {}} {}

  grpc::Status CreateNamespace(ServerContext* context, const v1::CreateNamespaceRequest* request,
                               v1::Namespace* answer) override {
    return Handle(context, *request, answer, &admin::CreateNamespace);
  }
  grpc::Status GetNamespace(ServerContext* context, const v1::GetNamespaceRequest* request,
                            v1::Namespace* answer) override {
    return Handle(context, *request, answer, &admin::GetNamespace);
  }
  grpc::Status UpdateNamespace(ServerContext* context, const v1::UpdateNamespaceRequest* request,
                               v1::Namespace* answer) override {
    return Handle(context, *request, answer, &admin::UpdateNamespace);
  }
  grpc::Status List(ServerContext* context, const v1::ListRequest* request,
                    v1::ListResponse* answer) override {
    return Handle(context, *request, answer, &admin::List);
  }
  grpc::Status CreateTable(ServerContext* context, const v1::CreateTableRequest* request,
                           v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::CreateTable);
  }
  grpc::Status GetTable(ServerContext* context, const v1::GetTableRequest* request,
                        v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::GetTable);
  }
  grpc::Status UpdateTable(ServerContext* context, const v1::UpdateTableRequest* request,
                           v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::UpdateTable);
  }
  grpc::Status Move(ServerContext* context, const v1::MoveRequest* request,
                    v1::ObjectName* answer) override {
    return Handle(context, *request, answer, &admin::Move);
  }
  grpc::Status AddColumn(ServerContext* context, const v1::AddColumnRequest* request,
                         v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::AddColumn);
  }
  grpc::Status UpdateColumn(ServerContext* context, const v1::UpdateColumnRequest* request,
                            v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::UpdateColumn);
  }
  grpc::Status DropColumn(ServerContext* context, const v1::DropColumnRequest* request,
                          v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::DropColumn);
  }
  grpc::Status CreateIndex(ServerContext* context, const v1::CreateIndexRequest* request,
                           v1::Index* answer) override {
    return Handle(context, *request, answer, &admin::CreateIndex);
  }
  grpc::Status UpdateIndex(ServerContext* context, const v1::UpdateIndexRequest* request,
                           v1::Index* answer) override {
    return Handle(context, *request, answer, &admin::UpdateIndex);
  }
  grpc::Status DropIndex(ServerContext* context, const v1::DropIndexRequest* request,
                         v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::DropIndex);
  }
  grpc::Status AddConstraint(ServerContext* context, const v1::AddConstraintRequest* request,
                             v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::AddConstraint);
  }
  grpc::Status ValidateConstraint(ServerContext* context,
                                  const v1::ValidateConstraintRequest* request,
                                  v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::ValidateConstraint);
  }
  grpc::Status DropConstraint(ServerContext* context, const v1::DropConstraintRequest* request,
                              v1::Table* answer) override {
    return Handle(context, *request, answer, &admin::DropConstraint);
  }
  grpc::Status Drop(ServerContext* context, const v1::DropRequest* request,
                    v1::Empty* answer) override {
    return Handle(context, *request, answer, &admin::Drop);
  }
  grpc::Status Truncate(ServerContext* context, const v1::TruncateRequest* request,
                        v1::Empty* answer) override {
    return Handle(context, *request, answer, &admin::Truncate);
  }
  grpc::Status ListDropped(ServerContext* context, const v1::ListDroppedRequest* request,
                           v1::ListDroppedResponse* answer) override {
    return Handle(context, *request, answer, &admin::ListDropped);
  }
  grpc::Status Undrop(ServerContext* context, const v1::UndropRequest* request,
                      v1::ObjectName* answer) override {
    return Handle(context, *request, answer, &admin::Undrop);
  }
  grpc::Status UpdateDropped(ServerContext* context, const v1::UpdateDroppedRequest* request,
                             v1::DroppedObject* answer) override {
    return Handle(context, *request, answer, &admin::UpdateDropped);
  }
  grpc::Status Purge(ServerContext* context, const v1::PurgeRequest* request,
                     v1::Empty* answer) override {
    return Handle(context, *request, answer, &admin::Purge);
  }
  grpc::Status GetJob(ServerContext* context, const v1::GetJobRequest* request,
                      v1::Job* answer) override {
    return Handle(context, *request, answer, &admin::GetJob);
  }
  grpc::Status ListJobs(ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* answer) override {
    return Handle(context, *request, answer, &admin::ListJobs);
  }
  grpc::Status CancelJob(ServerContext* context, const v1::CancelJobRequest* request,
                         v1::Job* answer) override {
    return Handle(context, *request, answer, &admin::CancelJob);
  }
  grpc::Status CreateRole(ServerContext* context, const v1::CreateRoleRequest* request,
                          v1::Role* answer) override {
    return Handle(context, *request, answer, &admin::CreateRole);
  }
  grpc::Status UpdateRole(ServerContext* context, const v1::UpdateRoleRequest* request,
                          v1::Role* answer) override {
    return Handle(context, *request, answer, &admin::UpdateRole);
  }
  grpc::Status DropRole(ServerContext* context, const v1::DropRoleRequest* request,
                        v1::Empty* answer) override {
    return Handle(context, *request, answer, &admin::DropRole);
  }
  grpc::Status ListRoles(ServerContext* context, const v1::ListRolesRequest* request,
                         v1::ListRolesResponse* answer) override {
    return Handle(context, *request, answer, &admin::ListRoles);
  }
  grpc::Status ListGrants(ServerContext* context, const v1::ListGrantsRequest* request,
                          v1::ListGrantsResponse* answer) override {
    return Handle(context, *request, answer, &admin::ListGrants);
  }
  grpc::Status GrantPrivileges(ServerContext* context, const v1::GrantRequest* request,
                               v1::ListGrantsResponse* answer) override {
    return Handle(context, *request, answer, &admin::GrantPrivileges);
  }
  grpc::Status RevokePrivileges(ServerContext* context, const v1::RevokeRequest* request,
                                v1::ListGrantsResponse* answer) override {
    return Handle(context, *request, answer, &admin::RevokePrivileges);
  }
  grpc::Status GetUsage(ServerContext* context, const v1::GetUsageRequest* request,
                        v1::GetUsageResponse* answer) override {
    return Handle(context, *request, answer, &admin::GetUsage);
  }
  grpc::Status Seal(ServerContext* context, const v1::SealRequest* request,
                    v1::Empty* answer) override {
    return Handle(context, *request, answer, &admin::Seal);
  }
  grpc::Status CreateBackup(ServerContext* context, const v1::CreateBackupRequest* request,
                            v1::Backup* answer) override {
    return Handle(context, *request, answer, &admin::CreateBackup);
  }
  grpc::Status Check(ServerContext* context, const v1::CheckRequest* request,
                     grpc::ServerWriter<v1::CheckFinding>* writer) override {
    return Measure(context, [&]() -> Status {
      CELLAR_TRY(CheckEnums(*request));
      AdminCall call(&services_, context);
      return admin::Check(&call, *request,
                          [&](const v1::CheckFinding& finding) { return writer->Write(finding); });
    });
  }

 private:
  template <typename Work>
  grpc::Status Measure(ServerContext* context, const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    const Status status = CatchOutOfMemory(work);
    if (monitor::DoorMeters* meters = services_.calls->meters()) {
      meters->Request(std::chrono::steady_clock::now() - start);
      if (!status.ok()) meters->Error(status.sqlstate());
    }
    return ToGrpc(status, context);
  }

  template <typename Request, typename Answer>
  grpc::Status Handle(ServerContext* context, const Request& request, Answer* answer,
                      Status (*handler)(AdminCall*, const Request&, Answer*)) {
    return Measure(context, [&]() -> Status {
      CELLAR_TRY(CheckEnums(request));
      if constexpr (requires { request.idempotency_id(); }) {
        if (!request.idempotency_id().empty()) return Once(context, request, answer, handler);
      }
      AdminCall call(&services_, context);
      return handler(&call, request, answer);
    });
  }

  // A change is made by the first call with its id that commits. Further ones answer what is there
  // by then, and nothing where that is gone.
  template <typename Request, typename Answer>
  Status Once(ServerContext* context, const Request& request, Answer* answer,
              Status (*handler)(AdminCall*, const Request&, Answer*)) {
    const uint32_t number = Crc32c(Request::descriptor()->full_name());
    {
      AdminCall call(&services_, context, request.idempotency_id(), number);
      CELLAR_TRY_ASSIGN(const bool repeats, call.Repeats());
      Status status;
      if (!repeats) {
        status = handler(&call, request, answer);
        if (status.ok()) return call.KeepId();
        // Another call with the id may have come first.
      }
      CELLAR_TRY_ASSIGN(const bool done, call.Repeats());
      if (!done) return status;
    }
    AdminCall again(&services_, context, request.idempotency_id(), number);
    CELLAR_TRY(again.Repeats().status());
    answer->Clear();
    const Status status = handler(&again, request, answer);
    if (status.code() != Code::kNotFound) return status;
    answer->Clear();
    return Status();
  }

  AdminServices services_;
};

}  // namespace

ServiceFactory AdminServiceFactory(SessionFactory sessions) {
  return [sessions = std::move(sessions)](Calls* calls) -> std::unique_ptr<grpc::Service> {
    return std::make_unique<AdminService>(calls, sessions);
  };
}

}  // namespace cellar::rpc
