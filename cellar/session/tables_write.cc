// Writes of the table API: through the plans of INSERT, UPDATE and DELETE, so that defaults,
// constraints, references and privileges are those of SQL. A plan is made once for each table and
// set of columns; where it says that there is only writing to do, tables_direct.cc does that.
#include <algorithm>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/session/error_values.h"
#include "cellar/session/still_current.h"
#include "cellar/session/tables_internal.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session::tables {
namespace {

constexpr std::string_view kNoDataFound = "P0002";
constexpr size_t kMaxPlans = 256;  // of a table, in one worker

Status NoRow() { return SqlError(Code::kNotFound, kNoDataFound, "there is no row with this key"); }

std::string Target(Session::Impl* s, const catalog::TableDescriptor& table) {
  return sql::QuoteQualified(s->SchemaName(table.parent), table.name) + " AS t";
}

std::string Name(const KnownTable& known, uint32_t position) {
  return sql::QuoteIdentifier(known.schema->columns[position].name);
}

// Positions of the primary key's columns; none: rows have a hidden id.
std::vector<uint32_t> KeyPositions(const KnownTable& known) {
  std::vector<uint32_t> positions;
  const TableIndex* primary = known.schema->FindIndex("");
  if (primary == nullptr) return positions;
  for (const TableIndexColumn& column : primary->key)
    positions.push_back(static_cast<uint32_t>(column.column));
  return positions;
}

Result<std::vector<uint32_t>> NeedKey(const KnownTable& known) {
  std::vector<uint32_t> positions = KeyPositions(known);
  if (!positions.empty()) return positions;
  return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                  "table \"{}\" has no primary key", known.table->name);
}

struct Changed {
  uint64_t affected = 0, replaced = 0;
};

// Plans and runs statements of one call.
class Writer {
 public:
  Writer(Worker* worker, KnownTable* known) : worker_(worker), s_(*worker->s), known_(known) {}

  // The plan kept under `shape`, or made of `text`, whose parameters are columns at `positions`.
  Result<CompiledWrite*> Plan(const std::string& shape, std::span<const uint32_t> positions,
                              bool external, const std::function<std::string()>& text) {
    auto at = known_->writes.find(shape);
    if (at == known_->writes.end()) {
      if (known_->writes.size() >= kMaxPlans) known_->writes.clear();
      CompiledWrite made;
      CELLAR_TRY(Make(text(), positions, external, &made));
      if (worker_->direct) made.direct = DirectShape::Of(*known_, *made.plan, positions);
      at = known_->writes.emplace(shape, std::move(made)).first;
    }
    return &at->second;
  }

  Status Make(const std::string& text, std::span<const uint32_t> positions, bool external,
              CompiledWrite* made) {
    std::vector<Type> types;
    std::vector<sql::OutputColumn> outputs;
    for (uint32_t position : positions) {
      const TableColumn& column = known_->schema->columns[position];
      types.push_back(column.type);
      outputs.push_back({column.name, column.type, 0, 0});
    }
    CELLAR_TRY_ASSIGN(sql::Statement statement, sql::ParseOne(text));
    FoldingPlanner planner(s_, types);
    sql::PlannerContext& context = planner.context;
    Result<std::shared_ptr<const sql::Plan>> planned = sql::PlanStatement(*statement.ast, context);
    if (!planned.ok()) return std::move(planned).status().WithLocation(-1);
    // Nobody else holds this plan yet.
    auto plan = std::const_pointer_cast<sql::Plan>(*planned);
    CELLAR_TRY(s_.CheckPlan(*plan));
    if (external) CELLAR_TRY(ReadFromOutside(std::move(outputs), plan.get()));
    made->plan = std::move(plan);
    made->external = external;
    return Status();
  }

  // What every run asks first.
  Status Admit(const CompiledWrite& write) {
    CELLAR_TRY(s_.CheckWritable("writes"));
    return s_.RequireTables(*write.plan);
  }
  table::Access* access() { return s_.transaction->access.get(); }

