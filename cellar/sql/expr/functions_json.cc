// Operators and functions of json and jsonb, over the text that both are kept as.
#include <algorithm>
#include <charconv>

#include "cellar/sql/expr/json_value.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/json.h"
#include "cellar/types/record.h"

namespace cellar::sql {

namespace {

constexpr size_t kJsonTextBytes = 64 << 10;  // of a string between looks at size and statement

Status AppendArray(std::string_view bytes, Type element, EvalContext& context, std::string* out) {
  const ArrayView view(bytes, element);
  // Inner dimensions nest in order of storage.
  size_t next = 0;
  const auto nest = [&](auto&& self, int dimension) -> Status {
    *out += '[';
    for (int32_t i = 0; dimension < view.dimensions() && i < view.length(dimension); ++i) {
      CELLAR_TRY(MayGrow(context, *out, 1));
      if (i > 0) *out += ',';
      if (dimension + 1 < view.dimensions())
        CELLAR_TRY(self(self, dimension + 1));
      else
        CELLAR_TRY(AppendJson(view.Get(next++), element, context, out));
    }
    *out += ']';
    return Status();
  };
  return nest(nest, 0);
}

Status AppendRecord(std::string_view record, EvalContext& context, std::string* out) {
  *out += '{';
  int i = 0;
  for (const RecordField& field : RecordFields(record)) {
    if (i > 0) *out += ',';
    ++i;
    CELLAR_TRY(AppendJsonText(
        field.name.empty() ? "f" + std::to_string(i) : std::string(field.name), context, out));
    *out += ':';
    CELLAR_TRY(AppendJson(field.value, field.type, context, out));
  }
  *out += '}';
  return Status();
}

}  // namespace

Status AppendJsonText(std::string_view text, EvalContext& context, std::string* out) {
  CELLAR_TRY(MayGrow(context, *out, std::min(text.size(), kJsonTextBytes)));
  AppendJsonString(text.substr(0, kJsonTextBytes), out);
  std::string piece;
  for (size_t at = kJsonTextBytes; at < text.size(); at += kJsonTextBytes) {
    piece.clear();
    AppendJsonString(text.substr(at, kJsonTextBytes), &piece);
    CELLAR_TRY(MayGrow(context, *out, piece.size()));
    out->pop_back();  // both are quoted
    out->append(piece, 1);
  }
  return Status();
}

Status AppendJson(Datum value, Type type, EvalContext& context, std::string* out) {
  CELLAR_TRY(MayGrow(context, *out, 4));
  if (value.is_null()) {
    *out += "null";
    return Status();
  }
  if (IsArrayLike(type)) return AppendArray(value.bytes(), ElementOf(type), context, out);
  switch (type.id) {
    case TypeId::kBool: *out += value.bool_value() ? "true" : "false"; return Status();
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kFloat4:
    case TypeId::kFloat8:
    case TypeId::kNumeric: {
      std::string text = OutputText(value, type, context);
      const bool number = (text.back() >= '0' && text.back() <= '9');
      if (!number) return AppendJsonText(text, context, out);
      *out += text;
      return Status();
    }
    case TypeId::kJson:
    case TypeId::kJsonb:
      CELLAR_TRY(MayGrow(context, *out, value.bytes().size()));
      *out += value.bytes();
      return Status();
    case TypeId::kRecord: return AppendRecord(value.bytes(), context, out);
    case TypeId::kDate:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: {
      FormatSettings iso = context.format;
      iso.date_style = DateStyle::kIso;
      std::string text;
      AppendDatumText(value, type, iso, &text);
      if (type.id == TypeId::kDate) return AppendJsonText(text, context, out);
      const size_t era = text.ends_with(" BC") ? text.size() - 3 : text.size();
      if (type.id == TypeId::kTimestamptz && value.int_value() != kTimestampInfinity &&
          value.int_value() != kTimestampNegativeInfinity && era > 3 &&
          (text[era - 3] == '+' || text[era - 3] == '-')) {
        text.insert(era, ":00");
      }
      size_t blank = text.find(' ');
      if (blank != std::string::npos && text[0] >= '0' && text[0] <= '9') text[blank] = 'T';
      return AppendJsonText(text, context, out);
    }
    default: return AppendJsonText(OutputText(value, type, context), context, out);
  }
}

Status AppendJsonKey(Datum value, Type type, EvalContext& context, std::string* out) {
  if (IsArrayLike(type) || type.id == TypeId::kRecord || type.id == TypeId::kJson ||
      type.id == TypeId::kJsonb) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "key value must be scalar, not array, composite, or json");
  }
  std::string text;
  CELLAR_TRY(AppendJson(value, type, context, &text));
  CELLAR_TRY(MayGrow(context, *out, text.size() + 2));
  const bool quoted = text.starts_with('"');
  if (!quoted) *out += '"';
  *out += text;
  if (!quoted) *out += '"';
  return Status();
}

