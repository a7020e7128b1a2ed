#include "cellar/table/sealer.h"

#include <algorithm>
#include <thread>
#include <unordered_set>

#include "cellar/catalog/catalog.h"
#include "cellar/table/page_merge.h"
#include "cellar/table/page_packer.h"

namespace cellar::table {
namespace {

// From so many neighbouring rows of the delta on, one range deletion takes them out.
constexpr size_t kLeastRangeDeleted = 256;
// Steps against busy writers are this much smaller, and track rows one by one.
constexpr uint64_t kContendedShare = 8;
// Pages below this part of their aim take in the next one.
constexpr size_t kSmallShare = 4;
constexpr int kMaxConflicts = 1000;
// So many deleted rows, and this part of the table, are worth a compaction of the delta.
constexpr uint64_t kManyDeadRows = 20000, kDeadShare = 20;

// One step: reads, packs and writes inside one transaction.
class Step {
 public:
  Step(AccessContext* context, const CompiledTable* table, const SealOptions& options,
       bool contended)
      : context_(context), table_(table), options_(options), contended_(contended) {}

  // From `position`, bytes of a key without the index prefix; set to where the next step begins.
  Status Run(std::string* position, SealStep* out) {
    CELLAR_TRY_ASSIGN(
        codec_, table_->Scan(table_->primary().index->id, table_->living_ids(),
                             table_->page_keys() == codec::PageKeys::kRefs, ScanBytes::kCopy));
    CELLAR_TRY(CollectDelta(*position));
    if (options_.repack) {
      CELLAR_TRY(Repack(*position, position, out));
    } else {
      CELLAR_TRY(SealDirty(position, out));
    }
    return Status();
  }

  const std::vector<std::string>& added() const { return added_; }
  const std::vector<std::string>& removed() const { return removed_; }
  bool writes() const { return writes_; }

 private:
  // A run of neighbouring pages.
  struct Group {
    std::string begin, end;               // boundary of the first, fence of the last
    std::vector<std::string> boundaries;  // of all
    size_t bytes = 0;
    bool stale = false;  // one of them is worth packing anew
    bool any = false;    // false: the table has no pages
  };

  // Refs of rows in the delta from `position` on, as many as a step takes.
  Status CollectDelta(std::string_view position) {
    const std::string& prefix = table_->primary().prefix;
    std::string start = prefix;
    start.append(position);
    kv::ScanOptions options;
    options.mode = kv::ReadMode::kSnapshot;
    options.fill_cache = false;
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      context_->transaction->Scan(start, codec::PrefixEnd(prefix), options));
    const uint64_t max_rows =
        std::max<uint64_t>(1, contended_ ? options_.max_rows / kContendedShare : options_.max_rows);
    kv::Block block;
    size_t bytes = 0;
    while (true) {
      CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
      if (!more) {
        all_collected_ = true;
        return Status();
      }
      for (size_t i = 0; i < block.size(); ++i) {
        if (refs_.size() == max_rows || (bytes > options_.max_bytes && !refs_.empty())) {
          return Status();
        }
        const std::string_view key = block.key(i);
        CELLAR_TRY_ASSIGN(const codec::DeltaKind kind, codec::DeltaKindOf(block.value(i)));
        if (kind == codec::DeltaKind::kLongRow) {
          skipped_.push_back(refs_.size());
          continue;
        }
        if (key.size() < prefix.size() + 2) return CorruptionError("the key of a row is too short");
        refs_.emplace_back(key.substr(prefix.size(), key.size() - prefix.size() - 1));
        bytes += key.size() + block.value(i).size();
      }
    }
  }

  Status OpenGroup(std::string_view ref, Group* group) {
    OpenPage page;
    CELLAR_TRY_ASSIGN(group->any, OpenPageOf(context_, *table_, ref, nullptr, &page));
    if (!group->any) return Status();
    group->begin = page.boundary;
    return AddPage(page, group);
  }

  Status AddPage(const OpenPage& page, Group* group) {
    if (Status status = page.view.VerifyChecksum(); !status.ok()) {
      return DamagedPage(*table_, page.boundary, status);
    }
    group->boundaries.push_back(page.boundary);
    group->end = page.view.fence();
    group->bytes += page.view.size_bytes();
    group->stale |= page.view.format_id() != table_->write_format().id() ||
                    (page.view.size_bytes() < options_.page_bytes / kSmallShare &&
                     page.view.rows() < codec::kMaxPageRows / 2);
    return Status();
  }

