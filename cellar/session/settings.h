// A session's settings: what SET, SHOW and start-up parameters know (PostgreSQL manual, chapter
// 20).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/types/datetime.h"
#include "cellar/types/text_io.h"

namespace cellar::session {

// The layout of tables that name none, where neither the store's options nor default_table_layout
// say another: "row" or "pages".
inline constexpr const char* kBuiltInTableLayout = "pages";

struct SettingInfo {
  std::string name, value, description, kind, unit, reset_value;
};

// One thread at a time.
class Settings {
 public:
  Settings();

  // Names are case-insensitive. Errors: 42704 for an unknown one without a dot, 22023 for a bad
  // value, 55P02 for one that cannot be changed. `local`: until the transaction ends.
  Status Set(std::string_view name, std::string_view value, bool local);
  Status Reset(std::string_view name);
  void ResetAll();
  // Makes the current value the one that RESET goes back to (start-up parameters).
  Status SetDefault(std::string_view name, std::string_view value);
  std::optional<std::string> Get(std::string_view name) const;
  // The spelling that SHOW uses for the column name ("TimeZone").
  std::string CanonicalName(std::string_view name) const;
  bool IsReported(std::string_view name) const;
  std::vector<SettingInfo> All() const;  // by name
  std::vector<std::string> ReportedNames() const;

  // Rollback undoes SET; both ends undo SET LOCAL.
  void BeginTransaction();
  void EndTransaction(bool committed);
  size_t Savepoint();
  void RollbackTo(size_t savepoint);
  // Names whose value changed since the last call.
  std::vector<std::string> TakeChanges();
  // Grows with every change: what depends on settings may compare it.
  uint64_t generation() const { return generation_; }

  // Parsed forms, kept up to date.
  const FormatSettings& format() const { return format_; }
  FormatSettings* mutable_format() { return &format_; }
  bool GetBool(std::string_view name) const;
  int64_t GetInt(std::string_view name) const;  // in the setting's unit
  std::vector<std::string> GetList(std::string_view name) const;

  // What every statement asks, read from the values once per change.
  struct Hot {
    int64_t statement_timeout_ms = 0, lock_timeout_ms = 0, deadlock_timeout_ms = 0;
    std::string isolation;                       // transaction_isolation
    bool read_only = false;                      // transaction_read_only
    bool durable = true;                         // synchronous_commit is not off
    bool seal_off = false, seal_always = false;  // cellar.seal
    int64_t seal_rate_kb = 0;                    // cellar.seal_rate
    size_t work_mem_bytes = 0;                   // of one sort, hash table or buffer
    // A new transaction's modes are in place already.
    bool has_default_modes = false;
  };
  const Hot& hot() {
    if (hot_generation_ != generation_) ReadHot();
    return hot_;
  }
  // transaction_isolation and transaction_read_only as a new transaction finds them.
  Status SetDefaultModes();

 private:
  using Values = std::map<std::string, std::string>;
  Status Assign(const std::string& key, std::string value);
  // Before so much more is kept. Errors: 54000.
  Status Hold(size_t bytes);
  void Changed(const std::string& key);
  void Refresh(const std::string& key);
  void ReadHot();

  Values values_, defaults_;
  struct Undo {
    std::string key;
    std::string old_value;
    bool local;
  };
  std::vector<Undo> undo_;
  size_t held_bytes_ = 0;  // at least what all of the above hold
  bool in_transaction_ = false;
  std::vector<std::string> changes_;
  uint64_t generation_ = 1;
  Hot hot_;
  uint64_t hot_generation_ = 0;
  FormatSettings format_;
  std::shared_ptr<const TimeZone> time_zone_;
};

}  // namespace cellar::session
