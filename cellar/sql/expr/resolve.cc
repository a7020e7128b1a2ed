// Which function a call means: PostgreSQL 15 manual, chapter 10.
#include <fmt/format.h>

#include <algorithm>

#include "cellar/sql/expr/blanks.h"
#include "cellar/sql/expr/registry.h"

namespace cellar::sql {
namespace {

constexpr TypeId kUnknownId = TypeId::kUnknown;

bool IsUnknown(Type type) { return !type.array && type.id == kUnknownId; }
bool IsPolymorphic(Type type) {
  return !type.array && (type.id == TypeId::kAnyelement || type.id == TypeId::kAnyarray ||
                         type.id == TypeId::kAnyenum);
}

// A function and its argument types for a call of so many arguments (variadic ones repeated).
struct Candidate {
  const FunctionSpec* spec;
  std::vector<Type> args;
};

// The element type that kAnyelement and kAnyarray stand for in a call; nullopt when the arguments
// do not fit together. kUnknown when all of them are unknown.
std::optional<Type> ElementForCall(const Candidate& candidate, std::span<const Type> inputs) {
  Type element = MakeType(kUnknownId);
  std::vector<Type> elements;
  const Type* array = nullptr;  // the first one
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsPolymorphic(candidate.args[i]) || IsUnknown(inputs[i])) continue;
    Type type = inputs[i];
    if (candidate.args[i].id == TypeId::kAnyarray) {
      // A vector is no array of its elements.
      if (array == nullptr) array = &inputs[i];
      if (!candidate.spec->compatible && IsArrayLike(type) && type.array != array->array) {
        return std::nullopt;
      }
      type = ElementOf(type);
      if (type.id == TypeId::kInvalid) return std::nullopt;
    } else if (candidate.spec->nonarray && IsArrayLike(type)) {
      return std::nullopt;
    } else if (candidate.args[i].id == TypeId::kAnyenum &&
               (type.array || type.id != TypeId::kEnum)) {
      return std::nullopt;
    }
    type.modifier = -1;
    elements.push_back(type);
  }
  if (elements.empty()) return element;
  if (candidate.spec->compatible) {
    Result<Type> common = CommonType(elements, "arguments");
    if (!common.ok()) return std::nullopt;
    for (Type type : elements) {
      if (!CanCast(type, *common, CastContext::kImplicit)) return std::nullopt;
    }
    return *common;
  }
  for (Type type : elements) {
    if (!type.SameKind(elements[0])) return std::nullopt;
  }
  return elements[0];
}

bool CanCall(const Candidate& candidate, std::span<const Type> inputs) {
  bool polymorphic = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Type target = candidate.args[i];
    if (IsPolymorphic(target)) {
      polymorphic = true;
      continue;
    }
    if (!target.array && target.id == TypeId::kAny) continue;
    if (IsUnknown(inputs[i])) continue;
    if (!CanCast(inputs[i], target, CastContext::kImplicit)) return false;
  }
  return !polymorphic || ElementForCall(candidate, inputs).has_value();
}

std::vector<Candidate> CandidatesFor(std::string_view name, size_t count) {
  std::vector<Candidate> out;
  for (const FunctionSpec* spec : Registry::Get().Named(name)) {
    if (spec->args.size() == count && !spec->variadic) {
      out.push_back({spec, spec->args});
    } else if (spec->variadic && count >= spec->args.size()) {
      std::vector<Type> args = spec->args;
      args.resize(count, spec->args.back());
      out.push_back({spec, std::move(args)});
    }
  }
  return out;
}

const Candidate* ExactMatch(const std::vector<Candidate>& candidates, std::span<const Type> args) {
  for (const Candidate& candidate : candidates) {
    bool same = true;
    for (size_t i = 0; i < args.size() && same; ++i) {
      same = candidate.args[i].SameKind(args[i]);
    }
    if (same) return &candidate;
  }
  return nullptr;
}

template <typename Score>
void KeepBest(std::vector<const Candidate*>* candidates, Score score) {
  int best = -1;
  std::vector<const Candidate*> kept;
  for (const Candidate* candidate : *candidates) {
    int value = score(*candidate);
    if (value > best) {
      best = value;
      kept.clear();
    }
    if (value == best) kept.push_back(candidate);
  }
  *candidates = std::move(kept);
}

