#include "cellar/sql/parser/parser.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <span>

#include "cellar/base/check.h"
#include "cellar/sql/parser/comments.h"
#include "cellar/sql/parser/own_grammar.h"
#include "cellar/sql/parser/parser_thread.h"
#include "cellar/sql/parser/pg_walker.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::sql {

namespace {

// Offset of the first byte that is not part of valid UTF-8, or npos. A zero byte is not valid here.
size_t FindInvalidUtf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const size_t size = text.size();
  size_t i = 0;
  while (i < size) {
    uint64_t word;
    if (i + 8 <= size) {  // eight ASCII bytes, none zero
      std::memcpy(&word, bytes + i, 8);
      if ((word & 0x8080808080808080u) == 0 &&
          ((word - 0x0101010101010101u) & ~word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const unsigned char c = bytes[i];
    if (c == 0) return i;
    if (c < 0x80) {
      ++i;
      continue;
    }
    const int extra = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    if (c < 0xC2 || c > 0xF4 || i + extra >= size) return i;
    const unsigned char second = bytes[i + 1];
    const unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (second < low || second > high) return i;
    for (int k = 2; k <= extra; ++k) {
      if ((bytes[i + k] & 0xC0) != 0x80) return i;
    }
    i += extra + 1;
  }
  return std::string_view::npos;
}

Status CheckText(std::string_view text) {
  if (text.size() > kMaxStatementBytes) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "statement is too long: {} bytes, limit {}", text.size(), kMaxStatementBytes);
  }
  const size_t bad = FindInvalidUtf8(text);
  if (bad == std::string_view::npos) return Status();
  const auto byte = static_cast<unsigned char>(text[bad]);
  // PostgreSQL names the bytes that the first one promised.
  size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
  length = std::min(length, text.size() - bad);
  std::string bytes;
  for (size_t i = 0; i < length; ++i) {
    bytes += fmt::format("{}0x{:02x}", i == 0 ? "" : " ",
                         static_cast<unsigned>(static_cast<unsigned char>(text[bad + i])));
  }
  return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                  "invalid byte sequence for encoding \"UTF8\": {}", bytes);
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The grammar gives no SQLSTATE; its messages are few.
Status FromGrammar(const PgQueryError& error, int prefix_characters) {
  std::string message = error.message == nullptr ? "syntax error" : error.message;
  Code code = Code::kInvalid;
  std::string_view state = sqlstate::kSyntaxError;
  if (Contains(message, "memory exhausted") || Contains(message, "stack depth")) {
    code = Code::kLimit;
    state = sqlstate::kStatementTooComplex;
    message = "stack depth limit exceeded";
  } else if (Contains(message, "out of memory")) {
    code = Code::kLimit;
    state = sqlstate::kOutOfMemory;
  } else if (Contains(message, "not yet implemented") || Contains(message, "not supported") ||
             Contains(message, "cannot be marked")) {
    code = Code::kUnsupported;
    state = sqlstate::kFeatureNotSupported;
  } else if (Contains(message, "invalid byte sequence")) {
    state = sqlstate::kCharacterNotInRepertoire;
  } else if (message.starts_with("frame start") || message.starts_with("frame end")) {
    state = sqlstate::kWindowingError;
  } else if (Contains(message, "precision for type float")) {
    state = sqlstate::kInvalidParameterValue;
  } else if (Contains(message, "nonstandard use of escape") || Contains(message, "unsafe use of")) {
    state = "22P06";
  } else if (Contains(message, "invalid Unicode escape value") ||
             Contains(message, "invalid Unicode surrogate pair")) {
    state = sqlstate::kSyntaxError;
  }
  Status status = SqlError(code, state, "{}", message);
  const int position = error.cursorpos - prefix_characters;
  if (error.cursorpos > 0 && position > 0) status = std::move(status).WithPosition(position);
  return status;
}

// The library's memory of one parse.
class RawParse {
 public:
  explicit RawParse(const std::string& text)
      : context_(EnterContext()), result_(pg_query_raw_parse(text.c_str())) {}
  ~RawParse() {
    if (result_.error != nullptr) pg_query_free_error(result_.error);
    std::free(result_.stderr_buffer);
    pg_query_exit_memory_context(context_);
  }
  RawParse(const RawParse&) = delete;
  RawParse& operator=(const RawParse&) = delete;

  const PgQueryError* error() const { return result_.error; }
  const ::List* tree() const { return result_.tree; }

