#include "cellar/sql/parser/keywords.h"

#include <string>

#include "cellar/sql/parser/pg_walker.h"

namespace cellar::sql {

namespace {

KeywordCategory CategoryOf(int index) {
  switch (ScanKeywordCategories[index]) {
    case UNRESERVED_KEYWORD: return KeywordCategory::kUnreserved;
    case COL_NAME_KEYWORD: return KeywordCategory::kColumnName;
    case TYPE_FUNC_NAME_KEYWORD: return KeywordCategory::kTypeOrFunction;
    default: return KeywordCategory::kReserved;
  }
}

}  // namespace

KeywordCategory FindKeyword(std::string_view word) {
  if (word.size() > static_cast<size_t>(ScanKeywords.max_kw_len)) return KeywordCategory::kNone;
  const int index = ScanKeywordLookup(std::string(word).c_str(), &ScanKeywords);
  return index < 0 ? KeywordCategory::kNone : CategoryOf(index);
}

const std::vector<Keyword>& Keywords() {
  static const std::vector<Keyword> all = [] {
    std::vector<Keyword> out;
    for (int i = 0; i < ScanKeywords.num_keywords; ++i) {
      out.push_back({GetScanKeyword(i, &ScanKeywords), CategoryOf(i)});
    }
    return out;
  }();
  return all;
}

}  // namespace cellar::sql
