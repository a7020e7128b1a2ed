// CREATE COLLATION and what changes and drops collations.
//
// As with enum types (ddl_types.cc), a relation's descriptor holds the definitions that its columns
// and indexes have, so whatever changes a collation writes its relations too, in the same commit.
// Keys under a collation are ICU's sort keys, which other rules make differently: a relation whose
// keys were made by rules that this process does not have is written anew before it is used.
#include <algorithm>
#include <map>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/discarding_sink.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::session {
namespace {

std::string Spell(const ast::QualifiedName& name) {
  return name.schema.empty() ? name.name : name.schema + "." + name.name;
}

std::string NameIn(std::string_view text, const sql::ScanToken& token) {
  std::string name(text.substr(token.begin, token.end - token.begin));
  if (token.kind == sql::ScanKind::kWord) {
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return name;
  }
  std::string out;
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    out += name[i];
    if (name[i] == '"') ++i;
  }
  return out;
}

// The text with `replacement` for each name behind COLLATE that `matches`.
template <typename Matches>
std::string Retarget(const std::string& text, const std::string& replacement, Matches matches) {
  struct Mention {
    size_t begin, end;
  };
  std::vector<Mention> mentions;
  size_t at = 0;
  sql::ScanToken last;
  const auto is_name = [](const sql::ScanToken& token) {
    return token.kind == sql::ScanKind::kWord || token.kind == sql::ScanKind::kQuotedName;
  };
  while (true) {
    const sql::ScanToken token = sql::NextToken(text, at);
    if (token.kind == sql::ScanKind::kEnd) break;
    at = token.end;
    const bool named =
        is_name(token) && last.kind == sql::ScanKind::kWord &&
        sql::EqualsWord(std::string_view(text).substr(last.begin, last.end - last.begin),
                        "collate");
    last = token;
    if (!named) continue;
    std::vector<std::string> parts{NameIn(text, token)};
    Mention mention{token.begin, token.end};
    while (true) {
      const sql::ScanToken dot = sql::NextToken(text, at);
      if (dot.kind != sql::ScanKind::kSymbol || text[dot.begin] != '.') break;
      const sql::ScanToken next = sql::NextToken(text, dot.end);
      if (!is_name(next)) break;
      parts.push_back(NameIn(text, next));
      mention.end = at = next.end;
    }
    if (matches(parts)) mentions.push_back(mention);
  }
  std::string out = text;
  for (size_t i = mentions.size(); i-- > 0;) {
    out.replace(mentions[i].begin, mentions[i].end - mentions[i].begin, replacement);
  }
  return out;
}

bool HasStaleCollation(const catalog::TableDescriptor& table) {
  const std::vector<const Collation*> all = catalog::CollationsOf(table);
  return std::any_of(all.begin(), all.end(), [](const Collation* one) { return IsStale(*one); });
}

// The database that a relation lies in; null: it is gone.
catalog::NamespacePtr DatabaseOf(const catalog::CatalogSnapshot& catalog,
                                 const catalog::TableDescriptor& table) {
  catalog::NamespacePtr space = catalog.GetNamespace(table.parent);
  while (space != nullptr && space->parent != catalog::kRootNamespace) {
    space = catalog.GetNamespace(space->parent);
  }
  return space;
}

}  // namespace

// ---- Finding

Result<const Collation*> Ddl::CollationNamed(const ast::QualifiedName& name, int location) {
  Result<const Collation*> found = sql::ResolveCollation(name, Catalog().get(), &s_.Scope());
  if (!found.ok()) return std::move(found).status().WithLocation(location);
  return found;
}

Result<catalog::TablePtr> Ddl::FindOwnCollation(const ast::QualifiedName& name) {
  const catalog::TablePtr made = sql::FindCollation(*Catalog(), s_.Scope(), name.schema, name.name);
  if (made == nullptr) {
    const Result<const Collation*> known =
        sql::ResolveCollation(name, Catalog().get(), &s_.Scope());
    if (!known.ok()) return known.status();
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "must be owner of collation {}", name.name);
  }
  CELLAR_TRY(s_.CheckOwner(*made));
  return made;
}

std::vector<catalog::TablePtr> Ddl::UsersOfCollation(uint32_t oid) {
  std::vector<catalog::TablePtr> users;
  for (const catalog::TablePtr& table : Catalog()->ListAllTables()) {
    if (catalog::HasCollation(*table, oid)) users.push_back(table);
  }
  return users;
}

// ---- Making

