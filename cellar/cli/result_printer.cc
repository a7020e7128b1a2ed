// Layouts of result sets.
#include "cellar/cli/result_printer.h"

#include <algorithm>

#include "cellar/cli/text_width.h"

namespace cellar::cli {
namespace {

constexpr size_t kWriteBytes = 64 << 10;

bool AlignsRight(Type type) {
  return !type.array && (IsNumber(type) || type.id == TypeId::kOid || type.id == TypeId::kXid);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

int WidestLine(std::string_view text) {
  int widest = 0;
  for (std::string_view line : Lines(text)) widest = std::max(widest, DisplayWidth(line));
  return widest;
}

std::string Blanks(int count) { return std::string(static_cast<size_t>(std::max(0, count)), ' '); }
std::string Dashes(int count) { return std::string(static_cast<size_t>(std::max(0, count)), '-'); }

// Is `text` a number as JSON writes it?
bool IsJsonNumber(std::string_view text) {
  size_t at = text.substr(0, 1) == "-" ? 1 : 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - start;
  };
  const size_t first = at, whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

}  // namespace

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !text.empty() &&
      text.front() != ' ' && text.back() != ' ' && text != "\\.") {
    return std::string(text);
  }
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

void ResultPrinter::Begin(std::span<const session::ResultColumn> columns) {
  columns_.assign(columns.begin(), columns.end());
  held_.clear();
  widths_.clear();
  header_done_ = false;
  use_expanded_ = style_.expanded;
  rows_ = printed_ = 0;
  out_.clear();
  if (style_.mode == OutputMode::kCsv && !style_.tuples_only) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) out_ += ',';
      out_ += CsvField(columns_[c].name);
    }
    out_ += '\n';
  } else if (style_.mode == OutputMode::kJson) {
    out_ += '[';
  }
}

void ResultPrinter::AddRow(std::span<const std::string* const> cells) {
  switch (style_.mode) {
    case OutputMode::kCsv: AddCsv(cells); break;
    case OutputMode::kJson: AddJson(cells); break;
    case OutputMode::kAligned:
      for (const std::string* cell : cells) {
        if (cell == nullptr) {
          held_.push_back({style_.null_text, true});
        } else {
          held_.push_back({Printable(*cell), false});
        }
      }
      break;
  }
  ++rows_;
  if (style_.mode != OutputMode::kAligned) {
    if (out_.size() > kWriteBytes) Send();
  } else if (rows_ - printed_ >= kHeldRows) {
    FlushAligned(false);
  }
}

void ResultPrinter::AddCsv(std::span<const std::string* const> cells) {
  for (size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) out_ += ',';
    if (cells[c] != nullptr) out_ += CsvField(*cells[c]);
  }
  out_ += '\n';
}

void ResultPrinter::AddJson(std::span<const std::string* const> cells) {
  out_ += rows_ == 0 ? "{" : ",\n {";
  for (size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) out_ += ',';
    out_ += JsonString(columns_[c].name) + ":";
    const Type type = columns_[c].type;
    if (cells[c] == nullptr) {
      out_ += "null";
    } else if (!type.array && type.id == TypeId::kBool) {
      out_ += *cells[c] == "t" ? "true" : "false";
    } else if ((!type.array && (type.id == TypeId::kJson || type.id == TypeId::kJsonb)) ||
               (AlignsRight(type) && IsJsonNumber(*cells[c]))) {
      out_ += *cells[c];
    } else {
      out_ += JsonString(*cells[c]);
    }
  }
  out_ += '}';
}

void ResultPrinter::PrintRule(char left, char cross, char right) {
  // Borders as psql draws them: 0 none, 1 between columns, 2 around all.
  if (style_.border == 2) out_ += {left, '-'};
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (c > 0) {
      if (style_.border == 0) {
        out_ += ' ';
      } else {
        out_ += {'-', cross, '-'};
      }
    } else if (style_.border == 1) {
      out_ += '-';
    }
    out_ += Dashes(widths_[c]);
  }
  if (style_.border == 1) out_ += '-';
  if (style_.border == 2) out_ += {'-', right};
  out_ += '\n';
}

void ResultPrinter::PrintHeader() {
  if (!style_.title.empty()) {
    int total = style_.border == 2 ? 4 : style_.border == 1 ? 2 : 0;
    for (size_t c = 0; c < widths_.size(); ++c) {
      total += widths_[c] + (c == 0 ? 0 : style_.border == 0 ? 1 : 3);
    }
    out_ += Blanks((total - DisplayWidth(style_.title)) / 2) + style_.title + "\n";
  }
  if (style_.border == 2) PrintRule('+', '+', '+');
  std::string line = style_.border == 2 ? "| " : style_.border == 1 ? " " : "";
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (c > 0) line += style_.border == 0 ? " " : " | ";
    const std::string name = Printable(columns_[c].name);
    const int room = widths_[c] - DisplayWidth(name);
    line += Blanks(room / 2) + name + Blanks(room - room / 2);
  }
  if (style_.border == 1) line += ' ';
  if (style_.border == 2) line += " |";
  out_ += line + "\n";
  PrintRule('+', '+', '+');
}

