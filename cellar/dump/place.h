// A database that a dump can go to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cellar/dump/dump.h"
#include "cellar/dump/texts.h"

namespace cellar::dump {

// A database that statements are run in.
class Place : public DumpTarget {
 public:
  virtual Result<std::vector<TextRow>> Query(const std::string& sql) = 0;
  Status Statement(const std::string& sql) override { return Query(sql).status(); }
};

// Of a store that is open in this process; borrowed.
Result<std::unique_ptr<Place>> OpenPlace(session::Database* store, const std::string& database);

}  // namespace cellar::dump
