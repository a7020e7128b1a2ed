#include "cellar/sql/parser/own_grammar.h"

#include <algorithm>
#include <string_view>

#include "cellar/sql/parser/ast_ddl.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::sql {

namespace {

// A table of a type: as many bytes as SEAL, and a command that may follow a table's name.
constexpr std::string_view kForSeal = "OF x";
constexpr std::string_view kForRow = "r_w";

// The tokens of one statement.
class Tokens {
 public:
  explicit Tokens(std::string* text) : text_(text) {}

  // Takes the next statement; false at the end of the text.
  bool Read() {
    tokens_.clear();
    if (ended_) return false;
    while (true) {
      const ScanToken token = NextToken(*text_, pos_);
      pos_ = token.end;
      if (token.kind == ScanKind::kEnd) ended_ = true;
      if (ended_ || (token.kind == ScanKind::kSymbol && (*text_)[token.begin] == ';')) return true;
      tokens_.push_back(token);
    }
  }

  size_t size() const { return tokens_.size(); }
  size_t begin(size_t at) const { return tokens_[at].begin; }
  bool IsWord(size_t at, std::string_view word) const {
    return at < size() && tokens_[at].kind == ScanKind::kWord && EqualsWord(TextOf(at), word);
  }
  bool IsName(size_t at) const {
    return at < size() &&
           (tokens_[at].kind == ScanKind::kWord || (tokens_[at].kind == ScanKind::kQuotedName));
  }
  bool IsSymbol(size_t at, std::string_view any_of) const {
    return at < size() && tokens_[at].kind == ScanKind::kSymbol &&
           any_of.find((*text_)[begin(at)]) != std::string_view::npos;
  }
  void Overwrite(size_t at, std::string_view with) {
    const auto start = text_->begin() + static_cast<ptrdiff_t>(begin(at));
    std::fill(start, start + static_cast<ptrdiff_t>(tokens_[at].end - begin(at)), ' ');
    std::copy(with.begin(), with.end(), start);
  }

 private:
  std::string_view TextOf(size_t at) const {
    return std::string_view(*text_).substr(begin(at), tokens_[at].end - begin(at));
  }

  std::string* text_;
  std::vector<ScanToken> tokens_;
  size_t pos_ = 0;
  bool ended_ = false;
};

// The token SEAL of ALTER TABLE [IF EXISTS] [ONLY] name [*] SEAL [FULL]; 0: another statement.
size_t FindSeal(const Tokens& tokens) {
  if (!tokens.IsWord(0, "alter") || !tokens.IsWord(1, "table")) return 0;
  size_t at = 2;
  if (tokens.IsWord(at, "if") && tokens.IsWord(at + 1, "exists")) at += 2;
  if (tokens.IsWord(at, "only")) ++at;
  if (!tokens.IsName(at)) return 0;
  for (++at; tokens.IsSymbol(at, "."); at += 2) {
    if (!tokens.IsName(at + 1)) return 0;
  }
  if (tokens.IsSymbol(at, "*")) ++at;
  if (!tokens.IsWord(at, "seal")) return 0;
  const size_t end = tokens.IsWord(at + 1, "full") ? at + 2 : at + 1;
  return end == tokens.size() ? at : 0;
}

}  // namespace

std::vector<StandIn> ReplaceOwnGrammar(std::string* text) {
  std::vector<StandIn> replaced;
  Tokens tokens(text);
  while (tokens.Read()) {
    if (const size_t seal = FindSeal(tokens); seal != 0) {
      const bool full = seal + 1 < tokens.size();
      replaced.push_back(
          {full ? StandIn::Kind::kSealFull : StandIn::Kind::kSeal, tokens.begin(seal)});
      tokens.Overwrite(seal, kForSeal);
      if (full) tokens.Overwrite(seal + 1, "");
      continue;
    }
    for (size_t at = 0; at + 4 < tokens.size(); ++at) {
      if (!tokens.IsSymbol(at, "(,") || !tokens.IsWord(at + 1, "layout") ||
          !tokens.IsSymbol(at + 2, "=") || !tokens.IsWord(at + 3, "row") ||
          !tokens.IsSymbol(at + 4, "),"))
        continue;
      replaced.push_back({StandIn::Kind::kLayoutRow, tokens.begin(at + 1)});
      tokens.Overwrite(at + 3, kForRow);
    }
  }
  return replaced;
}

void ApplyStandIn(StandIn::Kind kind, int location, ast::Node* statement) {
  if (kind != StandIn::Kind::kLayoutRow) {
    if (!statement->Is<ast::AlterTableStmt>()) return;
    ast::AlterTableCommand seal;
    seal.kind = ast::AlterTableKind::kSeal;
    seal.action = kind == StandIn::Kind::kSealFull ? "SEAL FULL" : "SEAL";
    auto& commands = statement->As<ast::AlterTableStmt>().commands;
    commands.clear();
    commands.push_back(std::move(seal));
    return;
  }
  auto apply = [location](ast::OptionList* options) {
    for (ast::Option& option : *options) {
      if (option.location == location && option.ToText() == kForRow) {
        option.value_kind = ast::OptionKind::kString;
        option.text = "row";
      }
    }
  };
  if (statement->Is<ast::CreateTableStmt>()) {
    apply(&statement->As<ast::CreateTableStmt>().options);
  } else if (statement->Is<ast::CreateTableAsStmt>()) {
    apply(&statement->As<ast::CreateTableAsStmt>().into.options);
  } else if (statement->Is<ast::AlterTableStmt>()) {
    for (ast::AlterTableCommand& command : statement->As<ast::AlterTableStmt>().commands)
      apply(&command.options);
  }
}

}  // namespace cellar::sql
