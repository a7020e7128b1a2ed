# One CMake target per layer, made by one function.
#
#   cellar_layer(NAME codec DEPS base types SOURCES key.cc row.cc HEADERS key.h row.h
#                TESTS key_test.cc BENCHES key_bench.cc LIBS fmt::fmt)
#
# makes the library cellar_codec, the test program codec_test with one ctest entry per test case, and
# the benchmark codec_bench. DEPS feed the include check (tools/tidy) through layers.txt; HEADERS are
# each compiled alone by the target all_verify_interface_header_sets. The target all_layers_link links
# each layer whole against exactly its deps: a symbol of a layer above it, or of a library that is not
# in LIBS, is an error.
set(CELLAR_WARNINGS -Wall -Wextra -Wpedantic -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND CELLAR_WARNINGS -Wno-restrict)  # false alarms where a string takes a literal (GCC 105329)
endif()
file(WRITE ${CMAKE_BINARY_DIR}/layers.txt "")
add_custom_target(all_layers_link)

if(CELLAR_SANITIZE)
  string(REPLACE ";" "," _sanitizers "${CELLAR_SANITIZE}")
  add_compile_options(-fsanitize=${_sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${_sanitizers})
endif()

# What makes a memory fault an end of the process instead of a way in: addresses that differ at each
# start, a relocation table that is read-only after it, guarded stacks, checked copies into arrays of
# known size. Sanitizers check more than the last two and do not bear them.
include(CheckPIESupported)
check_pie_supported()
if(NOT CELLAR_SANITIZE AND NOT CELLAR_FUZZ)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" _config)
  if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${_config}}" MATCHES "-O[123s]")  # it warns without
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    set(CELLAR_FORTIFIED ON)
  endif()
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)

if(CELLAR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage of the layers, for the fuzzers to follow
endif()

function(cellar_compile_options target)
  target_compile_options(${target} PRIVATE ${CELLAR_WARNINGS} -fno-omit-frame-pointer)
  if(CELLAR_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(cellar_test name)
  cmake_parse_arguments(T "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  cellar_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${T_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES PROPERTIES TIMEOUT 300)
endfunction()

function(cellar_layer)
  cmake_parse_arguments(L "" "NAME" "DEPS;SOURCES;HEADERS;TESTS;BENCHES;LIBS" ${ARGN})
  set(target cellar_${L_NAME})
  add_library(${target} STATIC ${L_SOURCES})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  cellar_compile_options(${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${L_HEADERS})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_link_libraries(${target} PUBLIC fmt::fmt Threads::Threads)
  foreach(dep ${L_DEPS})
    target_link_libraries(${target} PUBLIC cellar_${dep})
  endforeach()
  target_link_libraries(${target} PRIVATE ${L_LIBS})
  file(APPEND ${CMAKE_BINARY_DIR}/layers.txt
       "${L_NAME}|${CMAKE_CURRENT_SOURCE_DIR}|${L_DEPS}\n")
  set_property(GLOBAL APPEND PROPERTY CELLAR_LAYERS ${target})
  if(CELLAR_TESTS AND NOT CELLAR_SANITIZE)
    add_library(${L_NAME}_links SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}>)
    set_target_properties(${L_NAME}_links PROPERTIES LINKER_LANGUAGE CXX
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/links)
    target_link_libraries(${L_NAME}_links PRIVATE fmt::fmt Threads::Threads ${L_LIBS})
    foreach(dep ${L_DEPS})
      target_link_libraries(${L_NAME}_links PRIVATE cellar_${dep})
    endforeach()
    target_link_options(${L_NAME}_links PRIVATE -Wl,--no-undefined)
    add_dependencies(all_layers_link ${L_NAME}_links)
  endif()
  if(CELLAR_TESTS AND L_TESTS)
    cellar_test(${L_NAME}_test SOURCES ${L_TESTS} LIBS ${target})
  endif()
  if(CELLAR_BENCH AND L_BENCHES)
    add_executable(${L_NAME}_bench ${L_BENCHES})
    target_link_libraries(${L_NAME}_bench PRIVATE ${target} benchmark::benchmark_main)
  endif()
endfunction()