// Rules 4.c to 4.f of section 10.3 (3.c to 3.f of 10.2). Null when no candidate is best.
const Candidate* SelectBest(std::vector<const Candidate*> candidates,
                            std::span<const Type> inputs) {
  const size_t count = inputs.size();
  size_t unknowns = 0;
  for (Type type : inputs) unknowns += IsUnknown(type);

  KeepBest(&candidates, [&](const Candidate& c) {
    int matches = 0;
    for (size_t i = 0; i < count; ++i) {
      matches += !IsUnknown(inputs[i]) && c.args[i].SameKind(inputs[i]);
    }
    return matches;
  });
  if (candidates.size() == 1) return candidates[0];

  KeepBest(&candidates, [&](const Candidate& c) {
    int matches = 0;
    for (size_t i = 0; i < count; ++i) {
      if (IsUnknown(inputs[i])) continue;
      matches += c.args[i].SameKind(inputs[i]) ||
                 (IsPreferredType(c.args[i]) && TypeCategory(c.args[i]) == TypeCategory(inputs[i]));
    }
    return matches;
  });
  if (candidates.size() == 1) return candidates[0];
  if (unknowns == 0) return nullptr;

  // What the unknown arguments could be: a string if any candidate takes one, else the one category
  // that all candidates share.
  std::vector<char> categories(count, 0);
  std::vector<bool> preferred(count, false);
  bool resolved = true;
  for (size_t i = 0; i < count && resolved; ++i) {
    if (!IsUnknown(inputs[i])) continue;
    bool conflict = false;
    for (const Candidate* candidate : candidates) {
      char category = TypeCategory(candidate->args[i]);
      bool is_preferred = IsPreferredType(candidate->args[i]);
      if (categories[i] == 0) {
        categories[i] = category;
        preferred[i] = is_preferred;
      } else if (category == categories[i]) {
        preferred[i] = preferred[i] || is_preferred;
      } else if (category == 'S') {
        categories[i] = category;
        preferred[i] = is_preferred;
      } else {
        conflict = true;
      }
    }
    if (conflict && categories[i] != 'S') resolved = false;
  }
  if (resolved) {
    std::vector<const Candidate*> kept;
    for (const Candidate* candidate : candidates) {
      bool keep = true;
      for (size_t i = 0; i < count && keep; ++i) {
        if (!IsUnknown(inputs[i])) continue;
        keep = TypeCategory(candidate->args[i]) == categories[i] &&
               (!preferred[i] || IsPreferredType(candidate->args[i]));
      }
      if (keep) kept.push_back(candidate);
    }
    if (!kept.empty()) candidates = std::move(kept);
    if (candidates.size() == 1) return candidates[0];
  }

  // Last: if all known arguments have one type, the unknown ones have it too.
  if (unknowns < count) {
    Type known = MakeType(kUnknownId);
    for (Type type : inputs) {
      if (IsUnknown(type)) continue;
      if (IsUnknown(known))
        known = type;
      else if (!known.SameKind(type))
        return nullptr;
    }
    std::vector<Type> assumed(count, known);
    const Candidate* only = nullptr;
    for (const Candidate* candidate : candidates) {
      if (!CanCall(*candidate, assumed)) continue;
      if (only != nullptr) return nullptr;
      only = candidate;
    }
    return only;
  }
  return nullptr;
}

