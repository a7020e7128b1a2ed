// Copies the raw parse tree of libpg_query into our own. Only pg_walk_*.cc include this: it brings
// in PostgreSQL's headers, whose macros and global names must not leak. Here `::SelectStmt` is
// PostgreSQL's struct and `SelectStmt` ours.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/base/status.h"
#include "cellar/sql/parser/parser.h"

extern "C" {
#include <pg_query.h>
#include <postgres.h>
// (kept apart: postgres.h first)
#include <common/keywords.h>
#include <nodes/parsenodes.h>
#include <pg_query/pg_query_internal.h>
}
#undef DEBUG
#undef printf
#undef fprintf
#undef snprintf
#undef sprintf
#undef vsnprintf
#undef vfprintf
#undef vprintf
#undef vsprintf
#undef strerror
#undef gettext
#undef _
#undef Min
#undef Max
#undef Abs

namespace cellar::sql::ast {

// A range over a PostgreSQL list whose entries are T.
template <typename T>
class Items {
 public:
  explicit Items(const ::List* list) : list_(list) {}
  struct Iterator {
    const ::ListCell* cell;
    const T* operator*() const { return static_cast<const T*>(cell->ptr_value); }
    Iterator& operator++() {
      ++cell;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return cell != other.cell; }
  };
  Iterator begin() const { return {list_ == nullptr ? nullptr : list_->elements}; }
  Iterator end() const { return {list_ == nullptr ? nullptr : list_->elements + list_->length}; }
  size_t size() const { return list_ == nullptr ? 0 : list_->length; }
  bool empty() const { return size() == 0; }
  const T* operator[](size_t i) const {
    return static_cast<const T*>(list_->elements[i].ptr_value);
  }

 private:
  const ::List* list_;
};

// One walk of one text. Keeps the first error; after it, results are not meaningful, only safe.
class PgWalker {
 public:
  // `prefix` bytes of the parsed text were put before the user's; locations count without them.
  explicit PgWalker(int prefix = 0) : prefix_(prefix) {}

  // The statement, and its command tag in static storage.
  StmtPtr Statement(const ::Node* node, std::string_view* tag);

  const Status& status() const { return status_; }

  // pg_walk_expr.cc
  ExprPtr Expression(const ::Node* node);
  ExprList Expressions(const ::List* list);
  TypeName Type(const ::TypeName* type);
  QualifiedName Name(const ::List* parts, int location = -1);
  std::vector<SortBy> SortList(const ::List* list);
  std::unique_ptr<WindowDef> Window(const ::WindowDef* def);
  std::vector<IndirectionStep> Steps(const ::List* list);

 private:
  // Counts nesting while alive; false once too deep.
  class Level {
   public:
    explicit Level(PgWalker* walker) : walker_(walker) { ++walker_->depth_; }
    ~Level() { --walker_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    bool ok() const { return walker_->depth_ <= kMaxDepth || walker_->TooDeep(); }

   private:
    PgWalker* walker_;
  };

  static std::string Str(const char* text) { return text == nullptr ? std::string() : text; }
  template <typename T>
  static const T* As(const void* node) {
    return static_cast<const T*>(node);
  }
  static bool Is(const void* node, ::NodeTag tag) {
    return node != nullptr && static_cast<const ::Node*>(node)->type == tag;
  }

  int At(int location) const { return location < prefix_ ? -1 : location - prefix_; }
  bool TooDeep();
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  void Unexpected(const ::Node* node);

  // pg_walk_expr.cc
  ExprPtr Constant(const ::A_Const* node);
  ExprPtr OperatorNode(const ::A_Expr* node);
  ExprPtr BinaryRun(const ::A_Expr* node);
  ExprPtr LikeNode(const ::A_Expr* node, LikeKind kind);
  ExprPtr Call(const ::FuncCall* node);
  ExprPtr Cast(const ::TypeCast* node);
  ExprPtr Case(const ::CaseExpr* node);
  ExprPtr SubQuery(const ::SubLink* node);
  ExprPtr SqlValue(const ::SQLValueFunction* node);
  ExprPtr Unsupported(std::string what, int location);
  NameList Strings(const ::List* list);

  // pg_walk_query.cc
  StmtPtr Query(const ::Node* node);
  SelectPtr Select(const ::SelectStmt* node);
  void SetOperation(const ::SelectStmt* node, SelectStmt* out);
  void PlainSelect(const ::SelectStmt* node, SelectStmt* out);
  StmtPtr Insert(const ::InsertStmt* node);
  StmtPtr Update(const ::UpdateStmt* node);
  StmtPtr Delete(const ::DeleteStmt* node);
  std::unique_ptr<OnConflict> Conflict(const ::OnConflictClause* node);
  std::vector<SetClause> Sets(const ::List* targets);
  AssignTarget Assign(const ::ResTarget* node);
  TargetList Targets(const ::List* list);
  std::unique_ptr<WithClause> With(const ::WithClause* node);
  FromItemPtr From(const ::Node* node);
  std::vector<FromItemPtr> FromList(const ::List* list);
  Alias AliasOf(const ::Alias* alias);
  QualifiedName Relation(const ::RangeVar* var);
  std::vector<QualifiedName> Relations(const ::List* list);
  Persistence PersistenceOf(const ::RangeVar* var);
  std::vector<IndexElement> IndexElements(const ::List* list);
  IntoClause Into(const ::IntoClause* node);

  // pg_walk_table.cc
  ColumnDef Column(const ::ColumnDef* node);
  std::vector<ColumnDef> Columns(const ::List* list);
  Constraint ConstraintOf(const ::Constraint* node);
  void ColumnConstraints(const ::List* list, std::vector<Constraint>* out);
  StmtPtr CreateTable(const ::CreateStmt* node, bool foreign);
  StmtPtr CreateTableAs(const ::CreateTableAsStmt* node);
  StmtPtr SelectInto(const ::SelectStmt* node, const ::IntoClause* into);
  StmtPtr AlterTable(const ::AlterTableStmt* node);
  AlterTableCommand AlterCommand(const ::AlterTableCmd* node);
  StmtPtr CreateIndex(const ::IndexStmt* node);
  Option OptionOf(const ::DefElem* node);
  OptionList Options(const ::List* list);

  // pg_walk_stmt.cc
  StmtPtr Utility(const ::Node* node, std::string_view* tag);
  StmtPtr Other(const ::Node* node, std::string_view* tag);
  StmtPtr Transaction(const ::TransactionStmt* node, std::string_view* tag);
  TransactionModes Modes(const ::List* list);
  std::unique_ptr<VariableSetStmt> VariableSet(const ::VariableSetStmt* node);
  StmtPtr Grant(const ::GrantStmt* node);
  StmtPtr DefaultPrivileges(const ::AlterDefaultPrivilegesStmt* node);
  StmtPtr GrantRoles(const ::GrantRoleStmt* node);
  StmtPtr Drop(const ::DropStmt* node);
  StmtPtr Rename(const ::RenameStmt* node);
  StmtPtr Copy(const ::CopyStmt* node);
  StmtPtr Role(const ::Node* node, std::string_view* tag);
  ObjectName Object(const ::Node* node);
  RoleSpec RoleOf(const ::RoleSpec* node);
  std::vector<RoleSpec> Roles(const ::List* list);

  Status status_;
  int depth_ = 0;
  int prefix_ = 0;
};

ObjectType ObjectTypeOf(::ObjectType type);
// "DROP " + the kind of object, and so on, in static storage.
std::string_view DropTag(ObjectType type);
std::string_view AlterTag(ObjectType type);

}  // namespace cellar::sql::ast
