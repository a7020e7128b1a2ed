// Statements that change the schema, as one class over several files. Private to this layer.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cellar/catalog/unreadable.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

struct CollationDependent;  // ddl_collations.cc
struct Job;                 // jobs.h

class Ddl {
 public:
  Ddl(Session::Impl* session, ResultSink* sink) : s_(*session), sink_(sink) {}
  Status Run(const Prepared& prepared, std::string* tag);
  // Compares the table's rows with its CHECK and FOREIGN KEY constraints; for each that some row
  // breaks, a message.
  // `catalog` is that of the transaction's snapshot.
  Status FindBrokenConstraints(const catalog::CatalogSnapshot& catalog,
                               const catalog::TablePtr& table, std::vector<std::string>* messages);
  // For jobs, in the session's transaction: do all rows keep the CHECK or FOREIGN KEY of this name,
  // or, if a column is given, is that free of NULLs?
  Status VerifyConstraint(const catalog::TablePtr& table, const std::string& name,
                          catalog::ColumnId column);

  // ddl_bin.cc
  Status Undrop(const ast::OwnStmt& statement);
  Status Purge(const ast::OwnStmt& statement);
  Status SetDroppedOptions(const ast::OwnStmt& statement);

  // In each step of a rewrite: defaults of columns that only the copy has follow their sequences'
  // names.
  Status NameSequences(const catalog::TableDescriptor& before, catalog::TableDescriptor* copy);
  // At the end of a rewrite, where *next takes the place of `before`: what goes with columns that
  // it has no more, constraints and their own sequences, and constraints of `copy` on those it has
  // anew.
  Status FollowColumns(const catalog::TableDescriptor& before, const catalog::TableDescriptor& copy,
                       catalog::TableDescriptor* next, catalog::CatalogEditor* editor);

 private:
  // Where a new relation goes.
  struct Target {
    catalog::NamespaceId space;
    std::string name;
    bool temporary = false;
  };
  // What CREATE TABLE and ADD COLUMN gather before the table exists.
  struct PendingForeignKey {
    catalog::ForeignKey key;
    const ast::Constraint* constraint;
  };

  // ddl.cc
  Status DropObjects(const ast::DropStmt& statement);
  Status DropRelation(const ast::ObjectName& object, const ast::DropStmt& statement);
  Status DropIndex(const ast::ObjectName& object, const ast::DropStmt& statement);
  Status DropSchema(const ast::ObjectName& object, const ast::DropStmt& statement);
  // 55006 while deferred checks of the table wait.
  Status RefusePending(const catalog::TableDescriptor& table, const char* statement);
  Status DropTable(const catalog::TablePtr& table, bool cascade);
  Status DropDatabase(const ast::DropDatabaseStmt& statement);
  // 55006 when an open cursor of this session reads the table; `command` is for the message.
  Status CheckUnused(const catalog::TableDescriptor& table, std::string_view command) const;
  Status CreateSchema(const ast::CreateSchemaStmt& statement);
  Status CreateDatabase(const ast::CreateDatabaseStmt& statement);
  Status Rename(const ast::RenameStmt& statement);
  Status MoveToSchema(const ast::AlterObjectSchemaStmt& statement);
  Status Comment(const ast::CommentStmt& statement);
  Status CommentOnRole(const std::string& name, const std::string& text);  // ddl_roles.cc
  Status Truncate(const ast::TruncateStmt& statement);
  Status CreateView(const ast::CreateViewStmt& statement);
  Status CreateSequence(const ast::CreateSequenceStmt& statement);
  Status AlterSequence(const ast::AlterSequenceStmt& statement);
  Status ApplySequenceOptions(const ast::OptionList& options, bool creating,
                              catalog::TableDescriptor* sequence, std::optional<int64_t>* restart);

