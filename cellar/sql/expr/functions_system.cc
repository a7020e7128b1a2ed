// Functions about the session, the server and the catalog.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>

#include "cellar/sql/expr/keyword_list.h"
#include "cellar/sql/expr/quote.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/sql/expr/text_util.h"
#include "cellar/types/array.h"
#include "cellar/types/collation.h"
#include "cellar/types/datetime.h"

namespace cellar::sql {
namespace {

using Rows = StoredSet;
constexpr Volatility kStable = Volatility::kStable;
constexpr Volatility kVolatile = Volatility::kVolatile;
constexpr auto kSleepSlice = std::chrono::milliseconds(20);

Status NoSession() { return InternalError("function needs a session"); }

Result<Datum> Name(EvalContext& context, std::string_view text) { return TextOf(context, text); }

Result<Datum> FromCatalog(EvalContext& context, const Expr& call, Args a) {
  if (context.session == nullptr) return NoSession();
  return context.session->CatalogFunction(call.function->name, a, context.arena());
}

// The same with a relation by name, which is looked up first.
Result<Datum> FromCatalogByName(EvalContext& context, const Expr& call, Args a) {
  if (context.session == nullptr) return NoSession();
  CELLAR_TRY_ASSIGN(uint32_t oid, context.session->LookupReg(TypeId::kRegclass, a[0].bytes()));
  std::vector<Datum> args(a.begin(), a.end());
  args[0] = Datum::Int(oid);
  return context.session->CatalogFunction(call.function->name, args, context.arena());
}

// ---- Settings ----

Result<Datum> CurrentSetting(EvalContext& context, const Expr&, Args a) {
  if (context.session == nullptr) return NoSession();
  const bool missing_ok = a.size() == 2 && a[1].bool_value();
  bool missing = false;
  CELLAR_TRY_ASSIGN(std::string out,
                    context.session->GetSetting(a[0].bytes(), missing_ok, &missing));
  return missing ? Datum() : TextOf(context, out);
}
Result<Datum> SetConfig(EvalContext& context, const Expr&, Args a) {
  if (context.session == nullptr) return NoSession();
  if (a[0].is_null()) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed, "SET requires parameter name");
  }
  const bool local = !a[2].is_null() && a[2].bool_value();
  CELLAR_TRY_ASSIGN(std::string out, context.session->SetSetting(
                                         a[0].bytes(), a[1].is_null() ? "" : a[1].bytes(), local));
  return TextOf(context, out);
}

// ---- Sequences ----

template <typename F>
Result<Datum> Sequence(EvalContext& context, F f) {
  if (context.session == nullptr) return NoSession();
  Result<int64_t> value = f(*context.session);
  if (!value.ok()) return std::move(value).status();
  return Datum::Int(*value);
}
uint32_t Oid(Datum value) { return static_cast<uint32_t>(value.int_value()); }

void AddSequences(Registry& r) {
  r.Add(
      "nextval(regclass) int8",
      CELLAR_SCALAR {
        return Sequence(context, [&](SessionFunctions& s) { return s.NextValue(Oid(a[0])); });
      },
      kVolatile);
  r.Add(
      "currval(regclass) int8",
      CELLAR_SCALAR {
        return Sequence(context, [&](SessionFunctions& s) { return s.CurrentValue(Oid(a[0])); });
      },
      kVolatile);
  r.Add(
      "lastval() int8",
      CELLAR_SCALAR {
        return Sequence(context, [&](SessionFunctions& s) { return s.LastValue(); });
      },
      kVolatile);
  auto setval = CELLAR_SCALAR {
    const bool called = a.size() < 3 || a[2].bool_value();
    return Sequence(context, [&](SessionFunctions& s) {
      return s.SetValue(Oid(a[0]), a[1].int_value(), called);
    });
  };
  r.Add("setval(regclass, int8) int8", setval, kVolatile);
  r.Add("setval(regclass, int8, bool) int8", setval, kVolatile);
}

// ---- Who and where ----

