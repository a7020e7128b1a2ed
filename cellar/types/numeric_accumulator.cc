// Exact sums of NUMERICs for sum, avg, variance and stddev.
#include <algorithm>

#include "cellar/types/numeric.h"
#include "cellar/types/numeric_internal.h"

namespace cellar::numeric {

using internal::Big;
using internal::BigFrom;
using internal::BigInt;
using internal::BigPow10;

struct Accumulator::Large {
  BigInt sum;  // unscaled at `scale`
  int scale = 0;
  int64_t nan_count = 0;
  int64_t infinity_count = 0;
  int64_t negative_infinity_count = 0;

  void AddBig(BigInt value, int value_scale) {
    if (value_scale > scale) {
      sum *= BigPow10(value_scale - scale);
      scale = value_scale;
    } else if (value_scale < scale) {
      value *= BigPow10(scale - value_scale);
    }
    sum += value;
  }
};

Accumulator::Accumulator() = default;
Accumulator::Accumulator(Accumulator&&) noexcept = default;
Accumulator& Accumulator::operator=(Accumulator&&) noexcept = default;
Accumulator::~Accumulator() = default;
Accumulator::Accumulator(const Accumulator& other)
    : sum_(other.sum_), scale_(other.scale_), count_(other.count_) {
  if (other.large_) large_ = std::make_unique<Large>(*other.large_);
}
Accumulator& Accumulator::operator=(const Accumulator& other) {
  if (this != &other) *this = Accumulator(other);
  return *this;
}

void Accumulator::Spill() {
  if (!large_) large_ = std::make_unique<Large>();
  large_->AddBig(BigFrom(sum_), scale_);
  sum_ = 0;
}

void Accumulator::SpillIfLarge() {
  // 2^20 additions of int64 stay below 2^83 before the next look.
  constexpr int128_t kLimit = int128_t{1} << 120;
  if (sum_ > kLimit || sum_ < -kLimit) Spill();
}

void Accumulator::AddSlow(std::string_view n) {
  ++count_;
  if (!IsFinite(n)) {
    if (!large_) large_ = std::make_unique<Large>();
    switch (KindOf(n)) {
      case Kind::kNaN: ++large_->nan_count; break;
      case Kind::kInfinity: ++large_->infinity_count; break;
      default: ++large_->negative_infinity_count; break;
    }
    return;
  }
  int128_t value;
  int scale;
  if (!internal::ToSmall(n, &value, &scale) || scale > internal::kMaxPow10) {
    if (!large_) large_ = std::make_unique<Large>();
    Big big = internal::ToBig(n);
    large_->AddBig(std::move(big.unscaled), big.scale);
    return;
  }
  if (scale > scale_) {
    int128_t scaled;
    if (!internal::ScaleUp(sum_, scale - scale_, &scaled)) {
      Spill();
      scaled = 0;
    }
    sum_ = scaled;
    scale_ = scale;
  } else if (scale < scale_) {
    int128_t scaled;
    if (!internal::ScaleUp(value, scale_ - scale, &scaled)) {
      if (!large_) large_ = std::make_unique<Large>();
      large_->AddBig(BigFrom(value), scale);
      return;
    }
    value = scaled;
  }
  int128_t sum;
  if (__builtin_add_overflow(sum_, value, &sum)) {
    Spill();
    sum = value;
  }
  sum_ = sum;
  SpillIfLarge();
}

void Accumulator::AddIntSlow(int64_t value) {
  char bytes[10];
  bytes[0] = 1;
  bytes[1] = 0;
  std::memcpy(bytes + 2, &value, 8);
  AddSlow({bytes, sizeof(bytes)});
}

void Accumulator::Remove(std::string_view n) {
  if (!IsFinite(n)) {
    --count_;
    if (!large_) return;
    switch (KindOf(n)) {
      case Kind::kNaN: --large_->nan_count; break;
      case Kind::kInfinity: --large_->infinity_count; break;
      default: --large_->negative_infinity_count; break;
    }
    return;
  }
  Arena scratch;
  AddSlow(Negate(n, &scratch));
  count_ -= 2;
}

void Accumulator::Merge(const Accumulator& other) {
  const int64_t count = count_ + other.count_;
  if (other.large_) {
    if (!large_) large_ = std::make_unique<Large>();
    large_->AddBig(other.large_->sum, other.large_->scale);
    large_->nan_count += other.large_->nan_count;
    large_->infinity_count += other.large_->infinity_count;
    large_->negative_infinity_count += other.large_->negative_infinity_count;
  }
  Arena scratch;
  AddSlow(Make(other.sum_, other.scale_, &scratch));
  count_ = count;
}

Result<std::string_view> Accumulator::Sum(Arena* arena) const {
  if (!large_) return Make(sum_, scale_, arena);
  if (large_->nan_count > 0 ||
      (large_->infinity_count > 0 && large_->negative_infinity_count > 0)) {
    return MakeNaN();
  }
  if (large_->infinity_count > 0) return MakeInfinity(false);
  if (large_->negative_infinity_count > 0) return MakeInfinity(true);
  Large total = *large_;
  total.AddBig(BigFrom(sum_), scale_);
  return internal::Encode(total.sum, total.scale, arena);
}

Result<std::string_view> Accumulator::Average(Arena* arena) const {
  CELLAR_TRY_ASSIGN(std::string_view sum, Sum(arena));
  return Divide(sum, FromInt64(count_, arena), arena);
}

size_t Accumulator::footprint_bytes() const {
  return sizeof(*this) + (large_ ? sizeof(Large) + large_->sum.backend().size() * 8 : 0);
}

Status VarianceAccumulator::Add(std::string_view n) {
  scratch_.Reset();
  CELLAR_TRY_ASSIGN(std::string_view square, Multiply(n, n, &scratch_));
  sum_.Add(n);
  squares_.Add(square);
  return Status();
}

void VarianceAccumulator::Merge(const VarianceAccumulator& other) {
  sum_.Merge(other.sum_);
  squares_.Merge(other.squares_);
}

namespace {

// (N sum(x^2) - sum(x)^2) / (N (N - 1)), or its root; PostgreSQL's numeric_stddev_internal.
Result<std::string_view> Spread(const Accumulator& sums, const Accumulator& squares, bool sample,
                                bool root, Arena* arena) {
  CELLAR_TRY_ASSIGN(std::string_view sum_bytes, sums.Sum(arena));
  CELLAR_TRY_ASSIGN(std::string_view square_bytes, squares.Sum(arena));
  if (!IsFinite(sum_bytes) || !IsFinite(square_bytes)) return MakeNaN();
  Big sum = internal::ToBig(sum_bytes), square = internal::ToBig(square_bytes);
  const int scale = 2 * sum.scale;  // that of the squares too
  BigInt numerator = square.unscaled * sums.count();
  if (square.scale < scale) numerator *= BigPow10(scale - square.scale);
  numerator -= sum.unscaled * sum.unscaled;
  if (numerator <= 0) return FromInt64(0, arena);
  BigInt denominator = BigInt(sums.count()) * (sample ? sums.count() - 1 : sums.count());
  const int result_scale = internal::DivisionScale(internal::LeadingOf(numerator, scale), scale,
                                                   internal::LeadingOf(denominator, 0), 0);
  BigInt variance =
      internal::DivideHalfAway(numerator * BigPow10(result_scale - scale), denominator);
  if (!root) return internal::Encode(variance, result_scale, arena);
  return internal::Encode(internal::SqrtRounded(variance, result_scale, result_scale), result_scale,
                          arena);
}

}  // namespace

Result<std::string_view> VarianceAccumulator::Variance(bool sample, Arena* arena) const {
  return Spread(sum_, squares_, sample, false, arena);
}
Result<std::string_view> VarianceAccumulator::StandardDeviation(bool sample, Arena* arena) const {
  return Spread(sum_, squares_, sample, true, arena);
}

}  // namespace cellar::numeric
