// Expressions as EXPLAIN shows them.
#include <fmt/format.h>

#include "cellar/sql/expr/collate.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/sql/expr/expr.h"
#include "cellar/sql/expr/function.h"

namespace cellar::sql {
namespace {

bool IsOperatorName(std::string_view name) {
  return !name.empty() &&
         std::string_view("+-*/<>=~!@#%^&|`?").find(name[0]) != std::string_view::npos;
}

// One printing. Not kept.
class Printer {
 public:
  Printer(const std::vector<std::string>& names, std::string* out) : names_(names), out_(*out) {}

  void Print(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kConstant: return PrintConstant(e.constant);
      case ExprKind::kColumn: {
        size_t index = static_cast<size_t>(e.index);
        if (index < names_.size())
          out_ += names_[index];
        else
          out_ += fmt::format("column{}", e.index + 1);
        return;
      }
      case ExprKind::kParameter: out_ += fmt::format("${}", e.index + 1); return;
      case ExprKind::kExecParameter: out_ += fmt::format("$slot{}", e.index); return;
      case ExprKind::kCall: return PrintCall(e);
      case ExprKind::kAnd: return Infix(e, " AND ");
      case ExprKind::kOr: return Infix(e, " OR ");
      case ExprKind::kNot: return Around("(NOT ", *e.args[0], ")");
      case ExprKind::kCase: return PrintCase(e);
      case ExprKind::kCoalesce: return List("COALESCE(", e, 0, ")");
      case ExprKind::kNullIf: return List("NULLIF(", e, 0, ")");
      case ExprKind::kGreatest: return List("GREATEST(", e, 0, ")");
      case ExprKind::kLeast: return List("LEAST(", e, 0, ")");
      case ExprKind::kIsNull: return Around("(", *e.args[0], " IS NULL)");
      case ExprKind::kIsNotNull: return Around("(", *e.args[0], " IS NOT NULL)");
      case ExprKind::kIsTrue: return Around("(", *e.args[0], " IS TRUE)");
      case ExprKind::kIsNotTrue: return Around("(", *e.args[0], " IS NOT TRUE)");
      case ExprKind::kIsFalse: return Around("(", *e.args[0], " IS FALSE)");
      case ExprKind::kIsNotFalse: return Around("(", *e.args[0], " IS NOT FALSE)");
      case ExprKind::kIsUnknown: return Around("(", *e.args[0], " IS UNKNOWN)");
      case ExprKind::kIsNotUnknown: return Around("(", *e.args[0], " IS NOT UNKNOWN)");
      case ExprKind::kIsDistinct: return Infix(e, " IS DISTINCT FROM ");
      case ExprKind::kIsNotDistinct: return Infix(e, " IS NOT DISTINCT FROM ");
      case ExprKind::kInList: return PrintIn(e, " IN (");
      case ExprKind::kNotInList: return PrintIn(e, " NOT IN (");
      case ExprKind::kArray: return List("ARRAY[", e, 0, "]");
      case ExprKind::kSubscript:
        Print(*e.args[0]);
        for (size_t i = 1; i < e.args.size(); ++i) Around("[", *e.args[i], "]");
        return;
      case ExprKind::kAnyArray: return PrintAny(e, " ANY (");
      case ExprKind::kAllArray: return PrintAny(e, " ALL (");
      case ExprKind::kRow: return List("ROW(", e, 0, ")");
      case ExprKind::kSubplan: return PrintSubplan(e);
    }
  }

 private:
  void PrintConstant(const Value& value) {
    const Type type = value.type();
    if (value.is_null()) {
      out_ += type.id == TypeId::kUnknown ? "NULL" : "NULL::" + FormatType(type);
      return;
    }
    if (type == MakeType(TypeId::kBool)) {
      out_ += value.datum().bool_value() ? "true" : "false";
      return;
    }
    std::string text;
    AppendDatumText(value.datum(), type, FormatSettings(), &text);
    bool bare = !type.array && (type.id == TypeId::kInt4 || type.id == TypeId::kNumeric) &&
                !text.empty() && text[0] >= '0' && text[0] <= '9';
    if (bare) {
      out_ += text;
      return;
    }
    out_ += '\'';
    for (char c : text) {
      if (c == '\'') out_ += '\'';
      out_ += c;
    }
    out_ += '\'';
    if (type.id != TypeId::kUnknown) out_ += "::" + FormatType(type);
  }

  void PrintCall(const Expr& e) {
    const FunctionSpec& spec = *e.function;
    if (IsCollate(e)) {
      Around("(", *e.args[0], " COLLATE ");
      out_ += fmt::format("\"{}\")", e.type.collation == nullptr ? "C" : e.type.collation->name);
      return;
    }
    if (spec.cast && e.args.size() == 1) {
      Around("(", *e.args[0], ")::");
      out_ += FormatType(e.type);
      return;
    }
    if (IsOperatorName(spec.name)) {
      if (e.args.size() == 1) {
        out_ += fmt::format("({} ", spec.name);
        Print(*e.args[0]);
        out_ += ')';
        return;
      }
      return Infix(e, fmt::format(" {} ", spec.name));
    }
    List(fmt::format("{}(", spec.name), e, 0, ")");
  }

  void PrintCase(const Expr& e) {
    out_ += "CASE";
    for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
      Around(" WHEN ", *e.args[i], " THEN ");
      Print(*e.args[i + 1]);
    }
    Around(" ELSE ", *e.args.back(), " END");
  }

  void PrintIn(const Expr& e, std::string_view word) {
    out_ += '(';
    Print(*e.args[0]);
    List(word, e, 1, "))");
  }

  void PrintAny(const Expr& e, std::string_view word) {
    out_ += '(';
    Print(*e.args[0]);
    out_ += fmt::format(" {}{}", e.function->name, word);
    Print(*e.args[1]);
    out_ += "))";
  }

  void PrintSubplan(const Expr& e) {
    switch (e.subplan_kind) {
      case SubplanKind::kScalar: break;
      case SubplanKind::kExists: out_ += "EXISTS"; break;
      case SubplanKind::kAny:
      case SubplanKind::kAll:
        List("", e, 0, "");
        out_ += fmt::format(" {} {}", e.function ? e.function->name : std::string_view("="),
                            e.subplan_kind == SubplanKind::kAny ? "ANY " : "ALL ");
        break;
      case SubplanKind::kArray: out_ += "ARRAY"; break;
    }
    out_ += fmt::format("(SubPlan {})", e.index + 1);
  }

  void Infix(const Expr& e, std::string_view word) {
    out_ += '(';
    for (size_t i = 0; i < e.args.size(); ++i) {
      if (i > 0) out_ += word;
      Print(*e.args[i]);
    }
    out_ += ')';
  }

  void List(std::string_view open, const Expr& e, size_t start, std::string_view close) {
    out_ += open;
    for (size_t i = start; i < e.args.size(); ++i) {
      if (i > start) out_ += ", ";
      Print(*e.args[i]);
    }
    out_ += close;
  }

  void Around(std::string_view before, const Expr& e, std::string_view after) {
    out_ += before;
    Print(e);
    out_ += after;
  }

  const std::vector<std::string>& names_;
  std::string& out_;
};

}  // namespace

std::string ExprToString(const Expr& expr, const std::vector<std::string>& column_names) {
  std::string out;
  Printer(column_names, &out).Print(expr);
  return out;
}

}  // namespace cellar::sql
