#include "cellar/table/check_parts.h"

#include <map>

#include "cellar/table/backfill.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

// What of a range lies between the ranges that are owned, by start; the last gap ends the range.
std::vector<codec::KeyRange> GapsOf(codec::KeyRange range,
                                    const std::map<std::string, std::string>& owned) {
  std::vector<codec::KeyRange> out;
  for (const auto& [start, stop] : owned) {
    if (range.start < start) out.push_back({range.start, start});
    range.start = stop;
  }
  if (range.start < range.end) out.push_back(range);
  return out;
}

// What is left of the ranges without `taken`.
std::vector<codec::KeyRange> Without(std::vector<codec::KeyRange> ranges,
                                     const codec::KeyRange& taken) {
  std::vector<codec::KeyRange> out;
  for (codec::KeyRange& range : ranges) {
    if (taken.end <= range.start || range.end <= taken.start) {
      out.push_back(std::move(range));
      continue;
    }
    if (range.start < taken.start) out.push_back({range.start, taken.start});
    if (taken.end < range.end) out.push_back({taken.end, range.end});
  }
  return out;
}

}  // namespace

std::vector<codec::KeyRange> RangesOfNoColumn(const CompiledTable& compiled) {
  if (compiled.table().layout != catalog::Layout::kDatum) return {};
  std::map<std::string, std::string> owned;
  const auto own = [&](const std::string& prefix) { owned[prefix] = codec::PrefixEnd(prefix); };
  own(compiled.primary().prefix);
  for (const RowPart& part : compiled.parts()) own(part.prefix);
  const IndexId primary = compiled.primary().index->id;
  return GapsOf(codec::PrefixRange(codec::TablePrefix(compiled.table().storage_id(), primary)),
                owned);
}

std::vector<codec::KeyRange> UnownedRanges(const CompiledTable& compiled,
                                           const std::vector<codec::KeyRange>& of_jobs) {
  const codec::TableId storage = compiled.table().storage_id();
  std::map<std::string, std::string> owned;  // start to end of each index
  const auto own = [&](IndexId id) {
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(storage, id));
    owned[range.start] = range.end;
  };
  for (const IndexCodec& index : compiled.indexes()) {
    own(index.index->id);
    if (IsBeingBuilt(*index.index)) own(IndexId{index.index->id.value + kIndexIdsOfBuild - 1});
    // Nothing is written under the directory's id yet.
    if (index.primary && compiled.paged()) {
      own(IndexId{index.index->id.value + codec::kPagesOfPrimary});
      own(IndexId{index.index->id.value + codec::kOverflowOfPrimary});
    }
  }
  const codec::KeyRange all = codec::PrefixRange(codec::TablePrefix(storage));
  std::vector<codec::KeyRange> out = GapsOf(all, owned);
  // What lies behind the indexes of a table that is being rewritten belongs to its job.
  const bool last = !out.empty() && out.back().end == all.end;
  if (last && compiled.table().job != 0) out.pop_back();
  for (const codec::KeyRange& range : of_jobs) out = Without(std::move(out), range);
  return out;
}

Result<std::optional<std::string>> FirstKey(kv::Transaction* transaction,
                                            const codec::KeyRange& range) {
  kv::ScanOptions options;
  options.mode = kv::ReadMode::kSnapshot;
  options.keys_only = true;
  options.limit = 1;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(range.start, range.end, options));
  kv::Block block;
  CELLAR_TRY_ASSIGN(bool any, cursor->NextBlock(&block));
  if (!any) return std::optional<std::string>();
  return std::optional<std::string>(block.key(0));
}

}  // namespace cellar::table
