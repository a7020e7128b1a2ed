#include "cellar/session/quotas.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/table/usage.h"

namespace cellar::session {
namespace {

bool Limits(const catalog::ZoneSettings& zone) {
  return zone.row_quota || zone.byte_quota || zone.read_rate || zone.write_rate;
}

// All namespaces and tables under `space`, it included.
bool AnyLimits(const catalog::CatalogSnapshot& catalog, const catalog::NamespaceDescriptor& space) {
  if (Limits(space.zone)) return true;
  for (const catalog::TablePtr& table : catalog.ListTables(space.id)) {
    if (Limits(table->zone)) return true;
  }
  for (const catalog::NamespacePtr& child : catalog.ListNamespaces(space.id)) {
    if (AnyLimits(catalog, *child)) return true;
  }
  return false;
}

// The rows and bytes of all tables under a namespace; `own` is among them, if it is new.
Result<table::TableUsage> SumOf(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId space,
                                kv::Transaction* transaction) {
  table::TableUsage sum;
  for (const catalog::TablePtr& table : catalog.ListTables(space)) {
    if (table->kind != catalog::RelationKind::kTable) continue;
    CELLAR_TRY_ASSIGN(const std::optional<table::TableUsage> usage,
                      table::UsageOf(*table, transaction));
    if (!usage) continue;
    sum.rows += usage->rows;
    sum.bytes += usage->bytes;
  }
  for (const catalog::NamespacePtr& child : catalog.ListNamespaces(space)) {
    CELLAR_TRY_ASSIGN(const table::TableUsage below, SumOf(catalog, child->id, transaction));
    sum.rows += below.rows;
    sum.bytes += below.bytes;
  }
  return sum;
}

Status Exceeded(const char* what, int64_t quota, const char* unit, std::string_view kind,
                std::string_view name, const char* hint) {
  return SqlError(Code::kLimit, sqlstate::kConfigurationLimitExceeded,
                  "{} quota of {} \"{}\" exceeded", what, kind, name)
      .WithDetail(fmt::format("It allows {} {}.", quota, unit))
      .WithHint(hint);
}

std::string_view KindOf(bool is_table) { return is_table ? "table" : "namespace"; }

}  // namespace

table::UsageLimits* Quotas::Active() {
  const catalog::SnapshotPtr catalog = catalog_->Current();
  std::lock_guard lock(mutex_);
  if (generation_ != catalog->generation()) {
    generation_ = catalog->generation();
    any_ = AnyLimits(*catalog, *catalog->GetNamespace(catalog::kRootNamespace));
    if (!any_) buckets_.clear();
  }
  return any_ ? this : nullptr;
}

std::vector<Quotas::Holder> Quotas::HoldersOf(const catalog::TableDescriptor& table) const {
  std::vector<Holder> holders;
  if (Limits(table.zone)) holders.push_back({table.id.value, true, table.name, table.zone});
  const catalog::SnapshotPtr catalog = catalog_->Current();
  catalog::NamespacePtr space = catalog->GetNamespace(table.parent);
  while (space != nullptr) {
    if (Limits(space->zone)) holders.push_back({space->id.value, false, space->name, space->zone});
    if (space->id == catalog::kRootNamespace) break;
    space = catalog->GetNamespace(space->parent);
  }
  return holders;
}

Quotas::Bucket& Quotas::Fill(const Holder& holder, Kind kind, double rate) {
  const Clock::time_point now = Clock::now();
  const auto [at, made] = buckets_.try_emplace({holder.id, kind});
  Bucket& bucket = at->second;
  if (made) {
    bucket.rows = rate;
  } else {
    const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
    bucket.rows = std::min(rate, bucket.rows + rate * seconds);
  }
  bucket.filled = now;
  return bucket;
}

Status Quotas::Admit(const catalog::TableDescriptor& table, Kind kind) {
  for (const Holder& holder : HoldersOf(table)) {
    const std::optional<int64_t>& rate =
        kind == Kind::kRead ? holder.zone.read_rate : holder.zone.write_rate;
    if (!rate) continue;
    std::lock_guard lock(mutex_);
    if (Fill(holder, kind, static_cast<double>(*rate)).rows > 0) continue;
    return Exceeded(kind == Kind::kRead ? "read rate" : "write rate", *rate, "rows a second",
                    KindOf(holder.is_table), holder.name,
                    "Wait a little and try again, or have the quota raised.");
  }
  return Status();
}

void Quotas::Charge(const catalog::TableDescriptor& table, Kind kind, uint64_t rows) {
  for (const Holder& holder : HoldersOf(table)) {
    const std::optional<int64_t>& rate =
        kind == Kind::kRead ? holder.zone.read_rate : holder.zone.write_rate;
    if (!rate) continue;
    std::lock_guard lock(mutex_);
    Fill(holder, kind, static_cast<double>(*rate)).rows -= static_cast<double>(rows);
  }
}

Status Quotas::AdmitRead(const catalog::TableDescriptor& table) {
  return Admit(table, Kind::kRead);
}
Status Quotas::AdmitWrite(const catalog::TableDescriptor& table) {
  return Admit(table, Kind::kWrite);
}
void Quotas::ChargeRead(const catalog::TableDescriptor& table, uint64_t rows) {
  Charge(table, Kind::kRead, rows);
}
void Quotas::ChargeWrite(const catalog::TableDescriptor& table, uint64_t rows) {
  Charge(table, Kind::kWrite, rows);
}

Status Quotas::CheckSize(const catalog::TableDescriptor& table, kv::Transaction* transaction) {
  const catalog::SnapshotPtr catalog = catalog_->Current();
  for (const Holder& holder : HoldersOf(table)) {
    if (!holder.zone.row_quota && !holder.zone.byte_quota) continue;
    table::TableUsage usage;
    if (!holder.is_table) {
      CELLAR_TRY_ASSIGN(usage, SumOf(*catalog, catalog::NamespaceId{holder.id}, transaction));
    }
    // A table that this transaction has made is in no namespace yet.
    if (holder.is_table || catalog->GetTable(table.id) == nullptr) {
      CELLAR_TRY_ASSIGN(const std::optional<table::TableUsage> own,
                        table::UsageOf(table, transaction));
      usage.rows += own ? own->rows : 0;
      usage.bytes += own ? own->bytes : 0;
    }
    constexpr const char* kHint = "Delete rows, or have the quota raised.";
    if (holder.zone.row_quota && usage.rows > *holder.zone.row_quota) {
      return Exceeded("row", *holder.zone.row_quota, "rows", KindOf(holder.is_table), holder.name,
                      kHint);
    }
    if (holder.zone.byte_quota && usage.bytes > *holder.zone.byte_quota) {
      return Exceeded("byte", *holder.zone.byte_quota, "bytes of values", KindOf(holder.is_table),
                      holder.name, kHint);
    }
  }
  return Status();
}

}  // namespace cellar::session