 private:
  static ::MemoryContext EnterContext() {
    ReadyParserThread();
    return pg_query_enter_memory_context();
  }
  ::MemoryContext context_;
  PgQueryInternalParsetreeAndError result_;
};

// Where the SELECT of CREATE VIEW stands in the statement [begin, end).
void FindViewQuery(std::string_view text, size_t begin, size_t end, ast::CreateViewStmt* view) {
  text = text.substr(0, end);
  int parens = 0;
  size_t start = 0;
  size_t last_with = 0;
  bool head = true;  // before VIEW
  for (ScanToken token = NextToken(text, begin); token.kind != ScanKind::kEnd;
       token = NextToken(text, token.end)) {
    const std::string_view word = text.substr(token.begin, token.end - token.begin);
    if (token.kind == ScanKind::kSymbol) {
      if (word == "(") ++parens;
      if (word == ")") --parens;
    } else if (token.kind == ScanKind::kWord && parens == 0) {
      if (head && EqualsWord(word, "recursive")) return;  // the tree's query is not the text's
      if (EqualsWord(word, "view")) head = false;
      if (start == 0 && EqualsWord(word, "as")) start = SkipBlanks(text, token.end);
      if (EqualsWord(word, "with")) last_with = token.begin;
    }
  }
  if (start == 0) return;
  if (view->check_option != ast::CheckOption::kNone && last_with > start) end = last_with;
  while (end > start && std::strchr(" \t\r\n\f\v", text[end - 1]) != nullptr) --end;
  view->query_location = static_cast<int>(start);
  view->query_length = static_cast<int>(end - start);
}

Result<std::vector<Statement>> ParseText(const std::string& text, int prefix);

// SHOW DROPPED, SHOW JOBS, SHOW USAGE: the rows of a view of pg_catalog.
Status ReplaceShowOfView(Statement* statement) {
  if (!statement->ast->Is<ast::VariableShowStmt>()) return Status();
  static constexpr std::pair<std::string_view, const char*> kViews[] = {
      {"dropped", "TABLE pg_catalog.cellar_dropped"},
      {"jobs", "TABLE pg_catalog.cellar_jobs"},
      {"usage", "SELECT * FROM pg_catalog.cellar_usage WHERE state <> 'collecting'"},
  };
  for (const auto& [name, query] : kViews) {
    if (statement->ast->As<ast::VariableShowStmt>().name != name) continue;
    CELLAR_TRY_ASSIGN(std::vector<Statement> parsed, ParseText(query, 0));
    statement->ast = std::move(parsed.front().ast);
    return Status();
  }
  return Status();
}

// The statements of a tree; `replaced` is what stands in for clauses of ours.
Result<std::vector<Statement>> Walk(const RawParse& raw, const std::string& text, int prefix,
                                    std::span<StandIn> replaced) {
  std::vector<Statement> out;
  ast::Items<::RawStmt> statements(raw.tree());
  out.reserve(statements.size());
  for (const ::RawStmt* item : statements) {
    ast::PgWalker walker(prefix);
    Statement& statement = out.emplace_back();
    statement.ast = walker.Statement(item->stmt, &statement.tag);
    if (!walker.status().ok()) return walker.status();
    size_t begin = static_cast<size_t>(std::max(item->stmt_location, 0));
    size_t end = item->stmt_len > 0 ? begin + item->stmt_len : text.size();
    begin = std::min(SkipBlanks(text, begin), end);
    while (end > begin && std::strchr(" \t\r\n\f\v", text[end - 1]) != nullptr) --end;
    statement.start = static_cast<int>(begin) - prefix;
    statement.length = static_cast<int>(end - begin);
    if (statement.ast->Is<ast::CreateViewStmt>()) {
      FindViewQuery(text, begin, end, &statement.ast->As<ast::CreateViewStmt>());
    }
    for (; !replaced.empty() && replaced.front().at < end; replaced = replaced.subspan(1)) {
      ApplyStandIn(&replaced.front(), static_cast<int>(replaced.front().at) - prefix, &statement);
    }
    CELLAR_TRY(ReplaceShowOfView(&statement));
  }
  return out;
}

// As the scanner says it.
Status OpenComment(std::string_view text, size_t begin, int prefix_characters) {
  int position = 1 - prefix_characters;
  for (const char c : text.substr(0, begin)) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++position;
  }
  Status status = SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                           "unterminated /* comment at or near \"{}\"", text.substr(begin));
  return position > 0 ? std::move(status).WithPosition(position) : std::move(status);
}

