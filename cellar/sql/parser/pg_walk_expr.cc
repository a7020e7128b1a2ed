// Expressions, types and names.
#include "cellar/sql/parser/pg_walker.h"

namespace cellar::sql::ast {

namespace {

// Makes a node at a place.
template <typename T>
std::unique_ptr<T> Make(int location) {
  auto node = std::make_unique<T>();
  node->location = location;
  return node;
}

bool IsPgCatalog(const ::List* name, std::string_view function) {
  Items<::String> parts(name);
  return parts.size() == 2 && std::string_view(parts[0]->sval) == "pg_catalog" &&
         function == parts[1]->sval;
}

}  // namespace

bool PgWalker::TooDeep() {
  Fail(SqlError(Code::kLimit, sqlstate::kStatementTooComplex, "stack depth limit exceeded")
           .WithHint(fmt::format("Statements may nest {} levels.", kMaxDepth)));
  return false;
}

void PgWalker::Unexpected(const ::Node* node) {
  if (Is(node, T_ParamRef)) {  // the library's grammar takes parameters where SQL's does not
    Fail(SqlError(Code::kInvalid, sqlstate::kSyntaxError, "syntax error at or near \"${}\"",
                  As<::ParamRef>(node)->number)
             .WithLocation(At(As<::ParamRef>(node)->location)));
    return;
  }
  Fail(InternalError("unknown parse node {}", node == nullptr ? 0 : static_cast<int>(node->type)));
}

NameList PgWalker::Strings(const ::List* list) {
  NameList out;
  Items<::Node> items(list);
  out.reserve(items.size());
  for (const ::Node* item : items) {
    if (Is(item, T_String)) {
      out.push_back(Str(As<::String>(item)->sval));
    } else {
      Unexpected(item);
    }
  }
  return out;
}

QualifiedName PgWalker::Name(const ::List* parts, int location) {
  QualifiedName out;
  out.location = location;
  Items<::Node> items(parts);
  for (const ::Node* item : items) {
    if (!Is(item, T_String)) {
      Unexpected(item);
      return out;
    }
  }
  auto part = [&](size_t from_end) { return As<::String>(items[items.size() - from_end])->sval; };
  if (items.size() > 3) {
    std::string joined;
    for (const std::string& name : Strings(parts)) {
      if (!joined.empty()) joined += '.';
      joined += name;
    }
    Fail(SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                  "improper qualified name (too many dotted names): {}", joined)
             .WithLocation(location));
    return out;
  }
  if (items.size() >= 1) out.name = part(1);
  if (items.size() >= 2) out.schema = part(2);
  if (items.size() == 3) out.catalog = part(3);
  return out;
}

TypeName PgWalker::Type(const ::TypeName* type) {
  TypeName out;
  if (type == nullptr) return out;
  out.location = At(type->location);
  out.name = Name(type->names, At(type->location));
  out.setof = type->setof;
  out.pct_type = type->pct_type;
  for (const ::Node* item : Items<::Node>(type->typmods)) {
    if (Is(item, T_A_Const) && !As<::A_Const>(item)->isnull &&
        As<::A_Const>(item)->val.node.type == T_Integer) {
      out.typmods.push_back(As<::A_Const>(item)->val.ival.ival);
    } else if (Is(item, T_ParamRef)) {
      Unexpected(item);
    } else {
      out.has_other_typmods = true;
    }
  }
  for (const ::Node* item : Items<::Node>(type->arrayBounds)) {
    out.array_bounds.push_back(Is(item, T_Integer) ? As<::Integer>(item)->ival : -1);
  }
  return out;
}

ExprList PgWalker::Expressions(const ::List* list) {
  ExprList out;
  Items<::Node> items(list);
  out.reserve(items.size());
  for (const ::Node* item : items) out.push_back(Expression(item));
  return out;
}

std::vector<SortBy> PgWalker::SortList(const ::List* list) {
  std::vector<SortBy> out;
  Items<::SortBy> items(list);
  out.reserve(items.size());
  for (const ::SortBy* item : items) {
    SortBy& sort = out.emplace_back();
    sort.expr = Expression(item->node);
    switch (item->sortby_dir) {
      case SORTBY_DEFAULT: sort.direction = SortDirection::kDefault; break;
      case SORTBY_ASC: sort.direction = SortDirection::kAsc; break;
      case SORTBY_DESC: sort.direction = SortDirection::kDesc; break;
      case SORTBY_USING: sort.direction = SortDirection::kUsing; break;
    }
    if (item->sortby_nulls == SORTBY_NULLS_FIRST) sort.nulls = SortNulls::kFirst;
    if (item->sortby_nulls == SORTBY_NULLS_LAST) sort.nulls = SortNulls::kLast;
    if (item->useOp != nullptr) sort.using_op = Name(item->useOp, At(item->location));
    sort.location = At(item->location);
  }
  return out;
}

