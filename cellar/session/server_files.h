// Files of this machine that statements name: COPY ... FROM and TO 'file', BACKUP ... TO
// 'directory'.
//
// A program that opened the store itself may name any file, for it could open that file without us.
// A server answers strangers; it names the directories where their files lie.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"

namespace cellar::session {

class Database;

struct FileCloser {
  void operator()(FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<FILE, FileCloser>;

// Immutable.
class ServerFiles {
 public:
  ServerFiles() = default;  // files may lie anywhere
  // They may only lie in or below one of these; in none if there are none. Errors: kInvalid for
  // what is not a directory that can be entered.
  static Result<ServerFiles> Below(const std::vector<std::string>& directories);

  // Opens a file for COPY FROM (`reading`), or makes or empties one for COPY TO. With directories:
  // links and ".." on the way to the file count as what they lead to, nobody can redirect it
  // meanwhile, and the file itself must be a regular one, no link. Errors: 42602 relative path,
  // 42501 not allowed here or by the system, 58P01 no such file, 42809 no regular file.
  Result<FilePtr> Open(const std::string& name, bool reading) const;
  // A directory for BACKUP, which may be absent if its parent is not: the path to use, of which no
  // part was a link. The rule is that of files; but the path is walked again by whoever uses it, so
  // others must not be able to change the directories that a server is given. Errors: as Open.
  Result<std::string> Directory(const std::string& name) const;

 private:
  struct Root {
    std::string given, real;  // absolute; `real` without links
  };
  bool NamesOne(std::string_view name) const;
  const Root* RootOf(std::string_view real) const;  // nullptr: none

  std::optional<std::vector<Root>> directories_;  // nullopt: anywhere
};

// For whoever opens a database to strangers; before there are sessions.
void LimitServerFiles(Database* database, ServerFiles files);

}  // namespace cellar::session