// `shows_blanks`: what a polymorphic argument of type char(n) is, the call sees with its blanks.
// Comparisons and count() need not.
Result<ResolvedFunction> Finish(const Candidate& candidate, std::span<const Type> inputs) {
  const bool shows_blanks =
      candidate.spec->comparison == Comparison::kNone && candidate.spec->name != "count";
  ResolvedFunction out;
  out.spec = candidate.spec;
  Type element;
  bool polymorphic = false;
  for (Type type : candidate.args) polymorphic |= IsPolymorphic(type);
  if (polymorphic) {
    std::optional<Type> found = ElementForCall(candidate, inputs);
    if (!found.has_value() || IsUnknown(*found)) {
      // kAnyelement alone of unknown inputs under "anycompatible" is text; otherwise there is no
      // answer.
      if (candidate.spec->compatible) {
        found = MakeType(TypeId::kText);
      } else {
        return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                        "could not determine polymorphic type because input has type unknown");
      }
    }
    element = *found;
  }
  Type array;  // of that element, where the call needs it
  const auto any_array = [](Type type) { return !type.array && type.id == TypeId::kAnyarray; };
  bool arrays = any_array(candidate.spec->result);
  for (Type type : candidate.args) arrays |= any_array(type);
  if (arrays) {
    CELLAR_TRY_ASSIGN(array, ArrayTypeFor(element));
  }
  auto concrete = [&](Type declared, Type input) {
    if (declared.array) return declared;
    switch (declared.id) {
      case TypeId::kAny: return input;
      case TypeId::kAnyenum:
      case TypeId::kAnyelement: return element;
      case TypeId::kAnyarray:
        // int2vector and oidvector stay as they are: they lie in memory like arrays.
        if (IsArrayLike(input) && ElementOf(input).SameKind(element)) return input;
        return array;
      default: return declared;
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.arg_types.push_back(concrete(candidate.args[i], inputs[i]));
    const Type declared = candidate.args[i];
    const bool any = IsPolymorphic(declared) || (!declared.array && declared.id == TypeId::kAny);
    if (any && HidesBlanks(inputs[i]) && shows_blanks) {
      // What takes any type sees the value as it is shown.
      out.arg_types.back() = Plain(inputs[i]);
    } else if (out.arg_types.back().SameKind(inputs[i])) {
      out.arg_types.back() = inputs[i];
    }
  }
  Type result = candidate.spec->result;
  if (!result.array && (result.id == TypeId::kAnyelement || result.id == TypeId::kAnyenum)) {
    result = element;
  }
  if (any_array(result)) {
    result = array;
    for (size_t i = 0; i < inputs.size() && !candidate.spec->compatible; ++i) {
      if (any_array(candidate.args[i]) && !inputs[i].array && IsArrayLike(inputs[i])) {
        result = inputs[i];  // a vector stays one
      }
    }
  }
  result.modifier = -1;
  out.result = result;
  return out;
}

std::string TypeList(std::span<const Type> types) {
  std::string out;
  for (Type type : types) {
    if (!out.empty()) out += ", ";
    type.modifier = -1;
    out += FormatType(type);
  }
  return out;
}

std::string OperatorText(std::string_view op, std::span<const Type> args) {
  auto name = [](Type type) {
    type.modifier = -1;
    return FormatType(type);
  };
  if (args.size() == 1) return fmt::format("{} {}", op, name(args[0]));
  return fmt::format("{} {} {}", name(args[0]), op, name(args[1]));
}

}  // namespace

char TypeCategory(Type type) {
  if (type.array) return 'A';
  switch (type.id) {
    case TypeId::kBool: return 'B';
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kFloat4:
    case TypeId::kFloat8:
    case TypeId::kNumeric:
    case TypeId::kOid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: return 'N';
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kName: return 'S';
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimetz:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: return 'D';
    case TypeId::kInterval: return 'T';
    case TypeId::kChar:
    case TypeId::kPgNodeTree: return 'Z';
    case TypeId::kInt2vector:
    case TypeId::kOidvector: return 'A';
    case TypeId::kUnknown: return 'X';
    case TypeId::kVoid:
    case TypeId::kRecord:
    case TypeId::kAnyelement:
    case TypeId::kAnyarray:
    case TypeId::kAnyenum:
    case TypeId::kAny: return 'P';
    case TypeId::kEnum: return 'E';
    default: return 'U';
  }
}

bool IsPreferredType(Type type) {
  if (type.array) return false;
  switch (type.id) {
    case TypeId::kBool:
    case TypeId::kFloat8:
    case TypeId::kOid:
    case TypeId::kText:
    case TypeId::kTimestamptz:
    case TypeId::kInterval: return true;
    default: return false;
  }
}