Status Ddl::CreateCollation(const ast::CreateCollationStmt& statement) {
  CELLAR_TRY(AuthorizeTarget(statement.name, false));
  CELLAR_TRY_ASSIGN(Target target, ResolveTarget(statement.name, false));
  if (NameIsTaken(target.space, target.name)) {
    if (statement.if_not_exists) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateObject,
                    fmt::format("collation \"{}\" already exists, skipping", target.name));
    }
    return SqlError(Code::kExists, sqlstate::kDuplicateObject, "collation \"{}\" already exists",
                    target.name);
  }
  Collation made;
  made.name = target.name;
  bool by_bytes = false;
  if (!statement.from.empty()) {
    CELLAR_TRY_ASSIGN(const Collation* const from, CollationNamed(statement.from, -1));
    if (from == nullptr) {
      by_bytes = true;
    } else {
      made = *from;
      made.name = target.name;
      made.built_in = false;
    }
  } else {
    std::string provider = "libc";
    std::string locale, collate, ctype;
    for (const ast::Option& given : statement.options) {
      const std::string& option = given.name;
      const std::string value = given.ToText();
      if (option == "locale") {
        locale = value;
      } else if (option == "lc_collate") {
        collate = value;
      } else if (option == "lc_ctype") {
        ctype = value;
      } else if (option == "provider") {
        provider = value;
      } else if (option == "deterministic") {
        const ast::Option::BoolValue read = given.ToBool();
        if (!read.valid) {
          return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                          "deterministic requires a Boolean value");
        }
        made.deterministic = read.value;
      } else if (option == "version") {
        // Of the rules from which a dump was taken; keys are made by those that are here.
      } else if (option == "rules") {
        return UnsupportedError("collation rules are not supported");
      } else {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "collation attribute \"{}\" not recognized", option);
      }
    }
    if (provider == "icu") {
      if (locale.empty()) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                        "parameter \"locale\" must be specified");
      }
      CELLAR_TRY(CheckCollationLocale(locale));
      made.locale = locale;
      made.version = CollationVersion(locale);
    } else if (provider == "libc") {
      const std::string& named = locale.empty() ? collate : locale;
      if (named.empty()) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                        "parameter \"lc_collate\" must be specified");
      }
      if (named != "C" && named != "POSIX" && named != "C.UTF-8" && named != "C.utf8") {
        return UnsupportedError("locale \"{}\" of provider libc is not supported", named)
            .WithHint("Use provider = icu.");
      }
      if (!made.deterministic) {
        return UnsupportedError("nondeterministic collations not supported with this provider");
      }
      by_bytes = true;
    } else {
      return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                      "unrecognized collation provider: {}", provider);
    }
  }
  if (by_bytes) {
    return UnsupportedError("another name for collation \"C\" is not supported")
        .WithHint("Write COLLATE \"C\".");
  }
  catalog::TableDescriptor collation;
  collation.kind = catalog::RelationKind::kCollation;
  collation.parent = target.space;
  collation.name = target.name;
  collation.owner = s_.user;
  collation.temporary = target.temporary;
  collation.collation = Intern(std::move(made));
  return Editor().CreateTable(std::move(collation)).status();
}

// ---- Changing

// Writes the changed collation, the relations that have it and the views that name it.
Status Ddl::UpdateCollation(catalog::TableDescriptor next) {
  const catalog::SnapshotPtr before = Catalog();
  const catalog::TablePtr old = before->GetTable(next.id);
  CELLAR_TRY_ASSIGN(const catalog::TablePtr made, Editor().UpdateTable(std::move(next)));
  const std::string old_schema = s_.SchemaName(old->parent);
  const std::string full =
      sql::QuoteIdentifier(s_.SchemaName(made->parent)) + "." + sql::QuoteIdentifier(made->name);
  const auto is_old = [&](const std::vector<std::string>& parts) {
    return parts.back() == old->name && (parts.size() == 1 || parts.front() == old_schema);
  };
  const auto retarget = [&](std::string* text) { *text = Retarget(*text, full, is_old); };
  for (const catalog::TablePtr& listed : Catalog()->ListAllTables()) {
    if (listed->kind == catalog::RelationKind::kView) {
      const std::string text = Retarget(listed->view_sql, full, is_old);
      if (text != listed->view_sql) CELLAR_TRY(RewriteView(*listed, text));
    }
    if (!catalog::HasCollation(*listed, made->oid())) continue;
    catalog::TableDescriptor table = *Catalog()->GetTable(listed->id);
    catalog::ReplaceCollation(made->collation, &table);
    for (catalog::ColumnDescriptor& column : table.columns) {
      retarget(&column.default_sql);
      retarget(&column.generated_sql);
    }
    for (catalog::CheckConstraint& check : table.checks) retarget(&check.expression);
    for (catalog::IndexDescriptor& index : table.indexes) {
      retarget(&index.predicate);
      for (catalog::IndexColumn& part : index.key) retarget(&part.expression);
    }
    CELLAR_TRY(Editor().UpdateTable(std::move(table)).status());
  }
  return Status();
}

