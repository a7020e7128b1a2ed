// Keys, filters, schemas, results and errors.
#include "cellar/rpc/wire/convert.h"

#include "cellar/base/sqlstate.h"
#include "cellar/v1/data.pb.h"

namespace cellar::rpc {
namespace {

// gRPC's status codes (grpc.github.io/grpc/core/md_doc_statuscodes.html).
enum GrpcCode : int {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

constexpr std::string_view kSchemaChanged = "55000";  // object_not_in_prerequisite_state

Status BadFilter(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "malformed filter: {}", what);
}

// How many arguments an operator takes; nullopt: there is no such one.
std::optional<std::pair<int, int>> Arity(v1::Operator op) {
  constexpr int kAny = 1 << 30;
  switch (op) {
    case v1::OPERATOR_LITERAL:
    case v1::OPERATOR_COLUMN: return std::pair(0, 0);
    case v1::OPERATOR_AND:
    case v1::OPERATOR_OR: return std::pair(0, kAny);
    case v1::OPERATOR_IN: return std::pair(1, kAny);
    case v1::OPERATOR_NOT:
    case v1::OPERATOR_IS_NULL:
    case v1::OPERATOR_IS_NOT_NULL:
    case v1::OPERATOR_NEGATE: return std::pair(1, 1);
    case v1::OPERATOR_XOR:
    case v1::OPERATOR_EQUAL:
    case v1::OPERATOR_NOT_EQUAL:
    case v1::OPERATOR_LESS:
    case v1::OPERATOR_LESS_OR_EQUAL:
    case v1::OPERATOR_GREATER:
    case v1::OPERATOR_GREATER_OR_EQUAL:
    case v1::OPERATOR_STARTS_WITH:
    case v1::OPERATOR_ENDS_WITH:
    case v1::OPERATOR_CONTAINS:
    case v1::OPERATOR_CONCAT:
    case v1::OPERATOR_ADD:
    case v1::OPERATOR_SUBTRACT:
    case v1::OPERATOR_MULTIPLY:
    case v1::OPERATOR_DIVIDE:
    case v1::OPERATOR_MODULO: return std::pair(2, 2);
    default: return std::nullopt;
  }
}

Result<Filter> TakeNode(const v1::Expression& message, size_t depth, size_t* nodes) {
  if (depth > Filter::kMaxDepth || ++*nodes > Filter::kMaxNodes) {
    return SqlError(Code::kLimit, "54001", "the filter is too {}",
                    depth > Filter::kMaxDepth ? "deep" : "large")
        .WithHint("At most 90 levels and 10,000 nodes.");
  }
  const auto arity = Arity(message.op());
  if (!arity) return BadFilter("an unknown operator");
  if (message.args_size() < arity->first || message.args_size() > arity->second) {
    return BadFilter("an operator with a wrong number of arguments");
  }
  if (message.op() == v1::OPERATOR_COLUMN) return Filter::Column(message.column());
  if (message.op() == v1::OPERATOR_LITERAL) {
    const bool typed = message.literal().kind_case() == v1::Value::kTyped;
    return Filter::Literal(TakeCell(message.literal()),
                           typed ? message.literal().typed().type() : std::string());
  }
  std::vector<Filter> args;
  for (const v1::Expression& arg : message.args()) {
    CELLAR_TRY_ASSIGN(Filter taken, TakeNode(arg, depth + 1, nodes));
    args.push_back(std::move(taken));
  }
  return Filter::Call(static_cast<Filter::Op>(message.op()), std::move(args));
}

Key TakeCells(const google::protobuf::RepeatedPtrField<v1::Value>& values) {
  Key key;
  for (const v1::Value& value : values) key.Add(TakeCell(value));
  return key;
}

void PutType(Type type, v1::Type* message) {
  message->set_name(FormatType(type));
  message->set_oid(OidOf(type));
  message->set_modifier(type.modifier);
  message->set_form(static_cast<v1::Form>(FormOf(type)));
}

Type TakeType(const v1::Type& message) {
  return TypeFromOid(message.oid(), message.modifier()).value_or(MakeType(TypeId::kText));
}

v1::ErrorCode ErrorCodeOf(Code code) {
  switch (code) {
    case Code::kOk: return v1::ERROR_CODE_UNSPECIFIED;
    case Code::kInvalid: return v1::ERROR_CODE_INVALID;
    case Code::kNotFound: return v1::ERROR_CODE_NOT_FOUND;
    case Code::kExists: return v1::ERROR_CODE_EXISTS;
    case Code::kConstraint: return v1::ERROR_CODE_CONSTRAINT;
    case Code::kConflict: return v1::ERROR_CODE_CONFLICT;
    case Code::kCommitUnknown: return v1::ERROR_CODE_COMMIT_UNKNOWN;
    case Code::kUnavailable: return v1::ERROR_CODE_UNAVAILABLE;
    case Code::kLimit: return v1::ERROR_CODE_LIMIT;
    case Code::kCancelled: return v1::ERROR_CODE_CANCELLED;
    case Code::kUnsupported: return v1::ERROR_CODE_UNSUPPORTED;
    case Code::kCorruption: return v1::ERROR_CODE_CORRUPTION;
    case Code::kInternal: return v1::ERROR_CODE_INTERNAL;
  }
  return v1::ERROR_CODE_INTERNAL;
}

Code CodeOf(v1::ErrorCode code) {
  switch (code) {
    case v1::ERROR_CODE_INVALID: return Code::kInvalid;
    case v1::ERROR_CODE_NOT_FOUND: return Code::kNotFound;
    case v1::ERROR_CODE_EXISTS: return Code::kExists;
    case v1::ERROR_CODE_CONSTRAINT: return Code::kConstraint;
    case v1::ERROR_CODE_CONFLICT: return Code::kConflict;
    case v1::ERROR_CODE_COMMIT_UNKNOWN: return Code::kCommitUnknown;
    case v1::ERROR_CODE_UNAVAILABLE: return Code::kUnavailable;
    case v1::ERROR_CODE_LIMIT: return Code::kLimit;
    case v1::ERROR_CODE_CANCELLED: return Code::kCancelled;
    case v1::ERROR_CODE_UNSUPPORTED: return Code::kUnsupported;
    case v1::ERROR_CODE_CORRUPTION: return Code::kCorruption;
    default: return Code::kInternal;
  }
}

}  // namespace

// ---- Keys, filters, expectations ----

void PutCell(const Cell& cell, v1::Value* value) {
  switch (cell.kind()) {
    case Cell::Kind::kNull: value->set_null(v1::NULL_VALUE); break;
    case Cell::Kind::kBool: value->set_bool_value(cell.int_value() != 0); break;
    case Cell::Kind::kInt: value->set_int_value(cell.int_value()); break;
    case Cell::Kind::kDouble: value->set_double_value(cell.double_value()); break;
    case Cell::Kind::kText: value->set_text_value(cell.bytes()); break;
    case Cell::Kind::kBytes: value->set_bytes_value(cell.bytes()); break;
  }
}

Cell TakeCell(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kBoolValue: return Cell(value.bool_value());
    case v1::Value::kIntValue: return Cell(int64_t{value.int_value()});
    case v1::Value::kDoubleValue: return Cell(value.double_value());
    case v1::Value::kTextValue: return Cell(value.text_value());
    case v1::Value::kBytesValue: return Cell::Bytes(value.bytes_value());
    case v1::Value::kTyped: return Cell(value.typed().text());
    case v1::Value::kNull:
    case v1::Value::KIND_NOT_SET: break;
  }
  return Cell();
}

