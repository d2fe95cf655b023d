# What `cmake --install` puts where: the libraries, their headers, the CMake package
# (embank::embank, embank::embank_static), the pkg-config file, the commands and their manual pages,
# the licence, the changes and the documents. The installed tree can be moved: nothing in it names
# its place.
set(EMBANK_INSTALLED "")
if(EMBANK_BUILD_SHARED)
  list(APPEND EMBANK_INSTALLED embank)
endif()
if(EMBANK_BUILD_STATIC)
  list(APPEND EMBANK_INSTALLED embank_static)
endif()
if(NOT EMBANK_INSTALLED)
  return()
endif()
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS ${EMBANK_INSTALLED} EXPORT embankTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES bindings/c/embank.h bindings/c/embank.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(EMBANK_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/embank)
install(EXPORT embankTargets NAMESPACE embank:: DESTINATION ${EMBANK_PACKAGE_DIR})
configure_package_config_file(cmake/embankConfig.cmake.in
  ${PROJECT_BINARY_DIR}/install/embankConfig.cmake INSTALL_DESTINATION ${EMBANK_PACKAGE_DIR})
# Before 1.0 a minor version may change what programs see; from 1.0 on only a major one.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/embankConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/install/embankConfig.cmake
  ${PROJECT_BINARY_DIR}/install/embankConfigVersion.cmake
  DESTINATION ${EMBANK_PACKAGE_DIR})

file(RELATIVE_PATH EMBANK_PREFIX_FROM_PC
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# The static library needs these. Without a shared one every program does.
set(EMBANK_PC_LIBS "-lstdc++ -lm -lpthread")
set(EMBANK_PC_PRIVATE_LIBS "")
if(EMBANK_BUILD_SHARED)
  set(EMBANK_PC_LIBS "")
  set(EMBANK_PC_PRIVATE_LIBS "-lstdc++ -lm -lpthread")
endif()
configure_file(cmake/embank.pc.in ${PROJECT_BINARY_DIR}/install/embank.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/embank.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# README.md is about the source tree, into which its links lead.
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(EMBANK_BUILD_TOOLS)
  install(TARGETS embank-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/embank.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(EMBANK_BUILD_BENCH AND NOT EMBANK_SANITIZE)
  install(TARGETS embank-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/embank-bench.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(TARGET embank-train)
  install(TARGETS embank-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/embank-train.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(TARGET embank_mpi)
  install(TARGETS embank_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")
