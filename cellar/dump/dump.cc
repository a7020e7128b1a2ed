#include "cellar/dump/dump.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cellar/dump/texts.h"
#include "cellar/session/discarding_sink.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::dump {
namespace {

using sql::QuoteIdentifier;
using sql::QuoteQualified;

constexpr std::string_view kBootstrapRole = "cellar";
// Columns of many queries below: whose oid, and which schemas are the user's.
constexpr std::string_view kUserSchemas =
    "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

std::string Text(const std::optional<std::string>& value) { return value.value_or(""); }
bool IsTrue(const std::optional<std::string>& value) { return value && *value == "t"; }

std::vector<std::string> Lines(const std::optional<std::string>& text) {
  std::vector<std::string> lines;
  if (!text || text->empty()) return lines;
  size_t at = 0;
  while (at <= text->size()) {
    const size_t end = std::min(text->find('\n', at), text->size());
    lines.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// A string that every setting of standard_conforming_strings reads alike.
std::string Literal(std::string_view text) {
  const std::string literal = SqlLiteral(text);
  return literal[0] == ' ' ? literal.substr(1) : literal;
}

// "name=value" lines as "name = 'value', ..".
std::string OptionsText(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    if (!out.empty()) out += ", ";
    std::string value = "'";
    for (const char c : line.substr(equals + 1)) value += c == '\'' ? "''" : std::string(1, c);
    out += fmt::format("{} = {}'", line.substr(0, equals), value);
  }
  return out;
}

// Names as lists in settings have them, quoted where need be: what SET takes as the same list.
std::string ListText(std::string_view list) {
  std::string out, item;
  bool quoted = false;
  const auto end_item = [&] {
    out += (out.empty() ? "" : ", ") + Literal(std::exchange(item, ""));
  };
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"') {
      if (quoted && list.substr(i + 1).starts_with('"'))
        item += list[i++];
      else
        quoted = !quoted;
    } else if (list[i] == ',' && !quoted) {
      end_item();
    } else if (list[i] != ' ' || quoted) {
      item += list[i];
    }
  }
  end_item();
  return out;
}

// Of a table's options: what could refuse the rows that it has.
bool IsLimit(std::string_view option) {
  for (const std::string_view name : {"row_quota=", "byte_quota=", "read_rate=", "write_rate="}) {
    if (option.starts_with(name)) return true;
  }
  return false;
}

// Hands the lines of COPY TO to a target.
class CopySink : public session::DiscardingSink {
 public:
  explicit CopySink(DumpTarget* target) : target_(target) {}
  Status OnCopyOut(int, bool) override { return Status(); }
  Status OnCopyData(std::string_view data) override { return target_->CopyData(data); }
  Status OnCopyOutEnd() override { return Status(); }

 private:
  DumpTarget* const target_;
};

struct Sequence {
  std::string oid, name;  // the name qualified
  std::string options;    // of CREATE SEQUENCE
  std::string owner, comment;
  std::string table_oid, column;  // that owns it
  bool identity = false;
  std::string last_value;
  bool is_called = false;
};

struct Constraint {
  std::string name, definition, comment;
  char type = 'c';
  bool validated = true;
};

struct Table {
  std::string oid, name, owner;
  std::vector<Constraint> constraints;
  std::string copied_columns;  // "(a, b)", those that are not generated
};

class Dumper {
 public:
  Dumper(session::Session* session, const DumpContents& contents, DumpTarget* target)
      : session_(session), contents_(contents), target_(target) {}

  Status Run() {
    CELLAR_TRY(Begin());
    if (contents_.roles) CELLAR_TRY(DumpRoles(session_, target_));
    CELLAR_TRY(ReadSequences());
    CELLAR_TRY(ReadTables());
    if (contents_.schema) {
      if (whole()) CELLAR_TRY(MakeSchemas());
      CELLAR_TRY(MakeTypes());
      CELLAR_TRY(MakeSequences());
      for (const Table& table : tables_) CELLAR_TRY(MakeTable(table));
      CELLAR_TRY(OwnSequences());
    }
    if (contents_.data) {
      for (const Table& table : tables_) CELLAR_TRY(CopyTable(table));
      CELLAR_TRY(SetSequences());
    }
    if (contents_.schema) {
      for (const Table& table : tables_) CELLAR_TRY(AddKeysAndIndexes(table));
      for (const Table& table : tables_) CELLAR_TRY(AddConstraints(table, "c"));
      for (const Table& table : tables_) CELLAR_TRY(AddConstraints(table, "f"));
      if (whole()) CELLAR_TRY(MakeViews());
      for (const Table& table : tables_) CELLAR_TRY(Comment(table));
      if (contents_.privileges) CELLAR_TRY(GrantAll());
      for (const std::string& limit : limits_) CELLAR_TRY(Put(limit));
      if (contents_.database) CELLAR_TRY(AlterDatabase());
    }
    return Status();
  }

