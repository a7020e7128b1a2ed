// COPY FROM and COPY TO.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cellar/base/sqlstate.h"
#include "cellar/session/copy_format.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/still_current.h"
#include "cellar/session/value_text.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/types/value_size.h"

namespace cellar::session {
namespace {

constexpr size_t kFileChunkBytes = size_t{1} << 20;
constexpr size_t kOutputBytes = size_t{64} << 10;

// The columns of a COPY: those named, else all that a user sees and may set.
Result<std::vector<const catalog::ColumnDescriptor*>> CopyColumns(
    const catalog::TableDescriptor& table, const ast::NameList& names, bool from) {
  std::vector<const catalog::ColumnDescriptor*> columns;
  if (names.empty()) {
    for (const catalog::ColumnDescriptor& column : table.columns) {
      if (!column.dropped && !column.hidden && column.generated_sql.empty())
        columns.push_back(&column);
    }
    return columns;
  }
  for (const std::string& name : names) {
    const catalog::ColumnDescriptor* column = table.FindColumn(name);
    if (column == nullptr || column->hidden) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" of relation \"{}\" does not exist", name, table.name);
    }
    if (!column->generated_sql.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                      "column \"{}\" is a generated column", name)
          .WithDetail("Generated columns cannot be used in COPY.");
    }
    for (const catalog::ColumnDescriptor* other : columns) {
      if (other == column && from) {
        return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                        "column \"{}\" specified more than once", name);
      }
    }
    columns.push_back(column);
  }
  return columns;
}

void ParametersToColumns(sql::Expr* expr) {
  sql::VisitExprMutable(expr, [](sql::Expr* part) {
    if (part->kind == sql::ExprKind::kParameter) part->kind = sql::ExprKind::kColumn;
  });
}

}  // namespace

Status ReadFromOutside(std::vector<sql::OutputColumn> columns, sql::Plan* plan) {
  sql::PlanNode* node = plan->root.get();
  while (!node->children.empty() && !node->children[0]->children.empty())
    node = node->children[0].get();
  if (node->children.empty()) return InternalError("insert plan has no source");
  sql::PlanNode& leaf = *node->children[0];
  auto source = std::make_unique<sql::ExternalNode>();
  source->output = std::move(columns);
  source->id = leaf.id;
  if (leaf.kind == sql::PlanKind::kValues) {
    auto& values = static_cast<sql::ValuesNode&>(leaf);
    if (values.rows_exprs.size() != 1)
      return InternalError("insert plan has {} rows", values.rows_exprs.size());
    auto project = std::make_unique<sql::ProjectNode>();
    project->output = leaf.output;
    project->id = leaf.id;
    project->exprs = std::move(values.rows_exprs[0]);
    for (sql::ExprPtr& expr : project->exprs) ParametersToColumns(expr.get());
    project->children.push_back(std::move(source));
    node->children[0] = std::move(project);
    return Status();
  }
  if (leaf.kind != sql::PlanKind::kResult || node->kind != sql::PlanKind::kProject) {
    return InternalError("insert plan has an unexpected source");
  }
  for (sql::ExprPtr& expr : static_cast<sql::ProjectNode&>(*node).exprs)
    ParametersToColumns(expr.get());
  node->children[0] = std::move(source);
  return Status();
}

