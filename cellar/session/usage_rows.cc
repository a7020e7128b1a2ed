#include "cellar/session/usage_rows.h"

#include "cellar/codec/key.h"
#include "cellar/session/zones.h"
#include "cellar/table/usage.h"

namespace cellar::session {
namespace {

class UsageLister {
 public:
  UsageLister(Session::Impl* session, const catalog::CatalogSnapshot& catalog, SystemRow* row)
      : session_(*session), catalog_(catalog), row_(*row) {}

  Status Run() { return ListSpace(*catalog_.GetNamespace(session_.database_id)).status(); }

 private:
  struct Sums {
    table::TableUsage usage;
    int64_t disk = 0, bin_rows = 0, bin_bytes = 0;

    void Add(const Sums& other) {
      usage.rows += other.usage.rows;
      usage.bytes += other.usage.bytes;
      usage.inserted += other.usage.inserted;
      usage.updated += other.usage.updated;
      usage.deleted += other.usage.deleted;
      usage.read += other.usage.read;
      disk += other.disk;
      bin_rows += other.bin_rows;
      bin_bytes += other.bin_bytes;
    }
  };

  void Emit(const std::string& path, const char* kind, uint64_t id, catalog::ObjectState state,
            const Sums& sums, int64_t since, const catalog::ZoneSettings& zone) {
    row_.Text("object", path)
        .Text("kind", kind)
        .Text("state", state == catalog::ObjectState::kPublic    ? "living"
                       : state == catalog::ObjectState::kDropped ? "dropped"
                                                                 : "collecting")
        .Int("id", static_cast<int64_t>(id))
        .Int("rows", sums.usage.rows)
        .Int("bytes", std::max<int64_t>(0, sums.usage.bytes))
        .Int("disk_bytes", sums.disk)
        .Int("inserted", sums.usage.inserted)
        .Int("updated", sums.usage.updated)
        .Int("deleted", sums.usage.deleted)
        .Int("read", sums.usage.read)
        .Int("bin_rows", sums.bin_rows)
        .Int("bin_bytes", sums.bin_bytes);
    if (since != 0) row_.Int("since", since);
    const std::vector<std::string> options = ZoneTexts(zone);
    if (!options.empty()) row_.Array("options", TextValues(options));
    row_.Emit();
  }

  Result<Sums> ListTable(const catalog::TableDescriptor& table) {
    Sums sums;
    const Result<std::optional<table::TableUsage>> usage =
        table::UsageOf(table, session_.transaction->kv.get());
    // One damaged count, which CHECK names, hides no other.
    if (usage.status().code() != Code::kCorruption) CELLAR_TRY(usage.status());
    if (usage.ok() && *usage) sums.usage = **usage;
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table.storage_id()));
    sums.disk = static_cast<int64_t>(session_.db->engine->ApproximateBytes(range.start, range.end));
    Emit(catalog_.PathOf(table), "table", table.id.value, table.state, sums,
         table.counted_since_micros, table.zone);
    if (table.state == catalog::ObjectState::kPublic) return sums;
    Sums in_bin;
    if (table.state == catalog::ObjectState::kDropped) {
      in_bin.bin_rows = sums.usage.rows;
      in_bin.bin_bytes = sums.usage.bytes;
    }
    in_bin.disk = sums.disk;
    return in_bin;
  }

  Result<Sums> ListSpace(const catalog::NamespaceDescriptor& space) {
    Sums sums;
    std::vector<catalog::TablePtr> tables = catalog_.ListTables(space.id);
    for (const catalog::TablePtr& dropped : catalog_.ListDroppedTables()) {
      if (dropped->parent == space.id) tables.push_back(dropped);
    }
    for (const catalog::TablePtr& table : tables) {
      if (table->kind != catalog::RelationKind::kTable) continue;
      CELLAR_TRY_ASSIGN(const Sums own, ListTable(*table));
      sums.Add(own);
    }
    for (const catalog::NamespacePtr& child : catalog_.ListNamespaces(space.id)) {
      CELLAR_TRY_ASSIGN(const Sums below, ListSpace(*child));
      sums.Add(below);
    }
    const bool database = space.id == session_.database_id;
    Emit(catalog_.PathOf(space.id), database ? "database" : "schema", space.id.value, space.state,
         sums, 0, space.zone);
    return sums;
  }

  Session::Impl& session_;
  const catalog::CatalogSnapshot& catalog_;
  SystemRow& row_;
};

}  // namespace

std::vector<Value> TextValues(const std::vector<std::string>& texts) {
  std::vector<Value> values;
  for (const std::string& text : texts) {
    values.emplace_back(MakeType(TypeId::kText), Datum::Bytes(text));
  }
  return values;
}

Status UsageRows(Session::Impl* session, const catalog::CatalogSnapshot& catalog, SystemRow* row) {
  return UsageLister(session, catalog, row).Run();
}

}  // namespace cellar::session
