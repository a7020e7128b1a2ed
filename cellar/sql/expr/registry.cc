// The table of functions: signatures read, indexes by name.
#include "cellar/sql/expr/registry.h"

#include "cellar/base/check.h"
#include "cellar/sql/expr/reg_text.h"
#include "cellar/types/array.h"

namespace cellar::sql {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct SignatureType {
  Type type;
  bool variadic = false;
  bool compatible = false;
  bool nonarray = false;
};

SignatureType ReadType(std::string_view text) {
  SignatureType out;
  text = Trim(text);
  if (text.ends_with("...")) {
    out.variadic = true;
    text.remove_suffix(3);
  }
  bool array = text.ends_with("[]");
  if (array) text.remove_suffix(2);
  if (text == "anycompatible" || text == "anycompatiblearray") {
    out.compatible = true;
    out.type = MakeType(text == "anycompatible" ? TypeId::kAnyelement : TypeId::kAnyarray);
    return out;
  }
  if (text == "anynonarray") {
    out.nonarray = true;
    out.type = MakeType(TypeId::kAnyelement);
    return out;
  }
  if (text == "anyelement")
    out.type = MakeType(TypeId::kAnyelement);
  else if (text == "anyarray")
    out.type = MakeType(TypeId::kAnyarray);
  else if (text == "anyenum")
    out.type = MakeType(TypeId::kAnyenum);
  else if (text == "any")
    out.type = MakeType(TypeId::kAny);
  else if (text == "void")
    out.type = MakeType(TypeId::kVoid);
  else if (text == "record")
    out.type = MakeType(TypeId::kRecord);
  else if (text == "char")
    out.type = MakeType(TypeId::kChar);
  else {
    std::optional<Type> found = TypeFromName(text);
    CELLAR_CHECK(found.has_value());
    out.type = *found;
  }
  out.type.modifier = -1;
  out.type.array = array;
  return out;
}

// Splits "name(args) result".
struct Signature {
  std::string_view name;
  std::vector<SignatureType> args;
  SignatureType result;
};

Signature ReadSignature(std::string_view text) {
  Signature out;
  size_t open = text.find('(');
  size_t close = text.rfind(')');
  CELLAR_CHECK(open != std::string_view::npos && close != std::string_view::npos);
  out.name = text.substr(0, open);
  std::string_view args = Trim(text.substr(open + 1, close - open - 1));
  while (!args.empty()) {
    size_t comma = args.find(',');
    out.args.push_back(ReadType(args.substr(0, comma)));
    args = comma == std::string_view::npos ? std::string_view() : args.substr(comma + 1);
  }
  std::string_view result = Trim(text.substr(close + 1));
  if (result.starts_with("setof ")) result.remove_prefix(6);
  out.result = ReadType(result);
  return out;
}

uint32_t CastKey(Type from, Type to) {
  return (static_cast<uint32_t>(from.id) << 16) | static_cast<uint32_t>(to.id);
}

std::string_view StaticTypeName(TypeId id) {
  // Names of casts; TypeName() makes strings, and a spec borrows its name.
  static const std::unordered_map<TypeId, std::string> names = [] {
    std::unordered_map<TypeId, std::string> out;
    for (int i = 1; i < 110; ++i) {
      TypeId type_id = static_cast<TypeId>(i);
      out[type_id] = TypeName(MakeType(type_id));
    }
    return out;
  }();
  return names.at(id);
}

}  // namespace

Registry::Registry() {
  functions_.reserve(2048);
  RegisterOperators(*this);
  RegisterComparisons(*this);
  RegisterCasts(*this);
  RegisterMath(*this);
  RegisterText(*this);
  RegisterTextFormats(*this);
  RegisterPatterns(*this);
  RegisterDateTime(*this);
  RegisterArrays(*this);
  RegisterSets(*this);
  RegisterEnums(*this);
  RegisterJson(*this);
  RegisterSystem(*this);
  RegisterPlainAggregates(*this);
  RegisterAggregates(*this);
  RegisterOrderedAggregates(*this);
  BuildIndex();
}

const Registry& Registry::Get() {
  static const Registry registry;
  return registry;
}

FunctionSpec& Registry::Add(std::string_view text, FunctionSpec::ScalarFn scalar,
                            Volatility volatility) {
  Signature signature = ReadSignature(text);
  FunctionSpec& spec = functions_.emplace_back();
  spec.name = signature.name;
  for (const SignatureType& arg : signature.args) {
    spec.args.push_back(arg.type);
    spec.variadic |= arg.variadic;
    spec.compatible |= arg.compatible;
    spec.nonarray |= arg.nonarray;
  }
  spec.result = signature.result.type;
  spec.volatility = volatility;
  spec.scalar = scalar;
  return spec;
}