std::unique_ptr<WindowDef> PgWalker::Window(const ::WindowDef* def) {
  if (def == nullptr) return nullptr;
  auto out = std::make_unique<WindowDef>();
  out->name = Str(def->name);
  out->ref_name = Str(def->refname);
  out->partition_by = Expressions(def->partitionClause);
  out->order_by = SortList(def->orderClause);
  out->location = At(def->location);
  const int bits = def->frameOptions;
  out->has_frame = (bits & FRAMEOPTION_NONDEFAULT) != 0;
  out->frame_between = (bits & FRAMEOPTION_BETWEEN) != 0;
  if (bits & FRAMEOPTION_ROWS) out->frame_mode = FrameMode::kRows;
  if (bits & FRAMEOPTION_GROUPS) out->frame_mode = FrameMode::kGroups;
  auto bound = [bits](int unbounded_preceding, int offset_preceding, int current,
                      int offset_following, int unbounded_following) {
    if (bits & unbounded_preceding) return FrameBound::kUnboundedPreceding;
    if (bits & offset_preceding) return FrameBound::kOffsetPreceding;
    if (bits & offset_following) return FrameBound::kOffsetFollowing;
    if (bits & unbounded_following) return FrameBound::kUnboundedFollowing;
    return (bits & current) ? FrameBound::kCurrentRow : FrameBound::kUnboundedPreceding;
  };
  out->frame_start =
      bound(FRAMEOPTION_START_UNBOUNDED_PRECEDING, FRAMEOPTION_START_OFFSET_PRECEDING,
            FRAMEOPTION_START_CURRENT_ROW, FRAMEOPTION_START_OFFSET_FOLLOWING,
            FRAMEOPTION_START_UNBOUNDED_FOLLOWING);
  out->frame_end = bound(FRAMEOPTION_END_UNBOUNDED_PRECEDING, FRAMEOPTION_END_OFFSET_PRECEDING,
                         FRAMEOPTION_END_CURRENT_ROW, FRAMEOPTION_END_OFFSET_FOLLOWING,
                         FRAMEOPTION_END_UNBOUNDED_FOLLOWING);
  if (bits & FRAMEOPTION_EXCLUDE_CURRENT_ROW) out->exclusion = FrameExclusion::kCurrentRow;
  if (bits & FRAMEOPTION_EXCLUDE_GROUP) out->exclusion = FrameExclusion::kGroup;
  if (bits & FRAMEOPTION_EXCLUDE_TIES) out->exclusion = FrameExclusion::kTies;
  out->start_offset = Expression(def->startOffset);
  out->end_offset = Expression(def->endOffset);
  return out;
}

std::vector<IndirectionStep> PgWalker::Steps(const ::List* list) {
  std::vector<IndirectionStep> out;
  for (const ::Node* item : Items<::Node>(list)) {
    IndirectionStep& step = out.emplace_back();
    if (Is(item, T_String)) {
      step.step_kind = IndirectionStep::Kind::kField;
      step.field = Str(As<::String>(item)->sval);
    } else if (Is(item, T_A_Star)) {
      step.step_kind = IndirectionStep::Kind::kStar;
    } else if (Is(item, T_A_Indices)) {
      const auto* indices = As<::A_Indices>(item);
      step.step_kind =
          indices->is_slice ? IndirectionStep::Kind::kSlice : IndirectionStep::Kind::kSubscript;
      step.lower = Expression(indices->lidx);
      step.upper = Expression(indices->uidx);
    } else {
      Unexpected(item);
    }
  }
  return out;
}

ExprPtr PgWalker::Constant(const ::A_Const* node) {
  auto out = Make<Const>(At(node->location));
  if (node->isnull) return out;
  switch (node->val.node.type) {
    case T_Integer:
      out->const_kind = ConstKind::kInteger;
      out->integer = node->val.ival.ival;
      break;
    case T_Float:
      out->const_kind = ConstKind::kNumeric;
      out->text = Str(node->val.fval.fval);
      break;
    case T_Boolean:
      out->const_kind = ConstKind::kBool;
      out->boolean = node->val.boolval.boolval;
      break;
    case T_String:
      out->const_kind = ConstKind::kString;
      out->text = Str(node->val.sval.sval);
      break;
    case T_BitString:
      out->const_kind = ConstKind::kBitString;
      out->text = Str(node->val.bsval.bsval);
      break;
    default: Unexpected(&node->val.node);
  }
  return out;
}