  // ddl_roles.cc
  Status CreateRole(const ast::CreateRoleStmt& statement);
  Status AlterRole(const ast::AlterRoleStmt& statement);
  Status DropRole(const ast::DropRoleStmt& statement);
  Status RenameRole(const ast::RenameStmt& statement);
  Status ApplyRoleOptions(const ast::OptionList& options, Role* role);
  Status ChangeMember(uint32_t group, uint32_t member, bool grant, bool admin);
  Status GrantRoles(const ast::GrantStmt& statement);
  Status AlterDatabase(const ast::AlterDatabaseStmt& statement);
  Status ChangeSettings(const ast::VariableSetStmt& set, uint64_t database,
                        std::vector<RoleSettings>* settings);
  Status Owned(const ast::OwnedStmt& statement);
  Status DropOwned(const std::vector<uint32_t>& roles, bool cascade);
  Status ReassignOwned(const std::vector<uint32_t>& roles, uint32_t owner);
  // What would miss a role, in PostgreSQL's words; empty: nothing.
  std::vector<std::string> DependentsOf(uint32_t role);
  Result<const Role*> FindRole(const ast::RoleSpec& spec);
  std::string RoleName(const ast::RoleSpec& spec);
  bool MayManageRoles();

  // ddl_grant.cc
  Status Grant(const ast::GrantStmt& statement);
  Status GrantOnRelation(const ast::GrantStmt& statement, const std::vector<uint32_t>& grantees,
                         const catalog::TablePtr& relation);
  Status GrantOnNamespace(const ast::GrantStmt& statement, const std::vector<uint32_t>& grantees,
                          const catalog::NamespacePtr& space, bool as_database);
  Status DefaultPrivileges(const ast::GrantStmt& statement);
  Result<std::vector<uint32_t>> Grantees(const ast::GrantStmt& statement);
  // One list of privileges and what it belongs to.
  struct GrantTarget {
    char kind = 'r';         // as PrivilegesOf
    std::string noun, name;  // "table", "t"
    uint32_t owner = 0;
  };
  // Grants or revokes `privileges` in `items`, as the best grantor that it and `whole` (lists that
  // count for choosing him) allow. Warns of what could not be done.
  Status ApplyGrant(const ast::GrantStmt& statement, const std::vector<uint32_t>& grantees,
                    uint32_t privileges, bool all, const GrantTarget& target,
                    const std::vector<catalog::AclItem>& whole,
                    std::vector<catalog::AclItem>* items);
  Result<uint32_t> PrivilegeBits(const ast::GrantStmt::Privilege& privilege, char kind,
                                 std::string_view plural);

  // ddl_access.cc
  // Whether the current role may run the statement, as far as that can be said before it runs: who
  // owns what it changes, and what has been granted on where it puts things. 42501.
  Status Authorize(const ast::Node& node);
  Status AuthorizeTarget(const ast::QualifiedName& name, bool temporary);
  Status AuthorizeRelation(const ast::QualifiedName& name);
  Status AuthorizeReference(const ast::Constraint& constraint);
  Status AuthorizeTruncate(const ast::TruncateStmt& statement);
  Status AuthorizeDrop(const ast::DropStmt& statement);
  Status AuthorizeRename(const ast::RenameStmt& statement);
  Status AuthorizeSchemaCreation();
  // That the current role may make `owner` one, of something in `schema` if that is given.
  Status AuthorizeOwner(const std::string& owner, std::optional<catalog::NamespaceId> schema);
  Status SetOwner(const catalog::TablePtr& table, const std::string& owner);
  Status SetOwner(const catalog::NamespacePtr& space, const std::string& owner);
  Status ChangeOwner(const ast::RoleSpec& role, const catalog::TablePtr& table);
  Status AlterOwner(const ast::AlterOwnerStmt& statement);

