// to_char of numbers, and to_number.
//
// A pattern is first read into a Description (how many digits before and after the point, which
// signs), the number is rounded to it, and then the pattern is walked again, giving or taking one
// character of the number at each digit.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cellar/base/sqlstate.h"
#include "cellar/types/format_pattern.h"
#include "cellar/types/numeric.h"
#include "cellar/types/to_char.h"

namespace cellar {

using internal::PatternNode;
using internal::PatternWord;

namespace {

enum NumberWord : uint8_t {
  kComma,
  kPoint,
  kZero,
  kNine,
  kBlank,
  kCurrency,
  kLocalePoint,
  kExponent,
  kFill,
  kGroup,
  kMinus,
  kPlus,
  kBrackets,
  kRoman,
  kPlusMinus,
  kSign,
  kOrdinal,
  kShift,
  kNothing,
};

constexpr PatternWord kNumberWords[] = {
    {",", kComma},       {".", kPoint},       {"0", kZero},        {"9", kNine},
    {"B", kBlank},       {"b", kBlank},       {"C", kCurrency},    {"c", kCurrency},
    {"D", kLocalePoint}, {"d", kLocalePoint}, {"EEEE", kExponent}, {"eeee", kExponent},
    {"FM", kFill},       {"fm", kFill},       {"G", kGroup},       {"g", kGroup},
    {"L", kCurrency},    {"l", kCurrency},    {"MI", kMinus},      {"mi", kMinus},
    {"PL", kPlus},       {"pl", kPlus},       {"PR", kBrackets},   {"pr", kBrackets},
    {"RN", kRoman},      {"rn", kRoman},      {"SG", kPlusMinus},  {"sg", kPlusMinus},
    {"SP", kNothing},    {"sp", kNothing},    {"S", kSign},        {"s", kSign},
    {"TH", kOrdinal},    {"th", kOrdinal},    {"V", kShift},       {"v", kShift},
};

struct Description {
  int pre = 0, post = 0, shift = 0;  // digits before and after the point, and after V
  int zero_start = 0, zero_end = 0;  // places of the first and last 0
  int pre_at_sign = 0;               // digits before S
  enum class SignPlace { kNone, kBefore, kAfter } sign = SignPlace::kNone;
  bool point = false, zero = false, blank = false, fill = false, brackets = false, minus = false,
       plus = false, roman = false, has_shift = false, exponent = false, locale_sign = false;
};

Status PatternError(std::string_view message) {
  return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "{}", message);
}

Status AddToDescription(NumberWord word, Description* d) {
  using Place = Description::SignPlace;
  if (d->exponent && word != kExponent)
    return PatternError("\"EEEE\" must be the last pattern used");
  switch (word) {
    case kNine:
      if (d->brackets) return PatternError("\"9\" must be ahead of \"PR\"");
      if (d->has_shift)
        ++d->shift;
      else if (d->point)
        ++d->post;
      else
        ++d->pre;
      break;
    case kZero:
      if (d->brackets) return PatternError("\"0\" must be ahead of \"PR\"");
      if (!d->zero && !d->point) {
        d->zero = true;
        d->zero_start = d->pre + 1;
      }
      if (d->point)
        ++d->post;
      else
        ++d->pre;
      d->zero_end = d->pre + d->post;
      break;
    case kBlank:
      if (d->pre == 0 && d->post == 0 && !d->zero) d->blank = true;
      break;
    case kPoint:
    case kLocalePoint:
      if (d->point) return PatternError("multiple decimal points");
      if (d->has_shift) return PatternError("cannot use \"V\" and decimal point together");
      d->point = true;
      break;
    case kFill: d->fill = true; break;
    case kSign:
      if (d->sign != Place::kNone) return PatternError("cannot use \"S\" twice");
      if (d->plus || d->minus || d->brackets) {
        return PatternError("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
      }
      d->locale_sign = true;
      if (d->point) {
        d->sign = Place::kAfter;
      } else {
        d->sign = Place::kBefore;
        d->pre_at_sign = d->pre;
      }
      break;
    case kMinus:
      if (d->locale_sign) return PatternError("cannot use \"S\" and \"MI\" together");
      d->minus = true;
      break;
    case kPlus:
      if (d->locale_sign) return PatternError("cannot use \"S\" and \"PL\" together");
      d->plus = true;
      break;
    case kPlusMinus:
      if (d->locale_sign) return PatternError("cannot use \"S\" and \"SG\" together");
      d->minus = d->plus = true;
      break;
    case kBrackets:
      if (d->locale_sign || d->plus || d->minus) {
        return PatternError("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
      }
      d->brackets = true;
      break;
    case kRoman: d->roman = true; break;
    case kShift:
      if (d->point) return PatternError("cannot use \"V\" and decimal point together");
      d->has_shift = true;
      break;
    case kExponent:
      if (d->exponent) return PatternError("cannot use \"EEEE\" twice");
      if (d->blank || d->fill || d->locale_sign || d->brackets || d->minus || d->plus || d->roman ||
          d->has_shift) {
        return std::move(PatternError("\"EEEE\" is incompatible with other formats"))
            .WithDetail(
                "\"EEEE\" may only be used together with digit and decimal point patterns.");
      }
      d->exponent = true;
      break;
    default: break;
  }
  return Status();
}

struct Pattern {
  std::vector<PatternNode> nodes;
  Description description;
};

Result<Pattern> ReadPattern(std::string_view text) {
  Pattern out;
  out.nodes = internal::SplitPattern(text, kNumberWords, false);
  for (const PatternNode& node : out.nodes) {
    if (node.kind != PatternNode::Kind::kWord) continue;
    CELLAR_TRY(AddToDescription(static_cast<NumberWord>(node.id), &out.description));
  }
  return out;
}

std::string RomanNumeral(int64_t value) {
  if (value < 1 || value > 3999) return "###############";
  static constexpr struct {
    int value;
    std::string_view text;
  } kNumerals[] = {{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"},
                   {90, "XC"},  {50, "L"},   {40, "XL"}, {10, "X"},   {9, "IX"},
                   {5, "V"},    {4, "IV"},   {1, "I"}};
  std::string out;
  for (const auto& numeral : kNumerals) {
    for (; value >= numeral.value; value -= numeral.value) out += numeral.text;
  }
  return out;
}

// Writes a number, given as digits with a point, by a pattern.
class NumberWriter {
 public:
  // `number` without sign; `blanks` digits of the pattern come before its first.
  NumberWriter(Description description, std::string number, bool negative, int blanks,
               std::string* out)
      : d_(description),
        number_(std::move(number)),
        negative_(negative),
        blanks_(blanks),
        out_(out) {
    if (d_.zero_start > 0) --d_.zero_start;
    if (d_.roman) {
      d_.locale_sign = d_.zero = d_.point = d_.brackets = d_.plus = d_.minus = false;
      d_.sign = Description::SignPlace::kNone;
      d_.pre = d_.post = blanks_ = 0;
      negative_ = false;
      without_sign_ = true;
      return;
    }
    if (d_.plus || d_.minus) {
      sign_written_ = !(d_.plus && !d_.minus);
    } else {
      if (!negative_ && d_.brackets && d_.fill) d_.brackets = false;
      sign_written_ = !negative_ && d_.fill && !d_.locale_sign;
      if (d_.sign == Description::SignPlace::kBefore && d_.pre == d_.pre_at_sign) {
        d_.sign = Description::SignPlace::kAfter;
      }
    }
    places_ = d_.post + d_.pre - 1;
    if (d_.fill && d_.point) FindLastRelevant();
    if (!sign_written_ && blanks_ == 0) ++places_;
  }

  Status Write(const std::vector<PatternNode>& nodes) {
    for (const PatternNode& node : nodes) {
      if (cut_at_ != kNone) break;
      if (node.kind != PatternNode::Kind::kWord) {
        out_->append(node.text);
        continue;
      }
      if (node.id == kOrdinal && OrdinalApplies() &&
          (number_.back() < '0' || number_.back() > '9')) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                        "\"{}\" is not a number", number_);
      }
      WriteWord(node);
    }
    if (cut_at_ != kNone) out_->resize(cut_at_);
    return Status();
  }

 private:
  bool OrdinalApplies() const { return !d_.roman && At(0) != '#' && !negative_ && !d_.point; }
  // Digits after this one are zeros that FM leaves out; kNone without FM or point.
  static constexpr size_t kNone = std::string::npos;
  void FindLastRelevant() {
    const size_t point = number_.find('.');
    if (point == std::string::npos) return;
    const size_t last = number_.find_last_not_of('0');
    last_relevant_ = std::max(point, last);
    // Places marked 0 stay.
    if (d_.zero_end > blanks_) {
      const size_t keep = std::min(number_.size() - 1, static_cast<size_t>(d_.zero_end - blanks_));
      last_relevant_ = std::max(last_relevant_, keep);
    }
  }
  char At(size_t i) const { return i < number_.size() ? number_[i] : '\0'; }
  bool LastRelevantIsPoint() const { return last_relevant_ != kNone && At(last_relevant_) == '.'; }
  // The 0 of "0.5" that patterns like 9.9 leave blank.
  bool IsLeadingZero() const { return !d_.zero && next_ == 0 && At(0) == '0' && d_.post != 0; }
  void BlankUnlessFill() {
    if (!d_.fill) out_->push_back(' ');
  }

  void WriteSignIfDue() {
    const bool number_starts = place_ >= blanks_ || (d_.zero && d_.zero_start == place_);
    if (sign_written_ || !number_starts || (IsLeadingZero() && !LastRelevantIsPoint())) return;
    if (d_.locale_sign) {
      if (d_.sign == Description::SignPlace::kBefore) {
        out_->push_back(negative_ ? '-' : '+');
        sign_written_ = true;
      }
      return;
    }
    sign_written_ = true;
    if (d_.brackets)
      out_->push_back(negative_ ? '<' : ' ');
    else if (negative_)
      out_->push_back('-');
    else
      BlankUnlessFill();
  }

  void WriteDigit(bool zero_word) {
    digits_begun_ = false;
    WriteSignIfDue();
    const bool before_number = place_ < blanks_;
    if (before_number && (!d_.zero || d_.zero_start > place_)) {
      BlankUnlessFill();
    } else if (before_number) {
      out_->push_back('0');
      digits_begun_ = true;
    } else {
      if (At(next_) == '.') {
        if (!LastRelevantIsPoint() || d_.fill) out_->push_back('.');
      } else if (last_relevant_ != kNone && next_ > last_relevant_ && !zero_word) {
        // a zero that FM leaves out
      } else if (IsLeadingZero()) {
        if (!d_.fill)
          out_->push_back(' ');
        else if (LastRelevantIsPoint())
          out_->push_back('0');
      } else {
        // A point without digits after it in the pattern (999.S) ends the output, for the number
        // has none.
        if (next_ < number_.size())
          out_->push_back(number_[next_]);
        else if (cut_at_ == kNone)
          cut_at_ = out_->size();
        digits_begun_ = true;
      }
      if (next_ < number_.size()) ++next_;
    }
    int end = places_ + (blanks_ > 0 ? 1 : 0) + (d_.point ? 1 : 0);
    if (last_relevant_ != kNone && last_relevant_ == next_) end = place_;
    if (place_ + 1 == end) {
      if (sign_written_ && d_.brackets)
        out_->push_back(negative_ ? '>' : ' ');
      else if (d_.locale_sign && d_.sign == Description::SignPlace::kAfter) {
        out_->push_back(negative_ ? '-' : '+');
      }
    }
    ++place_;
  }

  void WriteWord(const PatternNode& node) {
    switch (node.id) {
      case kNine:
      case kZero:
      case kPoint:
      case kLocalePoint:
        if (!d_.roman) WriteDigit(node.id == kZero);
        break;
      case kComma:
      case kGroup:
        if (digits_begun_)
          out_->push_back(',');
        else
          BlankUnlessFill();
        break;
      case kCurrency:
        if (node.text == "L" || node.text == "l") out_->push_back(' ');
        break;
      case kRoman: {
        std::string text = number_;
        if (node.text == "rn") {
          for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        }
        if (!d_.fill && text.size() < 15) out_->append(15 - text.size(), ' ');
        out_->append(text);
        break;
      }
      case kOrdinal:
        if (!OrdinalApplies()) break;
        out_->append(internal::OrdinalSuffix(number_, node.text == "TH"));
        break;
      case kMinus:
        if (negative_)
          out_->push_back('-');
        else
          BlankUnlessFill();
        break;
      case kPlus:
        if (!negative_ && !without_sign_)
          out_->push_back('+');
        else
          BlankUnlessFill();
        break;
      case kPlusMinus:
        if (!without_sign_)
          out_->push_back(negative_ ? '-' : '+');
        else if (cut_at_ == kNone)
          cut_at_ = out_->size();  // PostgreSQL writes a NUL there, which ends the text
        break;
      default: break;
    }
  }

  Description d_;
  std::string number_;
  bool negative_;
  int blanks_;
  std::string* out_;
  bool sign_written_ = true;
  bool without_sign_ = false;  // Roman numerals have neither
  bool digits_begun_ = false;  // the last digit place held one
  int places_ = 0;
  int place_ = 0;
  size_t next_ = 0;  // in number_
  size_t last_relevant_ = kNone;
  size_t cut_at_ = kNone;  // where the output ends, when that is before the pattern's end
};

// Cuts or pads `number` (no sign) to the pattern and writes it.
Status WriteFitted(const Pattern& pattern, const Description& d, std::string number, bool negative,
                   std::string* out) {
  const int before = static_cast<int>(std::min(number.find('.'), number.size()));
  int blanks = 0;
  if (before < d.pre) {
    blanks = d.pre - before;
  } else if (before > d.pre) {
    number.assign(static_cast<size_t>(d.pre + d.post + 1), '#');
    number[static_cast<size_t>(d.pre)] = '.';
  }
  return NumberWriter(d, std::move(number), negative, blanks, out).Write(pattern.nodes);
}

Status WriteRoman(const Pattern& pattern, int64_t value, std::string* out) {
  return NumberWriter(pattern.description, RomanNumeral(value), false, 0, out).Write(pattern.nodes);
}

// " d.ddde+dd" of a number printed without a blank for its sign; "#.###" for what is none.
void WriteScientific(const Description& d, std::string_view text, bool finite, std::string* out) {
  if (!finite) {
    std::string hashes(static_cast<size_t>(d.pre + d.post + 6), '#');
    hashes[0] = ' ';
    hashes[static_cast<size_t>(d.pre) + 1] = '.';
    out->append(hashes);
    return;
  }
  if (text[0] != '-') out->push_back(' ');
  out->append(text);
}

// ---- to_number ----

class NumberReader {
 public:
  NumberReader(std::string_view text, const Pattern& pattern)
      : text_(text), pattern_(pattern), d_(pattern.description) {
    if (d_.sign == Description::SignPlace::kBefore && d_.pre == d_.pre_at_sign) {
      d_.sign = Description::SignPlace::kAfter;
    }
  }

  // The number as text, and how many of its digits are fractions.
  std::string Read(int* scale) {
    for (const PatternNode& node : pattern_.nodes) {
      if (AtEnd()) break;
      if (node.kind != PatternNode::Kind::kWord) {
        ++at_;
        while (!AtEnd() && (text_[at_] & 0xC0) == 0x80) ++at_;
        continue;
      }
      ReadWord(node);
    }
    if (!digits_.empty() && digits_.back() == '.') digits_.pop_back();
    *scale = after_;
    return (sign_ == ' ' && !digits_.empty() ? "" : std::string(1, sign_)) + digits_;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  bool IsDigitAt(size_t i) const { return i < text_.size() && text_[i] >= '0' && text_[i] <= '9'; }
  // Skips up to `count` characters that cannot be part of a number.
  void SkipOthers(int count) {
    while (count-- > 0 && !AtEnd()) {
      if (std::string_view("0123456789.,+-").find(text_[at_]) != std::string_view::npos) break;
      ++at_;
      while (!AtEnd() && (text_[at_] & 0xC0) == 0x80) ++at_;
    }
  }

  void ReadDigit(bool digit_word) {
    if (text_[at_] == ' ') ++at_;
    if (AtEnd()) return;
    if (sign_ == ' ' && digit_word && before_ + after_ == 0) {
      if (d_.locale_sign && d_.sign == Description::SignPlace::kBefore) {
        if (text_[at_] == '-' || text_[at_] == '+') sign_ = text_[at_++];
      } else if (!d_.locale_sign || d_.sign != Description::SignPlace::kBefore) {
        if (text_[at_] == '-' || (d_.brackets && text_[at_] == '<')) {
          sign_ = '-';
          ++at_;
        } else if (text_[at_] == '+') {
          sign_ = '+';
          ++at_;
        }
      }
    }
    if (AtEnd()) return;
    bool read = false;
    if (IsDigitAt(at_)) {
      if (point_ && after_ == d_.post) return;
      digits_.push_back(text_[at_]);
      if (point_)
        ++after_;
      else
        ++before_;
      read = true;
    } else if (d_.point && !point_ && text_[at_] == '.') {
      digits_.push_back('.');
      point_ = true;
      read = true;
    }
    if (sign_ != ' ' || before_ + after_ == 0) return;
    // A sign behind the last digit.
    if (d_.locale_sign && read && at_ + 1 < text_.size() && !IsDigitAt(at_ + 1)) {
      if (text_[at_ + 1] == '-' || text_[at_ + 1] == '+') sign_ = text_[++at_];
    } else if (!read && !d_.locale_sign && (d_.plus || d_.minus)) {
      if (text_[at_] == '-' || text_[at_] == '+') sign_ = text_[at_];
    }
  }

  // After each word one character is taken, unless the word says that it took none.
  void ReadWord(const PatternNode& node) {
    switch (node.id) {
      case kNine:
      case kZero:
      case kPoint:
      case kLocalePoint: ReadDigit(node.id == kNine || node.id == kZero); break;
      case kComma:
      case kGroup:
        if (d_.fill) return;
        if (text_[at_] != ',') return;
        break;
      case kCurrency:
        if (node.text == "L" || node.text == "l") SkipOthers(1);
        return;
      case kOrdinal:
        if (d_.roman || sign_ == '-' || d_.point) return;
        SkipOthers(2);
        return;
      case kMinus:
        if (text_[at_] != '-') return SkipOthers(1);
        sign_ = '-';
        break;
      case kPlus:
        if (text_[at_] != '+') return SkipOthers(1);
        sign_ = '+';
        break;
      case kPlusMinus:
        if (text_[at_] != '-' && text_[at_] != '+') return SkipOthers(1);
        sign_ = text_[at_];
        break;
      default: return;
    }
    ++at_;
  }

  std::string_view text_;
  const Pattern& pattern_;
  Description d_;
  size_t at_ = 0;
  std::string digits_;
  char sign_ = ' ';
  bool point_ = false;
  int before_ = 0, after_ = 0;
};

}  // namespace

Status NumericToChar(std::string_view value, std::string_view pattern_text, std::string* out) {
  CELLAR_TRY_ASSIGN(Pattern pattern, ReadPattern(pattern_text));
  Description d = pattern.description;
  Arena arena;
  if (d.roman) {
    CELLAR_TRY_ASSIGN(int64_t whole, numeric::ToInt32(value));
    return WriteRoman(pattern, whole, out);
  }
  std::string text;
  if (d.exponent) {
    numeric::AppendScientific(value, d.post, &text);
    WriteScientific(d, text, numeric::IsFinite(value), out);
    return Status();
  }
  if (d.has_shift) {
    CELLAR_TRY_ASSIGN(std::string_view factor,
                      numeric::Power(numeric::FromInt64(10, &arena),
                                     numeric::FromInt64(d.shift, &arena), &arena));
    CELLAR_TRY_ASSIGN(value, numeric::Multiply(value, factor, &arena));
    d.pre += d.shift;
  }
  CELLAR_TRY_ASSIGN(value, numeric::Round(value, d.post, &arena));
  numeric::AppendText(value, &text);
  const bool negative = text[0] == '-';
  if (negative) text.erase(0, 1);
  return WriteFitted(pattern, d, std::move(text), negative, out);
}

Status Int64ToChar(int64_t value, std::string_view pattern, std::string* out, int64_t max) {
  Arena arena;
  CELLAR_TRY_ASSIGN(const Pattern read, ReadPattern(pattern));
  if (read.description.exponent && max == INT32_MAX) {
    return DoubleToChar(static_cast<double>(value), pattern, out);
  }
  if (read.description.has_shift && !read.description.roman && !read.description.exponent) {
    // The digits behind V are made in the number's own type.
    int64_t factor = 1, product = 0;
    bool fits = true;
    for (int i = 0; i < read.description.shift && fits; ++i) {
      fits = !__builtin_mul_overflow(factor, 10, &factor) && factor <= max;
    }
    fits = fits && !__builtin_mul_overflow(value, factor, &product) && product <= max &&
           product >= -max - 1;
    if (!fits) {
      return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range",
                      max == INT32_MAX ? "integer" : "bigint");
    }
  }
  return NumericToChar(numeric::FromInt64(value, &arena), pattern, out);
}

Status DoubleToChar(double value, std::string_view pattern_text, std::string* out, int digits) {
  CELLAR_TRY_ASSIGN(Pattern pattern, ReadPattern(pattern_text));
  Description d = pattern.description;
  if (d.roman) {
    return WriteRoman(pattern, std::fabs(value) < 1e9 ? static_cast<int64_t>(std::rint(value)) : 0,
                      out);
  }
  if (d.exponent) {
    WriteScientific(d, fmt::format("{:.{}e}", value, d.post), std::isfinite(value), out);
    return Status();
  }
  if (d.has_shift) {
    value *= std::pow(10.0, d.shift);
    d.pre += d.shift;
  }
  // No more digits than the type has.
  const int before = std::isinf(value)
                         ? 8  // "Infinity"
                         : static_cast<int>(fmt::format("{:.0f}", std::fabs(value)).size());
  if (before >= digits)
    d.post = 0;
  else if (before + d.post > digits)
    d.post = digits - before;
  std::string text = fmt::format("{:.{}f}", value, d.post);
  if (std::isnan(value)) text = "NaN";
  if (std::isinf(value)) text = value < 0 ? "-Infinity" : "Infinity";
  const bool negative = text[0] == '-';
  if (negative) text.erase(0, 1);
  return WriteFitted(pattern, d, std::move(text), negative, out);
}

Result<std::string_view> ToNumber(std::string_view text, std::string_view pattern_text,
                                  Arena* arena) {
  CELLAR_TRY_ASSIGN(Pattern pattern, ReadPattern(pattern_text));
  const Description& d = pattern.description;
  if (d.roman) return UnsupportedError("\"RN\" not supported for input");
  if (d.exponent) return UnsupportedError("\"EEEE\" not supported for input");
  int scale = 0;
  const std::string number = NumberReader(text, pattern).Read(&scale);
  CELLAR_TRY_ASSIGN(std::string_view value, numeric::Parse(number, arena));
  // As numeric(precision, scale) has it, of a precision that may be 0 or more than that type's.
  CELLAR_TRY_ASSIGN(value, numeric::Round(value, scale, arena));
  const int whole = d.pre + d.shift;
  if (whole < 1000) {
    CELLAR_TRY_ASSIGN(
        const std::string_view limit,
        numeric::Power(numeric::FromInt64(10, arena), numeric::FromInt64(whole, arena), arena));
    if (numeric::Compare(numeric::Abs(value, arena), limit) >= 0) {
      return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "numeric field overflow");
    }
  }
  if (d.has_shift) {
    CELLAR_TRY_ASSIGN(
        std::string_view factor,
        numeric::Power(numeric::FromInt64(10, arena), numeric::FromInt64(-d.shift, arena), arena));
    return numeric::Multiply(value, factor, arena);
  }
  return value;
}

}  // namespace cellar
