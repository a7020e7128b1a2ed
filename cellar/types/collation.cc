#include "cellar/types/collation.h"

#include <unicode/ucol.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datum.h"

namespace cellar {
namespace {

struct CloseCollator {
  void operator()(UCollator* collator) const { ucol_close(collator); }
};
using Collator = std::unique_ptr<UCollator, CloseCollator>;

struct Interned : Collation {
  explicit Interned(Collation content) : Collation(std::move(content)) {}
  Collator collator;
  std::string current_version;
};

Collator Open(const std::string& locale, UErrorCode* error) {
  return Collator(ucol_open(locale.c_str(), error));
}

std::string VersionOf(const UCollator* collator) {
  UVersionInfo version;
  ucol_getVersion(collator, version);
  char text[U_MAX_VERSION_STRING_LENGTH];
  u_versionToString(version, text);
  return text;
}

const Interned& Of(const Collation& collation) { return static_cast<const Interned&>(collation); }

// Bytes that order as the rules say, with a zero byte at their end and none before it.
void AppendRuleKey(std::string_view text, const UCollator* collator, std::string* out) {
  constexpr int32_t kShort = 256;
  UChar buffer[kShort];
  std::vector<UChar> many;
  UChar* wide = buffer;
  // UTF-16 takes no more units than UTF-8 takes bytes.
  if (text.size() > kShort) {
    many.resize(text.size());
    wide = many.data();
  }
  int32_t length = 0;
  UErrorCode error = U_ZERO_ERROR;
  u_strFromUTF8WithSub(wide, static_cast<int32_t>(std::max<size_t>(text.size(), kShort)), &length,
                       text.data(), static_cast<int32_t>(text.size()), 0xFFFD, nullptr, &error);
  const size_t at = out->size();
  size_t room = 4 * text.size() + 32;
  out->resize(at + room);
  const auto write = [&] {
    return static_cast<size_t>(ucol_getSortKey(collator, wide, length,
                                               reinterpret_cast<uint8_t*>(out->data() + at),
                                               static_cast<int32_t>(room)));
  };
  size_t size = write();
  if (size > room) {
    room = size;
    out->resize(at + room);
    size = write();
  }
  out->resize(at + size);
}

}  // namespace

const Collation* Intern(Collation collation) {
  static std::mutex mutex;
  static auto& known = *std::make_unique<  // lives to the end, beyond static destructors
                            std::unordered_map<std::string, std::unique_ptr<const Interned>>>()
                            .release();
  std::string key = std::to_string(collation.oid);
  for (const std::string* part : {&collation.name, &collation.locale, &collation.version}) {
    key += '\0';
    key += *part;
  }
  key += '\0';
  key += collation.deterministic ? 'd' : 'n';
  key += collation.built_in ? 'b' : 'o';
  std::lock_guard lock(mutex);
  std::unique_ptr<const Interned>& slot = known[std::move(key)];
  if (slot != nullptr) return slot.get();
  auto made = std::make_unique<Interned>(std::move(collation));
  UErrorCode error = U_ZERO_ERROR;
  made->collator = Open(made->locale, &error);
  if (U_FAILURE(error)) {
    // What a newer program made: the root's rules, under a version of their own, so that it is
    // stale.
    error = U_ZERO_ERROR;
    made->collator = Open("und", &error);
  }
  if (made->collator != nullptr) made->current_version = VersionOf(made->collator.get());
  slot = std::move(made);
  return slot.get();
}

const std::vector<Collation>& BuiltInCollations() {
  static const std::vector<Collation>& all = *[] {
    // Object ids between those of PostgreSQL's own objects and those of users' ones.
    constexpr uint32_t kFirstOid = 14500;
    auto out = std::make_unique<std::vector<Collation>>();
    const auto add = [&out](std::string tag) {
      Collation& made = out->emplace_back();
      made.name = tag + "-x-icu";
      made.built_in = true;
      made.locale = std::move(tag);
    };
    add("und");
    for (int32_t i = 0; i < uloc_countAvailable(); ++i) {
      char tag[ULOC_FULLNAME_CAPACITY];
      UErrorCode error = U_ZERO_ERROR;
      const int32_t length =
          uloc_toLanguageTag(uloc_getAvailable(i), tag, sizeof tag, true, &error);
      if (U_SUCCESS(error)) add(std::string(tag, static_cast<size_t>(length)));
    }
    std::sort(out->begin(), out->end(),
              [](const Collation& a, const Collation& b) { return a.name < b.name; });
    out->erase(std::unique(out->begin(), out->end(),
                           [](const Collation& a, const Collation& b) { return a.name == b.name; }),
               out->end());
    for (size_t i = 0; i < out->size(); ++i) (*out)[i].oid = kFirstOid + static_cast<uint32_t>(i);
    return out.release();
  }();
  return all;
}

const Collation* FindBuiltInCollation(std::string_view name) {
  const std::vector<Collation>& all = BuiltInCollations();
  const auto at = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Collation& candidate, std::string_view wanted) { return candidate.name < wanted; });
  if (at == all.end() || at->name != name) return nullptr;
  Collation found = *at;
  found.version = CollationVersion(found.locale);
  return Intern(std::move(found));
}

Status CheckCollationLocale(std::string_view locale) {
  UErrorCode error = U_ZERO_ERROR;
  const Collator collator = Open(std::string(locale), &error);
  if (U_SUCCESS(error)) return Status();
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "could not open collator for locale \"{}\": {}", locale, u_errorName(error));
}

std::string CollationVersion(std::string_view locale) {
  UErrorCode error = U_ZERO_ERROR;
  const Collator collator = Open(std::string(locale), &error);
  return U_FAILURE(error) ? std::string() : VersionOf(collator.get());
}

bool IsStale(const Collation& collation) {
  return Of(collation).current_version != collation.version;
}

int CompareTexts(std::string_view a, std::string_view b, const Collation& collation) {
  const Interned& rules = Of(collation);
  if (rules.collator != nullptr) {
    UErrorCode error = U_ZERO_ERROR;
    const UCollationResult order =
        ucol_strcollUTF8(rules.collator.get(), a.data(), static_cast<int32_t>(a.size()), b.data(),
                         static_cast<int32_t>(b.size()), &error);
    if (order != UCOL_EQUAL) return order == UCOL_LESS ? -1 : 1;
    if (!collation.deterministic) return 0;
  }
  return a.compare(b);
}

uint64_t HashText(std::string_view text, const Collation& collation) {
  const Interned& rules = Of(collation);
  const Type bytes = MakeType(TypeId::kBytea);
  if (collation.deterministic || rules.collator == nullptr) {
    return HashDatum(Datum::Bytes(text), bytes);
  }
  std::string key;
  AppendRuleKey(text, rules.collator.get(), &key);
  return HashDatum(Datum::Bytes(key), bytes);
}

void AppendSortKey(std::string_view text, const Collation& collation, std::string* out) {
  const Interned& rules = Of(collation);
  if (rules.collator != nullptr) {
    AppendRuleKey(text, rules.collator.get(), out);
    if (!collation.deterministic) out->pop_back();
  }
  if (collation.deterministic) out->append(text);
}

}  // namespace cellar
