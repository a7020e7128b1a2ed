// Precedence climbing over a few token kinds; binds while it reads.
#include "cellar/sql/expr/test_parser.h"

#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/function.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar::sql::testing {
namespace {

constexpr int kLiteral = -2;  // location of a number as it was written

enum class Kind : uint8_t { kEnd, kNumber, kString, kWord, kQuoted, kSymbol };
struct Token {
  Kind kind = Kind::kEnd;
  std::string text;
};

bool IsOperatorChar(char c) {
  return std::string_view("+-*/<>=~!@#%^&|`?").find(c) != std::string_view::npos;
}

Status Syntax(std::string_view near) {
  return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "syntax error at or near \"{}\"", near);
}

Result<std::vector<Token>> Scan(std::string_view in) {
  std::vector<Token> out;
  const auto alpha = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < in.size();) {
    char c = in[i];
    if (c == ' ' || c == '\n' || c == '\t') {
      ++i;
      continue;
    }
    Token token;
    const bool escapes = (c == 'E' || c == 'e') && i + 1 < in.size() && in[i + 1] == '\'';
    if (c == '\'' || escapes) {
      token.kind = Kind::kString;
      i += escapes ? 2 : 1;
      for (; i < in.size(); ++i) {
        if (in[i] == '\'') {
          if (i + 1 < in.size() && in[i + 1] == '\'')
            ++i;
          else
            break;
        } else if (escapes && in[i] == '\\' && i + 1 < in.size()) {
          ++i;
          char e = in[i];
          token.text += e == 'n' ? '\n' : e == 't' ? '\t' : e == 'r' ? '\r' : e;
          continue;
        }
        token.text += in[i];
      }
      ++i;
    } else if (c == '"') {
      token.kind = Kind::kQuoted;
      for (++i; i < in.size() && in[i] != '"'; ++i) token.text += in[i];
      ++i;
    } else if (digit(c) || (c == '.' && i + 1 < in.size() && digit(in[i + 1]))) {
      token.kind = Kind::kNumber;
      while (i < in.size() &&
             (digit(in[i]) || in[i] == '.' || in[i] == 'e' || in[i] == 'E' ||
              ((in[i] == '-' || in[i] == '+') && (in[i - 1] == 'e' || in[i - 1] == 'E')))) {
        token.text += in[i++];
      }
    } else if (alpha(c)) {
      token.kind = Kind::kWord;
      while (i < in.size() && (alpha(in[i]) || digit(in[i]))) {
        char w = in[i++];
        token.text += w >= 'A' && w <= 'Z' ? static_cast<char>(w + 32) : w;
      }
    } else if (IsOperatorChar(c)) {
      token.kind = Kind::kSymbol;
      while (i < in.size() && IsOperatorChar(in[i])) token.text += in[i++];
      // A trailing + or - belongs to the operator only with certain other characters.
      while (token.text.size() > 1 && (token.text.back() == '-' || token.text.back() == '+') &&
             token.text.find_first_of("~!@#%^&|`?") == std::string::npos) {
        token.text.pop_back();
        --i;
      }
    } else {
      token.kind = Kind::kSymbol;
      token.text = in.substr(i, in.substr(i, 2) == "::" ? 2 : 1);
      i += token.text.size();
    }
    out.push_back(std::move(token));
  }
  out.emplace_back();
  return out;
}

class Binder {
 public:
  Binder(std::vector<Token> tokens, const std::vector<TestColumn>& columns, EvalContext* context)
      : tokens_(std::move(tokens)), columns_(columns), context_(context) {}

  Result<ExprPtr> Run() {
    CELLAR_TRY_ASSIGN(ExprPtr out, Parse(0));
    if (Peek().kind != Kind::kEnd) return Syntax(Peek().text);
    return out;
  }

