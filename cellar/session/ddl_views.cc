// Views follow renames: their texts are written anew where they name what has another name now.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/view_texts.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/mentions.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::session {
namespace {

// The parts of the dotted name that begins at `at`: where each begins and ends.
std::vector<sql::ScanToken> PartsAt(std::string_view text, size_t at) {
  std::vector<sql::ScanToken> parts;
  while (true) {
    const sql::ScanToken name = sql::NextToken(text, at);
    if (name.kind != sql::ScanKind::kWord && name.kind != sql::ScanKind::kQuotedName) return parts;
    parts.push_back(name);
    const sql::ScanToken dot = sql::NextToken(text, name.end);
    if (dot.kind != sql::ScanKind::kSymbol || text[dot.begin] != '.') return parts;
    at = dot.end;
  }
}

// A join that compares columns of the same name means another thing when one gets another name.
bool JoinsByName(std::string_view text, std::string_view column) {
  bool natural = false, in_using = false;
  for (size_t at = 0;;) {
    const sql::ScanToken token = sql::NextToken(text, at);
    if (token.kind == sql::ScanKind::kEnd) return natural;
    at = token.end;
    const std::string_view word = text.substr(token.begin, token.end - token.begin);
    if (token.kind == sql::ScanKind::kWord && sql::EqualsWord(word, "natural")) natural = true;
    if (token.kind == sql::ScanKind::kWord && sql::EqualsWord(word, "using")) {
      in_using = true;
    } else if (token.kind == sql::ScanKind::kSymbol && word == ")") {
      in_using = false;
    } else if (in_using && (word == column || word == sql::QuoteIdentifier(std::string(column)))) {
      return true;
    }
  }
}

// The text with the schemas of types and collations by their names of now.
std::string WithSchemasOfNow(std::string text, const catalog::CatalogSnapshot& before,
                             const catalog::CatalogSnapshot& now, const sql::NameScope& scope) {
  for (const auto mentions : {&sql::TypeMentions, &sql::CollationMentions}) {
    const std::vector<sql::NameMention> found = mentions(text);
    for (size_t i = found.size(); i-- > 0;) {
      if (found[i].parts.size() != 2) continue;
      const auto space = sql::FindSchema(before, scope, found[i].parts[0]);
      const catalog::NamespacePtr is = space ? now.GetNamespace(*space) : nullptr;
      if (is == nullptr || *space == scope.database || is->name == found[i].parts[0]) continue;
      text.replace(found[i].begin, found[i].end - found[i].begin,
                   sql::QuoteQualified(is->name, found[i].parts[1]));
    }
  }
  return text;
}

Status CannotFollow(const catalog::TableDescriptor& view) {
  return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                  "view \"{}\" uses the name in a way that cannot follow the change", view.name)
      .WithHint("Drop the view first, and make it anew afterwards.");
}

}  // namespace

Result<std::shared_ptr<const sql::Plan>> Ddl::PlanView(const catalog::TableDescriptor& view,
                                                       std::vector<sql::NameUse>* uses,
                                                       std::vector<sql::StarUse>* stars) {
  return PlanViewText(s_, view, uses, stars);
}

Result<std::string> Ddl::ExpandStars(const catalog::TableDescriptor& view) {
  std::vector<sql::StarUse> stars;
  CELLAR_TRY(PlanView(view, nullptr, &stars).status());
  std::sort(stars.begin(), stars.end(),
            [](const auto& a, const auto& b) { return a.location < b.location; });
  std::string text = view.view_sql;
  int last = -1;  // a subquery may have been read twice
  for (size_t i = stars.size(); i-- > 0;) {
    const sql::StarUse& star = stars[i];
    if (star.location < 0 || star.location == last) continue;
    last = star.location;
    // Up to the star itself, behind the name of a relation perhaps.
    const auto begin = static_cast<size_t>(star.location);
    size_t end = begin;
    while (true) {
      const sql::ScanToken token = sql::NextToken(text, end);
      if (token.kind == sql::ScanKind::kEnd) return InternalError("a star is not in its view");
      end = token.end;
      if (token.kind == sql::ScanKind::kSymbol && text[token.begin] == '*') break;
    }
    text.replace(begin, end - begin, star.columns);
  }
  return text;
}

