// Batches to DataRow frames, straight into the output buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/pgwire/frames.h"
#include "cellar/session/session.h"

namespace cellar::pgwire {

// Prints a value in a way that only the session knows (regclass as a name).
using TextPrinter = std::function<void(Datum value, Type type, std::string* out)>;

// RowDescription. `formats`: empty, one for all, or one a column (0 text, 1 binary).
void PutRowDescription(std::span<const session::ResultColumn> columns,
                       std::span<const int16_t> formats, MessageWriter* out);

// One thread at a time.
class RowFormatter {
 public:
  explicit RowFormatter(TextPrinter printer) : printer_(std::move(printer)) {}

  // A DataRow per row; sends when the buffer is large. `formats` as above. No allocation per row
  // once warm. Errors: 08006 when the client is gone, 08P01 when formats do not fit the columns,
  // 54000 for a row of more than 1 GB.
  Status PutRows(const RowBatch& batch, std::span<const int16_t> formats,
                 const FormatSettings& settings, MessageWriter* out);

 private:
  enum class Form : uint8_t {
    kIntegerText,
    kBoolText,
    kBytes,
    kText,
    kSessionText,
    kInt1,
    kInt2,
    kInt4,
    kInt8,
    kBinary
  };
  static Form FormOf(Type type, bool binary);
  void PutValue(const ColumnVector& column, size_t row, Form form, const FormatSettings& settings,
                MessageWriter* out);

  TextPrinter printer_;
  std::vector<Form> forms_;
  std::string scratch_;
};

}  // namespace cellar::pgwire
