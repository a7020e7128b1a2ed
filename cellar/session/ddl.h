// Statements that change the schema, as one class over several files. Private to this layer.
#pragma once

#include <string>
#include <vector>

#include "cellar/session/session_internal.h"

namespace cellar::session {

class Ddl {
 public:
  Ddl(Session::Impl* session, ResultSink* sink) : s_(*session), sink_(sink) {}
  Status Run(const Prepared& prepared, std::string* tag);
  // Compares the table's rows with its CHECK and FOREIGN KEY constraints; for each that some row
  // breaks, a message.
  Status FindBrokenConstraints(const catalog::TablePtr& table, std::vector<std::string>* messages);

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
  Status DropTable(const catalog::TablePtr& table, bool cascade);
  Status DropDatabase(const ast::DropDatabaseStmt& statement);
  Status CreateSchema(const ast::CreateSchemaStmt& statement);
  Status CreateDatabase(const ast::CreateDatabaseStmt& statement);
  Status Rename(const ast::RenameStmt& statement);
  Status MoveToSchema(const ast::AlterObjectSchemaStmt& statement);
  Status AlterOwner(const ast::AlterOwnerStmt& statement);
  Status Comment(const ast::CommentStmt& statement);
  Status Truncate(const ast::TruncateStmt& statement);
  Status CreateRole(const ast::CreateRoleStmt& statement);
  Status AlterRole(const ast::AlterRoleStmt& statement);
  Status DropRole(const ast::DropRoleStmt& statement);
  Status ApplyRoleOptions(const ast::OptionList& options, Role* role);
  Status CreateView(const ast::CreateViewStmt& statement);
  Status CreateSequence(const ast::CreateSequenceStmt& statement);
  Status AlterSequence(const ast::AlterSequenceStmt& statement);
  Status ApplySequenceOptions(const ast::OptionList& options, bool creating,
                              catalog::TableDescriptor* sequence, std::optional<int64_t>* restart);

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
  Status SetDefault(const ast::Expr& expr, catalog::ColumnDescriptor* column);
  Result<catalog::TablePtr> MakeSerialSequence(const Target& target, const std::string& table_name,
                                               const std::string& column, Type type,
                                               const ast::OptionList& options);
  // nextval('schema.name'::regclass)
  std::string SequenceDefault(const catalog::TableDescriptor& sequence);
  // After the sequence's name or schema has changed: defaults of the columns that own it follow.
  Status FollowSequence(catalog::TableId sequence);
  Status OwnSequence(catalog::TableId sequence, catalog::TableId table, catalog::ColumnId column);
  // What WITH (layout = ...) names, or default_table_layout.
  Result<catalog::Layout> LayoutOf(const ast::OptionList& options);
  // The primary key of a table that declares none.
  void AddHiddenRowId(catalog::TableDescriptor* table);
  std::string ChooseName(const catalog::TableDescriptor& table, const std::string& columns,
                         const char* suffix, catalog::NamespaceId space);

  // ddl_alter.cc
  Status AlterTable(const ast::AlterTableStmt& statement);
  Status AlterOne(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status AddColumn(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status DropColumn(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status ChangeType(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status AddConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status DropConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table);
  Status ReplacePrimary(catalog::TableDescriptor next, catalog::TablePtr* table);
  // Stores `next` and writes the rows of *table, which it becomes, anew.
  Status RewriteTable(catalog::TableDescriptor next, catalog::TablePtr* table);
  Status VerifyNotNull(const catalog::TablePtr& table, catalog::ColumnId column);
  Status VerifyCheck(const catalog::TablePtr& table, const catalog::CheckConstraint& check);
  Status VerifyForeignKey(const catalog::TablePtr& table, const catalog::ForeignKey& key);
  Status ForEachBatch(const catalog::TablePtr& table,
                      const std::function<Status(RowBatch*)>& visit);

  // ddl_index.cc
  Status CreateIndex(const ast::CreateIndexStmt& statement);

  // Shared.
  catalog::SnapshotPtr Catalog() { return s_.CurrentCatalog(); }
  catalog::CatalogEditor& Editor() { return s_.Editor(); }
  Result<Target> ResolveTarget(const ast::QualifiedName& name, bool temporary);
  Result<catalog::TablePtr> FindRelation(const ast::QualifiedName& name);
  Result<catalog::TablePtr> FindTable(const ast::QualifiedName& name);
  Status Notice(Severity severity, std::string_view sqlstate, std::string text) {
    return s_.Notify(sink_, severity, sqlstate, std::move(text));
  }
  // Expression text checked against the table, cast to `target` if that is valid.
  Status CheckExpression(const ast::Expr& expr, const catalog::TableDescriptor* table, Type target);
  Result<Value> EvaluateDefault(const std::string& sql, Type type, bool* is_volatile);

  Session::Impl& s_;
  ResultSink* sink_;
};

ast::QualifiedName NameOf(const ast::ObjectName& object);
std::string JoinNames(const std::vector<std::string>& names, std::string_view separator);

}  // namespace cellar::session
