#include "cellar/table/split_scan.h"

#include <algorithm>

namespace cellar::table {
namespace {

constexpr size_t kFirstBlock = 32 << 10;
constexpr size_t kLargestBlock = 64 << 10;
constexpr size_t kSmallestFirstBlock = 256;
constexpr size_t kGuessedPartBytes = 40;

// Is the column of the part there in every row?
bool NeverMissing(const CompiledTable& table, const RowPart& part) {
  return part.positions.size() == 1 && table.living_column(part.positions[0]).not_null &&
         !table.WritesNull(part.positions[0]);
}

}  // namespace

SplitScan::SplitScan(AccessContext* context, const CompiledTable* table, const ScanCodec* codec,
                     std::string start, std::string end, Options options)
    : context_(context),
      table_(table),
      codec_(codec),
      start_(std::move(start)),
      end_(std::move(end)),
      options_(std::move(options)),
      wanted_(table->parts().size(), 0) {
  for (uint32_t part : codec->wanted_parts()) wanted_[part] = 1;
}

Status SplitScan::OpenStream(const RowPart* part, bool tracked) {
  Stream& stream = streams_.emplace_back();
  stream.part = part;
  const std::string& rows = table_->primary().prefix;
  const std::string& prefix = part == nullptr ? rows : part->prefix;
  stream.prefix = prefix.size();
  std::string start = prefix, end = codec::PrefixEnd(prefix);
  if (start_.starts_with(rows)) start += start_.substr(rows.size());
  if (end_.starts_with(rows)) end = prefix + end_.substr(rows.size());
  kv::ScanOptions options;
  options.reverse = options_.reverse;
  options.mode = tracked ? options_.mode : kv::ReadMode::kSnapshot;
  options.view = options_.view;
  options.block_bytes = kLargestBlock;
  options.first_block_bytes = kFirstBlock;
  const bool columns = !table_->parts().front().prefix.empty();
  options.keys_only = columns && part == nullptr && !codec_->needs_row() && !options_.stray;
  if (options_.limit_hint != 0 && options_.limit_hint < kLargestBlock) {
    const size_t keys = columns ? 1 : table_->parts().size() + 1;
    options.first_block_bytes = std::clamp<size_t>(
        (options_.limit_hint * keys + 1) * kGuessedPartBytes, kSmallestFirstBlock, kLargestBlock);
  }
  CELLAR_TRY_ASSIGN(stream.cursor, context_->transaction->Scan(start, end, options));
  return Status();
}

Status SplitScan::Open() {
  opened_ = true;
  const std::vector<RowPart>& parts = table_->parts();
  if (parts.front().prefix.empty()) return OpenStream(nullptr, true);
  // The rows' own keys lead, or a column that tells as much.
  const RowPart* leader = nullptr;
  if (!options_.stray && !codec_->needs_row()) {
    for (uint32_t part : codec_->wanted_parts()) {
      if (NeverMissing(*table_, parts[part])) leader = &parts[part];
    }
  }
  streams_.reserve(parts.size() + 1);
  CELLAR_TRY(OpenStream(leader, true));
  for (size_t i = 0; i < parts.size(); ++i) {
    // Strays may be among the parts that nobody wants, too.
    const bool read = wanted_[i] || options_.stray != nullptr;
    if (read && &parts[i] != leader) CELLAR_TRY(OpenStream(&parts[i], false));
  }
  return Status();
}

Status SplitScan::Load(Stream* stream) {
  ++context_->stats.trips;
  stream->at = 0;
  CELLAR_TRY_ASSIGN(const bool more, stream->cursor->NextBlock(&stream->block));
  if (!more) {
    stream->block.Clear();
    stream->ended = true;
    return Status();
  }
  context_->stats.rows_read += stream->block.size();
  context_->stats.bytes_read += stream->block.bytes();
  return Status();
}

Status SplitScan::Stray(std::string_view key) {
  if (!options_.stray) return CorruptionError("a part of it belongs to no row");
  options_.stray(key);
  return Status();
}

void SplitScan::SetParts(std::vector<StoredRow>* rows) {
  for (size_t i = 0; i < rows->size(); ++i) {
    (*rows)[i].parts =
        std::span(part_values_).subspan(slices_[i].begin, slices_[i].end - slices_[i].begin);
  }
}

Result<bool> SplitScan::Next(std::vector<std::string_view>* keys, std::vector<StoredRow>* rows) {
  keys->clear();
  rows->clear();
  part_values_.clear();
  slices_.clear();
  if (!opened_) CELLAR_TRY(Open());
  Result<bool> more =
      table_->parts().front().prefix.empty() ? NextMerged(keys, rows) : NextColumns(keys, rows);
  SetParts(rows);
  return more;
}

// ---- All parts of a row side by side ----

Status SplitScan::Close(std::vector<std::string_view>* keys, std::vector<StoredRow>* rows) {
  if (open_.head.empty()) return Status();
  if (open_.there) {
    keys->push_back(open_.key);
    rows->emplace_back().value = open_.value;
    const size_t begin = part_values_.size();
    part_values_.insert(part_values_.end(), open_.parts.begin(), open_.parts.end());
    slices_.push_back({begin, part_values_.size()});
  } else {
    CELLAR_TRY(Stray(open_.first_key));
  }
  open_.head = {};
  return Status();
}

// The block goes, the open row stays.
void SplitScan::Carry() {
  if (open_.head.empty()) return;
  std::deque<std::string>& kept = carried_[carry_ ^= 1];
  kept.clear();
  const auto keep = [&](std::string_view bytes) {
    return std::string_view(kept.emplace_back(bytes));
  };
  open_.head = keep(open_.head);
  open_.key = keep(open_.key);
  open_.value = keep(open_.value);
  open_.first_key = keep(open_.first_key);
  for (std::string_view& part : open_.parts) part = keep(part);
}

Status SplitScan::AddToRow(std::string_view key, std::string_view value,
                           std::vector<std::string_view>* keys, std::vector<StoredRow>* rows) {
  const std::vector<RowPart>& parts = table_->parts();
  if (open_.head.empty() || !key.starts_with(open_.head)) {
    CELLAR_TRY(Close(keys, rows));
    std::string_view rest = key.substr(std::min(key.size(), table_->primary().prefix.size()));
    for (size_t i = 0; i < table_->primary().key_columns.size(); ++i) {
      if (!codec::SkipKeyField(&rest).ok()) return Stray(key);
    }
    open_.head = key.substr(0, key.size() - rest.size());
    open_.there = false;
    open_.key = open_.value = {};
    open_.first_key = key;
    open_.parts.clear();
  }
  const std::string_view suffix = key.substr(open_.head.size());
  if (suffix == std::string_view(&kGroupZero, 1)) {
    open_.there = true;
    open_.key = key;
    open_.value = value;
    return Status();
  }
  for (size_t tried = 0; tried < parts.size(); ++tried) {
    const size_t at = next_part_;
    const bool found = parts[at].suffix == suffix;
    // The next key is likely to be the next part's.
    if (options_.reverse) {
      next_part_ = at == 0 ? parts.size() - 1 : at - 1;
    } else if (++next_part_ == parts.size()) {
      next_part_ = 0;
    }
    if (!found) continue;
    if (wanted_[at]) open_.parts.push_back(value);
    if (options_.part) options_.part(parts[at], key, value);
    return Status();
  }
  return Stray(key);
}

Result<bool> SplitScan::NextMerged(std::vector<std::string_view>* keys,
                                   std::vector<StoredRow>* rows) {
  Stream& stream = streams_.front();
  while (!stream.ended) {
    Carry();
    CELLAR_TRY(Load(&stream));
    for (size_t i = 0; i < stream.block.size(); ++i) {
      CELLAR_TRY(AddToRow(stream.block.key(i), stream.block.value(i), keys, rows));
    }
    if (stream.ended) CELLAR_TRY(Close(keys, rows));
    if (!rows->empty()) return true;
  }
  return false;
}

// ---- Each column by itself ----

Result<bool> SplitScan::Align(Stream* stream, std::string_view ref) {
  while (stream->at < stream->block.size()) {
    const std::string_view there = stream->Ref();
    if (there == ref) return true;
    if ((there > ref) != options_.reverse) return true;
    CELLAR_TRY(Stray(stream->block.key(stream->at)));
    ++stream->at;
  }
  return stream->ended;
}

Result<bool> SplitScan::NextColumns(std::vector<std::string_view>* keys,
                                    std::vector<StoredRow>* rows) {
  row_keys_.Clear();
  while (true) {
    for (Stream& stream : streams_) {
      if (stream.at == stream.block.size() && !stream.ended) CELLAR_TRY(Load(&stream));
    }
    Stream& leader = streams_.front();
    if (leader.ended) {
      bool left = false;
      for (Stream& stream : streams_) {
        for (; stream.at < stream.block.size(); ++stream.at) {
          CELLAR_TRY(Stray(stream.block.key(stream.at)));
        }
        left |= !stream.ended;
      }
      if (left) continue;
      return false;
    }
    for (; leader.at < leader.block.size(); ++leader.at) {
      const std::string_view ref = leader.Ref();
      bool known = true;
      for (size_t i = 1; i < streams_.size() && known; ++i) {
        CELLAR_TRY_ASSIGN(known, Align(&streams_[i], ref));
      }
      if (!known) break;
      StoredRow& row = rows->emplace_back();
      const size_t begin = part_values_.size();
      const std::string_view key = leader.block.key(leader.at);
      if (leader.part == nullptr) {
        row.value = leader.block.value(leader.at);
        keys->push_back(key);
      } else {
        part_values_.push_back(leader.block.value(leader.at));
        if (codec_->needs_key()) {
          AppendRowKey(table_->primary(), ref, row_keys_.buffer());
          row_keys_.End();
        } else {
          keys->push_back(key);
        }
      }
      for (size_t i = 1; i < streams_.size(); ++i) {
        Stream& stream = streams_[i];
        if (stream.at == stream.block.size() || stream.Ref() != ref) continue;
        const std::string_view value = stream.block.value(stream.at);
        if (wanted_[static_cast<size_t>(stream.part - table_->parts().data())]) {
          part_values_.push_back(value);
        }
        if (options_.part) options_.part(*stream.part, stream.block.key(stream.at), value);
        ++stream.at;
      }
      slices_.push_back({begin, part_values_.size()});
    }
    if (rows->empty()) continue;
    for (size_t i = 0; i < row_keys_.size(); ++i) keys->push_back(row_keys_[i]);
    return true;
  }
}

}  // namespace cellar::table