namespace {

std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

Result<Datum> AsText(EvalContext& context, std::optional<std::string_view> json) {
  if (!json.has_value()) return Datum();
  std::string out;
  CELLAR_TRY_ASSIGN(const bool some, JsonAsText(*json, &out));
  if (!some) return Datum();
  return TextOf(context, out);
}
Datum AsJson(std::optional<std::string_view> json) {
  return json.has_value() ? Datum::Bytes(*json) : Datum();
}

// One step of a path: a key of an object, a number of an array.
std::optional<std::string_view> Step(std::string_view json, std::string_view key) {
  json = Trimmed(json);
  if (JsonTypeOf(json) == JsonType::kObject) return JsonField(json, key);
  if (JsonTypeOf(json) != JsonType::kArray || key.empty()) return std::nullopt;
  int64_t index = 0;
  size_t i = key[0] == '-' ? 1 : 0;
  if (i == key.size() || key.size() > 10) return std::nullopt;
  for (; i < key.size(); ++i) {
    if (key[i] < '0' || key[i] > '9') return std::nullopt;
    index = index * 10 + (key[i] - '0');
  }
  return JsonElement(json, key[0] == '-' ? -index : index);
}

std::optional<std::string_view> Path(std::string_view json, std::string_view path) {
  ArrayView view(path, MakeType(TypeId::kText));
  std::optional<std::string_view> at = json;
  for (size_t i = 0; i < view.size() && at.has_value(); ++i) {
    if (view.IsNull(i)) return std::nullopt;
    at = Step(*at, view.Get(i).bytes());
  }
  return at;
}
std::optional<std::string_view> ArgumentPath(Args a) {
  std::optional<std::string_view> at = a[0].bytes();
  for (size_t i = 1; i < a.size() && at.has_value(); ++i) at = Step(*at, a[i].bytes());
  return at;
}

Result<Datum> Jsonb(EvalContext& context, std::string_view text) {
  CELLAR_TRY(CheckValueSize(text.size()));
  CELLAR_TRY_ASSIGN(std::string_view out, ParseJsonb(text, context.arena()));
  return Datum::Bytes(out);
}

std::string_view TypeWord(std::string_view json) {
  switch (JsonTypeOf(Trimmed(json))) {
    case JsonType::kNull: return "null";
    case JsonType::kString: return "string";
    case JsonType::kNumber: return "number";
    case JsonType::kBoolean: return "boolean";
    case JsonType::kArray: return "array";
    case JsonType::kObject: return "object";
  }
  return "null";
}

bool IsScalar(std::string_view json) {
  JsonType type = JsonTypeOf(json);
  return type != JsonType::kArray && type != JsonType::kObject;
}

// jsonb containment; arrays ignore order and repeats, and may contain a bare scalar at the top.
bool Contains(std::string_view outer, std::string_view inner, bool top = true) {
  const JsonType a = JsonTypeOf(outer), b = JsonTypeOf(inner);
  std::string_view key, value;
  if (a == JsonType::kObject && b == JsonType::kObject) {
    JsonCursor members(inner);
    while (members.Next(&key, &value)) {
      std::string name;
      AppendJsonUnescaped(key, &name).ok();  // jsonb holds no other text
      std::optional<std::string_view> found = JsonField(outer, name);
      if (!found.has_value() || !Contains(*found, value, false)) return false;
    }
    return true;
  }
  const auto has_element = [&](std::string_view wanted) {
    std::string_view ignored, element;
    JsonCursor elements(outer);
    while (elements.Next(&ignored, &element)) {
      if (IsScalar(wanted)
              ? CompareJsonb(element, wanted) == 0
              : JsonTypeOf(element) == JsonTypeOf(wanted) && Contains(element, wanted, false)) {
        return true;
      }
    }
    return false;
  };
  if (a == JsonType::kArray && b == JsonType::kArray) {
    JsonCursor elements(inner);
    while (elements.Next(&key, &value)) {
      if (!has_element(value)) return false;
    }
    return true;
  }
  if (a == JsonType::kArray && top && IsScalar(inner)) return has_element(inner);
  return a == b && IsScalar(outer) && CompareJsonb(outer, inner) == 0;
}

bool HasKey(std::string_view json, std::string_view key) {
  if (JsonTypeOf(json) == JsonType::kObject) return JsonField(json, key).has_value();
  std::string literal;
  AppendJsonString(key, &literal);
  if (JsonTypeOf(json) != JsonType::kArray) return json == literal;
  std::string_view ignored, element;
  JsonCursor elements(json);
  while (elements.Next(&ignored, &element)) {
    if (element == literal) return true;
  }
  return false;
}
template <bool all>
Result<Datum> HasKeys(EvalContext&, const Expr&, Args a) {
  ArrayView keys(a[1].bytes(), MakeType(TypeId::kText));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys.IsNull(i) && HasKey(a[0].bytes(), keys.Get(i).bytes()) != all) {
      return Datum::Bool(!all);
    }
  }
  return Datum::Bool(all);
}