Status Ddl::RenameCollation(const ast::RenameStmt& statement) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr made, FindOwnCollation(NameOf(statement.object)));
  CELLAR_TRY(s_.CheckSchema(made->parent, kCreate));
  if (NameIsTaken(made->parent, statement.new_name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                    "collation \"{}\" for encoding \"UTF8\" already exists in schema \"{}\"",
                    statement.new_name, s_.SchemaName(made->parent));
  }
  catalog::TableDescriptor next = *made;
  next.name = statement.new_name;
  return UpdateCollation(std::move(next));
}

Status Ddl::MoveCollation(const ast::AlterObjectSchemaStmt& statement) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr made, FindOwnCollation(NameOf(statement.object)));
  CELLAR_TRY_ASSIGN(const catalog::NamespaceId space,
                    NewPlaceOf(*made, "collation", statement.new_schema));
  if (space == made->parent) return Status();
  catalog::TableDescriptor next = *made;
  next.parent = space;
  return UpdateCollation(std::move(next));
}

// ALTER COLLATION .. REFRESH VERSION, and for the relations of this database that have it.
Status Ddl::RefreshCollation(const ast::AlterCollationStmt& statement) {
  CELLAR_TRY_ASSIGN(const Collation* const named, CollationNamed(statement.name, -1));
  const catalog::TablePtr made =
      sql::FindCollation(*Catalog(), s_.Scope(), statement.name.schema, statement.name.name);
  if (made != nullptr) CELLAR_TRY(s_.CheckOwner(*made));
  bool changed = false;
  if (made != nullptr && IsStale(*made->collation)) {
    changed = true;
    catalog::TableDescriptor next = *made;
    Collation now = *made->collation;
    now.version = CollationVersion(now.locale);
    next.collation = Intern(std::move(now));
    CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  }
  if (named != nullptr) {
    for (const catalog::TablePtr& user : UsersOfCollation(named->oid)) {
      const catalog::NamespacePtr space = DatabaseOf(*Catalog(), *user);
      if (!HasStaleCollation(*user) || space == nullptr || space->id != s_.database_id) continue;
      CELLAR_TRY(RefreshCollationsOf(Catalog()->GetTable(user->id)));
      changed = true;
    }
  }
  if (!changed) return Notice(Severity::kNotice, "00000", "version has not changed");
  return Notice(Severity::kNotice, "00000",
                fmt::format("changing version to {}", CollationVersion(named->locale)));
}

Status Ddl::RefreshCollationsOf(catalog::TablePtr table) {
  if (!HasStaleCollation(*table)) return Status();
  catalog::TableDescriptor next = *table;
  for (const Collation* one : catalog::CollationsOf(*table)) {
    if (!IsStale(*one)) continue;
    Collation now = *one;
    now.version = CollationVersion(now.locale);
    catalog::ReplaceCollation(Intern(std::move(now)), &next);
  }
  const auto in_key = [&](const catalog::IndexDescriptor& index) {
    return std::any_of(index.key.begin(), index.key.end(), [&](const catalog::IndexColumn& part) {
      const catalog::ColumnDescriptor* column = table->FindColumn(part.column);
      const Collation* own = part.collation != nullptr ? part.collation
                             : column != nullptr       ? column->type.collation
                                                       : nullptr;
      return own != nullptr && own != catalog::ByBytes() && IsStale(*own);
    });
  };
  if (std::none_of(table->indexes.begin(), table->indexes.end(), in_key)) {
    return Editor().UpdateTable(std::move(next)).status();
  }
  return RewriteTable(std::move(next), &table, false);
}

// ---- Dropping

