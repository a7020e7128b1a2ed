// Rows: a run's batches, row by row, and what a program reads of them.
#include "cellar/library/library_internal.h"
#include "cellar/types/convert.h"

namespace cellar {

using internal::StatementState;

namespace {

// What Rows that were moved from look at: a run that they are never at.
const uint64_t kNoRun = 0;

}  // namespace

Rows::Rows(std::shared_ptr<StatementState> state, uint64_t run)
    : state_(std::move(state)),
      run_(run),
      live_run_(&state_->run),
      batch_(state_->direct->current()) {}

Rows::Rows(Rows&& other) noexcept
    : state_(std::move(other.state_)),
      run_(std::exchange(other.run_, kNoRun + 1)),
      live_run_(std::exchange(other.live_run_, &kNoRun)),
      batch_(other.batch_),
      row_(other.row_),
      count_(std::exchange(other.count_, 0)),
      passed_(other.passed_),
      status_(std::move(other.status_)),
      misuse_(std::move(other.misuse_)),
      shown_(std::move(other.shown_)) {}

Rows& Rows::operator=(Rows&& other) noexcept {
  if (this == &other) return *this;
  internal::EndRun(state_, run_);
  state_ = std::move(other.state_);
  run_ = std::exchange(other.run_, kNoRun + 1);
  live_run_ = std::exchange(other.live_run_, &kNoRun);
  batch_ = other.batch_;
  row_ = other.row_;
  count_ = std::exchange(other.count_, 0);
  passed_ = other.passed_;
  status_ = std::move(other.status_);
  misuse_ = std::move(other.misuse_);
  shown_ = std::move(other.shown_);
  return *this;
}

Rows::~Rows() { internal::EndRun(state_, run_); }

const std::vector<Column>& Rows::columns() const {
  static const std::vector<Column> none;
  return state_ == nullptr ? none : state_->columns;
}

uint64_t Rows::affected() const {
  if (state_ == nullptr || state_->run != run_ || state_->direct == nullptr) return 0;
  return state_->direct->rows_affected();
}

// Moves to the next batch that has rows.
bool Rows::Advance() {
  passed_ += count_;
  count_ = 0;
  row_ = SIZE_MAX;
  if (!status_.ok()) return false;
  const auto next = [&]() -> Result<const RowBatch*> {
    if (state_ == nullptr) return internal::MovedFromError();
    StatementState* state = state_.get();
    if (state->direct == nullptr) return internal::ClosedError();
    if (state->run != run_) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidCursorState,
                      "the statement has been run again before all rows were read");
    }
    // From within another call on the connection too.
    if (state->direct->buffered()) return internal::NextOf(state);
    return internal::Enter(state->connection.get(), [&] { return internal::NextOf(state); });
  };
  Result<const RowBatch*> batch = next();
  if (!batch.ok()) {
    status_ = std::move(batch).status();
    return false;
  }
  if (*batch == nullptr) return false;
  count_ = (*batch)->size();
  return true;
}

bool Rows::NextRow() {
  if (!Advance()) return false;
  row_ = 0;
  return true;
}

const RowBatch* Rows::NextBatch() {
  if (!Advance()) return nullptr;
  row_ = count_;  // row by row goes on behind it
  return *batch_;
}

const ColumnVector* Rows::NoValue(size_t column) const {
  if (!misuse_.ok()) return nullptr;
  const bool here = row_ < count_ && *live_run_ == run_;
  misuse_ = here ? SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                            "there is no column {}: the rows have {}", column, columns().size())
                 : SqlError(Code::kInvalid, sqlstate::kInvalidCursorState,
                            "a value was asked for without a row: Next has not returned true");
  return nullptr;
}

void Rows::NoteOutOfRange(size_t column) const {
  if (!misuse_.ok()) return;
  misuse_ = SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                     "the value of column {} does not go into the type asked for", column);
}

int64_t Rows::ConvertToInt(const ColumnVector& values, size_t row) {
  return DatumAsInt(values.Get(row), values.type());
}

double Rows::ConvertToDouble(const ColumnVector& values, size_t row) {
  return DatumAsDouble(values.Get(row), values.type());
}

std::string_view Rows::GetBytes(size_t column) const {
  const ColumnVector* values = At(column);
  if (values == nullptr || values->IsNull(row_) || !HasPlainBytes(values->type())) return {};
  return values->bytes()[row_];
}

std::string_view Rows::GetText(size_t column) const {
  const ColumnVector* values = At(column);
  if (values == nullptr || values->IsNull(row_)) return {};
  if (ShowsAsItLies(values->type())) return values->bytes()[row_];
  if (shown_.size() <= column) shown_.resize(columns().size());
  Shown& shown = shown_[column];
  const uint64_t row = passed_ + row_ + 1;
  if (shown.row != row) {
    shown.row = row;
    shown.text.clear();
    state_->connection->session->AppendText(values->Get(row_), values->type(), &shown.text);
  }
  return shown.text;
}

std::string Rows::ToString(size_t column) const {
  const ColumnVector* values = At(column);
  std::string text;
  if (values != nullptr && !values->IsNull(row_))
    state_->connection->session->AppendText(values->Get(row_), values->type(), &text);
  return text;
}

}  // namespace cellar