namespace {

Status CopyFrom(Session::Impl& s, const ast::CopyStmt& copy, const CopyOptions& options,
                ResultSink* sink, uint64_t* rows) {
  if (s.db->system.HasSchema(copy.table.schema)) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "permission denied: \"{}\" is a system catalog", copy.table.name);
  }
  const catalog::SnapshotPtr catalog = s.CurrentCatalog();
  catalog::TablePtr table =
      sql::FindRelation(*catalog, s.Scope(), copy.table.schema, copy.table.name);
  if (table == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                    copy.table.name)
        .WithLocation(copy.table.location);
  }
  if (table->kind != catalog::RelationKind::kTable) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "cannot copy to {} \"{}\"",
                    table->kind == catalog::RelationKind::kView ? "view" : "sequence", table->name);
  }
  CELLAR_TRY_ASSIGN(std::vector<const catalog::ColumnDescriptor*> columns,
                    CopyColumns(*table, copy.columns, true));

  // INSERT INTO t (columns) OVERRIDING SYSTEM VALUE VALUES ($1, ...): defaults, checks and
  // references come with it.
  const std::string target = sql::QuoteQualified(s.SchemaName(table->parent), table->name);
  std::string names, values;
  std::vector<Type> types;
  std::vector<CopyColumn> copy_columns;
  std::vector<sql::OutputColumn> outputs;
  for (const catalog::ColumnDescriptor* column : columns) {
    if (!names.empty()) {
      names += ", ";
      values += ", ";
    }
    names += sql::QuoteIdentifier(column->name);
    values += fmt::format("${}", types.size() + 1);
    types.push_back(column->type);
    copy_columns.push_back({column->name, column->type});
    outputs.push_back({column->name, column->type, 0, 0});
  }
  const std::string insert =
      columns.empty() ? fmt::format("INSERT INTO {} DEFAULT VALUES", target)
                      : fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})",
                                    target, names, values);
  CELLAR_TRY_ASSIGN(sql::Statement statement, sql::ParseOne(insert));
  sql::PlannerContext context = s.MakePlannerContext(types);
  context.catalog = catalog;  // of which the columns are
  sql::EvalContext eval;
  Arena arena;
  s.SetUpContext(&eval);
  eval.set_arena(&arena);
  context.fold = &eval;
  CELLAR_TRY_ASSIGN(std::shared_ptr<const sql::Plan> planned,
                    sql::PlanStatement(*statement.ast, context));
  // Nobody else holds this plan yet.
  auto plan = std::const_pointer_cast<sql::Plan>(planned);
  CELLAR_TRY(s.CheckPlan(*plan));
  CELLAR_TRY(ReadFromOutside(outputs, plan.get()));
  std::optional<sql::Evaluator> where;
  sql::ExprPtr where_expr;
  if (copy.where != nullptr) {
    Result<sql::ExprPtr> bound =
        sql::BindTableExpression(*copy.where, table.get(), MakeType(TypeId::kBool), context);
    if (!bound.ok()) return bound.status();
    where_expr = std::move(*bound);
    std::vector<int> living;
    for (const catalog::ColumnDescriptor& column : table->columns) {
      if (column.dropped) continue;
      int found = -1;
      for (size_t c = 0; c < columns.size(); ++c) {
        if (columns[c]->id == column.id) found = static_cast<int>(c);
      }
      living.push_back(found);
    }
    Status status;
    sql::VisitExprMutable(where_expr.get(), [&](sql::Expr* part) {
      if (part->kind != sql::ExprKind::kColumn) return;
      const int column = living[static_cast<size_t>(part->index)];
      if (column < 0)
        status = UnsupportedError("WHERE of COPY may name only columns that are copied");
      part->index = column;
    });
    CELLAR_TRY(std::move(status));
    where.emplace(where_expr.get());
  }

  FilePtr file;
  if (copy.has_file) {
    CELLAR_TRY_ASSIGN(file, s.db->files.Open(copy.file, /*reading=*/true));
  } else {
    std::vector<ResultColumn> wanted;
    for (const CopyColumn& column : copy_columns) wanted.push_back({column.name, column.type});
    CELLAR_TRY(sink->OnCopyInColumns(wanted));
    CELLAR_TRY(sink->OnCopyIn(static_cast<int>(columns.size()),
                              options.format == CopyOptions::Format::kBinary));
  }
  const auto parse = [&s](std::string_view text, Type type, Arena* arena) {
    return ParseValueText(s, text, type, arena);
  };
  CopyReader reader(options, copy_columns, table->name, parse,
                    [&](std::string* chunk) -> Result<bool> {
                      if (file == nullptr) return sink->ReadCopyData(chunk);
                      chunk->resize(kFileChunkBytes);
                      const size_t got = std::fread(chunk->data(), 1, chunk->size(), file.get());
                      if (got == 0 && std::ferror(file.get()) != 0) {
                        return SqlError(Code::kUnavailable, sqlstate::kIoError,
                                        "could not read from COPY file: {}", std::strerror(errno));
                      }
                      chunk->resize(got);
                      return got > 0;
                    });
  CELLAR_TRY(s.RequireTables(*plan));
  CELLAR_TRY_ASSIGN(sql::ExecEnvironment environment,
                    s.MakeEnvironment(s.statement, &eval, context.catalog.get()));
  Arena where_arena;
  std::vector<uint32_t> passing;
  environment.external_rows = [&](RowBatch* batch) -> Result<bool> {
    while (true) {
      batch->Reset(types);
      CELLAR_TRY_ASSIGN(bool more, reader.Next(batch));
      if (!more || !where) return more;
      where_arena.Reset();
      eval.set_arena(&where_arena);
      passing.clear();
      CELLAR_TRY(where->Filter(*batch, sql::Selection{nullptr, batch->size()}, eval, &passing));
      batch->Keep(passing);
      if (batch->size() > 0) return true;
    }
  };
  CELLAR_TRY(s.transaction->access->BeginBulk(table));
  auto run = [&]() -> Status {
    CELLAR_TRY_ASSIGN(std::unique_ptr<sql::Execution> execution,
                      sql::Execution::Open(plan, environment));
    bool checked = false;
    while (true) {
      CELLAR_TRY_ASSIGN(const RowBatch* batch,
                        NextRows(s, plan->tables, execution.get(), &checked));
      if (batch == nullptr) break;
    }
    *rows = execution->rows_affected();
    return Status();
  };
  Status status = run();
  Status ended = s.transaction->access->EndBulk(status.ok());
  if (status.ok()) status = std::move(ended);
  if (!status.ok() && status.context().empty())
    status = std::move(status).WithContext(reader.Context());
  return status;
}

