// Where the pages of one table begin, as far as this process has seen. Private to the layer.
//
// A hint only: pages come and go with commits, and every transaction sees those of its snapshot.
// Whoever follows the hint proves it by the page itself: it must be there, and its fence above the
// key looked for. Only `kNone` is relied on, see state().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/codec/ids.h"
#include "cellar/kv/engine.h"

namespace cellar::table {

// Thread-safe.
class PageDirectory {
 public:
  enum class State : uint8_t { kUnknown, kNone, kSome };

  State state() const { return state_.load(std::memory_order_acquire); }
  // Of kNone: snapshots from this version on, taken before the state was read, hold no pages: until
  // then no commit that writes pages had begun.
  uint64_t none_since() const { return none_since_.load(std::memory_order_acquire); }
  // Call before pages are written, holding the lease.
  void ExpectPages() { state_.store(State::kSome, std::memory_order_release); }
  // Turns kUnknown into what the store says about pages with this key prefix.
  Status Resolve(kv::Engine* engine, std::string_view page_prefix);

  // The right to write pages, one holder at a time, until its commit is over. Any thread may let
  // go.
  bool TryLease();
  // `version`: no page was written by a later commit.
  void EndLease(uint64_t version);
  // Whoever holds the lease reads pages from a snapshot that is not older than this.
  uint64_t written_version() const { return written_version_.load(std::memory_order_acquire); }

  // The greatest known boundary that is not above `ref`; false when none is known.
  bool Find(std::string_view ref, std::string* boundary) const;
  // Notes that a page begins here, or that none does any more.
  void Learn(std::string_view boundary);
  void Forget(std::string_view boundary);

  // Rows written to the delta since it was last sealed, roughly.
  std::atomic<uint64_t> changes{0};
  // Sealed since the engine was last asked to drop the deleted rows.
  std::atomic<uint64_t> dead_rows{0};
  // The last attempt to seal met writers.
  std::atomic<bool> contended{false};

 private:
  struct Entry {
    uint64_t head;  // the first eight bytes, big-endian: decides most comparisons
    std::string boundary;
  };
  // Few enough that inserting into one is cheap, many enough that the list of them is short.
  static constexpr size_t kChunkEntries = 512;
  using Chunk = std::vector<Entry>;

  static uint64_t HeadOf(std::string_view bytes);
  static bool Less(uint64_t head, std::string_view bytes, const Entry& entry);
  // The chunk that holds, or would hold, the greatest entry not above; chunks_ is not empty.
  size_t ChunkOf(uint64_t head, std::string_view ref) const;

  std::atomic<State> state_{State::kUnknown};
  std::atomic<uint64_t> none_since_{UINT64_MAX};
  std::atomic<bool> leased_{false};
  std::atomic<uint64_t> written_version_{0};
  mutable std::shared_mutex entries_mutex_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // none empty
};

// Holds the lease of a directory as long as it lives, which is until the commit is over.
class PageLease {
 public:
  PageLease() = default;
  PageLease(std::shared_ptr<PageDirectory> held, kv::Engine* engine)
      : held_(std::move(held)), engine_(engine) {}
  PageLease(PageLease&& other) noexcept = default;
  PageLease& operator=(PageLease&& other) noexcept {
    End();
    held_ = std::move(other.held_);
    engine_ = other.engine_;
    return *this;
  }
  ~PageLease() { End(); }

 private:
  void End() {
    if (held_ != nullptr) held_->EndLease(engine_->latest_version());
    held_.reset();
  }

  std::shared_ptr<PageDirectory> held_;
  kv::Engine* engine_ = nullptr;
};

}  // namespace cellar::table