 private:
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)];
  }
  bool IsWord(std::string_view word, size_t ahead = 0) const {
    return Peek(ahead).kind == Kind::kWord && Peek(ahead).text == word;
  }
  bool IsSymbol(std::string_view symbol, size_t ahead = 0) const {
    return Peek(ahead).kind == Kind::kSymbol && Peek(ahead).text == symbol;
  }
  bool TakeWord(std::string_view word) {
    if (!IsWord(word)) return false;
    ++pos_;
    return true;
  }
  bool TakeSymbol(std::string_view symbol) {
    if (!IsSymbol(symbol)) return false;
    ++pos_;
    return true;
  }
  Status Expect(std::string_view symbol) {
    return TakeSymbol(symbol) ? Status() : Syntax(Peek().text);
  }

  ExprPtr Node(ExprKind kind, Type type = MakeType(TypeId::kBool)) {
    auto out = std::make_unique<Expr>();
    out->kind = kind;
    out->type = type;
    return out;
  }
  Result<ExprPtr> Implicit(ExprPtr expr, Type type) {
    return CastTo(std::move(expr), type, CastContext::kImplicit, context_);
  }
  Result<ExprPtr> Boolean(ExprPtr expr) {
    return Implicit(std::move(expr), MakeType(TypeId::kBool));
  }

  Result<ExprPtr> Apply(Result<ResolvedFunction> resolved, std::vector<ExprPtr> args) {
    if (!resolved.ok()) return std::move(resolved).status();
    auto out = Node(ExprKind::kCall, resolved->result);
    out->function = resolved->spec;
    if (out->function->cast) out->explicit_cast = true;
    for (size_t i = 0; i < args.size(); ++i) {
      CELLAR_TRY_ASSIGN(ExprPtr arg, Implicit(std::move(args[i]), resolved->arg_types[i]));
      out->args.push_back(std::move(arg));
    }
    return out;
  }
  std::vector<Type> TypesOf(const std::vector<ExprPtr>& args) {
    std::vector<Type> out;
    for (const ExprPtr& arg : args) out.push_back(arg->type);
    return out;
  }
  Result<ExprPtr> Call(std::string_view name, std::vector<ExprPtr> args) {
    std::vector<Type> types = TypesOf(args);
    return Apply(ResolveFunction(name, types), std::move(args));
  }
  Result<ExprPtr> Operator(std::string_view op, ExprPtr a, ExprPtr b) {
    std::vector<ExprPtr> args;
    args.push_back(std::move(a));
    if (b != nullptr) args.push_back(std::move(b));
    std::vector<Type> types = TypesOf(args);
    return Apply(ResolveOperator(op, types), std::move(args));
  }
  // Brings all to their common type.
  Result<Type> Unify(std::vector<ExprPtr>* args, std::string_view what, size_t start = 0,
                     size_t step = 1) {
    std::vector<Type> types;
    for (size_t i = start; i < args->size(); i += step) types.push_back((*args)[i]->type);
    CELLAR_TRY_ASSIGN(Type type, CommonType(types, what));
    for (size_t i = start; i < args->size(); i += step) {
      CELLAR_TRY_ASSIGN((*args)[i], Implicit(std::move((*args)[i]), type));
    }
    return type;
  }

  Result<std::vector<ExprPtr>> List(std::string_view close) {
    std::vector<ExprPtr> out;
    if (TakeSymbol(close)) return out;
    do {
      CELLAR_TRY_ASSIGN(ExprPtr item, Parse(0));
      out.push_back(std::move(item));
    } while (TakeSymbol(","));
    CELLAR_TRY(Expect(close));
    return out;
  }

  Result<Type> TypeName() {
    std::string name = Peek().text;
    const bool quoted = Peek().kind == Kind::kQuoted;
    ++pos_;
    if (name == "double" && TakeWord("precision")) name = "float8";
    if (name == "character" && TakeWord("varying")) name = "varchar";
    if (quoted && name == "char") name = "\"char\"";
    int a = -1, b = 0;
    if (IsSymbol("(")) {
      ++pos_;
      a = std::stoi(Peek().text);
      ++pos_;
      if (TakeSymbol(",")) {
        b = std::stoi(Peek().text);
        ++pos_;
      }
      CELLAR_TRY(Expect(")"));
    }
    if (name == "timestamp" || name == "time") {
      if (TakeWord("with")) {
        pos_ += 2;
        name += "tz";
      } else if (TakeWord("without")) {
        pos_ += 2;
      }
    }
    if (name == "character" || name == "char") {
      name = "bpchar";
      if (a < 0) a = 1;
    }
    std::optional<Type> type =
        name == "\"char\"" ? std::optional<Type>(MakeType(TypeId::kChar)) : TypeFromName(name);
    if (!type.has_value()) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject, "type \"{}\" does not exist",
                      name);
    }
    if (a >= 0) {
      switch (type->id) {
        case TypeId::kVarchar:
        case TypeId::kBpchar: type->modifier = a + 4; break;
        case TypeId::kNumeric: {
          CELLAR_TRY_ASSIGN(type->modifier, numeric::MakeModifier(a, b));
          break;
        }
        default: type->modifier = a; break;
      }
    }
    while (IsSymbol("[")) {
      pos_ += IsSymbol("]", 1) ? 2 : 3;
      type->array = true;
    }
    return *type;
  }

  Result<ExprPtr> String(std::string text) {
    return MakeConstant(Value(MakeType(TypeId::kUnknown), Datum::Bytes(text)));
  }

  Result<ExprPtr> Number(std::string text) {
    if (text.find_first_of(".eE") == std::string::npos && text.size() <= 20) {
      int64_t value = 0;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc()) return Numeric(text);
      TypeId id = value == static_cast<int32_t>(value) ? TypeId::kInt4 : TypeId::kInt8;
      return MakeConstant(Value(MakeType(id), Datum::Int(value)));
    }
    return Numeric(text);
  }
  Result<ExprPtr> Numeric(std::string_view text) {
    Arena arena;
    CELLAR_TRY_ASSIGN(std::string_view value, numeric::Parse(text, &arena));
    return MakeConstant(Value(MakeType(TypeId::kNumeric), Datum::Bytes(value)));
  }

  Result<ExprPtr> Case() {
    std::vector<ExprPtr> arms;
    ExprPtr subject;
    if (!IsWord("when")) {
      CELLAR_TRY_ASSIGN(subject, Parse(0));
    }
    while (TakeWord("when")) {
      CELLAR_TRY_ASSIGN(ExprPtr when, Parse(0));
      if (subject != nullptr) {
        CELLAR_TRY_ASSIGN(when, Operator("=", CloneExpr(*subject), std::move(when)));
      }
      CELLAR_TRY_ASSIGN(when, Boolean(std::move(when)));
      if (!TakeWord("then")) return Syntax(Peek().text);
      CELLAR_TRY_ASSIGN(ExprPtr then, Parse(0));
      arms.push_back(std::move(when));
      arms.push_back(std::move(then));
    }
    ExprPtr otherwise = MakeNull(MakeType(TypeId::kUnknown));
    if (TakeWord("else")) {
      CELLAR_TRY_ASSIGN(otherwise, Parse(0));
    }
    if (!TakeWord("end")) return Syntax(Peek().text);
    std::vector<ExprPtr> values;
    values.push_back(std::move(otherwise));
    for (size_t i = 1; i < arms.size(); i += 2) values.push_back(std::move(arms[i]));
    CELLAR_TRY_ASSIGN(Type type, Unify(&values, "CASE"));
    auto out = Node(ExprKind::kCase, type);
    for (size_t i = 0; i < arms.size(); i += 2) {
      out->args.push_back(std::move(arms[i]));
      out->args.push_back(std::move(values[i / 2 + 1]));
    }
    out->args.push_back(std::move(values[0]));
    return out;
  }

  Result<ExprPtr> Array() {
    CELLAR_TRY(Expect("["));
    CELLAR_TRY_ASSIGN(std::vector<ExprPtr> items, List("]"));
    if (items.empty()) {
      auto out = Node(ExprKind::kArray, ArrayOf(TypeId::kText));
      return out;
    }
    CELLAR_TRY_ASSIGN(Type type, Unify(&items, "ARRAY"));
    auto out = Node(ExprKind::kArray, ArrayOf(type.id));
    out->args = std::move(items);
    return out;
  }

  Result<ExprPtr> Primary() {
    Token token = Peek();
    ++pos_;
    if (token.kind == Kind::kNumber) {
      CELLAR_TRY_ASSIGN(ExprPtr number, Number(token.text));
      number->location = kLiteral;
      return number;
    }
    if (token.kind == Kind::kSymbol && token.text == "[") {
      --pos_;
      return Array();
    }
    if (token.kind == Kind::kString) return String(token.text);
    if (token.kind == Kind::kSymbol && token.text == "(") {
      CELLAR_TRY_ASSIGN(std::vector<ExprPtr> items, List(")"));
      if (items.size() == 1) return std::move(items[0]);
      auto out = Node(ExprKind::kRow, MakeType(TypeId::kRecord));
      out->args = std::move(items);
      return FinishRow(std::move(out));
    }
    if (token.kind == Kind::kSymbol) {
      CELLAR_TRY_ASSIGN(ExprPtr operand, Parse(token.text == "-" || token.text == "+" ? 11 : 8));
      if (token.text == "-" && operand->location == kLiteral) {
        // A minus before a literal is part of it: -2147483648 is an integer.
        std::string text;
        AppendDatumText(operand->constant.datum(), operand->type, FormatSettings(), &text);
        text = text[0] == '-' ? text.substr(1) : "-" + text;
        CELLAR_TRY_ASSIGN(operand, Number(text));
        operand->location = kLiteral;
        return operand;
      }
      return Operator(token.text, std::move(operand), nullptr);
    }
    if (token.kind != Kind::kWord && token.kind != Kind::kQuoted) return Syntax(token.text);
    return Word(token);
  }

  Result<ExprPtr> FinishRow(ExprPtr row) {
    for (ExprPtr& arg : row->args) {
      if (arg->type.id == TypeId::kUnknown) {
        CELLAR_TRY_ASSIGN(arg, Implicit(std::move(arg), MakeType(TypeId::kText)));
      }
    }
    return row;
  }

  Result<ExprPtr> Word(const Token& token) {
    const std::string& word = token.text;
    if (token.kind == Kind::kWord) {
      if (word == "null") return MakeNull(MakeType(TypeId::kUnknown));
      if (word == "true" || word == "false") return MakeBoolConstant(word == "true");
      if (word == "case") return Case();
      if (word == "array") return Array();
      if (word == "row" && IsSymbol("(")) {
        ++pos_;
        CELLAR_TRY_ASSIGN(std::vector<ExprPtr> items, List(")"));
        auto out = Node(ExprKind::kRow, MakeType(TypeId::kRecord));
        out->args = std::move(items);
        return FinishRow(std::move(out));
      }
      if (word == "cast") {
        CELLAR_TRY(Expect("("));
        CELLAR_TRY_ASSIGN(ExprPtr operand, Parse(0));
        if (!TakeWord("as")) return Syntax(Peek().text);
        CELLAR_TRY_ASSIGN(Type type, TypeName());
        CELLAR_TRY(Expect(")"));
        return CastTo(std::move(operand), type, CastContext::kExplicit, context_);
      }
      if (word == "extract") {
        CELLAR_TRY(Expect("("));
        std::vector<ExprPtr> args;
        CELLAR_TRY_ASSIGN(ExprPtr field, String(Peek().text));
        pos_ += 2;
        CELLAR_TRY_ASSIGN(ExprPtr from, Parse(0));
        CELLAR_TRY(Expect(")"));
        args.push_back(std::move(field));
        args.push_back(std::move(from));
        return Call("extract", std::move(args));
      }
      if (word.starts_with("current_") || word == "localtime" || word == "localtimestamp" ||
          word == "session_user" || word == "user") {
        if (!IsSymbol("(")) return Call(word, {});
      }
    }
    if (Peek().kind == Kind::kString || (token.kind == Kind::kWord && word == "double") ||
        ((word == "timestamp" || word == "time") && (IsWord("with") || IsWord("without")))) {
      --pos_;
      CELLAR_TRY_ASSIGN(Type type, TypeName());
      CELLAR_TRY_ASSIGN(ExprPtr literal, String(Peek().text));
      ++pos_;
      return CastTo(std::move(literal), type, CastContext::kExplicit, context_);
    }
    if (TakeSymbol("(")) {
      CELLAR_TRY_ASSIGN(std::vector<ExprPtr> args, List(")"));
      if (word == "coalesce" || word == "greatest" || word == "least") {
        CELLAR_TRY_ASSIGN(Type type, Unify(&args, word == "coalesce"   ? "COALESCE"
                                                  : word == "greatest" ? "GREATEST"
                                                                       : "LEAST"));
        auto out = Node(word == "coalesce"   ? ExprKind::kCoalesce
                        : word == "greatest" ? ExprKind::kGreatest
                                             : ExprKind::kLeast,
                        type);
        out->args = std::move(args);
        return out;
      }
      if (word == "nullif") {
        CELLAR_TRY_ASSIGN(ExprPtr call, Operator("=", std::move(args[0]), std::move(args[1])));
        auto out = Node(ExprKind::kNullIf, call->args[0]->type);
        out->function = call->function;
        out->args = std::move(call->args);
        return out;
      }
      return Call(word, std::move(args));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == word) return MakeColumn(static_cast<int>(i), columns_[i].type);
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                    word);
  }

  Result<ExprPtr> Postfix() {
    CELLAR_TRY_ASSIGN(ExprPtr out, Primary());
    while (true) {
      if (TakeSymbol("::")) {
        CELLAR_TRY_ASSIGN(Type type, TypeName());
        out->location = -1;
        CELLAR_TRY_ASSIGN(out, CastTo(std::move(out), type, CastContext::kExplicit, context_));
      } else if (IsSymbol("[")) {
        Type element = ElementTypeOf(out->type);
        auto subscript = Node(ExprKind::kSubscript, element);
        subscript->args.push_back(std::move(out));
        while (TakeSymbol("[")) {
          CELLAR_TRY_ASSIGN(ExprPtr index, Parse(0));
          CELLAR_TRY(Expect("]"));
          CELLAR_TRY_ASSIGN(index, Implicit(std::move(index), MakeType(TypeId::kInt4)));
          subscript->args.push_back(std::move(index));
        }
        out = std::move(subscript);
      } else if (IsWord("at") && IsWord("time", 1)) {
        pos_ += 3;
        std::vector<ExprPtr> args;
        CELLAR_TRY_ASSIGN(ExprPtr zone, Primary());
        args.push_back(std::move(zone));
        args.push_back(std::move(out));
        CELLAR_TRY_ASSIGN(out, Call("timezone", std::move(args)));
      } else {
        return out;
      }
    }
  }

  static int Precedence(std::string_view op) {
    if (op == "=" || op == "<" || op == ">" || op == "<=" || op == ">=" || op == "<>" ||
        op == "!=") {
      return 5;
    }
    if (op == "+" || op == "-") return 9;
    if (op == "*" || op == "/" || op == "%") return 10;
    if (op == "^") return 11;
    return 8;
  }

  Result<ExprPtr> Parse(int least) {
    ExprPtr left;
    if (least <= 3 && TakeWord("not")) {
      CELLAR_TRY_ASSIGN(ExprPtr operand, Parse(3));
      CELLAR_TRY_ASSIGN(operand, Boolean(std::move(operand)));
      left = Node(ExprKind::kNot);
      left->args.push_back(std::move(operand));
    } else {
      CELLAR_TRY_ASSIGN(left, Postfix());
    }
    while (true) {
      const Token& token = Peek();
      if (token.kind == Kind::kSymbol && IsOperatorChar(token.text[0])) {
        const int precedence = Precedence(token.text);
        if (precedence < least) return left;
        std::string op = token.text;
        ++pos_;
        if (IsWord("any") || IsWord("all")) {
          CELLAR_TRY_ASSIGN(left, AnyArray(op, std::move(left)));
          continue;
        }
        CELLAR_TRY_ASSIGN(ExprPtr right, Parse(precedence + 1));
        CELLAR_TRY_ASSIGN(left, Operator(op, std::move(left), std::move(right)));
        continue;
      }
      if (token.kind != Kind::kWord) return left;
      if ((token.text == "and" && least <= 2) || (token.text == "or" && least <= 1)) {
        const bool is_and = token.text == "and";
        ++pos_;
        CELLAR_TRY_ASSIGN(ExprPtr right, Parse(is_and ? 3 : 2));
        auto out = Node(is_and ? ExprKind::kAnd : ExprKind::kOr);
        CELLAR_TRY_ASSIGN(left, Boolean(std::move(left)));
        CELLAR_TRY_ASSIGN(right, Boolean(std::move(right)));
        out->args.push_back(std::move(left));
        out->args.push_back(std::move(right));
        left = std::move(out);
        continue;
      }
      if (token.text == "is" && least <= 4) {
        ++pos_;
        CELLAR_TRY_ASSIGN(left, Is(std::move(left)));
        continue;
      }
      if (least <= 6 &&
          (token.text == "in" || token.text == "like" || token.text == "ilike" ||
           token.text == "similar" || token.text == "between" || token.text == "not")) {
        CELLAR_TRY_ASSIGN(left, Membership(std::move(left)));
        continue;
      }
      return left;
    }
  }

  Result<ExprPtr> AnyArray(std::string_view op, ExprPtr left) {
    const bool any = IsWord("any");
    ++pos_;
    CELLAR_TRY(Expect("("));
    CELLAR_TRY_ASSIGN(ExprPtr array, Parse(0));
    CELLAR_TRY(Expect(")"));
    if (array->type.id == TypeId::kUnknown) {
      CELLAR_TRY_ASSIGN(array, Implicit(std::move(array), ArrayOf(left->type.id)));
    }
    Type pair[2] = {left->type, ElementTypeOf(array->type)};
    CELLAR_TRY_ASSIGN(ResolvedFunction resolved, ResolveOperator(op, pair));
    auto out = Node(any ? ExprKind::kAnyArray : ExprKind::kAllArray);
    out->function = resolved.spec;
    CELLAR_TRY_ASSIGN(left, Implicit(std::move(left), resolved.arg_types[0]));
    if (!resolved.arg_types[1].SameKind(ElementTypeOf(array->type))) {
      CELLAR_TRY_ASSIGN(array, Implicit(std::move(array), ArrayOf(resolved.arg_types[1].id)));
    }
    out->args.push_back(std::move(left));
    out->args.push_back(std::move(array));
    return out;
  }

  Result<ExprPtr> Is(ExprPtr left) {
    const bool negated = TakeWord("not");
    ExprKind kind;
    if (TakeWord("null"))
      kind = negated ? ExprKind::kIsNotNull : ExprKind::kIsNull;
    else if (TakeWord("true"))
      kind = negated ? ExprKind::kIsNotTrue : ExprKind::kIsTrue;
    else if (TakeWord("false"))
      kind = negated ? ExprKind::kIsNotFalse : ExprKind::kIsFalse;
    else if (TakeWord("unknown"))
      kind = negated ? ExprKind::kIsNotUnknown : ExprKind::kIsUnknown;
    else if (TakeWord("distinct")) {
      ++pos_;
      CELLAR_TRY_ASSIGN(ExprPtr right, Parse(5));
      CELLAR_TRY_ASSIGN(ExprPtr call, Operator("=", std::move(left), std::move(right)));
      call->kind = negated ? ExprKind::kIsNotDistinct : ExprKind::kIsDistinct;
      return call;
    } else {
      return Syntax(Peek().text);
    }
    if (kind >= ExprKind::kIsTrue) {
      CELLAR_TRY_ASSIGN(left, Boolean(std::move(left)));
    }
    auto out = Node(kind);
    out->args.push_back(std::move(left));
    return out;
  }

  Result<ExprPtr> Membership(ExprPtr left) {
    const bool negated = TakeWord("not");
    if (TakeWord("in")) {
      CELLAR_TRY(Expect("("));
      CELLAR_TRY_ASSIGN(std::vector<ExprPtr> items, List(")"));
      items.insert(items.begin(), std::move(left));
      CELLAR_TRY_ASSIGN(Type type, Unify(&items, "IN"));
      (void)type;
      auto out = Node(negated ? ExprKind::kNotInList : ExprKind::kInList);
      out->args = std::move(items);
      return out;
    }
    if (TakeWord("between")) {
      CELLAR_TRY_ASSIGN(ExprPtr low, Parse(8));
      if (!TakeWord("and")) return Syntax(Peek().text);
      CELLAR_TRY_ASSIGN(ExprPtr high, Parse(8));
      auto out = Node(ExprKind::kAnd);
      CELLAR_TRY_ASSIGN(ExprPtr first, Operator(">=", CloneExpr(*left), std::move(low)));
      CELLAR_TRY_ASSIGN(ExprPtr second, Operator("<=", std::move(left), std::move(high)));
      out->args.push_back(std::move(first));
      out->args.push_back(std::move(second));
      if (!negated) return out;
      auto inverse = Node(ExprKind::kNot);
      inverse->args.push_back(std::move(out));
      return inverse;
    }
    std::string op = IsWord("ilike") ? "~~*" : IsWord("similar") ? "~" : "~~";
    const bool similar = IsWord("similar");
    pos_ += similar ? 2 : 1;
    if (IsWord("any") || IsWord("all")) return AnyArray(negated ? "!" + op : op, std::move(left));
    CELLAR_TRY_ASSIGN(ExprPtr pattern, Parse(8));
    if (similar || IsWord("escape")) {
      std::vector<ExprPtr> args;
      args.push_back(std::move(pattern));
      if (TakeWord("escape")) {
        CELLAR_TRY_ASSIGN(ExprPtr escape, Parse(8));
        args.push_back(std::move(escape));
      }
      CELLAR_TRY_ASSIGN(pattern,
                        Call(similar ? "similar_to_escape" : "like_escape", std::move(args)));
    }
    return Operator(negated ? "!" + op : op, std::move(left), std::move(pattern));
  }

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  const std::vector<TestColumn>& columns_;
  EvalContext* context_;
};

}  // namespace

Result<ExprPtr> Bind(std::string_view text, const std::vector<TestColumn>& columns,
                     EvalContext* context) {
  CELLAR_TRY_ASSIGN(std::vector<Token> tokens, Scan(text));
  return Binder(std::move(tokens), columns, context).Run();
}

}  // namespace cellar::sql::testing