Result<Datum> Concatenate(EvalContext& context, const Expr&, Args a) {
  std::string_view left = a[0].bytes(), right = a[1].bytes();
  const bool objects =
      JsonTypeOf(left) == JsonType::kObject && JsonTypeOf(right) == JsonType::kObject;
  const auto inside = [&](std::string_view json) {
    const bool container = objects || JsonTypeOf(json) == JsonType::kArray;
    return container ? Trimmed(json.substr(1, json.size() - 2)) : json;
  };
  std::string_view l = inside(left), r = inside(right);
  CELLAR_TRY(CheckValueSize(l.size() + r.size()));
  std::string out(objects ? "{" : "[");
  out += l;
  if (!l.empty() && !r.empty()) out += ", ";
  out += r;
  out += objects ? '}' : ']';
  return Jsonb(context, out);  // later members win
}

// The members or elements for which keep(key literal, index, value) holds.
template <typename Keep>
Result<Datum> Filtered(EvalContext& context, std::string_view json, Keep keep) {
  const bool object = JsonTypeOf(json) == JsonType::kObject;
  std::string out(object ? "{" : "[");
  std::string_view key, value;
  JsonCursor cursor(json);
  int64_t index = 0;
  bool first = true;
  while (cursor.Next(&key, &value)) {
    CELLAR_TRY(MayGrow(context, out, key.size() + value.size()));
    if (!keep(key, index++, value)) continue;
    if (!first) out += ", ";
    first = false;
    if (object) {
      out += key;
      out += ": ";
    }
    out += value;
  }
  out += object ? '}' : ']';
  return TextOf(context, out);
}

Status DeleteError(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "cannot delete from {}", what);
}

bool KeyIs(std::string_view literal, std::string_view name) {
  std::string key;
  return AppendJsonUnescaped(literal, &key).ok() && key == name;
}

Result<Datum> DeleteKey(EvalContext& context, const Expr&, Args a) {
  if (IsScalar(a[0].bytes())) return DeleteError("scalar");
  const bool object = JsonTypeOf(a[0].bytes()) == JsonType::kObject;
  return Filtered(context, a[0].bytes(),
                  [&](std::string_view key, int64_t, std::string_view value) {
                    std::string_view name = object ? key : value;
                    return !(name.starts_with('"') && KeyIs(name, a[1].bytes()));
                  });
}
Result<Datum> DeleteIndex(EvalContext& context, const Expr&, Args a) {
  if (IsScalar(a[0].bytes())) return DeleteError("scalar");
  if (JsonTypeOf(a[0].bytes()) == JsonType::kObject) {
    return DeleteError("object using integer index");
  }
  int64_t index = a[1].int_value();
  if (index < 0) index += static_cast<int64_t>(JsonCount(a[0].bytes()));
  return Filtered(context, a[0].bytes(),
                  [&](std::string_view, int64_t at, std::string_view) { return at != index; });
}

// A path's steps must not be NULL, and must be numbers where they meet an array, as far as there is
// something to meet. Errors: 22004, 22P02.
Status CheckPath(std::string_view json, const ArrayView& path) {
  std::optional<std::string_view> at = json;
  for (size_t i = 0; i < path.size() && at.has_value(); ++i) {
    if (path.IsNull(i)) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                      "path element at position {} is null", i + 1);
    }
    if (IsScalar(*at)) break;
    const std::string_view step = path.Get(i).bytes();
    if (JsonTypeOf(*at) == JsonType::kArray) {
      int64_t index = 0;
      auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
      if (error != std::errc() || end != step.data() + step.size()) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                        "path element at position {} is not an integer: \"{}\"", i + 1, step);
      }
    }
    at = Step(*at, step);
  }
  return Status();
}

// jsonb_set and jsonb_insert along a path of keys; `depth` counts steps taken.
Status SetPath(EvalContext& context, std::string_view json, const ArrayView& path, size_t depth,
               std::string_view value, bool create, std::string* out) {
  const JsonType type = JsonTypeOf(json);
  if (depth == path.size() || (type != JsonType::kObject && type != JsonType::kArray)) {
    *out += depth == path.size() ? value : json;
    return Status();
  }
  if (path.IsNull(depth)) {
    *out += json;
    return Status();
  }
  const std::string_view step = path.Get(depth).bytes();
  const bool object = type == JsonType::kObject, last = depth + 1 == path.size();
  int64_t wanted = -1;
  if (!object) {
    wanted = std::atoll(std::string(step).c_str());
    const int64_t count = static_cast<int64_t>(JsonCount(json));
    if (wanted < 0) wanted += count;
    if (wanted < 0 && create && last) wanted = INT64_MIN;
  }
  *out += object ? '{' : '[';
  std::string_view key, member;
  JsonCursor cursor(json);
  int64_t index = 0;
  bool first = true, found = false;
  const auto separate = [&] {
    if (!first) *out += ", ";
    first = false;
  };
  if (wanted == INT64_MIN) {
    separate();
    *out += value;
    found = true;
  }
  while (cursor.Next(&key, &member)) {
    CELLAR_TRY(MayGrow(context, *out, key.size() + member.size()));
    separate();
    const bool here = object ? KeyIs(key, step) : index == wanted;
    ++index;
    if (object) {
      *out += key;
      *out += ": ";
    }
    if (!here) {
      *out += member;
      continue;
    }
    found = true;
    CELLAR_TRY(SetPath(context, member, path, depth + 1, value, create, out));
  }
  if (!found && create && last) {
    separate();
    if (object) {
      CELLAR_TRY(AppendJsonText(step, context, out));
      *out += ": ";
    }
    *out += value;
  }
  *out += object ? '}' : ']';
  return CheckValueSize(out->size());
}

