// EXPLAIN's text, in PostgreSQL's look with what is ours: spans, trips, rows and bytes read.
#include <algorithm>

#include "cellar/sql/plan/planner.h"

namespace cellar::sql {

namespace {

// Spans printed of one scan.
constexpr size_t kMaxSpansShown = 10;

using Names = std::vector<std::string>;

Names NamesOf(const PlanNode& node) {
  Names out;
  out.reserve(node.output.size());
  for (const OutputColumn& column : node.output) out.push_back(column.name);
  return out;
}

std::string Join(const Names& parts, std::string_view separator = ", ") {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string List(const std::vector<ExprPtr>& exprs, const Names& names) {
  Names parts;
  for (const ExprPtr& expr : exprs) parts.push_back(ExprToString(*expr, names));
  return Join(parts);
}

std::string SortKeys(const std::vector<SortKey>& keys, const Names& names) {
  Names parts;
  for (const SortKey& key : keys) {
    std::string text = ExprToString(*key.expr, names);
    if (key.descending) text += " DESC";
    if (key.nulls_first != key.descending) text += key.nulls_first ? " NULLS FIRST" : " NULLS LAST";
    parts.push_back(std::move(text));
  }
  return Join(parts);
}

std::string AggregateText(const AggregateCall& call, const Names& names) {
  std::string out(call.spec->name);
  out += call.args.empty() ? "(*" : "(";
  if (call.distinct) out += "DISTINCT ";
  out += List(call.args, names);
  if (!call.order_by.empty()) out += " ORDER BY " + SortKeys(call.order_by, names);
  out += ")";
  if (call.filter != nullptr) out += " FILTER (WHERE " + ExprToString(*call.filter, names) + ")";
  return out;
}

// "for update", and what is done about rows that others hold.
std::string LockText(RowLock lock) {
  static constexpr std::string_view kModes[] = {"for key share", "for share", "for no key update",
                                                "for update"};
  static constexpr std::string_view kWaits[] = {"", " nowait", " skip locked"};
  return fmt::format("{}{}", kModes[static_cast<size_t>(lock.mode)],
                     kWaits[static_cast<size_t>(lock.wait)]);
}

const catalog::IndexDescriptor* IndexOf(const catalog::TableDescriptor& table,
                                        catalog::IndexId id) {
  return table.FindIndex(id);
}

bool IndexHolds(const catalog::TableDescriptor& table, const catalog::IndexDescriptor& index,
                const std::vector<catalog::ColumnId>& columns) {
  for (catalog::ColumnId column : columns) {
    bool found = std::find(index.stored.begin(), index.stored.end(), column) != index.stored.end();
    for (const catalog::IndexColumn& key : index.key) found = found || key.column == column;
    for (const catalog::IndexColumn& key : table.primary().key)
      found = found || key.column == column;
    if (!found) return false;
  }
  return true;
}

bool IsWhole(const std::vector<SpanExpr>& spans) {
  return spans.size() == 1 && spans[0].equal.empty() && spans[0].lower.value == nullptr &&
         spans[0].upper.value == nullptr && !spans[0].only_null && !spans[0].exclude_null;
}

std::string SpanText(const SpanExpr& span) {
  Names equal;
  for (size_t i = 0; i < span.equal.size(); ++i) {
    bool null = i < span.equal_null.size() && span.equal_null[i];
    std::string text = null ? "NULL" : ExprToString(*span.equal[i], {});
    if (static_cast<int>(i) == span.array_position) text = "each of " + text;
    equal.push_back(std::move(text));
  }
  auto end = [&](const BoundExpr& bound, std::string_view open) {
    Names parts = equal;
    if (bound.value != nullptr) parts.push_back(ExprToString(*bound.value, {}));
    if (parts.empty()) return std::string(open);
    return "(" + Join(parts) + ")";
  };
  if (span.only_null) {
    Names parts = equal;
    parts.push_back("NULL");
    return "[(" + Join(parts) + ") - (" + Join(parts) + ")]";
  }
  bool low_open = span.lower.value != nullptr && !span.lower.inclusive;
  bool high_open = span.upper.value != nullptr && !span.upper.inclusive;
  std::string out = low_open ? "(" : "[";
  out += end(span.lower, "-inf") + " - " + end(span.upper, "+inf");
  out += high_open ? ")" : "]";
  if (span.exclude_null && span.lower.value == nullptr && span.upper.value == nullptr)
    out += " not null";
  return out;
}

std::string On(const catalog::TableDescriptor& table, const std::string& alias) {
  if (alias.empty() || alias == table.name) return table.name;
  return table.name + " " + alias;
}

int WidthOf(const PlanNode& node) {
  int width = 0;
  for (const OutputColumn& column : node.output) {
    int length = TypeLength(column.type);
    width += length > 0 ? length : 32;
  }
  return width;
}

class Explainer {
 public:
  Explainer(const Plan& plan, const ExplainOptions& options, std::span<const NodeCounters> counters)
      : plan_(plan), options_(options), counters_(counters) {}

  std::vector<std::string> Run() {
    Show(*plan_.root, 0, true);
    for (size_t i = 0; i < plan_.ctes.size(); ++i) {
      lines_.push_back("  CTE " + CteName(static_cast<int>(i)));
      Show(*plan_.ctes[i], 4, false);
    }
    for (size_t i = 0; i < plan_.subplans.size(); ++i) {
      lines_.push_back(fmt::format("  SubPlan {}", i + 1));
      Show(*plan_.subplans[i], 4, false);
    }
    return std::move(lines_);
  }

 private:
  std::string CteName(int cte) const {
    std::string name = fmt::format("{}", cte + 1);
    auto look = [&](auto&& self, const PlanNode& node) -> void {
      if (node.kind == PlanKind::kCteScan && node.As<CteScanNode>().cte == cte) {
        name = node.As<CteScanNode>().name;
      }
      for (const PlanPtr& child : node.children) self(self, *child);
    };
    look(look, *plan_.root);
    for (const PlanPtr& other : plan_.ctes) look(look, *other);
    for (const PlanPtr& subplan : plan_.subplans) look(look, *subplan);
    return name;
  }

  void Detail(int indent, std::string_view label, std::string text) {
    lines_.push_back(std::string(static_cast<size_t>(indent), ' ') + std::string(label) + ": " +
                     std::move(text));
  }

  std::string Figures(const PlanNode& node) {
    std::string out;
    if (options_.costs) {
      out += fmt::format("  (cost=0.00..{:.2f} rows={:.0f} width={})", node.cost / 1000,
                         std::max(0.0, node.rows), WidthOf(node));
    }
    if (options_.analyze && static_cast<size_t>(node.id) < counters_.size()) {
      const NodeCounters& c = counters_[static_cast<size_t>(node.id)];
      out += options_.costs ? " " : "  ";
      if (c.loops == 0) {
        out += "(never executed)";
      } else {
        double loops = static_cast<double>(c.loops);
        std::string time;
        if (options_.timing) {
          time =
              fmt::format("time=0.000..{:.3f} ", static_cast<double>(c.nanoseconds) / 1e6 / loops);
        }
        out += fmt::format("(actual {}rows={:.0f} loops={})", time,
                           static_cast<double>(c.rows) / loops, c.loops);
      }
    }
    return out;
  }

  static std::string_view JoinWord(JoinKind kind) {
    switch (kind) {
      case JoinKind::kInner: return "";
      case JoinKind::kLeft: return "Left ";
      case JoinKind::kRight: return "Right ";
      case JoinKind::kFull: return "Full ";
      case JoinKind::kSemi: return "Semi ";
      case JoinKind::kAnti: return "Anti ";
    }
    return "";
  }

  std::string Title(const PlanNode& node) {
    switch (node.kind) {
      case PlanKind::kResult: return "Result";
      case PlanKind::kValues:
        return node.As<ValuesNode>().rows_exprs.size() == 1 ? "Result" : "Values Scan";
      case PlanKind::kScan: {
        const auto& scan = node.As<ScanNode>();
        const catalog::IndexDescriptor* index = IndexOf(*scan.table, scan.index);
        if (index == nullptr) return "Scan on " + On(*scan.table, scan.alias);
        if (index->primary && IsWhole(scan.spans) && !scan.reverse) {
          return "Seq Scan on " + On(*scan.table, scan.alias);
        }
        bool only = !index->primary && IndexHolds(*scan.table, *index, scan.columns) &&
                    IndexHolds(*scan.table, *index, scan.filter_columns);
        return fmt::format("Index {}Scan {}using {} on {}", only ? "Only " : "",
                           scan.reverse ? "Backward " : "", index->name,
                           On(*scan.table, scan.alias));
      }
      case PlanKind::kVirtualScan: return "Seq Scan on " + node.As<VirtualScanNode>().table;
      case PlanKind::kFunctionScan: {
        const auto& scan = node.As<FunctionScanNode>();
        std::string name = "function";
        if (scan.calls.size() == 1 && scan.calls[0]->function != nullptr) {
          name = std::string(scan.calls[0]->function->name);
        }
        return "Function Scan on " + name;
      }
      case PlanKind::kFilter: return "Filter";
      case PlanKind::kExternal: return "External Rows";
      case PlanKind::kProject: return "Result";
      case PlanKind::kProjectSet: return "ProjectSet";
      case PlanKind::kNestedLoop: {
        JoinKind kind = node.As<NestedLoopNode>().join;
        return kind == JoinKind::kInner ? "Nested Loop"
                                        : fmt::format("Nested Loop {}Join", JoinWord(kind));
      }
      case PlanKind::kHashJoin:
        return fmt::format("Hash {}Join", JoinWord(node.As<HashJoinNode>().join));
      case PlanKind::kLookupJoin: {
        const auto& join = node.As<LookupJoinNode>();
        const catalog::IndexDescriptor* index = IndexOf(*join.table, join.index);
        return fmt::format("Lookup {}Join using {} on {}", JoinWord(join.join),
                           index != nullptr ? index->name : "?", On(*join.table, join.alias));
      }
      case PlanKind::kSort: return "Sort";
      case PlanKind::kLimit: return "Limit";
      case PlanKind::kDistinct: return node.As<DistinctNode>().sorted ? "Unique" : "HashAggregate";
      case PlanKind::kAggregate:
        return node.As<AggregateNode>().keys.empty() ? "Aggregate" : "HashAggregate";
      case PlanKind::kWindow: return "WindowAgg";
      case PlanKind::kAppend: return "Append";
      case PlanKind::kSetOperation: {
        const auto& set = node.As<SetOperationNode>();
        std::string_view word = set.operation == SetOperationNode::Kind::kUnion       ? "Union"
                                : set.operation == SetOperationNode::Kind::kIntersect ? "Intersect"
                                                                                      : "Except";
        return fmt::format("HashSetOp {}{}", word, set.all ? " All" : "");
      }
      case PlanKind::kLockRows: return "LockRows";
      case PlanKind::kCteScan: return "CTE Scan on " + node.As<CteScanNode>().name;
      case PlanKind::kRecursiveUnion: return "Recursive Union";
      case PlanKind::kWorkTableScan: return "WorkTable Scan";
      case PlanKind::kInsert: return "Insert on " + node.As<InsertNode>().table->name;
      case PlanKind::kUpdate: return "Update on " + node.As<UpdateNode>().table->name;
      case PlanKind::kDelete: return "Delete on " + node.As<DeleteNode>().table->name;
    }
    return "?";
  }

  void Details(const PlanNode& node, int indent) {
    Names own = NamesOf(node);
    Names child = node.children.empty() ? Names() : NamesOf(*node.children[0]);
    switch (node.kind) {
      case PlanKind::kResult: {
        const auto& n = node.As<ResultNode>();
        if (n.filter != nullptr) Detail(indent, "One-Time Filter", ExprToString(*n.filter, {}));
        break;
      }
      case PlanKind::kScan: {
        const auto& n = node.As<ScanNode>();
        if (!IsWhole(n.spans)) {
          Names parts;
          for (size_t i = 0; i < n.spans.size() && i < kMaxSpansShown; ++i) {
            parts.push_back(SpanText(n.spans[i]));
          }
          std::string text = n.spans.empty() ? "none" : Join(parts);
          if (n.spans.size() > kMaxSpansShown) {
            text += fmt::format(" and {} more", n.spans.size() - kMaxSpansShown);
          }
          Detail(indent, "Spans", std::move(text));
        }
        if (n.filter != nullptr) {
          Names names = own;
          names.insert(names.end(), n.filter_names.begin(), n.filter_names.end());
          Detail(indent, "Filter", ExprToString(*n.filter, names));
        }
        if (n.locks_first.has_value() && plan_.kind == StatementKind::kSelect) {
          Detail(indent, "Lock Rows", LockText(*n.locks_first));
        }
        break;
      }
      case PlanKind::kVirtualScan: break;
      case PlanKind::kFunctionScan:
        if (options_.verbose)
          Detail(indent, "Function Call", List(node.As<FunctionScanNode>().calls, {}));
        break;
      case PlanKind::kFilter:
        Detail(indent, "Filter", ExprToString(*node.As<FilterNode>().condition, child));
        break;
      case PlanKind::kProject:
        Detail(indent, "Output", List(node.As<ProjectNode>().exprs, child));
        break;
      case PlanKind::kNestedLoop: {
        const auto& n = node.As<NestedLoopNode>();
        Names both = child;
        Names right = NamesOf(*node.children[1]);
        both.insert(both.end(), right.begin(), right.end());
        if (n.condition != nullptr) Detail(indent, "Join Filter", ExprToString(*n.condition, both));
        break;
      }
      case PlanKind::kHashJoin: {
        const auto& n = node.As<HashJoinNode>();
        Names right = NamesOf(*node.children[1]);
        Names parts;
        for (size_t i = 0; i < n.left_keys.size(); ++i) {
          parts.push_back("(" + ExprToString(*n.left_keys[i], child) + " = " +
                          ExprToString(*n.right_keys[i], right) + ")");
        }
        std::string text = Join(parts, " AND ");
        Detail(indent, "Hash Cond", parts.size() > 1 ? "(" + text + ")" : text);
        Names both = child;
        both.insert(both.end(), right.begin(), right.end());
        if (n.condition != nullptr) Detail(indent, "Join Filter", ExprToString(*n.condition, both));
        break;
      }
      case PlanKind::kLookupJoin: {
        const auto& n = node.As<LookupJoinNode>();
        const catalog::IndexDescriptor* index = IndexOf(*n.table, n.index);
        Names parts;
        for (size_t i = 0; i < n.keys.size(); ++i) {
          std::string column = "?";
          if (index != nullptr && i < index->key.size()) {
            if (!index->key[i].expression.empty()) column = index->key[i].expression;
            if (const auto* descriptor = n.table->FindColumn(index->key[i].column))
              column = descriptor->name;
          }
          parts.push_back("(" + column + " = " + ExprToString(*n.keys[i], child) + ")");
        }
        Detail(indent, "Lookup Cond", Join(parts, " AND "));
        if (n.condition != nullptr) {
          Names both = child;
          for (catalog::ColumnId id : n.columns) {
            const auto* descriptor = n.table->FindColumn(id);
            both.push_back((n.alias.empty() ? n.table->name : n.alias) + "." +
                           (descriptor != nullptr ? descriptor->name : "?"));
          }
          Detail(indent, "Join Filter", ExprToString(*n.condition, both));
        }
        break;
      }
      case PlanKind::kSort: {
        const auto& n = node.As<SortNode>();
        Detail(indent, "Sort Key", SortKeys(n.keys, child));
        if (n.top != nullptr) Detail(indent, "Top", ExprToString(*n.top, {}));
        break;
      }
      case PlanKind::kLockRows: {
        Names parts;
        for (const LockRowsNode::Target& target : node.As<LockRowsNode>().targets) {
          parts.push_back(target.table->name + " " + LockText(target.how));
        }
        Detail(indent, "Lock Rows", Join(parts));
        break;
      }
      case PlanKind::kDistinct: {
        const auto& n = node.As<DistinctNode>();
        if (n.sorted) break;
        Names parts;
        if (n.on.empty()) parts = child;
        for (int position : n.on) parts.push_back(child[static_cast<size_t>(position)]);
        Detail(indent, "Group Key", Join(parts));
        break;
      }
      case PlanKind::kAggregate: {
        const auto& n = node.As<AggregateNode>();
        if (!n.keys.empty()) Detail(indent, "Group Key", List(n.keys, child));
        if (options_.verbose) {
          Names parts;
          for (const AggregateCall& call : n.calls) parts.push_back(AggregateText(call, child));
          if (!parts.empty()) Detail(indent, "Output", Join(parts));
        }
        break;
      }
      case PlanKind::kWindow: {
        const auto& n = node.As<WindowNode>();
        if (!n.partition_by.empty()) Detail(indent, "Partition Key", List(n.partition_by, child));
        if (!n.order_by.empty()) Detail(indent, "Sort Key", SortKeys(n.order_by, child));
        break;
      }
      case PlanKind::kInsert: {
        const auto& n = node.As<InsertNode>();
        if (n.on_conflict.kind == OnConflict::Kind::kNone) break;
        Detail(indent, "Conflict Resolution",
               n.on_conflict.kind == OnConflict::Kind::kNothing ? "NOTHING" : "UPDATE");
        std::string arbiters;
        for (const catalog::IndexId id : n.on_conflict.arbiters) {
          const auto* index = IndexOf(*n.table, id);
          if (index == nullptr) continue;
          if (!arbiters.empty()) arbiters += ", ";
          arbiters += index->name;
        }
        if (!arbiters.empty()) Detail(indent, "Conflict Arbiter Indexes", arbiters);
        break;
      }
      default: break;
    }
    if (options_.analyze && static_cast<size_t>(node.id) < counters_.size()) {
      const NodeCounters& c = counters_[static_cast<size_t>(node.id)];
      if (c.trips != 0 || c.rows_read != 0 || c.bytes_read != 0) {
        lines_.push_back(
            std::string(static_cast<size_t>(indent), ' ') +
            fmt::format("Engine: trips={} rows={} bytes={}", c.trips, c.rows_read, c.bytes_read));
      }
    }
  }

  void Show(const PlanNode& node, int indent, bool root) {
    // Projections are everywhere and say little; so do the locks of rows that are changed.
    const bool quiet = node.kind == PlanKind::kProject ||
                       (node.kind == PlanKind::kLockRows && plan_.kind != StatementKind::kSelect);
    if (quiet && !options_.verbose) {
      Show(*node.children[0], indent, root);
      return;
    }
    std::string line(static_cast<size_t>(indent), ' ');
    if (!root) line += "->  ";
    lines_.push_back(line + Title(node) + Figures(node));
    int inner = indent + (root ? 2 : 6);
    Details(node, inner);
    for (const PlanPtr& child : node.children) Show(*child, inner, false);
  }

  const Plan& plan_;
  const ExplainOptions& options_;
  std::span<const NodeCounters> counters_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> ExplainPlan(const Plan& plan, const ExplainOptions& options,
                                     std::span<const NodeCounters> counters) {
  return Explainer(plan, options, counters).Run();
}

}  // namespace cellar::sql