 private:
  bool whole() const { return contents_.table.empty(); }
  Result<std::vector<TextRow>> Query(const std::string& sql) { return QueryTexts(session_, sql); }
  Status Put(const std::string& sql) { return target_->Statement(sql); }

  Status Begin() {
    CELLAR_TRY(Query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").status());
    if (!whole()) CELLAR_TRY(FindTable());
    for (const char* setting : {"search_path = ''", "datestyle = ISO", "intervalstyle = postgres",
                                "extra_float_digits = 1", "timezone = 'UTC'", "bytea_output = hex",
                                "statement_timeout = 0"}) {
      CELLAR_TRY(Query(fmt::format("SET LOCAL {}", setting)).status());
    }
    for (const char* setting :
         {"SET statement_timeout = 0", "SET client_encoding = 'UTF8'",
          "SET standard_conforming_strings = on", "SET check_function_bodies = false",
          "SET client_min_messages = warning",
          "SELECT pg_catalog.set_config('search_path', '', false)"}) {
      CELLAR_TRY(Put(setting));
    }
    return Status();
  }
  // As the usual search path finds it.
  Status FindTable() {
    CELLAR_TRY_ASSIGN(const std::vector<TextRow> found,
                      Query(fmt::format("SELECT c.oid::bigint FROM pg_catalog.pg_class c"
                                        " WHERE c.oid = {}::regclass AND c.relkind = 'r'",
                                        Literal(contents_.table))));
    if (found.empty()) {
      return SqlError(Code::kInvalid, "42809", "\"{}\" is not a table", contents_.table);
    }
    only_ = Text(found[0][0]);
    return Status();
  }
  // Of relations with oid c.oid.
  std::string Wanted() const { return whole() ? "" : fmt::format(" AND c.oid = {}", only_); }

  Status ReadSequences() {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> rows,
        Query(fmt::format(
            "SELECT c.oid::bigint, n.nspname, c.relname, pg_catalog.format_type(s.seqtypid, -1),"
            " s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle,"
            " pg_catalog.pg_get_userbyid(c.relowner),"
            " pg_catalog.obj_description(c.oid, 'pg_class'), d.refobjid::bigint, a.attname,"
            " d.deptype = 'i', v.last_value, v.is_called"
            " FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid"
            " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " JOIN pg_catalog.cellar_sequence_state v ON v.seqrelid = s.seqrelid"
            " LEFT JOIN pg_catalog.pg_depend d ON d.objid = c.oid AND d.deptype IN ('a', 'i')"
            " AND d.classid = 'pg_catalog.pg_class'::regclass"
            " AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjsubid > 0"
            " LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid"
            " AND a.attnum = d.refobjsubid"
            " WHERE {} AND c.relpersistence <> 't'{} ORDER BY c.oid",
            kUserSchemas, whole() ? "" : fmt::format(" AND d.refobjid = {}", only_))));
    for (const TextRow& row : rows) {
      Sequence& sequence = sequences_.emplace_back();
      sequence.oid = Text(row[0]);
      sequence.name = QuoteQualified(Text(row[1]), Text(row[2]));
      sequence.options = fmt::format(
          "START WITH {} INCREMENT BY {} MINVALUE {} MAXVALUE {} CACHE {}{}", Text(row[4]),
          Text(row[5]), Text(row[6]), Text(row[7]), Text(row[8]), IsTrue(row[9]) ? " CYCLE" : "");
      sequence.owner = Text(row[10]);
      sequence.comment = Text(row[11]);
      sequence.table_oid = Text(row[12]);
      sequence.column = Text(row[13]);
      sequence.identity = IsTrue(row[14]);
      sequence.last_value = Text(row[15]);
      sequence.is_called = IsTrue(row[16]);
      if (!sequence.identity) {
        sequence.options = fmt::format("AS {} {}", Text(row[3]), sequence.options);
      }
    }
    return Status();
  }

