// Do the records that hold the catalog agree with each other? Reads them as they lie, so that a
// store which the catalog refuses to open can be looked at too.
#pragma once

#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/engine.h"

namespace cellar::catalog {

// Finds, in words: descriptors and names that do not read, names without descriptors, living
// objects without their names, two objects of one name, objects whose parent or referenced table is
// not there, ids that the sequence would hand out again. Errors: those of the engine. Cost: reads
// all records of the catalog.
Status CheckRecords(kv::Transaction* transaction, std::vector<std::string>* findings);

// Removes names whose objects are not there and writes those that living objects lack, where the
// name is free; moves the sequence of ids behind all ids. *done: what it did; *left: findings that
// it cannot mend.
Status RepairRecords(kv::Transaction* transaction, std::vector<std::string>* done,
                     std::vector<std::string>* left);

}  // namespace cellar::catalog
