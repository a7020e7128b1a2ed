#include "cellar/sql/parser/own_groups.h"

#include <string>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/parser/column_groups.h"

namespace cellar::sql {
namespace {

using ast::GroupChange;

// Reads from the tokens of a statement; a Take leaves the place where it is when what it looks for
// is not there, and *change then is of no use.
class GroupReader {
 public:
  GroupReader(const Tokens& tokens, size_t at) : tokens_(tokens), at_(at) {}

  size_t at() const { return at_; }
  bool TakeComma() {
    if (!tokens_.IsSymbol(at_, ",")) return false;
    ++at_;
    return true;
  }

  // name (column, ..)
  bool TakeGroup(GroupChange* change) {
    if (!tokens_.IsName(at_) || !tokens_.IsSymbol(at_ + 1, "(")) return false;
    change->location = static_cast<int>(tokens_.begin(at_));
    std::string name = tokens_.NameOf(at_);
    size_t at = at_ + 1;
    ast::NameList columns;
    do {
      if (!tokens_.IsName(at + 1)) return false;
      columns.push_back(tokens_.NameOf(at + 1));
      at += 2;
    } while (tokens_.IsSymbol(at, ","));
    if (!tokens_.IsSymbol(at, ")")) return false;
    at_ = at + 1;
    change->name = std::move(name);
    change->columns = std::move(columns);
    return true;
  }

  // A change of ALTER TABLE.
  bool TakeChange(GroupChange* change) {
    const size_t start = at_;
    if (TakeAnyChange(change)) return true;
    at_ = start;
    return false;
  }

 private:
  bool Take(std::string_view word) {
    if (!tokens_.IsWord(at_, word)) return false;
    ++at_;
    return true;
  }
  bool TakeName(std::string* name) {
    if (!tokens_.IsName(at_)) return false;
    *name = tokens_.NameOf(at_++);
    return true;
  }

  bool TakeAnyChange(GroupChange* change) {
    if (Take("add")) {
      if (!Take("group")) return false;
      change->kind = GroupChange::Kind::kAdd;
      if (tokens_.IsWord(at_, "if") && tokens_.IsWord(at_ + 1, "not") &&
          tokens_.IsWord(at_ + 2, "exists")) {
        change->if_exists = true;
        at_ += 3;
      }
      return TakeGroup(change);
    }
    if (Take("drop")) {
      if (!Take("group")) return false;
      change->kind = GroupChange::Kind::kDrop;
      if (tokens_.IsWord(at_, "if") && tokens_.IsWord(at_ + 1, "exists")) {
        change->if_exists = true;
        at_ += 2;
      }
      return TakeName(&change->name);
    }
    if (Take("rename")) {
      change->kind = GroupChange::Kind::kRename;
      return Take("group") && TakeName(&change->name) && Take("to") && TakeName(&change->new_name);
    }
    if (!Take("alter")) return false;
    Take("column");
    if (!TakeName(&change->columns.emplace_back())) return false;
    if (Take("set")) {
      change->kind = GroupChange::Kind::kPut;
      return Take("group") && TakeName(&change->name);
    }
    change->kind = GroupChange::Kind::kTakeOut;
    return Take("drop") && Take("group");
  }

