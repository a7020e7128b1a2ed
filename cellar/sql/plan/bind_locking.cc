// FOR UPDATE and its kin: which tables' rows a query locks.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

int Binder::AddRowRef(LogicalGet* get) {
  if (get->row_ref < 0) {
    ColumnInfo reference;
    reference.name = "ctid";
    reference.type = MakeType(TypeId::kBytea);
    get->row_ref = s_.AddColumn(std::move(reference));
  }
  return get->row_ref;
}

LogicalLock::Target Binder::LockOf(LogicalGet* get, RowLock how) {
  if (get->lock < 0) get->lock = s_.locks++;
  return {get->table, AddRowRef(get), get->lock, how};
}

namespace {

// The tables whose rows the rows of a subquery are made of. What stands in the way; null: nothing.
const char* TablesOf(Logical* tree, std::vector<LogicalGet*>* tables) {
  switch (tree->kind) {
    case LogicalKind::kGet: tables->push_back(&tree->As<LogicalGet>()); return nullptr;
    case LogicalKind::kFilter:
    case LogicalKind::kProject:
    case LogicalKind::kSort:
    case LogicalKind::kJoin: {
      if (tree->kind == LogicalKind::kJoin) {
        const JoinKind join = tree->As<LogicalJoin>().join;
        if (join == JoinKind::kLeft || join == JoinKind::kFull) return "an outer join";
        if (join != JoinKind::kInner) return TablesOf(tree->children[0].get(), tables);
      }
      for (const LogicalPtr& child : tree->children) {
        if (const char* why = TablesOf(child.get(), tables)) return why;
      }
      return nullptr;
    }
    case LogicalKind::kAggregate: return "a grouping";
    case LogicalKind::kWindow: return "window functions";
    case LogicalKind::kProjectSet: return "set-returning functions";
    case LogicalKind::kLimit: return "a LIMIT";
    case LogicalKind::kLock: return "a FOR UPDATE of its own";
    case LogicalKind::kDistinct: return "a DISTINCT";
    case LogicalKind::kAppend:
    case LogicalKind::kSetOperation:
    case LogicalKind::kRecursiveUnion: return "a set operation";
    default: return nullptr;  // no rows of tables
  }
}

}  // namespace

Result<std::unique_ptr<LogicalLock>> Binder::Lock(const ast::SelectStmt& select, Block& block) {
  if (select.locking.empty()) return nullptr;
  auto lock = std::make_unique<LogicalLock>();
  const auto add = [&](LogicalGet* get, RowLock how) {
    if (get->use >= 0) s_.uses[static_cast<size_t>(get->use)].updates = true;
    for (LogicalLock::Target& other : lock->targets) {
      if (other.lock != get->lock) continue;
      // Named by several clauses: the strongest of each.
      other.how.mode = std::max(other.how.mode, how.mode);
      if (other.how.wait == RowLockWait::kBlock || how.wait == RowLockWait::kNoWait) {
        other.how.wait = how.wait;
      }
      return;
    }
    lock->targets.push_back(LockOf(get, how));
  };
  for (const ast::LockingClause& clause : select.locking) {
    static constexpr std::string_view kTags[] = {"SELECT FOR KEY SHARE", "SELECT FOR SHARE",
                                                 "SELECT FOR NO KEY UPDATE", "SELECT FOR UPDATE"};
    const std::string_view tag = kTags[static_cast<size_t>(clause.strength)];
    const std::string_view name = tag.substr(std::string_view("SELECT ").size());
    if (s_.lock_tag.empty()) s_.lock_tag = tag;
    const char* with = nullptr;
    if (select.distinct) with = "DISTINCT clause";
    if (!select.group_by.empty()) with = "GROUP BY clause";
    if (select.having != nullptr) with = "HAVING clause";
    if (!block.aggregates.empty()) with = "aggregate functions";
    if (!block.windows.empty()) with = "window functions";
    if (!block.set_functions.empty()) with = "set-returning functions in the target list";
    if (with != nullptr) {
      return UnsupportedError("{} is not allowed with {}", name, with);
    }
    const RowLock how{static_cast<RowLockMode>(clause.strength),
                      clause.wait == ast::LockWait::kBlock  ? RowLockWait::kBlock
                      : clause.wait == ast::LockWait::kSkip ? RowLockWait::kSkipLocked
                                                            : RowLockWait::kNoWait};
    std::vector<bool> found(clause.tables.size(), false);
    for (ScopeItem* item : block.scope.items) {
      bool named = clause.tables.empty();
      int location = -1;
      for (size_t i = 0; i < clause.tables.size(); ++i) {
        if (clause.tables[i].name != item->name) continue;
        named = found[i] = true;
        location = clause.tables[i].location;
      }
      if (!named || item->of_join) continue;
      if (item->nulled_by != nullptr) {
        return UnsupportedError("{} cannot be applied to the nullable side of an outer join", name);
      }
      if (item->use >= 0) s_.uses[static_cast<size_t>(item->use)].updates = true;
      if (item->get != nullptr) {
        add(item->get, how);
        continue;
      }
      if (item->tree == nullptr) {
        // Without names only tables are meant.
        if (clause.tables.empty()) continue;
        return UnsupportedError("{} cannot be applied to \"{}\", which is no table", name,
                                item->name)
            .WithLocation(location);
      }
      std::vector<LogicalGet*> tables;
      if (const char* why = TablesOf(item->tree, &tables)) {
        return UnsupportedError("{} cannot be applied to the rows of \"{}\", which has {}", name,
                                item->name, why)
            .WithHint("Lock the rows in the subquery itself.")
            .WithLocation(location);
      }
      for (LogicalGet* get : tables) add(get, how);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                        "relation \"{}\" in {} clause not found in FROM clause",
                        clause.tables[i].name, name)
            .WithLocation(clause.tables[i].location);
      }
    }
  }
  if (lock->targets.empty()) return nullptr;
  s_.locks_rows = true;
  return lock;
}

}  // namespace cellar::sql::planning
