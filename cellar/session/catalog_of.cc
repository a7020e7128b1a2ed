#include "cellar/session/catalog_of.h"

#include "cellar/session/session_internal.h"

namespace cellar::session {

catalog::SnapshotPtr CatalogOf(Session* session) { return session->impl()->CurrentCatalog(); }
catalog::NamespaceId DatabaseOf(Session* session) { return session->impl()->database_id; }

}  // namespace cellar::session
