// Any bytes as SQL: they parse or give an error; what parses can be written back, and means the
// same when read again. The splitter loses nothing.
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/check.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/parser/scan.h"
#include "cellar/sql/parser/splitter.h"

namespace {

using cellar::sql::Statement;

void CheckStatement(const Statement& statement, std::string_view text) {
  CELLAR_CHECK(statement.ast != nullptr && !statement.tag.empty());
  CELLAR_CHECK(statement.start >= 0 && statement.length > 0);
  CELLAR_CHECK(static_cast<size_t>(statement.start) + statement.length <= text.size());
  const std::string written = cellar::sql::DeparseStatement(*statement.ast);
  if (written.empty() || written.find("XML") != std::string::npos) return;  // not written back
  auto again = cellar::sql::ParseOne(written);
  if (!again.ok()) {
    // Parentheses we add may exceed what the grammar nests.
    CELLAR_CHECK(again.status().sqlstate() == "54001");
    return;
  }
  CELLAR_CHECK(cellar::sql::DeparseStatement(*again->ast) == written);
}

void CheckTokens(std::string_view text) {
  size_t at = 0;
  while (true) {
    const cellar::sql::ScanToken token = cellar::sql::NextToken(text, at);
    CELLAR_CHECK(token.begin >= at && token.end <= text.size());
    if (token.kind == cellar::sql::ScanKind::kEnd) break;
    CELLAR_CHECK(token.end > token.begin);
    at = token.end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto statements = cellar::sql::Parse(text); statements.ok()) {
    for (const Statement& statement : *statements) CheckStatement(statement, text);
  }
  if (auto expr = cellar::sql::ParseExpression(text); expr.ok()) {
    cellar::sql::DeparseExpr(**expr);
  }
  CheckTokens(text);
  cellar::sql::StatementSplitter splitter(size % 2 == 0);
  for (size_t begin = 0; begin < size;) {
    size_t end = text.find('\n', begin);
    end = end == std::string_view::npos ? size : end + 1;
    splitter.Feed(text.substr(begin, end - begin));
    CELLAR_CHECK(splitter.pending().size() <= end);
    begin = end;
  }
  splitter.TakeRest();
  return 0;
}