  // One run: with the rows of `batch`, or with parameters. Rows that it returns go to `returned`.
  Result<Changed> Run(CompiledWrite* write, RowBatch* batch, std::span<const Datum> parameters,
                      RowBatch* returned) {
    CELLAR_TRY(Admit(*write));
    s_.SetUpContext(&write->context);
    write->context.parameters = parameters;
    const catalog::SnapshotPtr catalog = s_.CurrentCatalog();
    CELLAR_TRY_ASSIGN(sql::ExecEnvironment environment,
                      s_.MakeEnvironment(s_.statement, &write->context, catalog.get()));
    size_t next = 0;
    if (write->external) {
      environment.external_rows = [batch, &next](RowBatch* rows) -> Result<bool> {
        const size_t end = std::min(batch->size(), next + kBatchRows);
        if (next == end) return false;
        SliceBatch(*batch, next, end, rows);
        next = end;
        return true;
      };
    }
    std::unique_ptr<sql::Execution> execution;
    if (write->spare != nullptr) {
      execution = std::move(write->spare);
      CELLAR_TRY(execution->Restart(environment));
    } else {
      CELLAR_TRY_ASSIGN(execution, sql::Execution::Open(write->plan, environment));
    }
    while (true) {
      CELLAR_TRY_ASSIGN(const RowBatch* rows, execution->Next());
      if (rows == nullptr) break;
      if (returned != nullptr) returned->AppendAll(*rows);
    }
    const Changed changed{execution->rows_affected(), execution->rows_replaced()};
    if (execution->restartable() && changed.affected <= kBatchRows) {
      execution->Release();
      write->spare = std::move(execution);
    }
    return changed;
  }

  // "t.a = $1 AND t.b = $2", parameters from `first` on.
  std::string WhereKey(std::span<const uint32_t> key, size_t first) const {
    std::string text;
    for (size_t i = 0; i < key.size(); ++i) {
      if (i > 0) text += " AND ";
      text += fmt::format("t.{} = ${}", Name(*known_, key[i]), first + i);
    }
    return text;
  }

  std::string InsertText(std::span<const uint32_t> positions) const {
    std::string names, values;
    for (size_t i = 0; i < positions.size(); ++i) {
      names += fmt::format("{}{}", i == 0 ? "" : ", ", Name(*known_, positions[i]));
      values += fmt::format("{}${}", i == 0 ? "" : ", ", i + 1);
    }
    return fmt::format("INSERT INTO {} ({}) VALUES ({})", Target(&s_, *known_->table), names,
                       values);
  }

  std::string ConflictText(std::span<const uint32_t> key) const {
    std::string names;
    for (uint32_t position : key)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", Name(*known_, position));
    return fmt::format(" ON CONFLICT ({})", names);
  }

  // Whether each expectation is met; rows whose are not go to result->unmet.
  Status Expect(std::span<const Expectation> expectations, std::span<const uint32_t> key,
                const std::function<Result<Datum>(uint32_t row, size_t i)>& key_value,
                uint32_t rows, WriteResult* result);

  Worker* worker_;
  Session::Impl& s_;
  KnownTable* known_;
};

bool SameValue(Datum a, Datum b, Type type) {
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (PhysicalOf(type) == Physical::kBytes && !codec::IsKeyType(type))
    return a.bytes() == b.bytes();
  return CompareDatums(a, b, type) == 0;
}

Status Writer::Expect(std::span<const Expectation> expectations, std::span<const uint32_t> key,
                      const std::function<Result<Datum>(uint32_t row, size_t i)>& key_value,
                      uint32_t rows, WriteResult* result) {
  if (expectations.empty()) return Status();
  CELLAR_TRY(NeedKey(*known_).status());
  std::vector<uint32_t> columns(key.begin(), key.end());
  for (const Expectation& expectation : expectations) {
    if (expectation.row >= rows) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "an expectation of row {}, of {}", expectation.row, rows);
    }
    for (const auto& [name, cell] : expectation.cells) {
      CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known_->schema, name));
      if (std::find(columns.begin(), columns.end(), position) == columns.end())
        columns.push_back(position);
    }
  }
  CELLAR_TRY(worker_->CheckSelect(known_, columns));
  table::ScanSpec spec;
  spec.table = known_->table;
  spec.index = known_->table->primary().id;
  for (uint32_t position : columns) spec.columns.push_back(known_->ids[position]);
  std::vector<Type> types;
  for (uint32_t position : key) types.push_back(known_->schema->columns[position].type);
  RowBatch keys, found;
  keys.Reset(types);
  std::vector<Datum> values(key.size());
  for (const Expectation& expectation : expectations) {
    for (size_t i = 0; i < key.size(); ++i) {
      CELLAR_TRY_ASSIGN(values[i], key_value(expectation.row, i));
    }
    keys.AppendRow(values);
  }
  std::vector<uint32_t> key_row;
  CELLAR_TRY(s_.transaction->access->Lookup(spec, keys, &found, &key_row));
  std::vector<int64_t> row_of(expectations.size(), -1);
  for (size_t row = 0; row < key_row.size(); ++row)
    row_of[key_row[row]] = static_cast<int64_t>(row);
  Arena arena;
  for (size_t i = 0; i < expectations.size(); ++i) {
    const Expectation& expectation = expectations[i];
    bool met = (row_of[i] < 0) == expectation.absent;
    if (met && !expectation.absent) {
      for (const auto& [name, cell] : expectation.cells) {
        const auto position = static_cast<uint32_t>(known_->schema->FindColumn(name));
        const auto place = std::find(columns.begin(), columns.end(), position) - columns.begin();
        const Type type = known_->schema->columns[position].type;
        CELLAR_TRY_ASSIGN(Datum value, cell.To(type, &arena));
        const ColumnVector& stored = found.column(static_cast<size_t>(place));
        met = met && SameValue(stored.Get(static_cast<size_t>(row_of[i])), value, type);
      }
    }
    if (!met) result->unmet.push_back(expectation.row);
  }
  result->applied = result->unmet.empty();
  return Status();
}

