# embank_check_target_names(DIRECTORY): every target in it and below begins with "embank", so that
# none meets a target of a project that includes this one.
function(embank_check_target_names directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    if(NOT target MATCHES "^embank")
      message(FATAL_ERROR "${directory}: the target '${target}' does not begin with 'embank'")
    endif()
  endforeach()
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    embank_check_target_names(${folder})
  endforeach()
endfunction()
