// Headers of pages, and rows by key.
#include <algorithm>

#include "cellar/base/crc32c.h"
#include "cellar/codec/page.h"
#include "cellar/codec/page_bytes.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

Status BadPage(const char* what) { return CorruptionError("page makes no sense: {}", what); }

}  // namespace

Status PageView::Parse(std::string_view bytes) {
  *this = PageView();
  if (bytes.size() < kPageHeaderBytes) return BadPage("it is too short");
  const char* p = bytes.data();
  if (static_cast<uint8_t>(p[0]) != kKindPage) return BadPage("it is not a page");
  const auto flags = static_cast<uint8_t>(p[kPageFlagsAt]);
  const uint32_t rows = Load<uint16_t>(p + kPageRowsAt);
  const uint32_t columns = Load<uint16_t>(p + kPageColumnsAt);
  const size_t fence_size = Load<uint32_t>(p + kPageFenceAt);
  const bool has_refs = (flags & kPageHasRefs) != 0;
  if ((flags & ~(kPageHasRefs | kPageWideRefs)) != 0) return BadPage("it has unknown flags");
  if (rows > kMaxPageRows || columns > kMaxRowColumns) return BadPage("it has too many rows");
  const size_t chunks = columns + (has_refs ? 1 : 0);
  const size_t first_chunk = kPageHeaderBytes + 4 * (chunks + 1) + fence_size;
  if (bytes.size() < first_chunk) return BadPage("it is too short");
  const char* offsets = p + kPageHeaderBytes;
  size_t start = Load<uint32_t>(offsets);
  if (start != first_chunk) return BadPage("its chunks are not where they should be");
  for (size_t i = 1; i <= chunks; ++i) {
    const size_t end = Load<uint32_t>(offsets + 4 * i);
    if (end < start) return BadPage("its offsets descend");
    start = end;
  }
  if (start != bytes.size()) return BadPage("its length is wrong");

  if (has_refs) {
    const size_t at = Load<uint32_t>(offsets + 4 * size_t{columns});
    std::string_view keys = bytes.substr(at);
    if (keys.size() < 4) return BadPage("its keys are broken");
    const size_t prefix = Load<uint32_t>(keys.data());
    keys.remove_prefix(4);
    const bool wide = (flags & kPageWideRefs) != 0;
    const size_t ends_bytes = size_t{rows} * (wide ? 4 : 2);
    if (keys.size() < prefix || keys.size() - prefix < ends_bytes) {
      return BadPage("its keys are broken");
    }
    key_prefix_ = keys.substr(0, prefix);
    key_ends_ = keys.data() + prefix;
    key_suffixes_ = keys.substr(prefix + ends_bytes);
    size_t last = 0;
    if (rows > 0) {
      last = wide ? Load<uint32_t>(key_ends_ + 4 * size_t{rows - 1})
                  : Load<uint16_t>(key_ends_ + 2 * size_t{rows - 1});
    }
    if (last != key_suffixes_.size()) return BadPage("its keys are broken");
    wide_keys_ = wide;
    keys_ = PageKeys::kRefs;
  }
  rows_ = rows;
  columns_ = columns;
  format_id_ = Load<uint32_t>(p + kPageFormatAt);
  offsets_ = offsets;
  fence_ = bytes.substr(first_chunk - fence_size, fence_size);
  bytes_ = bytes;
  return Status();
}

Status PageView::GetChunk(uint32_t column, Type type, Chunk* out) const {
  if (column >= columns_) return BadPage("it has too few columns");
  if (const Chunk* parsed = Parsed(column, type); parsed != nullptr) {
    *out = *parsed;
    return Status();
  }
  const size_t start = Load<uint32_t>(offsets_ + 4 * size_t{column});
  const size_t end = Load<uint32_t>(offsets_ + 4 * size_t{column} + 4);
  return Chunk::Parse(bytes_.substr(start, end - start), rows_, type, out);
}

std::string_view PageView::key_suffix(uint32_t row) const {
  size_t start = 0;
  size_t end;
  if (wide_keys_) {
    if (row > 0) start = Load<uint32_t>(key_ends_ + 4 * size_t{row} - 4);
    end = Load<uint32_t>(key_ends_ + 4 * size_t{row});
  } else {
    if (row > 0) start = Load<uint16_t>(key_ends_ + 2 * size_t{row} - 2);
    end = Load<uint16_t>(key_ends_ + 2 * size_t{row});
  }
  // Only a broken page has such offsets, and whoever decodes the key finds that it is none.
  if (start > end || end > key_suffixes_.size()) return {};
  return key_suffixes_.substr(start, end - start);
}

uint32_t PageView::LowerBound(std::string_view ref) const {
  if (keys_ != PageKeys::kRefs) return 0;
  const int order = ref.substr(0, key_prefix_.size()).compare(key_prefix_);
  if (order != 0) return order < 0 ? 0 : rows_;
  ref.remove_prefix(key_prefix_.size());
  uint32_t low = 0;
  uint32_t high = rows_;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (key_suffix(middle) < ref) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Status PageView::VerifyChecksum() const {
  if (bytes_.empty()) return BadPage("it is too short");
  const uint32_t head = Crc32c(bytes_.substr(0, kPageChecksumAt));
  const uint32_t all = Crc32c(bytes_.substr(kPageChecksumAt + 4), head);
  if (all != Load<uint32_t>(bytes_.data() + kPageChecksumAt)) {
    return BadPage("its checksum is wrong");
  }
  return Status();
}

}  // namespace cellar::codec
