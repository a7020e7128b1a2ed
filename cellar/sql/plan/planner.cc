#include "cellar/sql/plan/planner.h"

#include "cellar/base/sqlstate.h"
#include "cellar/sql/plan/binder.h"
#include "cellar/sql/plan/physical.h"
#include "cellar/sql/plan/row_by_row.h"

namespace cellar::sql {

namespace {

void AssignIds(PlanNode* node, int* next) {
  node->id = (*next)++;
  for (PlanPtr& child : node->children) AssignIds(child.get(), next);
}

bool ChangesData(const PlanNode& node) {
  return node.kind == PlanKind::kInsert || node.kind == PlanKind::kUpdate ||
         node.kind == PlanKind::kDelete;
}

}  // namespace

Result<std::shared_ptr<const Plan>> PlanStatement(const ast::Node& node, PlannerContext& context) {
  planning::Statement statement(context);
  statement.parameter_types.assign(context.parameter_types.begin(), context.parameter_types.end());
  statement.parameter_locations.assign(statement.parameter_types.size(), -1);
  for (Type& type : statement.parameter_types) {
    if (type.id == TypeId::kUnknown) type = Type();
  }
  planning::Binder binder(statement);
  CELLAR_TRY_ASSIGN(planning::BoundQuery query, binder.BindStatement(node, nullptr));
  for (size_t i = 0; i < statement.parameter_types.size(); ++i) {
    if (statement.parameter_types[i].id == TypeId::kInvalid) {
      return SqlError(Code::kInvalid, sqlstate::kIndeterminateDatatype,
                      "could not determine data type of parameter ${}", i + 1)
          .WithLocation(statement.parameter_locations[i]);
    }
  }
  auto plan = std::make_shared<Plan>();
  planning::Physical physical(statement, plan.get());
  bool has_columns = !query.columns.empty();
  CELLAR_TRY(physical.BuildRoot(std::move(query)));
  switch (node.kind) {
    case ast::NodeKind::kInsert: plan->kind = StatementKind::kInsert; break;
    case ast::NodeKind::kUpdate: plan->kind = StatementKind::kUpdate; break;
    case ast::NodeKind::kDelete: plan->kind = StatementKind::kDelete; break;
    default: plan->kind = StatementKind::kSelect; break;
  }
  plan->returns_rows = plan->kind == StatementKind::kSelect || has_columns;
  plan->num_work_tables = statement.work_tables;
  plan->parameter_types = std::move(statement.parameter_types);
  plan->tables = std::move(statement.tables);
  plan->uses = std::move(statement.uses);
  plan->virtual_tables = std::move(statement.virtual_tables);
  plan->uses_virtual_tables = statement.uses_virtual;
  plan->locks_rows = statement.locks_rows;
  plan->lock_tag = statement.lock_tag;
  plan->num_locks = statement.locks;
  plan->read_only = !ChangesData(*plan->root) && !plan->locks_rows && !statement.calls_writer;
  int next = 0;
  AssignIds(plan->root.get(), &next);
  for (PlanPtr& subplan : plan->subplans) AssignIds(subplan.get(), &next);
  for (PlanPtr& cte : plan->ctes) {
    if (ChangesData(*cte)) plan->read_only = false;
    AssignIds(cte.get(), &next);
  }
  plan->num_nodes = next;
  planning::MarkRowByRow(plan.get());
  return std::shared_ptr<const Plan>(std::move(plan));
}

Result<ExprPtr> BindTableExpression(const ast::Node& expression,
                                    const catalog::TableDescriptor* table, Type target,
                                    PlannerContext& context) {
  planning::Statement statement(context);
  planning::Binder binder(statement);
  planning::Place place = planning::Place::kGenerated;
  if (table == nullptr) {
    place = planning::Place::kDefault;
  } else if (target.id == TypeId::kBool) {
    place = planning::Place::kCheck;
  }
  return binder.BindTableExpression(static_cast<const ast::Expr&>(expression), table, target,
                                    place);
}

}  // namespace cellar::sql