  const Tokens& tokens_;
  size_t at_;
};

StandIn GroupsAt(const Tokens& tokens, size_t at, std::vector<GroupChange> groups) {
  return {StandIn::Kind::kGroups, tokens.begin(at), nullptr, {}, std::move(groups)};
}

// The parenthesis that opens the elements of CREATE TABLE; 0: another statement.
size_t FindElements(const Tokens& tokens) {
  if (!tokens.IsWord(0, "create")) return 0;
  size_t at = 1;
  if (tokens.IsWord(at, "global") || tokens.IsWord(at, "local")) ++at;
  if (tokens.IsWord(at, "temp") || tokens.IsWord(at, "temporary") || tokens.IsWord(at, "unlogged"))
    ++at;
  if (!tokens.IsWord(at++, "table")) return 0;
  if (tokens.IsWord(at, "if") && tokens.IsWord(at + 1, "not") && tokens.IsWord(at + 2, "exists"))
    at += 3;
  if (!tokens.IsName(at)) return 0;
  for (++at; tokens.IsSymbol(at, "."); at += 2) {
    if (!tokens.IsName(at + 1)) return 0;
  }
  return tokens.IsSymbol(at, "(") ? at : 0;
}

// Blanks out the groups among the elements, each with one of its commas.
void ReplaceInCreate(Tokens* tokens, size_t open, std::vector<StandIn>* replaced) {
  int depth = 0;
  size_t start = open + 1;  // of the element
  bool others = false;      // stand before it
  for (size_t at = open; at < tokens->size(); ++at) {
    if (tokens->IsSymbol(at, "([")) ++depth;
    if (tokens->IsSymbol(at, ")]")) --depth;
    if (depth == 0) return;
    if (at == open) continue;
    if (depth == 1 && tokens->IsSymbol(at, ",")) {
      others = true;
      start = at + 1;
      continue;
    }
    if (at != start || !tokens->IsWord(at, "group")) continue;
    GroupChange group;
    GroupReader reader(*tokens, at + 1);
    if (!reader.TakeGroup(&group) || !tokens->IsSymbol(reader.at(), ",)")) continue;
    const bool with_next = !others && tokens->IsSymbol(reader.at(), ",");
    if (with_next && tokens->IsSymbol(reader.at() + 1, ")")) continue;
    replaced->push_back(GroupsAt(*tokens, at, {std::move(group)}));
    const size_t end = with_next ? reader.at() + 1 : reader.at();
    tokens->Blank(others ? at - 1 : at, end);
    if (with_next) start = end;
    at = end - 1;
  }
}

// Is it ADD [COLUMN]?
bool AddsColumn(const Tokens& tokens, size_t at) {
  if (!tokens.IsWord(at, "add")) return false;
  for (const char* other : {"constraint", "check", "unique", "primary", "foreign", "group"}) {
    if (tokens.IsWord(at + 1, other)) return false;
  }
  return !tokens.IsWord(at + 1, "exclude") ||
         !(tokens.IsWord(at + 2, "using") || tokens.IsSymbol(at + 2, "("));
}

// ADD [COLUMN] .. GROUP g, with other commands.
void ReplaceInAddColumn(Tokens* tokens, size_t start, std::vector<StandIn>* replaced) {
  int depth = 0;
  bool adds = AddsColumn(*tokens, start);
  for (size_t at = start; at < tokens->size(); ++at) {
    if (tokens->IsSymbol(at, "([")) ++depth;
    if (tokens->IsSymbol(at, ")]")) --depth;
    if (depth != 0) continue;
    if (tokens->IsSymbol(at, ",")) adds = AddsColumn(*tokens, at + 1);
    if (!adds || at < start + 2 || !tokens->IsWord(at, "group") || !tokens->IsName(at + 1) ||
        (at + 2 < tokens->size() && !tokens->IsSymbol(at + 2, ",")))
      continue;
    GroupChange change;
    change.kind = GroupChange::Kind::kPut;
    change.name = tokens->NameOf(at + 1);
    change.location = static_cast<int>(tokens->begin(at + 1));
    replaced->push_back(GroupsAt(*tokens, at, {std::move(change)}));
    tokens->Blank(at, at + 2);
  }
}

}  // namespace

size_t AfterAlteredTable(const Tokens& tokens) {
  if (!tokens.IsWord(0, "alter") || !tokens.IsWord(1, "table")) return 0;
  size_t at = 2;
  if (tokens.IsWord(at, "if") && tokens.IsWord(at + 1, "exists")) at += 2;
  if (tokens.IsWord(at, "only")) ++at;
  if (!tokens.IsName(at)) return 0;
  for (++at; tokens.IsSymbol(at, "."); at += 2) {
    if (!tokens.IsName(at + 1)) return 0;
  }
  if (tokens.IsSymbol(at, "*")) ++at;
  return at < tokens.size() ? at : 0;
}

void ReplaceGroups(Tokens* tokens, std::vector<StandIn>* replaced) {
  if (const size_t open = FindElements(*tokens); open != 0) {
    ReplaceInCreate(tokens, open, replaced);
    return;
  }
  const size_t start = AfterAlteredTable(*tokens);
  if (start == 0) return;
  std::vector<GroupChange> changes;
  GroupReader reader(*tokens, start);
  bool all = true;
  do {
    all = all && reader.TakeChange(&changes.emplace_back());
  } while (all && reader.TakeComma());
  if (!all || reader.at() != tokens->size()) {
    ReplaceInAddColumn(tokens, start, replaced);
    return;
  }
  replaced->push_back(GroupsAt(*tokens, start, std::move(changes)));
  // A table of a type, which is a command that may follow a table's name.
  tokens->Overwrite(start, "OF");
  tokens->Overwrite(start + 1, "x");
  tokens->Blank(start + 2, tokens->size());
}

void ApplyGroups(StandIn* stand_in, int location, ast::Node* statement) {
  std::vector<GroupChange>& groups = stand_in->groups;
  std::vector<GroupChange>* created = nullptr;
  if (statement->Is<ast::CreateTableStmt>())
    created = &statement->As<ast::CreateTableStmt>().groups;
  if (statement->Is<ast::CreateTableAsStmt>())
    created = &statement->As<ast::CreateTableAsStmt>().groups;
  if (created != nullptr) {
    for (GroupChange& group : groups) created->push_back(std::move(group));
    return;
  }
  if (!statement->Is<ast::AlterTableStmt>()) return;
  auto& commands = statement->As<ast::AlterTableStmt>().commands;
  ast::AlterTableCommand* adds = nullptr;  // the column before the clause
  for (ast::AlterTableCommand& command : commands) {
    if (command.kind == ast::AlterTableKind::kAddColumn && command.column->location < location)
      adds = &command;
  }
  if (adds != nullptr) {
    adds->groups = std::move(groups);
    return;
  }
  ast::AlterTableCommand change;
  change.kind = ast::AlterTableKind::kChangeGroups;
  change.groups = std::move(groups);
  commands.clear();
  commands.push_back(std::move(change));
}

Result<std::vector<GroupChange>> ParseColumnGroups(std::string_view text) {
  std::string copy(text);
  Tokens tokens(&copy);
  std::vector<GroupChange> groups;
  tokens.Read();
  if (tokens.size() == 0) return groups;
  GroupReader reader(tokens, 0);
  bool good = true;
  do {
    good = good && reader.TakeGroup(&groups.emplace_back());
    groups.back().location = -1;
  } while (good && reader.TakeComma());
  if (!good || reader.at() != tokens.size() || tokens.Read()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "invalid value for option \"groups\": {}", text)
        .WithDetail("Valid values look like \"hot (a, b), cold (c)\".");
  }
  return groups;
}

}  // namespace cellar::sql