Result<ResolvedFunction> ResolveFunction(std::string_view name, std::span<const Type> args) {
  std::vector<Candidate> candidates = CandidatesFor(name, args.size());
  if (const Candidate* exact = ExactMatch(candidates, args)) return Finish(*exact, args);

  // A type's name with one argument is a cast.
  if (args.size() == 1) {
    std::optional<Type> target = TypeFromName(name);
    if (target.has_value() && TypeName(*target) == name) {
      const CastSpec* cast = Registry::Get().FindCast(args[0], *target);
      ResolvedFunction out;
      out.result = *target;
      out.arg_types = {args[0]};
      if (cast != nullptr && cast->spec.relabel) {
        out.spec = &cast->spec;
        return out;
      }
      if (IsUnknown(args[0]) ||
          (cast == nullptr && CanCast(args[0], *target, CastContext::kExplicit) &&
           (TypeCategory(args[0]) == 'S' || TypeCategory(*target) == 'S'))) {
        if (IsUnknown(args[0])) out.arg_types = {MakeType(TypeId::kText)};
        out.spec = &TextCastSpec();
        return out;
      }
      if (cast != nullptr && candidates.empty()) {
        out.spec = &cast->spec;
        return out;
      }
    }
  }

  std::vector<const Candidate*> fitting;
  for (const Candidate& candidate : candidates) {
    if (CanCall(candidate, args)) fitting.push_back(&candidate);
  }
  // In PostgreSQL a bare literal could also be of types that are not here: a MAC address, bits.
  const bool of_others =
      args.size() == 1 && IsUnknown(args[0]) && (name == "trunc" || name == "bit_count");
  if (fitting.size() == 1 && !of_others) return Finish(*fitting[0], args);
  if (!fitting.empty()) {
    const Candidate* best = of_others ? nullptr : SelectBest(fitting, args);
    if (best != nullptr) return Finish(*best, args);
    return SqlError(Code::kInvalid, sqlstate::kAmbiguousFunction, "function {}({}) is not unique",
                    name, TypeList(args))
        .WithHint(
            "Could not choose a best candidate function. You might need to add explicit type "
            "casts.");
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction, "function {}({}) does not exist",
                  name, TypeList(args))
      .WithHint(
          "No function matches the given name and argument types. You might need to add explicit "
          "type casts.");
}

Result<ResolvedFunction> ResolveOperator(std::string_view op, std::span<const Type> args) {
  if (op == "!=") op = "<>";
  std::vector<Candidate> candidates = CandidatesFor(op, args.size());
  if (const Candidate* exact = ExactMatch(candidates, args)) return Finish(*exact, args);
  if (args.size() == 2 && IsUnknown(args[0]) != IsUnknown(args[1])) {
    // An unknown operand is taken for the type of the other.
    Type known = IsUnknown(args[0]) ? args[1] : args[0];
    Type both[2] = {known, known};
    if (const Candidate* exact = ExactMatch(candidates, both)) return Finish(*exact, both);
  }
  std::vector<const Candidate*> fitting;
  for (const Candidate& candidate : candidates) {
    if (CanCall(candidate, args)) fitting.push_back(&candidate);
  }
  const Candidate* best = nullptr;
  if (fitting.size() == 1) best = fitting[0];
  if (fitting.size() > 1) {
    best = SelectBest(fitting, args);
    if (best == nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kAmbiguousFunction, "operator is not unique: {}",
                      OperatorText(op, args))
          .WithHint(
              "Could not choose a best candidate operator. You might need to add explicit type "
              "casts.");
    }
  }
  if (best != nullptr) return Finish(*best, args);
  return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction, "operator does not exist: {}",
                  OperatorText(op, args))
      .WithHint(args.size() == 1
                    ? "No operator matches the given name and argument type. You might need to add "
                      "an explicit type cast."
                    : "No operator matches the given name and argument types. You might need to "
                      "add explicit type casts.");
}

bool FunctionExists(std::string_view name) {
  return !Registry::Get().Named(name).empty() || TypeFromName(name).has_value();
}