  // ddl_table.cc
  Status CreateTable(const ast::CreateTableStmt& statement);
  Status CreateTableAs(const ast::CreateTableAsStmt& statement, const Prepared& prepared,
                       std::string* tag);
  Status CopyLike(const ast::TableLike& like, catalog::TableDescriptor* table);
  Result<catalog::ColumnDescriptor> MakeColumn(const ast::ColumnDef& definition,
                                               const Target& target, const std::string& table_name,
                                               int* serial);
  Status AddColumnConstraints(const ast::ColumnDef& definition, catalog::TableDescriptor* table,
                              std::vector<PendingForeignKey>* foreign_keys);
  Status AddTableConstraint(const ast::Constraint& constraint, catalog::TableDescriptor* table,
                            std::vector<PendingForeignKey>* foreign_keys);
  Status AddKey(const ast::Constraint& constraint, const std::vector<std::string>& columns,
                catalog::TableDescriptor* table);
  Status AddCheck(const ast::Constraint& constraint, const std::string& column,
                  catalog::TableDescriptor* table);
  Result<catalog::ForeignKey> MakeForeignKey(const ast::Constraint& constraint,
                                             const std::vector<std::string>& columns,
                                             const catalog::TableDescriptor& table);
  // Errors: 42701 for the name of a system column.
  static Status CheckColumnName(std::string_view name);
  // Errors: 42P17, and those of the expression.
  Status CheckGenerated(const ast::Expr& expr, const catalog::TableDescriptor& table,
                        const catalog::ColumnDescriptor& column);
  Status SetDefault(const ast::Expr& expr, catalog::ColumnDescriptor* column);
  Result<catalog::TablePtr> MakeSerialSequence(const Target& target, const std::string& table_name,
                                               const std::string& column, Type type,
                                               const ast::OptionList& options);
  // nextval('schema.name'::regclass)
  std::string SequenceDefault(const catalog::TableDescriptor& sequence);
  // Names of relations in a default become 'schema.name'::regclass. Errors: 42P01, 42501.
  Status NameSequences(std::string* text);
  // The same in an expression over the table's columns; `target`: boolean for conditions, else
  // kInvalid.
  Status NameRelations(const catalog::TableDescriptor& table, Type target, std::string* text);
  // After a relation's name or schema has changed from the old one (empty: whatever it was):
  // defaults of the columns that own it follow, and whatever tables keep that names it.
  Status FollowSequence(catalog::TableId sequence, std::string_view old_schema = {},
                        std::string_view old_name = {});
  struct SequenceUser {
    catalog::TablePtr table;
    catalog::ColumnId column;
  };
  // Columns of this database whose defaults name it. O(columns of the database).
  std::vector<SequenceUser> DefaultsNaming(const catalog::TableDescriptor& sequence);
  // Tables that the statement drops: they do not keep each other.
  std::vector<catalog::TableId> dropping_;
  bool IsDropping(catalog::TableId table) const {
    return std::find(dropping_.begin(), dropping_.end(), table) != dropping_.end();
  }
  // Before a sequence goes together with what `dropped` says: with CASCADE takes the defaults away
  // that need it, but for those of table `owner` (of one column, if it is given). Errors: 2BP01.
  Status ReleaseSequence(const catalog::TableDescriptor& sequence, std::string_view dropped,
                         catalog::TableId owner, catalog::ColumnId owner_column, bool cascade);
  std::vector<catalog::NamespaceId> SpacesOfDatabase();
  Status OwnSequence(catalog::TableId sequence, catalog::TableId table, catalog::ColumnId column);
  // The columns follow a sequence whose owner, as it stands in its descriptor, was another one.
  // Errors: 0A000 when the new one is an identity column or owns a sequence already.
  Status FollowOwner(const catalog::TableDescriptor& sequence,
                     const catalog::SequenceOptions& before);
  // 0A000 when the column owns one.
  Status OwnsNone(const catalog::ColumnDescriptor& column, const catalog::TableDescriptor& table);
  // What WITH (layout = ...) names, or default_table_layout.
  Result<catalog::Layout> LayoutOf(const ast::OptionList& options);

