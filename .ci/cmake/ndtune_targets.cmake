# ndtune_library, ndtune_program, ndtune_test, ndtune_bench: every target of the tree is declared with one of them.

add_library(ndtune_language INTERFACE)
target_include_directories(ndtune_language INTERFACE ${PROJECT_SOURCE_DIR})  # "sim/axes/mesh.h", from the root
target_compile_definitions(ndtune_language INTERFACE _POSIX_C_SOURCE=200809L)
# nvcc passes what it does not know to nobody: C and C++ only (C++ is for what runs kernels/cuda on the CPU in tests).
target_compile_options(ndtune_language INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wshadow>
                       $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>)
target_link_libraries(ndtune_language INTERFACE m)
if(NDTUNE_WERROR)
    target_compile_options(ndtune_language INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(NDTUNE_SANITIZE)  # everything but targets with the property NDTUNE_UNCHECKED
    set(checked "$<NOT:$<BOOL:$<TARGET_PROPERTY:NDTUNE_UNCHECKED>>>")
    target_compile_options(ndtune_language INTERFACE
                           "$<$<AND:${checked},$<COMPILE_LANGUAGE:C,CXX>>:-fsanitize=${NDTUNE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
    target_link_options(ndtune_language INTERFACE -fsanitize=${NDTUNE_SANITIZE})
endif()

# Flags of a product target. sim and autotune must give the same digits everywhere: no fused multiply-add.
function(ndtune_product_flags name)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wconversion>)
    file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    if(here MATCHES "^(sim|autotune)")
        target_compile_options(${name} PRIVATE -ffp-contract=off)
    endif()
endfunction()

function(ndtune_link name libs foreign)
    target_link_libraries(${name} PUBLIC ndtune_language ${libs})
    foreach(lib IN LISTS foreign)
        target_link_libraries(${name} PRIVATE foreign::${lib})
    endforeach()
endfunction()

# ndtune_library(sim_axes SOURCES mesh.c ... LIBS sim_base ... [FOREIGN jansson ...])
# LIBS are the layers below, FOREIGN the libraries of ndtune_found.cmake; only this target sees the foreign headers.
function(ndtune_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;FOREIGN")
    add_library(${name} STATIC ${arg_SOURCES})
    ndtune_link(${name} "${arg_LIBS}" "${arg_FOREIGN}")
    ndtune_product_flags(${name})
endfunction()

# ndtune_embed(variable schema_sql autotune/store/schema_sql.h schema.sql)
# Appends to the variable a header below include/ that has the text of a file as a string of that name. The target that
# includes it has it among its sources.
function(ndtune_embed variable name header file)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/include/${header})
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DINPUT=${file} -DOUTPUT=${output}
                -P ${PROJECT_SOURCE_DIR}/.ci/cmake/embed.cmake
        DEPENDS ${file} ${PROJECT_SOURCE_DIR}/.ci/cmake/embed.cmake
        VERBATIM)
    set(${variable} ${${variable}} ${output} PARENT_SCOPE)
endfunction()

