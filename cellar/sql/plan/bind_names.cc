// Column references: scopes from the inside out.
#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

namespace {

// How a reference is written in messages.
std::string Joined(const std::vector<std::string>& parts, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += '.';
    out += parts[i];
  }
  return out;
}

// The column tableoid of a table or a system table; 0: it has none.
uint32_t TableOidOf(const ScopeItem& item) {
  return item.table != nullptr ? item.table->oid() : item.system_oid;
}

}  // namespace

Result<ExprPtr> Binder::ColumnFromScope(const ScopeColumn& column, int location) {
  MarkSelected(column);
  if (column.computed != nullptr) return BindInView(*column.computed, Place::kSelect);
  return s_.ColumnExpr(column.id, location);
}

Result<ExprPtr> Binder::BindColumnRef(const ast::ColumnRef& ref, Env& env) {
  const std::vector<std::string>& parts = ref.parts;
  size_t n = parts.size();
  if (ref.star && n == 0) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "row expansion via \"*\" is not supported here")
        .WithLocation(ref.location);
  }
  if (n == 1 && !ref.star) {
    for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
      const ScopeColumn* found = nullptr;
      const ScopeItem* found_in = nullptr;
      for (const ScopeItem* item : scope->items) {
        if (!item->columns_visible) continue;
        for (const ScopeColumn& column : item->columns) {
          if (column.name != parts[0]) continue;
          if (item->lateral_only) {
            return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                            "column \"{}\" does not exist", parts[0])
                .WithDetail(
                    fmt::format("There is a column named \"{}\" in table \"{}\", but it cannot "
                                "be referenced from this part of the query.",
                                parts[0], item->name))
                .WithLocation(ref.location);
          }
          if (found != nullptr) {
            return SqlError(Code::kInvalid, sqlstate::kAmbiguousColumn,
                            "column reference \"{}\" is ambiguous", parts[0])
                .WithLocation(ref.location);
          }
          found = &column;
          found_in = item;
        }
      }
      if (found != nullptr) {
        NoteColumn(*found_in, *found, ref.location);
        return ColumnFromScope(*found, ref.location);
      }
    }
    // The name of a relation: its whole row.
    for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
      for (const ScopeItem* item : scope->items) {
        if (item->relation_visible && !item->lateral_only && item->name == parts[0]) {
          return WholeRow(*item, ref.location);
        }
      }
    }
    if (parts[0] == "tableoid") {
      for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
        const ScopeItem* only = nullptr;
        size_t tables = 0;
        for (const ScopeItem* item : scope->items) {
          if (TableOidOf(*item) == 0 || !item->columns_visible) continue;
          only = item;
          ++tables;
        }
        if (tables == 1) {
          return MakeConstant(Value(MakeType(TypeId::kOid), Datum::Int(TableOidOf(*only))));
        }
      }
    }
    if (env.place == Place::kDefault) {
      return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                      "cannot use column reference in DEFAULT expression")
          .WithLocation(ref.location);
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                    parts[0])
        .WithLocation(ref.location);
  }
  // Qualified: the relation's name is the last part before the column.
  size_t relation_at = ref.star ? n - 1 : n - 2;
  if (relation_at > 2) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "improper qualified name (too many dotted names): {}", Joined(parts, n))
        .WithLocation(ref.location);
  }
  const std::string& relation = parts[relation_at];
  const std::string* schema = relation_at > 0 ? &parts[relation_at - 1] : nullptr;
  const ScopeItem* hidden = nullptr;
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    const ScopeItem* found = nullptr;
    for (const ScopeItem* item : scope->items) {
      if (item->name != relation || (schema != nullptr && item->schema != *schema)) continue;
      if (!item->relation_visible || item->lateral_only) {
        hidden = item;
        continue;
      }
      if (found != nullptr) {
        return SqlError(Code::kInvalid, "42P09", "table reference \"{}\" is ambiguous", relation)
            .WithLocation(ref.location);
      }
      found = item;
    }
    if (found == nullptr) continue;
    if (ref.star) return WholeRow(*found, ref.location);
    const ScopeColumn* match = nullptr;
    for (const ScopeColumn& column : found->columns) {
      if (column.name != parts[n - 1]) continue;
      if (match != nullptr) {
        return SqlError(Code::kInvalid, sqlstate::kAmbiguousColumn,
                        "column reference \"{}\" is ambiguous", parts[n - 1])
            .WithLocation(ref.location);
      }
      match = &column;
    }
    if (match != nullptr) {
      NoteColumn(*found, *match, ref.location);
      return ColumnFromScope(*match, ref.location);
    }
    if (parts[n - 1] == "tableoid" && TableOidOf(*found) != 0) {
      return MakeConstant(Value(MakeType(TypeId::kOid), Datum::Int(TableOidOf(*found))));
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column {}.{} does not exist",
                    relation, parts[n - 1])
        .WithLocation(ref.location);
  }
  // "column.field" of a composite column.
  if (n == 2 && !ref.star) {
    for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
      for (const ScopeItem* item : scope->items) {
        if (!item->columns_visible || item->lateral_only) continue;
        for (const ScopeColumn& column : item->columns) {
          if (column.name != parts[0] || column.id < 0) continue;
          if (s_.column(column.id).record == nullptr) continue;
          CELLAR_TRY_ASSIGN(ExprPtr row, ColumnFromScope(column, ref.location));
          return FieldOf(std::move(row), parts[1], ref.location);
        }
      }
    }
  }
  if (hidden != nullptr) {
    Status status = SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                             "invalid reference to FROM-clause entry for table \"{}\"", relation)
                        .WithLocation(ref.location);
    return std::move(status).WithHint(fmt::format(
        "There is an entry for table \"{}\", but it cannot be referenced from this part of "
        "the query.",
        relation));
  }
  // The alias hides the table's own name.
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    for (const ScopeItem* item : scope->items) {
      if (item->table != nullptr && item->table->name == relation && item->name != relation) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                        "invalid reference to FROM-clause entry for table \"{}\"", relation)
            .WithHint(
                fmt::format("Perhaps you meant to reference the table alias \"{}\".", item->name))
            .WithLocation(ref.location);
      }
    }
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                  "missing FROM-clause entry for table \"{}\"", relation)
      .WithLocation(ref.location);
}

}  // namespace cellar::sql::planning