Status CopyTo(Session::Impl& s, const ast::CopyStmt& copy, const CopyOptions& options,
              ResultSink* sink, const Prepared& prepared, uint64_t* rows) {
  std::shared_ptr<const sql::Plan> plan;
  sql::PlannerContext context = s.MakePlannerContext(prepared.client_types);
  sql::EvalContext eval;
  Arena arena;
  s.SetUpContext(&eval);
  eval.set_arena(&arena);
  context.fold = &eval;
  if (copy.query != nullptr) {
    CELLAR_TRY_ASSIGN(plan, sql::PlanStatement(*copy.query, context));
    if (!plan->returns_rows) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "COPY query must have a RETURNING clause");
    }
  } else {
    std::string names;
    std::string schema = copy.table.schema;
    catalog::TablePtr table =
        sql::FindRelation(*context.catalog, s.Scope(), copy.table.schema, copy.table.name);
    if (table != nullptr && table->kind == catalog::RelationKind::kTable) {
      CELLAR_TRY_ASSIGN(std::vector<const catalog::ColumnDescriptor*> columns,
                        CopyColumns(*table, copy.columns, false));
      for (const catalog::ColumnDescriptor* column : columns) {
        if (!names.empty()) names += ", ";
        names += sql::QuoteIdentifier(column->name);
      }
      schema = s.SchemaName(table->parent);
    } else {
      if (table != nullptr && table->kind == catalog::RelationKind::kView) {
        return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "cannot copy from view \"{}\"",
                        table->name)
            .WithHint("Try the COPY (SELECT ...) TO variant.");
      }
      for (const std::string& name : copy.columns) {
        if (!names.empty()) names += ", ";
        names += sql::QuoteIdentifier(name);
      }
      if (names.empty()) names = "*";
    }
    const std::string select =
        fmt::format("SELECT {} FROM {}", names, sql::QuoteQualified(schema, copy.table.name));
    CELLAR_TRY_ASSIGN(sql::Statement statement, sql::ParseOne(select));
    Result<std::shared_ptr<const sql::Plan>> planned = sql::PlanStatement(*statement.ast, context);
    if (!planned.ok()) return std::move(planned).status().WithLocation(copy.table.location);
    plan = *planned;
  }
  CELLAR_TRY(s.CheckPlan(*plan));
  if (!plan->read_only) CELLAR_TRY(s.CheckWritable("COPY"));
  CELLAR_TRY(s.RequireTables(*plan));
  std::vector<CopyColumn> columns;
  for (const sql::OutputColumn& column : plan->output)
    columns.push_back({column.name, column.type});
  CELLAR_TRY_ASSIGN(const sql::ExecEnvironment environment,
                    s.MakeEnvironment(s.statement, &eval, context.catalog.get()));
  CELLAR_TRY_ASSIGN(std::unique_ptr<sql::Execution> execution,
                    sql::Execution::Open(plan, environment));
  FilePtr file;
  if (copy.has_file) {
    CELLAR_TRY_ASSIGN(file, s.db->files.Open(copy.file, /*reading=*/false));
  }
  Status printed;
  CopyWriter writer(options, columns, [&s, &printed](Datum value, Type type, std::string* text) {
    const size_t before = text->size();
    AppendValueText(s, value, type, text);
    // Longer text of a record was cut off.
    if (type.id == TypeId::kRecord && printed.ok()) {
      printed = CheckValueSize(text->size() - before);
    }
  });
  std::string out;
  auto flush = [&]() -> Status {
    if (out.empty()) return Status();
    if (file == nullptr) {
      CELLAR_TRY(sink->OnCopyData(out));
    } else if (std::fwrite(out.data(), 1, out.size(), file.get()) != out.size()) {
      return SqlError(Code::kUnavailable,
                      errno == ENOSPC ? sqlstate::kDiskFull : sqlstate::kIoError,
                      "could not write to COPY file: {}", std::strerror(errno));
    }
    out.clear();
    return Status();
  };
  bool begun = false, checked = false;
  while (true) {
    CELLAR_TRY_ASSIGN(const RowBatch* batch, NextRows(s, plan->tables, execution.get(), &checked));
    if (!begun) {  // the first batch is there: errors before it need no CopyOut
      begun = true;
      if (file == nullptr) {
        CELLAR_TRY(sink->OnCopyOut(static_cast<int>(columns.size()),
                                   options.format == CopyOptions::Format::kBinary));
      }
      writer.AppendHeader(&out);
      CELLAR_TRY(flush());
    }
    if (batch == nullptr) break;
    for (size_t row = 0; row < batch->size(); ++row) {
      writer.AppendRow(*batch, row, &out);
      if (!printed.ok()) return printed;
      // One frame a row when it goes to a client, as clients that read line by line expect.
      if (file == nullptr || out.size() >= kOutputBytes) CELLAR_TRY(flush());
    }
    *rows += batch->size();
  }
  writer.AppendTrailer(&out);
  CELLAR_TRY(flush());
  if (file != nullptr && std::fflush(file.get()) != 0) {
    return SqlError(Code::kUnavailable, sqlstate::kIoError, "could not write to COPY file: {}",
                    std::strerror(errno));
  }
  return file == nullptr ? sink->OnCopyOutEnd() : Status();
}

}  // namespace

Status Session::Impl::RunCopy(const Prepared& prepared, ResultSink* sink, std::string* tag) {
  const auto& copy = prepared.statement->ast->As<ast::CopyStmt>();
  if (copy.program) return UnsupportedError("COPY to or from a program is not supported");
  CELLAR_TRY_ASSIGN(CopyOptions options, ReadCopyOptions(copy.options, copy.from));
  if (copy.has_file) CELLAR_TRY(CheckServerFile(copy.from));
  CELLAR_TRY(EnsureTransaction(false));
  if (copy.from) CELLAR_TRY(CheckWritable("COPY FROM"));
  uint64_t rows = 0;
  CELLAR_TRY(copy.from ? CopyFrom(*this, copy, options, sink, &rows)
                       : CopyTo(*this, copy, options, sink, prepared, &rows));
  *tag = fmt::format("COPY {}", rows);
  return Status();
}

}  // namespace cellar::session
