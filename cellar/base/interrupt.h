// How work that knows nothing of a statement hears that it is to stop: printing a value, comparing
// two, multiplying numbers of a hundred thousand digits. It asks its thread, as counted memory does
// (memory_account.h): an InterruptScope at the door says whose request counts, and what is thrown
// ends there. Whoever has a context with a token, and returns a Status, asks that one instead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string_view>
#include <utility>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"

namespace cellar {

// Thrown by PollSteps and PollBytes, caught by CatchInterrupted. What was changed until then is as
// it was then: the caller rolls back as after any error.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return "cellar: interrupted"; }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// The token that this thread's work listens to until the scope goes; null: to nobody, for work that
// must be finished. Opened only within CatchInterrupted.
class InterruptScope {
 public:
  explicit InterruptScope(const CancelToken* token);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // What the thread's token says now. OK without one.
  static Status Check();

 private:
  friend void PollSteps(size_t steps);
  static void Poll();

  // Looked at once in so many steps, or in about 1 MiB.
  static constexpr size_t kPollSteps = 10'000;
  static thread_local constinit const CancelToken* token_;
  static thread_local constinit size_t steps_left_;

  const CancelToken* before_;
};

// Once in 10,000 steps, counted over all calls of the thread, looks whether to stop. Throws
// Interrupted with 57014 and its kin. Cost otherwise: a subtraction.
inline void PollSteps(size_t steps = 1) {
  if (steps < InterruptScope::steps_left_) {
    InterruptScope::steps_left_ -= steps;
    return;
  }
  InterruptScope::Poll();
}
// The same for bytes that were gone through: once in about 1 MiB.
inline void PollBytes(size_t bytes) { PollSteps(1 + bytes / 100); }

// Calls f(piece) for one piece of the text after the other, and looks between them.
template <typename F>
void InPieces(std::string_view text, F f) {
  constexpr size_t kPieceBytes = 48 << 10;  // a multiple of 2 and 3, which bytes are encoded by
  for (size_t at = 0; at < text.size(); at += kPieceBytes) {
    const std::string_view piece = text.substr(at, kPieceBytes);
    PollBytes(piece.size());
    f(piece);
  }
}

// Runs `body`, which returns a Status or Result, and makes an error of what interrupted it.
template <typename F>
auto CatchInterrupted(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Interrupted& interrupted) {
    return interrupted.status();
  }
}

}  // namespace cellar
