// What a database holds, as statements that make it again. The definitions are those that
// pg_catalog shows to pg_dump, with what Cellar has beyond PostgreSQL: layouts, column groups,
// shards, zones.
#pragma once

#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/session/session.h"

namespace cellar::dump {

// Where the statements go, in order. One thread at a time.
class DumpTarget {
 public:
  virtual ~DumpTarget() = default;
  // One statement, without a semicolon.
  virtual Status Statement(const std::string& sql) = 0;
  // COPY .. FROM stdin into a table, its lines in pieces of any size, and its end.
  virtual Status BeginCopy(const std::string& table, const std::string& sql) = 0;
  virtual Status CopyData(std::string_view data) = 0;
  virtual Status EndCopy() = 0;
};

struct DumpContents {
  std::string table;  // "schema.name" as SQL writes it, or a name in public; empty: all there is
  bool schema = true, data = true;
  bool owners = true, privileges = true;
  bool roles = false;     // before all else, as DumpRoles
  bool database = false;  // after all else, what the database itself has, named: its owner,
                          // comment, privileges and options
  bool csv = false;       // rows as CSV with a header line, which the COPY statement does not say
};

// Of the database that the session is in, as it is at one moment: the session must be new, and is
// good for nothing afterwards. Of one table neither are its schema
// and the types and collations of its columns. Errors: 42P01 for a table that is not
// there; the target's.
Status DumpDatabase(session::Session* session, const DumpContents& contents, DumpTarget* target);
// Roles with their passwords' verifiers and memberships; for a superuser.
Status DumpRoles(session::Session* session, DumpTarget* target);
// ALTER ROLE .. SET, ALTER ROLE .. IN DATABASE .. SET and ALTER DATABASE .. SET of all roles, and
// of all databases that can be connected to, or of this one; for a superuser.
Status DumpSettings(session::Session* session, const std::string& database, DumpTarget* target);

}  // namespace cellar::dump
