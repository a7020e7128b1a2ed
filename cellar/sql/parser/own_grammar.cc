#include "cellar/sql/parser/own_grammar.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cellar/sql/parser/ast_ddl.h"
#include "cellar/sql/parser/own_groups.h"
#include "cellar/sql/parser/own_tokens.h"

namespace cellar::sql {

namespace {

// A table of a type: as many bytes as SEAL, and a command that may follow a table's name.
constexpr std::string_view kForSeal = "OF x";
constexpr std::string_view kForRow = "r_w";

// Stands for a statement of ours: no longer than any of them.
constexpr std::string_view kForStatement = "END";

// Reads a statement of ours from its tokens; every Take leaves the place where it is when what it
// looks for is not there.
class OwnStatementReader {
 public:
  explicit OwnStatementReader(const Tokens& tokens) : tokens_(tokens) {}

  // Null: not a whole statement of ours. *tag: its command tag.
  std::unique_ptr<ast::OwnStmt> Read(std::string_view* tag) {
    auto out = std::make_unique<ast::OwnStmt>();
    *tag = ReadInto(out.get());
    return tag->empty() || at_ != tokens_.size() ? nullptr : std::move(out);
  }
  // (name = value, ..) from token `at` on. Null: something else. *end: behind it.
  std::unique_ptr<ast::OwnStmt> ReadOptions(size_t at, size_t* end) {
    auto out = std::make_unique<ast::OwnStmt>();
    out->own = ast::OwnKind::kSetOptions;
    at_ = at;
    if (!TakeOptions(out.get())) return nullptr;
    *end = at_;
    return out;
  }

 private:
  bool Take(std::string_view word) {
    if (!tokens_.IsWord(at_, word)) return false;
    ++at_;
    return true;
  }
  bool TakeSymbol(std::string_view symbol) {
    if (!tokens_.IsSymbol(at_, symbol)) return false;
    ++at_;
    return true;
  }

  bool TakeType(ast::OwnStmt* out) {
    struct NamedType {
      std::string_view word;
      ast::ObjectType type;
      std::string_view alter_tag;
    };
    static constexpr NamedType kTypes[] = {
        {"table", ast::ObjectType::kTable, "ALTER TABLE"},
        {"view", ast::ObjectType::kView, "ALTER VIEW"},
        {"sequence", ast::ObjectType::kSequence, "ALTER SEQUENCE"},
        {"type", ast::ObjectType::kType, "ALTER TYPE"},
        {"collation", ast::ObjectType::kCollation, "ALTER COLLATION"},
        {"schema", ast::ObjectType::kSchema, "ALTER SCHEMA"},
        {"database", ast::ObjectType::kDatabase, "ALTER DATABASE"},
    };
    for (const NamedType& named : kTypes) {
      if (!Take(named.word)) continue;
      out->object_type = named.type;
      alter_tag_ = named.alter_tag;
      return true;
    }
    return false;
  }
  bool TakeIfExists() {
    if (!tokens_.IsWord(at_, "if") || !tokens_.IsWord(at_ + 1, "exists")) return false;
    at_ += 2;
    return true;
  }
  bool TakeName(ast::OwnStmt* out) {
    if (!tokens_.IsName(at_)) return false;
    do {
      if (!tokens_.IsName(at_)) return false;
      out->object.parts.push_back(tokens_.NameOf(at_++));
    } while (TakeSymbol("."));
    return true;
  }
  bool TakeNumber(int64_t* number) {
    if (!tokens_.IsNumber(at_)) return false;
    const std::string_view text = tokens_.TextOf(at_);
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, *number).ptr != end || *number <= 0) return false;
    ++at_;
    return true;
  }
  // (name [= value], ..)
  bool TakeOptions(ast::OwnStmt* out) {
    if (!TakeSymbol("(")) return false;
    do {
      if (!tokens_.IsName(at_)) return false;
      ast::Option& option = out->options.emplace_back();
      option.location = static_cast<int>(tokens_.begin(at_));
      option.name = tokens_.NameOf(at_++);
      if (!TakeSymbol("=")) continue;
      const bool negative = TakeSymbol("-");
      if (tokens_.IsNumber(at_)) {
        option.value_kind = ast::OptionKind::kFloat;
        option.text = (negative ? "-" : "") + std::string(tokens_.TextOf(at_++));
      } else if (negative) {
        return false;
      } else if (tokens_.IsString(at_)) {
        option.value_kind = ast::OptionKind::kString;
        option.text = tokens_.StringOf(at_++);
      } else if (tokens_.IsName(at_)) {
        option.value_kind = ast::OptionKind::kString;
        option.text = tokens_.NameOf(at_++);
      } else {
        return false;
      }
    } while (TakeSymbol(","));
    return TakeSymbol(")");
  }

