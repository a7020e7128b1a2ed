// Evaluation of bound expressions over batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/cancel.h"
#include "cellar/sql/expr/expr.h"
#include "cellar/sql/expr/function.h"
#include "cellar/types/batch.h"
#include "cellar/types/text_io.h"

namespace cellar::sql {

// What functions may ask of the session and the catalog: declared here, implemented above. All
// results are for the statement's snapshot. Errors pass through.
class SessionFunctions {
 public:
  virtual ~SessionFunctions() = default;
  virtual std::string CurrentUser() = 0;
  virtual std::string SessionUser() = 0;
  virtual std::string CurrentDatabase() = 0;
  virtual std::vector<std::string> CurrentSchemas(bool implicit) = 0;
  virtual Result<std::string> GetSetting(std::string_view name, bool missing_ok, bool* missing) = 0;
  virtual Result<std::string> SetSetting(std::string_view name, std::string_view value,
                                         bool local) = 0;
  virtual int32_t BackendPid() = 0;
  // Sequences, by relation oid.
  virtual Result<int64_t> NextValue(uint32_t sequence) = 0;
  virtual Result<int64_t> CurrentValue(uint32_t sequence) = 0;
  virtual Result<int64_t> LastValue() = 0;
  virtual Result<int64_t> SetValue(uint32_t sequence, int64_t value, bool called) = 0;
  // Names to oids and back: kind is kRegclass, kRegtype, kRegproc, kRegnamespace or kRegrole.
  virtual Result<uint32_t> LookupReg(TypeId kind, std::string_view name) = 0;
  virtual std::string PrintReg(TypeId kind, uint32_t oid) = 0;
  // Any other catalog function by name ("pg_get_indexdef", "pg_table_is_visible",
  // "col_description", "pg_relation_size"...). Bytes of the result live in `arena`.
  virtual Result<Datum> CatalogFunction(std::string_view name, std::span<const Datum> args,
                                        Arena* arena) = 0;
};

// Runs subplans for kSubplan expressions; implemented by sql/exec.
class SubplanRunner {
 public:
  virtual ~SubplanRunner() = default;
  // The value of the subplan for one outer row whose slots are set in context.exec_parameters().
  // `left` holds the left operands of kAny and kAll. Bytes live in context.arena().
  virtual Result<Datum> Run(const Expr& subplan, std::span<const Datum> left,
                            EvalContext& context) = 0;
};

// Everything an evaluation needs. One thread at a time; lives for one execution of a statement.
class EvalContext {
 public:
  Arena* arena() { return arena_; }
  // Intermediate results live here; operators Reset it between batches.
  void set_arena(Arena* arena) { arena_ = arena; }

  std::span<const Datum> parameters;       // $1.. as bound
  std::vector<Datum> exec_parameters;      // slots
  std::vector<Type> exec_parameter_types;  // of the slots, set together with them
  FormatSettings format;
  int64_t statement_micros = 0;               // statement_timestamp()
  int64_t transaction_micros = 0;             // now()
  const CancelToken* cancel = nullptr;        // null: what the thread listens to (base/interrupt.h)
  SessionFunctions* session = nullptr;        // null while folding constants
  SubplanRunner* subplans = nullptr;          // null while folding constants
  uint64_t (*random)(void* state) = nullptr;  // 64 random bits
  void* random_state = nullptr;
  int64_t (*clock_micros)() = nullptr;  // clock_timestamp()

  // What a function remembers between calls: a compiled pattern beside its text. Keyed by the call.
  struct CallCache {
    std::string key;
    std::shared_ptr<void> object;
  };
  CallCache& cache(const void* call) { return cache_[call]; }

  // Loops over long values ask, for every step of theirs or for the bytes that one step has gone
  // through, whether the statement is to stop: `cancel` is looked at once in kPollSteps steps or in
  // about 1 MiB, counted over all calls. Errors: 57014 and its kin.
  Status Step(size_t steps = 1) {
    if (steps < steps_left_) {
      steps_left_ -= steps;
      return Status();
    }
    return Poll();
  }
  Status StepOver(size_t bytes) { return Step(1 + bytes / kPollBytesOfStep); }
  static constexpr size_t kPollSteps = 10'000, kPollBytesOfStep = 100;
  // random() and setseed() when `random` is null or a seed was set.
  uint64_t NextRandom();
  void SeedRandom(uint64_t seed) { seed_ = seed, seeded_ = true; }

 private:
  Status Poll();

  Arena* arena_ = nullptr;
  size_t steps_left_ = kPollSteps;
  std::unordered_map<const void*, CallCache> cache_;
  uint64_t seed_ = 0;
  bool seeded_ = false;
};

// Compiled for repeated evaluation over batches. One thread at a time.
class Evaluator {
 public:
  explicit Evaluator(const Expr* expr);  // borrowed; outlives the evaluator
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  // The value for each selected row of `input`; the vector is valid until the next call, and has
  // input.size() rows of which only the selected ones are defined. kColumn returns the input's
  // column itself.
  Result<const ColumnVector*> Eval(const RowBatch& input, Selection rows, EvalContext& context);
  // Rows of the selection for which a boolean expression is true, ascending, appended to *passing.
  Status Filter(const RowBatch& input, Selection rows, EvalContext& context,
                std::vector<uint32_t>* passing);

 private:
  struct Node;
  std::unique_ptr<Node> root_;
};

// The same for one row of a batch (or none when null): no vectors, for rare kinds and single rows.
Result<Datum> EvalRow(const Expr& expr, EvalContext& context, const RowBatch* input, size_t row);
// One value with no input row: constants, parameters, defaults, span bounds. Bytes live in
// context.arena() or the expression.
Result<Datum> EvalScalar(const Expr& expr, EvalContext& context);

// Text as PostgreSQL prints it in EXPLAIN: "(a > 5)". `column_name` names column i.
std::string ExprToString(const Expr& expr, const std::vector<std::string>& column_names);

}  // namespace cellar::sql