// Cells of some rows that all say something about the same columns.
struct Group {
  std::vector<uint32_t> columns;  // places in the batch
  std::vector<uint32_t> rows;
};

std::vector<Group> GroupRows(const CellBatch& cells) {
  std::vector<Group> groups;
  const size_t columns = cells.positions.size(), rows = cells.rows.size();
  const bool all = std::all_of(cells.unset.begin(), cells.unset.end(),
                               [](const auto& flags) { return flags.empty(); });
  if (all) {
    Group& group = groups.emplace_back();
    for (uint32_t c = 0; c < columns; ++c) group.columns.push_back(c);
    for (uint32_t row = 0; row < rows; ++row) group.rows.push_back(row);
    return groups;
  }
  std::map<std::string, size_t> known;
  std::string pattern(columns, '0');
  for (uint32_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < columns; ++c) {
      const bool unset = !cells.unset[c].empty() && cells.unset[c][row] != 0;
      pattern[c] = unset ? '0' : '1';
    }
    auto [at, fresh] = known.emplace(pattern, groups.size());
    if (fresh) {
      Group& group = groups.emplace_back();
      for (uint32_t c = 0; c < columns; ++c) {
        if (pattern[c] == '1') group.columns.push_back(c);
      }
    }
    groups[at->second].rows.push_back(row);
  }
  return groups;
}

std::string Shape(std::string_view kind, std::span<const uint32_t> positions) {
  std::string shape(kind);
  shape.append(reinterpret_cast<const char*>(positions.data()), positions.size_bytes());
  return shape;
}

// Whether nothing that a row without other cells would break can break: then INSERT .. ON CONFLICT
// does, which looks at the row as if it were new before it looks for the one that is there.
bool MakesWholeRows(const KnownTable& known, std::span<const uint32_t> columns) {
  const bool checked = !known.table->checks.empty();
  for (uint32_t i = 0; i < known.schema->columns.size(); ++i) {
    const TableColumn& column = known.schema->columns[i];
    if (column.generated || std::find(columns.begin(), columns.end(), i) != columns.end()) continue;
    if (column.not_null || column.has_default || checked) return false;
  }
  return true;
}

// The group's rows by whether the table has them.
Status Split(Writer* writer, const CellBatch& cells, const Group& group,
             std::span<const uint32_t> key, std::span<const size_t> key_places,
             std::vector<uint32_t>* present, std::vector<uint32_t>* absent) {
  const KnownTable& known = *writer->known_;
  table::ScanSpec spec;
  spec.table = known.table;
  spec.index = known.table->primary().id;
  RowBatch keys, found;
  keys.columns().resize(key.size());
  for (size_t i = 0; i < key.size(); ++i) {
    spec.columns.push_back(known.ids[key[i]]);
    const ColumnVector& from = cells.rows.column(group.columns[key_places[i]]);
    keys.column(i).Reset(from.type());
    keys.column(i).Resize(group.rows.size());
    for (size_t row = 0; row < group.rows.size(); ++row)
      keys.column(i).Set(row, from.Get(group.rows[row]));
  }
  keys.SetSize(group.rows.size());
  std::vector<uint32_t> key_row;
  CELLAR_TRY(writer->s_.transaction->access->Lookup(spec, keys, &found, &key_row));
  std::vector<uint8_t> there(group.rows.size());
  for (uint32_t row : key_row) there[row] = 1;
  present->clear();
  absent->clear();
  for (size_t row = 0; row < group.rows.size(); ++row)
    (there[row] ? present : absent)->push_back(group.rows[row]);
  return Status();
}

