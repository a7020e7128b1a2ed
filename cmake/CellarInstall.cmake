# The public library, and what `cmake --install` puts where:
#
#   bin/cellar                    the program
#   lib/libcellar.so              every layer but server and programs; symbols outside namespace cellar are hidden
#   include/cellar/db.h, table.h  and the headers that they include, found by following their #include lines
#   lib/cmake/cellar/, lib/pkgconfig/cellar.pc
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Appends to `out` the headers of this tree that `header` includes, itself first. Paths from the root.
function(cellar_public_headers header out)
  set(found ${${out}})
  if(NOT header IN_LIST found)
    list(APPEND found ${header})
    file(STRINGS ${CMAKE_SOURCE_DIR}/${header} lines REGEX "^#include \"cellar/.*\\.h\"")
    foreach(line ${lines})
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" next "${line}")
      cellar_public_headers(${next} found)
    endforeach()
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

if(EXISTS ${CMAKE_SOURCE_DIR}/cellar/db.h)
  get_property(layers GLOBAL PROPERTY CELLAR_LAYERS)
  list(REMOVE_ITEM layers cellar_cli cellar_server cellar_pgwire cellar_monitor cellar_rpc_wire
       cellar_rpc_server cellar_rpc_client cellar_rpc_admin)
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(libcellar SHARED ${objects})
  target_link_libraries(libcellar PRIVATE ${layers} PUBLIC fmt::fmt Threads::Threads)
  target_link_options(libcellar PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL
                      -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/libcellar.map)
  set(public_headers "")
  cellar_public_headers(cellar/db.h public_headers)
  cellar_public_headers(cellar/tableapi/mapped.h public_headers)
  list(TRANSFORM public_headers PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE header_files)
  target_sources(libcellar PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${header_files})
  set_target_properties(libcellar PROPERTIES
    OUTPUT_NAME cellar EXPORT_NAME cellar LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_compile_features(libcellar INTERFACE cxx_std_20)
  add_library(cellar::cellar ALIAS libcellar)

  # The client of a server's gRPC door: what libcellar.so has, and the calls.
  add_library(libcellar_client SHARED $<TARGET_OBJECTS:cellar_rpc_wire> $<TARGET_OBJECTS:cellar_rpc_client>)
  target_link_libraries(libcellar_client PUBLIC libcellar PRIVATE gRPC::grpc++ protobuf::libprotobuf)
  target_link_options(libcellar_client PRIVATE -Wl,--no-undefined
                      -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/libcellar.map)
  target_sources(libcellar_client PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}
                 FILES ${CMAKE_SOURCE_DIR}/cellar/client.h)
  set_target_properties(libcellar_client PROPERTIES
    OUTPUT_NAME cellar_client EXPORT_NAME client LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  add_library(cellar::client ALIAS libcellar_client)

  install(TARGETS libcellar libcellar_client EXPORT cellar-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT cellar-targets NAMESPACE cellar::
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cellar)
  configure_package_config_file(
    ${CMAKE_SOURCE_DIR}/cmake/CellarConfig.cmake.in ${CMAKE_BINARY_DIR}/cellar-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cellar)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/cellar-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/cellar-config.cmake ${CMAKE_BINARY_DIR}/cellar-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cellar)
  # Relative, so that the prefix may be chosen, and moved, after configuring.
  file(RELATIVE_PATH CELLAR_PC_TO_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/cellar.pc.in ${CMAKE_BINARY_DIR}/cellar.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/cellar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(TARGET cellar)
  install(TARGETS cellar RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