  // Adds the page behind the group.
  Status Extend(Group* group) {
    OpenPage page;
    CELLAR_TRY_ASSIGN(const bool any, OpenPageOf(context_, *table_, group->end, nullptr, &page));
    if (!any || page.boundary != group->end) {
      return DamagedPage(*table_, group->end, CorruptionError("there is no such page"));
    }
    return AddPage(page, group);
  }

  Status SealDirty(std::string* position, SealStep* out) {
    if (refs_.empty()) {
      out->done = true;
      return Status();
    }
    size_t next = 0, bytes = 0;
    while (next < refs_.size() && bytes < options_.max_bytes) {
      Group group;
      CELLAR_TRY(OpenGroup(refs_[next], &group));
      size_t end = next;
      while (true) {
        while (end < refs_.size() && (group.end.empty() || refs_[end] < group.end)) ++end;
        if (group.end.empty() || end == refs_.size()) break;
        if (bytes + group.bytes >= options_.max_bytes) break;
        // The next page, if rows of the delta lie in it.
        Group neighbour;
        CELLAR_TRY(OpenGroup(refs_[end], &neighbour));
        if (neighbour.begin != group.end) break;
        group.boundaries.push_back(neighbour.begin);
        group.end = neighbour.end;
        group.bytes += neighbour.bytes;
      }
      CELLAR_TRY(Rewrite(&group, next, end, out));
      bytes += group.bytes;
      next = end;
    }
    AfterRef(refs_[next - 1], position);
    out->done = next == refs_.size() && all_collected_;
    return Status();
  }

  static void AfterRef(std::string_view ref, std::string* position) {
    position->assign(ref);
    position->push_back(kGroupZero);
    position->push_back('\0');
  }

  Status Repack(std::string_view from, std::string* position, SealStep* out) {
    Group group;
    CELLAR_TRY(OpenGroup(from, &group));
    if (!group.any && refs_.empty()) {
      out->done = true;
      return Status();
    }
    while (!group.end.empty() && group.bytes < options_.max_bytes) CELLAR_TRY(Extend(&group));
    size_t end = 0;
    while (end < refs_.size() && (group.end.empty() || refs_[end] < group.end)) ++end;
    const bool cut = end == refs_.size() && !all_collected_;
    if (end > 0 || (group.stale && group.boundaries.size() > 1)) {
      CELLAR_TRY(Rewrite(&group, 0, end, out));
    }
    if (cut) {
      AfterRef(refs_.back(), position);
    } else if (group.end.empty()) {
      out->done = true;
    } else {
      *position = group.end;
    }
    return Status();
  }

  // Packs the rows of a group and refs_[first, end) over them, and takes these out of the delta.
  Status Rewrite(Group* group, size_t first, size_t end, SealStep* out) {
    writes_ = true;
    PageDirectory& directory = context_->DirectoryOf(*table_);
    directory.Announce(group->begin, group->end);
    PagePacker packer(table_, context_->transaction, group->begin, group->end, options_.page_bytes);
    std::string delta_end;
    if (end > first) AfterRef(refs_[end - 1], &delta_end);
    CELLAR_TRY(Merge(*group, end > first ? delta_end : std::string(), &packer));
    // A page that has become small takes in its neighbour.
    while (!group->end.empty() && packer.boundaries().empty() &&
           packer.buffer()->size() * kSmallShare < packer.rows_per_page()) {
      Group neighbour;
      neighbour.any = true;
      neighbour.begin = group->end;
      OpenPage page;
      CELLAR_TRY_ASSIGN(const bool any, OpenPageOf(context_, *table_, group->end, nullptr, &page));
      if (!any || page.boundary != group->end) break;
      CELLAR_TRY(AddPage(page, &neighbour));
      directory.Announce(neighbour.begin, neighbour.end);
      CELLAR_TRY(Merge(neighbour, {}, &packer));
      packer.MoveEnd(neighbour.end);
      group->end = neighbour.end;
      group->boundaries.push_back(neighbour.begin);
      group->bytes += neighbour.bytes;
    }
    CELLAR_TRY(packer.Finish());
    std::unordered_set<std::string_view> kept(packer.boundaries().begin(),
                                              packer.boundaries().end());
    std::string key;
    for (const std::string& boundary : group->boundaries) {
      if (kept.contains(boundary)) continue;
      key.clear();
      AppendPageKey(*table_, boundary, &key);
      CELLAR_TRY(context_->transaction->Delete(key));
      removed_.push_back(boundary);
    }
    added_.insert(added_.end(), packer.boundaries().begin(), packer.boundaries().end());
    out->rows += end - first;
    out->pages += packer.boundaries().size();
    out->bytes += packer.bytes();
    return TakeOut(first, end);
  }

