// \d and its kin, from pg_catalog.
#include <optional>

#include "cellar/cli/error_text.h"
#include "cellar/cli/shell.h"

namespace cellar::cli {
namespace {

constexpr const char* kUserSchemas = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

std::string Condition(std::string_view column, const std::string& like) {
  return like.empty() ? "" : fmt::format(" AND {} LIKE {}", column, SqlLiteral(like));
}

std::string RelationCondition(const std::string& pattern) {
  if (pattern.empty()) return fmt::format(" AND {}", kUserSchemas);
  const auto [schema, name] = LikePattern(pattern);
  if (!schema.empty()) {
    return Condition("n.nspname", schema) + Condition("c.relname", name);
  }
  return " AND pg_catalog.pg_table_is_visible(c.oid)" + Condition("c.relname", name);
}

const char* KindTitle(const std::string& kind) {
  if (kind == "v") return "View";
  if (kind == "i") return "Index";
  if (kind == "S") return "Sequence";
  return "Table";
}

}  // namespace

std::pair<std::string, std::string> LikePattern(std::string_view pattern) {
  std::string parts[2];
  int part = 0;
  bool quoted = false;
  for (char c : pattern) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '.' && !quoted && part == 0) {
      part = 1;
    } else if (!quoted && c == '*') {
      parts[part] += '%';
    } else if (!quoted && c == '?') {
      parts[part] += '_';
    } else {
      if (c == '%' || c == '_' || c == '\\') parts[part] += '\\';
      parts[part] += static_cast<char>(!quoted && c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
  }
  if (part == 0) return {"", parts[0]};
  return {parts[0], parts[1]};
}

Shell::Flow Shell::ListOf(const std::string& title, const std::string& sql) {
  PrintStyle style = style_;
  style.title = title;
  style.null_text = "";
  ShellSink sink(MakeHooks(&style));
  const Status status = session_->ExecuteSimple(sql, &sink);
  sink.Finish();
  failed_ = !status.ok();
  if (failed_) Error(ErrorText(status, ""));
  return failed_ && stop_on_error_ ? Flow::kStop : Flow::kGoOn;
}

Shell::Flow Shell::Describe(const std::string& command, const std::string& pattern) {
  std::string name = command;
  while (!name.empty() && (name.back() == '+' || name.back() == 'S')) name.pop_back();
  if (command == "dS") name = "d";
  const auto relations = [&](const std::string& title, const std::string& kinds, bool with_table) {
    return ListOf(
        title,
        fmt::format(
            "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\","
            " CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'i' THEN 'index'"
            " WHEN 'S' THEN 'sequence' END AS \"Type\","
            " pg_catalog.pg_get_userbyid(c.relowner) AS \"Owner\"{}"
            " FROM pg_catalog.pg_class c"
            " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace{}"
            " WHERE c.relkind IN ({}){} ORDER BY 1, 2",
            with_table ? ", t.relname AS \"Table\"" : "",
            with_table ? " JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid"
                         " JOIN pg_catalog.pg_class t ON t.oid = i.indrelid"
                       : "",
            kinds, RelationCondition(pattern)));
  };
  if (name == "d" && !pattern.empty()) {
    Result<std::vector<TextRow>> found = QueryTexts(
        session_.get(),
        "SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE true" +
            RelationCondition(pattern) + " ORDER BY 2, 3");
    if (!found.ok() || found->empty()) {
      failed_ = true;
      Error(found.ok() ? fmt::format("Did not find any relation named \"{}\".\n", pattern)
                       : ErrorText(found.status(), ""));
      return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
    }
    for (const TextRow& relation : *found) {
      if (const Flow flow = DescribeRelation(relation); flow != Flow::kGoOn) return flow;
    }
    return Flow::kGoOn;
  }
  if (name == "d") return relations("List of relations", "'r', 'v', 'S'", false);
  if (name == "dt") return relations("List of relations", "'r'", false);
  if (name == "dv") return relations("List of relations", "'v'", false);
  if (name == "ds" || command == "ds") return relations("List of relations", "'S'", false);
  if (name == "di") return relations("List of relations", "'i'", true);
  const std::string like = LikePattern(pattern).second;
  if (name == "dn") {
    return ListOf("List of schemas",
                  fmt::format("SELECT n.nspname AS \"Name\","
                              " pg_catalog.pg_get_userbyid(n.nspowner) AS \"Owner\""
                              " FROM pg_catalog.pg_namespace n WHERE {}{} ORDER BY 1",
                              kUserSchemas, Condition("n.nspname", like)));
  }
  if (name == "l" || name == "list") {
    return ListOf("List of databases",
                  "SELECT datname AS \"Name\", pg_catalog.pg_get_userbyid(datdba) AS \"Owner\","
                  " pg_catalog.pg_encoding_to_char(encoding) AS \"Encoding\","
                  " datcollate AS \"Collate\" FROM pg_catalog.pg_database WHERE true" +
                      Condition("datname", like) + " ORDER BY 1");
  }
  if (name == "du" || name == "dg") {
    return ListOf("List of roles",
                  "SELECT rolname AS \"Role name\","
                  " CASE WHEN rolsuper THEN 'Superuser' ELSE '' END AS \"Attributes\""
                  " FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_'" +
                      Condition("rolname", like) + " ORDER BY 1");
  }
  if (name == "df") {
    return ListOf(
        "List of functions",
        "SELECT n.nspname AS \"Schema\", p.proname AS \"Name\","
        " pg_catalog.pg_get_function_result(p.oid) AS \"Result\","
        " pg_catalog.pg_get_function_arguments(p.oid) AS \"Arguments\""
        " FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
        " WHERE true" +
            (pattern.empty() ? fmt::format(" AND {}", kUserSchemas)
                             : Condition("p.proname", like)) +
            " ORDER BY 1, 2, 4");
  }
  failed_ = true;
  Error(fmt::format("invalid command \\{}\nTry \\? for help.\n", command));
  return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
}

Shell::Flow Shell::DescribeRelation(const TextRow& relation) {
  const std::string& oid = *relation[0];
  const std::string& kind = *relation[3];
  PrintStyle style = style_;
  style.title = fmt::format("{} \"{}.{}\"", KindTitle(kind), *relation[1], *relation[2]);
  style.null_text = "";
  style.tuples_only = false;
  ShellSink sink(MakeHooks(&style));
  // The footer goes below the notes on indexes: collected here, printed without its row count.
  std::string printed;
  ShellSink::Hooks hooks = MakeHooks(&style);
  hooks.write = [&printed](std::string_view text) { printed.append(text); };
  ShellSink columns(std::move(hooks));
  Status status = session_->ExecuteSimple(
      fmt::format("SELECT a.attname AS \"Column\","
                  " pg_catalog.format_type(a.atttypid, a.atttypmod) AS \"Type\","
                  " CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS \"Nullable\","
                  " CASE a.attidentity WHEN 'a' THEN 'generated always as identity'"
                  " WHEN 'd' THEN 'generated by default as identity'"
                  " ELSE coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') END"
                  " AS \"Default\""
                  " FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d"
                  " ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
                  " WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped"
                  " ORDER BY a.attnum",
                  oid),
      &columns);
  columns.Finish();
  if (style.mode == OutputMode::kAligned) {
    // "(N rows)" and the empty line after it.
    const size_t footer = printed.rfind("\n(");
    if (footer != std::string::npos) printed.resize(footer + 1);
  }
  const auto notes = [&](const char* title, const std::string& sql) {
    if (!status.ok()) return;
    Result<std::vector<TextRow>> rows = QueryTexts(session_.get(), sql);
    if (!rows.ok()) {
      status = rows.status();
      return;
    }
    if (!rows->empty()) printed += fmt::format("{}:\n", title);
    for (const TextRow& row : *rows) printed += "    " + row[0].value_or("") + "\n";
  };
  if (kind == "r" && style.mode == OutputMode::kAligned) {
    notes("Indexes",
          fmt::format(
              "SELECT '\"' || c.relname || '\"' || CASE WHEN i.indisprimary THEN ' PRIMARY KEY,'"
              " WHEN i.indisunique THEN ' UNIQUE,' ELSE '' END"
              " || substr(pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), position(' USING ' IN"
              " pg_catalog.pg_get_indexdef(i.indexrelid, 0, true)) + 6)"
              " FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid"
              " WHERE i.indrelid = {} ORDER BY i.indisprimary DESC, c.relname",
              oid));
    const std::string constraints =
        "SELECT '\"' || conname || '\" ' || pg_catalog.pg_get_constraintdef(oid, true)"
        " FROM pg_catalog.pg_constraint WHERE conrelid = {} AND contype = '{}' ORDER BY conname";
    notes("Check constraints", fmt::format(fmt::runtime(constraints), oid, 'c'));
    notes("Foreign-key constraints", fmt::format(fmt::runtime(constraints), oid, 'f'));
    notes(
        "Referenced by",
        fmt::format("SELECT 'TABLE \"' || conrelid::pg_catalog.regclass::text || '\" CONSTRAINT \"'"
                    " || conname || '\" ' || pg_catalog.pg_get_constraintdef(oid, true)"
                    " FROM pg_catalog.pg_constraint WHERE confrelid = {} AND contype = 'f'"
                    " ORDER BY 1",
                    oid));
  }
  if (style.mode == OutputMode::kAligned) printed += "\n";
  Write(printed);
  failed_ = !status.ok();
  if (failed_) Error(ErrorText(status, ""));
  return failed_ && stop_on_error_ ? Flow::kStop : Flow::kGoOn;
}

}  // namespace cellar::cli
