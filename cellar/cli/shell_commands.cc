// Backslash commands.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cellar/cli/completion.h"
#include "cellar/cli/error_text.h"
#include "cellar/cli/shell.h"

namespace cellar::cli {
namespace {

constexpr const char* kHelp =
    "General\n"
    "  \\q                     end (also Ctrl-D)\n"
    "  \\? \\h                  this list; the statements are PostgreSQL's\n"
    "  \\c DATABASE            connect to another database of the store\n"
    "  \\conninfo              where we are\n"
    "  \\timing [on|off]       show how long statements take\n"
    "  \\! [COMMAND]           run a shell command\n"
    "  \\cd [DIR]              change the directory\n"
    "Statement\n"
    "  \\g \\gx                 run what has been typed (\\gx: a line per value)\n"
    "  \\p \\r                  print it, forget it\n"
    "  \\e [FILE]              edit it, or the last one, with $EDITOR\n"
    "  \\w FILE                write it to a file\n"
    "Input and output\n"
    "  \\i FILE  \\ir FILE      run a file\n"
    "  \\o [FILE|\\|COMMAND]    send results there; nothing: back here\n"
    "  \\copy TABLE [(COLUMNS)] FROM|TO FILE|STDIN|STDOUT [OPTIONS]\n"
    "  \\copy (QUERY) TO ...   COPY with a file of yours\n"
    "  \\echo \\qecho \\warn TEXT\n"
    "Look around (PATTERN: * and ? match, schema.name)\n"
    "  \\d [PATTERN]           relations, or one in detail\n"
    "  \\dt \\di \\dv \\ds [PATTERN]  tables, indexes, views, sequences\n"
    "  \\dn \\du \\df [PATTERN]  schemas, roles, functions;  \\l databases\n"
    "Format\n"
    "  \\x [on|off|auto]       a line per value\n"
    "  \\t [on|off]            rows only\n"
    "  \\a                     aligned or CSV\n"
    "  \\pset NAME [VALUE]     null, format (aligned, csv, json), border, expanded, tuples_only\n"
    "  \\set ON_ERROR_STOP on  stop a script at an error\n";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// on, off or, without a word, the opposite of `value`.
bool Switch(const std::vector<std::string>& words, size_t at, bool value) {
  if (words.size() <= at) return !value;
  return words[at] == "on" || words[at] == "1" || words[at] == "true" || words[at] == "yes";
}

const char* OnOff(bool value) { return value ? "on" : "off"; }

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return text;
}

// Where FROM or TO stands in \copy's arguments, outside of parentheses and quotes.
struct CopyParts {
  std::string what;
  bool from = false;
  std::string file;
  std::string options;
};
std::optional<CopyParts> ParseCopy(std::string_view text) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (depth != 0 || i == 0 || (!IsBlank(text[i - 1]) && text[i - 1] != ')')) continue;
    const std::string word = Lower(std::string(text.substr(i, 5)));
    const bool from = word.substr(0, 4) == "from" && word.size() == 5 && IsBlank(word[4]);
    const bool to = word.substr(0, 2) == "to" && word.size() > 2 && IsBlank(word[2]);
    if (!from && !to) continue;
    CopyParts parts;
    parts.from = from;
    parts.what = std::string(Trim(text.substr(0, i)));
    std::string_view rest = Trim(text.substr(i + (from ? 4 : 2)));
    if (!rest.empty() && rest[0] == '\'') {
      size_t end = 1;
      while (end < rest.size() &&
             (rest[end] != '\'' || (end + 1 < rest.size() && rest[end + 1] == '\''))) {
        if (rest[end] == '\'') ++end;
        parts.file += rest[end++];
      }
      rest.remove_prefix(std::min(rest.size(), end + 1));
      parts.file = "f" + parts.file;  // a file, whatever its name
    } else {
      size_t end = 0;
      while (end < rest.size() && !IsBlank(rest[end])) ++end;
      const std::string name(rest.substr(0, end));
      const std::string lower = Lower(name);
      parts.file = lower == "stdin" || lower == "stdout" ? "-" : "f" + name;
      rest.remove_prefix(end);
    }
    parts.options = std::string(Trim(rest));
    return parts;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> SplitArguments(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (true) {
    while (at < text.size() && IsBlank(text[at])) ++at;
    if (at >= text.size()) return words;
    std::string word;
    char quote = 0;
    for (; at < text.size() && (quote != 0 || !IsBlank(text[at])); ++at) {
      const char c = text[at];
      if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
        if (c == '"') word += c;  // names keep their quotes
      } else if (quote != 0 && c == quote) {
        if (c == '\'' && at + 1 < text.size() && text[at + 1] == '\'') {
          word += c;
          ++at;
          continue;
        }
        if (c == '"') word += c;
        quote = 0;
      } else {
        word += c;
      }
    }
    words.push_back(std::move(word));
  }
}