FunctionSpec& Registry::AddSet(std::string_view text, FunctionSpec::SetFn set,
                               Volatility volatility) {
  FunctionSpec& spec = Add(text, nullptr, volatility);
  spec.set = set;
  spec.set_columns.emplace_back(std::string(spec.name), spec.result);
  return spec;
}

FunctionSpec& Registry::AddComparison(std::string_view op, Comparison comparison, Type left,
                                      Type right, FunctionSpec::ScalarFn scalar) {
  FunctionSpec& spec = functions_.emplace_back();
  spec.name = op;
  spec.args = {left, right};
  spec.result = MakeType(TypeId::kBool);
  spec.comparison = comparison;
  spec.scalar = scalar;
  return spec;
}

void Registry::AddCast(Type from, Type to, CastContext context, FunctionSpec::ScalarFn scalar,
                       Volatility volatility, FunctionSpec::VectorFn vector) {
  CastSpec& cast = casts_[CastKey(from, to)];
  cast.context = context;
  cast.spec.name = StaticTypeName(to.id);
  cast.spec.args = {from};
  cast.spec.result = to;
  cast.spec.scalar = scalar;
  cast.spec.vector = vector;
  cast.spec.volatility = volatility;
  cast.spec.cast = true;
}

void Registry::AddRelabel(Type from, Type to, CastContext context) {
  AddCast(
      from, to, context, CELLAR_SCALAR { return a[0]; });
  casts_[CastKey(from, to)].spec.relabel = true;
}

void Registry::AddAggregate(std::string_view text,
                            std::unique_ptr<AggregateState> (*make)(std::span<const Type>),
                            bool strict) {
  Signature signature = ReadSignature(text);
  AggregateSpec& spec = aggregates_.emplace_back();
  spec.name = signature.name;
  for (const SignatureType& arg : signature.args) {
    spec.args.push_back(arg.type);
    spec.nonarray |= arg.nonarray;
  }
  spec.result = signature.result.type;
  spec.strict = strict;
  spec.make = make;
}

void Registry::BuildIndex() {
  for (FunctionSpec& spec : functions_) {
    spec.oid = FindFunctionOid(spec);
    by_name_[spec.name].push_back(&spec);
  }
  for (const AggregateSpec& spec : aggregates_) aggregates_by_name_[spec.name].push_back(&spec);
}

std::span<const FunctionSpec* const> Registry::Named(std::string_view name) const {
  auto found = by_name_.find(name);
  if (found == by_name_.end()) return {};
  return found->second;
}

std::span<const AggregateSpec* const> Registry::AggregatesNamed(std::string_view name) const {
  auto found = aggregates_by_name_.find(name);
  if (found == aggregates_by_name_.end()) return {};
  return found->second;
}

const CastSpec* Registry::FindCast(Type from, Type to) const {
  if (from.array || to.array) return nullptr;
  auto found = casts_.find(CastKey(from, to));
  return found == casts_.end() ? nullptr : &found->second;
}

std::span<const FunctionSpec> AllFunctions() { return Registry::Get().functions(); }
std::span<const AggregateSpec> AllAggregates() { return Registry::Get().aggregates(); }

Type ElementOf(Type type) {
  if (type.array) {
    type.array = false;
    return type;
  }
  if (type.id == TypeId::kInt2vector) return MakeType(TypeId::kInt2);
  if (type.id == TypeId::kOidvector) return MakeType(TypeId::kOid);
  return Type{};
}

Status WrongForm(const Expr& e) {
  return InternalError("{} gave a value that is not of type {}",
                       e.function != nullptr ? e.function->name : std::string_view("an expression"),
                       FormatType(e.type));
}

std::string OutputText(Datum value, Type type, EvalContext& context) {
  std::string out;
  FormatSettings format = context.format;
  format.max_text_bytes = kMaxValueBytes;
  if (PrintsName(type.id) && context.session != nullptr) {
    const auto print = [&](uint32_t oid) { return context.session->PrintReg(type.id, oid); };
    if (!type.array) return print(static_cast<uint32_t>(value.int_value()));
    AppendNamesOfArray(value.bytes(), ElementTypeOf(type), format, print, &out);
    return out;
  }
  AppendDatumText(value, type, format, &out);
  return out;
}

std::string CastText(Datum value, Type type, EvalContext& context) {
  if (type == MakeType(TypeId::kBool)) return value.bool_value() ? "true" : "false";
  type.modifier = -1;  // a cast of char(n) to text has no padding
  return OutputText(value, type, context);
}

std::string Padded(std::string_view text, Type type) {
  std::string out;
  AppendDatumText(Datum::Bytes(text), type, FormatSettings(), &out);
  return out;
}

}  // namespace cellar::sql