  Status ReadTables() {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> rows,
        Query(fmt::format("SELECT c.oid::bigint, n.nspname, c.relname,"
                          " pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c"
                          " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                          " WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {}{}"
                          " ORDER BY c.oid",
                          kUserSchemas, Wanted())));
    for (const TextRow& row : rows) {
      Table& table = tables_.emplace_back();
      table.oid = Text(row[0]);
      table.name = QuoteQualified(Text(row[1]), Text(row[2]));
      table.owner = Text(row[3]);
      CELLAR_TRY_ASSIGN(
          const std::vector<TextRow> constraints,
          Query(fmt::format("SELECT conname, contype::text,"
                            " pg_catalog.pg_get_constraintdef(oid), convalidated,"
                            " pg_catalog.obj_description(oid, 'pg_constraint')"
                            " FROM pg_catalog.pg_constraint WHERE conrelid = {}"
                            " AND contype IN ('p', 'u', 'c', 'f') ORDER BY contype, oid",
                            table.oid)));
      for (const TextRow& one : constraints) {
        table.constraints.push_back(
            {Text(one[0]), Text(one[2]), Text(one[4]), Text(one[1])[0], IsTrue(one[3])});
      }
      CELLAR_TRY_ASSIGN(
          const std::vector<TextRow> columns,
          Query(fmt::format("SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = {}"
                            " AND attnum > 0 AND NOT attisdropped AND attgenerated = ''"
                            " ORDER BY attnum",
                            table.oid)));
      for (const TextRow& column : columns) {
        table.copied_columns += table.copied_columns.empty() ? "(" : ", ";
        table.copied_columns += QuoteIdentifier(Text(column[0]));
      }
      if (!columns.empty()) table.copied_columns += ")";
    }
    return Status();
  }

  Status Owner(const char* kind, const std::string& name, const std::string& owner) {
    if (!contents_.owners || owner == kBootstrapRole) return Status();
    return Put(fmt::format("ALTER {} {} OWNER TO {}", kind, name, QuoteIdentifier(owner)));
  }
  Status CommentOn(const std::string& what, const std::string& comment) {
    if (comment.empty()) return Status();
    return Put(fmt::format("COMMENT ON {} IS {}", what, Literal(comment)));
  }

  Status MakeSchemas() {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> rows,
        Query(fmt::format(
            "SELECT n.nspname, pg_catalog.pg_get_userbyid(n.nspowner),"
            " pg_catalog.obj_description(n.oid, 'pg_namespace'),"
            " (SELECT pg_catalog.array_to_string(u.options, E'\\n') FROM pg_catalog.cellar_usage u"
            "  WHERE u.state = 'living' AND u.kind = 'schema'"
            "  AND u.object = '/' || pg_catalog.current_database() || '/' || n.nspname)"
            " FROM pg_catalog.pg_namespace n WHERE {} AND n.nspname <> 'public' ORDER BY n.oid",
            kUserSchemas)));
    for (const TextRow& row : rows) {
      const std::string name = QuoteIdentifier(Text(row[0]));
      CELLAR_TRY(Put("CREATE SCHEMA " + name));
      const std::string options = OptionsText(Lines(row[3]));
      if (!options.empty()) {
        limits_.push_back(fmt::format("ALTER SCHEMA {} SET ({})", name, options));
      }
      CELLAR_TRY(Owner("SCHEMA", name, Text(row[1])));
      CELLAR_TRY(CommentOn("SCHEMA " + name, Text(row[2])));
    }
    return Status();
  }

  Status MakeTypes() {
    if (!whole()) return Status();
    CELLAR_TRY_ASSIGN(const std::vector<TextRow> types,
                      Query(fmt::format("SELECT t.oid::bigint, n.nspname, t.typname,"
                                        " pg_catalog.pg_get_userbyid(t.typowner),"
                                        " pg_catalog.obj_description(t.oid, 'pg_type')"
                                        " FROM pg_catalog.pg_type t"
                                        " JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
                                        " WHERE t.typtype = 'e' AND {} ORDER BY t.oid",
                                        kUserSchemas)));
    for (const TextRow& type : types) {
      CELLAR_TRY_ASSIGN(
          const std::vector<TextRow> labels,
          Query(fmt::format("SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = {}"
                            " ORDER BY enumsortorder",
                            Text(type[0]))));
      const std::string name = QuoteQualified(Text(type[1]), Text(type[2]));
      std::string sql = fmt::format("CREATE TYPE {} AS ENUM (", name);
      for (size_t i = 0; i < labels.size(); ++i) {
        sql += (i > 0 ? ", " : "") + Literal(Text(labels[i][0]));
      }
      CELLAR_TRY(Put(sql + ")"));
      CELLAR_TRY(Owner("TYPE", name, Text(type[3])));
      CELLAR_TRY(CommentOn("TYPE " + name, Text(type[4])));
    }
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> collations,
        Query(fmt::format("SELECT n.nspname, c.collname, c.collprovider, c.colliculocale,"
                          " c.collcollate, c.collisdeterministic,"
                          " pg_catalog.pg_get_userbyid(c.collowner),"
                          " pg_catalog.obj_description(c.oid, 'pg_collation')"
                          " FROM pg_catalog.pg_collation c"
                          " JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace"
                          " WHERE {} ORDER BY c.oid",
                          kUserSchemas)));
    for (const TextRow& row : collations) {
      const std::string name = QuoteQualified(Text(row[0]), Text(row[1]));
      const bool icu = Text(row[2]) == "i";
      CELLAR_TRY(Put(fmt::format("CREATE COLLATION {} (provider = {}, locale = {}{})", name,
                                 icu ? "icu" : "libc", Literal(Text(row[icu ? 3 : 4])),
                                 IsTrue(row[5]) ? "" : ", deterministic = false")));
      CELLAR_TRY(Owner("COLLATION", name, Text(row[6])));
      CELLAR_TRY(CommentOn("COLLATION " + name, Text(row[7])));
    }
    return Status();
  }

  Status MakeSequences() {
    for (const Sequence& sequence : sequences_) {
      if (sequence.identity) continue;
      CELLAR_TRY(Put(fmt::format("CREATE SEQUENCE {} {}", sequence.name, sequence.options)));
      CELLAR_TRY(Owner("SEQUENCE", sequence.name, sequence.owner));
    }
    return Status();
  }
  Status OwnSequences() {
    for (const Sequence& sequence : sequences_) {
      CELLAR_TRY(CommentOn("SEQUENCE " + sequence.name, sequence.comment));
      if (sequence.identity || sequence.table_oid.empty()) continue;
      for (const Table& table : tables_) {
        if (table.oid != sequence.table_oid) continue;
        CELLAR_TRY(Put(fmt::format("ALTER SEQUENCE {} OWNED BY {}.{}", sequence.name, table.name,
                                   QuoteIdentifier(sequence.column))));
      }
    }
    return Status();
  }
  Status SetSequences() {
    for (const Sequence& sequence : sequences_) {
      CELLAR_TRY(Put(fmt::format("SELECT pg_catalog.setval({}, {}, {})", Literal(sequence.name),
                                 sequence.last_value, sequence.is_called ? "true" : "false")));
    }
    return Status();
  }

  Status MakeTable(const Table& table) {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> columns,
        Query(fmt::format(
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,"
            " a.attidentity::text, a.attgenerated::text,"
            " pg_catalog.pg_get_expr(d.adbin, d.adrelid),"
            " CASE WHEN a.attcollation <> t.typcollation THEN pg_catalog.quote_ident(m.nspname)"
            " || '.' || pg_catalog.quote_ident(l.collname) END"
            " FROM pg_catalog.pg_attribute a"
            " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
            " LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
            " LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation"
            " LEFT JOIN pg_catalog.pg_namespace m ON m.oid = l.collnamespace"
            " WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            table.oid)));
    std::string body;
    const auto line = [&body](const std::string& text) {
      body += (body.empty() ? "\n    " : ",\n    ") + text;
    };
    for (const TextRow& column : columns) {
      std::string text = QuoteIdentifier(Text(column[0])) + " " + Text(column[1]);
      if (column[6]) text += " COLLATE " + *column[6];
      const std::string identity = Text(column[3]);
      if (!identity.empty()) {
        text += fmt::format(" GENERATED {} AS IDENTITY", identity == "a" ? "ALWAYS" : "BY DEFAULT");
        for (const Sequence& sequence : sequences_) {
          if (!sequence.identity || sequence.table_oid != table.oid ||
              sequence.column != Text(column[0]))
            continue;
          text += fmt::format(" (SEQUENCE NAME {} {})", sequence.name, sequence.options);
        }
      } else if (column[5]) {
        text += Text(column[4]) == "s" ? fmt::format(" GENERATED ALWAYS AS ({}) STORED", *column[5])
                                       : " DEFAULT " + *column[5];
      }
      if (IsTrue(column[2])) text += " NOT NULL";
      line(text);
    }
    for (const Constraint& constraint : table.constraints) {
      if (constraint.type == 'p' || (constraint.type == 'c' && constraint.validated)) {
        line(fmt::format("CONSTRAINT {} {}", QuoteIdentifier(constraint.name),
                         constraint.definition));
      }
    }
    CELLAR_TRY_ASSIGN(const std::vector<TextRow> about,
                      Query(fmt::format("SELECT pg_catalog.array_to_string(c.reloptions, E'\\n')"
                                        " FROM pg_catalog.pg_class c WHERE c.oid = {}",
                                        table.oid)));
    std::vector<std::string> options, limits;
    bool has_layout = false;
    for (const std::string& option : Lines(about[0][0])) {
      has_layout |= option.starts_with("layout=");
      (IsLimit(option) ? limits : options).push_back(option);
    }
    if (!limits.empty()) {
      limits_.push_back(fmt::format("ALTER TABLE {} SET ({})", table.name, OptionsText(limits)));
    }
    if (!has_layout) options.push_back("layout=pages");
    CELLAR_TRY(Put(
        fmt::format("CREATE TABLE {} ({}\n) WITH ({})", table.name, body, OptionsText(options))));
    return Owner("TABLE", table.name, table.owner);
  }

  Status CopyTable(const Table& table) {
    if (table.copied_columns.empty()) return Status();
    const std::string what = fmt::format("COPY {} {}", table.name, table.copied_columns);
    CELLAR_TRY(target_->BeginCopy(table.name, what + " FROM stdin"));
    CopySink sink(target_);
    CELLAR_TRY(session_->ExecuteSimple(
        what + " TO STDOUT" + (contents_.csv ? " WITH (FORMAT csv, HEADER true)" : ""), &sink));
    return target_->EndCopy();
  }

  Status AddConstraints(const Table& table, std::string_view types) {
    for (const Constraint& constraint : table.constraints) {
      if (types.find(constraint.type) == std::string_view::npos) continue;
      if (constraint.type == 'c' && constraint.validated) continue;  // made with the table
      std::string definition = constraint.definition;
      if (!constraint.validated && !definition.ends_with("NOT VALID")) definition += " NOT VALID";
      CELLAR_TRY(Put(fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}", table.name,
                                 QuoteIdentifier(constraint.name), definition)));
    }
    return Status();
  }
  Status AddKeysAndIndexes(const Table& table) {
    CELLAR_TRY(AddConstraints(table, "u"));
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> rows,
        Query(fmt::format("SELECT pg_catalog.pg_get_indexdef(i.indexrelid)"
                          " FROM pg_catalog.pg_index i WHERE i.indrelid = {}"
                          " AND NOT i.indisprimary AND i.indisvalid AND NOT EXISTS"
                          " (SELECT FROM pg_catalog.pg_constraint o"
                          "  WHERE o.conindid = i.indexrelid AND o.contype IN ('p', 'u', 'x'))"
                          " ORDER BY i.indexrelid",
                          table.oid)));
    for (const TextRow& row : rows) CELLAR_TRY(Put(Text(row[0])));
    return Status();
  }

  // Each after those that it names.
  Status MakeViews() {
    CELLAR_TRY_ASSIGN(const std::vector<TextRow> views,
                      Query(fmt::format("SELECT c.oid::bigint, n.nspname, c.relname,"
                                        " pg_catalog.pg_get_viewdef(c.oid),"
                                        " pg_catalog.pg_get_userbyid(c.relowner),"
                                        " pg_catalog.obj_description(c.oid, 'pg_class')"
                                        " FROM pg_catalog.pg_class c"
                                        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                                        " WHERE c.relkind = 'v' AND c.relpersistence <> 't' AND {}"
                                        " ORDER BY c.oid",
                                        kUserSchemas)));
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> named,
        Query("SELECT DISTINCT r.ev_class::bigint, d.refobjid::bigint"
              " FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d ON d.objid = r.oid"
              " WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass"
              " AND d.refclassid = 'pg_catalog.pg_class'::regclass"
              " AND d.refobjid <> r.ev_class"));
    std::map<std::string, std::set<std::string>> needs;
    for (const TextRow& row : named) needs[Text(row[0])].insert(Text(row[1]));
    std::set<std::string> waiting;
    for (const TextRow& view : views) waiting.insert(Text(view[0]));
    for (bool moved = true; moved && !waiting.empty();) {
      moved = false;
      for (const TextRow& view : views) {
        const std::string oid = Text(view[0]);
        if (waiting.count(oid) == 0) continue;
        bool ready = true;
        for (const std::string& other : needs[oid]) ready &= waiting.count(other) == 0;
        if (!ready) continue;
        waiting.erase(oid);
        moved = true;
        CELLAR_TRY(MakeView(view));
      }
    }
    return Status();
  }
  Status MakeView(const TextRow& view) {
    const std::string name = QuoteQualified(Text(view[1]), Text(view[2]));
    std::string definition = Text(view[3]);
    while (!definition.empty() && (definition.back() == ';' || definition.back() == '\n')) {
      definition.pop_back();
    }
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> columns,
        Query(fmt::format("SELECT attname, pg_catalog.col_description(attrelid, attnum)"
                          " FROM pg_catalog.pg_attribute WHERE attrelid = {} AND attnum > 0"
                          " ORDER BY attnum",
                          Text(view[0]))));
    std::string names;
    for (const TextRow& column : columns) {
      names += (names.empty() ? "" : ", ") + QuoteIdentifier(Text(column[0]));
    }
    CELLAR_TRY(Put(fmt::format("CREATE VIEW {} ({}) AS\n{}", name, names, definition)));
    CELLAR_TRY(Owner("VIEW", name, Text(view[4])));
    CELLAR_TRY(CommentOn("VIEW " + name, Text(view[5])));
    for (const TextRow& column : columns) {
      CELLAR_TRY(CommentOn(fmt::format("COLUMN {}.{}", name, QuoteIdentifier(Text(column[0]))),
                           Text(column[1])));
    }
    return Status();
  }

  Status Comment(const Table& table) {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> of_table,
        Query(fmt::format("SELECT pg_catalog.obj_description({}, 'pg_class')", table.oid)));
    CELLAR_TRY(CommentOn("TABLE " + table.name, Text(of_table[0][0])));
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> columns,
        Query(fmt::format("SELECT attname, pg_catalog.col_description(attrelid, attnum)"
                          " FROM pg_catalog.pg_attribute WHERE attrelid = {} AND attnum > 0"
                          " AND NOT attisdropped ORDER BY attnum",
                          table.oid)));
    for (const TextRow& column : columns) {
      CELLAR_TRY(
          CommentOn(fmt::format("COLUMN {}.{}", table.name, QuoteIdentifier(Text(column[0]))),
                    Text(column[1])));
    }
    for (const Constraint& constraint : table.constraints) {
      CELLAR_TRY(CommentOn(
          fmt::format("CONSTRAINT {} ON {}", QuoteIdentifier(constraint.name), table.name),
          constraint.comment));
    }
    CELLAR_TRY_ASSIGN(const std::vector<TextRow> indexes,
                      Query(fmt::format("SELECT n.nspname, c.relname,"
                                        " pg_catalog.obj_description(c.oid, 'pg_class')"
                                        " FROM pg_catalog.pg_index i"
                                        " JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid"
                                        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                                        " WHERE i.indrelid = {} ORDER BY c.oid",
                                        table.oid)));
    for (const TextRow& index : indexes) {
      CELLAR_TRY(
          CommentOn("INDEX " + QuoteQualified(Text(index[0]), Text(index[1])), Text(index[2])));
    }
    return Status();
  }

  Status AlterDatabase() {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> rows,
        Query(
            "SELECT d.datname, pg_catalog.pg_get_userbyid(d.datdba),"
            " pg_catalog.shobj_description(d.oid, 'pg_database'),"
            " (SELECT pg_catalog.array_to_string(u.options, E'\\n') FROM pg_catalog.cellar_usage u"
            "  WHERE u.state = 'living' AND u.kind = 'database' AND u.object = '/' || d.datname)"
            " FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()"));
    if (rows.empty()) return Status();  // it was dropped meanwhile
    const std::string name = QuoteIdentifier(Text(rows[0][0]));
    const std::string options = OptionsText(Lines(rows[0][3]));
    if (!options.empty()) {
      CELLAR_TRY(Put(fmt::format("ALTER DATABASE {} SET ({})", name, options)));
    }
    CELLAR_TRY(Owner("DATABASE", name, Text(rows[0][1])));
    CELLAR_TRY(CommentOn("DATABASE " + name, Text(rows[0][2])));
    if (!contents_.privileges) return Status();
    return Grant({"'DATABASE ' || pg_catalog.quote_ident(d.datname)", "d.datdba", "d.datacl",
                  "pg_catalog.pg_database d", "d.datname = pg_catalog.current_database()", "1"});
  }

  // Things with a list of privileges, as expressions and conditions of SQL.
  struct Listed {
    const char* object;  // "TABLE s.t"
    const char* owner;   // its oid
    const char* acl;
    std::string from, where;
    const char* order;
    const char* column = "NULL::text";  // of the object
    const char* before = "''";          // what the statement begins with
  };
  Status Grant(const Listed& listed) {
    CELLAR_TRY_ASSIGN(
        const std::vector<TextRow> rows,
        Query(fmt::format(
            "SELECT {}, {}, {}, pg_catalog.pg_get_userbyid({}), g.privilege_type, g.is_grantable,"
            " CASE WHEN g.grantee <> 0 THEN pg_catalog.pg_get_userbyid(g.grantee) END"
            " FROM {} LEFT JOIN LATERAL (SELECT x.* FROM pg_catalog.aclexplode({}) x) g ON true"
            " WHERE {} IS NOT NULL AND {} ORDER BY {}",
            listed.before, listed.object, listed.column, listed.owner, listed.from, listed.acl,
            listed.acl, listed.where, listed.order)));
    for (size_t at = 0; at < rows.size(); ++at) {
      const TextRow& row = rows[at];
      const std::string before = Text(row[0]), object = Text(row[1]);
      const bool first = at == 0 || !std::equal(row.begin(), row.begin() + 3, rows[at - 1].begin());
      if (first && !row[2]) {
        CELLAR_TRY(Put(fmt::format("{}REVOKE ALL ON {} FROM PUBLIC", before, object)));
        CELLAR_TRY(Put(fmt::format("{}REVOKE ALL ON {} FROM {}", before, object,
                                   QuoteIdentifier(Text(row[3])))));
      }
      if (!row[4]) continue;  // a list without items
      const std::string columns = row[2] ? fmt::format(" ({})", QuoteIdentifier(*row[2])) : "";
      CELLAR_TRY(Put(fmt::format("{}GRANT {}{} ON {} TO {}{}", before, *row[4], columns, object,
                                 row[6] ? QuoteIdentifier(*row[6]) : "PUBLIC",
                                 IsTrue(row[5]) ? " WITH GRANT OPTION" : "")));
    }
    return Status();
  }
  Status GrantAll() {
    const std::string namespaces = " JOIN pg_catalog.pg_namespace n ON n.oid = ";
    if (whole()) {
      CELLAR_TRY(Grant({"'SCHEMA ' || pg_catalog.quote_ident(n.nspname)", "n.nspowner", "n.nspacl",
                        "pg_catalog.pg_namespace n", std::string(kUserSchemas), "n.oid"}));
      CELLAR_TRY(
          Grant({"'TYPE ' || pg_catalog.quote_ident(n.nspname) || '.' ||"
                 " pg_catalog.quote_ident(t.typname)",
                 "t.typowner", "t.typacl", "pg_catalog.pg_type t" + namespaces + "t.typnamespace",
                 fmt::format("t.typtype = 'e' AND {}", kUserSchemas), "t.oid"}));
    }
    const std::string relations = "pg_catalog.pg_class c" + namespaces + "c.relnamespace";
    CELLAR_TRY(Grant(
        {"CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END ||"
         " pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)",
         "c.relowner", "c.relacl", relations,
         fmt::format("c.relkind IN ('r', 'v', 'S') AND {}{}", kUserSchemas, Wanted()), "c.oid"}));
    CELLAR_TRY(
        Grant({"'TABLE ' || pg_catalog.quote_ident(n.nspname) || '.' ||"
               " pg_catalog.quote_ident(c.relname)",
               "c.relowner", "a.attacl",
               relations + " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid",
               fmt::format("NOT a.attisdropped AND c.relkind IN ('r', 'v') AND {}{}", kUserSchemas,
                           Wanted()),
               "c.oid, a.attnum", "a.attname"}));
    if (!whole()) return Status();
    // Last, for they are of objects to come.
    return Grant(
        {"CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES'"
         " WHEN 'n' THEN 'SCHEMAS' WHEN 'T' THEN 'TYPES' ELSE 'FUNCTIONS' END",
         "d.defaclrole", "d.defaclacl",
         "pg_catalog.pg_default_acl d LEFT" + namespaces + "d.defaclnamespace", "true", "1, 2",
         "NULL::text",
         "'ALTER DEFAULT PRIVILEGES FOR ROLE ' ||"
         " pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(d.defaclrole)) ||"
         " coalesce(' IN SCHEMA ' || pg_catalog.quote_ident(n.nspname), '') || ' '"});
  }

  session::Session* const session_;
  const DumpContents& contents_;
  DumpTarget* const target_;
  std::string only_;                 // the oid of the one table
  std::vector<std::string> limits_;  // statements for when all rows are there
  std::vector<Sequence> sequences_;
  std::vector<Table> tables_;
};

}  // namespace

