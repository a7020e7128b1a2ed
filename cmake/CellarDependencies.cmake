# Where each Debian package is found. Heavy ones are linked by one layer each.
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(RocksDB CONFIG REQUIRED)
set(CELLAR_ROCKSDB_BUILD "${RocksDB_VERSION}, Debian's static library")
set(CELLAR_ROCKSDB_ROOT "" CACHE PATH "a RocksDB of tools/build-rocksdb, instead of the packaged one")
if(CELLAR_ROCKSDB_ROOT)
  # Only the archive is exchanged: the headers are those of the same version.
  if(NOT EXISTS ${CELLAR_ROCKSDB_ROOT}/recipe)
    message(FATAL_ERROR "${CELLAR_ROCKSDB_ROOT} holds no RocksDB: run tools/build-rocksdb")
  endif()
  file(STRINGS ${CELLAR_ROCKSDB_ROOT}/recipe CELLAR_ROCKSDB_BUILD LIMIT_COUNT 1)
  set_target_properties(RocksDB::rocksdb PROPERTIES
    IMPORTED_CONFIGURATIONS "" IMPORTED_LOCATION ${CELLAR_ROCKSDB_ROOT}/lib/librocksdb.a
    INTERFACE_INCLUDE_DIRECTORIES ${CELLAR_ROCKSDB_ROOT}/include
    INTERFACE_LINK_LIBRARIES "$<LINK_ONLY:lz4::lz4>;$<LINK_ONLY:zstd::zstd>;Threads::Threads")
endif()
# Programs take the archive, which is faster (docs/decisions); it is not position independent, so shared
# libraries take the shared one.
set(CELLAR_ROCKSDB
    "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,RocksDB::rocksdb-shared,RocksDB::rocksdb>")
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(PQ REQUIRED IMPORTED_TARGET libpq)
find_package(simdjson CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
# Its package file asks for an HTTP server and curl, which only its other parts use.
find_library(CELLAR_PROMETHEUS prometheus-cpp-core REQUIRED)
find_library(CELLAR_PG_QUERY libpg_query.a REQUIRED)
find_path(CELLAR_PG_QUERY_INCLUDE pg_query.h REQUIRED)
find_path(CELLAR_PG_SERVER_INCLUDE postgres.h PATHS /usr/include/postgresql/15/server REQUIRED)
if(CELLAR_TESTS)
  find_package(GTest REQUIRED)
endif()
if(CELLAR_BENCH)
  find_package(benchmark REQUIRED)
endif()