bool KeysDiffer(DirectShape* shape, const CellBatch& cells, const Group& group) {
  if (group.rows.size() < 2) return true;
  shape->AddRefs(cells, group.columns, group.rows);
  std::sort(shape->refs.begin(), shape->refs.end());
  return std::adjacent_find(shape->refs.begin(), shape->refs.end()) == shape->refs.end();
}

Status PutGroup(Writer* writer, PutMode mode, const CellBatch& cells,
                std::span<const uint32_t> positions, const Group& group, WriteResult* result) {
  const KnownTable& known = *writer->known_;
  std::vector<uint32_t> columns;
  columns.reserve(group.columns.size());
  for (uint32_t place : group.columns) columns.push_back(positions[place]);
  const std::vector<uint32_t> key = KeyPositions(known);
  std::vector<size_t> key_places;
  for (uint32_t position : key) {
    auto at = std::find(columns.begin(), columns.end(), position);
    if (at != columns.end()) key_places.push_back(static_cast<size_t>(at - columns.begin()));
  }
  const bool keyed = !key.empty() && key_places.size() == key.size();
  if (mode == PutMode::kUpdate) {
    if (!keyed) {
      return SqlError(Code::kInvalid, sqlstate::kNotNullViolation,
                      "an update needs a value for each column of the primary key");
    }
    CELLAR_TRY_ASSIGN(CompiledWrite * write, writer->Plan(Shape("u", columns), columns, false, [&] {
      std::string text;
      for (size_t i = 0; i < columns.size(); ++i) {
        // A row of a key alone changes nothing, but has to be there.
        if (columns.size() > key.size() &&
            std::find(key.begin(), key.end(), columns[i]) != key.end()) {
          continue;
        }
        text += fmt::format("{}{} = ${}", text.empty() ? "" : ", ", Name(known, columns[i]), i + 1);
      }
      std::string where;
      for (size_t i = 0; i < key.size(); ++i) {
        where += fmt::format("{}t.{} = ${}", i == 0 ? "" : " AND ", Name(known, key[i]),
                             key_places[i] + 1);
      }
      return fmt::format("UPDATE {} SET {} WHERE {}", Target(&writer->s_, *known.table), text,
                         where);
    }));
    if (write->direct != nullptr && group.rows.size() <= kBatchRows &&
        KeysDiffer(write->direct.get(), cells, group)) {
      CELLAR_TRY(writer->Admit(*write));
      CELLAR_TRY_ASSIGN(bool all, DirectUpdate(writer->access(), known, write->direct.get(), cells,
                                               group.columns, group.rows, result));
      return all ? Status() : NoRow();
    }
    std::vector<Datum> parameters(columns.size());
    for (uint32_t row : group.rows) {
      for (size_t i = 0; i < columns.size(); ++i)
        parameters[i] = cells.rows.column(group.columns[i]).Get(row);
      CELLAR_TRY_ASSIGN(Changed changed, writer->Run(write, nullptr, parameters, nullptr));
      if (changed.affected == 0) return NoRow();
      result->updated += changed.affected;
    }
    return Status();
  }
  if (columns.empty()) {
    CELLAR_TRY_ASSIGN(CompiledWrite * write, writer->Plan("d", {}, false, [&] {
      return fmt::format("INSERT INTO {} DEFAULT VALUES", Target(&writer->s_, *known.table));
    }));
    for (size_t i = 0; i < group.rows.size(); ++i) {
      CELLAR_TRY_ASSIGN(Changed changed, writer->Run(write, nullptr, {}, nullptr));
      result->inserted += changed.affected;
    }
    return Status();
  }
  const bool upsert = mode == PutMode::kUpsert && keyed;
  if (upsert && !MakesWholeRows(known, columns)) {
    // Cells of present rows must not be held to what a new row needs.
    Group present = group, absent = group;
    CELLAR_TRY(Split(writer, cells, group, key, key_places, &present.rows, &absent.rows));
    if (!present.rows.empty()) {
      CELLAR_TRY(PutGroup(writer, PutMode::kUpdate, cells, positions, present, result));
    }
    if (absent.rows.empty()) return Status();
    return PutGroup(writer, PutMode::kInsert, cells, positions, absent, result);
  }
  CELLAR_TRY_ASSIGN(CompiledWrite * write,
                    writer->Plan(Shape(upsert ? "p" : "i", columns), columns, true, [&] {
                      std::string text = writer->InsertText(columns);
                      if (!upsert) return text;
                      text += writer->ConflictText(key);
                      std::string set;
                      for (uint32_t position : columns) {
                        if (std::find(key.begin(), key.end(), position) != key.end()) continue;
                        set += fmt::format("{}{} = excluded.{}", set.empty() ? "" : ", ",
                                           Name(known, position), Name(known, position));
                      }
                      return text + (set.empty() ? " DO NOTHING" : " DO UPDATE SET " + set);
                    }));
  if (write->direct != nullptr && group.rows.size() <= kBatchRows) {
    CELLAR_TRY(writer->Admit(*write));
    const DirectConflict conflict = !upsert                        ? DirectConflict::kError
                                    : columns.size() == key.size() ? DirectConflict::kSkip
                                                                   : DirectConflict::kUpdate;
    return DirectInsert(writer->access(), known, write->direct.get(), conflict, cells,
                        group.columns, group.rows, result);
  }
  RowBatch rows;
  rows.columns().resize(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    const ColumnVector& from = cells.rows.column(group.columns[c]);
    ColumnVector& to = rows.column(c);
    to.Reset(from.type());
    to.Resize(group.rows.size());
    for (size_t i = 0; i < group.rows.size(); ++i) to.Set(i, from.Get(group.rows[i]));
  }
  rows.SetSize(group.rows.size());
  CELLAR_TRY_ASSIGN(Changed changed, writer->Run(write, &rows, {}, nullptr));
  result->inserted += changed.affected - changed.replaced;
  result->updated += changed.replaced;
  return Status();
}

