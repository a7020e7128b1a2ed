#include "cellar/session/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cellar/base/sqlstate.h"

namespace cellar::session {
namespace {

enum class Kind : uint8_t { kBool, kInt, kReal, kString, kEnum, kList };

struct Definition {
  const char* name;
  Kind kind;
  const char* initial;
  const char* choices;  // of enums, separated by commas
  const char* unit;     // "ms", "kB", "8kB", "s" or empty
  bool reported;
  bool fixed;
  const char* description;
};

// As in PostgreSQL.
constexpr int64_t kLeastWorkMemKb = 64, kLeastMaintenanceWorkMemKb = 1024;

constexpr Definition kDefinitions[] = {
    {"allow_system_table_mods", Kind::kBool, "off", "", "", false, false,
     "Allows changes of the structure of system tables."},
    {"application_name", Kind::kString, "", "", "", true, false,
     "Sets the application name to be reported in statistics and logs."},
    {"array_nulls", Kind::kBool, "on", "", "", false, false,
     "Enables input of NULL elements in arrays."},
    {"backslash_quote", Kind::kEnum, "safe_encoding", "safe_encoding,on,off", "", false, false,
     "Sets whether \"\\'\" is allowed in string literals."},
    {"block_size", Kind::kInt, "8192", "", "", false, true, "Shows the size of a disk block."},
    {"bytea_output", Kind::kEnum, "hex", "hex,escape", "", false, false,
     "Sets the output format for bytea."},
    {"cellar.auto_groups", Kind::kBool, "off", "", "", false, false,
     "Puts columns of new tables of layout row that name no column groups into two: for tests."},
    {"cellar.auto_shards", Kind::kBool, "off", "", "", false, false,
     "Spreads the rows of new tables of layout row over seven shards of their primary key: for "
     "tests."},
    {"cellar.retention", Kind::kInt, "604800", "", "s", false, false,
     "Sets how long the recycle bin keeps what this session drops where nothing else is set."},
    {"cellar.seal", Kind::kEnum, "auto", "auto,off,always", "", false, false,
     "Sets when new and changed rows are packed into pages: in the background, not while this "
     "session is open, or at each commit of this session."},
    {"cellar.seal_rate", Kind::kInt, "65536", "", "kB", false, false,
     "Sets how much the store packs in a second in the background; 0 is no limit."},
    {"check_function_bodies", Kind::kBool, "on", "", "", false, false,
     "Checks routine bodies when they are made."},
    {"client_encoding", Kind::kString, "UTF8", "", "", true, false,
     "Sets the client's character set encoding."},
    {"client_min_messages", Kind::kEnum, "notice",
     "debug5,debug4,debug3,debug2,debug1,debug,log,info,notice,warning,error", "", false, false,
     "Sets the message levels that are sent to the client."},
    {"commit_delay", Kind::kInt, "0", "", "", false, false,
     "Sets the delay in microseconds between commit and flush."},
    {"constraint_exclusion", Kind::kEnum, "partition", "partition,on,off", "", false, false,
     "Enables the planner to use constraints to optimize queries."},
    {"cursor_tuple_fraction", Kind::kReal, "0.1", "", "", false, false,
     "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved."},
    {"data_checksums", Kind::kBool, "on", "", "", false, true,
     "Shows whether data checksums are turned on."},
    {"datestyle", Kind::kString, "ISO, MDY", "", "", true, false,
     "Sets the display format for date and time values."},
    {"deadlock_timeout", Kind::kInt, "1000", "", "ms", false, false,
     "Sets the time to wait on a lock before checking for deadlock."},
    {"default_statistics_target", Kind::kInt, "100", "", "", false, false,
     "Sets the default statistics target."},
    {"default_table_access_method", Kind::kString, "heap", "", "", false, false,
     "Sets the default table access method for new tables."},
    {"default_table_layout", Kind::kEnum, kBuiltInTableLayout, "row,pages,cell,datum", "", false,
     false, "Sets the layout of new tables that name none."},
    {"default_tablespace", Kind::kString, "", "", "", false, false,
     "Sets the default tablespace to create tables and indexes in."},
    {"default_text_search_config", Kind::kString, "pg_catalog.simple", "", "", false, false,
     "Sets default text search configuration."},
    {"default_toast_compression", Kind::kEnum, "pglz", "pglz,lz4", "", false, false,
     "Sets the default compression method for compressible values."},
    {"default_transaction_deferrable", Kind::kBool, "off", "", "", false, false,
     "Sets the default deferrable status of new transactions."},
    {"default_transaction_isolation", Kind::kEnum, "serializable",
     "serializable,repeatable read,read committed,read uncommitted", "", false, false,
     "Sets the transaction isolation level of each new transaction."},
    {"default_transaction_read_only", Kind::kBool, "off", "", "", true, false,
     "Sets the default read-only status of new transactions."},
    {"default_with_oids", Kind::kBool, "off", "", "", false, false,
     "WITH OIDS is no longer supported; this can only be false."},
    {"effective_cache_size", Kind::kInt, "524288", "", "8kB", false, false,
     "Sets the planner's assumption about the total size of the data caches."},
    {"enable_bitmapscan", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of bitmap-scan plans."},
    {"enable_hashagg", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of hashed aggregation plans."},
    {"enable_hashjoin", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of hash join plans."},
    {"enable_indexonlyscan", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of index-only-scan plans."},
    {"enable_indexscan", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of index-scan plans."},
    {"enable_lookupjoin", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of joins by index."},
    {"enable_material", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of materialization."},
    {"enable_mergejoin", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of merge join plans."},
    {"enable_nestloop", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of nested-loop join plans."},
    {"enable_seqscan", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of sequential-scan plans."},
    {"enable_sort", Kind::kBool, "on", "", "", false, false,
     "Enables the planner's use of explicit sort steps."},
    {"enable_sortelision", Kind::kBool, "on", "", "", false, false,
     "Enables the planner to take an index's order in place of a sort."},
    {"escape_string_warning", Kind::kBool, "on", "", "", false, false,
     "Warn about backslash escapes in ordinary string literals."},
    {"exit_on_error", Kind::kBool, "off", "", "", false, false, "Terminate session on any error."},
    {"extra_float_digits", Kind::kInt, "1", "", "", false, false,
     "Sets the number of digits displayed for floating-point values."},
    {"force_parallel_mode", Kind::kEnum, "off", "off,on,regress", "", false, false,
     "Forces use of parallel query facilities."},
    {"from_collapse_limit", Kind::kInt, "8", "", "", false, false,
     "Sets the FROM-list size beyond which subqueries are not collapsed."},
    {"geqo", Kind::kBool, "on", "", "", false, false, "Enables genetic query optimization."},
    {"gin_fuzzy_search_limit", Kind::kInt, "0", "", "", false, false,
     "Sets the maximum allowed result for exact search by GIN."},
    {"idle_in_transaction_session_timeout", Kind::kInt, "0", "", "ms", false, false,
     "Sets the maximum allowed idle time between queries, when in a transaction."},
    {"idle_session_timeout", Kind::kInt, "0", "", "ms", false, false,
     "Sets the maximum allowed idle time between queries, when not in a transaction."},
    {"in_hot_standby", Kind::kBool, "off", "", "", true, true,
     "Shows whether hot standby is currently active."},
    {"integer_datetimes", Kind::kBool, "on", "", "", true, true, "Datetimes are integer based."},
    {"intervalstyle", Kind::kEnum, "postgres", "postgres,postgres_verbose,sql_standard,iso_8601",
     "", true, false, "Sets the display format for interval values."},
    {"is_superuser", Kind::kBool, "on", "", "", true, true,
     "Shows whether the current user is a superuser."},
    {"jit", Kind::kBool, "off", "", "", false, false, "Allow JIT compilation."},
    {"join_collapse_limit", Kind::kInt, "8", "", "", false, false,
     "Sets the FROM-list size beyond which JOIN constructs are not flattened."},
    {"lc_collate", Kind::kString, "C", "", "", false, true, "Shows the collation order locale."},
    {"lc_ctype", Kind::kString, "C.UTF-8", "", "", false, true,
     "Shows the character classification and case conversion locale."},
    {"lc_messages", Kind::kString, "C", "", "", false, false,
     "Sets the language in which messages are displayed."},
    {"lc_monetary", Kind::kString, "C", "", "", false, false,
     "Sets the locale for formatting monetary amounts."},
    {"lc_numeric", Kind::kString, "C", "", "", false, false,
     "Sets the locale for formatting numbers."},
    {"lc_time", Kind::kString, "C", "", "", false, false,
     "Sets the locale for formatting date and time values."},
    {"lo_compat_privileges", Kind::kBool, "off", "", "", false, false,
     "Enables backward compatibility mode for privilege checks on large objects."},
    {"lock_timeout", Kind::kInt, "0", "", "ms", false, false,
     "Sets the maximum allowed duration of any wait for a lock."},
    {"log_duration", Kind::kBool, "off", "", "", false, false,
     "Logs the duration of each completed SQL statement."},
    {"log_min_duration_statement", Kind::kInt, "-1", "", "ms", false, false,
     "Sets the minimum execution time above which statements are logged."},
    {"log_min_messages", Kind::kEnum, "warning",
     "debug5,debug4,debug3,debug2,debug1,info,notice,warning,error,log,fatal,panic", "", false,
     false, "Sets the message levels that are logged."},
    {"log_statement", Kind::kEnum, "none", "none,ddl,mod,all", "", false, false,
     "Sets the type of statements logged."},
    {"maintenance_work_mem", Kind::kInt, "65536", "", "kB", false, false,
     "Sets the maximum memory to be used for maintenance operations."},
    {"max_connections", Kind::kInt, "2000", "", "", false, true,
     "Sets the maximum number of concurrent connections."},
    {"max_function_args", Kind::kInt, "100", "", "", false, true,
     "Shows the maximum number of function arguments."},
    {"max_identifier_length", Kind::kInt, "63", "", "", false, true,
     "Shows the maximum identifier length."},
    {"max_index_keys", Kind::kInt, "32", "", "", false, true,
     "Shows the maximum number of index keys."},
    {"max_parallel_workers_per_gather", Kind::kInt, "0", "", "", false, false,
     "Sets the maximum number of parallel processes per executor node."},
    {"max_prepared_transactions", Kind::kInt, "0", "", "", false, true,
     "Sets the maximum number of simultaneously prepared transactions."},
    {"max_stack_depth", Kind::kInt, "2048", "", "kB", false, false,
     "Sets the maximum stack depth, in kilobytes."},
    {"password_encryption", Kind::kEnum, "scram-sha-256", "scram-sha-256", "", false, false,
     "Chooses the algorithm for encrypting passwords."},
    {"plan_cache_mode", Kind::kEnum, "auto", "auto,force_generic_plan,force_custom_plan", "", false,
     false, "Controls the planner's selection of custom or generic plan."},
    {"quote_all_identifiers", Kind::kBool, "off", "", "", false, false,
     "When generating SQL fragments, quote all identifiers."},
    {"random_page_cost", Kind::kReal, "4", "", "", false, false,
     "Sets the planner's estimate of the cost of a nonsequentially fetched disk page."},
    {"role", Kind::kString, "none", "", "", false, false, "Sets the current role."},
    {"row_security", Kind::kBool, "on", "", "", false, false, "Enable row security."},
    {"search_path", Kind::kList, "\"$user\", public", "", "", false, false,
     "Sets the schema search order for names that are not schema-qualified."},
    {"seq_page_cost", Kind::kReal, "1", "", "", false, false,
     "Sets the planner's estimate of the cost of a sequentially fetched disk page."},
    {"server_encoding", Kind::kString, "UTF8", "", "", true, true,
     "Shows the server (database) character set encoding."},
    {"server_version", Kind::kString, "15.0 (Cellar 0.1.0)", "", "", true, true,
     "Shows the server version."},
    {"server_version_num", Kind::kInt, "150000", "", "", false, true,
     "Shows the server version as an integer."},
    {"session_authorization", Kind::kString, "cellar", "", "", true, false,
     "Sets the session user name."},
    {"session_replication_role", Kind::kEnum, "origin", "origin,replica,local", "", false, false,
     "Sets the session's behavior for triggers and rewrite rules."},
    {"shared_buffers", Kind::kInt, "16384", "", "8kB", false, true,
     "Sets the number of shared memory buffers used by the server."},
    {"ssl", Kind::kBool, "off", "", "", false, true, "Enables SSL connections."},
    {"standard_conforming_strings", Kind::kBool, "on", "", "", true, false,
     "Causes '...' strings to treat backslashes literally."},
    {"statement_timeout", Kind::kInt, "0", "", "ms", false, false,
     "Sets the maximum allowed duration of any statement."},
    {"superuser_reserved_connections", Kind::kInt, "3", "", "", false, true,
     "Sets the number of connection slots reserved for superusers."},
    {"synchronize_seqscans", Kind::kBool, "on", "", "", false, false,
     "Enable synchronized sequential scans."},
    {"synchronous_commit", Kind::kEnum, "on", "on,off,local,remote_write,remote_apply", "", false,
     false, "Sets whether a commit waits for its log to be on disk."},
    {"temp_buffers", Kind::kInt, "1024", "", "8kB", false, false,
     "Sets the maximum number of temporary buffers used by each session."},
    {"temp_tablespaces", Kind::kString, "", "", "", false, false,
     "Sets the tablespace(s) to use for temporary tables and sort files."},
    {"timezone", Kind::kString, "UTC", "", "", true, false,
     "Sets the time zone for displaying and interpreting time stamps."},
    {"timezone_abbreviations", Kind::kString, "Default", "", "", false, false,
     "Selects a file of time zone abbreviations."},
    {"track_activities", Kind::kBool, "on", "", "", false, false,
     "Collects information about executing commands."},
    {"transaction_deferrable", Kind::kBool, "off", "", "", false, false,
     "Whether to defer a read-only serializable transaction until it can be executed with no "
     "possible serialization failures."},
    {"transaction_isolation", Kind::kEnum, "serializable",
     "serializable,repeatable read,read committed,read uncommitted", "", false, false,
     "Sets the current transaction's isolation level."},
    {"transaction_read_only", Kind::kBool, "off", "", "", false, false,
     "Sets the current transaction's read-only status."},
    {"transform_null_equals", Kind::kBool, "off", "", "", false, false,
     "Treats \"expr=NULL\" as \"expr IS NULL\"."},
    {"vacuum_freeze_min_age", Kind::kInt, "50000000", "", "", false, false,
     "Minimum age at which VACUUM should freeze a table row."},
    {"wal_level", Kind::kEnum, "replica", "minimal,replica,logical", "", false, true,
     "Sets the level of information written to the log."},
    {"work_mem", Kind::kInt, "262144", "", "kB", false, false,
     "Sets the maximum memory to be used for query workspaces."},
    {"xmlbinary", Kind::kEnum, "base64", "base64,hex", "", false, false,
     "Sets how binary values are to be encoded in XML."},
    {"xmloption", Kind::kEnum, "content", "content,document", "", false, false,
     "Sets whether XML data in implicit parsing is considered as documents or fragments."},
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Trim(std::string_view text) {
  size_t start = text.find_first_not_of(" \t\n\r");
  if (start == std::string_view::npos) return "";
  return std::string(text.substr(start, text.find_last_not_of(" \t\n\r") - start + 1));
}

const Definition* FindDefinition(std::string_view key) {
  auto at = std::lower_bound(std::begin(kDefinitions), std::end(kDefinitions), key,
                             [](const Definition& d, std::string_view k) { return d.name < k; });
  return at != std::end(kDefinitions) && key == at->name ? at : nullptr;
}

std::string KeyOf(std::string_view name) {
  std::string key = Lower(name);
  return key == "time zone" ? "timezone" : key;
}

std::optional<bool> ParseBool(std::string_view text) {
  std::string lower = Lower(text);
  auto is_prefix = [&lower](std::string_view word, size_t least) {
    return lower.size() >= least && word.substr(0, lower.size()) == lower;
  };
  if (lower == "1" || lower == "on" || is_prefix("true", 1) || is_prefix("yes", 1)) return true;
  if (lower == "0" || is_prefix("off", 2) || is_prefix("false", 1) || is_prefix("no", 1))
    return false;
  return std::nullopt;
}

Status BadValue(std::string_view name, std::string_view value) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "invalid value for parameter \"{}\": \"{}\"", name, value);
}

// A number with an optional unit, in the setting's base unit.
std::optional<int64_t> ParseInteger(std::string_view text, std::string_view base) {
  std::string trimmed = Trim(text);
  double number = 0;
  auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string unit =
      Trim(std::string_view(end, static_cast<size_t>(trimmed.data() + trimmed.size() - end)));
  if (!unit.empty()) {
    double factor = 0;
    if (base == "ms" || base == "s") {
      if (unit == "us")
        factor = 0.001;
      else if (unit == "ms")
        factor = 1;
      else if (unit == "s")
        factor = 1000;
      else if (unit == "min")
        factor = 60000;
      else if (unit == "h")
        factor = 3600000;
      else if (unit == "d")
        factor = 86400000;
      if (base == "s") factor /= 1000;
    } else if (base == "kB" || base == "8kB") {
      if (unit == "B")
        factor = 1.0 / 1024;
      else if (unit == "kB")
        factor = 1;
      else if (unit == "MB")
        factor = 1024;
      else if (unit == "GB")
        factor = 1024.0 * 1024;
      else if (unit == "TB")
        factor = 1024.0 * 1024 * 1024;
      if (base == "8kB") factor /= 8;
    }
    if (factor == 0) return std::nullopt;
    number *= factor;
  }
  number = std::nearbyint(number);
  if (!(number >= -2147483648.0 && number <= 2147483647.0)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// SHOW prints times and sizes in the largest unit that fits.
std::string WithUnit(int64_t number, std::string_view base) {
  struct Unit {
    const char* name;
    int64_t factor;
  };
  if (number > 0 && (base == "kB" || base == "8kB")) {
    if (base == "8kB") number *= 8;
    for (Unit unit :
         {Unit{"TB", 1 << 30}, Unit{"GB", 1 << 20}, Unit{"MB", 1 << 10}, Unit{"kB", 1}}) {
      if (number % unit.factor == 0) return fmt::format("{}{}", number / unit.factor, unit.name);
    }
  }
  if (number > 0 && base == "ms") {
    for (Unit unit : {Unit{"d", 86400000}, Unit{"h", 3600000}, Unit{"min", 60000}, Unit{"s", 1000},
                      Unit{"ms", 1}}) {
      if (number % unit.factor == 0) return fmt::format("{}{}", number / unit.factor, unit.name);
    }
  }
  return fmt::format("{}", number);
}

const char* CanonicalSpelling(std::string_view key) {
  if (key == "datestyle") return "DateStyle";
  if (key == "intervalstyle") return "IntervalStyle";
  if (key == "timezone") return "TimeZone";
  return nullptr;
}

Result<std::string> ParseDateStyle(std::string_view value, std::string_view current) {
  std::string style = "ISO", order = "MDY";
  if (size_t comma = current.find(','); comma != std::string_view::npos) {
    style = Trim(current.substr(0, comma));
    order = Trim(current.substr(comma + 1));
  }
  size_t start = 0;
  while (start <= value.size()) {
    size_t comma = value.find(',', start);
    if (comma == std::string_view::npos) comma = value.size();
    std::string word = Lower(Trim(value.substr(start, comma - start)));
    if (word == "iso")
      style = "ISO";
    else if (word == "sql")
      style = "SQL";
    else if (word.substr(0, 8) == "postgres")
      style = "Postgres";
    else if (word == "german") {
      style = "German";
      order = "DMY";
    } else if (word == "mdy" || word == "us" || word == "noneuro" || word == "noneuropean")
      order = "MDY";
    else if (word == "dmy" || word.substr(0, 4) == "euro")
      order = "DMY";
    else if (word == "ymd")
      order = "YMD";
    else if (word == "default") {
      style = "ISO";
      order = "MDY";
    } else
      return BadValue("DateStyle", value)
          .WithDetail(fmt::format("Unrecognized key word: \"{}\".", word));
    start = comma + 1;
  }
  return style + ", " + order;
}

}  // namespace

Settings::Settings() {
  for (const Definition& definition : kDefinitions) {
    values_[definition.name] = definition.initial;
    Refresh(definition.name);
  }
  defaults_ = values_;
}

std::string Settings::CanonicalName(std::string_view name) const {
  std::string key = KeyOf(name);
  const char* spelling = CanonicalSpelling(key);
  return spelling ? spelling : key;
}

bool Settings::IsReported(std::string_view name) const {
  const Definition* definition = FindDefinition(KeyOf(name));
  return definition != nullptr && definition->reported;
}

std::vector<std::string> Settings::ReportedNames() const {
  std::vector<std::string> names;
  for (const Definition& definition : kDefinitions) {
    if (definition.reported) names.push_back(CanonicalName(definition.name));
  }
  return names;
}

std::optional<std::string> Settings::Get(std::string_view name) const {
  std::string key = KeyOf(name);
  auto at = values_.find(key);
  if (at == values_.end()) return std::nullopt;
  const Definition* definition = FindDefinition(key);
  if (definition != nullptr && definition->kind == Kind::kInt && definition->unit[0] != 0) {
    return WithUnit(GetInt(key), definition->unit);
  }
  return at->second;
}

std::vector<SettingInfo> Settings::All() const {
  std::vector<SettingInfo> all;
  for (const auto& [key, value] : values_) {
    const Definition* definition = FindDefinition(key);
    SettingInfo info;
    info.name = CanonicalName(key);
    info.value = value;
    auto reset = defaults_.find(key);
    info.reset_value = reset == defaults_.end() ? "" : reset->second;
    info.kind = "string";
    if (definition != nullptr) {
      info.description = definition->description;
      info.unit = definition->unit;
      if (definition->kind == Kind::kBool) info.kind = "bool";
      if (definition->kind == Kind::kInt) info.kind = "integer";
      if (definition->kind == Kind::kReal) info.kind = "real";
      if (definition->kind == Kind::kEnum) info.kind = "enum";
    }
    all.push_back(std::move(info));
  }
  return all;
}

Status Settings::Assign(const std::string& key, std::string value) {
  const Definition* definition = FindDefinition(key);
  if (definition == nullptr) {
    if (key.find('.') == std::string::npos) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "unrecognized configuration parameter \"{}\"", key);
    }
    values_[key] = std::move(value);
    return Status();
  }
  const std::string shown = CanonicalName(key);
  switch (definition->kind) {
    case Kind::kBool: {
      std::optional<bool> parsed = ParseBool(value);
      if (!parsed) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "parameter \"{}\" requires a Boolean value", shown);
      }
      if (key == "default_with_oids" && *parsed) {
        return UnsupportedError("tables declared WITH OIDS are not supported");
      }
      value = *parsed ? "on" : "off";
      break;
    }
    case Kind::kInt: {
      std::optional<int64_t> parsed = ParseInteger(value, definition->unit);
      if (!parsed) return BadValue(shown, value);
      if (key == "extra_float_digits" && (*parsed < -15 || *parsed > 3)) {
        return SqlError(
            Code::kInvalid, sqlstate::kInvalidParameterValue,
            "{} is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)",
            *parsed);
      }
      if ((key == "work_mem" && *parsed < kLeastWorkMemKb) ||
          (key == "maintenance_work_mem" && *parsed < kLeastMaintenanceWorkMemKb)) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "{} kB is outside the valid range for parameter \"{}\" ({} .. {})", *parsed,
                        key, key == "work_mem" ? kLeastWorkMemKb : kLeastMaintenanceWorkMemKb,
                        std::numeric_limits<int32_t>::max());
      }
      value = fmt::format("{}", *parsed);
      break;
    }
    case Kind::kReal: {
      double number;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size()) return BadValue(shown, value);
      break;
    }
    case Kind::kEnum: {
      std::string lower = Lower(value);
      std::string_view choices = definition->choices;
      bool found = false;
      for (size_t start = 0; start < choices.size() && !found;) {
        size_t comma = std::min(choices.find(',', start), choices.size());
        found = choices.substr(start, comma - start) == lower;
        start = comma + 1;
      }
      if (!found && choices.find("on,off") != std::string_view::npos) {
        if (std::optional<bool> parsed = ParseBool(value)) {
          lower = *parsed ? "on" : "off";
          found = true;
        }
      }
      if (!found) {
        std::string listed;
        for (char c : choices) {
          listed += c;
          if (c == ',') listed += ' ';
        }
        return BadValue(shown, value).WithHint(fmt::format("Available values: {}.", listed));
      }
      value = lower;
      break;
    }
    case Kind::kString:
      if (key == "datestyle") {
        CELLAR_TRY_ASSIGN(value, ParseDateStyle(value, values_[key]));
      } else if (key == "timezone") {
        const std::string lower = Lower(value);
        const auto zone =
            TimeZone::FindForSetting(lower == "default" || lower == "local" ? "UTC" : value);
        if (zone == nullptr) return BadValue("TimeZone", value);
        value = zone->name();
      } else if (key == "client_encoding") {
        std::string plain;
        for (char c : Lower(value)) {
          if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
        }
        if (plain == "utf8" || plain == "unicode")
          value = "UTF8";
        else if (plain == "sqlascii")
          value = "SQL_ASCII";
        else {
          return BadValue("client_encoding", value)
              .WithDetail("Cellar stores and sends UTF-8 only.");
        }
      } else if (key == "application_name") {
        for (char& c : value) {
          if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
        }
        if (value.size() > 63) value.resize(63);
      }
      break;
    case Kind::kList: break;
  }
  values_[key] = std::move(value);
  return Status();
}

void Settings::Refresh(const std::string& key) {
  const std::string& value = values_[key];
  if (key == "datestyle") {
    if (value.substr(0, 3) == "ISO") format_.date_style = DateStyle::kIso;
    if (value.substr(0, 3) == "SQL") format_.date_style = DateStyle::kSql;
    if (value.substr(0, 3) == "Pos") format_.date_style = DateStyle::kPostgres;
    if (value.substr(0, 3) == "Ger") format_.date_style = DateStyle::kGerman;
    std::string order = value.substr(value.size() - 3);
    format_.date_order = order == "DMY"   ? DateOrder::kDmy
                         : order == "YMD" ? DateOrder::kYmd
                                          : DateOrder::kMdy;
  } else if (key == "intervalstyle") {
    format_.interval_style = value == "postgres_verbose" ? IntervalStyle::kPostgresVerbose
                             : value == "sql_standard"   ? IntervalStyle::kSqlStandard
                             : value == "iso_8601"       ? IntervalStyle::kIso8601
                                                         : IntervalStyle::kPostgres;
  } else if (key == "bytea_output") {
    format_.bytea_output = value == "escape" ? ByteaOutput::kEscape : ByteaOutput::kHex;
  } else if (key == "extra_float_digits") {
    format_.extra_float_digits = static_cast<int>(GetInt(key));
  } else if (key == "timezone") {
    time_zone_ = TimeZone::FindForSetting(value);
    format_.time_zone = time_zone_.get();
  }
}

void Settings::Changed(const std::string& key) {
  ++generation_;
  Refresh(key);
  const Definition* definition = FindDefinition(key);
  if (definition != nullptr && definition->reported) changes_.push_back(CanonicalName(key));
}

Status Settings::Hold(size_t bytes) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  held_bytes_ += bytes;
  if (held_bytes_ <= kMostBytes) return Status();
  // Values that others have replaced count no more.
  held_bytes_ = bytes;
  for (const auto& [key, value] : values_) held_bytes_ += key.size() + value.size();
  for (const Undo& undo : undo_) held_bytes_ += undo.key.size() + undo.old_value.size();
  if (held_bytes_ <= kMostBytes) return Status();
  held_bytes_ -= bytes;
  return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                  "the settings of a session may hold {} bytes", kMostBytes);
}

Status Settings::Set(std::string_view name, std::string_view value, bool local) {
  std::string key = KeyOf(name);
  const Definition* definition = FindDefinition(key);
  if (definition != nullptr && definition->fixed) {
    return SqlError(Code::kInvalid, "55P02", "parameter \"{}\" cannot be changed",
                    CanonicalName(key));
  }
  std::string old = values_.count(key) != 0 ? values_[key] : "";
  CELLAR_TRY(Hold(2 * key.size() + value.size() + old.size()));
  CELLAR_TRY(Assign(key, std::string(value)));
  if (in_transaction_) undo_.push_back({key, old, local});
  if (values_[key] != old) Changed(key);
  return Status();
}

Status Settings::SetDefault(std::string_view name, std::string_view value) {
  std::string key = KeyOf(name);
  CELLAR_TRY(Assign(key, std::string(value)));
  defaults_[key] = values_[key];
  Changed(key);
  return Status();
}

Status Settings::Reset(std::string_view name) {
  std::string key = KeyOf(name);
  auto initial = defaults_.find(key);
  if (initial == defaults_.end() && values_.count(key) == 0) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                    "unrecognized configuration parameter \"{}\"", key);
  }
  std::string old = values_[key];
  if (in_transaction_) undo_.push_back({key, old, false});
  values_[key] = initial == defaults_.end() ? "" : initial->second;
  if (values_[key] != old) Changed(key);
  return Status();
}

void Settings::ResetAll() {
  for (const auto& [key, initial] : defaults_) {
    if (key == "transaction_isolation" || key == "transaction_read_only" ||
        key == "transaction_deferrable" || key == "role" || key == "session_authorization" ||
        key == "is_superuser")
      continue;
    if (values_[key] == initial) continue;
    if (in_transaction_) undo_.push_back({key, values_[key], false});
    values_[key] = initial;
    Changed(key);
  }
}

void Settings::BeginTransaction() {
  in_transaction_ = true;
  undo_.clear();
}

void Settings::RollbackTo(size_t savepoint) {
  while (undo_.size() > savepoint) {
    Undo undo = std::move(undo_.back());
    undo_.pop_back();
    if (values_[undo.key] == undo.old_value) continue;
    values_[undo.key] = undo.old_value;
    Changed(undo.key);
  }
}

size_t Settings::Savepoint() { return undo_.size(); }

void Settings::EndTransaction(bool committed) {
  in_transaction_ = false;
  if (!committed) {
    RollbackTo(0);
    return;
  }
  // A local value ends here; what counts then is the last one set for the session.
  std::map<std::string, std::string> after;
  for (const Undo& undo : undo_) {
    if (undo.local && after.count(undo.key) == 0) after[undo.key] = undo.old_value;
    if (!undo.local) after.erase(undo.key);
  }
  undo_.clear();
  for (const auto& [key, value] : after) {
    if (values_[key] == value) continue;
    values_[key] = value;
    Changed(key);
  }
}

void Settings::ReadHot() {
  hot_.statement_timeout_ms = GetInt("statement_timeout");
  hot_.lock_timeout_ms = GetInt("lock_timeout");
  hot_.deadlock_timeout_ms = GetInt("deadlock_timeout");
  hot_.isolation = *Get("transaction_isolation");
  hot_.read_only = GetBool("transaction_read_only");
  hot_.durable = *Get("synchronous_commit") != "off";
  hot_.seal_off = *Get("cellar.seal") == "off";
  hot_.seal_always = *Get("cellar.seal") == "always";
  hot_.seal_rate_kb = GetInt("cellar.seal_rate");
  hot_.work_mem_bytes = static_cast<size_t>(GetInt("work_mem")) << 10;
  hot_.has_default_modes = hot_.isolation == *Get("default_transaction_isolation") &&
                           hot_.read_only == GetBool("default_transaction_read_only");
  hot_generation_ = generation_;
}

Status Settings::SetDefaultModes() {
  if (hot().has_default_modes) return Status();
  CELLAR_TRY(Set("transaction_isolation", *Get("default_transaction_isolation"), false));
  return Set("transaction_read_only", *Get("default_transaction_read_only"), false);
}

std::vector<std::string> Settings::TakeChanges() {
  std::vector<std::string> names;
  if (changes_.empty()) return names;
  for (std::string& name : changes_) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  changes_.clear();
  return names;
}

bool Settings::GetBool(std::string_view name) const {
  auto at = values_.find(KeyOf(name));
  return at != values_.end() && at->second == "on";
}

int64_t Settings::GetInt(std::string_view name) const {
  auto at = values_.find(KeyOf(name));
  int64_t number = 0;
  if (at != values_.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), number);
  return number;
}

std::vector<std::string> Settings::GetList(std::string_view name) const {
  std::vector<std::string> list;
  auto at = values_.find(KeyOf(name));
  if (at == values_.end()) return list;
  const std::string& text = at->second;
  size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && (text[i] == ' ' || text[i] == ',')) ++i;
    if (i >= text.size()) break;
    std::string item;
    if (text[i] == '"') {
      for (++i; i < text.size(); ++i) {
        if (text[i] == '"') {
          if (i + 1 < text.size() && text[i + 1] == '"')
            ++i;
          else
            break;
        }
        item += text[i];
      }
      ++i;
    } else {
      size_t end = std::min(text.find(',', i), text.size());
      item = Lower(Trim(std::string_view(text).substr(i, end - i)));
      i = end;
    }
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace cellar::session