Result<std::vector<catalog::TablePtr>> Ddl::ViewsOfColumn(const catalog::TableDescriptor& table,
                                                          const catalog::ColumnDescriptor& column) {
  std::vector<catalog::TablePtr> out;
  CELLAR_TRY_ASSIGN(const std::vector<ViewUses> views, ViewsNaming(table.name));
  for (const ViewUses& view : views) {
    const bool uses = std::any_of(view.uses.begin(), view.uses.end(), [&](const auto& use) {
      return use.table == table.id && use.column == column.id;
    });
    if (uses) out.push_back(view.view);
  }
  return out;
}

Status Ddl::ReleaseColumn(const catalog::TableDescriptor& table,
                          const catalog::ColumnDescriptor& column, bool cascade) {
  CELLAR_TRY_ASSIGN(const std::vector<catalog::TablePtr> views, ViewsOfColumn(table, column));
  if (views.empty()) return Status();
  const std::string what =
      fmt::format("column {} of table {}", column.name, s_.QualifiedName(table));
  if (!cascade) {
    std::string detail;
    for (const catalog::TablePtr& view : views) {
      if (!detail.empty()) detail += "\n";
      detail += fmt::format("view {} depends on {}", s_.QualifiedName(*view), what);
    }
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop {} because other objects depend on it", what)
        .WithDetail(detail)
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  CELLAR_TRY(Notice(Severity::kNotice, "00000",
                    views.size() == 1
                        ? fmt::format("drop cascades to view {}", s_.QualifiedName(*views[0]))
                        : fmt::format("drop cascades to {} other objects", views.size())));
  for (const catalog::TablePtr& view : views) CELLAR_TRY(Discard(view));
  return Status();
}

Result<std::vector<Ddl::ViewUses>> Ddl::ViewsNaming(std::string_view name) {
  std::vector<ViewUses> out;
  for (const catalog::TablePtr& view : Catalog()->ListAllTables()) {
    if (view->kind != catalog::RelationKind::kView ||
        view->view_sql.find(name) == std::string::npos)
      continue;
    const catalog::NamespacePtr space = Catalog()->GetNamespace(view->parent);
    if (view->parent != s_.database_id && (space == nullptr || space->parent != s_.database_id))
      continue;
    ViewUses found{view, {}};
    // One that cannot be read names nothing that is there.
    if (!PlanView(*view, &found.uses).ok()) continue;
    std::sort(found.uses.begin(), found.uses.end(),
              [](const auto& a, const auto& b) { return a.location < b.location; });
    found.uses.erase(
        std::unique(found.uses.begin(), found.uses.end(),
                    [](const auto& a, const auto& b) { return a.location == b.location; }),
        found.uses.end());
    out.push_back(std::move(found));
  }
  return out;
}

Status Ddl::RewriteView(const catalog::TableDescriptor& view, std::string text) {
  if (text == view.view_sql) return Status();
  catalog::TableDescriptor next = *Catalog()->GetTable(view.id);
  next.view_sql = std::move(text);
  const Result<std::shared_ptr<const sql::Plan>> plan = PlanView(next, nullptr);
  if (!plan.ok() || (*plan)->output.size() != view.columns.size()) return CannotFollow(view);
  for (size_t i = 0; i < view.columns.size(); ++i) {
    if ((*plan)->output[i].type.id != TypeId::kUnknown &&
        !(*plan)->output[i].type.SameKind(view.columns[i].type))
      return CannotFollow(view);
  }
  return Editor().UpdateTable(std::move(next)).status();
}

Status Ddl::FollowRelations(const std::vector<ViewUses>& views,
                            const catalog::SnapshotPtr& before) {
  for (const ViewUses& view : views) {
    std::string text = view.view->view_sql;
    for (size_t i = view.uses.size(); i-- > 0;) {
      const sql::NameUse& use = view.uses[i];
      if (use.column.value != 0 || use.location < 0) continue;
      const catalog::TablePtr was = before->GetTable(use.table);
      const catalog::TablePtr is = Catalog()->GetTable(use.table);
      if (was == nullptr || is == nullptr) continue;
      const sql::ScanToken literal = sql::NextToken(text, static_cast<size_t>(use.location));
      if (literal.kind == sql::ScanKind::kString) {
        // A constant of type regclass. It says the schema from now on: nobody reads it as a name.
        const catalog::NamespacePtr from = before->GetNamespace(was->parent);
        const catalog::NamespacePtr to = Catalog()->GetNamespace(is->parent);
        if (was->name == is->name && was->parent == is->parent &&
            (from == nullptr || to == nullptr || from->name == to->name)) {
          continue;
        }
        text.replace(literal.begin, literal.end - literal.begin,
                     sql::QuoteLiteral(sql::QuoteQualified(s_.SchemaName(is->parent), is->name)));
        continue;
      }
      const std::vector<sql::ScanToken> parts = PartsAt(text, static_cast<size_t>(use.location));
      if (parts.empty()) continue;
      const catalog::NamespacePtr old_space = before->GetNamespace(was->parent);
      const catalog::NamespacePtr new_space = Catalog()->GetNamespace(is->parent);
      const bool renamed = was->name != is->name;
      const bool moved =
          was->parent != is->parent || (parts.size() > 1 && old_space != nullptr &&
                                        new_space != nullptr && old_space->name != new_space->name);
      if (!renamed && !moved) continue;
      std::string name;
      if (parts.size() > 1 || moved) name = sql::QuoteIdentifier(s_.SchemaName(is->parent)) + ".";
      name += sql::QuoteIdentifier(is->name);
      if (renamed && use.gives_name) name += " AS " + sql::QuoteIdentifier(was->name);
      const size_t begin = parts.front().begin;
      text.replace(begin, parts.back().end - begin, name);
    }
    text = WithSchemasOfNow(std::move(text), *before, *Catalog(), s_.Scope());
    CELLAR_TRY(RewriteView(*view.view, std::move(text)));
  }
  return Status();
}

Status Ddl::FollowColumn(const std::vector<ViewUses>& views, catalog::TableId table,
                         catalog::ColumnId column, const std::string& old_name,
                         const std::string& new_name) {
  for (const ViewUses& view : views) {
    const bool reads = std::any_of(view.uses.begin(), view.uses.end(), [&](const auto& use) {
      return use.table == table && use.column.value == 0;
    });
    if (!reads) continue;
    if (JoinsByName(view.view->view_sql, old_name)) return CannotFollow(*view.view);
    std::string text = view.view->view_sql;
    for (size_t i = view.uses.size(); i-- > 0;) {
      const sql::NameUse& use = view.uses[i];
      if (use.table != table || use.column != column || use.location < 0) continue;
      const std::vector<sql::ScanToken> parts = PartsAt(text, static_cast<size_t>(use.location));
      if (parts.empty()) continue;
      std::string name = sql::QuoteIdentifier(new_name);
      if (use.gives_name) name += " AS " + sql::QuoteIdentifier(old_name);
      text.replace(parts.back().begin, parts.back().end - parts.back().begin, name);
    }
    if (text != view.view->view_sql) {
      CELLAR_TRY(RewriteView(*view.view, std::move(text)));
    } else if (!PlanView(*view.view, nullptr).ok()) {
      return CannotFollow(*view.view);
    }
  }
  return Status();
}

}  // namespace cellar::session
