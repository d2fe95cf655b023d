# embank_cuda_kernels(TARGET NAME...): compiles NAME.cu with nvcc into the objects of TARGET, and
# links it with CUDA's run time, statically. CMake's own language CUDA is not used: it tests the
# compiler by linking, which the compiler as pip installs it (tools/fetch_cuda.sh) cannot do.
# A kernel that spills registers, or has arrays outside of registers, is an error of ptxas.
# --fmad=false: the bits are those of the host (docs/arithmetic.md).
find_program(EMBANK_NVCC nvcc HINTS ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/nvidia/cu13/bin
  DOC "The compiler of CUDA 13")
if(NOT EMBANK_NVCC)
  message(FATAL_ERROR "EMBANK_CUDA needs nvcc on the path; tools/fetch_cuda.sh installs it into "
    "the build folder")
endif()
file(REAL_PATH ${EMBANK_NVCC} nvcc)
cmake_path(GET nvcc PARENT_PATH bin)
cmake_path(GET bin PARENT_PATH root)
set(EMBANK_CUDA_ROOT ${root} CACHE INTERNAL "of the compiler of CUDA")
find_library(EMBANK_CUDART cudart_static REQUIRED
  HINTS ${EMBANK_CUDA_ROOT}/lib64 ${EMBANK_CUDA_ROOT}/lib
  ${EMBANK_CUDA_ROOT}/targets/x86_64-linux/lib)
mark_as_advanced(EMBANK_NVCC EMBANK_CUDART)

function(embank_cuda_kernels target)
  set(host_flags -fPIC,-fvisibility=hidden,-ffp-contract=off,-fno-omit-frame-pointer,-Wall,-Wextra)
  if(EMBANK_WERROR)
    string(APPEND host_flags ,-Werror)
  endif()
  set(flags
    -std=c++20 -O3 --fmad=false --prec-div=true --prec-sqrt=true --ftz=false
    --expt-relaxed-constexpr
    -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
    -Xptxas=-v,--warn-on-spills,--warn-on-local-memory-usage,--warning-as-error
    -ccbin ${CMAKE_CXX_COMPILER} -Xcompiler=${host_flags} -I${PROJECT_SOURCE_DIR})
  foreach(name IN LISTS ARGN)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${EMBANK_NVCC} ${flags} -MD -MF ${object}.d -c ${source} -o ${object} 2> ${object}.log
        || ${CMAKE_COMMAND} -DLOG=${object}.log -P ${PROJECT_SOURCE_DIR}/cmake/show_log.cmake
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "Compiling ${name}.cu" VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${EMBANK_CUDA_ROOT}/include)
  target_link_libraries(${target} PUBLIC ${EMBANK_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
endfunction()
