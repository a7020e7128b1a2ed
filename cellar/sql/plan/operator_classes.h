// The operator classes of btree indexes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/sql/parser/ast.h"
#include "cellar/types/type.h"

namespace cellar::sql {

struct OperatorClass {
  std::string_view name;
  TypeId type;
  bool array;
  bool is_default;
};
std::span<const OperatorClass> OperatorClasses();
std::string_view DefaultOperatorClass(Type type);
// Empty: the type's default. Errors: 42704, 42804.
Result<std::string> ResolveOperatorClass(const ast::QualifiedName& name, Type type);
// Is there a class of this name? Errors: 42704.
Status CheckOperatorClass(const ast::QualifiedName& name);
// Do the class `name` and that of an index's key part (`of_part`, empty: the default of its `type`)
// mean the same of values of the same type?
bool IsOperatorClass(std::string_view name, std::string_view of_part, Type type);

}  // namespace cellar::sql