Result<Datum> CurrentSchema(EvalContext& context, const Expr&, Args) {
  if (context.session == nullptr) return NoSession();
  std::vector<std::string> schemas = context.session->CurrentSchemas(false);
  return schemas.empty() ? Datum() : Name(context, schemas[0]);
}
Result<Datum> CurrentSchemas(EvalContext& context, const Expr&, Args a) {
  if (context.session == nullptr) return NoSession();
  ArrayBuilder builder(MakeType(TypeId::kName));
  std::vector<std::string> schemas = context.session->CurrentSchemas(a[0].bool_value());
  for (const std::string& schema : schemas) builder.Add(Datum::Bytes(schema));
  return Datum::Bytes(builder.Finish(context.arena()));
}

void AddIdentity(Registry& r) {
  auto user = CELLAR_SCALAR {
    if (context.session == nullptr) return NoSession();
    return Name(context, context.session->CurrentUser());
  };
  for (const char* s : {"current_user() name", "current_role() name", "user() name"}) {
    r.Add(s, user, kStable);
  }
  r.Add(
      "session_user() name",
      CELLAR_SCALAR {
        if (context.session == nullptr) return NoSession();
        return Name(context, context.session->SessionUser());
      },
      kStable);
  auto database = CELLAR_SCALAR {
    if (context.session == nullptr) return NoSession();
    return Name(context, context.session->CurrentDatabase());
  };
  r.Add("current_database() name", database, kStable);
  r.Add("current_catalog() name", database, kStable);
  r.Add("current_schema() name", CurrentSchema, kStable);
  r.Add("current_schemas(bool) name[]", CurrentSchemas, kStable);
  r.Add("current_query() text", FromCatalog, kVolatile).strict = false;
  r.Add(
      "pg_backend_pid() int4",
      CELLAR_SCALAR {
        if (context.session == nullptr) return NoSession();
        return Datum::Int(context.session->BackendPid());
      },
      kStable);
  r.Add(
      "version() text",
      CELLAR_SCALAR { return Datum::Bytes("PostgreSQL 15.0 (Cellar " CELLAR_VERSION ")"); },
      kStable);
  for (const char* s : {"inet_server_addr() text", "inet_client_addr() text",
                        "inet_server_port() int4", "inet_client_port() int4"}) {
    r.Add(s, FromCatalog, kStable);
  }
}

// ---- Types and encodings ----

Result<Datum> FormatTypeOf(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  if (a[0].int_value() == 0) return Datum::Bytes("-");
  const bool has_modifier = !a[1].is_null();
  const int32_t modifier = has_modifier ? static_cast<int32_t>(a[1].int_value()) : -1;
  if (std::optional<Type> type = TypeFromOid(Oid(a[0]), modifier)) {
    // Without any modifier argument bpchar is "character".
    if (!has_modifier && *type == MakeType(TypeId::kBpchar)) return Datum::Bytes("character");
    return TextOf(context, FormatType(*type));
  }
  if (context.session != nullptr) {
    Result<Datum> known = FromCatalog(context, call, a);
    if (known.ok() && !known->is_null()) return known;
  }
  return Datum::Bytes("???");
}

Result<Datum> TypeOf(EvalContext&, const Expr& call, Args) {
  Type type = call.args[0]->type;
  type.modifier = -1;
  return Datum::Int(OidOf(type));
}

template <TypeId kind>
Result<Datum> ToReg(EvalContext& context, const Expr&, Args a) {
  if (context.session == nullptr) return NoSession();
  Result<uint32_t> oid = context.session->LookupReg(kind, a[0].bytes());
  return oid.ok() ? Datum::Int(*oid) : Datum();
}

std::string_view EncodingName(int64_t encoding) {
  switch (encoding) {
    case 0: return "SQL_ASCII";
    case 6: return "UTF8";
    case 8: return "LATIN1";
    default: return "";
  }
}

