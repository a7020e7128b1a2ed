// Plan nodes of INSERT, UPDATE and DELETE.
#include <algorithm>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

namespace {

std::vector<int> Concat(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

}  // namespace

Result<Phys> Physical::BuildInsert(LogicalInsert& insert) {
  CELLAR_TRY_ASSIGN(Phys child,
                    BuildExact(std::move(insert.children[0]), {}, insert.inputs, Request()));
  auto node = std::make_unique<InsertNode>();
  node->table = insert.table;
  node->checks = std::move(insert.checks);
  node->foreign_keys = std::move(insert.foreign_keys);
  node->referenced_by = std::move(insert.referenced_by);
  node->on_conflict.kind = insert.conflict;
  node->on_conflict.arbiters = std::move(insert.arbiters);
  std::vector<int> both = Concat(insert.stored, insert.excluded);
  for (auto& [position, value] : insert.assignments) {
    CELLAR_TRY(Finalize(&value, both));
    node->on_conflict.assignments.emplace_back(position, std::move(value));
  }
  if (insert.conflict_where != nullptr) {
    CELLAR_TRY(Finalize(&insert.conflict_where, both));
    node->on_conflict.where = std::move(insert.conflict_where);
  }
  node->returning = insert.has_returning;
  CELLAR_TRY(FinalizeAll(&insert.returning, insert.stored));
  node->returning_exprs = std::move(insert.returning);
  node->rows = insert.has_returning ? child.rows() : 0;
  node->cost = child.cost() + child.rows() * 5000;
  node->children.push_back(std::move(child.node));
  Phys out;
  out.node = std::move(node);
  out.cols = insert.ids;
  SetOutput(&out);
  return out;
}

Result<Phys> Physical::BuildUpdate(LogicalUpdate& update) {
  std::vector<int> wanted = update.target;
  wanted.push_back(update.row_ref);
  IdSet used;
  for (const auto& [position, value] : update.assignments) AddIds(s_, *value, &used);
  for (const ExprPtr& expr : update.returning) AddIds(s_, *expr, &used);
  for (int id : wanted) used.Remove(id);
  IdSet produced;
  AddProduced(*update.children[0], &produced);
  used.ForEach([&](int id) {
    if (produced.Has(id)) wanted.push_back(id);
  });
  CELLAR_TRY_ASSIGN(Phys child, BuildExact(std::move(update.children[0]), {}, wanted, Request()));
  auto node = std::make_unique<UpdateNode>();
  node->table = update.table;
  node->row_ref = static_cast<int>(update.target.size());
  for (auto& [position, value] : update.assignments) {
    CELLAR_TRY(Finalize(&value, child.cols));
    node->assignments.emplace_back(position, std::move(value));
  }
  node->checks = std::move(update.checks);
  node->foreign_keys = std::move(update.foreign_keys);
  node->referenced_by = std::move(update.referenced_by);
  node->returning = update.has_returning;
  CELLAR_TRY(FinalizeAll(&update.returning, child.cols));
  node->returning_exprs = std::move(update.returning);
  node->rows = update.has_returning ? child.rows() : 0;
  node->cost = child.cost() + child.rows() * 6000;
  node->children.push_back(std::move(child.node));
  Phys out;
  out.node = std::move(node);
  out.cols = update.ids;
  SetOutput(&out);
  return out;
}

Result<Phys> Physical::BuildDelete(LogicalDelete& del) {
  std::vector<int> wanted = del.target;
  wanted.push_back(del.row_ref);
  IdSet used;
  for (const ExprPtr& expr : del.returning) AddIds(s_, *expr, &used);
  for (int id : wanted) used.Remove(id);
  IdSet produced;
  AddProduced(*del.children[0], &produced);
  used.ForEach([&](int id) {
    if (produced.Has(id)) wanted.push_back(id);
  });
  CELLAR_TRY_ASSIGN(Phys child, BuildExact(std::move(del.children[0]), {}, wanted, Request()));
  auto node = std::make_unique<DeleteNode>();
  node->table = del.table;
  node->row_ref = static_cast<int>(del.target.size());
  node->referenced_by = std::move(del.referenced_by);
  node->returning = del.has_returning;
  CELLAR_TRY(FinalizeAll(&del.returning, child.cols));
  node->returning_exprs = std::move(del.returning);
  node->rows = del.has_returning ? child.rows() : 0;
  node->cost = child.cost() + child.rows() * 5000;
  node->children.push_back(std::move(child.node));
  Phys out;
  out.node = std::move(node);
  out.cols = del.ids;
  SetOutput(&out);
  return out;
}

}  // namespace cellar::sql::planning
