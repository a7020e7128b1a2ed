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

MemoryAccount* Session::Impl::AccountOf(Statement* of) {
  if (of->memory != nullptr) return of->memory.get();
  if (idle_account != nullptr) {
    of->memory = std::move(idle_account);
    return of->memory.get();
  }
  const size_t limit = db->StatementLimit();
  if (memory == nullptr) {
    memory = MemoryAccount::Make(MemoryAccount::Process(), "session", "--statement-mb", 2 * limit);
  }
  of->memory = MemoryAccount::Make(memory.get(), "statement", "--statement-mb", limit);
  return of->memory.get();
}

void Session::Impl::KeepAccount(Statement* of) {
  // What portals and transactions still hold of it stays charged.
  if (of->memory == nullptr || of->memory->used() != 0) return;
  const bool trim = of->memory->peak() >= kTrimBytes;
  if (idle_account == nullptr && !trim) idle_account = std::move(of->memory);
  of->memory.reset();
  if (trim) ::malloc_trim(0);
}

Status Session::Impl::ChargeNamed(Statement* of, Prepared* prepared) {
  // A byte of text becomes some thirty of a tree.
  constexpr size_t kTreeBytes = 32;
  size_t bytes = sizeof(Prepared) + prepared->text.size() * (1 + kTreeBytes);
  if (prepared->plan != nullptr) bytes += prepared->plan->expressions * sizeof(sql::Expr);
  AccountOf(of);  // the session's account exists from here on
  MemoryCharge charge(memory.get());
  CELLAR_TRY(charge.Resize(bytes));
  prepared->charge = std::move(charge);
  return Status();
}

void Session::Impl::FailThrown() {
  // Undoing takes little, and there is more memory now.
  (void)CatchOutOfMemory([this] {
    Fail();
    return Status();
  });
}

}  // namespace cellar::session