void AddTypes(Registry& r) {
  r.Add("format_type(oid, int4) text", FormatTypeOf, kStable).strict = false;
  r.Add("pg_typeof(any) regtype", TypeOf, kStable).strict = false;
  r.Add("to_regclass(text) regclass", ToReg<TypeId::kRegclass>, kStable);
  r.Add("to_regtype(text) regtype", ToReg<TypeId::kRegtype>, kStable);
  r.Add("to_regproc(text) regproc", ToReg<TypeId::kRegproc>, kStable);
  r.Add("to_regnamespace(text) regnamespace", ToReg<TypeId::kRegnamespace>, kStable);
  r.Add("to_regrole(text) regrole", ToReg<TypeId::kRegrole>, kStable);
  r.Add(
      "pg_encoding_to_char(int4) name",
      CELLAR_SCALAR { return Datum::Bytes(EncodingName(a[0].int_value())); }, kStable);
  r.Add(
      "pg_char_to_encoding(name) int4",
      CELLAR_SCALAR {
        std::string name;
        AppendLower(a[0].bytes(), &name);
        std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
        return Datum::Int(name == "utf8" || name == "unicode" ? 6
                          : name == "latin1"                  ? 8
                          : name == "sqlascii"                ? 0
                                                              : -1);
      },
      kStable);
  r.Add(
      "getdatabaseencoding() name", CELLAR_SCALAR { return Datum::Bytes("UTF8"); }, kStable);
  r.Add(
      "pg_client_encoding() name",
      CELLAR_SCALAR {
        if (context.session == nullptr) return Datum::Bytes("UTF8");
        bool missing = false;
        CELLAR_TRY_ASSIGN(std::string out,
                          context.session->GetSetting("client_encoding", true, &missing));
        return missing ? Datum::Bytes("UTF8") : TextOf(context, out);
      },
      kStable);
  r.Add(
       "pg_collation_for(any) text",
       CELLAR_SCALAR {
         if (!IsCollatable(call.args[0]->type) && call.args[0]->type.id != TypeId::kUnknown) {
           return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                           "collations are not supported by type {}",
                           FormatType(call.args[0]->type));
         }
         const Collation* collation = call.args[0]->type.collation;
         return TextOf(context, collation == nullptr ? "\"default\"" : QuoteIdent(collation->name));
       },
       kStable)
      .strict = false;
  r.Add(
      "pg_column_size(any) int4",
      CELLAR_SCALAR {
        const Type type = call.args[0]->type;
        int16_t length = TypeLength(type);
        if (length > 0) return Datum::Int(length);
        return Datum::Int(static_cast<int64_t>(a[0].bytes().size()) + 1);
      },
      kStable);
  r.Add(
      "gen_random_uuid() uuid",
      CELLAR_SCALAR {
        char* out = context.arena()->Allocate(16);
        const uint64_t words[2] = {context.NextRandom(), context.NextRandom()};
        std::memcpy(out, words, 16);
        out[6] = static_cast<char>((out[6] & 0x0F) | 0x40);
        out[8] = static_cast<char>((out[8] & 0x3F) | 0x80);
        return Datum::Bytes({out, 16});
      },
      kVolatile);
}

// ---- Waiting ----

Result<Datum> Sleep(EvalContext& context, double seconds) {
  using Clock = std::chrono::steady_clock;
  if (std::isnan(seconds) || seconds <= 0) return Datum::Bytes("");
  seconds = std::min(seconds, 1e9);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  while (true) {
    if (context.cancel != nullptr) CELLAR_TRY(context.cancel->Check());
    const auto left = end - Clock::now();
    if (left <= Clock::duration::zero()) return Datum::Bytes("");
    std::this_thread::sleep_for(std::min<Clock::duration>(left, kSleepSlice));
  }
}

// ---- Privileges: always asked as (role oid or NULL, object oid, [column,] privilege) ----

