# embank_static_library(): the target embank_static, an archive of one object that has everything
# in it but the C and C++ libraries. All its symbols but those of embank.map are local: they meet
# nobody's, neither another liburing's nor those of a program that has an Embank of its own.
function(embank_static_library)
  set(names ${CMAKE_CURRENT_BINARY_DIR}/embank_symbols.txt)
  set(whole ${CMAKE_CURRENT_BINARY_DIR}/embank_whole.o)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/embank_object.o)
  file(STRINGS embank.map lines REGEX "^ *embank_[a-z_]+;$")
  list(TRANSFORM lines REPLACE "[ ;]" "")
  list(JOIN lines "\n" text)
  file(CONFIGURE OUTPUT ${names} CONTENT "${text}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS embank.map)

  get_property(rooms GLOBAL PROPERTY EMBANK_ROOMS)
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  # CMAKE_LINKER may be ld.lld, which does not know --force-group-allocation.
  find_program(EMBANK_LD NAMES ld.bfd ld REQUIRED)
  find_program(EMBANK_OBJCOPY NAMES objcopy REQUIRED)
  mark_as_advanced(EMBANK_LD EMBANK_OBJCOPY)

  # Groups of sections are dissolved: a program's own copy must not take the place of one whose
  # symbols are local.
  add_custom_command(OUTPUT ${object}
    COMMAND ${EMBANK_LD} -r --force-group-allocation -o ${whole}
      $<TARGET_OBJECTS:embank_c_api> --start-group ${archives} ${EMBANK_URING} --end-group
    COMMAND ${EMBANK_OBJCOPY} --keep-global-symbols=${names} ${whole} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm ${whole}
    DEPENDS embank_c_api $<TARGET_OBJECTS:embank_c_api> ${rooms} ${names}
    COMMENT "Joining the objects of libembank.a" COMMAND_EXPAND_LISTS VERBATIM)
  add_library(embank_static STATIC ${object})
  set_target_properties(embank_static PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME embank)
  target_include_directories(embank_static
    INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>)
  # The libraries of C++ by name: a program in C is linked by the C compiler.
  target_link_libraries(embank_static INTERFACE Threads::Threads stdc++ m)
endfunction()
