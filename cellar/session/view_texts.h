// SQL texts as a reader under any search path needs them: views and the expressions of tables keep
// names as they were written; here they get the schemas that the search path does not lead to.
// Private to this layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cellar/catalog/descriptor.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

// Plans the view's text as it stands; `uses` and `stars`, when not null, get what it names. Under
// the search path of now, or else with the view's own schema and public on it.
Result<std::shared_ptr<const sql::Plan>> PlanViewText(Session::Impl& session,
                                                      const catalog::TableDescriptor& view,
                                                      std::vector<sql::NameUse>* uses,
                                                      std::vector<sql::StarUse>* stars = nullptr);

// What can be done through the view; nothing where its text does not plan any more.
sql::ViewChanges ChangesThroughView(Session::Impl& session, const catalog::TablePtr& view);

enum class Qualify : uint8_t {
  kAll,     // whatever the search path is
  kHidden,  // what it does not find
};

// The view's text with the schemas of relations, types and collations and the view's own names of
// its columns. Text that does not plan any more stays as it is. Plans the text up to twice.
std::string ViewText(Session::Impl& session, const catalog::TableDescriptor& view, Qualify which);

// The same for an expression that `table` keeps: its default, check, index part or predicate.
std::string TableText(Session::Impl& session, const catalog::TableDescriptor& table,
                      const std::string& text);

// The relation that a collation of users is; null for built-in ones.
catalog::TablePtr MadeCollation(const catalog::CatalogSnapshot& catalog,
                                const Collation& collation);

}  // namespace cellar::session