// A role by its plain name, which is not parsed as an identifier is.
Result<uint32_t> RoleByName(EvalContext& context, std::string_view name) {
  std::string quoted = "\"";
  for (char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return context.session->LookupReg(TypeId::kRegrole, quoted + "\"");
}

TypeId ObjectKind(std::string_view function) {
  if (function.find("schema") != std::string_view::npos) return TypeId::kRegnamespace;
  if (function.find("function") != std::string_view::npos) return TypeId::kRegproc;
  if (function.find("type") != std::string_view::npos) return TypeId::kRegtype;
  if (function.find("role") != std::string_view::npos) return TypeId::kRegrole;
  if (function.find("table_") != std::string_view::npos ||
      function.find("column") != std::string_view::npos ||
      function.find("sequence") != std::string_view::npos) {
    return TypeId::kRegclass;
  }
  return TypeId::kInvalid;
}

Result<Datum> HasPrivilege(EvalContext& context, const Expr& call, Args a) {
  if (context.session == nullptr) return NoSession();
  const FunctionSpec& spec = *call.function;
  const bool column = spec.name == "has_column_privilege";
  const size_t own = column ? 3 : 2;
  // (role or NULL, object, [column's name or NULL, its number,] privilege)
  std::vector<Datum> out(1);
  size_t next = a.size() > own ? 1 : 0;
  if (next == 1) {
    if (spec.args[0].id == TypeId::kOid) {
      out[0] = a[0];
    } else if (spec.name != "pg_has_role" && a[0].bytes() == "public") {
      out[0] = Datum::Int(0);
    } else {
      CELLAR_TRY_ASSIGN(uint32_t role, RoleByName(context, a[0].bytes()));
      out[0] = Datum::Int(role);
    }
  }
  out.push_back(a[next]);
  const TypeId kind = ObjectKind(spec.name);
  if (spec.args[next].id != TypeId::kOid) {
    if (kind == TypeId::kRegrole) {
      CELLAR_TRY_ASSIGN(uint32_t role, RoleByName(context, a[next].bytes()));
      out[1] = Datum::Int(role);
    } else if (spec.name == "has_database_privilege") {
      CELLAR_TRY_ASSIGN(
          out[1], context.session->CatalogFunction("database_oid", {&a[next], 1}, context.arena()));
    } else if (kind == TypeId::kInvalid) {
      out[1] = Datum::Int(0);  // languages, table spaces: not told apart
    } else {
      CELLAR_TRY_ASSIGN(uint32_t object, context.session->LookupReg(kind, a[next].bytes()));
      out[1] = Datum::Int(object);
    }
  }
  if (column) {
    const bool by_number = spec.args[next + 1].id == TypeId::kInt2;
    out.push_back(by_number ? Datum() : a[next + 1]);
    out.push_back(by_number ? a[next + 1] : Datum());
  }
  out.push_back(a.back());
  return context.session->CatalogFunction(spec.name, out, context.arena());
}

void AddPrivileges(Registry& r) {
  auto add = [&](const std::string& name, const std::string& args) {
    // Specs point into their signatures.
    static std::deque<std::string> signatures;
    signatures.push_back(name + "(" + args + ", text) bool");
    r.Add(signatures.back(), HasPrivilege, kStable);
  };
  for (const char* object :
       {"table", "any_column", "sequence", "schema", "database", "function", "type", "language",
        "tablespace", "foreign_data_wrapper", "server", "column"}) {
    const std::string name = std::string("has_") + object + "_privilege";
    for (const char* role : {"", "name, ", "oid, "}) {
      for (const char* target : {"text", "oid"}) {
        const std::string args = std::string(role) + target;
        if (std::string_view(object) != "column") {
          add(name, args);
          continue;
        }
        add(name, args + ", text");
        add(name, args + ", int2");
      }
    }
  }
  for (const char* args : {"name", "oid", "name, name", "name, oid", "oid, name", "oid, oid"}) {
    add("pg_has_role", args);
  }
  r.Add("acldefault(char, oid) aclitem[]", FromCatalog, kStable);
}

void AddCatalog(Registry& r) {
  r.Add("pg_get_viewdef(text) text", FromCatalogByName, kStable);
  r.Add("pg_get_viewdef(text, bool) text", FromCatalogByName, kStable);
  r.Add("pg_sequence_last_value(regclass) int8", FromCatalog, kVolatile);
  for (const char* s : {"pg_table_is_visible(oid) bool",
                        "pg_type_is_visible(oid) bool",
                        "pg_function_is_visible(oid) bool",
                        "pg_operator_is_visible(oid) bool",
                        "pg_opclass_is_visible(oid) bool",
                        "pg_opfamily_is_visible(oid) bool",
                        "pg_conversion_is_visible(oid) bool",
                        "pg_collation_is_visible(oid) bool",
                        "pg_statistics_obj_is_visible(oid) bool",
                        "pg_ts_config_is_visible(oid) bool",
                        "pg_ts_dict_is_visible(oid) bool",
                        "pg_ts_parser_is_visible(oid) bool",
                        "pg_ts_template_is_visible(oid) bool",
                        "pg_get_userbyid(oid) name",
                        "pg_get_expr(pg_node_tree, oid) text",
                        "pg_get_expr(pg_node_tree, oid, bool) text",
                        "pg_get_indexdef(oid) text",
                        "pg_get_indexdef(oid, int4, bool) text",
                        "pg_get_constraintdef(oid) text",
                        "pg_get_constraintdef(oid, bool) text",
                        "pg_get_viewdef(oid) text",
                        "pg_get_viewdef(oid, bool) text",
                        "pg_get_viewdef(oid, int4) text",
                        "pg_get_ruledef(oid) text",
                        "pg_get_ruledef(oid, bool) text",
                        "pg_get_triggerdef(oid) text",
                        "pg_get_triggerdef(oid, bool) text",
                        "pg_get_functiondef(oid) text",
                        "pg_get_function_result(oid) text",
                        "pg_get_function_arguments(oid) text",
                        "pg_get_function_identity_arguments(oid) text",
                        "pg_get_function_arg_default(oid, int4) text",
                        "pg_get_function_sqlbody(oid) text",
                        "pg_get_serial_sequence(text, text) text",
                        "pg_get_partkeydef(oid) text",
                        "pg_get_partition_constraintdef(oid) text",
                        "pg_get_statisticsobjdef(oid) text",
                        "pg_get_statisticsobjdef_columns(oid) text",
                        "pg_get_replica_identity_index(regclass) regclass",
                        "obj_description(oid, name) text",
                        "obj_description(oid) text",
                        "col_description(oid, int4) text",
                        "shobj_description(oid, name) text",
                        "pg_relation_is_publishable(regclass) bool",
                        "pg_relation_filenode(regclass) oid",
                        "pg_relation_filepath(regclass) text",
                        "pg_tablespace_location(oid) text",
                        "pg_is_other_temp_schema(oid) bool",
                        "pg_my_temp_schema() oid",
                        "pg_describe_object(oid, oid, int4) text",
                        "pg_index_column_has_property(regclass, int4, text) bool",
                        "pg_index_has_property(regclass, text) bool",
                        "pg_indexam_has_property(oid, text) bool",
                        "pg_postmaster_start_time() timestamptz",
                        "pg_conf_load_time() timestamptz",
                        "pg_relation_is_updatable(regclass, bool) int4",
                        "pg_column_is_updatable(regclass, int2, bool) bool",
                        "_pg_char_max_length(oid, int4) int4",
                        "_pg_numeric_precision(oid, int4) int4",
                        "_pg_numeric_scale(oid, int4) int4",
                        "_pg_datetime_precision(oid, int4) int4"}) {
    r.Add(s, FromCatalog, kStable);
  }
  for (const char* s : {"pg_relation_size(regclass) int8",
                        "pg_relation_size(regclass, text) int8",
                        "pg_total_relation_size(regclass) int8",
                        "pg_table_size(regclass) int8",
                        "pg_indexes_size(regclass) int8",
                        "pg_database_size(name) int8",
                        "pg_database_size(oid) int8",
                        "pg_tablespace_size(name) int8",
                        "pg_tablespace_size(oid) int8",
                        "txid_current() int8",
                        "txid_current_if_assigned() int8",
                        "pg_current_xact_id_if_assigned() xid",
                        "txid_snapshot_xmin(text) int8",
                        "pg_current_wal_lsn() text",
                        "pg_last_wal_receive_lsn() text",
                        "pg_last_wal_replay_lsn() text",
                        "pg_last_xact_replay_timestamp() timestamptz",
                        "pg_is_in_recovery() bool",
                        "pg_is_wal_replay_paused() bool",
                        "pg_cancel_backend(int4) bool",
                        "pg_terminate_backend(int4) bool",
                        "pg_terminate_backend(int4, int8) bool",
                        "pg_reload_conf() bool",
                        "pg_stat_reset() void",
                        "pg_notify(text, text) void",
                        "pg_export_snapshot() text",
                        "pg_switch_wal() text",
                        "pg_advisory_lock(int8) void",
                        "pg_advisory_lock(int4, int4) void",
                        "pg_advisory_lock_shared(int8) void",
                        "pg_advisory_lock_shared(int4, int4) void",
                        "pg_try_advisory_lock(int8) bool",
                        "pg_try_advisory_lock(int4, int4) bool",
                        "pg_try_advisory_lock_shared(int8) bool",
                        "pg_try_advisory_lock_shared(int4, int4) bool",
                        "pg_advisory_unlock(int8) bool",
                        "pg_advisory_unlock(int4, int4) bool",
                        "pg_advisory_unlock_shared(int8) bool",
                        "pg_advisory_unlock_shared(int4, int4) bool",
                        "pg_advisory_unlock_all() void",
                        "pg_advisory_xact_lock(int8) void",
                        "pg_advisory_xact_lock(int4, int4) void",
                        "pg_advisory_xact_lock_shared(int8) void",
                        "pg_advisory_xact_lock_shared(int4, int4) void",
                        "pg_try_advisory_xact_lock(int8) bool",
                        "pg_try_advisory_xact_lock(int4, int4) bool",
                        "pg_try_advisory_xact_lock_shared(int8) bool",
                        "pg_try_advisory_xact_lock_shared(int4, int4) bool",
                        "pg_blocking_pids(int4) int4[]",
                        "pg_safe_snapshot_blocking_pids(int4) int4[]",
                        "pg_isolation_test_session_is_blocked(int4, int4[]) bool"}) {
    r.Add(s, FromCatalog, kVolatile);
  }
  for (const char* s : {"pg_stat_get_numscans(oid) int8",
                        "pg_stat_get_tuples_returned(oid) int8",
                        "pg_stat_get_tuples_fetched(oid) int8",
                        "pg_stat_get_tuples_inserted(oid) int8",
                        "pg_stat_get_tuples_updated(oid) int8",
                        "pg_stat_get_tuples_deleted(oid) int8",
                        "pg_stat_get_tuples_hot_updated(oid) int8",
                        "pg_stat_get_live_tuples(oid) int8",
                        "pg_stat_get_dead_tuples(oid) int8",
                        "pg_stat_get_mod_since_analyze(oid) int8",
                        "pg_stat_get_blocks_fetched(oid) int8",
                        "pg_stat_get_blocks_hit(oid) int8",
                        "pg_stat_get_vacuum_count(oid) int8",
                        "pg_stat_get_autovacuum_count(oid) int8",
                        "pg_stat_get_analyze_count(oid) int8",
                        "pg_stat_get_autoanalyze_count(oid) int8",
                        "pg_stat_get_last_vacuum_time(oid) timestamptz",
                        "pg_stat_get_last_autovacuum_time(oid) timestamptz",
                        "pg_stat_get_last_analyze_time(oid) timestamptz",
                        "pg_stat_get_last_autoanalyze_time(oid) timestamptz",
                        "pg_stat_get_db_numbackends(oid) int4",
                        "pg_stat_get_db_xact_commit(oid) int8",
                        "pg_stat_get_db_xact_rollback(oid) int8",
                        "pg_stat_get_db_blocks_fetched(oid) int8",
                        "pg_stat_get_db_blocks_hit(oid) int8"}) {
    r.Add(s, FromCatalog, kStable);
  }
}

// ---- Sets ----

Result<SetRowsPtr> NoRows(EvalContext&, const Expr&, Args) { return SetRowsPtr(); }

// The name at the start of an aclitem's text, which goes.
std::string TakeAclRole(std::string_view* text) {
  std::string name;
  bool quoted = false;
  while (!text->empty()) {
    const char c = text->front();
    if (c == '"') {
      if (quoted && text->size() > 1 && (*text)[1] == '"') {
        name += c;
        text->remove_prefix(1);
      } else {
        quoted = !quoted;
      }
    } else if (!quoted && (c == '=' || c == '/')) {
      break;
    } else {
      name += c;
    }
    text->remove_prefix(1);
  }
  return name;
}

// "alice=r*w/bob" as rows (grantor, grantee, privilege, grantable).
Result<SetRowsPtr> AclExplode(EvalContext& context, const Expr&, Args a) {
  if (context.session == nullptr) return NoSession();
  struct Letter {
    char letter;
    std::string_view name;
  };
  static constexpr Letter kLetters[] = {{'a', "INSERT"},  {'r', "SELECT"},      {'w', "UPDATE"},
                                        {'d', "DELETE"},  {'D', "TRUNCATE"},    {'x', "REFERENCES"},
                                        {'t', "TRIGGER"}, {'X', "EXECUTE"},     {'U', "USAGE"},
                                        {'C', "CREATE"},  {'T', "TEMPORARY"},   {'c', "CONNECT"},
                                        {'s', "SET"},     {'A', "ALTER SYSTEM"}};
  const Type oid = MakeType(TypeId::kOid), text = MakeType(TypeId::kText);
  auto role = [&](const std::string& name) -> Result<uint32_t> {
    if (name.empty()) return 0u;
    if (name.find_first_not_of("0123456789") == std::string::npos)
      return context.session->LookupReg(TypeId::kRegrole, name);
    return RoleByName(context, name);
  };
  Rows rows;
  ArrayView items(a[0].bytes(), MakeType(TypeId::kAclitem));
  for (size_t i = 0; i < items.size(); ++i) {
    if (items.IsNull(i)) continue;
    std::string_view item = items.Get(i).bytes();
    CELLAR_TRY_ASSIGN(uint32_t grantee, role(TakeAclRole(&item)));
    const size_t slash = item.find('/');
    if (item.empty() || item.front() != '=' || slash == std::string_view::npos) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                      "invalid aclitem: \"{}\"", items.Get(i).bytes());
    }
    const std::string_view letters = item.substr(1, slash - 1);
    item.remove_prefix(slash + 1);
    CELLAR_TRY_ASSIGN(uint32_t grantor, role(TakeAclRole(&item)));
    for (size_t k = 0; k < letters.size(); ++k) {
      for (const Letter& letter : kLetters) {
        if (letter.letter != letters[k]) continue;
        std::vector<Value>& row = rows.emplace_back();
        row.emplace_back(oid, Datum::Int(grantor));
        row.emplace_back(oid, Datum::Int(grantee));
        row.emplace_back(text, Datum::Bytes(letter.name));
        row.emplace_back(MakeType(TypeId::kBool),
                         Datum::Bool(k + 1 < letters.size() && letters[k + 1] == '*'));
      }
    }
  }
  return MakeStoredSet(std::move(rows));
}