Status OneDimension(const ArrayView& array) {
  if (array.dimensions() <= 1) return Status();
  return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                  "wrong number of array subscripts");
}

Result<Datum> JsonbSet(EvalContext& context, const Expr&, Args a) {
  ArrayView path(a[1].bytes(), MakeType(TypeId::kText));
  CELLAR_TRY(OneDimension(path));
  if (IsScalar(a[0].bytes())) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "cannot set path in scalar");
  }
  const bool create = a.size() < 4 || a[3].bool_value();
  if (path.size() == 0 || (!create && JsonCount(a[0].bytes()) == 0)) return a[0];
  CELLAR_TRY(CheckPath(a[0].bytes(), path));
  std::string out;
  CELLAR_TRY(CheckValueSize(a[0].bytes().size() + a[2].bytes().size()));
  CELLAR_TRY(SetPath(context, a[0].bytes(), path, 0, a[2].bytes(), create, &out));
  return Jsonb(context, out);
}

// jsonb_insert: before or after an element of an array, or a new key of an object.
Status InsertPath(EvalContext& context, std::string_view json, const ArrayView& path, size_t depth,
                  std::string_view value, bool after, std::string* out) {
  const JsonType type = JsonTypeOf(json);
  if ((type != JsonType::kObject && type != JsonType::kArray) || path.IsNull(depth)) {
    *out += json;
    return Status();
  }
  const bool object = type == JsonType::kObject, last = depth + 1 == path.size();
  const std::string_view step = path.Get(depth).bytes();
  int64_t wanted = object ? -1 : std::atoll(std::string(step).c_str());
  const int64_t count = static_cast<int64_t>(JsonCount(json));
  if (!object && wanted < 0) wanted += count;
  *out += object ? '{' : '[';
  std::string_view key, member;
  JsonCursor cursor(json);
  int64_t index = 0;
  bool first = true, found = false;
  const auto put = [&](std::string_view text) {
    if (!first) *out += ", ";
    first = false;
    *out += text;
  };
  if (!object && last && wanted < 0) put(value), found = true;
  while (cursor.Next(&key, &member)) {
    CELLAR_TRY(MayGrow(context, *out, key.size() + member.size()));
    const bool here = object ? KeyIs(key, step) : index == wanted;
    ++index;
    if (here && last && object) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "cannot replace existing key")
          .WithHint("Try using the function jsonb_set to replace key value.");
    }
    if (here && last && !after) put(value);
    put(object ? std::string(key) + ": " : std::string());
    if (here && !last) {
      CELLAR_TRY(InsertPath(context, member, path, depth + 1, value, after, out));
    } else {
      *out += member;
    }
    if (here && last && after) put(value);
    found |= here;
  }
  if (last && !found) {
    put("");
    if (object) {
      CELLAR_TRY(AppendJsonText(step, context, out));
      *out += ": ";
    }
    *out += value;
  }
  *out += object ? '}' : ']';
  return Status();
}

Result<Datum> JsonbInsert(EvalContext& context, const Expr&, Args a) {
  ArrayView path(a[1].bytes(), MakeType(TypeId::kText));
  CELLAR_TRY(OneDimension(path));
  if (IsScalar(a[0].bytes())) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "cannot set path in scalar");
  }
  if (path.size() == 0) return a[0];
  CELLAR_TRY(CheckPath(a[0].bytes(), path));
  std::string out;
  CELLAR_TRY(CheckValueSize(a[0].bytes().size() + a[2].bytes().size()));
  CELLAR_TRY(InsertPath(context, a[0].bytes(), path, 0, a[2].bytes(),
                        a.size() == 4 && a[3].bool_value(), &out));
  return Jsonb(context, out);
}

Status DeletePath(EvalContext& context, std::string_view json, const ArrayView& path, size_t depth,
                  std::string* out) {
  const JsonType type = JsonTypeOf(json);
  if (type != JsonType::kObject && type != JsonType::kArray) {
    CELLAR_TRY(MayGrow(context, *out, json.size()));
    *out += json;
    return Status();
  }
  const bool object = type == JsonType::kObject, last = depth + 1 == path.size();
  if (path.IsNull(depth)) {
    CELLAR_TRY(MayGrow(context, *out, json.size()));
    *out += json;
    return Status();
  }
  const std::string_view step = path.Get(depth).bytes();
  int64_t wanted = object ? -1 : std::atoll(std::string(step).c_str());
  if (!object && wanted < 0) wanted += static_cast<int64_t>(JsonCount(json));
  *out += object ? '{' : '[';
  std::string_view key, member;
  JsonCursor cursor(json);
  int64_t index = 0;
  bool first = true;
  while (cursor.Next(&key, &member)) {
    CELLAR_TRY(MayGrow(context, *out, key.size()));
    const bool here = object ? KeyIs(key, step) : index == wanted;
    ++index;
    if (here && last) continue;
    if (!first) *out += ", ";
    first = false;
    if (object) {
      *out += key;
      *out += ": ";
    }
    if (here)
      CELLAR_TRY(DeletePath(context, member, path, depth + 1, out));
    else
      *out += member;
  }
  *out += object ? '}' : ']';
  return Status();
}