Shell::Flow Shell::Command(const std::string& text, sql::StatementSplitter* splitter) {
  const std::string line(Trim(text));
  size_t end = 0;
  while (end < line.size() && !IsBlank(line[end])) ++end;
  std::string name = line.substr(0, end);
  const std::string rest(Trim(std::string_view(line).substr(end)));
  const std::vector<std::string> words = SplitArguments(rest);
  // Commands that leave the statement as it is come first.
  if (name == "q" || name == "quit") return Flow::kQuit;
  if (name == "?" || name == "h" || name == "help") return Write(kHelp), Flow::kGoOn;
  if (name == "g" || name == "gx") {
    std::string statement = splitter->TakeRest();
    if (statement.empty()) statement = last_statement_;
    return Execute(statement, name == "gx");
  }
  if (name == "r" || name == "reset") {
    splitter->Clear();
    if (terminal_) Write("Query buffer reset (cleared).\n");
    return Flow::kGoOn;
  }
  if (name == "p" || name == "print") {
    Write((splitter->has_statement() ? std::string(splitter->pending()) : last_statement_) + "\n");
    return Flow::kGoOn;
  }
  if (name == "e" || name == "edit") return Edit(splitter);
  if (name == "w" || name == "write") {
    FILE* file = words.empty() ? nullptr : std::fopen(words[0].c_str(), "w");
    if (file == nullptr) {
      Error(fmt::format("\\w: {}\n", words.empty() ? "a file is missing" : std::strerror(errno)));
      return Flow::kGoOn;
    }
    const std::string statement =
        splitter->has_statement() ? std::string(splitter->pending()) : last_statement_;
    std::fwrite(statement.data(), 1, statement.size(), file);
    std::fputs("\n", file);
    std::fclose(file);
    return Flow::kGoOn;
  }
  if (name == "timing") {
    timing_ = Switch(words, 0, timing_);
    if (!quiet_) Write(fmt::format("Timing is {}.\n", OnOff(timing_)));
    return Flow::kGoOn;
  }
  if (name == "x") {
    style_.expanded_auto = !words.empty() && words[0] == "auto";
    style_.expanded = !style_.expanded_auto && Switch(words, 0, style_.expanded);
    if (!quiet_) {
      Write(style_.expanded_auto
                ? "Expanded display is used automatically.\n"
                : fmt::format("Expanded display is {}.\n", OnOff(style_.expanded)));
    }
    return Flow::kGoOn;
  }
  if (name == "t") {
    style_.tuples_only = Switch(words, 0, style_.tuples_only);
    if (!quiet_) Write(fmt::format("Tuples only is {}.\n", OnOff(style_.tuples_only)));
    return Flow::kGoOn;
  }
  if (name == "a") {
    style_.mode = style_.mode == OutputMode::kAligned ? OutputMode::kCsv : OutputMode::kAligned;
    return Flow::kGoOn;
  }
  if (name == "pset") {
    return PrintSet(words) || !stop_on_error_ ? Flow::kGoOn : Flow::kStop;
  }
  if (name == "set" || name == "unset") {
    if (!words.empty() && words[0] == "ON_ERROR_STOP") {
      stop_on_error_ = name == "set" && Switch(words, 1, false);
    } else if (!words.empty() && words[0] == "QUIET") {
      quiet_ = name == "set" && Switch(words, 1, false);
    } else if (words.empty()) {
      Write(fmt::format("ON_ERROR_STOP = '{}'\nQUIET = '{}'\n", OnOff(stop_on_error_),
                        OnOff(quiet_)));
    }
    return Flow::kGoOn;
  }
  if (name == "echo" || name == "qecho" || name == "warn") {
    const bool no_newline = !words.empty() && words[0] == "-n";
    std::string out;
    for (size_t i = no_newline ? 1 : 0; i < words.size(); ++i) {
      out += (out.empty() ? "" : " ") + words[i];
    }
    if (!no_newline) out += '\n';
    if (name == "warn") {
      Error(out);
    } else if (name == "echo" && out_ != stdout) {
      std::fwrite(out.data(), 1, out.size(), stdout);
    } else {
      Write(out);
    }
    return Flow::kGoOn;
  }
  if (name == "i" || name == "include" || name == "ir") {
    if (words.empty()) return Error("\\i: a file is missing\n"), Flow::kGoOn;
    std::string path = words[0];
    if (name == "ir" && path[0] != '/' && source_ != nullptr) {
      const size_t slash = source_->name().rfind('/');
      if (slash != std::string::npos) path = source_->name().substr(0, slash + 1) + path;
    }
    const Flow flow = RunFile(path);
    return flow == Flow::kStop && !stop_on_error_ ? Flow::kGoOn : flow;
  }
  if (name == "o" || name == "out") {
    if (SetOutput(rest) == Flow::kStop) {
      Error(fmt::format("{}: {}\n", rest, std::strerror(errno)));
      return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
    }
    return Flow::kGoOn;
  }
  if (name == "copy") return Copy(rest);
  if (name == "c" || name == "connect") {
    const Status status = Connect(words.empty() || words[0] == "-" ? options_.database : words[0]);
    if (!status.ok()) {
      Error(ErrorText(status, "") + "Previous connection kept\n");
      return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
    }
    if (!quiet_) {
      Write(fmt::format("You are now connected to database \"{}\" as user \"{}\".\n",
                        options_.database, options_.user));
    }
    return Flow::kGoOn;
  }
  if (name == "conninfo") {
    Write(fmt::format("You are connected to database \"{}\" as user \"{}\" in the store \"{}\".\n",
                      options_.database, options_.user, options_.store.directory));
    return Flow::kGoOn;
  }
  if (name == "encoding") return Write("UTF8\n"), Flow::kGoOn;
  if (name == "cd") {
    const char* home = std::getenv("HOME");
    const std::string directory = words.empty() ? (home == nullptr ? "/" : home) : words[0];
    if (::chdir(directory.c_str()) != 0) {
      Error(fmt::format("\\cd: {}: {}\n", directory, std::strerror(errno)));
    }
    return Flow::kGoOn;
  }
  if (name == "!" || name.substr(0, 1) == "!") {
    ShowPage();
    std::fflush(stdout);
    const std::string command = name.substr(1) + (rest.empty() ? "" : " " + rest);
    const char* shell = std::getenv("SHELL");
    if (std::system(Trim(command).empty() ? (shell == nullptr ? "/bin/sh" : shell)
                                          : command.c_str()) == -1) {
      Error(fmt::format("\\!: {}\n", std::strerror(errno)));
    }
    return Flow::kGoOn;
  }
  if (name == "l" || name == "list" || name.substr(0, 1) == "d" || name == "l+") {
    return Describe(name, rest);
  }
  failed_ = true;
  Error(fmt::format("invalid command \\{}\nTry \\? for help.\n", name));
  return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
}

