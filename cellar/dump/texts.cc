#include "cellar/dump/texts.h"

#include "cellar/session/discarding_sink.h"

namespace cellar::dump {
namespace {

// Keeps rows.
class CollectingSink : public session::DiscardingSink {
 public:
  explicit CollectingSink(session::Session* session) : session_(session) {}
  std::vector<TextRow> Take() { return std::move(rows_); }

  Status OnColumns(std::span<const session::ResultColumn>) override {
    rows_.clear();
    return Status();
  }
  Status OnRows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.size(); ++row) {
      TextRow& texts = rows_.emplace_back();
      for (const ColumnVector& column : batch.columns()) {
        std::optional<std::string>& text = texts.emplace_back();
        if (!column.IsNull(row))
          session_->AppendText(column.Get(row), column.type(), &text.emplace());
      }
    }
    return Status();
  }

 private:
  session::Session* session_;
  std::vector<TextRow> rows_;
};

}  // namespace

Result<std::vector<TextRow>> QueryTexts(session::Session* session, std::string_view sql) {
  CollectingSink sink(session);
  CELLAR_TRY(session->ExecuteSimple(sql, &sink));
  return sink.Take();
}

std::string SqlLiteral(std::string_view text) {
  std::string out = text.find('\\') == std::string_view::npos ? "'" : " E'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += c;
    out += c;
  }
  return out + "'";
}

}  // namespace cellar::dump
