// Pages of all tables of one store that are kept at hand: pinned where the engine has them, header
// and chunks parsed. Private to the layer.
//
// Which pages are right for which snapshot is the directory's business (page_directory.h); this is
// their memory and its bound.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/codec/page.h"
#include "cellar/kv/block.h"

namespace cellar::table {

class CompiledTable;
class PageCache;
class PageDirectory;

// Immutable once it is in a directory; shared by readers.
class CachedPage {
 public:
  // Takes over the bytes. Chunks that are broken are left for those who read them. Cost: some 30 ns
  // a column.
  static std::shared_ptr<CachedPage> Make(const CompiledTable& table, kv::PinnedValue pin,
                                          const codec::PageView& view,
                                          std::shared_ptr<PageCache> cache);
  ~CachedPage();
  CachedPage(const CachedPage&) = delete;
  CachedPage& operator=(const CachedPage&) = delete;

  const codec::PageView& view() const { return view_; }
  // What it counts for in the cache.
  size_t bytes() const { return bytes_; }
  // Snapshots from this version on see the page, as long as the directory has it.
  uint64_t since() const { return since_; }
  void NoteUse() const {
    if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
  }

 private:
  friend class PageCache;
  friend class PageDirectory;
  CachedPage() = default;

  kv::PinnedValue pin_;
  std::vector<codec::Chunk> chunks_;
  codec::PageView view_;
  size_t bytes_ = 0;
  uint64_t since_ = 0;
  std::string boundary_;
  std::weak_ptr<PageDirectory> owner_;
  std::shared_ptr<PageCache> cache_;  // counted there
  mutable std::atomic<bool> used_{false};
};

// Thread-safe.
class PageCache {
 public:
  // An eighth of the machine's memory, at most this: half of what the engine's cache has unless
  // somebody says otherwise, and pinned pages are a part of that.
  static constexpr size_t kMostDefaultBytes = size_t{128} << 20;
  static size_t DefaultBytes();

  explicit PageCache(size_t capacity) : capacity_(capacity) {}

  // Is a page worth keeping? Always while there is room. In a full cache one of a few is, so that
  // reads all over a table that is larger do not pay for a cache that cannot help.
  bool Admits() {
    return used_.load(std::memory_order_relaxed) < capacity_.load(std::memory_order_relaxed) ||
           misses_.fetch_add(1, std::memory_order_relaxed) % kAdmitOneOf == 0;
  }
  // Is there room without taking others out?
  bool HasRoom() const {
    return used_.load(std::memory_order_relaxed) < capacity_.load(std::memory_order_relaxed);
  }
  // `page` is in its directory now. Takes others out until all fit, least recently used ones first,
  // roughly. No lock of a directory may be held.
  void Added(const std::shared_ptr<CachedPage>& page);

  // Parses a page, and compares its checksum unless a page of the same checksum has been read
  // before: what is damaged below the page is found by the first read, and the engine's own
  // checksums guard what is read again. Cost: about 0.06 ns a byte the first time. Errors:
  // kCorruption.
  Status Open(std::string_view bytes, codec::PageView* view);

  void SetCapacity(size_t bytes);
  size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class CachedPage;
  static constexpr uint32_t kAdmitOneOf = 8;
  // Checksums that were right, by their low bits: of as many pages 2 GiB. Those that share a slot
  // are compared again.
  static constexpr size_t kVerified = size_t{1} << 16;

  void Shrink();

  std::atomic<size_t> capacity_;
  std::atomic<size_t> used_{0};
  std::atomic<uint32_t> misses_{0};
  std::vector<std::atomic<uint32_t>> verified_ = std::vector<std::atomic<uint32_t>>(kVerified);
  std::mutex mutex_;
  std::vector<std::weak_ptr<CachedPage>> ring_;
  size_t hand_ = 0;
};

}  // namespace cellar::table