Status DumpDatabase(session::Session* session, const DumpContents& contents, DumpTarget* target) {
  return Dumper(session, contents, target).Run();
}

Status DumpRoles(session::Session* session, DumpTarget* target) {
  CELLAR_TRY_ASSIGN(
      const std::vector<TextRow> roles,
      QueryTexts(session,
                 "SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin,"
                 " rolbypassrls, rolconnlimit, rolpassword, rolvaliduntil,"
                 " pg_catalog.shobj_description(oid, 'pg_authid')"
                 " FROM pg_catalog.pg_authid WHERE rolname !~ '^pg_' ORDER BY oid"));
  const auto flag = [](const std::optional<std::string>& value, const char* name) {
    return std::string(IsTrue(value) ? " " : " NO") + name;
  };
  for (const TextRow& role : roles) {
    const std::string name = QuoteIdentifier(Text(role[0]));
    const bool bootstrap = Text(role[0]) == kBootstrapRole;
    if (!bootstrap) CELLAR_TRY(target->Statement("CREATE ROLE " + name));
    std::string alter = "ALTER ROLE " + name + " WITH" + flag(role[1], "SUPERUSER") +
                        flag(role[2], "INHERIT") + flag(role[3], "CREATEROLE") +
                        flag(role[4], "CREATEDB") + flag(role[5], "LOGIN") +
                        flag(role[6], "BYPASSRLS");
    if (bootstrap) alter = "ALTER ROLE " + name + " WITH";
    bool says = !bootstrap;
    if (Text(role[7]) != "-1" && !bootstrap) alter += " CONNECTION LIMIT " + Text(role[7]);
    if (role[8]) {
      alter += " PASSWORD " + Literal(*role[8]);
      says = true;
    }
    if (role[9]) {
      alter += " VALID UNTIL " + Literal(*role[9]);
      says = true;
    }
    if (says) CELLAR_TRY(target->Statement(alter));
    if (role[10]) {
      CELLAR_TRY(
          target->Statement(fmt::format("COMMENT ON ROLE {} IS {}", name, Literal(*role[10]))));
    }
  }
  CELLAR_TRY_ASSIGN(
      const std::vector<TextRow> members,
      QueryTexts(session,
                 "SELECT pg_catalog.pg_get_userbyid(roleid), pg_catalog.pg_get_userbyid(member),"
                 " admin_option FROM pg_catalog.pg_auth_members"
                 " WHERE pg_catalog.pg_get_userbyid(member) !~ '^pg_' ORDER BY roleid, member"));
  for (const TextRow& row : members) {
    CELLAR_TRY(target->Statement(fmt::format("GRANT {} TO {}{}", QuoteIdentifier(Text(row[0])),
                                             QuoteIdentifier(Text(row[1])),
                                             IsTrue(row[2]) ? " WITH ADMIN OPTION" : "")));
  }
  return Status();
}

