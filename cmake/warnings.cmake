# embank_room(TARGET): compiler settings of every target that is ours.
# -ffp-contract=off and no -march: results are the same bits on every machine (docs/arithmetic.md).
function(embank_room target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -ffp-contract=off -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety -Wthread-safety-beta)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  if(EMBANK_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${EMBANK_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${EMBANK_SANITIZE})
    # What g++ defines by itself, and clang only from version 21 on: tests are shorter by it.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND EMBANK_SANITIZE MATCHES "address")
      target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__=1)
    endif()
  endif()
endfunction()
