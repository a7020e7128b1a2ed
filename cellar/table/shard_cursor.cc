#include "cellar/table/shard_cursor.h"

namespace cellar::table {

Result<std::unique_ptr<kv::Cursor>> ShardCursor::Open(kv::Transaction* transaction,
                                                      std::span<const codec::KeyRange> ranges,
                                                      size_t fields_start,
                                                      const kv::ScanOptions& options) {
  auto out = std::make_unique<ShardCursor>();
  out->fields_start_ = fields_start;
  out->block_bytes_ = options.first_block_bytes;
  out->reverse_ = options.reverse;
  for (const codec::KeyRange& range : ranges) {
    Shard& shard = out->shards_.emplace_back();
    CELLAR_TRY_ASSIGN(shard.cursor, transaction->Scan(range.start, range.end, options));
  }
  return std::unique_ptr<kv::Cursor>(std::move(out));
}

Result<ShardCursor::Shard*> ShardCursor::Next() {
  Shard* next = nullptr;
  for (Shard& shard : shards_) {
    if (shard.at == shard.block.size() && !shard.done) {
      shard.at = 0;
      CELLAR_TRY_ASSIGN(const bool more, shard.cursor->NextBlock(&shard.block));
      shard.done = !more;
      if (shard.done) shard.block.Clear();
    }
    if (shard.at == shard.block.size()) continue;
    if (shard.block.key(shard.at).size() < fields_start_) {
      return CorruptionError("a key of an index with shards is too short");
    }
    if (next == nullptr) {
      next = &shard;
      continue;
    }
    const int order = shard.fields(fields_start_).compare(next->fields(fields_start_));
    if (reverse_ ? order > 0 : order < 0) next = &shard;
  }
  return next;
}

Result<bool> ShardCursor::NextBlock(kv::Block* block) {
  block->Clear();
  while (block->bytes() < block_bytes_ || block->empty()) {
    CELLAR_TRY_ASSIGN(Shard * shard, Next());
    if (shard == nullptr) break;
    block->Append(shard->block.key(shard->at), shard->block.value(shard->at));
    ++shard->at;
  }
  return !block->empty();
}

Result<bool> ShardCursor::NextView(std::string_view* key, std::string_view* value) {
  CELLAR_TRY_ASSIGN(Shard * shard, Next());
  if (shard == nullptr) return false;
  *key = shard->block.key(shard->at);
  *value = shard->block.value(shard->at);
  ++shard->at;
  return true;
}

}  // namespace cellar::table
