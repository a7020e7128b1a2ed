// Which types of columns a foreign key can compare. Private to this layer.
#pragma once

#include <string>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/descriptor.h"
#include "cellar/types/reference_key.h"

namespace cellar::session {

// 42804 unless PostgreSQL compares values of both.
inline Status CheckForeignKeyTypes(const std::string& constraint,
                                   const catalog::ColumnDescriptor& ours,
                                   const catalog::ColumnDescriptor& theirs) {
  if (CanReference(ours.type, theirs.type)) return Status();
  return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                  "foreign key constraint \"{}\" cannot be implemented", constraint)
      .WithDetail(fmt::format("Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                              ours.name, theirs.name, FormatType(ours.type),
                              FormatType(theirs.type)));
}

}  // namespace cellar::session
