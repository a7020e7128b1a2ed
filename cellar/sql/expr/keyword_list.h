// Keywords as text: "abort:U+ absolute:U+ ...". Private to this layer.
#pragma once

namespace cellar::sql {

extern const char* const kKeywordList;

}  // namespace cellar::sql
