# What Debian wants otherwise than `cmake --install` lays it out, done to the staged tree before it is packed: manual
# pages are compressed (policy 12.1), and zsh reads completions of packages from vendor-completions, not site-functions.

file(GLOB_RECURSE pages ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/ndtune.1)
file(GLOB_RECURSE completions ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/_ndtune)
if(NOT pages OR NOT completions)
    message(FATAL_ERROR "no manual page or no completion of zsh below ${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
endif()
foreach(page IN LISTS pages)
    execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(completion IN LISTS completions)
    get_filename_component(folder ${completion} DIRECTORY)
    get_filename_component(zsh ${folder} DIRECTORY)
    file(RENAME ${folder} ${zsh}/vendor-completions)
endforeach()