// The primary keys of the rows in `spans` that pass the filter.
Status ReadKeys(Worker* worker, KnownTable* known, std::span<const KeySpan> spans,
                const std::optional<Filter>& filter, Arena* arena,
                std::vector<std::vector<Datum>>* keys) {
  Session::Impl& s = *worker->s;
  const catalog::TableDescriptor& table = *known->table;
  CELLAR_TRY_ASSIGN(const catalog::IndexDescriptor* primary, IndexOf(table, "", true));
  std::vector<codec::ColumnId> ids;
  const std::vector<codec::KeyColumn> order = OrderOf(table, *primary, &ids);
  std::vector<KeyRange> ranges;
  for (const KeySpan& span : spans) {
    KeyRange range;
    CELLAR_TRY_ASSIGN(range.from.values, KeyValues(span.start, order, 0, order.size(), arena));
    range.from.after = span.start_exclusive;
    CELLAR_TRY_ASSIGN(range.to.values, KeyValues(span.end, order, 0, order.size(), arena));
    range.to.after = span.end_inclusive || span.end.empty();
    range.from.SetBytes(order);
    range.to.SetBytes(order);
    ranges.push_back(std::move(range));
  }
  if (spans.empty()) ranges.push_back(KeyRange::All());
  NormaliseRanges(&ranges);
  table::ScanSpec spec;
  spec.table = known->table;
  spec.index = primary->id;
  spec.columns = ids;
  BoundFilter bound;
  std::optional<sql::Evaluator> evaluator;
  if (filter) {
    ranges = IntersectRanges(ranges, RangesOf(*filter, table, order, ids, arena));
    CELLAR_TRY_ASSIGN(bound, BindFilter(&s, *known, *filter));
    std::vector<size_t> places;
    for (codec::ColumnId id : bound.columns) {
      CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known->schema, table.FindColumn(id)->name));
      CELLAR_TRY(worker->CheckSelect(known, std::span(&position, 1)));
      places.push_back(spec.columns.size());
      spec.columns.push_back(id);
    }
    sql::VisitExprMutable(bound.expr.get(), [&](sql::Expr* part) {
      if (part->kind == sql::ExprKind::kColumn)
        part->index = static_cast<int>(places[static_cast<size_t>(part->index)]);
    });
    evaluator.emplace(bound.expr.get());
    spec.filters = ScanFiltersOf(*filter, table, arena);
  }
  for (const KeyRange& range : ranges) AppendSpans(range, order, &spec.spans);
  if (spec.spans.empty()) return Status();
  sql::EvalContext context;
  s.SetUpContext(&context);
  CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> reader, s.transaction->access->Scan(spec));
  RowBatch batch;
  Arena eval_arena;
  while (true) {
    CELLAR_TRY(s.cancel.Check());
    CELLAR_TRY_ASSIGN(bool more, reader->Next(&batch));
    if (!more) return Status();
    std::vector<uint32_t> passing;
    if (evaluator) {
      eval_arena.Reset();
      context.set_arena(&eval_arena);
      CELLAR_TRY(
          evaluator->Filter(batch, sql::Selection{nullptr, batch.size()}, context, &passing));
    } else {
      for (uint32_t row = 0; row < batch.size(); ++row) passing.push_back(row);
    }
    for (uint32_t row : passing) {
      std::vector<Datum>& key = keys->emplace_back();
      for (size_t i = 0; i < ids.size(); ++i)
        key.push_back(CopyDatum(batch.column(i).Get(row), order[i].type, arena));
    }
    if (arena->footprint_bytes() > s.settings.hot().work_mem_bytes) {
      return SqlError(Code::kLimit, sqlstate::kOutOfMemory, "too many rows to delete in one call");
    }
  }
}

