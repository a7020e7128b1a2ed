// Row, byte and rate quotas of tables and namespaces. Private to this layer.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "cellar/catalog/catalog.h"
#include "cellar/table/access.h"

namespace cellar::session {

// Thread-safe; one for a database. A table stands under its own quotas and under those of every
// namespace above it, which count all its tables together.
class Quotas : public table::UsageLimits {
 public:
  explicit Quotas(const catalog::Catalog* catalog) : catalog_(catalog) {}

  // This, or null as long as nothing at all has a quota. Cost: that of a look at the catalog's
  // generation; after a change of the schema, a walk over all of it.
  table::UsageLimits* Active();

  // 53400 when an object's rate is used up: more was read or written than it allows for the time
  // that has passed. What a transaction has begun it may finish; what it does is charged.
  Status AdmitRead(const catalog::TableDescriptor& table) override;
  Status AdmitWrite(const catalog::TableDescriptor& table) override;
  void ChargeRead(const catalog::TableDescriptor& table, uint64_t rows) override;
  void ChargeWrite(const catalog::TableDescriptor& table, uint64_t rows) override;
  // 53400 when the rows or bytes that the transaction sees, with its own, are above a quota. Others
  // that have not committed are not seen, so that several at once may go beyond it together.
  Status CheckSize(const catalog::TableDescriptor& table, kv::Transaction* transaction) override;

 private:
  using Clock = std::chrono::steady_clock;
  // What stands above a table, itself first.
  struct Holder {
    uint64_t id;
    bool is_table;
    std::string name;
    catalog::ZoneSettings zone;
  };
  // A bucket that fills with `rate` rows a second, up to one second's worth, and may be overdrawn.
  struct Bucket {
    double rows = 0;
    Clock::time_point filled;
  };
  enum class Kind : uint8_t { kRead, kWrite };

  std::vector<Holder> HoldersOf(const catalog::TableDescriptor& table) const;
  Status Admit(const catalog::TableDescriptor& table, Kind kind);
  void Charge(const catalog::TableDescriptor& table, Kind kind, uint64_t rows);
  Bucket& Fill(const Holder& holder, Kind kind, double rate);

  const catalog::Catalog* const catalog_;
  std::mutex mutex_;
  uint64_t generation_ = UINT64_MAX;
  bool any_ = false;
  std::map<std::pair<uint64_t, Kind>, Bucket> buckets_;
};

}  // namespace cellar::session