// A left-deep run of binary operators, without recursion along it.
ExprPtr PgWalker::BinaryRun(const ::A_Expr* node) {
  std::vector<const ::A_Expr*> run;  // outermost, that is last, first
  const ::A_Expr* at = node;
  while (true) {
    run.push_back(at);
    if (!Is(at->lexpr, T_A_Expr)) break;
    const auto* left = As<::A_Expr>(at->lexpr);
    if (left->kind != AEXPR_OP || left->lexpr == nullptr || left->rexpr == nullptr) break;
    at = left;
  }
  const bool long_run = run.size() > static_cast<size_t>(OperatorChain::kMinChain);
  // The leaves of a nested run lie as deep as it is long.
  const int outer_depth = depth_;
  if (!long_run) depth_ += static_cast<int>(run.size()) - 1;
  ExprPtr first = Expression(at->lexpr);
  if (long_run) {
    auto chain = Make<OperatorChain>(At(node->location));
    chain->first = std::move(first);
    chain->links.reserve(run.size());
    for (size_t i = run.size(); i-- > 0;) {
      chain->links.push_back({Name(run[i]->name, At(run[i]->location)), Expression(run[i]->rexpr),
                              At(run[i]->location)});
    }
    return chain;
  }
  for (size_t i = run.size(); i-- > 0;) {
    auto op = Make<OperatorExpr>(At(run[i]->location));
    op->op = Name(run[i]->name, At(run[i]->location));
    op->left = std::move(first);
    depth_ = outer_depth + static_cast<int>(i);
    op->right = Expression(run[i]->rexpr);
    first = std::move(op);
  }
  depth_ = outer_depth;
  return first;
}

ExprPtr PgWalker::LikeNode(const ::A_Expr* node, LikeKind kind) {
  auto out = Make<LikeExpr>(At(node->location));
  out->like_kind = kind;
  Items<::String> name(node->name);
  out->negated = !name.empty() && name[0]->sval[0] == '!';
  out->arg = Expression(node->lexpr);
  const ::Node* pattern = node->rexpr;
  if (Is(pattern, T_FuncCall)) {  // the grammar's spelling of ESCAPE, and of SIMILAR TO
    const auto* call = As<::FuncCall>(pattern);
    Items<::Node> args(call->args);
    if (IsPgCatalog(call->funcname,
                    kind == LikeKind::kSimilar ? "similar_to_escape" : "like_escape") &&
        (args.size() == 1 || args.size() == 2)) {
      pattern = args[0];
      if (args.size() == 2) out->escape = Expression(args[1]);
    }
  }
  out->pattern = Expression(pattern);
  return out;
}

