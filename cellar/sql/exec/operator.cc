// What operators share: building the tree, slots, copying columns.
#include "cellar/sql/exec/operator.h"

#include <algorithm>
#include <chrono>

#include "cellar/base/sqlstate.h"

namespace cellar::sql::exec {

Status ExecState::CheckMemory(size_t bytes) const {
  if (bytes <= env.memory_limit_bytes) return Status();
  return SqlError(Code::kLimit, sqlstate::kOutOfMemory, "out of memory for this query")
      .WithDetail(fmt::format("A sort, hash table or buffer would hold {} bytes; work_mem lets it "
                              "have {}.",
                              bytes, env.memory_limit_bytes))
      .WithHint("Select less at once, or raise work_mem.");
}

Result<RowBatch*> Operator::TimedNext() {
  auto start = std::chrono::steady_clock::now();
  Result<RowBatch*> batch = DoNext();
  counters().nanoseconds +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count();
  if (batch.ok() && *batch != nullptr) counters().rows += (*batch)->size();
  return batch;
}

std::vector<Type> TypesOf(const std::vector<OutputColumn>& columns) {
  std::vector<Type> types;
  types.reserve(columns.size());
  for (const OutputColumn& column : columns) types.push_back(column.type);
  return types;
}

std::vector<Type> TypesOf(const std::vector<ExprPtr>& exprs) {
  std::vector<Type> types;
  types.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) types.push_back(expr->type);
  return types;
}

Result<OperatorPtr> Build(const PlanNode& node, ExecState* state) {
  std::vector<OperatorPtr> children;
  for (const PlanPtr& child : node.children) {
    CELLAR_TRY_ASSIGN(OperatorPtr built, Build(*child, state));
    children.push_back(SuitRows(node, std::move(built), state));
  }
  switch (node.kind) {
    case PlanKind::kResult:
    case PlanKind::kValues:
    case PlanKind::kScan:
    case PlanKind::kVirtualScan:
    case PlanKind::kFunctionScan:
    case PlanKind::kExternal:
    case PlanKind::kCteScan:
    case PlanKind::kWorkTableScan: return BuildSource(node, state);
    case PlanKind::kFilter:
    case PlanKind::kProject:
    case PlanKind::kProjectSet:
    case PlanKind::kLimit: return BuildRowwise(node, std::move(children[0]), state);
    case PlanKind::kNestedLoop:
    case PlanKind::kHashJoin:
    case PlanKind::kLookupJoin: return BuildJoin(node, std::move(children), state);
    case PlanKind::kSort: return BuildSort(node, std::move(children[0]), state);
    case PlanKind::kLockRows: return BuildLockRows(node, std::move(children[0]), state);
    case PlanKind::kDistinct: return BuildDistinct(node, std::move(children[0]), state);
    case PlanKind::kAggregate: return BuildAggregate(node, std::move(children[0]), state);
    case PlanKind::kWindow: return BuildWindow(node, std::move(children[0]), state);
    case PlanKind::kAppend:
    case PlanKind::kSetOperation:
    case PlanKind::kRecursiveUnion: return BuildSetOperation(node, std::move(children), state);
    case PlanKind::kInsert:
    case PlanKind::kUpdate:
    case PlanKind::kDelete:
      return BuildModify(node, children.empty() ? nullptr : std::move(children[0]), state);
  }
  return InternalError("plan node {} has no operator", static_cast<int>(node.kind));
}

namespace {

// Gathers slots that are read and slots that are filled.
class SlotCollector {
 public:
  explicit SlotCollector(const Plan& plan) : plan_(plan) {}

  void Exprs(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& expr : exprs) One(*expr);
  }

  void Node(const PlanNode& node) {
    for (const PlanPtr& child : node.children) Node(*child);
    VisitNodeExprs(node, [this](const Expr& expr) { One(expr); });
    switch (node.kind) {
      case PlanKind::kNestedLoop: {
        const std::vector<int>& slots = node.As<NestedLoopNode>().slots;
        filled_.insert(filled_.end(), slots.begin(), slots.end());
        break;
      }
      case PlanKind::kCteScan: {
        int cte = node.As<CteScanNode>().cte;
        if (std::find(ctes_.begin(), ctes_.end(), cte) == ctes_.end()) {
          ctes_.push_back(cte);
          Node(*plan_.ctes[cte]);
        }
        break;
      }
      case PlanKind::kRecursiveUnion:
        made_.push_back(node.As<RecursiveUnionNode>().work_table);
        break;
      case PlanKind::kWorkTableScan:
        scanned_.push_back(node.As<WorkTableScanNode>().work_table);
        break;
      default: break;
    }
  }

