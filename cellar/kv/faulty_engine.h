// An engine for tests that fails on demand: conflicts, commits with unknown outcome, reads that
// find the store unavailable. Everything else is passed on to the engine it wraps.
#pragma once

#include <functional>
#include <memory>

#include "cellar/kv/backup.h"
#include "cellar/kv/engine.h"

namespace cellar::kv {

enum class FaultPoint : uint8_t {
  kRead,   // before a Get, MultiGet or NextBlock
  kWrite,  // before a Put, PutIfAbsent, Delete or DeleteRange
  kLock,
  kCommit,
};

enum class Fault : uint8_t {
  kNone,
  kConflict,        // 40001; a commit is aborted
  kUnavailable,     // 58030; a commit is aborted
  kUnknownApplied,  // 40003, of a commit that took effect
  kUnknownLost,     // 40003, of a commit that did not
};

// Asked at every point; called by the threads of the transactions, so it must be thread-safe.
using FaultHook = std::function<Fault(FaultPoint)>;

// `engine` is owned; use inner() of the result to look behind the faults.
class FaultyEngine : public Engine {
 public:
  FaultyEngine(std::unique_ptr<Engine> engine, FaultHook hook)
      : engine_(std::move(engine)), hook_(std::move(hook)) {}

  Engine& inner() { return *engine_; }

  std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) override;
  Limits limits() const override;
  uint64_t latest_version() const override { return engine_->latest_version(); }
  uint64_t ApproximateBytes(std::string_view start, std::string_view end) override {
    return engine_->ApproximateBytes(start, end);
  }
  std::vector<std::string> SplitPoints(std::string_view start, std::string_view end,
                                       size_t parts) override {
    return engine_->SplitPoints(start, end, parts);
  }
  Status Compact(std::string_view start, std::string_view end) override {
    return engine_->Compact(start, end);
  }
  Status Sync() override { return engine_->Sync(); }
  EngineStats stats() const override { return engine_->stats(); }
  LockTable& locks() override { return engine_->locks(); }
  Result<BackupInfo> Backup(const BackupOptions& options) override {
    return engine_->Backup(options);
  }
  Status Close() override { return engine_->Close(); }

 private:
  const std::unique_ptr<Engine> engine_;
  const FaultHook hook_;
};

}  // namespace cellar::kv