void ResultPrinter::PrintAlignedRow(const Cell* cells) {
  std::vector<std::vector<std::string_view>> lines;
  size_t height = 1;
  for (size_t c = 0; c < columns_.size(); ++c) {
    lines.push_back(Lines(cells[c].text));
    height = std::max(height, lines.back().size());
  }
  for (size_t line = 0; line < height; ++line) {
    out_ += style_.border == 2 ? "| " : style_.border == 1 ? " " : "";
    for (size_t c = 0; c < columns_.size(); ++c) {
      const bool last = c + 1 == columns_.size();
      const std::string_view text = line < lines[c].size() ? lines[c][line] : std::string_view();
      const bool continues = line + 1 < lines[c].size();
      const int room = widths_[c] - DisplayWidth(text);
      if (AlignsRight(columns_[c].type)) {
        out_ += Blanks(room);
        out_ += text;
      } else {
        out_ += text;
        if (!last || continues || style_.border == 2) out_ += Blanks(room);
      }
      // A plus in the margin: the value goes on in the next line.
      if (continues) {
        out_ += '+';
      } else if (!last || style_.border == 2) {
        out_ += ' ';
      }
      if (!last && style_.border > 0) out_ += "| ";
    }
    if (style_.border == 2) out_ += '|';
    out_ += '\n';
  }
}

void ResultPrinter::PrintExpandedRow(const Cell* cells, uint64_t number) {
  int name_width = 0;
  for (const auto& column : columns_) {
    name_width = std::max(name_width, DisplayWidth(Printable(column.name)));
  }
  if (!style_.tuples_only) {
    int value_width = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      value_width = std::max(value_width, WidestLine(cells[c].text));
    }
    std::string rule = fmt::format("-[ RECORD {} ]", number);
    const int total = name_width + 3 + value_width;
    const int left = name_width + 1 - static_cast<int>(rule.size());
    if (left >= 0) rule += Dashes(left) + "+";
    rule += Dashes(total - static_cast<int>(rule.size()));
    out_ += rule + "\n";
  } else if (number > 1) {
    out_ += '\n';
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    const std::string name = Printable(columns_[c].name);
    bool first = true;
    const std::vector<std::string_view> lines = Lines(cells[c].text);
    for (size_t line = 0; line < lines.size(); ++line) {
      out_ += first ? name + Blanks(name_width - DisplayWidth(name)) : Blanks(name_width);
      out_ += " | ";
      out_ += lines[line];
      if (line + 1 < lines.size()) out_ += '+';
      out_ += '\n';
      first = false;
    }
  }
}

void ResultPrinter::FlushAligned(bool last) {
  const size_t width = columns_.size();
  const size_t held = rows_ - printed_;
  if (!header_done_) {
    widths_.assign(width, 0);
    for (size_t c = 0; c < width; ++c) widths_[c] = DisplayWidth(Printable(columns_[c].name));
    for (size_t i = 0; i < held_.size(); ++i) {
      widths_[i % width] = std::max(widths_[i % width], WidestLine(held_[i].text));
    }
    int total = 1;
    for (int column : widths_) total += column + 3;
    if (style_.expanded_auto && terminal_columns_ > 0 && total > terminal_columns_) {
      use_expanded_ = true;
    }
    if (!use_expanded_ && !style_.tuples_only) PrintHeader();
    header_done_ = true;
  }
  for (size_t row = 0; row < held; ++row) {
    const Cell* cells = width == 0 ? nullptr : &held_[row * width];
    ++printed_;
    if (use_expanded_) {
      PrintExpandedRow(cells, printed_);
    } else {
      PrintAlignedRow(cells);
    }
    if (out_.size() > kWriteBytes) Send();
  }
  held_.clear();
  if (!last) return;
  if (style_.border == 2 && !use_expanded_) PrintRule('+', '+', '+');
  if (!style_.tuples_only && !(use_expanded_ && rows_ > 0)) {
    out_ += rows_ == 1 ? "(1 row)\n" : fmt::format("({} rows)\n", rows_);
  }
  if (!style_.tuples_only) out_ += '\n';
}

void ResultPrinter::End() {
  if (style_.mode == OutputMode::kAligned) FlushAligned(true);
  if (style_.mode == OutputMode::kJson) out_ += "]\n";
  Send();
}

}  // namespace cellar::cli