  // The tag, or nothing.
  std::string_view ReadInto(ast::OwnStmt* out) {
    if (Take("undrop")) return ReadUndrop(out);
    if (Take("purge")) return ReadPurge(out);
    if (Take("cancel")) {
      out->own = ast::OwnKind::kCancelJob;
      return Take("job") && TakeNumber(&out->number) ? "CANCEL JOB" : "";
    }
    if (Take("resume")) {
      out->own = ast::OwnKind::kResumeJob;
      return Take("job") && TakeNumber(&out->number) ? "RESUME JOB" : "";
    }
    if (Take("check")) return ReadCheck(out);
    if (Take("repair")) {
      out->own = ast::OwnKind::kRepair;
      return TakeChecked(out) ? "REPAIR" : "";
    }
    if (Take("backup")) return ReadBackup(out);
    if (Take("alter")) return ReadSetOptions(out);
    return "";
  }
  std::string_view ReadUndrop(ast::OwnStmt* out) {
    out->own = ast::OwnKind::kUndrop;
    if (!TakeType(out)) return "";
    out->if_exists = TakeIfExists();
    if (!TakeName(out)) return "";
    if (Take("id") && !TakeNumber(&out->number)) return "";
    if (Take("as")) {
      if (!tokens_.IsName(at_)) return "";
      out->new_name = tokens_.NameOf(at_++);
    }
    return "UNDROP";
  }
  std::string_view ReadPurge(ast::OwnStmt* out) {
    out->own = ast::OwnKind::kPurge;
    if (Take("all")) return "PURGE";
    if (!TakeType(out)) return "";
    out->if_exists = TakeIfExists();
    if (!TakeName(out)) return "";
    if (Take("id") && !TakeNumber(&out->number)) return "";
    return "PURGE";
  }
  bool TakeChecked(ast::OwnStmt* out) {
    if (!TakeType(out)) return false;
    if (out->object_type == ast::ObjectType::kDatabase) {
      const bool named =
          tokens_.IsName(at_) && !tokens_.IsWord(at_, "fast") && !tokens_.IsWord(at_, "full");
      return !named || TakeName(out);
    }
    return out->object_type == ast::ObjectType::kTable && TakeName(out);
  }
  std::string_view ReadCheck(ast::OwnStmt* out) {
    out->own = ast::OwnKind::kCheck;
    if (!TakeChecked(out)) return "";
    out->fast = Take("fast");
    out->full = !out->fast && Take("full");
    return "CHECK";
  }
  std::string_view ReadBackup(ast::OwnStmt* out) {
    out->own = ast::OwnKind::kBackup;
    out->object_type = ast::ObjectType::kDatabase;
    if (!Take("store") && !(Take("database") && TakeName(out))) return "";
    if (!Take("to") || !tokens_.IsString(at_)) return "";
    out->path = tokens_.StringOf(at_++);
    if (Take("with") && !TakeOptions(out)) return "";
    return "BACKUP";
  }
  std::string_view ReadSetOptions(ast::OwnStmt* out) {
    out->own = ast::OwnKind::kSetOptions;
    out->dropped = Take("dropped");
    if (!TakeType(out) || !TakeName(out)) return "";
    const bool space = out->object_type == ast::ObjectType::kSchema ||
                       out->object_type == ast::ObjectType::kDatabase;
    if (!out->dropped && !space) return "";  // PostgreSQL's
    if (out->dropped && Take("id") && !TakeNumber(&out->number)) return "";
    if (Take("reset")) {
      out->reset = true;
    } else if (!Take("set")) {
      return "";
    }
    if (!TakeOptions(out)) return "";
    return alter_tag_;
  }

  const Tokens& tokens_;
  size_t at_ = 0;
  std::string_view alter_tag_;
};

// The token SEAL of ALTER TABLE [IF EXISTS] [ONLY] name [*] SEAL [FULL]; 0: another statement.
size_t FindSeal(const Tokens& tokens) {
  const size_t at = AfterAlteredTable(tokens);
  if (at == 0 || !tokens.IsWord(at, "seal")) return 0;
  const size_t end = tokens.IsWord(at + 1, "full") ? at + 2 : at + 1;
  return end == tokens.size() ? at : 0;
}

// ALTER PRIMARY KEY USING COLUMNS (..) among the commands of ALTER TABLE: as ADD PRIMARY KEY (..).
void ReplaceAlterKey(Tokens* tokens, std::vector<StandIn>* replaced) {
  const size_t start = AfterAlteredTable(*tokens);
  if (start == 0) return;
  int depth = 0;
  for (size_t at = start; at < tokens->size(); ++at) {
    if (tokens->IsSymbol(at, "([")) ++depth;
    if (tokens->IsSymbol(at, ")]")) --depth;
    if (depth != 0 || (at != start && !tokens->IsSymbol(at - 1, ","))) continue;
    constexpr std::string_view kWords[] = {"alter", "primary", "key", "using", "columns"};
    bool all = tokens->IsSymbol(at + std::size(kWords), "(");
    for (size_t i = 0; i < std::size(kWords); ++i) all = all && tokens->IsWord(at + i, kWords[i]);
    if (!all) continue;
    replaced->push_back({StandIn::Kind::kAlterKey, tokens->begin(at + 1), nullptr, {}, {}});
    tokens->Overwrite(at, "ADD");
    tokens->Blank(at + 3, at + std::size(kWords));
  }
}