  // Reads the work table of a recursive query that runs outside.
  bool ReadsOuterWorkTable() const {
    return std::any_of(scanned_.begin(), scanned_.end(), [this](int table) {
      return std::find(made_.begin(), made_.end(), table) == made_.end();
    });
  }

  std::vector<int> Outer() {
    std::sort(read_.begin(), read_.end());
    read_.erase(std::unique(read_.begin(), read_.end()), read_.end());
    std::vector<int> outer;
    for (int slot : read_) {
      if (std::find(filled_.begin(), filled_.end(), slot) == filled_.end()) outer.push_back(slot);
    }
    return outer;
  }

 private:
  void One(const Expr& expr) {
    VisitExpr(expr, [this](const Expr& part) {
      if (part.kind == ExprKind::kExecParameter) read_.push_back(part.index);
      if (part.kind == ExprKind::kSubplan) {
        filled_.insert(filled_.end(), part.slots.begin(), part.slots.end());
        Node(*plan_.subplans[part.index]);
      }
    });
  }

  const Plan& plan_;
  std::vector<int> read_, filled_, ctes_, scanned_, made_;
};

}  // namespace

std::vector<int> OuterSlots(const PlanNode& node, const Plan& plan) {
  SlotCollector collector(plan);
  collector.Node(node);
  return collector.Outer();
}

bool ReadsSlots(const std::vector<ExprPtr>& exprs, const Plan& plan) {
  SlotCollector collector(plan);
  collector.Exprs(exprs);
  return !collector.Outer().empty();
}

bool ReadsWorkTable(const PlanNode& node, const Plan& plan) {
  SlotCollector collector(plan);
  collector.Node(node);
  return collector.ReadsOuterWorkTable();
}

Status FinishModifyingCtes(ExecState* state) {
  for (size_t i = 0; i < state->ctes.size(); ++i) {
    const PlanNode& source = *state->plan->ctes[i];
    ExecState::Cte& cte = state->ctes[i];
    const bool modifies = source.kind == PlanKind::kInsert || source.kind == PlanKind::kUpdate ||
                          source.kind == PlanKind::kDelete;
    if (!modifies || cte.ready) continue;
    CELLAR_TRY_ASSIGN(cte.source, Build(source, state));
    cte.rows.Reset(TypesOf(source.output));
    CELLAR_TRY(ReadAll(cte.source.get(), state, &cte.rows));
    cte.ready = cte.complete = true;
  }
  return Status();
}

namespace {

// Counts the scans of each WITH query, and finds those that may be opened again.
class CteReaders {
 public:
  explicit CteReaders(const Plan& plan) : plan_(plan), readers_(plan.ctes.size()) {
    Node(*plan.root, true);
    for (const PlanPtr& subplan : plan.subplans) Node(*subplan, false);
  }
  bool ReadOnce(size_t cte) const { return readers_[cte].scans == 1 && !readers_[cte].again; }

 private:
  struct Readers {
    int scans = 0;
    bool again = false;
  };
  void Node(const PlanNode& node, bool once) {
    if (node.kind == PlanKind::kCteScan) {
      const int index = node.As<CteScanNode>().cte;
      Readers& readers = readers_[static_cast<size_t>(index)];
      readers.again = readers.again || !once;
      if (readers.scans++ == 0) Node(*plan_.ctes[index], IsStable(*plan_.ctes[index], plan_));
    }
    for (size_t i = 0; i < node.children.size(); ++i) {
      const bool inner =
          i > 0 &&
          ((node.kind == PlanKind::kNestedLoop && !node.As<NestedLoopNode>().slots.empty()) ||
           node.kind == PlanKind::kRecursiveUnion);
      Node(*node.children[i], once && !inner);
    }
  }

  const Plan& plan_;
  std::vector<Readers> readers_;
};

}  // namespace

void FindCtesReadOnce(ExecState* state) {
  if (state->ctes.empty()) return;
  const CteReaders readers(*state->plan);
  for (size_t i = 0; i < state->ctes.size(); ++i) state->ctes[i].read_once = readers.ReadOnce(i);
}