ExprPtr PgWalker::OperatorNode(const ::A_Expr* node) {
  switch (node->kind) {
    case AEXPR_OP: {
      if (node->lexpr != nullptr && node->rexpr != nullptr) return BinaryRun(node);
      auto out = Make<OperatorExpr>(At(node->location));
      out->op = Name(node->name, At(node->location));
      out->left = Expression(node->lexpr);
      out->right = Expression(node->rexpr);
      return out;
    }
    case AEXPR_OP_ANY:
    case AEXPR_OP_ALL: {
      auto out = Make<AnyAllExpr>(At(node->location));
      out->op = Name(node->name, At(node->location));
      out->all = node->kind == AEXPR_OP_ALL;
      out->left = Expression(node->lexpr);
      out->right = Expression(node->rexpr);
      return out;
    }
    case AEXPR_DISTINCT:
    case AEXPR_NOT_DISTINCT: {
      auto out = Make<DistinctExpr>(At(node->location));
      out->negated = node->kind == AEXPR_NOT_DISTINCT;
      out->left = Expression(node->lexpr);
      out->right = Expression(node->rexpr);
      return out;
    }
    case AEXPR_NULLIF: {
      auto out = Make<NullIfExpr>(At(node->location));
      out->left = Expression(node->lexpr);
      out->right = Expression(node->rexpr);
      return out;
    }
    case AEXPR_IN: {
      auto out = Make<InExpr>(At(node->location));
      out->negated = std::string_view(Items<::String>(node->name)[0]->sval) == "<>";
      out->arg = Expression(node->lexpr);
      if (Is(node->rexpr, T_List)) {
        out->list = Expressions(As<::List>(node->rexpr));
      } else {
        Unexpected(node->rexpr);
      }
      return out;
    }
    case AEXPR_LIKE: return LikeNode(node, LikeKind::kLike);
    case AEXPR_ILIKE: return LikeNode(node, LikeKind::kILike);
    case AEXPR_SIMILAR: return LikeNode(node, LikeKind::kSimilar);
    case AEXPR_BETWEEN:
    case AEXPR_NOT_BETWEEN:
    case AEXPR_BETWEEN_SYM:
    case AEXPR_NOT_BETWEEN_SYM: {
      auto out = Make<BetweenExpr>(At(node->location));
      out->negated = node->kind == AEXPR_NOT_BETWEEN || node->kind == AEXPR_NOT_BETWEEN_SYM;
      out->symmetric = node->kind == AEXPR_BETWEEN_SYM || node->kind == AEXPR_NOT_BETWEEN_SYM;
      out->arg = Expression(node->lexpr);
      Items<::Node> bounds(Is(node->rexpr, T_List) ? As<::List>(node->rexpr) : nullptr);
      if (bounds.size() != 2) {
        Unexpected(node->rexpr);
        return out;
      }
      out->low = Expression(bounds[0]);
      out->high = Expression(bounds[1]);
      return out;
    }
  }
  Unexpected(reinterpret_cast<const ::Node*>(node));
  return nullptr;
}

ExprPtr PgWalker::Call(const ::FuncCall* node) {
  auto out = Make<FuncCall>(At(node->location));
  out->name = Name(node->funcname, At(node->location));
  out->args = Expressions(node->args);
  out->order_by = SortList(node->agg_order);
  out->filter = Expression(node->agg_filter);
  out->over = Window(node->over);
  out->within_group = node->agg_within_group;
  out->star = node->agg_star;
  out->distinct = node->agg_distinct;
  out->variadic = node->func_variadic;
  out->sql_syntax = node->funcformat == COERCE_SQL_SYNTAX;
  return out;
}

ExprPtr PgWalker::Cast(const ::TypeCast* node) {
  // TRUE and FALSE arrive as a cast that nobody wrote.
  if (Is(node->arg, T_A_Const) && node->location == -1) {
    const auto* constant = As<::A_Const>(node->arg);
    if (!constant->isnull && constant->val.node.type == T_Boolean) return Constant(constant);
  }
  auto out = Make<TypeCast>(At(node->location));
  out->arg = Expression(node->arg);
  out->type = Type(node->typeName);
  return out;
}

ExprPtr PgWalker::Case(const ::CaseExpr* node) {
  auto out = Make<CaseExpr>(At(node->location));
  out->arg = Expression(reinterpret_cast<const ::Node*>(node->arg));
  Items<::CaseWhen> whens(node->args);
  out->whens.reserve(whens.size());
  for (const ::CaseWhen* when : whens) {
    out->whens.push_back({Expression(reinterpret_cast<const ::Node*>(when->expr)),
                          Expression(reinterpret_cast<const ::Node*>(when->result)),
                          At(when->location)});
  }
  out->default_result = Expression(reinterpret_cast<const ::Node*>(node->defresult));
  return out;
}

ExprPtr PgWalker::SubQuery(const ::SubLink* node) {
  auto out = Make<SubLink>(At(node->location));
  switch (node->subLinkType) {
    case EXISTS_SUBLINK: out->sub_kind = SubLinkKind::kExists; break;
    case ALL_SUBLINK: out->sub_kind = SubLinkKind::kAll; break;
    case ANY_SUBLINK: out->sub_kind = SubLinkKind::kAny; break;
    case EXPR_SUBLINK: out->sub_kind = SubLinkKind::kExpr; break;
    case ARRAY_SUBLINK: out->sub_kind = SubLinkKind::kArray; break;
    default: Unexpected(reinterpret_cast<const ::Node*>(node)); return out;
  }
  out->test = Expression(node->testexpr);
  if (node->operName != nullptr) {
    out->op = Name(node->operName, At(node->location));
  } else if (out->sub_kind == SubLinkKind::kAny) {
    out->op.name = "=";
    out->op.location = At(node->location);
    out->is_in = true;
  }
  if (Is(node->subselect, T_SelectStmt)) {
    out->select = Select(As<::SelectStmt>(node->subselect));
  } else {
    Unexpected(node->subselect);
  }
  return out;
}

