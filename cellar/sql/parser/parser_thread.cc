#include "cellar/sql/parser/parser_thread.h"

#include <csignal>

extern "C" {
#include <pg_query.h>
#include <postgres.h>
// (kept apart: postgres.h first)
#include <mb/pg_wchar.h>
#include <utils/memutils.h>

// The library's own mark that a thread is ready (its pg_query.c); no header declares it.
extern __thread sig_atomic_t pg_query_initialized;
}

namespace cellar::sql {
namespace {

class ParserThread {
 public:
  // As pg_query_init, but for the key.
  ParserThread() {
    if (pg_query_initialized != 0) return;  // readied by somebody else, who frees it too
    pg_query_initialized = 1;
    MemoryContextInit();
    SetDatabaseEncoding(PG_UTF8);
    owns_ = true;
  }
  ~ParserThread() {
    if (!owns_) return;
    pg_query_exit();
    pg_query_initialized = 0;
  }
  ParserThread(const ParserThread&) = delete;
  ParserThread& operator=(const ParserThread&) = delete;
  // Makes the compiler construct it.
  void Ready() const {}

 private:
  bool owns_ = false;
};

}  // namespace

void ReadyParserThread() {
  static thread_local const ParserThread thread;
  thread.Ready();
}

}  // namespace cellar::sql