void PutKey(const Key& key, v1::Key* message) {
  for (const Cell& cell : key.cells()) PutCell(cell, message->add_values());
}

Key TakeKey(const v1::Key& message) { return TakeCells(message.values()); }

void PutSpan(const KeySpan& span, v1::KeySpan* message) {
  for (const Cell& cell : span.start.cells()) PutCell(cell, message->add_start());
  for (const Cell& cell : span.end.cells()) PutCell(cell, message->add_end());
  message->set_start_exclusive(span.start_exclusive);
  message->set_end_inclusive(span.end_inclusive);
}

KeySpan TakeSpan(const v1::KeySpan& message) {
  KeySpan span;
  span.start = TakeCells(message.start());
  span.start_exclusive = message.start_exclusive();
  span.end = TakeCells(message.end());
  span.end_inclusive = message.end_inclusive();
  return span;
}

void PutFilter(const Filter& filter, v1::Expression* message) {
  message->set_op(static_cast<v1::Operator>(filter.op()));
  if (filter.op() == Filter::Op::kColumn) {
    message->set_column(filter.column());
  } else if (filter.op() == Filter::Op::kLiteral) {
    const Cell& literal = filter.literal();
    if (filter.literal_type().empty() || literal.is_null()) {
      PutCell(literal, message->mutable_literal());
    } else {
      v1::TypedText* typed = message->mutable_literal()->mutable_typed();
      typed->set_type(filter.literal_type());
      switch (literal.kind()) {
        case Cell::Kind::kBool: typed->set_text(literal.int_value() != 0 ? "true" : "false"); break;
        case Cell::Kind::kInt: typed->set_text(fmt::format("{}", literal.int_value())); break;
        case Cell::Kind::kDouble: typed->set_text(fmt::format("{}", literal.double_value())); break;
        case Cell::Kind::kBytes: {
          std::string hex = "\\x";
          for (char c : literal.bytes()) {
            hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
          }
          typed->set_text(std::move(hex));
          break;
        }
        default: typed->set_text(literal.bytes()); break;
      }
    }
  }
  for (const Filter& arg : filter.args()) PutFilter(arg, message->add_args());
}