// WITH (option = value, ..) of CREATE DATABASE name and of CREATE SCHEMA [IF NOT EXISTS] [name]
// [AUTHORIZATION role], before all that may follow.
void ReplaceSpaceOptions(Tokens* tokens, std::vector<StandIn>* replaced) {
  if (!tokens->IsWord(0, "create")) return;
  const bool database = tokens->IsWord(1, "database");
  if (!database && !tokens->IsWord(1, "schema")) return;
  constexpr size_t kLongestHead = 8;  // CREATE SCHEMA IF NOT EXISTS name AUTHORIZATION role
  const size_t last = database ? 3 : kLongestHead;
  for (size_t at = 3; at <= last; ++at) {
    if (!tokens->IsWord(at, "with") || !tokens->IsSymbol(at + 1, "(")) continue;
    size_t end = 0;
    std::unique_ptr<ast::OwnStmt> options = OwnStatementReader(*tokens).ReadOptions(at + 1, &end);
    if (options == nullptr) return;
    options->object_type = database ? ast::ObjectType::kDatabase : ast::ObjectType::kSchema;
    replaced->push_back(
        {StandIn::Kind::kSpaceOptions, tokens->begin(at), std::move(options), {}, {}});
    tokens->Blank(at, end);
    return;
  }
}

}  // namespace

std::vector<StandIn> ReplaceOwnGrammar(std::string* text) {
  std::vector<StandIn> replaced;
  Tokens tokens(text);
  while (tokens.Read()) {
    std::string_view tag;
    if (std::unique_ptr<ast::OwnStmt> own = OwnStatementReader(tokens).Read(&tag)) {
      replaced.push_back({StandIn::Kind::kStatement, tokens.begin(0), std::move(own), tag, {}});
      tokens.OverwriteAll(kForStatement);
      continue;
    }
    if (const size_t seal = FindSeal(tokens); seal != 0) {
      const bool full = seal + 1 < tokens.size();
      replaced.push_back({full ? StandIn::Kind::kSealFull : StandIn::Kind::kSeal,
                          tokens.begin(seal),
                          nullptr,
                          {},
                          {}});
      tokens.Overwrite(seal, kForSeal);
      if (full) tokens.Overwrite(seal + 1, "");
      continue;
    }
    ReplaceAlterKey(&tokens, &replaced);
    ReplaceGroups(&tokens, &replaced);
    ReplaceSpaceOptions(&tokens, &replaced);
    for (size_t at = 0; at + 4 < tokens.size(); ++at) {
      if (!tokens.IsSymbol(at, "(,") || !tokens.IsWord(at + 1, "layout") ||
          !tokens.IsSymbol(at + 2, "=") || !tokens.IsWord(at + 3, "row") ||
          !tokens.IsSymbol(at + 4, "),"))
        continue;
      replaced.push_back({StandIn::Kind::kLayoutRow, tokens.begin(at + 1), nullptr, {}, {}});
      tokens.Overwrite(at + 3, kForRow);
    }
  }
  std::stable_sort(replaced.begin(), replaced.end(),
                   [](const StandIn& a, const StandIn& b) { return a.at < b.at; });
  return replaced;
}

void ApplyStandIn(StandIn* stand_in, int location, Statement* parsed) {
  const StandIn::Kind kind = stand_in->kind;
  if (kind == StandIn::Kind::kStatement) {
    parsed->ast = std::move(stand_in->statement);
    parsed->tag = stand_in->tag;
    return;
  }
  ast::Node* statement = parsed->ast.get();
  if (kind == StandIn::Kind::kGroups) return ApplyGroups(stand_in, location, statement);
  if (kind == StandIn::Kind::kAlterKey) {
    if (!statement->Is<ast::AlterTableStmt>()) return;
    for (ast::AlterTableCommand& command : statement->As<ast::AlterTableStmt>().commands) {
      if (command.constraint != nullptr && command.constraint->location == location)
        command.kind = ast::AlterTableKind::kAlterPrimaryKey;
    }
    return;
  }
  if (kind == StandIn::Kind::kSpaceOptions) {
    if (statement->Is<ast::CreateSchemaStmt>()) {
      auto& elements = statement->As<ast::CreateSchemaStmt>().elements;
      elements.insert(elements.begin(), std::move(stand_in->statement));
    } else if (statement->Is<ast::CreateDatabaseStmt>()) {
      auto& options = statement->As<ast::CreateDatabaseStmt>().options;
      for (ast::Option& option : stand_in->statement->As<ast::OwnStmt>().options)
        options.push_back(std::move(option));
    }
    return;
  }
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
