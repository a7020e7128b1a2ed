#include "cellar/table/page_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cellar/table/access.h"
#include "cellar/table/cache_limit.h"
#include "cellar/table/compiled.h"
#include "cellar/table/page_directory.h"

namespace cellar::table {
namespace {

// Looked at in one go, so that no caller takes long; more are looked at when more come.
constexpr size_t kMostSteps = 4096;
constexpr size_t kChecksumAt = 10;  // docs/formats/page.md

}  // namespace

std::shared_ptr<CachedPage> CachedPage::Make(const CompiledTable& table, kv::PinnedValue pin,
                                             const codec::PageView& view,
                                             std::shared_ptr<PageCache> cache) {
  // tidy: allow(new) the constructor is private
  std::shared_ptr<CachedPage> page(new CachedPage);  // NOLINT: private constructor
  const std::string_view before = pin.view();
  page->pin_ = std::move(pin);
  page->view_ = view;
  // A short value moves with its owner.
  if (page->pin_.view().data() != before.data() && !page->view_.Parse(page->pin_.view()).ok()) {
    return nullptr;
  }
  if (const codec::RowFormat* format = table.FindFormat(view.format_id())) {
    const auto columns = format->columns();
    page->chunks_.resize(view.columns());
    for (uint32_t i = 0; i < view.columns() && i < columns.size(); ++i) {
      codec::Chunk chunk;
      if (page->view_.GetChunk(i, columns[i].type, &chunk).ok()) page->chunks_[i] = chunk;
    }
    page->view_.UseParsed(page->chunks_);
  }
  page->bytes_ =
      sizeof(CachedPage) + page->pin_.size() + page->chunks_.capacity() * sizeof(codec::Chunk);
  page->cache_ = std::move(cache);
  page->cache_->used_.fetch_add(page->bytes_, std::memory_order_relaxed);
  return page;
}

CachedPage::~CachedPage() {
  if (cache_ != nullptr) cache_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
}

Status PageCache::Open(std::string_view bytes, codec::PageView* view) {
  CELLAR_TRY(view->Parse(bytes));
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + kChecksumAt, sizeof sum);
  std::atomic<uint32_t>& slot = verified_[sum % kVerified];
  if (sum != 0 && slot.load(std::memory_order_relaxed) == sum) return Status();
  CELLAR_TRY(view->VerifyChecksum());
  slot.store(sum, std::memory_order_relaxed);
  return Status();
}

size_t PageCache::DefaultBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return kMostDefaultBytes;
  const auto memory = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  return static_cast<size_t>(std::min<uint64_t>(kMostDefaultBytes, memory / 8));
}

void PageCache::Added(const std::shared_ptr<CachedPage>& page) {
  {
    std::lock_guard lock(mutex_);
    // What was dropped elsewhere leaves the ring as fast as others come.
    for (int i = 0; i < 2 && !ring_.empty(); ++i) {
      if (hand_ >= ring_.size()) hand_ = 0;
      if (ring_[hand_].expired()) {
        std::swap(ring_[hand_], ring_.back());
        ring_.pop_back();
      } else {
        ++hand_;
      }
    }
    ring_.push_back(page);
  }
  Shrink();
}

void PageCache::SetCapacity(size_t bytes) {
  capacity_.store(bytes, std::memory_order_relaxed);
  Shrink();
}

void PageCache::Shrink() {
  size_t steps = 0;
  while (used_.load(std::memory_order_relaxed) > capacity_.load(std::memory_order_relaxed)) {
    std::shared_ptr<CachedPage> victim;
    {
      std::lock_guard lock(mutex_);
      while (victim == nullptr && !ring_.empty()) {
        if (++steps > kMostSteps) return;
        if (hand_ >= ring_.size()) hand_ = 0;
        std::shared_ptr<CachedPage> page = ring_[hand_].lock();
        if (page != nullptr && page->used_.exchange(false, std::memory_order_relaxed)) {
          ++hand_;
          continue;
        }
        std::swap(ring_[hand_], ring_.back());
        ring_.pop_back();
        victim = std::move(page);
      }
    }
    if (victim == nullptr) return;
    if (const std::shared_ptr<PageDirectory> owner = victim->owner_.lock()) {
      owner->Drop(victim->boundary_, victim.get());
    }
  }
}

void LimitPageCache(TableStore* store, size_t bytes) {
  store->DirectoryOf(codec::TableId{}, IndexId{})->cache()->SetCapacity(bytes);
}

}  // namespace cellar::table