bool Shell::PrintSet(const std::vector<std::string>& words) {
  const std::string name = words.empty() ? "" : words[0];
  const std::string value = words.size() > 1 ? words[1] : "";
  if (name.empty()) {
    Write(
        fmt::format("border      {}\nexpanded    {}\nformat      {}\nnull        '{}'\n"
                    "tuples_only {}\n",
                    style_.border, OnOff(style_.expanded),
                    style_.mode == OutputMode::kCsv    ? "csv"
                    : style_.mode == OutputMode::kJson ? "json"
                                                       : "aligned",
                    style_.null_text, OnOff(style_.tuples_only)));
    return true;
  }
  if (name == "null") {
    style_.null_text = value;
    if (!quiet_) Write(fmt::format("Null display is \"{}\".\n", value));
    return true;
  }
  if (name == "format") {
    if (value == "aligned") {
      style_.mode = OutputMode::kAligned;
    } else if (value == "csv") {
      style_.mode = OutputMode::kCsv;
    } else if (value == "json") {
      style_.mode = OutputMode::kJson;
    } else {
      Error("\\pset: allowed formats are aligned, csv, json\n");
      return false;
    }
    if (!quiet_) Write(fmt::format("Output format is {}.\n", value));
    return true;
  }
  if (name == "border") {
    style_.border = value == "0" ? 0 : value == "2" ? 2 : 1;
    if (!quiet_) Write(fmt::format("Border style is {}.\n", style_.border));
    return true;
  }
  if (name == "expanded" || name == "x") {
    style_.expanded_auto = value == "auto";
    style_.expanded = !style_.expanded_auto && Switch(words, 1, style_.expanded);
    return true;
  }
  if (name == "tuples_only" || name == "t") {
    style_.tuples_only = Switch(words, 1, style_.tuples_only);
    return true;
  }
  if (name == "title") {
    style_.title = value;
    return true;
  }
  if (name == "pager" || name == "linestyle" || name == "footer" || name == "columns") return true;
  Error(fmt::format("\\pset: unknown option: {}\n", name));
  return false;
}