Result<Filter> TakeFilter(const v1::Expression& message) {
  size_t nodes = 0;
  return TakeNode(message, 1, &nodes);
}

void PutExpectation(const Expectation& expectation, v1::Expectation* message) {
  message->set_row(expectation.row);
  message->set_absent(expectation.absent);
  for (const auto& [column, cell] : expectation.cells) {
    message->add_columns(column);
    PutCell(cell, message->add_values());
  }
}

Result<Expectation> TakeExpectation(const v1::Expectation& message) {
  if (message.columns_size() != message.values_size()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "an expectation has {} columns and {} values", message.columns_size(),
                    message.values_size());
  }
  Expectation expectation;
  expectation.row = message.row();
  expectation.absent = message.absent();
  for (int i = 0; i < message.columns_size(); ++i) {
    expectation.cells.emplace_back(message.columns(i), TakeCell(message.values(i)));
  }
  return expectation;
}

// ---- Schemas, results, errors ----

void PutSchema(const TableSchema& schema, v1::TableSchema* message) {
  message->set_path(schema.path);
  message->set_id(schema.id);
  message->set_version(schema.version);
  message->set_layout(schema.layout);
  message->set_storage_id(schema.storage_id);
  message->set_comment(schema.comment);
  for (const TableColumn& column : schema.columns) {
    v1::ColumnSchema* sent = message->add_columns();
    sent->set_id(column.id);
    sent->set_name(column.name);
    PutType(column.type, sent->mutable_type());
    sent->set_not_null(column.not_null);
    sent->set_has_default(column.has_default);
    sent->set_generated(column.generated);
    sent->set_comment(column.comment);
  }
  const auto name_of = [&](int column) -> const std::string& {
    return schema.columns[static_cast<size_t>(column)].name;
  };
  for (const TableIndex& index : schema.indexes) {
    v1::IndexSchema* sent = message->add_indexes();
    sent->set_id(index.id);
    sent->set_name(index.name);
    sent->set_primary(index.primary);
    sent->set_unique(index.unique);
    sent->set_nulls_not_distinct(index.nulls_not_distinct);
    sent->set_predicate(index.predicate);
    sent->set_shards(index.shards);
    for (const TableIndexColumn& column : index.key) {
      v1::IndexColumn* key = sent->add_key();
      if (column.column >= 0) key->set_column(name_of(column.column));
      key->set_expression(column.expression);
      if (column.column < 0) PutType(column.type, key->mutable_type());
      key->set_descending(column.descending);
      key->set_nulls_first(column.nulls_first);
      key->set_collation(column.collation);
    }
    for (int column : index.stored) sent->add_stored(name_of(column));
  }
}

SchemaPtr TakeSchema(const v1::TableSchema& message) {
  auto schema = std::make_shared<TableSchema>();
  schema->path = message.path();
  schema->id = message.id();
  schema->version = message.version();
  schema->layout = message.layout();
  schema->storage_id = message.storage_id();
  schema->comment = message.comment();
  for (const v1::ColumnSchema& sent : message.columns()) {
    TableColumn column;
    column.id = sent.id();
    column.name = sent.name();
    column.type = TakeType(sent.type());
    column.not_null = sent.not_null();
    column.has_default = sent.has_default();
    column.generated = sent.generated();
    column.comment = sent.comment();
    schema->columns.push_back(std::move(column));
  }
  for (const v1::IndexSchema& sent : message.indexes()) {
    TableIndex index;
    index.id = sent.id();
    index.name = sent.name();
    index.primary = sent.primary();
    index.unique = sent.unique();
    index.nulls_not_distinct = sent.nulls_not_distinct();
    index.predicate = sent.predicate();
    index.shards = sent.shards();
    for (const v1::IndexColumn& key : sent.key()) {
      TableIndexColumn column;
      column.column = key.column().empty() ? -1 : schema->FindColumn(key.column());
      column.expression = key.expression();
      column.type = column.column < 0 ? TakeType(key.type())
                                      : schema->columns[static_cast<size_t>(column.column)].type;
      column.descending = key.descending();
      column.nulls_first = key.nulls_first();
      column.collation = key.collation();
      index.key.push_back(std::move(column));
    }
    for (const std::string& name : sent.stored()) {
      const int column = schema->FindColumn(name);
      if (column >= 0) index.stored.push_back(column);
    }
    schema->indexes.push_back(std::move(index));
  }
  return schema;
}