Result<Type> CommonType(std::span<const Type> types, std::string_view what) {
  Type best = MakeType(kUnknownId);
  bool same = !types.empty();
  for (Type type : types) same = same && type == types[0];
  if (same && !IsUnknown(types[0])) return types[0];
  for (Type type : types) {
    type.modifier = -1;
    if (IsUnknown(type)) continue;
    if (IsUnknown(best)) {
      best = type;
      continue;
    }
    if (type.SameKind(best)) continue;
    if (TypeCategory(type) != TypeCategory(best)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "{} types {} and {} cannot be matched", what, FormatType(best),
                      FormatType(type));
    }
    if (!IsPreferredType(best) && CanCast(best, type, CastContext::kImplicit) &&
        !CanCast(type, best, CastContext::kImplicit)) {
      best = type;
    }
  }
  if (IsUnknown(best)) return MakeType(TypeId::kText);
  for (Type type : types) {
    if (!IsUnknown(type) && !CanCast(type, best, CastContext::kImplicit)) {
      return SqlError(Code::kInvalid, sqlstate::kCannotCoerce, "{} could not convert type {} to {}",
                      what, FormatType(type), FormatType(best));
    }
  }
  return best;
}

Result<Type> ArrayTypeFor(Type element) {
  const Type array = ArrayOf(element);
  if (element.array || element.id == TypeId::kUnknown || OidOf(array) == 0) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                    "could not find array type for data type {}", FormatType(Plain(element)));
  }
  return array;
}

namespace {

const FunctionSpec* ComparisonOf(Comparison comparison, Type left, Type right) {
  static constexpr std::string_view kSymbols[] = {"", "=", "<>", "<", "<=", ">", ">="};
  for (const FunctionSpec* spec :
       Registry::Get().Named(kSymbols[static_cast<size_t>(comparison)])) {
    if (spec->args.size() == 2 && spec->args[0].SameKind(left) && spec->args[1].SameKind(right)) {
      return spec;
    }
  }
  return nullptr;
}

// The comparison that PostgreSQL's default operator class of a type has: text's for varchar, and so
// on.
const FunctionSpec* DefaultComparison(Comparison comparison, Type type) {
  if (IsArrayLike(type) && type.array)
    type = MakeType(TypeId::kAnyarray);
  else if (type.id == TypeId::kEnum)
    type = MakeType(TypeId::kAnyenum);
  else if (type.id == TypeId::kVarchar || IsUnknown(type))
    type = MakeType(TypeId::kText);
  else if (TypeCategory(type) == 'N' && type.id >= TypeId::kRegclass)
    type = MakeType(TypeId::kOid);
  else if (type.id == TypeId::kInt2vector)
    type = MakeType(TypeId::kAnyarray);
  type.modifier = -1;
  return ComparisonOf(comparison, type, type);
}

}  // namespace

const FunctionSpec* Commutator(const FunctionSpec& op) {
  using C = Comparison;
  if (op.args.size() != 2) return nullptr;
  C mate = C::kNone;
  switch (op.comparison) {
    case C::kEqual: mate = C::kEqual; break;
    case C::kNotEqual: mate = C::kNotEqual; break;
    case C::kLess: mate = C::kGreater; break;
    case C::kLessEqual: mate = C::kGreaterEqual; break;
    case C::kGreater: mate = C::kLess; break;
    case C::kGreaterEqual: mate = C::kLessEqual; break;
    case C::kNone: break;
  }
  if (mate != C::kNone) return ComparisonOf(mate, op.args[1], op.args[0]);
  static constexpr std::pair<std::string_view, std::string_view> kMates[] = {
      {"+", "+"}, {"*", "*"},   {"&", "&"},   {"|", "|"},
      {"#", "#"}, {"&&", "&&"}, {"@>", "<@"}, {"<@", "@>"}};
  for (const auto& [name, other] : kMates) {
    if (op.name != name) continue;
    for (const FunctionSpec* spec : Registry::Get().Named(other)) {
      if (spec->args.size() == 2 && spec->args[0].SameKind(op.args[1]) &&
          spec->args[1].SameKind(op.args[0])) {
        return spec;
      }
    }
  }
  return nullptr;
}

