// Records: the rows of relations, their fields, and where they stand for all of their columns.
#include <algorithm>

#include "cellar/sql/expr/record_field.h"
#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

bool ExpandsRecord(const ast::Expr& expr) {
  if (expr.kind == ast::NodeKind::kColumnRef) return expr.As<ast::ColumnRef>().star;
  return expr.kind == ast::NodeKind::kIndirection &&
         expr.As<ast::IndirectionExpr>().steps.back().step_kind ==
             ast::IndirectionStep::Kind::kStar;
}

bool ExpandsRecords(const ast::ExprList& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const ast::ExprPtr& item) { return ExpandsRecord(*item); });
}

ExprPtr Binder::RowOf(const RecordInfo& record, int location) const {
  auto row = std::make_unique<Expr>();
  row->kind = ExprKind::kRow;
  row->type = MakeType(TypeId::kRecord);
  row->location = location;
  row->names = record.names;
  for (int id : record.ids) row->args.push_back(s_.ColumnExpr(id, location));
  return row;
}

Result<ExprPtr> Binder::WholeRow(const ScopeItem& item, int location) {
  if (item.scalar_function && !item.columns.empty()) {
    return ColumnFromScope(item.columns[0], location);
  }
  auto row = std::make_unique<Expr>();
  row->kind = ExprKind::kRow;
  row->type = MakeType(TypeId::kRecord);
  row->location = location;
  for (const ScopeColumn& column : item.columns) {
    if (column.hidden) continue;
    CELLAR_TRY_ASSIGN(ExprPtr field, ColumnFromScope(column, location));
    row->names.push_back(column.name);
    row->args.push_back(std::move(field));
  }
  // The row of a join is made of its columns, and always there.
  if (item.nulled_by != nullptr && !item.of_join && !row->names.empty()) {
    row->args.push_back(s_.ColumnExpr(PresenceOf(item), location));
  }
  return row;
}

int Binder::PresenceOf(const ScopeItem& item) {
  if (item.get != nullptr) {
    // A column of the primary key is never NULL in the table itself.
    const catalog::ColumnId key = item.table->primary().key[0].column;
    for (size_t i = 0; i < item.get->columns.size(); ++i) {
      if (item.get->columns[i] == key) return item.get->ids[i];
    }
  }
  int& id = presence_.try_emplace({item.nulled_by, item.nulled_side}, -1).first->second;
  if (id >= 0) return id;
  // A constant below the join, for all relations of that side.
  ColumnInfo info;
  info.name = "*";
  info.qualifier = item.name;
  info.type = MakeType(TypeId::kBool);
  id = s_.AddColumn(std::move(info));
  auto project = std::make_unique<LogicalProject>();
  project->ids.push_back(id);
  project->exprs.push_back(MakeBoolConstant(true));
  LogicalPtr& side = item.nulled_by->children[item.nulled_side];
  side = Wrap(std::move(project), std::move(side));
  return id;
}

std::shared_ptr<const RecordShape> Binder::ShapeOf(const Expr& record) const {
  if (record.type.id != TypeId::kRecord || record.type.array) return nullptr;
  switch (record.kind) {
    case ExprKind::kColumn: return s_.column(record.index).record;
    case ExprKind::kRow: {
      auto shape = std::make_shared<RecordShape>();
      for (size_t i = 0; i < FieldCount(record); ++i) {
        shape->names.push_back(record.names.empty() ? fmt::format("f{}", i + 1) : record.names[i]);
        shape->types.push_back(record.args[i]->type);
        shape->shapes.push_back(ShapeOf(*record.args[i]));
      }
      return shape;
    }
    case ExprKind::kCase:
      // Arms follow conditions; ELSE is last.
      for (size_t i = 1; i < record.args.size(); i += 2) {
        if (auto shape = ShapeOf(*record.args[i])) return shape;
      }
      return ShapeOf(*record.args.back());
    case ExprKind::kCoalesce:
    case ExprKind::kGreatest:
    case ExprKind::kLeast:
      for (const ExprPtr& arg : record.args) {
        if (auto shape = ShapeOf(*arg)) return shape;
      }
      return nullptr;
    case ExprKind::kNullIf: return ShapeOf(*record.args[0]);
    case ExprKind::kSubplan: {
      const Subquery& subquery = s_.subqueries[static_cast<size_t>(record.index)];
      return subquery.ids.empty() ? nullptr : s_.column(subquery.ids[0]).record;
    }
    case ExprKind::kCall: {
      if (record.function != &RecordFieldFunction()) return nullptr;
      const auto outer = ShapeOf(*record.args[0]);
      const auto position = static_cast<size_t>(record.args[1]->constant.datum().int_value());
      return outer != nullptr && position < outer->shapes.size() ? outer->shapes[position]
                                                                 : nullptr;
    }
    default: return nullptr;
  }
}

ColumnInfo Binder::InfoOf(std::string name, const Expr& value) const {
  ColumnInfo info;
  info.name = std::move(name);
  info.type = value.type;
  info.record = ShapeOf(value);
  return info;
}

Result<ExprPtr> Binder::FieldOf(ExprPtr row, const std::string& field, int location) {
  if (row->type.id != TypeId::kRecord || row->type.array) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "column notation .{} applied to type {}, which is not a composite type", field,
                    FormatType(row->type))
        .WithLocation(location);
  }
  if (const auto shape = ShapeOf(*row)) {
    for (size_t i = 0; i < shape->names.size(); ++i) {
      if (shape->names[i] == field) return MakeFieldOf(std::move(row), i, 0, shape->types[i]);
    }
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                  "could not identify column \"{}\" in record data type", field)
      .WithLocation(location);
}

Status Binder::ExpandRecord(const ast::IndirectionExpr& expr, Env& env, std::vector<Target>* out) {
  CELLAR_TRY_ASSIGN(const ExprPtr row, BindIndirection(expr, expr.steps.size() - 1, env));
  const auto shape = ShapeOf(*row);
  if (shape == nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "type {} is not composite",
                    FormatType(row->type))
        .WithLocation(expr.location);
  }
  for (size_t i = 0; i < shape->names.size(); ++i) {
    Target target;
    target.name = shape->names[i];
    target.expr = MakeFieldOf(CloneExpr(*row), i, 0, shape->types[i]);
    target.location = expr.location;
    out->push_back(std::move(target));
  }
  return Status();
}

Status Binder::BindList(const ast::ExprList& list, Env& env, std::vector<ExprPtr>* out) {
  CELLAR_TRY(CheckEntries(list.size(), "ROW expressions"));
  for (const ast::ExprPtr& item : list) {
    if (!ExpandsRecord(*item)) {
      CELLAR_TRY_ASSIGN(out->emplace_back(), BindExpr(*item, env));
      continue;
    }
    std::vector<Target> fields;
    if (item->kind == ast::NodeKind::kColumnRef) {
      CELLAR_TRY(ExpandStar(item->As<ast::ColumnRef>(), env, &fields));
    } else {
      CELLAR_TRY(ExpandRecord(item->As<ast::IndirectionExpr>(), env, &fields));
    }
    for (Target& field : fields) out->push_back(std::move(field.expr));
  }
  return CheckEntries(out->size(), "ROW expressions");
}

}  // namespace cellar::sql::planning
