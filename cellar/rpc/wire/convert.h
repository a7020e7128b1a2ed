// Messages of cellar.v1 to and from the types of cellar/table.h: what server and client share.
//
// Take... functions read what a stranger may have written: every count, length and value is
// checked, and an error is kInvalid (22023, or the value's own) with nothing half done.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/table.h"

namespace cellar::v1 {
class ColumnBlock;
class ErrorDetail;
class Expectation;
class Expression;
class Key;
class KeySpan;
class RowBlock;
class TableSchema;
class Value;
class WriteResult;
}  // namespace cellar::v1

namespace cellar::rpc {

// How values of a type lie in a block; the numbers are those of cellar.v1.Form.
enum class Form : uint8_t { kInts = 1, kDoubles = 2, kTexts = 3, kBytes = 4, kTextForm = 5 };
Form FormOf(Type type);

// ---- Rows ----

// Rows [start, end) of `batch`. `with_types`: also what the columns' types are. Cost: a few
// nanoseconds a cell.
void PutRows(const RowBatch& batch, size_t start, size_t end, bool with_types, v1::RowBlock* block);
// Makes `batch` the rows of `block`, which has columns of these types. `unset`: as in CellBatch;
// null: a block that leaves cells out is an error. Bytes are copied.
Status TakeRows(const v1::RowBlock& block, std::span<const Type> types, RowBatch* batch,
                std::vector<std::vector<uint8_t>>* unset);
// The same for rows that a server sent, whose values are not checked again: their bytes are
// borrowed from `block` where they lie as they are in memory.
Status BorrowRows(const v1::RowBlock& block, std::span<const Type> types, RowBatch* batch);
// The types that the block's columns say they have; text for those unknown here. Error: a column
// says none.
Result<std::vector<Type>> TypesOf(const v1::RowBlock& block);

// ---- Keys, filters, expectations ----

void PutCell(const Cell& cell, v1::Value* value);
Cell TakeCell(const v1::Value& value);
void PutKey(const Key& key, v1::Key* message);
Key TakeKey(const v1::Key& message);
void PutSpan(const KeySpan& span, v1::KeySpan* message);
KeySpan TakeSpan(const v1::KeySpan& message);
void PutFilter(const Filter& filter, v1::Expression* message);
// Errors: 22023 unknown operator or a wrong number of arguments; 54001 too deep or too large.
Result<Filter> TakeFilter(const v1::Expression& message);
void PutExpectation(const Expectation& expectation, v1::Expectation* message);
Result<Expectation> TakeExpectation(const v1::Expectation& message);

// ---- Schemas, results, errors ----

void PutSchema(const TableSchema& schema, v1::TableSchema* message);
SchemaPtr TakeSchema(const v1::TableSchema& message);
void PutResult(const WriteResult& result, v1::WriteResult* message);
WriteResult TakeResult(const v1::WriteResult& message);

// Trailing metadata that carries a serialized cellar.v1.ErrorDetail.
inline constexpr char kErrorDetailKey[] = "cellar-error-detail-bin";
void PutError(const Status& status, v1::ErrorDetail* detail);
Status TakeError(const v1::ErrorDetail& detail);
// The gRPC status code that comes with an error, as a number.
int GrpcCodeOf(const Status& status);
// An error without detail, as one of the transport's.
Status TransportError(int grpc_code, std::string message);
// Whether the same request may succeed when it is sent again.
bool IsRetryable(const Status& status);

}  // namespace cellar::rpc
