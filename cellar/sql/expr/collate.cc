#include "cellar/sql/expr/collate.h"

#include <algorithm>
#include <map>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/function.h"
#include "cellar/types/datum.h"

namespace cellar::sql {
namespace {

using Comparison = FunctionSpec::Comparison;

const FunctionSpec& CollateSpec() {
  static const FunctionSpec spec = [] {
    FunctionSpec made;
    made.name = "relabel";
    made.args = {MakeType(TypeId::kAny)};
    made.result = MakeType(TypeId::kAny);
    made.relabel = true;
    return made;
  }();
  return spec;
}

// Compares by the collation of the first argument's type.
template <Comparison comparison>
Result<Datum> CompareCollated(EvalContext&, const Expr& call, std::span<const Datum> args) {
  const int order = CompareDatums(args[0], args[1], call.args[0]->type);
  switch (comparison) {
    case Comparison::kEqual: return Datum::Bool(order == 0);
    case Comparison::kNotEqual: return Datum::Bool(order != 0);
    case Comparison::kLess: return Datum::Bool(order < 0);
    case Comparison::kLessEqual: return Datum::Bool(order <= 0);
    case Comparison::kGreater: return Datum::Bool(order > 0);
    default: return Datum::Bool(order >= 0);
  }
}

FunctionSpec::ScalarFn CompareFn(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual: return CompareCollated<Comparison::kEqual>;
    case Comparison::kNotEqual: return CompareCollated<Comparison::kNotEqual>;
    case Comparison::kLess: return CompareCollated<Comparison::kLess>;
    case Comparison::kLessEqual: return CompareCollated<Comparison::kLessEqual>;
    case Comparison::kGreater: return CompareCollated<Comparison::kGreater>;
    default: return CompareCollated<Comparison::kGreaterEqual>;
  }
}

// The comparison's twin that goes by a collation.
const FunctionSpec* CollatedTwin(const FunctionSpec& plain) {
  static const std::map<const FunctionSpec*, FunctionSpec>& twins = *[] {
    auto made = std::make_unique<std::map<const FunctionSpec*, FunctionSpec>>();
    for (const FunctionSpec& spec : AllFunctions()) {
      if (spec.comparison == Comparison::kNone || !IsCollatable(spec.args[0])) continue;
      FunctionSpec twin = spec;
      twin.scalar = CompareFn(spec.comparison);
      twin.vector = nullptr;
      twin.kernel = FunctionSpec::Kernel::kNone;
      made->emplace(&spec, std::move(twin));
    }
    return made.release();
  }();
  const auto found = twins.find(&plain);
  return found == twins.end() ? &plain : &found->second;
}

// Searches in text that PostgreSQL refuses too where equal texts may differ in their bytes.
Status CheckSearch(const FunctionSpec& function, const Collation& collation) {
  if (collation.deterministic) return Status();
  static constexpr std::string_view kLike[] = {"~~", "!~~", "~~*", "!~~*"};
  static constexpr std::string_view kRegex[] = {"~",
                                                "!~",
                                                "~*",
                                                "!~*",
                                                "regexp_match",
                                                "regexp_matches",
                                                "regexp_replace",
                                                "regexp_split_to_array",
                                                "regexp_split_to_table",
                                                "regexp_count",
                                                "regexp_instr",
                                                "regexp_like",
                                                "regexp_substr"};
  static constexpr std::string_view kSubstring[] = {
      "position", "strpos", "replace", "split_part", "string_to_array", "string_to_table"};
  const auto is_one_of = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), function.name) != std::end(names);
  };
  const char* what = is_one_of(kLike)        ? "LIKE"
                     : is_one_of(kRegex)     ? "regular expressions"
                     : is_one_of(kSubstring) ? "substring searches"
                                             : nullptr;
  if (what == nullptr) return Status();
  return UnsupportedError("nondeterministic collations are not supported for {}", what);
}

Status NoCollation(int location) {
  return SqlError(Code::kInvalid, sqlstate::kIndeterminateCollation,
                  "could not determine which collation to use for string comparison")
      .WithHint("Use the COLLATE clause to set the collation explicitly.")
      .WithLocation(location);
}

Result<InputCollation> Of(std::span<const ExprPtr> args) {
  std::vector<const Expr*> exprs;
  for (const ExprPtr& arg : args) exprs.push_back(arg.get());
  return CollationOfAll(exprs);
}

void BringTo(const Collation* collation, ExprPtr* expr) {
  if (!IsCollatable((*expr)->type) || (*expr)->type.collation == collation) return;
  const CollationSource source = (*expr)->collation_source;
  *expr = WithCollation(std::move(*expr), collation);
  (*expr)->collation_source = source;
}

}  // namespace

ExprPtr WithCollation(ExprPtr expr, const Collation* collation) {
  Type type = expr->type;
  type.collation = collation;
  ExprPtr out;
  if (expr->kind == ExprKind::kConstant) {
    out = std::move(expr);
    out->constant = Value(type, out->constant.datum());
  } else {
    out = std::make_unique<Expr>();
    out->kind = ExprKind::kCall;
    out->function = &CollateSpec();
    out->location = expr->location;
    out->args.push_back(std::move(expr));
  }
  out->type = type;
  out->collation_source = CollationSource::kExplicit;
  return out;
}

