// Descriptors: everything Cellar knows of one namespace or relation. In memory they are these plain
// structs, immutable once inside a CatalogSnapshot; on disk they are the protobuf messages of
// proto/descriptor.proto (docs/formats/catalog.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cellar/codec/ids.h"
#include "cellar/codec/key.h"
#include "cellar/types/collation.h"
#include "cellar/types/datum.h"
#include "cellar/types/enum_type.h"
#include "cellar/types/type.h"

namespace cellar::catalog {

using codec::ColumnId;
using codec::IndexId;
using codec::NamespaceId;
using codec::TableId;

inline constexpr uint64_t kUncommitted = UINT64_MAX;

// Recycle state, shared by namespaces and relations. Values are persisted. kDropped: in the bin,
// may come back. kCollecting: its data is being deleted, it cannot.
enum class ObjectState : uint8_t { kPublic = 1, kDropped = 2, kCollecting = 3 };

// Who may read and write an index. Values are persisted.
enum class IndexState : uint8_t { kDeleteOnly = 1, kWriteOnly = 2, kPublic = 3, kDropping = 4 };

// Values are persisted. A type is an object of its namespace like a relation, and shares the
// relations' names, but is none: FindTable and the lists of tables leave it out.
enum class RelationKind : uint8_t {
  kTable = 1,
  kView = 2,
  kSequence = 3,
  kType = 4,
  kCollation = 5
};
// How rows lie in the store. Values are persisted. kRow: one key a row. kPages: new and changed
// rows as in kRow, all others in pages that hold their columns side by side (docs/formats/page.md).
// kCell: one key a row and column. kDatum: the same with the column first, so that one column lies
// together.
enum class Layout : uint8_t { kRow = 1, kPages = 2, kCell = 3, kDatum = 4 };
enum class Identity : uint8_t { kNone = 0, kAlways = 1, kByDefault = 2 };
enum class ForeignKeyAction : uint8_t {
  kNoAction = 1,
  kRestrict = 2,
  kCascade = 3,
  kSetNull = 4,
  kSetDefault = 5
};

// What `grantor` lets `grantee` do; roles by oid, 0 is PUBLIC. Privileges are bits.
struct AclItem {
  uint32_t grantee = 0;
  uint32_t grantor = 0;
  uint32_t privileges = 0;
  uint32_t grant_options = 0;  // of `privileges`: those that the grantee may pass on
  bool operator==(const AclItem&) const = default;
};
// An access control list. Unset: nothing was ever granted or revoked, the owner's defaults hold.
struct Acl {
  bool set = false;
  std::vector<AclItem> items;
  bool operator==(const Acl&) const = default;
};
// ALTER DEFAULT PRIVILEGES: what new objects of `role` get.
struct DefaultAcl {
  uint32_t role = 0;
  char object_type = 'r';  // as pg_default_acl.defaclobjtype
  Acl acl;
  bool operator==(const DefaultAcl&) const = default;
};

// Settings that a namespace hands down to what it holds; what is unset comes from the parent.
struct ZoneSettings {
  std::optional<int64_t> retention_micros;  // of what is dropped
  std::optional<int64_t> row_quota, byte_quota;
  std::optional<int64_t> read_rate, write_rate;  // rows a second
  std::optional<int32_t> priority;
  std::string placement;  // a hint for engines that place data; empty: unset
  bool operator==(const ZoneSettings&) const = default;
};

struct ColumnDescriptor {
  ColumnId id;
  std::string name;
  Type type;
  bool not_null = false;
  bool hidden = false;      // the row id of a table without a primary key
  bool dropped = false;     // its bytes stay in old rows; its attnum stays taken
  std::string default_sql;  // empty: none. Text of the expression ("nextval('t_id_seq'::regclass)")
  std::string generated_sql;  // GENERATED ALWAYS AS (...) STORED
  Identity identity = Identity::kNone;
  // What rows written before this column existed answer; frozen when it was added.
  std::optional<Value> initial_value;
  TableId sequence;  // owned by this column (serial, identity); zero: none
  Acl acl;
  std::string comment;
};

struct IndexColumn {
  ColumnId column;                       // zero when `expression` is set
  std::string expression;                // SQL text
  const Collation* collation = nullptr;  // null: the column's; ByBytes(): none
  std::string opclass;                   // empty: the type's default
  codec::Direction direction = codec::Direction::kAscending;
  codec::NullPlacement nulls = codec::NullPlacement::kLast;
};

struct IndexDescriptor {
  IndexId id;        // local to the table, never reused; a primary index owns id..id+3
  uint32_t oid = 0;  // pg_class oid of the index
  std::string name;
  bool primary = false;
  bool unique = false;      // true for a primary index
  bool constraint = false;  // made by PRIMARY KEY or UNIQUE rather than CREATE UNIQUE INDEX
  bool nulls_not_distinct = false;
  IndexState state = IndexState::kPublic;
  std::vector<IndexColumn> key;
  std::vector<ColumnId> stored;  // INCLUDE
  std::string predicate;         // SQL text; empty: every row has an entry
  uint32_t shards = 0;           // over which keys are spread by a hash; 0: not
  uint64_t job = 0;              // that builds or drops it; 0: none
  bool deferrable = false;       // of a constraint: keys may be there twice within a statement
  std::string comment;
  std::string constraint_comment;  // COMMENT ON CONSTRAINT
};

struct CheckConstraint {
  std::string name;
  std::string expression;  // SQL text over column names
  uint32_t oid = 0;
  bool validated = true;  // false: rows that are older than the constraint may break it
  std::string comment;
};

struct ForeignKey {
  std::string name;
  uint32_t oid = 0;
  std::vector<ColumnId> columns;
  TableId referenced_table;
  std::vector<ColumnId> referenced_columns;
  ForeignKeyAction on_delete = ForeignKeyAction::kNoAction;
  ForeignKeyAction on_update = ForeignKeyAction::kNoAction;
  // Of `columns`, those that ON DELETE SET NULL and SET DEFAULT set; empty: all.
  std::vector<ColumnId> on_delete_columns;
  bool deferrable = false;
  bool initially_deferred = false;
  bool validated = true;  // as in CheckConstraint
  std::string comment;
};

// A foreign key that DROP .. CASCADE took from a table that lives on.
struct LostForeignKey {
  TableId table;
  ForeignKey key;
};

// Columns whose values lie under one key of a row. Those in no group are in group 0.
struct ColumnGroup {
  uint32_t id = 0;  // local to the table, never reused
  std::string name;
  std::vector<ColumnId> columns;
};

// Which columns, in which order, the rows of one row-format id hold (codec::RowFormat).
struct RowFormatDescriptor {
  uint32_t id = 0;
  std::vector<ColumnId>
      columns;              // all columns but dropped ones when it was made, key columns included
  std::vector<Type> types;  // of the columns as those rows hold them: INT stays readable as BIGINT
};

// What an upper layer derives from one immutable descriptor and wants to keep as long as it lives,
// such as compiled codecs. Copies of a descriptor start with an empty slot, so an edited copy never
// meets what was derived from its original. Thread-safe once the descriptor is shared.
class DerivedSlot {
 public:
  DerivedSlot() = default;
  DerivedSlot(const DerivedSlot&) {}
  DerivedSlot& operator=(const DerivedSlot&) {
    pointer_.store(nullptr);
    owner_.reset();
    return *this;
  }