  // Rows of the group's pages, merged with the delta from the group's begin to `delta_end` (none of
  // it if that is empty), into the packer.
  Status Merge(const Group& group, std::string_view delta_end, PagePacker* packer) {
    const std::string& prefix = table_->primary().prefix;
    kv::ScanOptions options;
    options.mode = contended_ ? kv::ReadMode::kSnapshot : kv::ReadMode::kTracked;
    options.fill_cache = false;
    PageMerge merge(context_, table_, prefix + group.begin,
                    group.end.empty() ? codec::PrefixEnd(prefix) : prefix + group.end, options);
    merge.SkipLongRows();
    merge.EndDelta(delta_end.empty() ? prefix + group.begin : prefix + std::string(delta_end));
    MergeRun run;
    while (true) {
      CELLAR_TRY(merge.Next(true, &run));
      if (run.kind == MergeRun::Kind::kEnd) return Status();
      RowBatch* buffer = packer->buffer();
      const size_t at = buffer->size();
      switch (run.kind) {
        case MergeRun::Kind::kPage:
          buffer->Resize(at + run.count);
          CELLAR_TRY(codec_->DecodePage(run.page->view, run.first, run.count, at, true, buffer));
          break;
        case MergeRun::Kind::kPatched:
          buffer->Resize(at + 1);
          CELLAR_TRY(codec_->DecodePageRows(run.page->view, {&run.first, 1}, at, true, buffer));
          CELLAR_TRY(codec_->ApplyPatch(run.patch, at, true, buffer));
          break;
        default:
          buffer->Resize(at + run.keys.size());
          CELLAR_TRY(codec_->Decode(run.keys, run.values, at, buffer));
          break;
      }
      CELLAR_TRY(packer->Added());
    }
  }

  Status TakeOut(size_t first, size_t end) {
    if (first == end) return Status();
    kv::Transaction* transaction = context_->transaction;
    std::string key;
    const bool passes_over = std::any_of(skipped_.begin(), skipped_.end(), [&](size_t place) {
      return first < place && place < end;
    });
    if (!contended_ && !passes_over && end - first >= kLeastRangeDeleted) {
      // The range has been read with tracking, so nothing else is in it.
      std::string last;
      AppendRowKey(table_->primary(), refs_[first], &key);
      AppendRowKey(table_->primary(), refs_[end - 1], &last);
      last.push_back('\0');
      return transaction->DeleteRange(key, last);
    }
    for (size_t i = first; i < end; ++i) {
      key.clear();
      AppendRowKey(table_->primary(), refs_[i], &key);
      if (contended_) CELLAR_TRY(transaction->AddReadConflict(key));
      CELLAR_TRY(transaction->Delete(key));
    }
    return Status();
  }

  AccessContext* context_;
  const CompiledTable* table_;
  const SealOptions& options_;
  const bool contended_;
  std::shared_ptr<const ScanCodec> codec_;
  std::vector<std::string> refs_;
  std::vector<size_t> skipped_;  // places in refs_ before which a row with long values lies
  bool all_collected_ = false;
  bool writes_ = false;
  std::vector<std::string> added_, removed_;
};

}  // namespace

// Scans step over the rows that sealing has deleted until the engine drops them.
Status Sealer::DropDeadRows(const TableDescriptor& table, PageDirectory* directory) {
  const uint64_t dead = directory->dead_rows.load(std::memory_order_relaxed);
  if (dead < kManyDeadRows) return Status();
  CELLAR_TRY_ASSIGN(const uint64_t rows, store_->EstimatePagedRows(table));
  if (dead < rows / kDeadShare) return Status();
  directory->dead_rows.fetch_sub(dead, std::memory_order_relaxed);
  const codec::KeyRange delta =
      codec::PrefixRange(codec::TablePrefix(table.storage_id(), table.primary().id));
  return engine_->Compact(delta.start, delta.end);
}

