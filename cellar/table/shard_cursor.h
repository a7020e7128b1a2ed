// The ranges of an index's shards as one, in the order of the fields behind the shard. Private to
// the layer.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cellar/codec/key.h"
#include "cellar/kv/engine.h"

namespace cellar::table {

// `fields_start`: of the keys, what lies before it does not count for the order. Cost: a trip each
// time that the block of one shard is used up.
class ShardCursor final : public kv::Cursor {
 public:
  static Result<std::unique_ptr<kv::Cursor>> Open(kv::Transaction* transaction,
                                                  std::span<const codec::KeyRange> ranges,
                                                  size_t fields_start,
                                                  const kv::ScanOptions& options);

  Result<bool> NextBlock(kv::Block* block) override;
  Result<bool> NextView(std::string_view* key, std::string_view* value) override;

 private:
  struct Shard {
    std::unique_ptr<kv::Cursor> cursor;
    kv::Block block;
    size_t at = 0;
    bool done = false;

    std::string_view fields(size_t start) const { return block.key(at).substr(start); }
  };
  // The shard whose pair is next, its block filled; null: the end.
  Result<Shard*> Next();

  std::vector<Shard> shards_;
  size_t fields_start_ = 0;
  size_t block_bytes_ = 0;
  bool reverse_ = false;
};

}  // namespace cellar::table