ExprPtr PgWalker::SqlValue(const ::SQLValueFunction* node) {
  auto out = Make<SqlValueFunction>(At(node->location));
  auto set = [&](SqlValueKind kind, bool precision = false) {
    out->function = kind;
    if (precision) out->precision = node->typmod;
  };
  switch (node->op) {
    case SVFOP_CURRENT_DATE: set(SqlValueKind::kCurrentDate); break;
    case SVFOP_CURRENT_TIME: set(SqlValueKind::kCurrentTime); break;
    case SVFOP_CURRENT_TIME_N: set(SqlValueKind::kCurrentTime, true); break;
    case SVFOP_CURRENT_TIMESTAMP: set(SqlValueKind::kCurrentTimestamp); break;
    case SVFOP_CURRENT_TIMESTAMP_N: set(SqlValueKind::kCurrentTimestamp, true); break;
    case SVFOP_LOCALTIME: set(SqlValueKind::kLocalTime); break;
    case SVFOP_LOCALTIME_N: set(SqlValueKind::kLocalTime, true); break;
    case SVFOP_LOCALTIMESTAMP: set(SqlValueKind::kLocalTimestamp); break;
    case SVFOP_LOCALTIMESTAMP_N: set(SqlValueKind::kLocalTimestamp, true); break;
    case SVFOP_CURRENT_ROLE: set(SqlValueKind::kCurrentRole); break;
    case SVFOP_CURRENT_USER: set(SqlValueKind::kCurrentUser); break;
    case SVFOP_USER: set(SqlValueKind::kUser); break;
    case SVFOP_SESSION_USER: set(SqlValueKind::kSessionUser); break;
    case SVFOP_CURRENT_CATALOG: set(SqlValueKind::kCurrentCatalog); break;
    case SVFOP_CURRENT_SCHEMA: set(SqlValueKind::kCurrentSchema); break;
  }
  return out;
}

ExprPtr PgWalker::Unsupported(std::string what, int location) {
  auto out = Make<UnsupportedExpr>(location);
  out->what = std::move(what);
  return out;
}