Status StripNulls(EvalContext& context, std::string_view json, bool spaced, std::string* out) {
  const bool object = JsonTypeOf(json) == JsonType::kObject;
  if (!object && JsonTypeOf(json) != JsonType::kArray) {
    CELLAR_TRY(MayGrow(context, *out, json.size()));
    *out += json;
    return Status();
  }
  *out += object ? '{' : '[';
  std::string_view key, value;
  JsonCursor cursor(json);
  bool first = true;
  while (cursor.Next(&key, &value)) {
    CELLAR_TRY(MayGrow(context, *out, key.size()));
    if (object && JsonTypeOf(value) == JsonType::kNull) continue;
    if (!first) *out += spaced ? ", " : ",";
    first = false;
    if (object) {
      *out += key;
      *out += spaced ? ": " : ":";
    }
    CELLAR_TRY(StripNulls(context, value, spaced, out));
  }
  *out += object ? '}' : ']';
  return Status();
}

Status Pretty(EvalContext& context, std::string_view json, int indent, std::string* out) {
  const bool object = JsonTypeOf(json) == JsonType::kObject;
  if ((!object && JsonTypeOf(json) != JsonType::kArray)) {
    CELLAR_TRY(MayGrow(context, *out, json.size()));
    *out += json;
    return Status();
  }
  const auto line = [&](int depth) {
    *out += '\n';
    out->append(static_cast<size_t>(depth) * 4, ' ');
  };
  *out += object ? '{' : '[';
  std::string_view key, value;
  JsonCursor cursor(json);
  bool first = true;
  while (cursor.Next(&key, &value)) {
    CELLAR_TRY(MayGrow(context, *out, key.size() + 4 * static_cast<size_t>(indent + 1)));
    if (!first) *out += ',';
    first = false;
    line(indent + 1);
    if (object) {
      *out += key;
      *out += ": ";
    }
    CELLAR_TRY(Pretty(context, value, indent + 1, out));
  }
  line(indent);
  *out += object ? '}' : ']';
  return Status();
}

Result<std::string> BuildObject(EvalContext& context, const Expr& call, Args a) {
  if (a.size() % 2 != 0) {
    return Status(SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                           "argument list must have even number of elements"))
        .WithHint(
            "The arguments of json_build_object() must consist of alternating keys and values.");
  }
  std::string out = "{";
  for (size_t i = 0; i < a.size(); i += 2) {
    if (i > 0) out += ", ";
    if (a[i].is_null()) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed, "argument {} cannot be null",
                      i + 1)
          .WithHint("Object keys should be text.");
    }
    CELLAR_TRY(AppendJsonKey(a[i], call.args[i]->type, context, &out));
    out += " : ";
    CELLAR_TRY(AppendJson(a[i + 1], call.args[i + 1]->type, context, &out));
  }
  out += '}';
  return out;
}
Result<std::string> BuildArray(EvalContext& context, const Expr& call, Args a) {
  std::string out = "[";
  for (size_t i = 0; i < a.size(); ++i) {
    if (i > 0) out += ", ";
    CELLAR_TRY(AppendJson(a[i], call.args[i]->type, context, &out));
  }
  out += ']';
  return out;
}

Result<Datum> ArrayLength(EvalContext&, const Expr&, Args a) {
  const JsonType type = JsonTypeOf(Trimmed(a[0].bytes()));
  if (type != JsonType::kArray) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "cannot get array length of a {}",
                    type == JsonType::kObject ? "non-array" : "scalar");
  }
  return Datum::Int(static_cast<int64_t>(JsonCount(Trimmed(a[0].bytes()))));
}

Result<Datum> MemberText(EvalContext& context, std::string_view json) {
  std::string text;
  CELLAR_TRY_ASSIGN(const bool some, JsonAsText(json, &text));
  if (!some) return Datum();
  return TextOf(context, text);
}

template <bool as_text>
Result<SetRowsPtr> Elements(EvalContext&, const Expr&, Args a) {
  std::string_view json = Trimmed(a[0].bytes());
  if (JsonTypeOf(json) != JsonType::kArray) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "cannot extract elements from {}",
                    JsonTypeOf(json) == JsonType::kObject ? "an object" : "a scalar");
  }
  return MakeRowByRow([cursor = JsonCursor(json)](EvalContext& context,
                                                  std::span<Datum> row) mutable -> Result<bool> {
    std::string_view ignored, value;
    if (!cursor.Next(&ignored, &value)) return false;
    CELLAR_TRY(context.StepOver(value.size()));
    CELLAR_TRY_ASSIGN(row[0],
                      as_text ? MemberText(context, value) : Result<Datum>(Datum::Bytes(value)));
    return true;
  });
}

