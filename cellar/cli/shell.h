// `cellar sql`: statements from a terminal, a file or the command line, and backslash commands.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/cli/commands.h"
#include "cellar/cli/line_editor.h"
#include "cellar/cli/result_printer.h"
#include "cellar/cli/shell_sink.h"
#include "cellar/session/session.h"
#include "cellar/sql/parser/splitter.h"

namespace cellar::cli {

// Where lines come from.
class LineSource {
 public:
  virtual ~LineSource() = default;
  enum class Outcome : unsigned char { kLine, kEnd, kInterrupted };
  virtual Outcome Read(const std::string& prompt, std::string* line) = 0;
  // "file.sql", for messages; empty for a terminal and for -c.
  virtual std::string name() const { return ""; }
  virtual bool interactive() const { return false; }
  int line_number = 0;
};

// One thread at a time.
class Shell {
 public:
  explicit Shell(const SqlOptions& options);
  ~Shell();
  // Opens the store. Errors: as store::OpenDatabase.
  Status Open();
  // Runs what the options name; the exit code.
  int Run();

 private:
  friend class Describer;
  enum class Flow : unsigned char { kGoOn, kQuit, kStop };  // kStop: at an error

  // shell.cc
  Status Connect(const std::string& database);
  int RunInteractive();
  Flow RunFile(const std::string& path);
  Flow RunSource(LineSource* source);
  Flow RunText(const std::string& text);  // -c
  Flow Execute(const std::string& sql, bool expanded_once = false);
  Result<bool> ReadCopyLines(std::string* chunk);
  void Write(std::string_view text);
  void ShowPage();
  void Error(std::string_view text);
  Completion Complete(std::string_view before_cursor);
  ShellSink::Hooks MakeHooks(const PrintStyle* style);

  // shell_commands.cc
  Flow Command(const std::string& text, sql::StatementSplitter* splitter);
  Flow Copy(const std::string& arguments);
  Flow Edit(sql::StatementSplitter* splitter);
  bool PrintSet(const std::vector<std::string>& words);
  Flow SetOutput(const std::string& target);

  // describe.cc
  Flow Describe(const std::string& command, const std::string& pattern);
  Flow ListOf(const std::string& title, const std::string& sql);
  Flow DescribeRelation(const TextRow& relation);

  SqlOptions options_;
  std::unique_ptr<session::Database> database_;
  std::unique_ptr<session::Session> session_;
  PrintStyle style_;
  bool timing_ = false, stop_on_error_ = false, quiet_ = false;
  bool terminal_ = false;
  FILE* out_ = stdout;
  bool out_is_pipe_ = false;
  std::string page_;  // output that may need a pager
  LineSource* source_ = nullptr;
  sql::StatementSplitter* splitter_ = nullptr;
  std::string last_statement_;
  bool failed_ = false;      // the last statement
  bool copy_ended_ = false;  // the end of inline COPY data has been read already
  int file_depth_ = 0;
};

// Words of a backslash command; quotes group.
std::vector<std::string> SplitArguments(std::string_view text);
// A pattern of \d as LIKE patterns: schema ("" for none) and name. Unquoted letters are folded.
std::pair<std::string, std::string> LikePattern(std::string_view pattern);

}  // namespace cellar::cli
