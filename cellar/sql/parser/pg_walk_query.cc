// SELECT, INSERT, UPDATE, DELETE and what FROM holds.
#include <algorithm>

#include "cellar/sql/parser/pg_walker.h"

namespace cellar::sql::ast {

Alias PgWalker::AliasOf(const ::Alias* alias) {
  Alias out;
  if (alias == nullptr) return out;
  out.name = Str(alias->aliasname);
  out.columns = Strings(alias->colnames);
  return out;
}

QualifiedName PgWalker::Relation(const ::RangeVar* var) {
  QualifiedName out;
  if (var == nullptr) return out;
  out.catalog = Str(var->catalogname);
  out.schema = Str(var->schemaname);
  out.name = Str(var->relname);
  out.location = At(var->location);
  return out;
}

std::vector<QualifiedName> PgWalker::Relations(const ::List* list) {
  std::vector<QualifiedName> out;
  for (const ::RangeVar* var : Items<::RangeVar>(list)) out.push_back(Relation(var));
  return out;
}

Persistence PgWalker::PersistenceOf(const ::RangeVar* var) {
  if (var != nullptr && var->relpersistence == 't') return Persistence::kTemporary;
  if (var != nullptr && var->relpersistence == 'u') return Persistence::kUnlogged;
  return Persistence::kPermanent;
}

std::vector<FromItemPtr> PgWalker::FromList(const ::List* list) {
  std::vector<FromItemPtr> out;
  Items<::Node> items(list);
  out.reserve(items.size());
  for (const ::Node* item : items) out.push_back(From(item));
  return out;
}

FromItemPtr PgWalker::From(const ::Node* node) {
  Level level(this);
  if (!level.ok() || node == nullptr) return nullptr;
  switch (node->type) {
    case T_RangeVar: {
      const auto* var = As<::RangeVar>(node);
      auto out = std::make_unique<TableRef>();
      out->location = At(var->location);
      out->name = Relation(var);
      out->only = !var->inh;
      out->alias = AliasOf(var->alias);
      return out;
    }
    case T_RangeSubselect: {
      const auto* sub = As<::RangeSubselect>(node);
      auto out = std::make_unique<SubqueryRef>();
      out->lateral = sub->lateral;
      out->alias = AliasOf(sub->alias);
      if (Is(sub->subquery, T_SelectStmt)) {
        out->select = Select(As<::SelectStmt>(sub->subquery));
      } else {
        Unexpected(sub->subquery);
      }
      return out;
    }
    case T_RangeFunction: {
      const auto* range = As<::RangeFunction>(node);
      auto out = std::make_unique<FunctionRef>();
      out->lateral = range->lateral;
      out->ordinality = range->ordinality;
      out->rows_from = range->is_rowsfrom;
      out->alias = AliasOf(range->alias);
      out->columns = Columns(range->coldeflist);
      for (const ::List* pair : Items<::List>(range->functions)) {
        FunctionRef::Function& function = out->functions.emplace_back();
        Items<::Node> parts(pair);
        function.call = Expression(parts[0]);
        if (parts.size() > 1) function.columns = Columns(As<::List>(parts[1]));
      }
      if (!out->functions.empty() && out->functions[0].call != nullptr) {
        out->location = out->functions[0].call->location;
      }
      return out;
    }
    case T_RangeTableSample: {
      FromItemPtr out = From(As<::RangeTableSample>(node)->relation);
      if (out != nullptr && out->Is<TableRef>()) out->As<TableRef>().has_sample = true;
      return out;
    }
    case T_JoinExpr: {
      const auto* join = As<::JoinExpr>(node);
      auto out = std::make_unique<JoinExpr>();
      switch (join->jointype) {
        case JOIN_LEFT: out->type = JoinType::kLeft; break;
        case JOIN_FULL: out->type = JoinType::kFull; break;
        case JOIN_RIGHT: out->type = JoinType::kRight; break;
        default: out->type = JoinType::kInner; break;
      }
      out->natural = join->isNatural;
      out->left = From(join->larg);
      out->right = From(join->rarg);
      out->using_columns = Strings(join->usingClause);
      if (join->join_using_alias != nullptr) {
        out->using_alias = Str(join->join_using_alias->aliasname);
      }
      out->condition = Expression(join->quals);
      out->alias = AliasOf(join->alias);
      if (out->left != nullptr) out->location = out->left->location;
      return out;
    }
    case T_RangeTableFunc: {
      auto out = std::make_unique<UnsupportedFrom>();
      out->location = At(As<::RangeTableFunc>(node)->location);
      out->what = "XMLTABLE";
      return out;
    }
    default: Unexpected(node); return nullptr;
  }
}

TargetList PgWalker::Targets(const ::List* list) {
  TargetList out;
  Items<::ResTarget> items(list);
  out.reserve(items.size());
  for (const ::ResTarget* item : items) {
    out.push_back({Expression(item->val), Str(item->name), At(item->location)});
  }
  return out;
}

std::unique_ptr<WithClause> PgWalker::With(const ::WithClause* node) {
  if (node == nullptr) return nullptr;
  auto out = std::make_unique<WithClause>();
  out->recursive = node->recursive;
  out->location = At(node->location);
  for (const ::CommonTableExpr* item : Items<::CommonTableExpr>(node->ctes)) {
    CommonTableExpr& cte = out->ctes.emplace_back();
    cte.name = Str(item->ctename);
    cte.columns = Strings(item->aliascolnames);
    cte.location = At(item->location);
    cte.has_search = item->search_clause != nullptr;
    cte.has_cycle = item->cycle_clause != nullptr;
    if (item->ctematerialized == CTEMaterializeAlways) cte.materialize = CteMaterialize::kAlways;
    if (item->ctematerialized == CTEMaterializeNever) cte.materialize = CteMaterialize::kNever;
    cte.query = Query(item->ctequery);
  }
  return out;
}

// Operands of a left-deep run of one operator become one list.
void PgWalker::SetOperation(const ::SelectStmt* node, SelectStmt* out) {
  switch (node->op) {
    case SETOP_UNION: out->set_op = SetOp::kUnion; break;
    case SETOP_INTERSECT: out->set_op = SetOp::kIntersect; break;
    case SETOP_EXCEPT: out->set_op = SetOp::kExcept; break;
    case SETOP_NONE: break;
  }
  out->set_all = node->all;
  const ::SelectStmt* at = node;
  while (true) {
    out->operands.push_back(Select(at->rarg));
    const ::SelectStmt* left = at->larg;
    const bool same = left->op == node->op && left->all == node->all;
    const bool plain = left->sortClause == nullptr && left->limitOffset == nullptr &&
                       left->limitCount == nullptr && left->lockingClause == nullptr &&
                       left->withClause == nullptr;
    if (!same || !plain) {
      out->operands.push_back(Select(left));
      break;
    }
    at = left;
  }
  std::reverse(out->operands.begin(), out->operands.end());
}

void PgWalker::PlainSelect(const ::SelectStmt* node, SelectStmt* out) {
  Items<::Node> distinct(node->distinctClause);
  if (!distinct.empty()) {
    out->distinct = true;
    if (distinct[0] != nullptr) out->distinct_on = Expressions(node->distinctClause);
  }
  out->targets = Targets(node->targetList);
  out->from = FromList(node->fromClause);
  out->where = Expression(node->whereClause);
  out->group_by = Expressions(node->groupClause);
  out->has_grouping_sets =
      std::any_of(out->group_by.begin(), out->group_by.end(),
                  [](const ExprPtr& e) { return e != nullptr && e->Is<GroupingSet>(); });
  out->group_distinct = node->groupDistinct;
  out->having = Expression(node->havingClause);
  for (const ::WindowDef* def : Items<::WindowDef>(node->windowClause)) {
    out->windows.push_back(std::move(*Window(def)));
  }
  if (node->intoClause != nullptr) {
    out->into = std::make_unique<IntoClause>(Into(node->intoClause));
  }
}

SelectPtr PgWalker::Select(const ::SelectStmt* node) {
  Level level(this);
  if (!level.ok() || node == nullptr) return nullptr;
  auto out = std::make_unique<SelectStmt>();
  out->with = With(node->withClause);
  if (node->op != SETOP_NONE) {
    SetOperation(node, out.get());
  } else if (node->valuesLists != nullptr) {
    Items<::List> rows(node->valuesLists);
    out->values.reserve(rows.size());
    for (const ::List* row : rows) out->values.push_back(Expressions(row));
  } else {
    PlainSelect(node, out.get());
  }
  out->order_by = SortList(node->sortClause);
  out->limit = Expression(node->limitCount);
  out->offset = Expression(node->limitOffset);
  // The library numbers LimitOption differently from PostgreSQL's header: default, count, with
  // ties.
  out->with_ties = node->limitCount != nullptr && static_cast<int>(node->limitOption) == 2;
  for (const ::LockingClause* item : Items<::LockingClause>(node->lockingClause)) {
    LockingClause& lock = out->locking.emplace_back();
    lock.tables = Relations(item->lockedRels);
    switch (item->strength) {
      case LCS_FORKEYSHARE: lock.strength = LockStrength::kForKeyShare; break;
      case LCS_FORSHARE: lock.strength = LockStrength::kForShare; break;
      case LCS_FORNOKEYUPDATE: lock.strength = LockStrength::kForNoKeyUpdate; break;
      default: lock.strength = LockStrength::kForUpdate; break;
    }
    if (item->waitPolicy == LockWaitSkip) lock.wait = LockWait::kSkip;
    if (item->waitPolicy == LockWaitError) lock.wait = LockWait::kError;
  }
  return out;
}

AssignTarget PgWalker::Assign(const ::ResTarget* node) {
  AssignTarget out;
  out.column = Str(node->name);
  out.steps = Steps(node->indirection);
  out.location = At(node->location);
  return out;
}

std::vector<SetClause> PgWalker::Sets(const ::List* targets) {
  std::vector<SetClause> out;
  const ::Node* source = nullptr;  // of the multiple assignment being collected
  for (const ::ResTarget* target : Items<::ResTarget>(targets)) {
    if (!Is(target->val, T_MultiAssignRef)) {
      source = nullptr;
      SetClause& set = out.emplace_back();
      set.targets.push_back(Assign(target));
      set.value = Expression(target->val);
      continue;
    }
    const auto* ref = As<::MultiAssignRef>(target->val);
    if (ref->source != source || ref->colno == 1) {
      source = ref->source;
      out.emplace_back().multi = true;
      out.back().value = Expression(source);
    }
    out.back().targets.push_back(Assign(target));
  }
  return out;
}

std::vector<IndexElement> PgWalker::IndexElements(const ::List* list) {
  std::vector<IndexElement> out;
  for (const ::IndexElem* item : Items<::IndexElem>(list)) {
    IndexElement& element = out.emplace_back();
    element.column = Str(item->name);
    element.expr = Expression(item->expr);
    element.collation = Name(item->collation);
    element.opclass = Name(item->opclass);
    if (item->ordering == SORTBY_ASC) element.direction = SortDirection::kAsc;
    if (item->ordering == SORTBY_DESC) element.direction = SortDirection::kDesc;
    if (item->nulls_ordering == SORTBY_NULLS_FIRST) element.nulls = SortNulls::kFirst;
    if (item->nulls_ordering == SORTBY_NULLS_LAST) element.nulls = SortNulls::kLast;
  }
  return out;
}

std::unique_ptr<OnConflict> PgWalker::Conflict(const ::OnConflictClause* node) {
  if (node == nullptr) return nullptr;
  auto out = std::make_unique<OnConflict>();
  out->do_update = node->action == ONCONFLICT_UPDATE;
  out->location = At(node->location);
  if (node->infer != nullptr) {
    out->elements = IndexElements(node->infer->indexElems);
    out->index_where = Expression(node->infer->whereClause);
    out->constraint = Str(node->infer->conname);
  }
  out->sets = Sets(node->targetList);
  out->where = Expression(node->whereClause);
  return out;
}

StmtPtr PgWalker::Insert(const ::InsertStmt* node) {
  auto out = std::make_unique<InsertStmt>();
  out->with = With(node->withClause);
  out->table = Relation(node->relation);
  if (node->relation->alias != nullptr) out->alias = Str(node->relation->alias->aliasname);
  for (const ::ResTarget* column : Items<::ResTarget>(node->cols)) {
    out->columns.push_back(Assign(column));
  }
  if (Is(node->selectStmt, T_SelectStmt)) {
    out->source = Select(As<::SelectStmt>(node->selectStmt));
  }
  if (node->override == OVERRIDING_USER_VALUE) out->overriding = Overriding::kUserValue;
  if (node->override == OVERRIDING_SYSTEM_VALUE) out->overriding = Overriding::kSystemValue;
  out->on_conflict = Conflict(node->onConflictClause);
  out->returning = Targets(node->returningList);
  return out;
}

StmtPtr PgWalker::Update(const ::UpdateStmt* node) {
  auto out = std::make_unique<UpdateStmt>();
  out->with = With(node->withClause);
  out->table = Relation(node->relation);
  out->only = !node->relation->inh;
  out->alias = AliasOf(node->relation->alias);
  out->sets = Sets(node->targetList);
  out->from = FromList(node->fromClause);
  out->where = Expression(node->whereClause);
  out->returning = Targets(node->returningList);
  return out;
}

StmtPtr PgWalker::Delete(const ::DeleteStmt* node) {
  auto out = std::make_unique<DeleteStmt>();
  out->with = With(node->withClause);
  out->table = Relation(node->relation);
  out->only = !node->relation->inh;
  out->alias = AliasOf(node->relation->alias);
  out->using_items = FromList(node->usingClause);
  out->where = Expression(node->whereClause);
  out->returning = Targets(node->returningList);
  return out;
}

StmtPtr PgWalker::Query(const ::Node* node) {
  Level level(this);
  if (!level.ok() || node == nullptr) return nullptr;
  switch (node->type) {
    case T_SelectStmt: return Select(As<::SelectStmt>(node));
    case T_InsertStmt: return Insert(As<::InsertStmt>(node));
    case T_UpdateStmt: return Update(As<::UpdateStmt>(node));
    case T_DeleteStmt: return Delete(As<::DeleteStmt>(node));
    default: {
      std::string_view tag;
      return Utility(node, &tag);
    }
  }
}

IntoClause PgWalker::Into(const ::IntoClause* node) {
  IntoClause out;
  out.table = Relation(node->rel);
  out.persistence = PersistenceOf(node->rel);
  out.columns = Strings(node->colNames);
  out.options = Options(node->options);
  out.access_method = Str(node->accessMethod);
  out.tablespace = Str(node->tableSpaceName);
  out.no_data = node->skipData;
  switch (node->onCommit) {
    case ONCOMMIT_NOOP: break;
    case ONCOMMIT_PRESERVE_ROWS: out.on_commit = OnCommit::kPreserveRows; break;
    case ONCOMMIT_DELETE_ROWS: out.on_commit = OnCommit::kDeleteRows; break;
    case ONCOMMIT_DROP: out.on_commit = OnCommit::kDrop; break;
  }
  return out;
}

}  // namespace cellar::sql::ast
