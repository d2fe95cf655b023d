# embank_room(TARGET): compiler settings of every target that is ours. They are properties of the
# target: a project that includes this one keeps its own.
# It also keeps the list of the rooms of the library, EMBANK_ROOMS.
# -ffp-contract=off and no -march: results are the same bits on every machine (docs/arithmetic.md).
function(embank_room target)
  # All sources of a room of the library are compiled as one; those of another target eight at a
  # time, so that several cores are used.
  set(batch 8)
  if(target MATCHES "^embank_(base|tiers|gpu|store)")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      set_property(GLOBAL APPEND PROPERTY EMBANK_ROOMS ${target})
      set(batch 0)
    endif()
  endif()
  if(EMBANK_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -ffp-contract=off -fno-omit-frame-pointer)
  if(EMBANK_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety -Wthread-safety-beta)
  else()
    # A name that is unique in a process cannot be made local to the static library.
    target_compile_options(${target} PRIVATE -fno-gnu-unique)
    # Zeros over a small struct are written by moves: the string instructions that g++ takes for
    # more than 128 bytes begin 10 ns late.
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
      target_compile_options(${target} PRIVATE
        -mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign)
    endif()
    # g++ 12 takes "text" + std::to_string(n) for a copy onto itself when it inlines at -O3: its
    # fault 105651, mended in g++ 13.
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  if(EMBANK_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${EMBANK_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${EMBANK_SANITIZE})
    # The check of an object's class reads memory through a pipe, and takes every object for a wrong
    # one where the process has no descriptor left, which tests bring about.
    if(EMBANK_SANITIZE MATCHES "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr)
    endif()
    # What g++ defines by itself, and clang only from version 21 on: tests are shorter by it.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND EMBANK_SANITIZE MATCHES "address")
      target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__=1)
    endif()
  endif()
endfunction()
