// DataRow and RowDescription.
#include "cellar/pgwire/rows.h"

#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/pgwire/errors.h"
#include "cellar/types/text_io.h"
#include "cellar/types/value_size.h"

namespace cellar::pgwire {
namespace {

constexpr size_t kMaxIntegerText = 20;
constexpr size_t kMaxRowBytes = size_t{1} << 30;
constexpr uint32_t kNullLength = 0xFFFFFFFF;

}  // namespace

void PutRowDescription(std::span<const session::ResultColumn> columns,
                       std::span<const int16_t> formats, MessageWriter* out) {
  out->Begin('T');
  out->PutInt16(static_cast<int>(columns.size()));
  for (size_t i = 0; i < columns.size(); ++i) {
    const session::ResultColumn& column = columns[i];
    out->PutText(column.name);
    out->PutInt32(column.table_oid);
    out->PutInt16(column.attnum);
    out->PutInt32(OidOf(column.type));
    out->PutInt16(TypeLength(column.type));
    out->PutInt32(static_cast<uint32_t>(column.type.modifier));
    out->PutInt16(formats.empty() ? 0 : formats.size() == 1 ? formats[0] : formats[i]);
  }
  out->End();
}

RowFormatter::Form RowFormatter::FormOf(Type type, bool binary) {
  if (type.array) {
    if (binary) return Form::kBinary;
    const bool names = type.id >= TypeId::kRegclass && type.id <= TypeId::kRegrole;
    return names ? Form::kSessionText : Form::kText;
  }
  switch (type.id) {
    case TypeId::kBool: return binary ? Form::kInt1 : Form::kBoolText;
    case TypeId::kInt2: return binary ? Form::kInt2 : Form::kIntegerText;
    case TypeId::kInt4:
    case TypeId::kOid:
    case TypeId::kXid: return binary ? Form::kInt4 : Form::kIntegerText;
    case TypeId::kInt8: return binary ? Form::kInt8 : Form::kIntegerText;
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: return binary ? Form::kInt4 : Form::kSessionText;
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kName:
    case TypeId::kUnknown: return Form::kBytes;
    default: return binary ? Form::kBinary : Form::kText;
  }
}

void RowFormatter::PutValue(const ColumnVector& column, size_t row, Form form,
                            const FormatSettings& settings, MessageWriter* out) {
  switch (form) {
    case Form::kIntegerText: {
      char* to = out->Reserve(4 + kMaxIntegerText);
      char* end = std::to_chars(to + 4, to + 4 + kMaxIntegerText, column.ints()[row]).ptr;
      MessageWriter::StoreInt32(to, static_cast<uint32_t>(end - to - 4));
      out->Advance(static_cast<size_t>(end - to));
      return;
    }
    case Form::kBoolText: {
      char* to = out->Reserve(5);
      MessageWriter::StoreInt32(to, 1);
      to[4] = column.ints()[row] != 0 ? 't' : 'f';
      out->Advance(5);
      return;
    }
    case Form::kBytes: {
      const std::string_view bytes = column.bytes()[row];
      char* to = out->Reserve(4 + bytes.size());
      MessageWriter::StoreInt32(to, static_cast<uint32_t>(bytes.size()));
      if (!bytes.empty()) std::memcpy(to + 4, bytes.data(), bytes.size());
      out->Advance(4 + bytes.size());
      return;
    }
    case Form::kInt1:
      out->PutInt32(1);
      out->PutByte(column.ints()[row] != 0 ? 1 : 0);
      return;
    case Form::kInt2:
      out->PutInt32(2);
      out->PutInt16(static_cast<int>(column.ints()[row]));
      return;
    case Form::kInt4:
      out->PutInt32(4);
      out->PutInt32(static_cast<uint32_t>(column.ints()[row]));
      return;
    case Form::kInt8:
      out->PutInt32(8);
      out->PutInt64(static_cast<uint64_t>(column.ints()[row]));
      return;
    case Form::kText:
    case Form::kSessionText:
    case Form::kBinary: break;
  }
  scratch_.clear();
  const Datum value = column.Get(row);
  // Texts of arrays and records are made in several strings, of about their size each.
  constexpr size_t kLongBytes = size_t{1} << 20;
  MemoryCharge charge(MemoryAccount::Current());
  if (value.byte_count() >= kLongBytes) charge.Add(2 * value.byte_count());
  if (form == Form::kBinary) {
    AppendDatumBinary(value, column.type(), &scratch_);
  } else if (form == Form::kSessionText && printer_) {
    printer_(value, column.type(), &scratch_);
  } else {
    AppendDatumText(value, column.type(), settings, &scratch_);
  }
  out->PutInt32(static_cast<uint32_t>(scratch_.size()));
  out->PutBytes(scratch_);
}

Status RowFormatter::PutRows(const RowBatch& batch, std::span<const int16_t> formats,
                             const FormatSettings& settings, MessageWriter* out) {
  const size_t columns = batch.num_columns();
  if (formats.size() > 1 && formats.size() != columns) {
    return ProtocolError("bind message has {} result formats but query has {} columns",
                         formats.size(), columns);
  }
  forms_.resize(columns);
  for (size_t c = 0; c < columns; ++c) {
    const bool binary = !formats.empty() && (formats.size() == 1 ? formats[0] : formats[c]) == 1;
    forms_[c] = FormOf(batch.column(c).type(), binary);
  }
  for (size_t row = 0; row < batch.size(); ++row) {
    out->Begin('D');
    out->PutInt16(static_cast<int>(columns));
    for (size_t c = 0; c < columns; ++c) {
      const ColumnVector& column = batch.column(c);
      if (column.IsNull(row)) {
        out->PutInt32(kNullLength);
      } else {
        PutValue(column, row, forms_[c], settings, out);
        if (column.type().id == TypeId::kRecord) {
          // Longer text of a record was cut off.
          if (Status status = CheckValueSize(scratch_.size()); !status.ok()) {
            out->Abandon();
            return status;
          }
        }
        if (out->frame_bytes() > kMaxRowBytes) {
          out->Abandon();
          return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                          "a row is longer than a message of the protocol can be");
        }
      }
    }
    out->End();
    if (!out->FlushIfLarge()) return ClientLost();
  }
  if (scratch_.capacity() > (size_t{1} << 20)) std::string().swap(scratch_);
  return Status();
}

}  // namespace cellar::pgwire
