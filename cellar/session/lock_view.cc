#include "cellar/session/lock_view.h"

#include <cstring>

#include "cellar/codec/key.h"
#include "cellar/session/advisory_locks.h"

namespace cellar::session {
namespace {

constexpr WaitEvent kWaitsForRelation{"Lock", "relation"};
constexpr WaitEvent kWaitsForTuple{"Lock", "tuple"};
constexpr WaitEvent kWaitsForTransaction{"Lock", "transactionid"};
constexpr WaitEvent kWaitsForAdvisory{"Lock", "advisory"};

catalog::TableId TableOfLock(std::string_view name) {
  catalog::TableId table;
  if (name.size() == sizeof table.value) std::memcpy(&table.value, name.data(), name.size());
  return table;
}

}  // namespace

std::string TableLockName(catalog::TableId table) {
  std::string name(sizeof table.value, '\0');
  std::memcpy(name.data(), &table.value, name.size());
  return name;
}

void LockRows(kv::LockTable* locks, std::span<const catalog::TablePtr> relations, uint32_t database,
              SystemRow* row) {
  const auto by_id = [&](catalog::TableId id) -> const catalog::TableDescriptor* {
    for (const catalog::TablePtr& table : relations) {
      if (table->id == id) return table.get();
    }
    return nullptr;
  };
  // The table whose rows have such keys.
  const auto by_key = [&](std::string_view key) -> const catalog::TableDescriptor* {
    for (const catalog::TablePtr& table : relations) {
      if (key.starts_with(codec::TablePrefix(table->storage_id()))) return table.get();
    }
    return nullptr;
  };
  for (const kv::LockInfo& info : locks->List()) {
    const catalog::TableDescriptor* table = nullptr;
    switch (info.kind) {
      case kv::LockKind::kRow:
      case kv::LockKind::kKey:
        table = by_key(info.name);
        if (table == nullptr) continue;
        row->Text("locktype", "tuple").Int("database", database).Int("relation", table->oid());
        break;
      case kv::LockKind::kTable:
        table = by_id(TableOfLock(info.name));
        if (table == nullptr) continue;
        row->Text("locktype", "relation").Int("database", database).Int("relation", table->oid());
        break;
      case kv::LockKind::kAdvisory: {
        const AdvisoryKey key = AdvisoryKey::Of(info.name);
        const auto value = static_cast<uint64_t>(key.value);
        row->Text("locktype", "advisory")
            .Int("database", key.database)
            .Int("classid", static_cast<int64_t>(value >> 32))
            .Int("objid", static_cast<int64_t>(value & 0xFFFFFFFF))
            .Int("objsubid", key.pair ? 2 : 1);
        break;
      }
    }
    if (info.group < kv::kFirstLockGroup) row->Int("pid", static_cast<int64_t>(info.group));
    row->Text("mode", kv::LockModeName(info.mode))
        .Bool("granted", info.granted)
        .Bool("fastpath", false)
        .Emit();
  }
}

std::map<int32_t, const WaitEvent*> LockWaits(kv::LockTable* locks) {
  std::map<int32_t, const WaitEvent*> waits;
  for (const kv::LockInfo& info : locks->List()) {
    if (info.granted || info.group >= kv::kFirstLockGroup) continue;
    const WaitEvent* event = nullptr;
    switch (info.kind) {
      case kv::LockKind::kRow: event = &kWaitsForTuple; break;
      case kv::LockKind::kKey: event = &kWaitsForTransaction; break;
      case kv::LockKind::kTable: event = &kWaitsForRelation; break;
      case kv::LockKind::kAdvisory: event = &kWaitsForAdvisory; break;
    }
    waits[static_cast<int32_t>(info.group)] = event;
  }
  return waits;
}

}  // namespace cellar::session
