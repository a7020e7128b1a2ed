// Collations: in which order text comes and which texts are equal, by ICU (the Unicode collation
// algorithm, UTS 10, with the rules of a locale). Text without one orders by its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/types/type.h"

namespace cellar {

// Immutable once interned. All functions below want an interned one.
struct Collation {
  uint32_t oid = 0;  // pg_collation.oid; two definitions of one oid are versions of one collation
  std::string name;
  bool built_in = false;      // it lies in pg_catalog
  std::string locale;         // a language tag (BCP 47), or ICU's own spelling
  bool deterministic = true;  // texts that differ in a byte differ; otherwise as the rules say
  std::string version;        // of the rules with which keys have been made

  bool operator==(const Collation&) const = default;
};

// The one instance of this content: kept until the process ends, so that types may point to it
// freely. Thread-safe. Cost: the first time, opening a collator: up to some ms.
const Collation* Intern(Collation collation);

// Those that are there without being made: one for each locale of ICU's, named as PostgreSQL names
// them ("de-AT-x-icu", "und-x-icu"), by name. Not interned and without a version. Cost: the first
// time, some ms.
const std::vector<Collation>& BuiltInCollations();
// The one of this name, with the version of this process's rules, interned; null: there is none.
const Collation* FindBuiltInCollation(std::string_view name);

// 22023 when ICU knows no such locale.
Status CheckCollationLocale(std::string_view locale);
// Of the rules that this process has for the locale, as "153.120"; empty when it has none.
std::string CollationVersion(std::string_view locale);
// Were keys under the collation made by other rules than this process has?
bool IsStale(const Collation& collation);

// Below zero, zero, above. A deterministic collation decides between texts that its rules take as
// equal by their bytes. Cost: 20-100 ns for short texts.
int CompareTexts(std::string_view a, std::string_view b, const Collation& collation);
// Equal for texts that compare equal.
uint64_t HashText(std::string_view text, const Collation& collation);
// Appends bytes that order as the texts do. Of a deterministic collation the text is in them,
// behind a zero byte: keys of unequal texts differ. Cost: about 200 ns for 18 characters.
void AppendSortKey(std::string_view text, const Collation& collation, std::string* out);

}  // namespace cellar