template <bool as_text>
Result<SetRowsPtr> Each(EvalContext&, const Expr& call, Args a) {
  std::string_view json = Trimmed(a[0].bytes());
  if (JsonTypeOf(json) != JsonType::kObject) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "cannot call {} on a non-object", call.function->name);
  }
  return MakeRowByRow([cursor = JsonCursor(json)](EvalContext& context,
                                                  std::span<Datum> row) mutable -> Result<bool> {
    std::string_view key, value;
    if (!cursor.Next(&key, &value)) return false;
    CELLAR_TRY(context.StepOver(key.size() + value.size()));
    CELLAR_TRY_ASSIGN(row[0], MemberText(context, key));
    CELLAR_TRY_ASSIGN(row[1],
                      as_text ? MemberText(context, value) : Result<Datum>(Datum::Bytes(value)));
    return true;
  });
}

Result<SetRowsPtr> Keys(EvalContext&, const Expr& call, Args a) {
  std::string_view json = Trimmed(a[0].bytes());
  if (JsonTypeOf(json) != JsonType::kObject) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "cannot call {} on {}",
                    call.function->name,
                    JsonTypeOf(json) == JsonType::kArray ? "an array" : "a scalar");
  }
  return MakeRowByRow([cursor = JsonCursor(json)](EvalContext& context,
                                                  std::span<Datum> row) mutable -> Result<bool> {
    std::string_view key, value;
    if (!cursor.Next(&key, &value)) return false;
    CELLAR_TRY(context.StepOver(key.size()));
    CELLAR_TRY_ASSIGN(row[0], MemberText(context, key));
    return true;
  });
}

Result<Datum> ObjectOfArray(EvalContext& context, const Expr& call, Args a) {
  ArrayView keys(a[0].bytes(), MakeType(TypeId::kText));
  std::string out = "{";
  if (a.size() == 1 && keys.dimensions() == 1 && keys.size() % 2 != 0) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "array must have even number of elements");
  }
  if (a.size() == 1 && keys.dimensions() == 2 && keys.length(1) != 2) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError, "array must have two columns");
  }
  if (a.size() == 1 && keys.dimensions() > 2) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "wrong number of array subscripts");
  }
  ArrayView values(a[a.size() - 1].bytes(), MakeType(TypeId::kText));
  if (a.size() == 2 && (keys.dimensions() > 1 || keys.dimensions() != values.dimensions())) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "wrong number of array subscripts");
  }
  if (a.size() == 2 && values.size() != keys.size()) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError, "mismatched array dimensions");
  }
  const size_t step = a.size() == 1 ? 2 : 1;
  for (size_t i = 0; i < keys.size(); i += step) {
    if (i > 0) out += ", ";
    if (keys.IsNull(i)) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                      "null value not allowed for object key");
    }
    CELLAR_TRY(AppendJsonText(keys.Get(i).bytes(), context, &out));
    out += " : ";
    const Datum value = a.size() == 1 ? keys.Get(i + 1) : values.Get(i);
    if (value.is_null())
      out += "null";
    else
      CELLAR_TRY(AppendJsonText(value.bytes(), context, &out));
  }
  out += '}';
  if (call.function->result.id == TypeId::kJsonb) return Jsonb(context, out);
  return TextOf(context, out);
}

void AddAccess(Registry& r) {
  auto field = CELLAR_SCALAR {
    std::string_view json = Trimmed(a[0].bytes());
    if (JsonTypeOf(json) != JsonType::kObject) return Datum();
    return AsJson(JsonField(json, a[1].bytes()));
  };
  auto element = CELLAR_SCALAR {
    return AsJson(JsonElement(Trimmed(a[0].bytes()), a[1].int_value()));
  };
  auto field_text = CELLAR_SCALAR {
    std::string_view json = Trimmed(a[0].bytes());
    if (JsonTypeOf(json) != JsonType::kObject) return Datum();
    return AsText(context, JsonField(json, a[1].bytes()));
  };
  auto element_text = CELLAR_SCALAR {
    return AsText(context, JsonElement(Trimmed(a[0].bytes()), a[1].int_value()));
  };
  auto path = CELLAR_SCALAR { return AsJson(Path(a[0].bytes(), a[1].bytes())); };
  auto path_text = CELLAR_SCALAR { return AsText(context, Path(a[0].bytes(), a[1].bytes())); };
  r.Add("->(json, text) json", field);
  r.Add("->(json, int4) json", element);
  r.Add("->(jsonb, text) jsonb", field);
  // A jsonb scalar counts as an array of itself.
  r.Add(
      "->(jsonb, int4) jsonb", CELLAR_SCALAR {
        const bool self = a[1].int_value() == 0 || a[1].int_value() == -1;
        if (IsScalar(a[0].bytes())) return self ? a[0] : Datum();
        return AsJson(JsonElement(a[0].bytes(), a[1].int_value()));
      });
  r.Add("->>(json, text) text", field_text);
  r.Add("->>(json, int4) text", element_text);
  r.Add("->>(jsonb, text) text", field_text);
  r.Add(
      "->>(jsonb, int4) text", CELLAR_SCALAR {
        const bool self = a[1].int_value() == 0 || a[1].int_value() == -1;
        if (IsScalar(a[0].bytes())) return self ? AsText(context, a[0].bytes()) : Datum();
        return AsText(context, JsonElement(a[0].bytes(), a[1].int_value()));
      });
  r.Add("#>(json, text[]) json", path);
  r.Add("#>(jsonb, text[]) jsonb", path);
  r.Add("#>>(json, text[]) text", path_text);
  r.Add("#>>(jsonb, text[]) text", path_text);
  auto argument_path = CELLAR_SCALAR { return AsJson(ArgumentPath(a)); };
  auto argument_path_text = CELLAR_SCALAR { return AsText(context, ArgumentPath(a)); };
  r.Add("json_extract_path(json, text...) json", argument_path);
  r.Add("jsonb_extract_path(jsonb, text...) jsonb", argument_path);
  r.Add("json_extract_path_text(json, text...) text", argument_path_text);
  r.Add("jsonb_extract_path_text(jsonb, text...) text", argument_path_text);
}

