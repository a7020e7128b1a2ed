#include "cellar/session/storage_parameters.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/zones.h"

namespace cellar::session {
namespace {

Status Unrecognized(const sql::ast::Option& option) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "unrecognized parameter \"{}\"",
                  option.name);
}

bool IsVacuumParameter(std::string_view name) {
  return name.starts_with("autovacuum_") || name.starts_with("vacuum_") ||
         name == "log_autovacuum_min_duration";
}

}  // namespace

Status CheckTableParameters(const sql::ast::OptionList& options) {
  for (const sql::ast::Option& option : options) {
    const std::string_view name = option.name;
    if (!option.space.empty()) {
      if (option.space != "toast") {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "unrecognized parameter namespace \"{}\"", option.space);
      }
      if (!IsVacuumParameter(name)) return Unrecognized(option);
      continue;
    }
    constexpr std::string_view kNames[] = {"layout",           "groups",
                                           "fillfactor",       "toast_tuple_target",
                                           "parallel_workers", "user_catalog_table"};
    if (IsZoneOption(name) || IsVacuumParameter(name)) continue;
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) continue;
    if (name != "oids") return Unrecognized(option);
    if (!option.ToBool().valid || option.ToBool().value) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "tables declared WITH OIDS are not supported");
    }
  }
  return Status();
}

Status CheckIndexParameters(const sql::ast::OptionList& options) {
  for (const sql::ast::Option& option : options) {
    if (option.name != "shards" && option.name != "fillfactor" &&
        option.name != "deduplicate_items")
      return Unrecognized(option);
  }
  return Status();
}

}  // namespace cellar::session