Result<SealStep> Sealer::Step(const TablePtr& table, const SealOptions& options,
                              std::string* position) {
  SealStep out;
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  if (!compiled->paged()) {
    out.done = true;
    return out;
  }
  std::shared_ptr<PageDirectory> directory =
      store_->DirectoryOf(table->storage_id(), table->primary().id);
  if (!directory->TryLease()) {
    out.conflict = true;
    return out;
  }
  PageLease lease(directory, engine_);
  if (position->empty()) {
    directory->changes_to_seal.store(directory->changes.load(std::memory_order_relaxed),
                                     std::memory_order_relaxed);
  }
  kv::TransactionOptions transaction_options;
  transaction_options.durable = false;  // what is lost in a crash is sealed again
  transaction_options.unmarked_writes = true;
  std::unique_ptr<kv::Transaction> transaction = engine_->Begin(transaction_options);
  if (transaction->snapshot_version() < directory->written_version()) {
    out.conflict = true;
    return out;
  }
  CELLAR_TRY(catalog::RequireCurrent(*table, transaction.get()));
  AccessContext context;
  context.transaction = transaction.get();
  context.store = store_;
  context.keep_pages = false;
  // Set before anything is written, so that whoever finds "no pages" has a snapshot without them.
  directory->ExpectPages();
  const bool contended = directory->contended.load(std::memory_order_relaxed);
  table::Step step(&context, compiled, options, contended);
  std::string next = *position;
  CELLAR_TRY(step.Run(&next, &out));
  if (step.writes()) {
    Result<uint64_t> committed = transaction->Commit();
    if (!committed.ok()) {
      if (committed.status().code() != Code::kConflict) return committed.status();
      // A changed schema comes as the same error; asking again tells.
      std::unique_ptr<kv::Transaction> check = engine_->Begin();
      CELLAR_TRY(catalog::RequireCurrent(*table, check.get()));
      directory->contended.store(true, std::memory_order_relaxed);
      out = SealStep();
      out.conflict = true;
      return out;
    }
    for (const std::string& boundary : step.removed()) directory->Forget(boundary);
    for (const std::string& boundary : step.added()) directory->Learn(boundary);
  }
  directory->dead_rows.fetch_add(out.rows, std::memory_order_relaxed);
  if (out.done) {
    directory->contended.store(false, std::memory_order_relaxed);
    // What came behind this run's position meanwhile is still to be sealed.
    const uint64_t changes = directory->changes_to_seal.exchange(0, std::memory_order_relaxed);
    directory->changes.fetch_sub(
        std::min(changes, directory->changes.load(std::memory_order_relaxed)),
        std::memory_order_relaxed);
  }
  *position = std::move(next);
  lease = PageLease();  // others need not wait for the compaction
  if (out.done) CELLAR_TRY(DropDeadRows(*table, directory.get()));
  return out;
}

Result<SealStep> Sealer::SealAll(const TablePtr& table, const SealOptions& options,
                                 const CancelToken* cancel) {
  SealStep all;
  std::string position;
  int conflicts = 0;
  while (!all.done) {
    if (cancel != nullptr) CELLAR_TRY(cancel->Check());
    CELLAR_TRY_ASSIGN(const SealStep step, Step(table, options, &position));
    if (step.conflict) {
      if (++conflicts > kMaxConflicts) {
        all.conflict = true;
        return all;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(conflicts, 20)));
      continue;
    }
    all.rows += step.rows;
    all.pages += step.pages;
    all.bytes += step.bytes;
    all.done = step.done;
  }
  return all;
}

Result<StorageState> Sealer::StateOf(const TablePtr& table) {
  StorageState state;
  if (table->layout != catalog::Layout::kPages || table->indexes.empty()) return state;
  const IndexId primary = table->primary().id;
  const codec::KeyRange delta =
      codec::PrefixRange(codec::TablePrefix(table->storage_id(), primary));
  const codec::KeyRange pages = codec::PrefixRange(
      codec::TablePrefix(table->storage_id(), IndexId{primary.value + codec::kPagesOfPrimary}));
  state.delta_bytes = engine_->ApproximateBytes(delta.start, delta.end);
  state.page_bytes = engine_->ApproximateBytes(pages.start, pages.end);
  CELLAR_TRY_ASSIGN(state.page_rows, store_->EstimatePagedRows(*table));
  state.changes = ChangesOf(table);
  return state;
}

uint64_t Sealer::ChangesOf(const TablePtr& table) {
  return store_->DirectoryOf(table->storage_id(), table->primary().id)
      ->changes.load(std::memory_order_relaxed);
}

}  // namespace cellar::table