  // Null until set.
  const void* Get() const { return pointer_.load(std::memory_order_acquire); }
  // Keeps `made` unless another thread was first; returns what is kept.
  const void* SetOnce(std::shared_ptr<const void> made) const {
    std::lock_guard lock(mutex_);
    if (owner_ == nullptr) {
      owner_ = std::move(made);
      pointer_.store(owner_.get(), std::memory_order_release);
    }
    return owner_.get();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const void> owner_;
  mutable std::atomic<const void*> pointer_{nullptr};
};

struct SequenceOptions {
  Type type;
  int64_t start = 1, increment = 1, min = 1, max = INT64_MAX, cache = 1;
  bool cycle = false;
  TableId owner_table;  // zero: none
  ColumnId owner_column;
};

// A table, view, sequence, type or collation.
struct TableDescriptor {
  TableId id;
  NamespaceId parent;
  std::string name;
  uint64_t version = 0;  // grows by one with each change
  ObjectState state = ObjectState::kPublic;
  int64_t dropped_at_micros = 0;
  int64_t dropped_at_ticks = 0;  // of the store's own clock, which only grows while it is open
  uint64_t drop_group = 0;       // shared by all that one statement dropped
  bool truncated = false;        // the rows that a TRUNCATE took; the table itself lives on
  std::optional<int64_t> keep_micros;     // how long it stays in the bin; unset: the built-in time
  std::string dropped_by;                 // a role
  std::vector<LostForeignKey> lost_keys;  // that referenced it; they come back with it
  RelationKind kind = RelationKind::kTable;
  Layout layout = Layout::kRow;
  std::vector<ColumnDescriptor> columns;  // by ordinal; dropped ones keep their place
  std::vector<IndexDescriptor> indexes;   // the primary index first
  std::vector<CheckConstraint> checks;
  std::vector<ForeignKey> foreign_keys;
  std::vector<RowFormatDescriptor> row_formats;  // the last is the one written
  std::vector<ColumnGroup> groups;
  uint32_t next_column_id = 1, next_index_id = 0, next_row_format_id = 1, next_group_id = 1;
  TableId storage;   // see storage_id()
  uint64_t job = 0;  // that changes it; 0: none
  std::string view_sql;
  SequenceOptions sequence;
  const EnumType* enumeration = nullptr;  // of a type: itself
  const Collation* collation = nullptr;   // of a collation: itself
  bool temporary = false;
  int64_t counted_since_micros = 0;  // when the table was made; 0: unknown
  std::string owner;
  Acl acl;
  ZoneSettings zone;
  std::string comment;
  // Not persisted: the engine version at which this descriptor was committed
  // (kv::Transaction::Require); kUncommitted in the transaction that changes it.
  uint64_t commit_version = 0;
  DerivedSlot derived;  // not persisted

