// What statements and sessions may hold.
#include <malloc.h>

#include <algorithm>

#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

constexpr size_t kLeastStatementBytes = size_t{512} << 20;
// A statement that held more gives what the allocator keeps of it back to the system.
constexpr size_t kTrimBytes = size_t{64} << 20;

}  // namespace

size_t Database::Impl::StatementLimit() const {
  if (options.statement_limit_bytes != 0) return options.statement_limit_bytes;
  return std::min(std::max(8 * options.memory_limit_bytes, kLeastStatementBytes),
                  MemoryAccount::Process()->limit() / 4);
}

MemoryAccount* Session::Impl::StatementMemory() {
  if (guarded_calls > 0) return statement_memory.get();
  const size_t limit = db->StatementLimit();
  if (memory == nullptr) {
    memory = MemoryAccount::Make(MemoryAccount::Process(), "session", "--statement-mb", 2 * limit);
  }
  // Portals and plans of earlier statements may live on in theirs.
  if (statement_memory != nullptr && statement_memory->used() != 0) statement_memory.reset();
  if (statement_memory == nullptr) {
    statement_memory = MemoryAccount::Make(memory.get(), "statement", "--statement-mb", limit);
  }
  return statement_memory.get();
}

Session::Impl::GuardedCall::GuardedCall(Impl* session)
    : session_(session), scope_(session->StatementMemory()), interrupt_(&session->cancel) {
  ++session_->guarded_calls;
}

Session::Impl::GuardedCall::~GuardedCall() {
  if (--session_->guarded_calls > 0 || session_->statement_memory->peak() < kTrimBytes) return;
  session_->statement_memory.reset();
  ::malloc_trim(0);
}

void Session::Impl::FailThrown() {
  // Undoing takes little, and there is more memory now.
  (void)CatchOutOfMemory([this] {
    Fail();
    return Status();
  });
}

}  // namespace cellar::session