Status ReadAll(Operator* child, ExecState* state, RowBatch* rows) {
  CELLAR_TRY(child->Open());
  while (true) {
    CELLAR_TRY_ASSIGN(RowBatch * batch, child->Next());
    if (batch == nullptr) return Status();
    rows->AppendAll(*batch);
    CELLAR_TRY(state->CheckMemory(rows->footprint_bytes()));
  }
}

void CopyColumn(const ColumnVector& from, size_t rows, ColumnVector* to) {
  to->Reset(from.type());
  to->Resize(rows);
  if (rows == 0) return;
  if (from.physical() == Physical::kBytes) {
    std::copy_n(from.bytes(), rows, to->bytes());
  } else {
    std::copy_n(from.ints(), rows, to->ints());
  }
  if (from.has_nulls()) {
    std::copy_n(from.nulls(), rows, to->nulls());
    to->set_has_nulls();
  }
}

void PadWithNulls(size_t rows, ColumnVector* column) {
  const size_t given = column->size();
  if (given >= rows) return;
  column->Resize(rows);
  for (size_t i = given; i < rows; ++i) column->SetNull(i);
}

void GatherColumn(const ColumnVector& from, const uint32_t* rows, size_t count, ColumnVector* to) {
  to->Reset(from.type());
  to->Resize(count);
  const bool wide = from.physical() == Physical::kBytes;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t row = rows[i];
    if (row == kNoRow || from.IsNull(row)) {
      to->SetNull(i);
    } else if (wide) {
      to->bytes()[i] = from.bytes()[row];
    } else {
      to->ints()[i] = from.ints()[row];
    }
  }
}

ExprList::ExprList(const std::vector<ExprPtr>& exprs) {
  for (const ExprPtr& expr : exprs) evaluators_.emplace_back(expr.get());
  columns_.resize(exprs.size());
}

Status ExprList::Eval(const RowBatch& input, EvalContext& context) {
  Selection all{nullptr, input.size()};
  for (size_t i = 0; i < evaluators_.size(); ++i) {
    CELLAR_TRY_ASSIGN(columns_[i], evaluators_[i].Eval(input, all, context));
  }
  return Status();
}

void PartInput::Watch(const Expr& expr) {
  VisitExpr(expr, [this](const Expr& part) {
    watched_ =
        watched_ || (PhysicalOf(part.type) == Physical::kBytes && part.kind != ExprKind::kColumn &&
                     part.kind != ExprKind::kConstant && part.kind != ExprKind::kParameter);
  });
}

Result<RowBatch*> PartInput::Next(Operator* child) {
  if (input_ == nullptr) {
    CELLAR_TRY_ASSIGN(RowBatch * batch, child->Next());
    if (batch == nullptr || !watched_ || batch->size() <= most_rows_) return batch;
    input_ = batch;
    next_ = 0;
  }
  RowBatch* part = EmitChunk(*input_, nullptr, &next_, &part_, most_rows_);
  if (next_ >= input_->size()) input_ = nullptr;
  return part;
}

RowBatch* EmitChunk(const RowBatch& rows, const std::vector<int>* columns, size_t* next,
                    RowBatch* out, size_t most) {
  if (*next >= rows.size()) return nullptr;
  const size_t start = *next;
  const size_t count = std::min(most, rows.size() - start);
  const size_t width = columns ? columns->size() : rows.num_columns();
  out->columns().resize(width);
  for (size_t c = 0; c < width; ++c) {
    const ColumnVector& from = rows.column(columns ? (*columns)[c] : c);
    ColumnVector& to = out->column(c);
    to.Reset(from.type());
    to.Resize(count);
    if (from.physical() == Physical::kBytes) {
      std::copy_n(from.bytes() + start, count, to.bytes());
    } else {
      std::copy_n(from.ints() + start, count, to.ints());
    }
    if (from.has_nulls()) {
      std::copy_n(from.nulls() + start, count, to.nulls());
      to.set_has_nulls();
    }
  }
  out->SetSize(count);
  *next += count;
  return out;
}

RowBatch* StoredRows::NextChunk(RowBatch* out) {
  if (!ordered_) return EmitChunk(rows_, nullptr, &next_, out);
  if (next_ >= order_.size()) return nullptr;
  const size_t count = std::min(kBatchRows, order_.size() - next_);
  out->columns().resize(rows_.num_columns());
  for (size_t c = 0; c < rows_.num_columns(); ++c) {
    GatherColumn(rows_.column(c), order_.data() + next_, count, &out->column(c));
  }
  out->SetSize(count);
  next_ += count;
  return out;
}

}  // namespace cellar::sql::exec
