#include "cellar/base/interrupt.h"

namespace cellar {

thread_local constinit const CancelToken* InterruptScope::token_ = nullptr;
thread_local constinit size_t InterruptScope::steps_left_ = InterruptScope::kPollSteps;

InterruptScope::InterruptScope(const CancelToken* token) : before_(std::exchange(token_, token)) {}
InterruptScope::~InterruptScope() { token_ = before_; }

Status InterruptScope::Check() { return token_ == nullptr ? Status() : token_->Check(); }

void InterruptScope::Poll() {
  steps_left_ = kPollSteps;
  Status status = Check();
  if (!status.ok()) throw Interrupted(std::move(status));  // tidy: allow(throw) see interrupt.h
}

}  // namespace cellar
