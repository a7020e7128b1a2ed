// Which types of columns a foreign key can compare. Private to this layer.
#pragma once

#include <string>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/descriptor.h"

namespace cellar::session {

// 42804 unless values of both lie under the same keys of an index.
inline Status CheckForeignKeyTypes(const std::string& constraint,
                                   const catalog::ColumnDescriptor& ours,
                                   const catalog::ColumnDescriptor& theirs) {
  if (ours.type.SameKind(theirs.type) || (IsInteger(ours.type) && IsInteger(theirs.type)) ||
      (IsString(ours.type) && IsString(theirs.type))) {
    return Status();
  }
  return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                  "foreign key constraint \"{}\" cannot be implemented", constraint)
      .WithDetail(fmt::format("Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                              ours.name, theirs.name, FormatType(ours.type),
                              FormatType(theirs.type)));
}

}  // namespace cellar::session
