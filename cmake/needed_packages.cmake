# Names the Debian packages of what is missing, before a compiler says that a file is not there:
# pip install shows this message and nothing else of use.
include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
  message(FATAL_ERROR "Embank needs a C++ compiler: apt-get install g++")
endif()
enable_language(C)
enable_language(CXX)

find_path(EMBANK_XXHASH xxhash.h)
find_path(EMBANK_URING_HEADER liburing.h)
find_library(EMBANK_URING liburing.a)
if(NOT EMBANK_XXHASH OR NOT EMBANK_URING_HEADER OR NOT EMBANK_URING)
  message(FATAL_ERROR "Embank needs xxhash.h (found: ${EMBANK_XXHASH}), liburing.h (found: "
    "${EMBANK_URING_HEADER}) and liburing.a (found: ${EMBANK_URING}): "
    "apt-get install libxxhash-dev liburing-dev")
endif()
