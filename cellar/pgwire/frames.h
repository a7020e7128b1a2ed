// Messages of PostgreSQL's protocol 3.0: a reader over received bytes and a writer of frames
// (PostgreSQL manual 55.2 and 55.7).
//
// A message is a type byte, a length of four bytes (itself included) and a body; the first one of a
// connection has no type byte. Numbers are big-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "cellar/base/memory_account.h"
#include "cellar/base/status.h"
#include "cellar/pgwire/transport.h"

namespace cellar::pgwire {

// A message longer than this is read past, and answered with an error.
inline constexpr uint32_t kMaxMessageBytes = 64 << 20;
// One that claims to be longer ends the connection: the length is garbage.
inline constexpr uint32_t kMaxDeclaredBytes = 1 << 30;
inline constexpr size_t kMaxStartupBytes = 10000;
inline constexpr size_t kBufferBytes = 8 << 10;
// Output is sent when it has grown past this, whatever comes next.
inline constexpr size_t kFlushBytes = 16 << 10;

enum class ReadResult : uint8_t {
  kMessage,
  kEnd,        // the peer is gone
  kBadLength,  // the length makes no sense; the stream cannot be read on
  kTooLong,    // longer than kMaxMessageBytes; it has been read past
  kNoMemory,   // there is no room for it; it has been read past
};

// Splits a stream into messages. The buffer grows with the bytes that have come, never with what a
// length claims, and is charged to the process. One thread at a time.
class MessageReader {
 public:
  // `transport` outlives the reader, or is replaced by set_transport.
  explicit MessageReader(Transport* transport) : transport_(transport) {}

  // The next message; waits for it. `*body` is valid until the next call here, unless Pin().
  // Messages of more than `max_body` bytes count as too long.
  ReadResult Read(char* type, std::string_view* body, uint32_t max_body = kMaxMessageBytes);
  // The same for the packet without a type that opens a connection, of at most kMaxStartupBytes.
  ReadResult ReadStartup(std::string_view* body);
  // A message of this type that has been received whole already; does not wait. False: none.
  bool TakeBuffered(char type, std::string_view* body);
  // True when the next message's type has been received and is `type`.
  bool NextIs(char type) const { return begin_ < end_ && data_[begin_] == type; }
  bool empty() const { return begin_ == end_; }
  // Bytes received so far.
  uint64_t received() const { return received_; }

  // Keeps the bytes of messages read so far where they are until Unpin.
  void Pin();
  void Unpin() { pinned_.reset(); }
  // Gives memory back, before a wait that may be long.
  void Shrink();
  void set_transport(Transport* transport) { transport_ = transport; }

 private:
  // Makes `bytes` bytes available from begin_; false at the end of the stream, or when the memory
  // for them is refused.
  bool Fill(size_t bytes);
  bool Skip(uint64_t bytes);

  Transport* transport_;
  std::unique_ptr<char[]> data_, pinned_;
  MemoryCharge charge_{MemoryAccount::Process()};  // of what data_ has beyond kBufferBytes
  bool refused_ = false;                           // by Fill
  size_t capacity_ = 0, begin_ = 0, end_ = 0;
  uint64_t received_ = 0;
};

// Takes fields off the front of a body. Never reads past the end: a field that is not there makes
// ok() false, and reads as zero or empty.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  uint8_t Byte() { return static_cast<uint8_t>(Number<1>()); }
  int16_t Int16() { return static_cast<int16_t>(Number<2>()); }
  uint16_t Count() { return static_cast<uint16_t>(Number<2>()); }
  int32_t Int32() { return static_cast<int32_t>(Number<4>()); }
  std::string_view Bytes(size_t count) {
    if (count > rest_.size()) return Fail();
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  // Up to a NUL, which is taken too.
  std::string_view Text() {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) return Fail();
    std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return taken;
  }

 private:
  template <size_t kBytes>
  uint32_t Number() {
    if (rest_.size() < kBytes) {
      Fail();
      return 0;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < kBytes; ++i) {
      value = (value << 8) | static_cast<unsigned char>(rest_[i]);
    }
    rest_.remove_prefix(kBytes);
    return value;
  }
  std::string_view Fail() {
    ok_ = false;
    rest_ = {};
    return {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

// Collects frames and sends them together. Growing throws OutOfMemory (base/memory_account.h), and
// leaves a frame that was begun: see AbandonUnfinished. One thread at a time.
class MessageWriter {
 public:
  explicit MessageWriter(Transport* transport) : transport_(transport) {}

  // A frame: Begin, fields, End.
  void Begin(char type) {
    Reserve(5)[0] = type;
    frame_ = size_;
    size_ += 5;
    unfinished_ = true;
  }
  void End() {
    StoreInt32(data_.get() + frame_ + 1, static_cast<uint32_t>(size_ - frame_ - 1));
    unfinished_ = false;
  }
  // Bytes of the frame so far, its header included; and forgets it.
  size_t frame_bytes() const { return size_ - frame_; }
  void Abandon() {
    size_ = frame_;
    unfinished_ = false;
  }
  // The same where an error may have come between Begin and End.
  void AbandonUnfinished() {
    if (unfinished_) Abandon();
  }

  void PutByte(char byte) {
    Reserve(1)[0] = byte;
    ++size_;
  }
  void PutInt16(int value) {
    char* to = Reserve(2);
    to[0] = static_cast<char>(value >> 8);
    to[1] = static_cast<char>(value);
    size_ += 2;
  }
  void PutInt32(uint32_t value) {
    StoreInt32(Reserve(4), value);
    size_ += 4;
  }
  void PutInt64(uint64_t value) {
    char* to = Reserve(8);
    StoreInt32(to, static_cast<uint32_t>(value >> 32));
    StoreInt32(to + 4, static_cast<uint32_t>(value));
    size_ += 8;
  }
  void PutBytes(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // Bytes and a NUL. A NUL inside would break the frame: the text ends before it.
  void PutText(std::string_view text) {
    PutBytes(text.substr(0, text.find('\0')));
    PutByte('\0');
  }
  // A frame without a body, and one of ready bytes.
  void Put(char type) {
    Begin(type);
    End();
  }
  void PutRaw(std::string_view bytes) { PutBytes(bytes); }

  // Room for `bytes` more, to be filled and then counted with Advance.
  char* Reserve(size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return data_.get() + size_;
  }
  void Advance(size_t bytes) { size_ += bytes; }
  static void StoreInt32(char* to, uint32_t value) {
    to[0] = static_cast<char>(value >> 24);
    to[1] = static_cast<char>(value >> 16);
    to[2] = static_cast<char>(value >> 8);
    to[3] = static_cast<char>(value);
  }

  // Sends what has been collected. False when the peer is gone, then and for ever after.
  bool Flush();
  bool FlushIfLarge() { return size_ < kFlushBytes ? !broken_ : Flush(); }
  bool broken() const { return broken_; }
  size_t size() const { return size_; }
  // Bytes handed to the transport so far.
  uint64_t sent() const { return sent_; }
  void Shrink();
  void set_transport(Transport* transport) { transport_ = transport; }

 private:
  void Grow(size_t bytes);

  Transport* transport_;
  CountedArray<char> data_;
  bool unfinished_ = false;  // the frame at frame_
  size_t capacity_ = 0, size_ = 0, frame_ = 0;
  uint64_t sent_ = 0;
  bool broken_ = false;
};

}  // namespace cellar::pgwire
