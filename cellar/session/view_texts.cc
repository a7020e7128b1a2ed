#include "cellar/session/view_texts.h"

#include <algorithm>
#include <map>

#include "cellar/session/system_rows.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/mentions.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::session {
namespace {

struct Edit {
  size_t begin = 0, end = 0;
  std::string text;
};

std::string Apply(std::string text, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
  for (const Edit& edit : edits) text.replace(edit.begin, edit.end - edit.begin, edit.text);
  return text;
}

std::string FullName(Session::Impl& session, const catalog::TableDescriptor& named) {
  return sql::QuoteQualified(session.SchemaName(named.parent), named.name);
}

// Where the dotted name that begins at `at` ends; 0: no name is there.
size_t EndOfName(std::string_view text, size_t at) {
  size_t end = 0;
  while (true) {
    const sql::ScanToken name = sql::NextToken(text, at);
    if (name.kind != sql::ScanKind::kWord && name.kind != sql::ScanKind::kQuotedName) return end;
    end = name.end;
    const sql::ScanToken dot = sql::NextToken(text, name.end);
    if (dot.kind != sql::ScanKind::kSymbol || text[dot.begin] != '.') return end;
    at = dot.end;
  }
}

}  // namespace

catalog::TablePtr MadeCollation(const catalog::CatalogSnapshot& catalog,
                                const Collation& collation) {
  if (collation.built_in || collation.oid < catalog::TableDescriptor::kFirstOid) return nullptr;
  return catalog.GetTable(catalog::TableId{collation.oid - catalog::TableDescriptor::kFirstOid});
}

namespace {

// Types and collations that users made. `own` finds by its plain name one that the text may mean.
template <typename Own>
void NameMade(Session::Impl& session, const std::string& text, Qualify which, Own&& own,
              std::vector<Edit>* edits) {
  const catalog::SnapshotPtr catalog = session.CurrentCatalog();
  const auto add = [&](const sql::NameMention& mention, catalog::RelationKind kind) {
    const std::string schema =
        mention.parts.size() > 1 ? mention.parts[mention.parts.size() - 2] : "";
    const std::string& name = mention.parts.back();
    catalog::TablePtr meant = schema.empty() ? own(name, kind) : nullptr;
    if (meant == nullptr) meant = sql::FindType(*catalog, session.Scope(), schema, name);
    if (meant == nullptr || meant->kind != kind) return;
    const catalog::TablePtr seen = sql::FindType(*catalog, session.Scope(), "", name);
    const bool visible = which == Qualify::kHidden && seen != nullptr && seen->id == meant->id;
    edits->push_back({mention.begin, mention.end,
                      visible ? sql::QuoteIdentifier(meant->name) : FullName(session, *meant)});
  };
  for (const sql::NameMention& mention : sql::TypeMentions(text)) {
    add(mention, catalog::RelationKind::kType);
  }
  for (const sql::NameMention& mention : sql::CollationMentions(text)) {
    add(mention, catalog::RelationKind::kCollation);
  }
}

// Gives the columns of the result these names. False: the first list, which is what gives names,
// does not show them one by one.
bool NameColumns(sql::ast::SelectStmt* select, const std::vector<std::string>& names) {
  using namespace sql::ast;  // NOLINT
  if (select->set_op != SetOp::kNone) {
    bool first = true;
    for (size_t i = select->operands.size(); i-- > 0;) {
      first = NameColumns(select->operands[i].get(), names);
    }
    return first;
  }
  if (select->targets.size() != names.size()) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    SelectTarget& target = select->targets[i];
    if (target.expr->kind == NodeKind::kColumnRef) {
      const auto& ref = target.expr->As<ColumnRef>();
      if (ref.star) return false;
      if (ref.parts.back() == names[i]) {
        target.name.clear();
        continue;
      }
    }
    target.name = names[i];
  }
  return true;
}

// Whether ORDER BY names a column of the result that has, or gets, another name.
bool OrdersByChanged(const sql::ast::SelectStmt& select, const sql::Plan& plan,
                     const std::vector<std::string>& names) {
  using namespace sql::ast;  // NOLINT
  for (const SortBy& sort : select.order_by) {
    if (!sort.expr->Is<ColumnRef>() || sort.expr->As<ColumnRef>().parts.size() != 1) continue;
    const std::string& name = sort.expr->As<ColumnRef>().parts[0];
    for (size_t i = 0; i < names.size() && i < plan.output.size(); ++i) {
      const std::string& was = plan.output[i].name;
      if (was != names[i] && (name == was || name == names[i])) return true;
    }
  }
  return false;
}

}  // namespace