  uint32_t oid() const { return static_cast<uint32_t>(id.value) + kFirstOid; }
  static constexpr uint32_t kFirstOid = 16384;
  // The table id in the keys of its rows and entries: its own, unless its rows were replaced at
  // once. No two relations have the same.
  TableId storage_id() const { return storage.value == 0 ? id : storage; }

  const ColumnDescriptor* FindColumn(std::string_view column_name) const;  // living ones only
  const ColumnDescriptor* FindColumn(ColumnId column) const;
  // Position in `columns`, or -1.
  int OrdinalOf(ColumnId column) const;
  const IndexDescriptor& primary() const { return indexes.front(); }
  const IndexDescriptor* FindIndex(std::string_view index_name) const;
  const IndexDescriptor* FindIndex(IndexId index) const;
  // The key columns of an index as the codec wants them: its own key, then for a non-unique index
  // the primary key's columns that it does not hold itself.
  std::vector<codec::KeyColumn> KeyColumnsOf(const IndexDescriptor& index) const;
};

struct NamespaceDescriptor {
  NamespaceId id;
  NamespaceId parent;
  std::string name;
  uint64_t version = 0;
  ObjectState state = ObjectState::kPublic;
  int64_t dropped_at_micros = 0;
  int64_t dropped_at_ticks = 0;  // as in TableDescriptor
  uint64_t drop_group = 0;
  std::optional<int64_t> keep_micros;  // as in TableDescriptor
  std::string dropped_by;
  std::string owner;
  Acl acl;
  std::vector<DefaultAcl> default_acls;
  ZoneSettings zone;
  std::string comment;
  uint64_t commit_version = 0;  // not persisted

  uint32_t oid() const { return static_cast<uint32_t>(id.value) + TableDescriptor::kFirstOid; }
};

inline constexpr NamespaceId kRootNamespace{1};

// An index column compares by bytes, whatever its column's collation is. Interned.
const Collation* ByBytes();

// The collations of the relation's columns, row formats and indexes, each once, by oid.
std::vector<const Collation*> CollationsOf(const TableDescriptor& table);
// Has a living column, or an index, this collation?
bool HasCollation(const TableDescriptor& table, uint32_t collation_oid);
// Gives the relation another version of a collation, wherever it has it.
void ReplaceCollation(const Collation* version, TableDescriptor* table);

// The enum types of the relation's columns and row formats, each once, by oid.
std::vector<const EnumType*> EnumsOf(const TableDescriptor& table);
// Does a living column have the enum type of this oid, or an array of it?
bool HasEnumColumn(const TableDescriptor& table, uint32_t type_oid);
// Puts this version of an enum type in the place of any other version that the relation has.
void ReplaceEnum(const EnumType* version, TableDescriptor* table);

}  // namespace cellar::catalog