ExprPtr PgWalker::Expression(const ::Node* node) {
  if (node == nullptr) return nullptr;
  Level level(this);
  if (!level.ok()) return nullptr;
  switch (node->type) {
    case T_A_Const: return Constant(As<::A_Const>(node));
    case T_ColumnRef: {
      const auto* ref = As<::ColumnRef>(node);
      auto out = Make<ColumnRef>(At(ref->location));
      Items<::Node> fields(ref->fields);
      out->parts.reserve(fields.size());
      for (const ::Node* field : fields) {
        if (Is(field, T_A_Star)) {
          out->star = true;
        } else {
          out->parts.push_back(Str(As<::String>(field)->sval));
        }
      }
      return out;
    }
    case T_ParamRef: {
      auto out = Make<ParamRef>(At(As<::ParamRef>(node)->location));
      out->number = As<::ParamRef>(node)->number;
      if (out->number < 1) {  // `?`, which the library's grammar takes for a parameter, or $0
        Fail(SqlError(Code::kInvalid, sqlstate::kUndefinedParameter, "there is no parameter ${}",
                      out->number)
                 .WithLocation(out->location));
      }
      return out;
    }
    case T_A_Expr: return OperatorNode(As<::A_Expr>(node));
    case T_BoolExpr: {
      const auto* expr = As<::BoolExpr>(node);
      auto out = Make<BoolExpr>(At(expr->location));
      out->op = expr->boolop == AND_EXPR  ? BoolOp::kAnd
                : expr->boolop == OR_EXPR ? BoolOp::kOr
                                          : BoolOp::kNot;
      out->args = Expressions(expr->args);
      return out;
    }
    case T_NullTest: {
      const auto* test = As<::NullTest>(node);
      auto out = Make<NullTest>(At(test->location));
      out->negated = test->nulltesttype == IS_NOT_NULL;
      out->arg = Expression(reinterpret_cast<const ::Node*>(test->arg));
      return out;
    }
    case T_BooleanTest: {
      const auto* test = As<::BooleanTest>(node);
      auto out = Make<BooleanTest>(At(test->location));
      out->arg = Expression(reinterpret_cast<const ::Node*>(test->arg));
      const auto type = test->booltesttype;
      out->negated = type == IS_NOT_TRUE || type == IS_NOT_FALSE || type == IS_NOT_UNKNOWN;
      out->test = type == IS_TRUE || type == IS_NOT_TRUE     ? BooleanTestKind::kTrue
                  : type == IS_FALSE || type == IS_NOT_FALSE ? BooleanTestKind::kFalse
                                                             : BooleanTestKind::kUnknown;
      return out;
    }
    case T_CaseExpr: return Case(As<::CaseExpr>(node));
    case T_CoalesceExpr: {
      auto out = Make<CoalesceExpr>(At(As<::CoalesceExpr>(node)->location));
      out->args = Expressions(As<::CoalesceExpr>(node)->args);
      return out;
    }
    case T_MinMaxExpr: {
      auto out = Make<MinMaxExpr>(At(As<::MinMaxExpr>(node)->location));
      out->greatest = As<::MinMaxExpr>(node)->op == IS_GREATEST;
      out->args = Expressions(As<::MinMaxExpr>(node)->args);
      return out;
    }
    case T_FuncCall: return Call(As<::FuncCall>(node));
    case T_NamedArgExpr: {
      auto out = Make<NamedArgExpr>(At(As<::NamedArgExpr>(node)->location));
      out->name = Str(As<::NamedArgExpr>(node)->name);
      out->arg = Expression(reinterpret_cast<const ::Node*>(As<::NamedArgExpr>(node)->arg));
      return out;
    }
    case T_TypeCast: return Cast(As<::TypeCast>(node));
    case T_SubLink: return SubQuery(As<::SubLink>(node));
    case T_A_ArrayExpr: {
      auto out = Make<ArrayExpr>(At(As<::A_ArrayExpr>(node)->location));
      out->elements = Expressions(As<::A_ArrayExpr>(node)->elements);
      return out;
    }
    case T_A_Indirection: {
      auto out = Make<IndirectionExpr>(-1);
      out->arg = Expression(As<::A_Indirection>(node)->arg);
      if (out->arg != nullptr) out->location = out->arg->location;
      out->steps = Steps(As<::A_Indirection>(node)->indirection);
      return out;
    }
    case T_RowExpr: {
      const auto* row = As<::RowExpr>(node);
      auto out = Make<RowExpr>(At(row->location));
      out->explicit_row = row->row_format == COERCE_EXPLICIT_CALL;
      out->args = Expressions(row->args);
      return out;
    }
    case T_SQLValueFunction: return SqlValue(As<::SQLValueFunction>(node));
    case T_CollateClause: {
      const auto* collate = As<::CollateClause>(node);
      auto out = Make<CollateExpr>(At(collate->location));
      out->arg = Expression(collate->arg);
      out->collation = Name(collate->collname, At(collate->location));
      return out;
    }
    case T_SetToDefault: return Make<DefaultExpr>(At(As<::SetToDefault>(node)->location));
    case T_GroupingFunc: {
      auto out = Make<GroupingFunc>(At(As<::GroupingFunc>(node)->location));
      out->args = Expressions(As<::GroupingFunc>(node)->args);
      return out;
    }
    case T_GroupingSet: {
      const auto* set = As<::GroupingSet>(node);
      auto out = Make<GroupingSet>(At(set->location));
      switch (set->kind) {
        case GROUPING_SET_EMPTY: out->set_kind = GroupingSetKind::kEmpty; break;
        case GROUPING_SET_SIMPLE: out->set_kind = GroupingSetKind::kSimple; break;
        case GROUPING_SET_ROLLUP: out->set_kind = GroupingSetKind::kRollup; break;
        case GROUPING_SET_CUBE: out->set_kind = GroupingSetKind::kCube; break;
        case GROUPING_SET_SETS: out->set_kind = GroupingSetKind::kSets; break;
      }
      out->content = Expressions(set->content);
      return out;
    }
    case T_CurrentOfExpr: {
      auto out = Make<CurrentOfExpr>(-1);
      out->cursor = Str(As<::CurrentOfExpr>(node)->cursor_name);
      return out;
    }
    case T_XmlExpr: return Unsupported("XML", At(As<::XmlExpr>(node)->location));
    case T_XmlSerialize: return Unsupported("XMLSERIALIZE", At(As<::XmlSerialize>(node)->location));
    default: Unexpected(node); return nullptr;
  }
}

}  // namespace cellar::sql::ast