# ndtune_source_version(sim_header ENGINE_VERSION "engine_version.h" PATHS sim autotune/*.c ...)
# Sets the variable to a header, made anew whenever one of the sources changes, that defines the name as the version of
# that code (source_version.cmake). The header is a source of the target that includes it, below include/.
function(ndtune_source_version variable name header)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "PATHS")
    set(root ${PROJECT_SOURCE_DIR})
    set(sources "")
    foreach(path IN LISTS arg_PATHS)
        if(IS_DIRECTORY ${root}/${path})
            file(GLOB_RECURSE found RELATIVE ${root} CONFIGURE_DEPENDS ${root}/${path}/*.c ${root}/${path}/*.h
                 ${root}/${path}/*.cu ${root}/${path}/*.cuh)
        else()
            file(GLOB found RELATIVE ${root} CONFIGURE_DEPENDS ${root}/${path})
        endif()
        list(APPEND sources ${found})
    endforeach()
    list(SORT sources)
    list(JOIN sources "\n" lines)
    list(TRANSFORM sources PREPEND ${root}/)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/include/${header})
    set(script ${root}/.ci/cmake/source_version.cmake)
    file(CONFIGURE OUTPUT ${output}.sources CONTENT "${lines}\n" @ONLY)  # written when it changes
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DSOURCES=${output}.sources -DNAME=${name} -DVERSION=${PROJECT_VERSION}
                -DOUTPUT=${output} -P ${script}
        DEPENDS ${sources} ${output}.sources ${script}
        VERBATIM)
    set(${variable} ${output} PARENT_SCOPE)
endfunction()

# ndtune_program(ndtune SOURCES main.c ... LIBS ... [FOREIGN ...]): an installed executable.
function(ndtune_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;FOREIGN")
    add_executable(${name} ${arg_SOURCES})
    ndtune_link(${name} "${arg_LIBS}" "${arg_FOREIGN}")
    ndtune_product_flags(${name})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# What takes long starts first: a program's seconds are the order.
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/seconds.txt ndtune_test_seconds)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/seconds.txt)

# ndtune_test(test_mesh SOURCES test_mesh.c LIBS sim_axes [RUNS ndtune] [FOREIGN ...] [LABELS long] [TIMEOUT s] [WAITS] [MPI] [NEW_SEEDS])
# One Criterion executable, one ctest entry. RUNS names programs that the test starts (they are built first and lie in
# NDTUNE_BIN_DIR); TIMEOUT (60) is what it may take where nothing else runs (the only limit: one of Criterion's own would
# not know of the sanitizers); WAITS: it mostly sleeps and takes one of ctest's places, others two; MPI: Open MPI keeps
# memory to its end, so leaks are not looked for; NEW_SEEDS: a second, long entry draws cases that nobody has drawn
# before (tests/support/seed.h). Nothing happens when Criterion is missing.
function(ndtune_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "WAITS;MPI;NEW_SEEDS" "TIMEOUT" "SOURCES;LIBS;FOREIGN;LABELS;RUNS")
    if(NOT NDTUNE_HAVE_CRITERION)
        return()
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 60)
    endif()
    set(patience 4)  # a limit is for what hangs: on a machine that is slow or busy nothing else may meet it
    if(NDTUNE_SANITIZE)
        set(patience 8)  # the sanitizers cost a factor of 6 in the slowest tests
    endif()
    math(EXPR limit "${patience} * ${arg_TIMEOUT}")
    set(places 2)
    if(arg_WAITS)
        set(places 1)
    endif()
    add_executable(${name} ${arg_SOURCES})
    ndtune_link(${name} "${arg_LIBS}" "${arg_FOREIGN}")
    target_link_libraries(${name} PRIVATE foreign::criterion)
    target_compile_definitions(${name} PRIVATE NDTUNE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               NDTUNE_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
    if(NDTUNE_CRITERION_GIT)  # in an rpath of old, which counts for the libraries of libraries
        add_dependencies(${name} test_without_git)
        target_link_options(${name} PRIVATE LINKER:--disable-new-dtags,-rpath,${PROJECT_BINARY_DIR}/tests/lib)
    endif()
    if(arg_RUNS)
        add_dependencies(${name} ${arg_RUNS})
    endif()
    # What a program has had from the system it keeps, as main() of ndtune has it: arenas come and go.
    set(environment "XDG_DATA_HOME=${PROJECT_BINARY_DIR}/tests/data" "MALLOC_MMAP_THRESHOLD_=268435456"
        "MALLOC_TRIM_THRESHOLD_=1073741824")
    if(arg_MPI AND NDTUNE_SANITIZE)
        list(APPEND environment "ASAN_OPTIONS=detect_leaks=0")
    endif()
    set(seconds 1)
    if(ndtune_test_seconds MATCHES ";${name} ([0-9]+)")
        set(seconds ${CMAKE_MATCH_1})
    endif()
    set(entries ${name})
    if(arg_NEW_SEEDS)
        list(APPEND entries ${name}_new_seeds)
    endif()
    foreach(entry ${entries})
        # A warning (cr_log_warn) is a word to people; only an assertion decides.
        add_test(NAME ${entry} COMMAND ${name} --verbose=1 --short-filename --ignore-warnings --jobs 1)
        set_tests_properties(${entry} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${limit} SKIP_RETURN_CODE 77
            ENVIRONMENT "${environment}"
            PROCESSORS ${places} COST ${seconds})
    endforeach()
    if(arg_NEW_SEEDS)
        set_tests_properties(${name}_new_seeds PROPERTIES LABELS long ENVIRONMENT "${environment};NDTUNE_SEED=new")
    endif()
endfunction()

# ndtune_bench(bench_engine SOURCES ... LIBS ... [FOREIGN ...]): a program that measures and prints; no part of "all"
# nor of ctest. The target "bench" builds them all into bench/, the target "bench-run" runs them one after the other.
add_custom_target(bench)
add_custom_target(bench-run)
function(ndtune_bench name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;FOREIGN")
    add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
    ndtune_link(${name} "${arg_LIBS}" "${arg_FOREIGN}")
    ndtune_product_flags(${name})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    add_dependencies(bench ${name})
    add_custom_target(run-${name} COMMAND ${CMAKE_COMMAND} -E env --unset=OPENBLAS_CORETYPE $<TARGET_FILE:${name}>
                      DEPENDS ${name} USES_TERMINAL COMMENT "${name}" VERBATIM)
    add_dependencies(bench-run run-${name})
endfunction()