Status DeleteRows(Writer* writer, std::span<const std::vector<Datum>> keys,
                  const std::optional<Filter>& filter, WriteResult* result) {
  CELLAR_TRY_ASSIGN(std::vector<uint32_t> key, NeedKey(*writer->known_));
  const std::string plain =
      fmt::format("DELETE FROM {} WHERE {}", Target(&writer->s_, *writer->known_->table),
                  writer->WhereKey(key, 1));
  CompiledWrite once;
  CompiledWrite* write = &once;
  if (filter) {
    CELLAR_TRY(BindFilter(&writer->s_, *writer->known_, *filter).status());
    CELLAR_TRY_ASSIGN(std::string condition, FilterText(*filter, "t"));
    CELLAR_TRY(writer->Make(plain + " AND " + condition, key, false, &once));
  } else {
    CELLAR_TRY_ASSIGN(write, writer->Plan("x", key, false, [&] { return plain; }));
  }
  if (write->direct != nullptr) {
    CELLAR_TRY(writer->Admit(*write));
    for (size_t done = 0; done < keys.size(); done += kBatchRows) {
      CELLAR_TRY(DirectDelete(writer->access(), *writer->known_, write->direct.get(),
                              keys.subspan(done, std::min(kBatchRows, keys.size() - done)),
                              result));
    }
    return Status();
  }
  for (const std::vector<Datum>& values : keys) {
    CELLAR_TRY(writer->s_.cancel.Check());
    CELLAR_TRY_ASSIGN(Changed changed, writer->Run(write, nullptr, values, nullptr));
    result->deleted += changed.affected;
  }
  return Status();
}

Result<std::string> Added(const TableColumn& column, std::string_view amount) {
  const std::string name = sql::QuoteIdentifier(column.name);
  std::string_view zero, op;
  if (column.type.array) {
    zero = "'{}'";
    op = "||";
  } else if (IsNumber(column.type)) {
    zero = "0";
    op = "+";
  } else if (column.type.id == TypeId::kText || column.type.id == TypeId::kVarchar ||
             column.type.id == TypeId::kBytea) {
    zero = "''";
    op = "||";
  } else {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "nothing can be added to column \"{}\" of type {}", column.name,
                    FormatType(column.type))
        .WithColumn(column.name);
  }
  return fmt::format("{} = coalesce(t.{}, {}) {} {}", name, name, zero, op, amount);
}

}  // namespace

