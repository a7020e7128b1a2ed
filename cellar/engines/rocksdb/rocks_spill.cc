#include "cellar/engines/rocksdb/rocks_spill.h"

#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <unistd.h>

#include <algorithm>

#include "cellar/engines/rocksdb/rocks_read.h"
#include "cellar/engines/rocksdb/rocks_status.h"

namespace cellar::engines {
namespace {

constexpr std::string_view kCouldNotSpill = "could not write a large transaction's file";
constexpr size_t kBeyondBytes = 256;
// Of each file of a merge, of which there may be dozens.
constexpr size_t kReadAheadBytes = 256 << 10;

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

std::unique_ptr<rocksdb::Iterator> IteratorOfFile(void* source,
                                                  const rocksdb::ReadOptions& options) {
  return std::unique_ptr<rocksdb::Iterator>(
      static_cast<rocksdb::SstFileReader*>(source)->NewIterator(options));
}

class RocksSpillFile : public kv::SpillFile {
 public:
  RocksSpillFile(const rocksdb::Options& options, std::string path)
      : path_(std::move(path)), reader_(options) {}
  ~RocksSpillFile() override {
    iterator_.reset();
    ::unlink(path_.c_str());  // gone already if it was ingested
  }

  Status Open() { return FromRocks(reader_.Open(path_), "could not read a spill file"); }
  const std::string& path() const { return path_; }

  Result<bool> Get(std::string_view key, kv::PinnedValue* value) override {
    if (iterator_ == nullptr) iterator_ = IteratorOfFile(&reader_, rocksdb::ReadOptions());
    iterator_->Seek(ToSlice(key));
    if (!iterator_->Valid()) {
      CELLAR_TRY(FromRocks(iterator_->status(), "could not read a spill file"));
      return false;
    }
    if (iterator_->key() != ToSlice(key)) return false;
    const rocksdb::Slice found = iterator_->value();
    value->Assign({found.data(), found.size()});
    return true;
  }
  std::unique_ptr<kv::RawCursor> Scan(std::string_view start, std::string_view end,
                                      const kv::RawScanOptions& options) override {
    rocksdb::ReadOptions read;
    read.readahead_size = kReadAheadBytes;
    return MakeRocksCursor(read, &reader_, IteratorOfFile, start, end, options);
  }

 private:
  const std::string path_;
  rocksdb::SstFileReader reader_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksSpillWriter : public kv::SpillWriter {
 public:
  RocksSpillWriter(const rocksdb::Options& write_options, const rocksdb::Options& read_options,
                   std::string path)
      : read_options_(read_options),
        path_(std::move(path)),
        writer_(rocksdb::EnvOptions(), write_options) {}
  ~RocksSpillWriter() override {
    if (!finished_) ::unlink(path_.c_str());
  }

  Status Open() { return FromRocks(writer_.Open(path_), kCouldNotSpill); }
  Status Put(std::string_view key, std::string_view value) override {
    return FromRocks(writer_.Put(ToSlice(key), ToSlice(value)), kCouldNotSpill);
  }
  Status Delete(std::string_view key) override {
    return FromRocks(writer_.Delete(ToSlice(key)), kCouldNotSpill);
  }
  uint64_t file_bytes() const override {
    // FileSize() is not const, though it changes nothing.
    return const_cast<rocksdb::SstFileWriter&>(writer_).FileSize();
  }
  Result<std::unique_ptr<kv::SpillFile>> Finish() override {
    CELLAR_TRY(FromRocks(writer_.Finish(), kCouldNotSpill));
    finished_ = true;
    auto file = std::make_unique<RocksSpillFile>(read_options_, path_);
    CELLAR_TRY(file->Open());
    return std::unique_ptr<kv::SpillFile>(std::move(file));
  }

 private:
  const rocksdb::Options& read_options_;
  const std::string path_;
  rocksdb::SstFileWriter writer_;
  bool finished_ = false;
};

}  // namespace

Result<std::unique_ptr<kv::SpillWriter>> MakeRocksSpillWriter(const rocksdb::Options& write_options,
                                                              const rocksdb::Options& read_options,
                                                              std::string path) {
  auto writer = std::make_unique<RocksSpillWriter>(write_options, read_options, std::move(path));
  CELLAR_TRY(writer->Open());
  return std::unique_ptr<kv::SpillWriter>(std::move(writer));
}

Status WriteRangeDeletions(const rocksdb::Options& options, const std::string& path,
                           std::span<const kv::WriteBuffer::RangeDeletion> ranges) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  CELLAR_TRY(FromRocks(writer.Open(path), kCouldNotSpill));
  for (const kv::WriteBuffer::RangeDeletion& range : ranges) {
    const std::string_view end = range.end.empty() ? BeyondAllKeys() : range.end;
    CELLAR_TRY(FromRocks(writer.DeleteRange(range.start, ToSlice(end)), kCouldNotSpill));
  }
  return FromRocks(writer.Finish(), kCouldNotSpill);
}

Status WriteCounters(const rocksdb::Options& options, const std::string& path,
                     std::span<const kv::CounterWrite> counters) {
  std::vector<const kv::CounterWrite*> sorted;
  for (const kv::CounterWrite& counter : counters) sorted.push_back(&counter);
  std::sort(sorted.begin(), sorted.end(),
            [](const kv::CounterWrite* a, const kv::CounterWrite* b) { return a->key < b->key; });
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  CELLAR_TRY(FromRocks(writer.Open(path), kCouldNotSpill));
  for (const kv::CounterWrite* counter : sorted) {
    CELLAR_TRY(FromRocks(
        counter->value ? writer.Put(counter->key, *counter->value) : writer.Delete(counter->key),
        kCouldNotSpill));
  }
  return FromRocks(writer.Finish(), kCouldNotSpill);
}

const std::string& SpillPath(const kv::SpillFile& file) {
  return static_cast<const RocksSpillFile&>(file).path();
}

std::string_view BeyondAllKeys() {
  static const std::string beyond(kBeyondBytes, '\xff');
  return beyond;
}

}  // namespace cellar::engines