Status Ddl::DropCollation(const catalog::TablePtr& made, bool cascade) {
  struct Dependent {
    catalog::TablePtr user;
    std::string column, index;  // one of them
  };
  std::vector<Dependent> dependents;
  for (const catalog::TablePtr& user : UsersOfCollation(made->oid())) {
    for (const catalog::ColumnDescriptor& column : user->columns) {
      if (!column.dropped && column.type.collation != nullptr &&
          column.type.collation->oid == made->oid()) {
        dependents.push_back({user, column.name, ""});
      }
    }
    for (const catalog::IndexDescriptor& index : user->indexes) {
      if (std::any_of(index.key.begin(), index.key.end(), [&](const catalog::IndexColumn& part) {
            return part.collation != nullptr && part.collation->oid == made->oid();
          })) {
        dependents.push_back({user, "", index.name});
      }
    }
  }
  const auto describe = [&](const Dependent& one) {
    if (one.column.empty()) return fmt::format("index {}", sql::QuoteIdentifier(one.index));
    const bool view = one.user->kind == catalog::RelationKind::kView;
    return view ? fmt::format("view {}", s_.QualifiedName(*one.user))
                : fmt::format("column {} of table {}", one.column, s_.QualifiedName(*one.user));
  };
  if (!dependents.empty() && !cascade) {
    std::string detail;
    for (const Dependent& one : dependents) {
      if (!detail.empty()) detail += "\n";
      detail += fmt::format("{} depends on collation {}", describe(one), made->name);
    }
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop collation {} because other objects depend on it", made->name)
        .WithDetail(detail)
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  if (!dependents.empty()) {
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      dependents.size() == 1
                          ? fmt::format("drop cascades to {}", describe(dependents[0]))
                          : fmt::format("drop cascades to {} other objects", dependents.size())));
  }
  for (const Dependent& one : dependents) {
    catalog::TablePtr living = Catalog()->GetTable(one.user->id);
    if (living == nullptr) continue;
    if (living->kind == catalog::RelationKind::kView) {
      CELLAR_TRY(Discard(living));
    } else if (!one.column.empty()) {
      ast::AlterTableCommand drop;
      drop.kind = ast::AlterTableKind::kDropColumn;
      drop.name = one.column;
      drop.cascade = true;
      CELLAR_TRY(DropColumn(drop, &living));
    } else if (living->FindIndex(one.index) != nullptr) {
      ast::DropStmt drop;
      drop.object_type = ast::ObjectType::kIndex;
      ast::ObjectName name;
      name.parts = {s_.SchemaName(living->parent), one.index};
      CELLAR_TRY(DropIndex(name, drop));
    }
  }
  return Discard(Catalog()->GetTable(made->id));
}

Status Ddl::DropCollations(const ast::ObjectName& object, const ast::DropStmt& statement) {
  const ast::QualifiedName name = NameOf(object);
  const catalog::TablePtr made = sql::FindCollation(*Catalog(), s_.Scope(), name.schema, name.name);
  if (made == nullptr) {
    const Result<const Collation*> known =
        sql::ResolveCollation(name, Catalog().get(), &s_.Scope());
    if (known.ok()) {
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "cannot drop collation {} because it is required by the database system",
                      name.name);
    }
    if (!statement.if_exists) return known.status();
    return Notice(Severity::kNotice, "00000",
                  fmt::format("collation \"{}\" does not exist, skipping", Spell(name)));
  }
  // The owner of a schema may drop what others put into it.
  const catalog::NamespacePtr space = Catalog()->GetNamespace(made->parent);
  if (space == nullptr || !s_.HasPrivilegesOf(s_.OwnerOf(*space, false))) {
    CELLAR_TRY(s_.CheckOwner(*made));
  }
  return DropCollation(made, statement.cascade);
}

// ---- When a store opens

Status RefreshStaleCollations(Database* database) {
  Database::Impl& db = *database->impl();
  const catalog::SnapshotPtr catalog = db.catalog->Current();
  // By database, the collations as SQL writes them.
  std::map<std::string, std::set<std::string>> stale;
  for (const catalog::TablePtr& table : catalog->ListAllTables()) {
    if (!HasStaleCollation(*table)) continue;
    const catalog::NamespacePtr space = DatabaseOf(*catalog, *table);
    if (space == nullptr) continue;
    for (const Collation* one : catalog::CollationsOf(*table)) {
      if (!IsStale(*one)) continue;
      std::string schema = "pg_catalog";
      if (!one->built_in) {
        const catalog::TablePtr made =
            catalog->GetTable(catalog::TableId{one->oid - catalog::TableDescriptor::kFirstOid});
        if (made == nullptr) continue;
        schema = made->parent == space->id ? "public" : catalog->GetNamespace(made->parent)->name;
      }
      stale[space->name].insert(sql::QuoteIdentifier(schema) + "." +
                                sql::QuoteIdentifier(one->name));
    }
  }
  if (stale.empty()) return Status();
  if (db.options.read_only) {
    return UnsupportedError("keys of this store were made by other rules of a collation: {}",
                            *stale.begin()->second.begin())
        .WithHint("Open it for writing once: what is sorted by it is then written anew.");
  }
  SessionOptions options;
  for (const Role& role : db.roles->List()) {
    if (role.superuser) options.user = role.name;
  }
  DiscardingSink nobody;
  for (const auto& [name, collations] : stale) {
    options.database = name;
    CELLAR_TRY_ASSIGN(const std::unique_ptr<Session> session, Session::Open(database, options));
    for (const std::string& collation : collations) {
      CELLAR_TRY(
          session->ExecuteSimple("ALTER COLLATION " + collation + " REFRESH VERSION", &nobody));
    }
  }
  return Status();
}

}  // namespace cellar::session
