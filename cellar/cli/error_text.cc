// The layout of libpq's messages.
#include "cellar/cli/error_text.h"

#include "cellar/cli/text_width.h"

namespace cellar::cli {
namespace {

constexpr int kShownColumns = 60;

// "LINE 2: ...text..." and a caret under the character at `position` (1-based, in characters).
std::string CaretLines(std::string_view statement, int position) {
  size_t at = 0;
  for (int characters = 1; at < statement.size() && characters < position; ++characters) {
    do {
      ++at;
    } while (at < statement.size() && (static_cast<unsigned char>(statement[at]) & 0xC0) == 0x80);
  }
  int line_number = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < at; ++i) {
    if (statement[i] != '\n') continue;
    ++line_number;
    line_start = i + 1;
  }
  const size_t line_end = std::min(statement.find('\n', at), statement.size());
  std::string before = Printable(statement.substr(line_start, at - line_start));
  std::string after = Printable(statement.substr(at, line_end - at));
  while (!after.empty() && after.back() == '\r') after.pop_back();
  // A long line shows what is around the place.
  std::string prefix = fmt::format("LINE {}: ", line_number);
  if (DisplayWidth(before) + DisplayWidth(after) > kShownColumns) {
    constexpr int kBefore = 40, kAfter = 20;
    if (DisplayWidth(before) > kBefore) {
      std::string_view cut = before;
      const int drop = DisplayWidth(before) - kBefore;
      cut.remove_prefix(TakeColumns(cut, drop).size());
      prefix += "...";
      before = std::string(cut);
    }
    const int room = std::max(kAfter, kShownColumns - DisplayWidth(before));
    if (DisplayWidth(after) > room) after = std::string(TakeColumns(after, room)) + "...";
  }
  const auto indent = static_cast<size_t>(DisplayWidth(prefix) + DisplayWidth(before));
  return prefix + before + after + "\n" + std::string(indent, ' ') + "^\n";
}

void AppendPart(std::string_view name, std::string_view text, std::string* out) {
  if (!text.empty()) *out += fmt::format("{}:  {}\n", name, text);
}

}  // namespace

std::string ErrorText(const Status& status, std::string_view statement) {
  std::string out = fmt::format("ERROR:  {}\n", status.message());
  if (status.position() > 0 && !statement.empty()) out += CaretLines(statement, status.position());
  AppendPart("DETAIL", status.detail(), &out);
  AppendPart("HINT", status.hint(), &out);
  AppendPart("CONTEXT", status.context(), &out);
  return out;
}

std::string NoticeText(const session::Notice& notice) {
  constexpr const char* kNames[] = {"DEBUG", "LOG", "INFO", "NOTICE", "WARNING"};
  std::string out =
      fmt::format("{}:  {}\n", kNames[static_cast<size_t>(notice.severity)], notice.message);
  AppendPart("DETAIL", notice.detail, &out);
  AppendPart("HINT", notice.hint, &out);
  return out;
}

std::string PlainErrorText(const Status& status) {
  std::string out = fmt::format("cellar: {}", status.message());
  if (!status.detail().empty()) out += fmt::format(" ({})", status.detail());
  out += '\n';
  AppendPart("hint", status.hint(), &out);
  return out;
}

}  // namespace cellar::cli
