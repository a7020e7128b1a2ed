// cellar.v1.Admin: the catalog over gRPC, by the statements of SQL that do the same.
#pragma once

#include <functional>
#include <memory>

#include "cellar/rpc/server/server.h"
#include "cellar/session/session.h"

namespace cellar::rpc {

// Opens a session for one caller. Thread-safe.
using SessionFactory = std::function<Result<std::unique_ptr<session::Session>>(const Identity&)>;

// For Server::Start. The database behind the factory outlives the service. Each call opens a
// session of its own. It waits in its destructor for statements that calls left behind (`wait` was
// false), having cancelled them: their jobs go on at the next start only if Database::BeginShutdown
// came before.
ServiceFactory AdminServiceFactory(SessionFactory sessions);

}  // namespace cellar::rpc
