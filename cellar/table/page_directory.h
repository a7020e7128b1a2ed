// Where the pages of one table begin, as far as this process has seen. Private to the layer.
//
// A hint only: pages come and go with commits, and every transaction sees those of its snapshot.
// Whoever follows the hint proves it by the page itself: it must be there, and its fence above the
// key looked for. Only `kNone` is relied on, see state().
//
// Pages themselves may be kept with it, and these are relied on: a page that is here is what every
// snapshot from its `since` on sees under its key. Whoever writes pages, by lease or by barrier,
// says so before its commit (Announce, Barrier), which takes the pages of that range out and lets
// none in until it is over; who read one before that may not bring it in later, as its snapshot is
// older than written_version().
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

class CachedPage;
class PageCache;

// Thread-safe. Lives in a shared_ptr.
class PageDirectory : public std::enable_shared_from_this<PageDirectory> {
 public:
  // Without a cache no pages are kept.
  explicit PageDirectory(std::shared_ptr<PageCache> cache = nullptr) : cache_(std::move(cache)) {}

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

  // The greatest known boundary that is not above `ref`; false when none is known. *page is the
  // page that begins there as this snapshot sees it, if it is kept; else null.
  bool Find(std::string_view ref, uint64_t snapshot, std::string* boundary,
            std::shared_ptr<const CachedPage>* page) const;
  bool Find(std::string_view ref, std::string* boundary) const;
  // The page that begins at exactly this boundary, as this snapshot sees it; null: not kept.
  std::shared_ptr<const CachedPage> PageAt(std::string_view boundary, uint64_t snapshot) const;
  // Is a boundary above this one known? A hint.
  bool KnowsBehind(std::string_view boundary) const;
  // Notes that a page begins here, or that none does any more.
  void Learn(std::string_view boundary);
  void Forget(std::string_view boundary);

  // Keeps a page that was read at this snapshot, if that is allowed. Learns the boundary.
  void Keep(std::string_view boundary, uint64_t snapshot, std::shared_ptr<CachedPage> page);
  // Takes out this page, if it is the one that is kept there.
  void Drop(std::string_view boundary, const CachedPage* page);
  const std::shared_ptr<PageCache>& cache() const { return cache_; }
  // Pages that begin in [begin, end) are about to be written or deleted under the lease; an empty
  // end: all from begin on. Before the commit, and again if the range grows. Forgotten with the
  // lease.
  void Announce(std::string_view begin, std::string_view end);
  // The same for all pages and without the lease, until EndBarrier with a version as EndLease's.
  void BeginBarrier();
  void EndBarrier(uint64_t version);

  // Rows written to the delta since it was last sealed, roughly: counted when their transaction has
  // ended, since sealing sees nothing of them before.
  std::atomic<uint64_t> changes{0};
  // As many as there were when the sealing that goes on began.
  std::atomic<uint64_t> changes_to_seal{0};
  // Sealed since the engine was last asked to drop the deleted rows.
  std::atomic<uint64_t> dead_rows{0};
  // The last attempt to seal met writers.
  std::atomic<bool> contended{false};

 private:
  struct Entry {
    std::string boundary;
    std::shared_ptr<CachedPage> page;
  };
  struct Range {
    std::string begin, end;
    bool Holds(std::string_view boundary) const {
      return boundary >= begin && (end.empty() || boundary < end);
    }
  };
  // So many ranges are kept apart; then one takes in all.
  static constexpr size_t kMaxAnnounced = 64;
  // Few enough that inserting into one is cheap, many enough that the list of them is short.
  static constexpr size_t kChunkEntries = 512;
  struct Chunk {
    std::vector<uint64_t> heads;  // of the boundaries: a search touches few lines
    std::vector<Entry> entries;   // as many
  };

  // The first eight bytes, big-endian: decides most comparisons.
  static uint64_t HeadOf(std::string_view bytes);
  // How many entries are not above.
  static size_t UpperBound(const Chunk& chunk, uint64_t head, std::string_view ref);
  // The chunk that holds, or would hold, the greatest entry not above; chunks_ is not empty.
  size_t ChunkOf(uint64_t head, std::string_view ref) const;
  // The greatest entry not above `ref`, or null. The mutex is held.
  const Entry* EntryFor(std::string_view ref) const;
  Entry* EntryAt(std::string_view boundary);
  Entry* LearnEntry(std::string_view boundary);
  using Pages = std::vector<std::shared_ptr<CachedPage>>;
  void TakeOut(const Range& range, Pages* out);
  void RaiseWritten(uint64_t version);

  std::atomic<State> state_{State::kUnknown};
  std::atomic<uint64_t> none_since_{UINT64_MAX};
  std::atomic<bool> leased_{false};
  std::atomic<uint64_t> written_version_{0};
  mutable std::shared_mutex entries_mutex_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // none empty
  const std::shared_ptr<PageCache> cache_;
  // Under the mutex too.
  std::vector<Range> announced_;
  int barriers_ = 0;
};

// Pages of a table are being deleted by somebody who has no lease; until its commit is over.
class PageBarrier {
 public:
  PageBarrier() = default;
  PageBarrier(std::shared_ptr<PageDirectory> held, kv::Engine* engine)
      : held_(std::move(held)), engine_(engine) {
    held_->BeginBarrier();
  }
  PageBarrier(PageBarrier&& other) noexcept = default;
  PageBarrier& operator=(PageBarrier&& other) = delete;
  ~PageBarrier() {
    if (held_ != nullptr) held_->EndBarrier(engine_->latest_version());
  }
  const PageDirectory* directory() const { return held_.get(); }

 private:
  std::shared_ptr<PageDirectory> held_;
  kv::Engine* engine_ = nullptr;
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
