// SQLSTATE values that Cellar answers with (PostgreSQL manual, appendix A).
#pragma once

#include <string_view>

namespace cellar::sqlstate {

inline constexpr std::string_view
    kNoData = "02000",
    kConnectionFailure = "08006", kProtocolViolation = "08P01", kFeatureNotSupported = "0A000",
    kCardinalityViolation = "21000", kStringDataRightTruncation = "22001",
    kNumericValueOutOfRange = "22003", kNullValueNotAllowed = "22004",
    kInvalidDatetimeFormat = "22007", kDatetimeFieldOverflow = "22008", kSubstringError = "22011",
    kDivisionByZero = "22012", kIntervalFieldOverflow = "22015",
    kCharacterNotInRepertoire = "22021", kInvalidParameterValue = "22023",
    kInvalidEscapeSequence = "22025", kInvalidRegularExpression = "2201B",
    kInvalidRowCountInLimit = "2201W", kInvalidRowCountInOffset = "2201X",
    kArraySubscriptError = "2202E", kInvalidTextRepresentation = "22P02",
    kInvalidBinaryRepresentation = "22P03", kBadCopyFileFormat = "22P04",
    kUntranslatableCharacter = "22P05", kNotNullViolation = "23502", kForeignKeyViolation = "23503",
    kUniqueViolation = "23505", kCheckViolation = "23514", kInvalidCursorState = "24000",
    kActiveSqlTransaction = "25001", kReadOnlySqlTransaction = "25006",
    kNoActiveSqlTransaction = "25P01", kInFailedSqlTransaction = "25P02",
    kInvalidSqlStatementName = "26000", kInvalidAuthorization = "28000", kInvalidPassword = "28P01",
    kDependentObjectsStillExist = "2BP01", kInvalidCursorName = "34000",
    kInvalidSavepoint = "3B001", kConfigurationLimitExceeded = "53400",
    kInvalidCatalogName = "3D000", kInvalidSchemaName = "3F000", kSerializationFailure = "40001",
    kStatementCompletionUnknown = "40003", kDeadlockDetected = "40P01", kSyntaxError = "42601",
    kInsufficientPrivilege = "42501", kCannotCoerce = "42846", kGroupingError = "42803",
    kWindowingError = "42P20", kDatatypeMismatch = "42804", kIndeterminateDatatype = "42P18",
    kCollationMismatch = "42P21", kIndeterminateCollation = "42P22", kWrongObjectType = "42809",
    kUndefinedColumn = "42703", kUndefinedFunction = "42883", kUndefinedTable = "42P01",
    kUndefinedParameter = "42P02", kUndefinedObject = "42704", kDuplicateColumn = "42701",
    kDuplicateCursor = "42P03", kDuplicateDatabase = "42P04", kDuplicatePreparedStatement = "42P05",
    kDuplicateSchema = "42P06", kDuplicateTable = "42P07", kDuplicateAlias = "42712",
    kDuplicateObject = "42710", kAmbiguousColumn = "42702", kAmbiguousFunction = "42725",
    kInvalidColumnReference = "42P10", kInvalidTableDefinition = "42P16",
    kInvalidObjectDefinition = "42P17", kInvalidName = "42602", kNameTooLong = "42622",
    kReservedName = "42939", kDiskFull = "53100", kOutOfMemory = "53200",
    kTooManyConnections = "53300", kProgramLimitExceeded = "54000", kStatementTooComplex = "54001",
    kTooManyColumns = "54011", kObjectNotInPrerequisiteState = "55000", kObjectInUse = "55006",
    kLockNotAvailable = "55P03", kQueryCanceled = "57014", kAdminShutdown = "57P01",
    kCannotConnectNow = "57P03", kIoError = "58030", kUndefinedFile = "58P01",
    kInternalError = "XX000", kDataCorrupted = "XX001";

}  // namespace cellar::sqlstate
