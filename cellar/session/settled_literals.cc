#include "cellar/session/settled_literals.h"

#include <map>

#include "cellar/sql/expr/expr.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::session {

std::string SettleLiterals(const std::string& text, const catalog::TableDescriptor& table,
                           Type target, sql::PlannerContext& context,
                           const std::function<std::string(Type)>& name_of) {
  const Result<sql::ast::ExprPtr> parsed = sql::ParseExpression(text);
  if (!parsed.ok()) return text;
  const Result<sql::ExprPtr> bound = sql::BindTableExpression(**parsed, &table, target, context);
  if (!bound.ok()) return text;
  std::map<size_t, Type> types;  // by place
  sql::VisitExpr(**bound, [&](const sql::Expr& expr) {
    if (expr.kind == sql::ExprKind::kConstant && expr.location >= 0 &&
        expr.type.id != TypeId::kUnknown)
      types[static_cast<size_t>(expr.location)] = expr.type;
  });
  std::string out;
  for (size_t at = 0;;) {
    const sql::ScanToken token = sql::NextToken(text, at);
    out.append(text, at, token.end - at);
    if (token.kind == sql::ScanKind::kEnd) return out;
    at = token.end;
    const auto type = types.find(token.begin);
    if (token.kind != sql::ScanKind::kString || type == types.end()) continue;
    if (text.compare(sql::SkipBlanks(text, at), 2, "::") == 0) continue;
    // As in PostgreSQL the constant has no modifier; `character` alone would mean character(1).
    Type plain = type->second;
    plain.modifier = -1;
    plain.collation = nullptr;
    const bool padded = plain.id == TypeId::kBpchar;
    out += "::" + (padded ? std::string(plain.array ? "bpchar[]" : "bpchar") : name_of(plain));
  }
}

}  // namespace cellar::session
