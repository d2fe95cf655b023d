# Abseil for the benchmark: a peer, and the layout of its reports. Linked statically: Debian's CMake
# package of it names the shared libraries, whose calls cost the peer more. The archives
# depend on one another in circles.
find_package(absl REQUIRED)
get_filename_component(EMBANK_ABSL_CMAKE_DIR ${absl_DIR} DIRECTORY)
get_filename_component(EMBANK_ABSL_LIB_DIR ${EMBANK_ABSL_CMAKE_DIR} DIRECTORY)
file(GLOB EMBANK_ABSL_ARCHIVES ${EMBANK_ABSL_LIB_DIR}/libabsl_*.a)
list(FILTER EMBANK_ABSL_ARCHIVES EXCLUDE REGEX "flags|scoped_mock|leak_check")
if(NOT EMBANK_ABSL_ARCHIVES)
  message(FATAL_ERROR "no libabsl_*.a in ${EMBANK_ABSL_LIB_DIR}: install libabsl-dev")
endif()
add_library(embank_abseil INTERFACE)
target_link_libraries(embank_abseil INTERFACE
  -Wl,--start-group ${EMBANK_ABSL_ARCHIVES} -Wl,--end-group Threads::Threads)
