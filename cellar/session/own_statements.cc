// Dispatch of the statements that PostgreSQL does not have.
#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

Status Session::Impl::RunOwnStatement(const ast::OwnStmt& statement, Portal*, ResultSink*,
                                      std::string*) {
  switch (statement.own) {
    case ast::OwnKind::kUndrop: return UnsupportedError("UNDROP is not supported");
    case ast::OwnKind::kPurge: return UnsupportedError("PURGE is not supported");
    case ast::OwnKind::kCancelJob: return UnsupportedError("CANCEL JOB is not supported");
    case ast::OwnKind::kCheck: return UnsupportedError("CHECK is not supported");
    case ast::OwnKind::kRepair: return UnsupportedError("REPAIR is not supported");
    case ast::OwnKind::kSetOptions:
      return UnsupportedError("options of schemas and databases are not supported");
  }
  return Status();
}

}  // namespace cellar::session
