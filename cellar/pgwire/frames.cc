// Buffers of the protocol's two directions.
#include "cellar/pgwire/frames.h"

#include <algorithm>
#include <utility>

namespace cellar::pgwire {
namespace {

uint32_t LoadInt32(const char* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = (value << 8) | static_cast<unsigned char>(from[i]);
  return value;
}

std::unique_ptr<char[]> Allocate(size_t bytes) {
  return std::make_unique_for_overwrite<char[]>(bytes);
}

}  // namespace

bool MessageReader::Fill(size_t bytes) {
  while (end_ - begin_ < bytes) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ == capacity_) {
      if (begin_ > 0 && begin_ >= capacity_ / 2) {
        std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
      } else {
        // Twice what has come, and no more than is asked for beyond the usual size.
        const size_t wanted = std::max(kBufferBytes, std::min(capacity_ * 2, bytes));
        const size_t capacity = std::max(wanted, end_ - begin_ + 1);
        if (!charge_.Resize(capacity - kBufferBytes).ok()) {
          refused_ = true;
          return false;
        }
        std::unique_ptr<char[]> larger = Allocate(capacity);
        if (end_ > begin_) std::memcpy(larger.get(), data_.get() + begin_, end_ - begin_);
        data_ = std::move(larger);
        capacity_ = capacity;
      }
      end_ -= begin_;
      begin_ = 0;
    }
    const size_t got = transport_->Read(data_.get() + end_, capacity_ - end_);
    if (got == 0) return false;
    end_ += got;
    received_ += got;
  }
  return true;
}

bool MessageReader::Skip(uint64_t bytes) {
  while (bytes > 0) {
    if (begin_ == end_ && !Fill(1)) return false;
    const size_t taken = static_cast<size_t>(std::min<uint64_t>(bytes, end_ - begin_));
    begin_ += taken;
    bytes -= taken;
  }
  return true;
}

ReadResult MessageReader::Read(char* type, std::string_view* body, uint32_t max_body) {
  if (!Fill(1)) return ReadResult::kEnd;
  *type = data_[begin_];
  if (!Fill(5)) return ReadResult::kEnd;
  const uint32_t length = LoadInt32(data_.get() + begin_ + 1);
  if (length < 4 || length > kMaxDeclaredBytes) return ReadResult::kBadLength;
  if (length - 4 > max_body) {
    return Skip(uint64_t{length} + 1) ? ReadResult::kTooLong : ReadResult::kEnd;
  }
  if (!Fill(size_t{length} + 1)) {
    if (!std::exchange(refused_, false)) return ReadResult::kEnd;
    return Skip(uint64_t{length} + 1) ? ReadResult::kNoMemory : ReadResult::kEnd;
  }
  *body = std::string_view(data_.get() + begin_ + 5, length - 4);
  begin_ += size_t{length} + 1;
  return ReadResult::kMessage;
}

ReadResult MessageReader::ReadStartup(std::string_view* body) {
  if (!Fill(4)) return ReadResult::kEnd;
  const uint32_t length = LoadInt32(data_.get() + begin_);
  if (length < 8 || length > kMaxStartupBytes) return ReadResult::kBadLength;
  if (!Fill(length)) return ReadResult::kEnd;
  *body = std::string_view(data_.get() + begin_ + 4, length - 4);
  begin_ += length;
  return ReadResult::kMessage;
}

bool MessageReader::TakeBuffered(char type, std::string_view* body) {
  if (end_ - begin_ < 5 || data_[begin_] != type) return false;
  const uint32_t length = LoadInt32(data_.get() + begin_ + 1);
  if (length < 4 || length - 4 > kMaxMessageBytes || end_ - begin_ - 1 < length) return false;
  *body = std::string_view(data_.get() + begin_ + 5, length - 4);
  begin_ += size_t{length} + 1;
  return true;
}

void MessageReader::Pin() {
  if (pinned_ != nullptr) return;  // the first message's bytes are what matters
  const size_t left = end_ - begin_;
  const size_t capacity = std::max(kBufferBytes, left);
  std::unique_ptr<char[]> fresh = Allocate(capacity);
  if (left > 0) std::memcpy(fresh.get(), data_.get() + begin_, left);
  pinned_ = std::move(data_);
  data_ = std::move(fresh);
  capacity_ = capacity;
  begin_ = 0;
  end_ = left;
}

void MessageReader::Shrink() {
  if (capacity_ <= kBufferBytes || end_ - begin_ > kBufferBytes) return;
  const size_t left = end_ - begin_;
  std::unique_ptr<char[]> fresh = Allocate(kBufferBytes);
  if (left > 0) std::memcpy(fresh.get(), data_.get() + begin_, left);
  data_ = std::move(fresh);
  capacity_ = kBufferBytes;
  charge_.Clear();
  begin_ = 0;
  end_ = left;
}

void MessageWriter::Grow(size_t bytes) {
  const size_t capacity = std::max({kBufferBytes, capacity_ * 2, size_ + bytes});
  CountedArray<char> larger = MakeCountedArray<char>(capacity);
  if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
  capacity_ = capacity;
}

bool MessageWriter::Flush() {
  if (size_ > 0 && !broken_) {
    broken_ = !transport_->Write(std::string_view(data_.get(), size_));
    sent_ += size_;
  }
  size_ = frame_ = 0;
  return !broken_;
}

void MessageWriter::Shrink() {
  if (capacity_ <= 2 * kFlushBytes || size_ > 0) return;
  data_.reset();
  capacity_ = 0;
}

}  // namespace cellar::pgwire