// A file, or a command after a bar; empty: stdout. kStop: errno says why.
Shell::Flow Shell::SetOutput(const std::string& target) {
  ShowPage();
  FILE* next = stdout;
  bool pipe = false;
  if (!target.empty() && target[0] == '|') {
    next = ::popen(target.c_str() + 1, "w");
    pipe = true;
  } else if (!target.empty()) {
    const std::vector<std::string> words = SplitArguments(target);
    next = std::fopen(words[0].c_str(), "w");
  }
  if (next == nullptr) return Flow::kStop;
  if (out_is_pipe_) {
    ::pclose(out_);
  } else if (out_ != stdout) {
    std::fclose(out_);
  }
  out_ = next;
  out_is_pipe_ = pipe;
  return Flow::kGoOn;
}

Shell::Flow Shell::Copy(const std::string& arguments) {
  const std::optional<CopyParts> parts = ParseCopy(arguments);
  if (!parts) {
    Error("\\copy: write TABLE FROM|TO FILE or (QUERY) TO FILE\n");
    failed_ = true;
    return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
  }
  FILE* file = nullptr;
  if (parts->file != "-") {
    file = std::fopen(parts->file.c_str() + 1, parts->from ? "r" : "w");
    if (file == nullptr) {
      Error(fmt::format("{}: {}\n", parts->file.substr(1), std::strerror(errno)));
      failed_ = true;
      return stop_on_error_ ? Flow::kStop : Flow::kGoOn;
    }
  }
  ShellSink::Hooks hooks = MakeHooks(&style_);
  if (file != nullptr) {
    hooks.copy_in = [file](std::string* chunk) -> Result<bool> {
      chunk->resize(64 << 10);
      chunk->resize(std::fread(chunk->data(), 1, chunk->size(), file));
      if (std::ferror(file) != 0) {
        return SqlError(Code::kUnavailable, "58030", "could not read: {}", std::strerror(errno));
      }
      return !chunk->empty();
    };
    hooks.copy_out = [file](std::string_view data) -> Status {
      if (std::fwrite(data.data(), 1, data.size(), file) == data.size()) return Status();
      return SqlError(Code::kUnavailable, "58030", "could not write: {}", std::strerror(errno));
    };
  }
  const std::string sql =
      "COPY " + parts->what + (parts->from ? " FROM STDIN " : " TO STDOUT ") + parts->options;
  ShellSink sink(std::move(hooks));
  copy_ended_ = false;
  const Status status = session_->ExecuteSimple(sql, &sink);
  sink.Finish();
  if (file != nullptr) std::fclose(file);
  failed_ = !status.ok();
  if (failed_) Error(ErrorText(status, sql));
  return failed_ && stop_on_error_ ? Flow::kStop : Flow::kGoOn;
}

Shell::Flow Shell::Edit(sql::StatementSplitter* splitter) {
  char path[] = "/tmp/cellar-XXXXXX.sql";
  const int fd = ::mkstemps(path, 4);
  if (fd < 0) {
    Error(fmt::format("\\e: {}\n", std::strerror(errno)));
    return Flow::kGoOn;
  }
  const std::string before =
      splitter->has_statement() ? std::string(splitter->pending()) : last_statement_;
  FILE* file = ::fdopen(fd, "w");
  std::fwrite(before.data(), 1, before.size(), file);
  std::fputs("\n", file);
  std::fclose(file);
  const char* editor = std::getenv("EDITOR");
  if (editor == nullptr || *editor == '\0') editor = "vi";
  ShowPage();
  std::string text;
  if (std::system(fmt::format("{} {}", editor, path).c_str()) == 0) {
    file = std::fopen(path, "r");
    char chunk[4096];
    while (file != nullptr) {
      const size_t got = std::fread(chunk, 1, sizeof(chunk), file);
      if (got == 0) break;
      text.append(chunk, got);
    }
    if (file != nullptr) std::fclose(file);
  } else {
    Error("\\e: the editor did not end well; nothing is changed\n");
    text = before;
  }
  ::unlink(path);
  splitter->Clear();
  if (terminal_) Write(text);
  Flow flow = Flow::kGoOn;
  for (const std::string& statement : splitter->Feed(text)) {
    if (flow == Flow::kGoOn) flow = Execute(statement);
  }
  return flow;
}

}  // namespace cellar::cli