  // ddl_groups.cc
  // In the order given. Errors: 42701, 42703, 42704, 42710, 42P16, 42602.
  Status ChangeGroups(const std::vector<ast::GroupChange>& changes,
                      catalog::TableDescriptor* table);
  // Makes those of option `groups` the table's; does nothing without it.
  Status ApplyGroupOption(const ast::OptionList& options, catalog::TableDescriptor* table);
  // The groups, and the layout that follows, of a table that is complete but for them.
  Status MakeGroups(const std::vector<ast::GroupChange>& groups, const ast::OptionList& options,
                    catalog::TableDescriptor* table);
  Status AlterGroups(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  // SET and RESET of options `layout` and `groups`.
  Status AlterLayout(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  // Writes the table anew if `next` keeps columns elsewhere than it does.
  Status MoveColumns(catalog::TableDescriptor next, catalog::TablePtr* table);

  // The primary key of a table that declares none.
  void AddHiddenRowId(catalog::TableDescriptor* table);
  std::string ChooseName(const catalog::TableDescriptor& table, const std::string& columns,
                         const char* suffix, catalog::NamespaceId space);

  // ddl_alter.cc
  Status AlterTable(const ast::AlterTableStmt& statement);
  Status AlterOne(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status DropColumn(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status ChangeType(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status AddConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status DropConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  // The last that a statement does, if it may become a job's.
  Status ReplacePrimary(catalog::TableDescriptor next, catalog::TablePtr* table, bool may_job,
                        bool cascade = false);
  // Stores `next` and writes the rows of *table, which it becomes, anew.
  Status RewriteTable(catalog::TableDescriptor next, catalog::TablePtr* table, bool may_job,
                      bool cascade = false);
  // As RowConverter has it, in the transaction.
  Status RewriteRows(const catalog::TablePtr& from, const catalog::TablePtr& to,
                     catalog::ColumnId column, const std::string& expression);
  Status VerifyNotNull(const catalog::TablePtr& table, catalog::ColumnId column);
  Status VerifyCheck(const catalog::TablePtr& table, const catalog::CheckConstraint& check);
  // `row`: this one, of living columns, in the place of all.
  Status VerifyForeignKey(const catalog::TablePtr& table, const catalog::ForeignKey& key,
                          RowBatch* row = nullptr);
  Status VerifyForeignKey(const catalog::TablePtr& table, const catalog::ForeignKey& key,
                          const catalog::TablePtr& referenced, RowBatch* row = nullptr);
  // What has been read of the table shall be true at the commit, which fails if somebody has
  // written to it; for isolations that do not see to it themselves.
  Status HoldStill(const catalog::TableDescriptor& table);
  Status ForEachBatch(const catalog::TablePtr& table,
                      const std::function<Status(RowBatch*)>& visit);

  // ddl_add_column.cc
  Status AddColumn(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  // Below, the new column stands last; `constraints` are those beside it.
  Status VerifyInitialValue(const catalog::TablePtr& table, const catalog::TableDescriptor& next,
                            std::span<const ast::Constraint* const> constraints);
  Result<bool> NeedsJob(const catalog::TableDescriptor& next,
                        std::span<const ast::Constraint* const> constraints);
  Status AddColumnByJob(catalog::TableDescriptor next,
                        std::span<const ast::Constraint* const> constraints,
                        catalog::ColumnId column, const catalog::TablePtr& table);
  Status AddToNewColumn(const ast::Constraint& constraint, const std::string& name,
                        catalog::TablePtr* table);
  Status VerifyNewReference(const catalog::TablePtr& table, const catalog::ForeignKey& key);
  // Does every row keep the check, whatever stands in other columns? nullopt: they count, or it
  // changes from row to row.
  Result<std::optional<bool>> HoldsOfAll(const ast::Expr& check,
                                         const catalog::TableDescriptor& table);
  static bool IsVolatile(const sql::Expr& expr);
  // Of the table's rows, at most so many, which is all that is read.
  Result<uint64_t> CountRows(const catalog::TablePtr& table, uint64_t most);
  // Who began before the key was there must not delete rows of the other table: a new version
  // refuses those commits.
  Status AnnounceReference(const catalog::ForeignKey& key, catalog::TableId referencing);

  // ddl_index.cc
  Status CreateIndex(const ast::CreateIndexStmt& statement);
  Status RequireNoBlock(std::string_view what);
  Status Reindex(const ast::ReindexStmt& statement);
  // The table of an index, and the index in it. Errors: 42P01 or 42704 as `missing` says, 42809.
  Result<catalog::TablePtr> FindIndex(const ast::QualifiedName& name, std::string_view missing,
                                      const catalog::IndexDescriptor** index);
  Status CheckAlterIndex(const ast::AlterTableStmt& statement);
  // ALTER PRIMARY KEY, and DROP CONSTRAINT of the key with ADD PRIMARY KEY: ddl_key.cc.
  Status AlterPrimaryKey(const ast::Constraint& constraint, catalog::TablePtr* table);
  static const ast::Constraint* KeyThatFollows(const ast::AlterTableStmt& statement,
                                               const catalog::TableDescriptor& table);
  Status TakeNextKey(catalog::TableDescriptor next, catalog::TablePtr* table, bool may_job,
                     bool cascade);
  // Keys with shards are for whole rows. Errors: 0A000.
  static Status RequireRowsForShards(const catalog::TableDescriptor& table);
  // Makes the named index one of a constraint: of a key in front of all indexes.
  Status UseIndexAsKey(const ast::Constraint& constraint, catalog::TableDescriptor* next);
  Status AddConstraintUsingIndex(const ast::Constraint& constraint, catalog::TablePtr* table);
  // LIKE .. INCLUDING INDEXES: columns are matched by name.
  Status CopyIndex(const catalog::TableDescriptor& source, const catalog::IndexDescriptor& from,
                   catalog::TableDescriptor* table);

  // ddl_views.cc
  struct ViewUses {
    catalog::TablePtr view;
    std::vector<sql::NameUse> uses;
  };
  Result<std::shared_ptr<const sql::Plan>> PlanView(const catalog::TableDescriptor& view,
                                                    std::vector<sql::NameUse>* uses,
                                                    std::vector<sql::StarUse>* stars = nullptr);
  // The text of a view with the columns that its stars stand for now.
  Result<std::string> ExpandStars(const catalog::TableDescriptor& view);
  Result<std::vector<catalog::TablePtr>> ViewsOfColumn(const catalog::TableDescriptor& table,
                                                       const catalog::ColumnDescriptor& column);
  // Before the column goes: with CASCADE drops the views that use it. Errors: 2BP01.
  Status ReleaseColumn(const catalog::TableDescriptor& table,
                       const catalog::ColumnDescriptor& column, bool cascade);
  // Views of this database whose texts hold `name`, and what is named in them, by location.
  Result<std::vector<ViewUses>> ViewsNaming(std::string_view name);
  // 0A000 when the view cannot be read by its new text, or gives something else.
  Status RewriteView(const catalog::TableDescriptor& view, std::string text);
  // After relations or their schemas got another name or place than they had `before`.
  Status FollowRelations(const std::vector<ViewUses>& views, const catalog::SnapshotPtr& before);
  Status FollowColumn(const std::vector<ViewUses>& views, catalog::TableId table,
                      catalog::ColumnId column, const std::string& old_name,
                      const std::string& new_name);

  // ddl_collations.cc
  Status CreateCollation(const ast::CreateCollationStmt& statement);
  Status RenameCollation(const ast::RenameStmt& statement);
  Status MoveCollation(const ast::AlterObjectSchemaStmt& statement);
  Status RefreshCollation(const ast::AlterCollationStmt& statement);
  Status DropCollations(const ast::ObjectName& object, const ast::DropStmt& statement);
  Status DropCollation(const catalog::TablePtr& made, bool cascade);
  std::string Describe(const CollationDependent& one);
  Status DropDependent(const CollationDependent& one);
  // What an index's text may not name: a collation that no column of its table has. The error that
  // it gave, or 0A000 where that is why.
  Status OfForeignCollation(const std::string& text, Status error);
  Status UpdateCollation(catalog::TableDescriptor next);
  // Makes the relation's keys anew by the rules that this process has.
  Status RefreshCollationsOf(catalog::TablePtr table);
  // Living relations that have the collation. Cost: looks at all relations.
  std::vector<catalog::TablePtr> UsersOfCollation(uint32_t oid);
  // As sql::ResolveCollation.
  Result<const Collation*> CollationNamed(const ast::QualifiedName& name, int location);
  // One that users made. Errors: 42704; 42501 unless the current role owns it.
  Result<catalog::TablePtr> FindOwnCollation(const ast::QualifiedName& name);

  // ddl_types.cc
  Status CreateEnum(const ast::CreateEnumStmt& statement);
  Status AlterEnum(const ast::AlterEnumStmt& statement);
  Status RenameType(const ast::RenameStmt& statement);
  Status MoveType(const ast::AlterObjectSchemaStmt& statement);
  // Where ALTER TYPE or COLLATION .. SET SCHEMA puts it; its own place when it is there already.
  Result<catalog::NamespaceId> NewPlaceOf(const catalog::TableDescriptor& made,
                                          std::string_view noun, const std::string& schema);
  Status DropTypes(const ast::ObjectName& object, const ast::DropStmt& statement);
  Status DropType(const catalog::TablePtr& type, bool cascade);
  Status UpdateType(catalog::TableDescriptor next);
  // Living relations that have a column of the type. Cost: looks at all relations.
  std::vector<catalog::TablePtr> UsersOf(const catalog::TableDescriptor& type);
  // A type that users made. Errors: 42704, 3F000, 42809 when it is built in.
  Result<catalog::TablePtr> FindType(const ast::QualifiedName& name);
  // The same, and 42501 unless the current role owns it.
  Result<catalog::TablePtr> FindOwnType(const ast::QualifiedName& name);

  // ddl_bin.cc
  // What the running statement drops goes together.
  Result<uint64_t> DropGroup();
  // `retention` unset: that of the namespace, or cellar.retention.
  Result<catalog::DropMark> MarkOf(std::optional<int64_t> retention, catalog::NamespaceId space);
  // Into the bin; a temporary one is gone.
  Status Discard(const catalog::TablePtr& table);
  Status DiscardNamespace(catalog::NamespaceId id);
  Status TruncateOne(const catalog::TablePtr& table, bool restart_identity);
  Result<std::vector<catalog::TablePtr>> FindDroppedTables(const ast::OwnStmt& statement);
  Result<std::vector<catalog::NamespacePtr>> FindDroppedNamespaces(const ast::OwnStmt& statement,
                                                                   bool may_be_none);
  bool NameIsTaken(catalog::NamespaceId space, const std::string& name);
  std::string FreeName(catalog::NamespaceId space, const std::string& name);
  Status RestoreForeignKeys(const std::set<catalog::TableId>& together,
                            catalog::TableDescriptor* table);
  Status RestoreLostKeys(const catalog::TableDescriptor& dropped,
                         const std::set<catalog::TableId>& together);
  Status RestoreOwner(const catalog::TableDescriptor& sequence);
  Status Restore(const catalog::TablePtr& dropped, catalog::NamespaceId space,
                 const std::string& name, const std::set<catalog::TableId>& together);
  Status RestoreNamespace(const catalog::NamespacePtr& space, const std::string& name);
  Status PurgeTables(const std::vector<catalog::TablePtr>& tables);
  Status PurgeNamespaces(const std::vector<catalog::NamespacePtr>& spaces);

  // job_statements.cc
  // Stores `next`, whose last index is new, and fills that: in this transaction, or by a job that
  // writers need not wait for.
  Status AddIndex(catalog::TableDescriptor next, bool concurrently, catalog::TablePtr* table);
  // Is the table worth a job, and the statement alone in its transaction?
  Result<bool> WantsJob(const catalog::TableDescriptor& table);
  Result<Job> NewJob(const catalog::TableDescriptor& table);
  // Commits, with the jobs' records, and waits for the jobs; the first one's error.
  Status StartJobs(std::span<const Job> jobs);
  // Stores `next`, whose last index is new and the job's from here on.
  Status AddIndexToBuild(catalog::TableDescriptor next, Job* job, catalog::TablePtr* table);
  // A new index that is to take the place of another one.
  Result<Job> AddReplacement(const catalog::TablePtr& table, const catalog::IndexDescriptor& index);
  // Secondary indexes, in this transaction or, those of large tables, beside the old ones by jobs.
  Status ReindexTables(std::span<const catalog::TablePtr> tables,
                       std::optional<catalog::IndexId> only, bool concurrently);
  // A job looks whether the rows keep the constraint with this oid, which `next` has, not
  // validated. `column`: it stands for NOT NULL of that one.
  Status ValidateByJob(catalog::TableDescriptor next, const std::string& constraint, uint32_t oid,
                       catalog::ColumnId column, bool remove_on_failure);
  // rewrite_job.cc
  // A job makes *table into `next`, whose indexes have new ids. `column`: computed by `expression`,
  // as RowConverter does.
  // `cascade`: foreign keys that need a key which goes, go with it.
  Status RewriteByJob(catalog::TableDescriptor next, const catalog::TablePtr& table,
                      catalog::ColumnId column, const std::string& expression,
                      bool cascade = false);
  Status TakeSequences(const catalog::TableDescriptor& before, catalog::TableDescriptor* next,
                       catalog::CatalogEditor* editor);
  Status TakeReferences(const catalog::TableDescriptor& before,
                        const catalog::TableDescriptor& copy, catalog::TableDescriptor* next,
                        catalog::CatalogEditor* editor);
  // 55006 while an index of the table is being built.
  Status RefuseDuringBuild(const catalog::TableDescriptor& table);
  Status ValidateConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status SetNotNull(const std::string& column_name, catalog::TablePtr* table);
  bool only_command_ = true;  // of its ALTER TABLE
  // The ADD PRIMARY KEY that follows the DROP CONSTRAINT of the old key, both being all there is.
  const ast::Constraint* next_key_ = nullptr;

  // Shared.
  catalog::SnapshotPtr Catalog() { return s_.CurrentCatalog(); }
  catalog::CatalogEditor& Editor() { return s_.Editor(); }
  Result<Target> ResolveTarget(const ast::QualifiedName& name, bool temporary);
  Result<catalog::TablePtr> FindRelation(const ast::QualifiedName& name);
  Result<catalog::TablePtr> FindTable(const ast::QualifiedName& name);
  Status Notice(Severity severity, std::string_view sqlstate, std::string text) {
    // IF EXISTS does not skip what is there, but unreadable.
    if (text.ends_with("does not exist, skipping")) CELLAR_TRY(Status(catalog::UnreadableMet()));
    return s_.Notify(sink_, severity, sqlstate, std::move(text));
  }
  // Expression text checked against the table, cast to `target` if that is valid.
  Status CheckExpression(const ast::Expr& expr, const catalog::TableDescriptor* table, Type target);
  Result<Value> EvaluateDefault(const std::string& sql, Type type, bool* is_volatile);

  Session::Impl& s_;
  ResultSink* sink_;
  uint64_t drop_group_ = 0;  // zero: nothing dropped yet
};

// The letter under which default privileges of a kind for every schema are kept; and the kind of
// any such letter.
char GlobalDefaultLetter(char kind);
char DefaultLetterKind(char stored, bool* global);
// Deletes a relation with its rows, past the bin. The state of a sequence, which transactions of
// its own write, is the caller's.
Status RemoveWithData(catalog::CatalogEditor* editor, table::Access* access,
                      const catalog::TableDescriptor& table);

// If there is a new primary index in front of the old one, which held the hidden row id.
void DropHiddenPrimary(catalog::TableDescriptor* table);
// Gives every index a new id, since all entries will be written anew, and takes key columns out of
// their groups.
void PrepareCopy(catalog::TableDescriptor* table);

ast::QualifiedName NameOf(const ast::ObjectName& object);
// A type as stored expressions name it: FormatType, but with keywords quoted. ddl_types.cc.
std::string NameInSql(const Type& type);
std::string JoinNames(const std::vector<std::string>& names, std::string_view separator);
// The first column of a query's output that is made of columns whose collations do not agree.
std::optional<size_t> ColumnWithoutCollation(const sql::Plan& plan);

}  // namespace cellar::session