// {a=1,b=2} as (name, value) rows.
Result<SetRowsPtr> Options(EvalContext&, const Expr&, Args a) {
  Rows rows;
  const Type text = MakeType(TypeId::kText);
  ArrayView options(a[0].bytes(), text);
  for (size_t i = 0; i < options.size(); ++i) {
    if (options.IsNull(i)) continue;
    std::string_view option = options.Get(i).bytes();
    size_t equal = option.find('=');
    std::vector<Value>& row = rows.emplace_back();
    row.emplace_back(text, Datum::Bytes(option.substr(0, equal)));
    row.emplace_back(
        text, equal == std::string_view::npos ? Datum() : Datum::Bytes(option.substr(equal + 1)));
  }
  return MakeStoredSet(std::move(rows));
}

std::string_view KeywordCategory(char code) {
  switch (code) {
    case 'U': return "unreserved";
    case 'C': return "unreserved (cannot be function or type name)";
    case 'T': return "reserved (can be function or type name)";
    default: return "reserved";
  }
}

Result<SetRowsPtr> Keywords(EvalContext&, const Expr&, Args) {
  const Type text = MakeType(TypeId::kText);
  Rows rows;
  std::string_view list = kKeywordList;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const std::string_view item = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (item.size() < 4) continue;
    const size_t colon = item.size() - 3;
    const bool bare = item.back() == '+';
    std::vector<Value>& row = rows.emplace_back();
    row.emplace_back(text, Datum::Bytes(item.substr(0, colon)));
    row.emplace_back(MakeType(TypeId::kChar), Datum::Int(item[colon + 1]));
    row.emplace_back(MakeType(TypeId::kBool), Datum::Bool(bare));
    row.emplace_back(text, Datum::Bytes(KeywordCategory(item[colon + 1])));
    row.emplace_back(text, Datum::Bytes(bare ? "can be bare label" : "requires AS"));
  }
  return MakeStoredSet(std::move(rows));
}

