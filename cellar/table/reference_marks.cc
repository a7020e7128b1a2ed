// Marks of unique keys that foreign keys rest on: keys of the engine that nobody ever stores, which
// transactions say that they have read or written.
//
// Who refers to a key reads its first mark and writes its second one; who takes it away writes the
// first and reads the second. So whichever of the two commits later is refused, unless it began
// after the other; and nobody else touches either. The marks lie behind the index's own key, so
// that whatever clears a range of the index counts as a write of both.
#include "cellar/table/access.h"
#include "cellar/table/compiled.h"
#include "cellar/table/key_ranges.h"
#include "cellar/table/reader.h"

namespace cellar::table {
namespace {

constexpr char kExists = 'e', kIsReferred = 'r';

// The keys' entries of the index, each with a mark behind it.
class Marks {
 public:
  static Result<Marks> Of(const TableDescriptor& table, IndexId index, const RowBatch& keys) {
    CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
    const IndexCodec* codec = nullptr;
    for (const IndexCodec& candidate : compiled->indexes()) {
      if (candidate.index->id == index) codec = &candidate;
    }
    if (codec == nullptr || !codec->unique || codec->key_columns.size() != keys.num_columns()) {
      return InternalError("marks of keys of no unique index of table \"{}\"", table.name);
    }
    Marks marks;
    std::vector<Datum> values(keys.num_columns());
    for (size_t row = 0; row < keys.size(); ++row) {
      for (size_t c = 0; c < values.size(); ++c) values[c] = keys.column(c).Get(row);
      std::string fields;
      codec::AppendKeyFields(values, codec->key_columns, &fields);
      marks.keys_.push_back(PrefixesOf(*codec, fields, true)[0]);
    }
    return marks;
  }

  Status Read(kv::Transaction* transaction, char mark) const {
    // At the commit they must be as they are, whatever the isolation.
    const bool before = transaction->HoldReads(true);
    Status status;
    for (const std::string& key : keys_) {
      if (status.ok()) status = transaction->AddReadConflict(key + mark);
    }
    transaction->HoldReads(before);
    return status;
  }
  Status Write(kv::Transaction* transaction, char mark) const {
    for (const std::string& key : keys_) CELLAR_TRY(transaction->AddWriteConflict(key + mark));
    return Status();
  }

 private:
  std::vector<std::string> keys_;
};

}  // namespace

Status HoldReferencedKeys(AccessContext* context, const TableDescriptor& table, IndexId index,
                          const RowBatch& keys) {
  CELLAR_TRY_ASSIGN(const Marks marks, Marks::Of(table, index, keys));
  CELLAR_TRY(marks.Read(context->transaction, kExists));
  return marks.Write(context->transaction, kIsReferred);
}

Status NoteReferencedKeysGone(AccessContext* context, const TableDescriptor& table, IndexId index,
                              const RowBatch& keys) {
  CELLAR_TRY_ASSIGN(const Marks marks, Marks::Of(table, index, keys));
  CELLAR_TRY(marks.Read(context->transaction, kIsReferred));
  return marks.Write(context->transaction, kExists);
}

}  // namespace cellar::table
