// Command tags by object type, and the statements that are only named.
#include "cellar/sql/parser/pg_walker.h"

namespace cellar::sql::ast {

namespace {

struct Tags {
  ObjectType type;
  std::string_view alter;
  std::string_view drop;
};

// The words after ALTER and DROP, with them, so that all three texts are static.
constexpr Tags kTags[] = {
    {ObjectType::kTable, "ALTER TABLE", "DROP TABLE"},
    {ObjectType::kView, "ALTER VIEW", "DROP VIEW"},
    {ObjectType::kMatView, "ALTER MATERIALIZED VIEW", "DROP MATERIALIZED VIEW"},
    {ObjectType::kIndex, "ALTER INDEX", "DROP INDEX"},
    {ObjectType::kSequence, "ALTER SEQUENCE", "DROP SEQUENCE"},
    {ObjectType::kSchema, "ALTER SCHEMA", "DROP SCHEMA"},
    {ObjectType::kDatabase, "ALTER DATABASE", "DROP DATABASE"},
    {ObjectType::kType, "ALTER TYPE", "DROP TYPE"},
    {ObjectType::kDomain, "ALTER DOMAIN", "DROP DOMAIN"},
    {ObjectType::kFunction, "ALTER FUNCTION", "DROP FUNCTION"},
    {ObjectType::kProcedure, "ALTER PROCEDURE", "DROP PROCEDURE"},
    {ObjectType::kRoutine, "ALTER ROUTINE", "DROP ROUTINE"},
    {ObjectType::kAggregate, "ALTER AGGREGATE", "DROP AGGREGATE"},
    {ObjectType::kExtension, "ALTER EXTENSION", "DROP EXTENSION"},
    {ObjectType::kTrigger, "ALTER TRIGGER", "DROP TRIGGER"},
    {ObjectType::kRule, "ALTER RULE", "DROP RULE"},
    {ObjectType::kPolicy, "ALTER POLICY", "DROP POLICY"},
    {ObjectType::kColumn, "ALTER COLUMN", "DROP COLUMN"},
    {ObjectType::kAttribute, "ALTER TYPE", "DROP TYPE"},
    {ObjectType::kRole, "ALTER ROLE", "DROP ROLE"},
    {ObjectType::kCollation, "ALTER COLLATION", "DROP COLLATION"},
    {ObjectType::kConversion, "ALTER CONVERSION", "DROP CONVERSION"},
    {ObjectType::kCast, "ALTER CAST", "DROP CAST"},
    {ObjectType::kOperator, "ALTER OPERATOR", "DROP OPERATOR"},
    {ObjectType::kOperatorClass, "ALTER OPERATOR CLASS", "DROP OPERATOR CLASS"},
    {ObjectType::kOperatorFamily, "ALTER OPERATOR FAMILY", "DROP OPERATOR FAMILY"},
    {ObjectType::kLanguage, "ALTER LANGUAGE", "DROP LANGUAGE"},
    {ObjectType::kLargeObject, "ALTER LARGE OBJECT", "DROP LARGE OBJECT"},
    {ObjectType::kEventTrigger, "ALTER EVENT TRIGGER", "DROP EVENT TRIGGER"},
    {ObjectType::kForeignTable, "ALTER FOREIGN TABLE", "DROP FOREIGN TABLE"},
    {ObjectType::kForeignServer, "ALTER SERVER", "DROP SERVER"},
    {ObjectType::kForeignDataWrapper, "ALTER FOREIGN DATA WRAPPER", "DROP FOREIGN DATA WRAPPER"},
    {ObjectType::kAccessMethod, "ALTER ACCESS METHOD", "DROP ACCESS METHOD"},
    {ObjectType::kPublication, "ALTER PUBLICATION", "DROP PUBLICATION"},
    {ObjectType::kSubscription, "ALTER SUBSCRIPTION", "DROP SUBSCRIPTION"},
    {ObjectType::kStatistics, "ALTER STATISTICS", "DROP STATISTICS"},
    {ObjectType::kTablespace, "ALTER TABLESPACE", "DROP TABLESPACE"},
    {ObjectType::kTextSearch, "ALTER TEXT SEARCH CONFIGURATION", "DROP TEXT SEARCH CONFIGURATION"},
};

const Tags* FindTags(ObjectType type) {
  for (const Tags& tags : kTags) {
    if (tags.type == type) return &tags;
  }
  return nullptr;
}

// CREATE of what T_DefineStmt makes.
std::string_view DefineTag(::ObjectType kind) {
  switch (kind) {
    case OBJECT_AGGREGATE: return "CREATE AGGREGATE";
    case OBJECT_OPERATOR: return "CREATE OPERATOR";
    case OBJECT_TYPE: return "CREATE TYPE";
    case OBJECT_COLLATION: return "CREATE COLLATION";
    case OBJECT_TSPARSER: return "CREATE TEXT SEARCH PARSER";
    case OBJECT_TSDICTIONARY: return "CREATE TEXT SEARCH DICTIONARY";
    case OBJECT_TSTEMPLATE: return "CREATE TEXT SEARCH TEMPLATE";
    case OBJECT_TSCONFIGURATION: return "CREATE TEXT SEARCH CONFIGURATION";
    case OBJECT_ACCESS_METHOD: return "CREATE ACCESS METHOD";
    default: return "???";
  }
}

}  // namespace

std::string_view ObjectTypeName(ObjectType type) {
  if (type == ObjectType::kTableConstraint || type == ObjectType::kDomainConstraint) {
    return "CONSTRAINT";
  }
  const Tags* tags = FindTags(type);
  return tags == nullptr ? "OBJECT" : tags->drop.substr(5);
}

std::string_view DropTag(ObjectType type) {
  const Tags* tags = FindTags(type);
  return tags == nullptr ? "DROP TRANSFORM" : tags->drop;
}

std::string_view AlterTag(ObjectType type) {
  if (type == ObjectType::kTableConstraint) return "ALTER TABLE";
  if (type == ObjectType::kDomainConstraint) return "ALTER DOMAIN";
  const Tags* tags = FindTags(type);
  return tags == nullptr ? "ALTER LARGE OBJECT" : tags->alter;
}

StmtPtr PgWalker::Other(const ::Node* node, std::string_view* tag) {
  auto out = std::make_unique<OtherStmt>();
  auto name = [&](const char* text) { out->object.parts.push_back(Str(text)); };
  auto is = [&](std::string_view text) { *tag = text; };
  switch (node->type) {
    case T_MergeStmt:
      is("MERGE");
      out->object = Object(reinterpret_cast<const ::Node*>(As<::MergeStmt>(node)->relation));
      break;
    case T_CreateFunctionStmt:
      is(As<::CreateFunctionStmt>(node)->is_procedure ? "CREATE PROCEDURE" : "CREATE FUNCTION");
      out->object.parts = Strings(As<::CreateFunctionStmt>(node)->funcname);
      break;
    case T_AlterFunctionStmt:
      is(AlterTag(ObjectTypeOf(As<::AlterFunctionStmt>(node)->objtype)));
      out->object = Object(reinterpret_cast<const ::Node*>(As<::AlterFunctionStmt>(node)->func));
      break;
    case T_CreateTrigStmt: is("CREATE TRIGGER"), name(As<::CreateTrigStmt>(node)->trigname); break;
    case T_RuleStmt: is("CREATE RULE"), name(As<::RuleStmt>(node)->rulename); break;
    case T_CreatePolicyStmt:
      is("CREATE POLICY"), name(As<::CreatePolicyStmt>(node)->policy_name);
      break;
    case T_AlterPolicyStmt:
      is("ALTER POLICY"), name(As<::AlterPolicyStmt>(node)->policy_name);
      break;
    case T_CompositeTypeStmt:
      is("CREATE TYPE");
      out->object = Object(reinterpret_cast<const ::Node*>(As<::CompositeTypeStmt>(node)->typevar));
      break;
    case T_CreateRangeStmt:
      is("CREATE TYPE");
      out->object.parts = Strings(As<::CreateRangeStmt>(node)->typeName);
      break;
    case T_DefineStmt:
      is(DefineTag(As<::DefineStmt>(node)->kind));
      out->object.parts = Strings(As<::DefineStmt>(node)->defnames);
      out->if_not_exists = As<::DefineStmt>(node)->if_not_exists;
      break;
    case T_AlterDomainStmt:
      is("ALTER DOMAIN");
      out->object.parts = Strings(As<::AlterDomainStmt>(node)->typeName);
      break;
    case T_AlterTypeStmt:
      is("ALTER TYPE");
      out->object.parts = Strings(As<::AlterTypeStmt>(node)->typeName);
      break;
    case T_AlterExtensionStmt:
      is("ALTER EXTENSION"), name(As<::AlterExtensionStmt>(node)->extname);
      break;
    case T_AlterExtensionContentsStmt:
      is("ALTER EXTENSION"), name(As<::AlterExtensionContentsStmt>(node)->extname);
      break;
    case T_AlterObjectDependsStmt:
      is(AlterTag(ObjectTypeOf(As<::AlterObjectDependsStmt>(node)->objectType)));
      break;
    case T_CreateEventTrigStmt:
      is("CREATE EVENT TRIGGER"), name(As<::CreateEventTrigStmt>(node)->trigname);
      break;
    case T_AlterEventTrigStmt:
      is("ALTER EVENT TRIGGER"), name(As<::AlterEventTrigStmt>(node)->trigname);
      break;
    case T_CreatePLangStmt: is("CREATE LANGUAGE"), name(As<::CreatePLangStmt>(node)->plname); break;
    case T_CreateTableSpaceStmt:
      is("CREATE TABLESPACE"), name(As<::CreateTableSpaceStmt>(node)->tablespacename);
      break;
    case T_DropTableSpaceStmt:
      is("DROP TABLESPACE"), name(As<::DropTableSpaceStmt>(node)->tablespacename);
      break;
    case T_AlterTableSpaceOptionsStmt:
      is("ALTER TABLESPACE"), name(As<::AlterTableSpaceOptionsStmt>(node)->tablespacename);
      break;
    case T_AlterTableMoveAllStmt:
      is(AlterTag(ObjectTypeOf(As<::AlterTableMoveAllStmt>(node)->objtype)));
      break;
    case T_CreateStatsStmt:
      is("CREATE STATISTICS");
      out->object.parts = Strings(As<::CreateStatsStmt>(node)->defnames);
      out->if_not_exists = As<::CreateStatsStmt>(node)->if_not_exists;
      break;
    case T_AlterStatsStmt: is("ALTER STATISTICS"); break;
    case T_AlterDatabaseRefreshCollStmt:
      is("ALTER DATABASE"), name(As<::AlterDatabaseRefreshCollStmt>(node)->dbname);
      break;
    case T_AlterSystemStmt: is("ALTER SYSTEM"); break;
    case T_AlterOperatorStmt: is("ALTER OPERATOR"); break;
    case T_CreateCastStmt: is("CREATE CAST"); break;
    case T_CreateTransformStmt: is("CREATE TRANSFORM"); break;
    case T_CreateConversionStmt: is("CREATE CONVERSION"); break;
    case T_CreateOpClassStmt: is("CREATE OPERATOR CLASS"); break;
    case T_CreateOpFamilyStmt: is("CREATE OPERATOR FAMILY"); break;
    case T_AlterOpFamilyStmt: is("ALTER OPERATOR FAMILY"); break;
    case T_CreateAmStmt: is("CREATE ACCESS METHOD"), name(As<::CreateAmStmt>(node)->amname); break;
    case T_CreatePublicationStmt:
      is("CREATE PUBLICATION"), name(As<::CreatePublicationStmt>(node)->pubname);
      break;
    case T_AlterPublicationStmt:
      is("ALTER PUBLICATION"), name(As<::AlterPublicationStmt>(node)->pubname);
      break;
    case T_CreateSubscriptionStmt:
      is("CREATE SUBSCRIPTION"), name(As<::CreateSubscriptionStmt>(node)->subname);
      break;
    case T_AlterSubscriptionStmt:
      is("ALTER SUBSCRIPTION"), name(As<::AlterSubscriptionStmt>(node)->subname);
      break;
    case T_DropSubscriptionStmt:
      is("DROP SUBSCRIPTION"), name(As<::DropSubscriptionStmt>(node)->subname);
      break;
    case T_CreateFdwStmt:
      is("CREATE FOREIGN DATA WRAPPER"), name(As<::CreateFdwStmt>(node)->fdwname);
      break;
    case T_AlterFdwStmt: is("ALTER FOREIGN DATA WRAPPER"); break;
    case T_CreateForeignServerStmt:
      is("CREATE SERVER"), name(As<::CreateForeignServerStmt>(node)->servername);
      break;
    case T_AlterForeignServerStmt: is("ALTER SERVER"); break;
    case T_CreateUserMappingStmt: is("CREATE USER MAPPING"); break;
    case T_AlterUserMappingStmt: is("ALTER USER MAPPING"); break;
    case T_DropUserMappingStmt: is("DROP USER MAPPING"); break;
    case T_ImportForeignSchemaStmt: is("IMPORT FOREIGN SCHEMA"); break;
    case T_AlterTSDictionaryStmt: is("ALTER TEXT SEARCH DICTIONARY"); break;
    case T_AlterTSConfigurationStmt: is("ALTER TEXT SEARCH CONFIGURATION"); break;
    case T_SecLabelStmt: is("SECURITY LABEL"); break;
    case T_LoadStmt: is("LOAD"); break;
    default: is("???"); Unexpected(node);
  }
  return out;
}

}  // namespace cellar::sql::ast
