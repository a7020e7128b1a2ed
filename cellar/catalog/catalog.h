// The catalog: names, descriptors and who sees which version of them.
//
// Readers hold an immutable CatalogSnapshot. A transaction that changes the schema edits through a
// CatalogEditor: it writes name and descriptor records into its kv::Transaction and sees its own
// changes in editor.snapshot(); after the commit the Catalog publishes them. A transaction that
// used a descriptor calls RequireCurrent so that its commit fails with kConflict if the descriptor
// has changed since; that condition costs no engine trip (docs/decisions: descriptor versions).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/descriptor.h"
#include "cellar/kv/engine.h"

namespace cellar::catalog {

using TablePtr = std::shared_ptr<const TableDescriptor>;
using NamespacePtr = std::shared_ptr<const NamespaceDescriptor>;

// Immutable; shared by any number of threads.
class CatalogSnapshot {
 public:
  // Living objects only, unless said otherwise. Null when absent. Cost: no engine trip.
  NamespacePtr FindNamespace(NamespaceId parent, std::string_view name) const;
  NamespacePtr GetNamespace(NamespaceId id) const;
  TablePtr FindTable(NamespaceId parent, std::string_view name) const;  // tables, views, sequences
  TablePtr GetTable(TableId id) const;                                  // types and collations too
  TablePtr GetTableByOid(uint32_t oid) const;
  TablePtr FindType(NamespaceId parent, std::string_view name) const;
  TablePtr FindCollation(NamespaceId parent, std::string_view name) const;
  // By the type's oid or its array type's.
  TablePtr GetTypeByOid(uint32_t oid) const;
  // The table that owns the index of this name in namespace `parent`, and the index.
  TablePtr FindTableOfIndex(NamespaceId parent, std::string_view index_name,
                            const IndexDescriptor** index) const;
  TablePtr FindTableOfIndexOid(uint32_t oid, const IndexDescriptor** index) const;
  // Children in name order.
  std::vector<NamespacePtr> ListNamespaces(NamespaceId parent) const;
  std::vector<TablePtr> ListTables(NamespaceId parent) const;
  std::vector<TablePtr> ListAllTables() const;
  // Types and collations.
  std::vector<TablePtr> ListTypes(NamespaceId parent) const;
  std::vector<TablePtr> ListAllTypes() const;
  // Tables with a foreign key that references `id`.
  std::vector<TablePtr> ListReferencing(TableId id) const;
  // "/microsoft/employees"; for PostgreSQL clients see session.
  std::string PathOf(const TableDescriptor& table) const;
  // "/microsoft"; "" for the root, "/?" where an ancestor is missing.
  std::string PathOf(NamespaceId id) const;
  // Dropped objects whose descriptors are still kept, in id order.
  std::vector<TablePtr> ListDroppedTables() const;
  std::vector<NamespacePtr> ListDroppedNamespaces() const;
  TablePtr GetDroppedTable(TableId id) const;
  NamespacePtr GetDroppedNamespace(NamespaceId id) const;
  // The table, living or dropped, whose rows lie under this table id.
  TablePtr GetTableByStorage(TableId storage) const;
  // Grows with every published change.
  uint64_t generation() const;

  struct Data;
  explicit CatalogSnapshot(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};
using SnapshotPtr = std::shared_ptr<const CatalogSnapshot>;

class Catalog;

// What a drop writes down of itself, for those who list the bin and empty it.
struct DropMark {
  int64_t ticks = 0;   // TableDescriptor::dropped_at_ticks
  uint64_t group = 0;  // CatalogEditor::AllocateId, once a statement
  std::optional<int64_t> keep_micros;
  std::string by;
};

// Changes to the catalog inside one transaction. One thread at a time. Errors carry PostgreSQL's
// SQLSTATEs (42P07 a relation of that name exists, 42P06 schema, 42P04 database, ...). Every call
// costs at most one engine read and buffered writes, whatever the size of the object.
class CatalogEditor {
 public:
  // Starts from catalog->Current(), or from `base`, the snapshot that the transaction uses.
  CatalogEditor(Catalog* catalog, kv::Transaction* transaction);
  CatalogEditor(Catalog* catalog, kv::Transaction* transaction, SnapshotPtr base);
  ~CatalogEditor();

  // What this transaction sees.
  SnapshotPtr snapshot() const;

  Result<NamespacePtr> CreateNamespace(NamespaceId parent, std::string_view name,
                                       std::string_view owner);
  Status RenameNamespace(NamespaceId id, std::string_view new_name);
  // Writes a changed owner or comment.
  Status UpdateNamespace(NamespaceDescriptor space);
  // Must be empty of living objects (2BP01 otherwise). Frees the name, marks the descriptor, keeps
  // the data.
  Status DropNamespace(NamespaceId id, const DropMark& mark = {});
  // Gives a dropped one its life back; its parent must live. What was in it stays dropped. 42P04 or
  // 42P06 when the name is taken.
  Status UndropNamespace(NamespaceId id, std::string_view new_name);
  // Changes a dropped one: how long it is kept, or its state to kCollecting.
  Status UpdateDroppedNamespace(NamespaceDescriptor space);
  // Deletes the descriptor of a dropped one, for ever.
  Status RemoveNamespace(NamespaceId id);

