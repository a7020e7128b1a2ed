// What a session sees of the catalog, for doors that show it otherwise than as rows.
#pragma once

#include "cellar/catalog/catalog.h"
#include "cellar/session/session.h"

namespace cellar::session {

// As the session's next statement would see it: with the changes of its transaction, or the newest.
// The session's thread. Cost: none.
catalog::SnapshotPtr CatalogOf(Session* session);
// The namespace of the session's database, which is also its schema public.
catalog::NamespaceId DatabaseOf(Session* session);

}  // namespace cellar::session