Result<std::vector<Statement>> ParseText(const std::string& text, int prefix) {
  CELLAR_TRY(CheckText(text));
  size_t open_comment = 0;
  const std::optional<std::string> blanked = BlankComments(text, &open_comment);
  if (open_comment != std::string_view::npos) return OpenComment(text, open_comment, prefix);
  const std::string& scanned = blanked.has_value() ? *blanked : text;
  RawParse raw(scanned);
  if (raw.error() == nullptr) return Walk(raw, text, prefix, {});
  std::string known = scanned;
  std::vector<StandIn> replaced = ReplaceOwnGrammar(&known);
  if (replaced.empty()) return FromGrammar(*raw.error(), prefix);
  RawParse again(known);
  if (again.error() != nullptr) return FromGrammar(*again.error(), prefix);
  return Walk(again, text, prefix, replaced);
}

Status NotAnExpression(std::string_view text) {
  return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "syntax error in expression: \"{}\"",
                  text.substr(0, 100));
}

// "SELECT <text>", of which only the one target may come.
constexpr std::string_view kSelect = "SELECT ";
constexpr std::string_view kSelectCast = "SELECT NULL::";

Result<ast::ExprPtr> ParseTarget(std::string_view prefix, std::string_view text) {
  CELLAR_TRY_ASSIGN(std::vector<Statement> statements,
                    ParseText(std::string(prefix).append(text), static_cast<int>(prefix.size())));
  if (statements.size() != 1 || statements[0].ast == nullptr ||
      !statements[0].ast->Is<ast::SelectStmt>()) {
    return NotAnExpression(text);
  }
  auto& select = statements[0].ast->As<ast::SelectStmt>();
  const bool plain =
      select.set_op == ast::SetOp::kNone && select.values.empty() && !select.distinct &&
      select.targets.size() == 1 && select.targets[0].name.empty() && select.from.empty() &&
      select.where == nullptr && select.group_by.empty() && select.having == nullptr &&
      select.windows.empty() && select.order_by.empty() && select.limit == nullptr &&
      select.offset == nullptr && select.locking.empty();
  if (!plain || select.targets[0].expr == nullptr) return NotAnExpression(text);
  return std::move(select.targets[0].expr);
}

}  // namespace

namespace {

// Shorter texts take a few megabytes at most, and are not charged.
constexpr size_t kLongText = 16 << 10;
// Measured for lists of constants, calls and rows: the grammar's nodes, ours, and bound
// expressions, for each name, number and literal.
constexpr size_t kBytesPerAtom = 500;
constexpr size_t kCopiesOfText = 4;

// What parsing and planning the text will take, in bytes.
size_t EstimateTrees(std::string_view text) {
  size_t atoms = 0;
  for (ScanToken token = NextToken(text, 0); token.kind != ScanKind::kEnd;
       token = NextToken(text, token.end)) {
    if (token.kind != ScanKind::kSymbol) ++atoms;
  }
  return atoms * kBytesPerAtom + text.size() * kCopiesOfText;
}

}  // namespace

Result<std::vector<Statement>> Parse(std::string_view text) {
  std::shared_ptr<MemoryCharge> charge;
  if (text.size() > kLongText && text.size() <= kMaxStatementBytes &&
      MemoryAccount::Current() != nullptr) {
    charge = std::make_shared<MemoryCharge>(MemoryAccount::Current());
    CELLAR_TRY(charge->Resize(EstimateTrees(text)));
  }
  CELLAR_TRY_ASSIGN(std::vector<Statement> statements, ParseText(std::string(text), 0));
  for (Statement& statement : statements) statement.charge = charge;
  return statements;
}

Result<Statement> ParseOne(std::string_view text) {
  CELLAR_TRY_ASSIGN(std::vector<Statement> statements, Parse(text));
  if (statements.size() > 1) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "cannot insert multiple commands into a prepared statement");
  }
  if (statements.empty()) return Statement();
  return std::move(statements[0]);
}

Result<ast::ExprPtr> ParseExpression(std::string_view text) { return ParseTarget(kSelect, text); }

Result<ast::TypeName> ParseTypeName(std::string_view text) {
  CELLAR_TRY_ASSIGN(ast::ExprPtr expr, ParseTarget(kSelectCast, text));
  if (!expr->Is<ast::TypeCast>()) return NotAnExpression(text);
  auto& cast = expr->As<ast::TypeCast>();
  if (!cast.arg->Is<ast::Const>() ||
      cast.arg->As<ast::Const>().const_kind != ast::ConstKind::kNull) {
    return NotAnExpression(text);  // a second cast follows
  }
  return std::move(cast.type);
}

}  // namespace cellar::sql
