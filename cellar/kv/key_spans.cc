#include "cellar/kv/key_spans.h"

#include <algorithm>

#include "cellar/base/check.h"

namespace cellar::kv {
namespace {

constexpr size_t kLongestBound = 128;

size_t SharedBytes(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + size, b.begin()).first -
                             a.begin());
}

// The least short string behind all that begin with `key` cut short; empty: there is none.
std::string BoundBehind(std::string key) {
  if (key.size() < kLongestBound) return std::move(key) + '\0';
  key.resize(kLongestBound);
  while (!key.empty() && key.back() == '\xff') key.pop_back();
  if (!key.empty()) key.back() = static_cast<char>(static_cast<unsigned char>(key.back()) + 1);
  return key;
}

}  // namespace

KeySpans KeySpans::Union(std::span<const KeySpans* const> all) {
  std::vector<const Span*> spans;
  for (const KeySpans* one : all) {
    for (const Span& span : one->spans_) spans.push_back(&span);
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span* a, const Span* b) { return a->first < b->first; });
  KeySpans out;
  for (const Span* span : spans) out.AddRange(span->first, span->last);
  return out;
}

void KeySpans::AddRange(std::string_view first, std::string_view last) {
  if (spans_.empty()) {
    spans_.push_back({std::string(first), std::string(last), 0});
    return;
  }
  Span& open = spans_.back();
  CELLAR_DCHECK(first >= std::string_view(open.first));
  if (first <= std::string_view(open.last)) {
    if (last > std::string_view(open.last)) open.last = last;
    return;
  }
  const size_t shared = SharedBytes(open.last, first);
  if (shared >= joined_at_) {
    open.last = last;
    return;
  }
  spans_.push_back({std::string(first), std::string(last), shared});
  if (spans_.size() > most_) Join();
}

// Of the neighbours that share most, the first two.
void KeySpans::Join() {
  const auto at =
      std::max_element(spans_.begin() + 1, spans_.end(),
                       [](const Span& a, const Span& b) { return a.shared < b.shared; });
  joined_at_ = at->shared;
  std::prev(at)->last = std::move(at->last);
  spans_.erase(at);
}

std::vector<std::pair<std::string, std::string>> KeySpans::Take() {
  std::vector<std::pair<std::string, std::string>> ranges;
  ranges.reserve(spans_.size());
  for (Span& span : spans_) {
    if (span.first.size() > kLongestBound) span.first.resize(kLongestBound);
    std::string end = BoundBehind(std::move(span.last));
    // Cut short, neighbours may meet.
    if (!ranges.empty() && (ranges.back().second.empty() || span.first < ranges.back().second)) {
      ranges.back().second = std::move(end);
    } else {
      ranges.emplace_back(std::move(span.first), std::move(end));
    }
  }
  spans_.clear();
  joined_at_ = SIZE_MAX;
  return ranges;
}

}  // namespace cellar::kv