void AddJsonb(Registry& r) {
  r.Add(
      "@>(jsonb, jsonb) bool",
      CELLAR_SCALAR { return Datum::Bool(Contains(a[0].bytes(), a[1].bytes())); });
  r.Add(
      "<@(jsonb, jsonb) bool",
      CELLAR_SCALAR { return Datum::Bool(Contains(a[1].bytes(), a[0].bytes())); });
  r.Add(
      "?(jsonb, text) bool",
      CELLAR_SCALAR { return Datum::Bool(HasKey(a[0].bytes(), a[1].bytes())); });
  r.Add("?|(jsonb, text[]) bool", HasKeys<false>);
  r.Add("?&(jsonb, text[]) bool", HasKeys<true>);
  r.Add("||(jsonb, jsonb) jsonb", Concatenate);
  r.Add("-(jsonb, text) jsonb", DeleteKey);
  r.Add("-(jsonb, int4) jsonb", DeleteIndex);
  r.Add(
      "-(jsonb, text[]) jsonb", CELLAR_SCALAR {
        ArrayView keys(a[1].bytes(), MakeType(TypeId::kText));
        CELLAR_TRY(OneDimension(keys));
        if (IsScalar(a[0].bytes())) return DeleteError("scalar");
        Datum out = a[0];
        for (size_t i = 0; i < keys.size(); ++i) {
          if (keys.IsNull(i)) continue;
          Datum pair[2] = {out, keys.Get(i)};
          CELLAR_TRY_ASSIGN(out, DeleteKey(context, call, pair));
        }
        return out;
      });
  r.Add(
      "#-(jsonb, text[]) jsonb", CELLAR_SCALAR {
        ArrayView path(a[1].bytes(), MakeType(TypeId::kText));
        CELLAR_TRY(OneDimension(path));
        if (IsScalar(a[0].bytes())) {
          return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                          "cannot delete path in scalar");
        }
        if (path.size() == 0 || JsonCount(a[0].bytes()) == 0) return a[0];
        CELLAR_TRY(CheckPath(a[0].bytes(), path));
        std::string out;
        CELLAR_TRY(DeletePath(context, a[0].bytes(), path, 0, &out));
        return TextOf(context, out);
      });
  r.Add("jsonb_set(jsonb, text[], jsonb) jsonb", JsonbSet);
  r.Add("jsonb_set(jsonb, text[], jsonb, bool) jsonb", JsonbSet);
  r.Add("jsonb_insert(jsonb, text[], jsonb) jsonb", JsonbInsert);
  r.Add("jsonb_insert(jsonb, text[], jsonb, bool) jsonb", JsonbInsert);
  r.Add(
      "jsonb_pretty(jsonb) text", CELLAR_SCALAR {
        std::string out;
        CELLAR_TRY(Pretty(context, a[0].bytes(), 0, &out));
        return TextOf(context, out);
      });
}

// array_to_json and row_to_json with line feeds between the parts.
Result<Datum> ToPrettyJson(EvalContext& context, const Expr& call, Args a) {
  std::string json, out;
  CELLAR_TRY(AppendJson(a[0], call.args[0]->type, context, &json));
  if (!a[1].bool_value()) return TextOf(context, json);
  std::string_view key, value;
  JsonCursor cursor(json);
  while (cursor.Next(&key, &value)) {
    CELLAR_TRY(MayGrow(context, out, key.size() + value.size() + 4));
    if (!out.empty()) out += ",\n ";
    out += key;
    if (!key.empty()) out += ':';
    out += value;
  }
  return TextOf(context, json.substr(0, 1) + out + json.back());
}

