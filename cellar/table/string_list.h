// Private to the layer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::table {

// Byte strings one after the other in one buffer; cleared between batches, capacity kept.
class StringList {
 public:
  void Clear() {
    bytes_.clear();
    ends_.clear();
  }
  // Append to buffer(), then call End to make what was appended the next string.
  std::string* buffer() { return &bytes_; }
  void End() { ends_.push_back(bytes_.size()); }
  void DropLast() {
    ends_.pop_back();
    bytes_.resize(ends_.empty() ? 0 : ends_.back());
  }
  size_t size() const { return ends_.size(); }
  // Valid until the list is changed.
  std::string_view operator[](size_t i) const {
    const size_t start = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(start, ends_[i] - start);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace cellar::table