void AddSets(Registry& r) {
  const Type text = MakeType(TypeId::kText), oid = MakeType(TypeId::kOid),
             boolean = MakeType(TypeId::kBool), regclass = MakeType(TypeId::kRegclass);
  r.AddSet("pg_get_keywords() setof record", Keywords, kStable).set_columns = {
      {"word", text},
      {"catcode", MakeType(TypeId::kChar)},
      {"barelabel", boolean},
      {"catdesc", text},
      {"baredesc", text}};
  r.AddSet("pg_options_to_table(text[]) setof record", Options, kStable).set_columns = {
      {"option_name", text}, {"option_value", text}};
  r.AddSet("aclexplode(aclitem[]) setof record", AclExplode, kStable).set_columns = {
      {"grantor", oid}, {"grantee", oid}, {"privilege_type", text}, {"is_grantable", boolean}};
  // There are no partitions, so these have no rows.
  r.AddSet("pg_partition_ancestors(regclass) setof regclass", NoRows, kStable).set_columns = {
      {"relid", regclass}};
  r.AddSet("pg_partition_tree(regclass) setof record", NoRows, kStable).set_columns = {
      {"relid", regclass},
      {"parentrelid", regclass},
      {"isleaf", boolean},
      {"level", MakeType(TypeId::kInt4)}};
  r.AddSet("pg_get_publication_tables(text) setof record", NoRows, kStable).set_columns = {
      {"relid", oid}, {"attrs", MakeType(TypeId::kInt2vector)}, {"qual", text}};
}

}  // namespace