void PutResult(const WriteResult& result, v1::WriteResult* message) {
  message->set_applied(result.applied);
  message->mutable_unmet()->Add(result.unmet.begin(), result.unmet.end());
  message->set_inserted(result.inserted);
  message->set_updated(result.updated);
  message->set_deleted(result.deleted);
  message->set_repeated(result.repeated);
  message->set_commit_version(result.commit_version);
}

WriteResult TakeResult(const v1::WriteResult& message) {
  WriteResult result;
  result.applied = message.applied();
  result.unmet.assign(message.unmet().begin(), message.unmet().end());
  result.inserted = message.inserted();
  result.updated = message.updated();
  result.deleted = message.deleted();
  result.repeated = message.repeated();
  result.commit_version = message.commit_version();
  return result;
}

bool IsRetryable(const Status& status) {
  // A version that is not the one that was expected does not become it.
  if (status.code() == Code::kConflict) return status.sqlstate() != kSchemaChanged;
  return status.code() == Code::kUnavailable || status.sqlstate() == sqlstate::kTooManyConnections;
}

void PutError(const Status& status, v1::ErrorDetail* detail) {
  detail->set_code(ErrorCodeOf(status.code()));
  detail->set_sqlstate(std::string(status.sqlstate()));
  detail->set_message(std::string(status.message()));
  detail->set_detail(std::string(status.detail()));
  detail->set_hint(std::string(status.hint()));
  detail->set_schema(std::string(status.schema_name()));
  detail->set_table(std::string(status.table_name()));
  detail->set_column(std::string(status.column_name()));
  detail->set_constraint(std::string(status.constraint_name()));
  detail->set_retryable(IsRetryable(status));
  detail->set_schema_changed(status.sqlstate() == kSchemaChanged && !status.table_name().empty());
}

Status TakeError(const v1::ErrorDetail& detail) {
  Status status(CodeOf(detail.code()), detail.message());
  if (!detail.sqlstate().empty()) status = std::move(status).WithSqlState(detail.sqlstate());
  if (!detail.detail().empty()) status = std::move(status).WithDetail(detail.detail());
  if (!detail.hint().empty()) status = std::move(status).WithHint(detail.hint());
  if (!detail.table().empty()) {
    status = std::move(status).WithTable(detail.schema(), detail.table());
  }
  if (!detail.column().empty()) status = std::move(status).WithColumn(detail.column());
  if (!detail.constraint().empty()) {
    status = std::move(status).WithConstraint(detail.constraint());
  }
  return status;
}

int GrpcCodeOf(const Status& status) {
  const std::string_view sqlstate = status.sqlstate();
  switch (status.code()) {
    case Code::kOk: return 0;
    case Code::kInvalid:
      if (sqlstate == sqlstate::kInsufficientPrivilege) return kPermissionDenied;
      if (sqlstate.substr(0, 2) == "28") return kUnauthenticated;
      if (sqlstate == sqlstate::kUndefinedObject) return kNotFound;
      if (sqlstate == kSchemaChanged || sqlstate == sqlstate::kObjectInUse ||
          sqlstate == sqlstate::kDependentObjectsStillExist) {
        return kFailedPrecondition;
      }
      return kInvalidArgument;
    case Code::kNotFound:
      return sqlstate == sqlstate::kUndefinedColumn ? kInvalidArgument : kNotFound;
    case Code::kExists: return kAlreadyExists;
    case Code::kConstraint:
      return sqlstate == sqlstate::kUniqueViolation ? kAlreadyExists : kFailedPrecondition;
    case Code::kConflict: return kAborted;
    case Code::kCommitUnknown: return kUnknown;
    case Code::kUnavailable: return kUnavailable;
    case Code::kLimit: return kResourceExhausted;
    case Code::kCancelled: return kCancelled;
    case Code::kUnsupported: return kUnimplemented;
    case Code::kCorruption: return kDataLoss;
    case Code::kInternal: return kInternal;
  }
  return kInternal;
}

Status TransportError(int grpc_code, std::string message) {
  switch (grpc_code) {
    case kCancelled:
    case kDeadlineExceeded:
      return Status(Code::kCancelled, std::move(message)).WithSqlState(sqlstate::kQueryCanceled);
    case kUnavailable:
      return Status(Code::kUnavailable, std::move(message))
          .WithSqlState(sqlstate::kConnectionFailure);
    case kUnauthenticated:
      return Status(Code::kInvalid, std::move(message))
          .WithSqlState(sqlstate::kInvalidAuthorization);
    case kResourceExhausted: return Status(Code::kLimit, std::move(message)).WithSqlState("54000");
    case kUnimplemented: return UnsupportedError("{}", message);
    case kInvalidArgument: return Status(Code::kInvalid, std::move(message));
    default: return Status(Code::kInternal, std::move(message));
  }
}

}  // namespace cellar::rpc