void AddBuilders(Registry& r) {
  const Volatility stable = Volatility::kStable;
  auto empty_object = CELLAR_SCALAR { return Datum::Bytes("{}"); };
  auto empty_array = CELLAR_SCALAR { return Datum::Bytes("[]"); };
  r.Add("json_build_object() json", empty_object);
  r.Add("jsonb_build_object() jsonb", empty_object);
  r.Add("json_build_array() json", empty_array);
  r.Add("jsonb_build_array() jsonb", empty_array);
  r.Add("array_to_json(anyarray, bool) json", ToPrettyJson, stable);
  r.Add("row_to_json(record, bool) json", ToPrettyJson, stable);
  auto to_json = CELLAR_SCALAR {
    std::string out;
    CELLAR_TRY(AppendJson(a[0], call.args[0]->type, context, &out));
    return TextOf(context, out);
  };
  auto to_jsonb = CELLAR_SCALAR {
    std::string out;
    CELLAR_TRY(AppendJson(a[0], call.args[0]->type, context, &out));
    return Jsonb(context, out);
  };
  r.Add("to_json(anyelement) json", to_json, stable);
  r.Add("to_jsonb(anyelement) jsonb", to_jsonb, stable);
  r.Add("row_to_json(record) json", to_json, stable);
  r.Add("array_to_json(anyarray) json", to_json, stable);
  r.Add(
       "json_build_object(any...) json",
       CELLAR_SCALAR {
         CELLAR_TRY_ASSIGN(std::string out, BuildObject(context, call, a));
         return TextOf(context, out);
       },
       stable)
      .strict = false;
  r.Add(
       "jsonb_build_object(any...) jsonb",
       CELLAR_SCALAR {
         CELLAR_TRY_ASSIGN(std::string out, BuildObject(context, call, a));
         return Jsonb(context, out);
       },
       stable)
      .strict = false;
  r.Add(
       "json_build_array(any...) json",
       CELLAR_SCALAR {
         CELLAR_TRY_ASSIGN(const std::string out, BuildArray(context, call, a));
         return TextOf(context, out);
       },
       stable)
      .strict = false;
  r.Add(
       "jsonb_build_array(any...) jsonb",
       CELLAR_SCALAR {
         CELLAR_TRY_ASSIGN(const std::string out, BuildArray(context, call, a));
         return Jsonb(context, out);
       },
       stable)
      .strict = false;
  r.Add("json_object(text[]) json", ObjectOfArray);
  r.Add("json_object(text[], text[]) json", ObjectOfArray);
  r.Add("jsonb_object(text[]) jsonb", ObjectOfArray);
  r.Add("jsonb_object(text[], text[]) jsonb", ObjectOfArray);
}

void AddSets(Registry& r) {
  const Type text = MakeType(TypeId::kText);
  r.AddSet("json_object_keys(json) setof text", Keys);
  r.AddSet("jsonb_object_keys(jsonb) setof text", Keys);
  r.AddSet("json_array_elements(json) setof json", Elements<false>).set_columns[0].first = "value";
  r.AddSet("jsonb_array_elements(jsonb) setof jsonb", Elements<false>).set_columns[0].first =
      "value";
  r.AddSet("json_array_elements_text(json) setof text", Elements<true>).set_columns[0].first =
      "value";
  r.AddSet("jsonb_array_elements_text(jsonb) setof text", Elements<true>).set_columns[0].first =
      "value";
  r.AddSet("json_each(json) setof record", Each<false>).set_columns = {
      {"key", text}, {"value", MakeType(TypeId::kJson)}};
  r.AddSet("jsonb_each(jsonb) setof record", Each<false>).set_columns = {
      {"key", text}, {"value", MakeType(TypeId::kJsonb)}};
  r.AddSet("json_each_text(json) setof record", Each<true>).set_columns = {{"key", text},
                                                                           {"value", text}};
  r.AddSet("jsonb_each_text(jsonb) setof record", Each<true>).set_columns = {{"key", text},
                                                                             {"value", text}};
}

}  // namespace

void RegisterJson(Registry& r) {
  AddAccess(r);
  AddJsonb(r);
  AddBuilders(r);
  AddSets(r);
  r.Add("json_array_length(json) int4", ArrayLength);
  r.Add("jsonb_array_length(jsonb) int4", ArrayLength);
  r.Add(
      "json_typeof(json) text", CELLAR_SCALAR { return Datum::Bytes(TypeWord(a[0].bytes())); });
  r.Add(
      "jsonb_typeof(jsonb) text", CELLAR_SCALAR { return Datum::Bytes(TypeWord(a[0].bytes())); });
  r.Add(
      "json_strip_nulls(json) json", CELLAR_SCALAR {
        std::string out;
        CELLAR_TRY(StripNulls(context, Trimmed(a[0].bytes()), false, &out));
        return TextOf(context, out);
      });
  r.Add(
      "jsonb_strip_nulls(jsonb) jsonb", CELLAR_SCALAR {
        std::string out;
        CELLAR_TRY(StripNulls(context, a[0].bytes(), true, &out));
        return TextOf(context, out);
      });
}

}  // namespace cellar::sql