Status TableImpl::Write(const CallOptions& call, CallKind kind, WriteResult* result,
                        const std::function<Status(Worker*, KnownTable*)>& body) {
  const std::string& id = call.idempotency_id;
  if (!id.empty()) {
    CELLAR_TRY(CheckId(id));
    if (call.transaction != nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "an idempotency id is for a call that is a transaction of its own");
    }
  }
  CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(store_.get(), call));
  Session::Impl& s = *lease->s;
  const CallId own{s.login_oid, id, kind, id_.value};
  auto run = [&]() -> Status {
    *result = WriteResult();
    CELLAR_TRY_ASSIGN(KnownTable * known, Find(lease.get(), call));
    CELLAR_TRY(s.EnsureTransaction(false));
    CELLAR_TRY(s.RefreshStatementSnapshot());
    if (!id.empty()) {
      CELLAR_TRY_ASSIGN(std::optional<WriteResult> before,
                        ReadMarker(s.transaction->kv.get(), own));
      if (before.has_value()) {
        *result = std::move(*before);
        s.Rollback();
        return Status();
      }
    }
    const Status changed = body(lease.get(), known);
    // Nothing will be committed that checks it: what was read may lie behind a change of the table,
    // or of another one that its plans name.
    if (changed.ok() ? !result->applied : changed.code() != Code::kConflict) {
      CELLAR_TRY(CheckStillCurrent(*known->table, s.transaction->kv.get(), nullptr));
      for (const auto& [table, version] : s.transaction->required)
        CELLAR_TRY(s.transaction->kv->Require(codec::DescriptorKey(table), version));
    }
    CELLAR_TRY(changed);
    if (!lease.alone()) return Status();
    if (!result->applied) {
      s.Rollback();
      return Status();
    }
    if (!id.empty()) CELLAR_TRY(WriteMarker(s.transaction->kv.get(), own, true, *result));
    s.relaxed_commit = call.relaxed_durability;
    Status status = s.Commit(nullptr);
    s.relaxed_commit = false;
    result->commit_version = s.last_commit_version;
    return status;
  };
  for (int attempt = 0;; ++attempt) {
    Status status = s.Guarded(run);
    if (status.ok()) {
      if (!id.empty()) ForgetOldMarkers(s.db->engine.get());
      return status;
    }
    s.Fail();
    if (!lease.alone() || !s.RetryAfter(status, attempt)) return HideValues(&s, std::move(status));
    CELLAR_TRY(s.cancel.Check());
  }
}

Result<WriteResult> TableImpl::PutCells(const SchemaPtr& schema, const CellBatch& cells,
                                        const PutOptions& options) {
  CELLAR_TRY(CheckCells(schema.get(), cells));
  WriteResult result;
  if (schema == nullptr) return result;
  CELLAR_TRY(Write(
      options.call, CallKind::kPut, &result, [&](Worker* worker, KnownTable* known) -> Status {
        Writer writer(worker, known);
        std::vector<uint32_t> positions = cells.positions;
        if (schema != known->schema) {
          CELLAR_TRY_ASSIGN(positions, PositionsIn(*known->schema, *schema, positions));
        }
        if (!options.expect.empty()) {
          const std::vector<uint32_t> key = KeyPositions(*known);
          CELLAR_TRY(writer.Expect(
              options.expect, key,
              [&](uint32_t row, size_t i) -> Result<Datum> {
                auto at = std::find(positions.begin(), positions.end(), key[i]);
                if (at == positions.end()) {
                  return SqlError(Code::kInvalid, sqlstate::kNotNullViolation,
                                  "an expectation needs the row's primary key");
                }
                return cells.rows.column(static_cast<size_t>(at - positions.begin())).Get(row);
              },
              static_cast<uint32_t>(cells.rows.size()), &result));
          if (!result.applied) return Status();
        }
        for (const Group& group : GroupRows(cells)) {
          CELLAR_TRY(PutGroup(&writer, options.mode, cells, positions, group, &result));
        }
        return Status();
      }));
  return result;
}

Result<WriteResult> TableImpl::Delete(std::span<const Key> keys, const DeleteOptions& options) {
  WriteResult result;
  CELLAR_TRY(Write(options.call, CallKind::kDelete, &result,
                   [&](Worker* worker, KnownTable* known) -> Status {
                     Writer writer(worker, known);
                     CELLAR_TRY_ASSIGN(std::vector<uint32_t> key, NeedKey(*known));
                     const std::vector<codec::KeyColumn> columns =
                         known->table->KeyColumnsOf(known->table->primary());
                     Arena arena;
                     std::vector<std::vector<Datum>> values;
                     for (const Key& one : keys) {
                       CELLAR_TRY_ASSIGN(std::vector<Datum> fields,
                                         KeyValues(one, columns, key.size(), key.size(), &arena));
                       values.push_back(std::move(fields));
                     }
                     CELLAR_TRY(writer.Expect(
                         options.expect, key,
                         [&](uint32_t row, size_t i) -> Result<Datum> { return values[row][i]; },
                         static_cast<uint32_t>(values.size()), &result));
                     if (!result.applied) return Status();
                     return DeleteRows(&writer, values, options.filter, &result);
                   }));
  return result;
}

