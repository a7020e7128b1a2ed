// Dispatch of the statements that PostgreSQL does not have.
#include "cellar/base/sqlstate.h"
#include "cellar/session/jobs.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

std::vector<ResultColumn> ColumnsOf(const ast::OwnStmt& statement) {
  const Type text = MakeType(TypeId::kText);
  if (statement.own == ast::OwnKind::kCheck) {
    return {{"object", text}, {"index", text}, {"problem", text}};
  }
  if (statement.own == ast::OwnKind::kBackup) {
    const Type number = MakeType(TypeId::kInt8);
    return {{"backup", number}, {"files", number}, {"bytes", number}, {"new_bytes", number}};
  }
  if (statement.own == ast::OwnKind::kRepair) return {{"object", text}, {"outcome", text}};
  return {};
}

Status Session::Impl::RunOwnStatement(const ast::OwnStmt& statement, Portal* portal,
                                      ResultSink* sink, std::string* tag) {
  switch (statement.own) {
    case ast::OwnKind::kUndrop:
    case ast::OwnKind::kPurge: return RunBinStatement(statement, sink, tag);
    case ast::OwnKind::kCancelJob: return session::RunCancelJob(this, statement);
    case ast::OwnKind::kResumeJob: return session::RunResumeJob(this, statement);
    case ast::OwnKind::kCheck: return RunCheck(statement, portal, sink);
    case ast::OwnKind::kRepair: return RunRepair(statement, portal, sink);
    case ast::OwnKind::kBackup: return RunBackup(statement, portal);
    case ast::OwnKind::kSetOptions:
      if (statement.dropped) return RunBinStatement(statement, sink, tag);
      return RunSetOptions(statement);
  }
  return Status();
}

}  // namespace cellar::session