const FunctionSpec* Negator(const FunctionSpec& op) {
  using C = Comparison;
  if (op.args.size() != 2) return nullptr;
  switch (op.comparison) {
    case C::kEqual: return ComparisonOf(C::kNotEqual, op.args[0], op.args[1]);
    case C::kNotEqual: return ComparisonOf(C::kEqual, op.args[0], op.args[1]);
    case C::kLess: return ComparisonOf(C::kGreaterEqual, op.args[0], op.args[1]);
    case C::kLessEqual: return ComparisonOf(C::kGreater, op.args[0], op.args[1]);
    case C::kGreater: return ComparisonOf(C::kLessEqual, op.args[0], op.args[1]);
    case C::kGreaterEqual: return ComparisonOf(C::kLess, op.args[0], op.args[1]);
    case C::kNone: break;
  }
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"~~", "!~~"}, {"~~*", "!~~*"}, {"~", "!~"}, {"~*", "!~*"}};
  for (const auto& [yes, no] : kPairs) {
    if (op.name != yes && op.name != no) continue;
    for (const FunctionSpec* spec : Registry::Get().Named(op.name == yes ? no : yes)) {
      if (spec->args == op.args) return spec;
    }
  }
  return nullptr;
}

const FunctionSpec* EqualityOperator(Type type) {
  return DefaultComparison(Comparison::kEqual, type);
}
const FunctionSpec* LessOperator(Type type) { return DefaultComparison(Comparison::kLess, type); }

// ---- Aggregates ----

bool IsAggregate(std::string_view name) { return !Registry::Get().AggregatesNamed(name).empty(); }

Result<ResolvedAggregate> ResolveAggregate(std::string_view name, std::span<const Type> args,
                                           bool star) {
  // Aggregates choose as functions do: stand-in specs carry their signatures through the same
  // rules.
  std::span<const AggregateSpec* const> named = Registry::Get().AggregatesNamed(name);
  std::vector<FunctionSpec> stand_ins;
  stand_ins.reserve(named.size());
  std::vector<Candidate> candidates;
  for (const AggregateSpec* aggregate : named) {
    if (aggregate->args.size() != args.size() || (star && !aggregate->args.empty())) continue;
    FunctionSpec& spec = stand_ins.emplace_back();
    spec.name = aggregate->name;
    spec.args = aggregate->args;
    spec.result = aggregate->result;
    spec.nonarray = aggregate->nonarray;
    candidates.push_back({&spec, spec.args});
  }
  const Candidate* best = nullptr;
  bool ambiguous = false;
  if (star ? !candidates.empty() : !args.empty()) best = ExactMatch(candidates, args);
  if (best == nullptr && !star) {
    std::vector<const Candidate*> fitting;
    for (const Candidate& candidate : candidates) {
      if (!args.empty() && CanCall(candidate, args)) fitting.push_back(&candidate);
    }
    if (fitting.size() == 1) best = fitting[0];
    if (fitting.size() > 1) {
      best = SelectBest(fitting, args);
      ambiguous = best == nullptr;
    }
  }
  if (ambiguous) {
    return SqlError(Code::kInvalid, sqlstate::kAmbiguousFunction, "function {}({}) is not unique",
                    name, TypeList(args))
        .WithHint(
            "Could not choose a best candidate function. You might need to add explicit type "
            "casts.");
  }
  if (best == nullptr) {
    if (!star && args.empty() && !named.empty() && name == "count") {
      return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                      "count(*) must be used to call a parameterless aggregate function");
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction, "function {}({}) does not exist",
                    name, star ? "*" : TypeList(args))
        .WithHint(
            "No function matches the given name and argument types. You might need to add "
            "explicit type casts.");
  }
  CELLAR_TRY_ASSIGN(ResolvedFunction resolved, Finish(*best, args));
  ResolvedAggregate out;
  out.arg_types = std::move(resolved.arg_types);
  out.result = resolved.result;
  if (name == "array_agg" && !out.result.array && IsArrayLike(out.result)) {
    // An array of vectors would be a vector of two dimensions, which there are none of.
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch, "array is not a valid {}",
                    FormatType(out.result));
  }
  for (const AggregateSpec* aggregate : named) {
    if (aggregate->args == best->args) out.spec = aggregate;
  }
  return out;
}

}  // namespace cellar::sql