void RegisterSystem(Registry& r) {
  AddSequences(r);
  AddIdentity(r);
  AddTypes(r);
  AddPrivileges(r);
  AddCatalog(r);
  AddSets(r);
  r.Add("current_setting(text) text", CurrentSetting, kStable);
  r.Add("current_setting(text, bool) text", CurrentSetting, kStable);
  r.Add("set_config(text, text, bool) text", SetConfig, kVolatile).strict = false;
  r.Add(
      "pg_sleep(float8) void", CELLAR_SCALAR { return Sleep(context, a[0].double_value()); },
      kVolatile);
  r.Add(
      "pg_sleep_for(interval) void",
      CELLAR_SCALAR { return Sleep(context, static_cast<double>(SpanOf(IntervalOf(a[0]))) / 1e6); },
      kVolatile);
  r.Add(
      "pg_sleep_until(timestamptz) void",
      CELLAR_SCALAR {
        const int64_t now =
            context.clock_micros != nullptr ? context.clock_micros() : context.statement_micros;
        return Sleep(context, static_cast<double>(a[0].int_value() - now) / 1e6);
      },
      kVolatile);
  r.Add(
      "pg_trigger_depth() int4", CELLAR_SCALAR { return Datum::Int(0); }, kStable);
  r.Add(
      "pg_partition_root(regclass) regclass", CELLAR_SCALAR { return Datum(); }, kStable);
  r.Add(
      "oidvectortypes(oidvector) text",
      CELLAR_SCALAR {
        ArrayView view(a[0].bytes(), MakeType(TypeId::kOid));
        std::string out;
        for (size_t i = 0; i < view.size(); ++i) {
          if (i > 0) out += ", ";
          std::optional<Type> type = TypeFromOid(Oid(view.Get(i)));
          out += type.has_value() ? FormatType(*type) : "???";
        }
        return TextOf(context, out);
      },
      kStable);
  r.Add(
       "num_nulls(any...) int4",
       CELLAR_SCALAR {
         int64_t count = 0;
         for (Datum value : a) count += value.is_null();
         return Datum::Int(count);
       })
      .strict = false;
  r.Add(
       "num_nonnulls(any...) int4",
       CELLAR_SCALAR {
         int64_t count = 0;
         for (Datum value : a) count += !value.is_null();
         return Datum::Int(count);
       })
      .strict = false;
}

}  // namespace cellar::sql