Result<WriteResult> TableImpl::DeleteSpans(std::span<const KeySpan> spans,
                                           const DeleteOptions& options) {
  if (!options.expect.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "expectations are for keys, not for spans");
  }
  WriteResult result;
  CELLAR_TRY(Write(options.call, CallKind::kDeleteSpans, &result,
                   [&](Worker* worker, KnownTable* known) -> Status {
                     Writer writer(worker, known);
                     CELLAR_TRY_ASSIGN(std::vector<uint32_t> key, NeedKey(*known));
                     CELLAR_TRY(worker->CheckSelect(known, key));
                     Arena arena;
                     std::vector<std::vector<Datum>> keys;
                     CELLAR_TRY(ReadKeys(worker, known, spans, options.filter, &arena, &keys));
                     return DeleteRows(&writer, keys, std::nullopt, &result);
                   }));
  return result;
}

Result<IncrementResult> TableImpl::Increment(std::span<const RowChange> rows,
                                             const IncrementOptions& options) {
  IncrementResult result;
  CELLAR_TRY(Write(
      options.call, CallKind::kIncrement, &result.write,
      [&](Worker* worker, KnownTable* known) -> Status {
        Writer writer(worker, known);
        CELLAR_TRY_ASSIGN(std::vector<uint32_t> key, NeedKey(*known));
        const std::vector<codec::KeyColumn> key_columns =
            known->table->KeyColumnsOf(known->table->primary());
        std::vector<uint32_t> all;
        for (const RowChange& row : rows) {
          for (const CellChange& change : row.changes) {
            CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known->schema, change.column));
            if (std::find(all.begin(), all.end(), position) == all.end()) all.push_back(position);
          }
        }
        result.rows.SetColumns(known->schema, all);
        std::vector<Type> types;
        std::string returning;
        for (uint32_t position : all) {
          types.push_back(known->schema->columns[position].type);
          returning += fmt::format("{}t.{}", returning.empty() ? "" : ", ", Name(*known, position));
        }
        result.rows.mutable_batch()->Reset(types);
        Arena arena;
        for (const RowChange& row : rows) {
          if (row.changes.empty()) {
            return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                            "a row without changes");
          }
          CELLAR_TRY_ASSIGN(std::vector<Datum> parameters,
                            KeyValues(row.key, key_columns, key.size(), key.size(), &arena));
          std::vector<uint32_t> columns = key;
          for (const CellChange& change : row.changes) {
            CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known->schema, change.column));
            if (std::find(columns.begin(), columns.end(), position) != columns.end()) {
              return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                              "column \"{}\" is of the key, or changed twice", change.column)
                  .WithColumn(change.column);
            }
            columns.push_back(position);
            Type type = known->schema->columns[position].type;
            if (!IsNumber(type)) type.modifier = -1;
            CELLAR_TRY_ASSIGN(Datum amount, change.amount.To(type, &arena));
            if (amount.is_null()) {
              return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                              "NULL cannot be added")
                  .WithColumn(change.column);
            }
            parameters.push_back(amount);
          }
          std::string set;
          for (size_t i = key.size(); i < columns.size(); ++i) {
            CELLAR_TRY_ASSIGN(std::string added,
                              Added(known->schema->columns[columns[i]], fmt::format("${}", i + 1)));
            set += (set.empty() ? "" : ", ") + added;
          }
          const std::string shape = Shape("", columns) + "/" + Shape("", all);
          CELLAR_TRY_ASSIGN(CompiledWrite * update, writer.Plan("+" + shape, columns, false, [&] {
            return fmt::format("UPDATE {} SET {} WHERE {} RETURNING {}",
                               Target(worker->s, *known->table), set, writer.WhereKey(key, 1),
                               returning);
          }));
          RowBatch* changed_cells = result.rows.mutable_batch();
          CELLAR_TRY_ASSIGN(Changed changed,
                            writer.Run(update, nullptr, parameters, changed_cells));
          result.write.updated += changed.affected;
          if (changed.affected != 0) continue;
          if (options.must_exist) return NoRow();
          CELLAR_TRY_ASSIGN(CompiledWrite * insert, writer.Plan("*" + shape, columns, false, [&] {
            return fmt::format("{} RETURNING {}", writer.InsertText(columns), returning);
          }));
          CELLAR_TRY_ASSIGN(changed, writer.Run(insert, nullptr, parameters, changed_cells));
          result.write.inserted += changed.affected;
        }
        return Status();
      }));
  if (result.write.repeated) result.rows.mutable_batch()->Clear();
  return result;
}

}  // namespace cellar::session::tables
