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
#include "cellar/session/table_texts.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/mentions.h"

namespace cellar::session {
namespace {

std::string Spell(const ast::QualifiedName& name) {
  return name.schema.empty() ? name.name : name.schema + "." + name.name;
}

template <typename Matches>
std::string Retarget(const std::string& text, const std::string& replacement, Matches matches) {
  return sql::ReplaceMentions(text, sql::CollationMentions(text), replacement, matches);
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
  const catalog::NamespacePtr database = DatabaseOf(*before, *old);
  for (const catalog::TablePtr& listed : Catalog()->ListAllTables()) {
    const catalog::NamespacePtr its = DatabaseOf(*before, *listed);
    const bool may_name = its != nullptr && database != nullptr && its->id == database->id;
    if (may_name && listed->kind == catalog::RelationKind::kView) {
      const std::string text = Retarget(listed->view_sql, full, is_old);
      if (text != listed->view_sql) CELLAR_TRY(RewriteView(*listed, text));
    }
    catalog::TableDescriptor table = *Catalog()->GetTable(listed->id);
    bool changed = catalog::HasCollation(table, made->oid());
    if (changed) catalog::ReplaceCollation(made->collation, &table);
    ForEachText(&table, [&](std::string* text) {
      if (!may_name || text->empty()) return;
      std::string now = Retarget(*text, full, is_old);
      changed |= now != *text;
      *text = std::move(now);
    });
    if (changed) CELLAR_TRY(Editor().UpdateTable(std::move(table)).status());
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

// What goes with a collation.
struct CollationDependent {
  enum class Kind : uint8_t { kColumn, kDefault, kConstraint, kIndex, kView };
  Kind kind;
  catalog::TablePtr owner;
  std::string name;  // of the part of the owner; empty for kView
};

namespace {

// By types, and by the texts that name it.
std::vector<CollationDependent> FindDependents(const catalog::TableDescriptor& made,
                                               const std::string& schema,
                                               const catalog::CatalogSnapshot& catalog) {
  using Kind = CollationDependent::Kind;
  std::vector<CollationDependent> out;
  const catalog::NamespacePtr database = DatabaseOf(catalog, made);
  bool same_database = false;
  const auto names = [&](const std::string& text) {
    if (!same_database) return false;
    const std::vector<sql::NameMention> mentions = sql::CollationMentions(text);
    return std::any_of(mentions.begin(), mentions.end(), [&](const sql::NameMention& mention) {
      const std::vector<std::string>& parts = mention.parts;
      return parts.back() == made.name && (parts.size() == 1 || parts[parts.size() - 2] == schema);
    });
  };
  const auto is_made = [&](const Collation* collation) {
    return collation != nullptr && collation->oid == made.oid();
  };
  for (const catalog::TablePtr& table : catalog.ListAllTables()) {
    const catalog::NamespacePtr its = DatabaseOf(catalog, *table);
    same_database = its != nullptr && database != nullptr && its->id == database->id;
    if (table->kind == catalog::RelationKind::kView) {
      const bool in_columns = std::any_of(
          table->columns.begin(), table->columns.end(),
          [&](const catalog::ColumnDescriptor& column) { return is_made(column.type.collation); });
      if (in_columns || names(table->view_sql)) out.push_back({Kind::kView, table, ""});
      continue;
    }
    for (const catalog::ColumnDescriptor& column : table->columns) {
      if (column.dropped) continue;
      if (is_made(column.type.collation) || names(column.generated_sql)) {
        out.push_back({Kind::kColumn, table, column.name});
      } else if (names(column.default_sql)) {
        out.push_back({Kind::kDefault, table, column.name});
      }
    }
    for (const catalog::CheckConstraint& check : table->checks) {
      if (names(check.expression)) out.push_back({Kind::kConstraint, table, check.name});
    }
    for (const catalog::IndexDescriptor& index : table->indexes) {
      const bool in_key = std::any_of(index.key.begin(), index.key.end(), [&](const auto& part) {
        return is_made(part.collation) || names(part.expression);
      });
      if (in_key || names(index.predicate)) out.push_back({Kind::kIndex, table, index.name});
    }
  }
  return out;
}

}  // namespace

std::string Ddl::Describe(const CollationDependent& one) {
  const std::string owner = s_.QualifiedName(*one.owner);
  switch (one.kind) {
    case CollationDependent::Kind::kColumn:
      return fmt::format("column {} of table {}", one.name, owner);
    case CollationDependent::Kind::kDefault:
      return fmt::format("default value for column {} of table {}", one.name, owner);
    case CollationDependent::Kind::kConstraint:
      return fmt::format("constraint {} on table {}", one.name, owner);
    case CollationDependent::Kind::kIndex:
      return fmt::format("index {}", sql::QuoteIdentifier(one.name));
    case CollationDependent::Kind::kView: return fmt::format("view {}", owner);
  }
  return {};
}

Status Ddl::DropDependent(const CollationDependent& one) {
  catalog::TablePtr living = Catalog()->GetTable(one.owner->id);
  if (living == nullptr) return Status();
  ast::AlterTableCommand command;
  command.name = one.name;
  command.if_exists = true;  // it may have gone with another
  command.cascade = true;
  switch (one.kind) {
    case CollationDependent::Kind::kView: return Discard(living);
    case CollationDependent::Kind::kColumn:
      command.kind = ast::AlterTableKind::kDropColumn;
      return DropColumn(command, &living);
    case CollationDependent::Kind::kConstraint:
      command.kind = ast::AlterTableKind::kDropConstraint;
      return DropConstraint(command, &living);
    case CollationDependent::Kind::kDefault: {
      catalog::TableDescriptor next = *living;
      for (catalog::ColumnDescriptor& column : next.columns) {
        if (!column.dropped && column.name == one.name) column.default_sql.clear();
      }
      return Editor().UpdateTable(std::move(next)).status();
    }
    case CollationDependent::Kind::kIndex: {
      if (living->FindIndex(one.name) == nullptr) return Status();
      ast::DropStmt drop;
      drop.object_type = ast::ObjectType::kIndex;
      ast::ObjectName name;
      name.parts = {s_.SchemaName(living->parent), one.name};
      return DropIndex(name, drop);
    }
  }
  return Status();
}

Status Ddl::DropCollation(const catalog::TablePtr& made, bool cascade) {
  const std::vector<CollationDependent> dependents =
      FindDependents(*made, s_.SchemaName(made->parent), *Catalog());
  if (!dependents.empty() && !cascade) {
    std::string detail;
    for (const CollationDependent& one : dependents) {
      if (!detail.empty()) detail += "\n";
      detail += fmt::format("{} depends on collation {}", Describe(one), made->name);
    }
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop collation {} because other objects depend on it", made->name)
        .WithDetail(detail)
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  if (!dependents.empty()) {
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      dependents.size() == 1
                          ? fmt::format("drop cascades to {}", Describe(dependents[0]))
                          : fmt::format("drop cascades to {} other objects", dependents.size())));
  }
  for (const CollationDependent& one : dependents) CELLAR_TRY(DropDependent(one));
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

Status Ddl::OfForeignCollation(const std::string& text, Status error) {
  if (error.sqlstate() != sqlstate::kUndefinedObject) return error;
  for (const sql::NameMention& mention : sql::CollationMentions(text)) {
    const std::string& name = mention.parts.back();
    const std::string schema = mention.parts.size() > 1 ? mention.parts.front() : "";
    if (sql::FindCollation(*Catalog(), s_.Scope(), schema, name) == nullptr) continue;
    return UnsupportedError(
               "expressions and predicates of indexes with collation \"{}\", which no column of "
               "the "
               "table has, are not supported",
               name)
        .WithHint(
            "Declare the column with the collation, or write COLLATE behind the index's own "
            "column.");
  }
  return error;
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