  // Fills in id, oids, version, ids of columns and indexes that are zero, the first row format;
  // checks names (also of its indexes) against the namespace. `table.parent` and `table.name` are
  // set by the caller.
  Result<TablePtr> CreateTable(TableDescriptor table);
  // Writes a changed descriptor (version + 1, new ids where zero, a new row format when the living
  // columns changed). A changed name or parent moves the name record.
  Result<TablePtr> UpdateTable(TableDescriptor table);
  // Frees the name, marks the descriptor, keeps the data.
  Status DropTable(TableId id, const DropMark& mark = {});
  // Gives `table`, a copy of a dropped descriptor with what shall be changed of it (name, parent,
  // names of indexes, foreign keys), its life back. 42P07 when a name is taken.
  Result<TablePtr> UndropTable(TableDescriptor table);
  // Changes a dropped one, as UpdateDroppedNamespace.
  Status UpdateDroppedTable(TableDescriptor table);
  // Deletes the descriptor, of a dropped one or of a living one with its names, for ever. The data
  // is the caller's to delete.
  Status RemoveTable(TableId id);
  // Moves the rows of a table into the bin, as a dropped table of their own: the table goes on with
  // none.
  Status TruncateTable(TableId id, const DropMark& mark);
  // A sequence begins anew: its state lies under a new id.
  Status RestartSequence(TableId id);

  // An id from the catalog's one sequence, for oids of constraints. Cost: none per id, one engine
  // write per block.
  Result<uint64_t> AllocateId();

  // State to return to when a savepoint is rolled back: pair with
  // kv::Transaction::Savepoint/RollbackTo.
  size_t Savepoint() const;
  void RollbackTo(size_t savepoint);

  bool changed() const;

 private:
  friend class Catalog;
  struct Impl;
  Status WriteNamespace(const NamespaceDescriptor& old, NamespaceDescriptor space);
  Result<TablePtr> WriteTable(const TableDescriptor* old, TableDescriptor table);
  // The dropped object, demanded to be unchanged at the commit; 55000 once it is being collected.
  Result<TablePtr> RequireDropped(TableId id);
  Result<NamespacePtr> RequireDropped(NamespaceId id);
  Status FillIn(const TableDescriptor* old, TableDescriptor* table);
  // Gives the relation the current definitions of enum types and collations that are new to it.
  Status BindEnums(const TableDescriptor* old, TableDescriptor* table);
  Status FillOid(uint32_t* oid);
  std::unique_ptr<Impl> impl_;
};

// Thread-safe.
class Catalog {
  struct Impl;

 public:
  explicit Catalog(std::unique_ptr<Impl> impl);  // for Open
  // Reads all descriptors; creates the root, and database `cellar` with schema-less `public`, when
  // the store is new. The engine outlives the catalog.
  static Result<std::unique_ptr<Catalog>> Open(kv::Engine* engine);
  ~Catalog();

  SnapshotPtr Current() const;
  // Commits the editor's transaction and makes its changes visible to others. After a
  // failure, or an unknown outcome once it is known, all descriptors are read again. Version and
  // errors as kv::Transaction::Commit's.
  Result<uint64_t> Commit(const CatalogEditor& editor, const kv::CommitOptions& options = {});
  // Makes the changes visible of an editor whose transaction has committed at `commit_version`.
  void Publish(const CatalogEditor& editor, uint64_t commit_version);
  // Reads all descriptors again.
  Status Reload();

  kv::Engine* engine() const;

 private:
  friend class CatalogEditor;
  std::unique_ptr<Impl> impl_;
};

// The catalog as the transaction's snapshot has it, which is taken if it was not yet: for whoever
// reads keys of objects that may be made or dropped at any time. Its reads are not tracked; what
// the transaction itself has changed of the catalog shows. Cost: a scan of all descriptors.
Result<SnapshotPtr> ReadCatalog(kv::Transaction* transaction);

// Makes `transaction`'s commit fail with kConflict when the descriptor has changed since it was
// read, and answers so at once when that is known already: the descriptor is older than the data,
// or newer than the snapshot that the transaction has read from. Call it before the statement's
// reads. Descriptors that the transaction itself has changed pass.
Status RequireCurrent(const TableDescriptor& table, kv::Transaction* transaction);

// Whether the snapshot (of the view) holds data as this descriptor says: it has the descriptor, or
// one that differs in names, owners, grants and comments alone, or is not dropped yet or again.
// For reads that RequireCurrent refuses, which need not be refused for that. Cost: a trip.
Result<bool> DescribesSnapshot(const TableDescriptor& table, kv::Transaction* transaction,
                               const kv::ReadView* view);

// The name of the counter (kv::Transaction::AddToCounter) of a table's rows; made with the table.
std::string CounterNameOf(const TableDescriptor& table);

// Protobuf bytes of a descriptor (docs/formats/catalog.md). Errors: kCorruption.
std::string EncodeTable(const TableDescriptor& table);
Result<TableDescriptor> DecodeTable(std::string_view bytes);
std::string EncodeNamespace(const NamespaceDescriptor& space);
Result<NamespaceDescriptor> DecodeNamespace(std::string_view bytes);

}  // namespace cellar::catalog