Result<std::shared_ptr<const sql::Plan>> PlanViewText(Session::Impl& session,
                                                      const catalog::TableDescriptor& view,
                                                      std::vector<sql::NameUse>* uses,
                                                      std::vector<sql::StarUse>* stars) {
  CELLAR_TRY_ASSIGN(sql::Statement parsed, sql::ParseOne(view.view_sql));
  if (parsed.ast == nullptr) return InternalError("view \"{}\" has no text", view.name);
  FoldingPlanner planning(session);
  sql::PlannerContext& context = planning.context;
  context.name_uses = uses;
  context.star_uses = stars;
  Result<std::shared_ptr<const sql::Plan>> plan = sql::PlanStatement(*parsed.ast, context);
  if (plan.ok()) return plan;
  // It was made under another search path, perhaps that of its schema.
  sql::NameScope scope = session.Scope();
  scope.search_path.insert(scope.search_path.begin(),
                           {session.SchemaName(view.parent), std::string("public")});
  context.scope = &scope;
  if (uses != nullptr) uses->clear();
  if (stars != nullptr) stars->clear();
  return sql::PlanStatement(*parsed.ast, context);
}

sql::ViewChanges ChangesThroughView(Session::Impl& session, const catalog::TablePtr& view) {
  FoldingPlanner planning(session);
  Result<sql::ViewChanges> changes = sql::ChangesThroughView(view, planning.context);
  return changes.ok() ? std::move(*changes) : sql::ViewChanges();
}

std::string ViewText(Session::Impl& session, const catalog::TableDescriptor& view, Qualify which) {
  std::vector<sql::NameUse> uses;
  Result<std::shared_ptr<const sql::Plan>> plan = PlanViewText(session, view, &uses);
  if (!plan.ok()) return view.view_sql;
  std::vector<std::string> names;
  for (const catalog::ColumnDescriptor& column : view.columns) {
    if (!column.dropped) names.push_back(column.name);
  }
  Result<sql::Statement> parsed = sql::ParseOne(view.view_sql);
  if (!parsed.ok() || parsed->ast == nullptr || parsed->ast->kind != sql::ast::NodeKind::kSelect)
    return view.view_sql;
  auto& select = parsed->ast->As<sql::ast::SelectStmt>();
  catalog::TableDescriptor now = view;
  bool named = !OrdersByChanged(select, **plan, names) && NameColumns(&select, names);
  if (!named && names.size() == (*plan)->output.size()) {
    named = true;
    for (size_t i = 0; named && i < names.size(); ++i) named = (*plan)->output[i].name == names[i];
  }
  now.view_sql = sql::DeparseView(select);
  if (!named) {
    // Around it, where the list does not show the columns.
    std::string list;
    for (const std::string& name : names) {
      if (!list.empty()) list += ", ";
      list += sql::QuoteIdentifier(name);
    }
    now.view_sql = fmt::format(" SELECT {}\n   FROM ({}) v({})", list, now.view_sql, list);
  }
  if (now.view_sql != view.view_sql) {
    uses.clear();
    if (!PlanViewText(session, now, &uses).ok()) return view.view_sql;
  }
  std::vector<Edit> edits;
  std::map<int, catalog::TableId> relations;  // a use may be noted twice
  for (const sql::NameUse& use : uses) {
    if (use.column.value == 0 && use.location >= 0) relations[use.location] = use.table;
  }
  for (const auto& [location, id] : relations) {
    const catalog::TablePtr table = session.CurrentCatalog()->GetTable(id);
    const auto begin = static_cast<size_t>(location);
    const size_t end = EndOfName(now.view_sql, begin);
    if (table == nullptr || end == 0) continue;
    edits.push_back(
        {begin, end,
         which == Qualify::kAll ? FullName(session, *table) : session.QualifiedName(*table)});
  }
  const auto own = [&](const std::string& name, catalog::RelationKind) -> catalog::TablePtr {
    const catalog::TablePtr seen =
        sql::FindType(*session.CurrentCatalog(), session.Scope(), "", name);
    return seen != nullptr ? seen : session.CurrentCatalog()->FindType(view.parent, name);
  };
  NameMade(session, now.view_sql, which, own, &edits);
  return Apply(std::move(now.view_sql), std::move(edits));
}

std::string TableText(Session::Impl& session, const catalog::TableDescriptor& table,
                      const std::string& text) {
  if (text.empty()) return text;
  std::vector<Edit> edits;
  const catalog::SnapshotPtr catalog = session.CurrentCatalog();
  // The types of its columns are meant before all others of that name.
  const auto own = [&](const std::string& name, catalog::RelationKind kind) -> catalog::TablePtr {
    for (const catalog::ColumnDescriptor& column : table.columns) {
      if (column.dropped) continue;
      if (kind == catalog::RelationKind::kType && column.type.enumeration != nullptr &&
          column.type.enumeration->name == name) {
        return catalog->GetTypeByOid(column.type.enumeration->oid);
      }
      if (kind == catalog::RelationKind::kCollation && column.type.collation != nullptr &&
          column.type.collation->name == name) {
        return MadeCollation(*catalog, *column.type.collation);
      }
    }
    return nullptr;
  };
  NameMade(session, text, Qualify::kHidden, own, &edits);
  return DefaultAsSeen(session, Apply(text, std::move(edits)));
}

}  // namespace cellar::session