bool IsCollate(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.function == &CollateSpec();
}

CollationSource SourceOfCollation(const Expr& expr) {
  if (expr.collation_source != CollationSource::kImplicit || !IsCollatable(expr.type))
    return expr.collation_source;
  std::vector<const Expr*> parts;
  switch (expr.kind) {
    case ExprKind::kCase:
      for (size_t i = 1; i < expr.args.size(); i += 2) parts.push_back(expr.args[i].get());
      parts.push_back(expr.args.back().get());
      break;
    case ExprKind::kCoalesce:
    case ExprKind::kNullIf:
    case ExprKind::kGreatest:
    case ExprKind::kLeast:
    case ExprKind::kArray:
      for (const ExprPtr& arg : expr.args) parts.push_back(arg.get());
      break;
    case ExprKind::kSubscript: return SourceOfCollation(*expr.args[0]);
    default: return expr.collation_source;
  }
  const Result<InputCollation> input = CollationOfAll(parts);
  return input.ok() ? input->source : CollationSource::kImplicit;
}

Status CollationMismatch(std::span<const Expr* const> exprs, int location) {
  std::vector<const Collation*> found;
  for (const Expr* expr : exprs) {
    VisitExpr(*expr, [&](const Expr& part) {
      const Collation* own = part.type.collation;
      if (own == nullptr || found.size() == 2) return;
      if (found.empty() || found[0] != own) found.push_back(own);
    });
  }
  found.resize(2);
  const auto name = [](const Collation* one) { return one == nullptr ? "default" : one->name; };
  return SqlError(Code::kInvalid, sqlstate::kCollationMismatch,
                  "collation mismatch between implicit collations \"{}\" and \"{}\"",
                  name(found[0]), name(found[1]))
      .WithHint(
          "You can choose the collation by applying the COLLATE clause to one or both expressions.")
      .WithLocation(location);
}

Status CheckAgreed(const Expr& expr) {
  if (!IsCollatable(expr.type) || SourceOfCollation(expr) != CollationSource::kConflict)
    return Status();
  const Expr* one = &expr;
  return CollationMismatch({&one, 1}, expr.location);
}

Result<InputCollation> CollationOfAll(std::span<const Expr* const> exprs) {
  InputCollation out;
  for (const Expr* expr : exprs) {
    if (!IsCollatable(expr->type)) continue;
    const Collation* own = expr->type.collation;
    const CollationSource source = SourceOfCollation(*expr);
    if (source == CollationSource::kExplicit) {
      if (out.source == CollationSource::kExplicit && own != out.collation) {
        const auto name = [](const Collation* one) { return one == nullptr ? "C" : one->name; };
        return SqlError(Code::kInvalid, sqlstate::kCollationMismatch,
                        "collation mismatch between explicit collations \"{}\" and \"{}\"",
                        name(out.collation), name(own))
            .WithLocation(expr->location);
      }
      out = {own, CollationSource::kExplicit};
    } else if (out.source != CollationSource::kExplicit) {
      if (source == CollationSource::kConflict ||
          (own != nullptr && out.collation != nullptr && own != out.collation)) {
        out.source = CollationSource::kConflict;
      } else if (own != nullptr) {
        out.collation = own;
      }
    }
  }
  if (out.source == CollationSource::kConflict) out.collation = nullptr;
  return out;
}

Status Collate(const FunctionSpec** function, std::span<ExprPtr> args, Type* result,
               CollationSource* source) {
  if (std::none_of(args.begin(), args.end(),
                   [](const ExprPtr& arg) { return IsCollatable(arg->type); })) {
    return Status();
  }
  CELLAR_TRY_ASSIGN(const InputCollation input, Of(args));
  if (IsCollatable(*result)) {
    result->collation = input.collation;
    *source = input.source;
  }
  const int location = args[0]->location;
  if ((*function)->comparison == Comparison::kNone) {
    if (input.collation == nullptr) return Status();
    return CheckSearch(**function, *input.collation);
  }
  if (input.source == CollationSource::kConflict) return NoCollation(location);
  const bool equality = (*function)->comparison == Comparison::kEqual ||
                        (*function)->comparison == Comparison::kNotEqual;
  // Bytes decide, as the plain operator does, and faster.
  if (equality && EqualByBytes(input.collation) &&
      std::all_of(args.begin(), args.end(),
                  [](const ExprPtr& arg) { return EqualByBytes(arg->type.collation); })) {
    return Status();
  }
  if (std::all_of(args.begin(), args.end(),
                  [](const ExprPtr& arg) { return arg->type.collation == nullptr; })) {
    return Status();
  }
  for (ExprPtr& arg : args) BringTo(input.collation, &arg);
  if (!args[0]->type.array) *function = CollatedTwin(**function);
  return Status();
}

Status CollateEqually(std::span<ExprPtr> exprs) {
  CELLAR_TRY_ASSIGN(const InputCollation input, Of(exprs));
  if (input.source == CollationSource::kConflict) return NoCollation(exprs[0]->location);
  for (ExprPtr& expr : exprs) BringTo(input.collation, &expr);
  return Status();
}

}  // namespace cellar::sql