Status DumpSettings(session::Session* session, const std::string& only, DumpTarget* target) {
  CELLAR_TRY_ASSIGN(
      const std::vector<TextRow> rows,
      QueryTexts(
          session,
          fmt::format("SELECT r.rolname, d.datname, pg_catalog.split_part(c.setting, '=', 1),"
                      " pg_catalog.substr(c.setting, pg_catalog.strpos(c.setting, '=') + 1)"
                      " FROM pg_catalog.pg_db_role_setting s"
                      " LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole"
                      " LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase,"
                      " LATERAL pg_catalog.unnest(s.setconfig) WITH ORDINALITY c(setting, place)"
                      " WHERE (s.setrole = 0 OR r.oid IS NOT NULL) AND (s.setdatabase = 0"
                      " OR d.datallowconn AND NOT d.datistemplate{})"
                      " ORDER BY s.setrole, s.setdatabase, c.place",
                      only.empty() ? "" : " AND d.datname = " + Literal(only))));
  for (const TextRow& row : rows) {
    const std::string database = row[1] ? QuoteIdentifier(*row[1]) : "";
    std::string whose = "ROLE " + (row[0] ? QuoteIdentifier(*row[0]) : "ALL");
    if (row[1]) whose = row[0] ? whose + " IN DATABASE " + database : "DATABASE " + database;
    const std::string name = Text(row[2]), value = Text(row[3]);
    CELLAR_TRY(
        target->Statement(fmt::format("ALTER {} SET {} TO {}", whose, name,
                                      name == "search_path" ? ListText(value) : Literal(value))));
  }
  return Status();
}

}  // namespace cellar::dump
