// The rows of a key range of a table of split rows, put together from their parts, upwards or
// downwards. Private to the layer.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"
#include "cellar/table/string_list.h"

namespace cellar::table {

// One thread at a time; must not outlive the transaction.
class SplitScan {
 public:
  struct Options {
    bool reverse = false;
    uint64_t limit_hint = 0;  // rows; 0: all
    kv::ReadMode mode = kv::ReadMode::kTracked;
    const kv::ReadView* view = nullptr;  // outlives the scan
    // Is told of keys that belong to no row. Without it the first one is an error (kCorruption).
    std::function<void(std::string_view key)> stray;
    // Is shown each part, also those of rows that turn out not to be there; with `stray` only.
    std::function<void(const RowPart& part, std::string_view key, std::string_view value)> part;
  };

  // [start, end) are keys of rows. `codec` says which columns are wanted and outlives the scan.
  SplitScan(AccessContext* context, const CompiledTable* table, const ScanCodec* codec,
            std::string start, std::string end, Options options);

  // The next rows, perhaps none, with their own keys; borrowed until the next call. False at the
  // end. Cost: a trip a block; with layout `datum` one for each wanted column, and one for the rows
  // unless a wanted column can never be missing.
  Result<bool> Next(std::vector<std::string_view>* keys, std::vector<StoredRow>* rows);

 private:
  // Keys in the order of rows, of all parts (any layout but `datum`) or of one.
  struct Stream {
    const RowPart* part = nullptr;  // null: the rows' own keys
    size_t prefix = 0;              // bytes of its keys before the RowRef
    std::unique_ptr<kv::Cursor> cursor;
    kv::Block block;
    size_t at = 0;
    bool ended = false;

    std::string_view Ref() const {
      const std::string_view key = block.key(at);
      return key.size() <= prefix ? std::string_view()
                                  : key.substr(prefix, key.size() - prefix - 1);
    }
  };
  // Where the values of the parts of a row begin and end in part_values_.
  struct Slice {
    size_t begin, end;
  };

  Status Open();
  Status OpenStream(const RowPart* part, bool tracked);
  Status Load(Stream* stream);
  Status Stray(std::string_view key);
  Result<bool> NextMerged(std::vector<std::string_view>* keys, std::vector<StoredRow>* rows);
  Result<bool> NextColumns(std::vector<std::string_view>* keys, std::vector<StoredRow>* rows);
  // Brings a stream to `ref`. False: its block has ended before.
  Result<bool> Align(Stream* stream, std::string_view ref);
  void SetParts(std::vector<StoredRow>* rows);

  // The row that is being put together: another part of it may come.
  struct OpenRow {
    std::string_view head;  // its keys without what tells the parts apart; empty: no row
    std::string_view key, value;
    bool there = false;
    std::string_view first_key;  // of any part
    std::vector<std::string_view> parts;
  };
  Status Close(std::vector<std::string_view>* keys, std::vector<StoredRow>* rows);
  void Carry();
  Status AddToRow(std::string_view key, std::string_view value, std::vector<std::string_view>* keys,
                  std::vector<StoredRow>* rows);

  AccessContext* context_;
  const CompiledTable* table_;
  const ScanCodec* codec_;
  const std::string start_, end_;
  const Options options_;
  bool opened_ = false;
  std::vector<Stream> streams_;
  std::vector<std::string_view> part_values_;
  std::vector<Slice> slices_;

  OpenRow open_;
  std::deque<std::string> carried_[2];  // the open row's bytes, and those of the one before
  size_t carry_ = 0;
  std::vector<uint8_t> wanted_;  // by place of the part
  size_t next_part_ = 0;

  StringList row_keys_;
};

}  // namespace cellar::table
