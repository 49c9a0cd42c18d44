# Branch profiles in a CMake build.
#
#     cmake -Dlbr2pgo_DIR="$(lbr2pgo share cmake)" …
#
#     find_package(lbr2pgo REQUIRED)
#     lbr2pgo_profile(TARGET app PROFILE app.prof)     # sample PGO, at compile time
#     lbr2pgo_propeller(TARGET app PROFILE app.propeller-cc)   # layout by clang and lld
#     lbr2pgo_startup(TARGET app PROFILE app.startup)  # functions by the start, by lld
#     lbr2pgo_bolt(TARGET app PROFILE app.fdata)       # llvm-bolt, after the link: app.bolt
#
# All take one of these, and are called after the target has all its sources and options:
#
#     PROFILE file                    what lbr2pgo convert wrote: --llvm (GCC: --afdo), --fdata,
#                                     --startup-order, or --propeller-cc, with --propeller-ld in
#                                     app.propeller-ld
#     RECORDING file… BINARY elf      recordings, and the binary that was recorded
#     TRAIN [argument…]               record a run of the target, in its source directory
#
# lbr2pgo_profile also takes PROBES: compile the target with pseudo probes (docs/probes.md); and
# CARRY: use a committed PROFILE's counts where the lines are now (docs/carrying.md), or, where less
# than LBR2PGO_MIN_CARRIED of them is left, RETRAIN [argument…], as TRAIN does.
#
# With -DLBR2PGO_TRAINING=ON, a build directory is for programs that are recorded, not shipped: no
# profile is used, and LBR2PGO_TRAINING_FLAGS go to clang behind all others, with frame pointers
# before them, for call chains. So is what TRAIN runs; with PROBES, it is recorded with call chains.
#
# A file that isn't there yet gives a plain build and a line of warning; CMake runs again by itself
# once it is. A stale profile is used, and how stale it is stands in the log; another program's
# ends the build. See docs/builds.md.

cmake_minimum_required(VERSION 3.20)
include(CheckCompilerFlag)

find_program(LBR2PGO_EXECUTABLE lbr2pgo DOC "The command lbr2pgo")
if(NOT LBR2PGO_EXECUTABLE)
    set(lbr2pgo_FOUND FALSE)
    set(lbr2pgo_NOT_FOUND_MESSAGE "lbr2pgo is not in PATH: set LBR2PGO_EXECUTABLE")
    return()
endif()

set(LBR2PGO_RECORD_OPTIONS "" CACHE STRING "Options of lbr2pgo record, for TRAIN")
set(LBR2PGO_BOLT_OPTIONS "" CACHE STRING "Options of llvm-bolt, in place of lbr2pgo's choice")
set(LBR2PGO_MAX_STALE 0.5 CACHE STRING "A profile with more that has no place is refused")
set(LBR2PGO_MAX_MISSING 0.5 CACHE STRING "A profile with more in unknown functions is refused")

set(LBR2PGO_MIN_CARRIED 0.8 CACHE STRING "With RETRAIN, share of the counts to go on with")
option(LBR2PGO_TRAINING "Build what is to be recorded, and not shipped" OFF)
set(LBR2PGO_TRAINING_FLAGS "-O1" CACHE STRING "Of clang in training builds, behind all others")

# Build a target with its sample profile.
function(lbr2pgo_profile)
    _lbr2pgo_parse(lbr2pgo_profile "PROBES;CARRY" ${ARGN})
    _lbr2pgo_dialect()
    _lbr2pgo_languages(languages ${known})
    if(NOT languages)
        _lbr2pgo_warn("no compiler here takes sample profiles: ${arg_TARGET} is built plainly")
        return()
    endif()
    # Debug information as it is, or line tables where there would be none.
    set(tables "$<$<NOT:$<CONFIG:Debug,RelWithDebInfo>>:-g1>")
    _lbr2pgo_compile_options(${known} ${tables})
    if(arg_PROBES)
        _lbr2pgo_compile_options(-fpseudo-probe-for-profiling)
    endif()
    _lbr2pgo_link_build_id(${arg_TARGET})

    if(LBR2PGO_TRAINING)
        _lbr2pgo_train_options(${arg_TARGET})
        return()
    endif()
    if(arg_CARRY)
        _lbr2pgo_carry("${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}.carried.${ending}")
    endif()
    if(arg_MODE STREQUAL "TRAIN")
        _lbr2pgo_clone(${arg_TARGET} ${arg_TARGET}-training)
        _lbr2pgo_train_options(${arg_TARGET}-training)
    endif()
    _lbr2pgo_find_profile(profile "${form}" ${arg_TARGET}-training ${arg_TARGET}.${ending})
    if(NOT profile)
        _lbr2pgo_warn("no ${arg_PROFILE}${arg_RECORDING} yet: ${arg_TARGET} is built plainly")
        return()
    endif()
    # The generated profile first, and what is compiled with it again when it changes.
    add_custom_target(${arg_TARGET}-profile DEPENDS "${profile}")
    add_dependencies(${arg_TARGET} ${arg_TARGET}-profile)
    _lbr2pgo_compile_options("${use}=${profile}")
    if(ending STREQUAL "prof")
        if(arg_PROBES) # samples tell of branches, not what the source expects
            _lbr2pgo_compile_options("SHELL:-Xclang -mllvm -Xclang -overwrite-existing-weights")
        endif()
        _lbr2pgo_compile_options("SHELL:-Xclang \"-fdepfile-entry=${profile}\"")
    else()
        get_target_property(sources ${arg_TARGET} SOURCES)
        set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${profile}")
    endif()
    _lbr2pgo_check_fit(${arg_TARGET} "${profile}")
endfunction()

# Have clang and lld lay a target out.
function(lbr2pgo_propeller)
    _lbr2pgo_parse(lbr2pgo_propeller "" ${ARGN})
    if(LBR2PGO_TRAINING)
        return()
    endif()
    _lbr2pgo_languages(languages -fbasic-block-address-map)
    if(NOT languages)
        _lbr2pgo_warn("no compiler here lays out blocks: ${arg_TARGET} is laid out as ever")
        return()
    endif()
    _lbr2pgo_compile_options(-fbasic-block-address-map -ffunction-sections)
    target_link_options(
        ${arg_TARGET}
        PRIVATE -fuse-ld=lld -Wl,--lto-basic-block-address-map
    )
    _lbr2pgo_link_build_id(${arg_TARGET})

    if(arg_MODE STREQUAL "TRAIN")
        _lbr2pgo_clone(${arg_TARGET} ${arg_TARGET}-mapped)
        if(TARGET ${arg_TARGET}-profile)
            add_dependencies(${arg_TARGET}-mapped ${arg_TARGET}-profile)
        endif()
    endif()
    set(name ${arg_TARGET}.propeller-cc)
    if(arg_PROFILE)
        get_filename_component(
            path
            "${arg_PROFILE}"
            ABSOLUTE
            BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}"
        )
    else()
        set(path "${CMAKE_CURRENT_BINARY_DIR}/${name}")
    endif()
    string(REGEX REPLACE "cc$" "ld" order "${path}")
    set(form --propeller-ld "${order}" --propeller-cc)
    _lbr2pgo_find_profile(clusters "${form}" ${arg_TARGET}-mapped ${name})
    if(arg_PROFILE)
        _lbr2pgo_existing(clusters ${clusters} "${order}")
    endif()
    if(NOT clusters)
        _lbr2pgo_warn("no ${arg_PROFILE}${arg_RECORDING} yet: ${arg_TARGET} is laid out as ever")
        return()
    endif()
    add_custom_target(${arg_TARGET}-layout DEPENDS "${path}")
    add_dependencies(${arg_TARGET} ${arg_TARGET}-layout)
    _lbr2pgo_compile_options(
        "-fbasic-block-sections=list=${path}"
        "SHELL:-Xclang \"-fdepfile-entry=${path}\""
    )
    target_link_options(
        ${arg_TARGET}
        PRIVATE
            "-Wl,--lto-basic-block-sections=${path}"
            -Wl,--no-warn-symbol-ordering
            "-Wl,--symbol-ordering-file=${order}"
    )
    set_property(TARGET ${arg_TARGET} APPEND PROPERTY LINK_DEPENDS "${path}")
    _lbr2pgo_check_fit(${arg_TARGET} "${path}")
endfunction()

# Have lld order the functions of a target as its start wants them.
function(lbr2pgo_startup)
    _lbr2pgo_parse(lbr2pgo_startup "" ${ARGN})
    if(LBR2PGO_TRAINING)
        return()
    endif()
    _lbr2pgo_languages(languages -ffunction-sections)
    _lbr2pgo_compile_options(-ffunction-sections)
    _lbr2pgo_link_build_id(${arg_TARGET})
    if(arg_MODE STREQUAL "TRAIN")
        _lbr2pgo_clone(${arg_TARGET} ${arg_TARGET}-unordered)
        if(TARGET ${arg_TARGET}-profile)
            add_dependencies(${arg_TARGET}-unordered ${arg_TARGET}-profile)
        endif()
    endif()
    _lbr2pgo_find_profile(
        order
        --startup-order
        ${arg_TARGET}-unordered
        ${arg_TARGET}.startup
    )
    if(NOT order)
        _lbr2pgo_warn("no ${arg_PROFILE}${arg_RECORDING} yet: ${arg_TARGET} is ordered as ever")
        return()
    endif()
    add_custom_target(${arg_TARGET}-order DEPENDS "${order}")
    add_dependencies(${arg_TARGET} ${arg_TARGET}-order)
    target_link_options(
        ${arg_TARGET}
        PRIVATE
            -fuse-ld=lld
            -Wl,--no-warn-symbol-ordering
            "-Wl,--symbol-ordering-file=${order}"
    )
    set_property(TARGET ${arg_TARGET} APPEND PROPERTY LINK_DEPENDS "${order}")
    _lbr2pgo_check_fit(${arg_TARGET} "${order}")
endfunction()

# Lay a linked target out anew, as TARGET.bolt in the directory's build folder.
function(lbr2pgo_bolt)
    _lbr2pgo_parse(lbr2pgo_bolt "" ${ARGN})
    target_link_options(${arg_TARGET} PRIVATE -Wl,--emit-relocs)
    _lbr2pgo_link_build_id(${arg_TARGET})

    if(LBR2PGO_TRAINING)
        return()
    endif()
    _lbr2pgo_find_profile(profile --fdata ${arg_TARGET} ${arg_TARGET}.fdata)
    set(output "${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}.bolt")
    set(options ${LBR2PGO_BOLT_OPTIONS})
    list(TRANSFORM options PREPEND --option=)
    if(profile)
        list(PREPEND options --fdata "${profile}")
    endif()
    add_custom_command(
        OUTPUT "${output}"
        COMMAND
            "${LBR2PGO_EXECUTABLE}" bolt "$<TARGET_FILE:${arg_TARGET}>" -o "${output}"
            --max-stale ${LBR2PGO_MAX_STALE} --max-missing ${LBR2PGO_MAX_MISSING} ${options}
        DEPENDS ${arg_TARGET} ${profile}
        COMMENT "Laying out ${arg_TARGET}.bolt"
        VERBATIM
    )
    add_custom_target(${arg_TARGET}-bolt ALL DEPENDS "${output}")
endfunction()

# Sets arg_TARGET, arg_MODE and the values of each mode; stops at what makes no sense.
macro(_lbr2pgo_parse caller options)
    set(lists RECORDING TRAIN RETRAIN)
    cmake_parse_arguments(arg "${options}" "TARGET;PROFILE;BINARY" "${lists}" ${ARGN})
    set(arg_MODE ${ARGN})
    list(FILTER arg_MODE INCLUDE REGEX "^(PROFILE|RECORDING|TRAIN)$")
    if(NOT TARGET "${arg_TARGET}")
        message(FATAL_ERROR "${caller}: TARGET must name a target, not \"${arg_TARGET}\"")
    endif()
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${caller}: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_MODE MATCHES "^[A-Z]+$")
        message(FATAL_ERROR "${caller}: give one of PROFILE, RECORDING and TRAIN")
    endif()
    if(arg_MODE STREQUAL "RECORDING" AND NOT arg_BINARY)
        message(FATAL_ERROR "${caller}: RECORDING needs BINARY, the program that was recorded")
    endif()
    if(arg_BINARY AND NOT arg_MODE STREQUAL "RECORDING")
        message(FATAL_ERROR "${caller}: BINARY goes with RECORDING")
    endif()
    if(arg_CARRY AND NOT arg_MODE STREQUAL "PROFILE")
        message(FATAL_ERROR "${caller}: CARRY goes with PROFILE")
    endif()
    if(NOT arg_MODE STREQUAL "TRAIN" AND NOT arg_${arg_MODE})
        message(FATAL_ERROR "${caller}: ${arg_MODE} needs a file")
    endif()
endmacro()

# What the compiler calls it: how it is `known`, to `use` a profile, the `form` and its `ending`.
macro(_lbr2pgo_dialect)
    set(known -fdebug-info-for-profiling) # the newer of the two flags
    set(use -fprofile-sample-use)
    set(form --llvm)
    set(ending prof)
    if("GNU" IN_LIST CMAKE_C_COMPILER_ID OR "GNU" IN_LIST CMAKE_CXX_COMPILER_ID)
        set(known -fno-auto-profile)
        set(use -fauto-profile)
        set(form --afdo)
        set(ending afdo)
        list(APPEND version ${CMAKE_C_COMPILER_VERSION} ${CMAKE_CXX_COMPILER_VERSION})
        list(GET version 0 version)
        if(version VERSION_GREATER_EQUAL 16)
            set(form --afdo-version 3 --afdo)
        elseif(version VERSION_LESS 12)
            set(form --afdo-version 1 --afdo)
        endif()
    endif()
endmacro()

# The enabled languages whose compiler takes a flag; says which one doesn't.
function(_lbr2pgo_languages result flag)
    get_property(enabled GLOBAL PROPERTY ENABLED_LANGUAGES)
    set(found "")
    foreach(language IN ITEMS C CXX)
        if(NOT language IN_LIST enabled)
            continue()
        endif()
        string(MAKE_C_IDENTIFIER "LBR2PGO_${language}_TAKES${flag}" takes)
        check_compiler_flag(${language} ${flag} ${takes})
        if(${takes})
            list(APPEND found ${language})
        else()
            set(compiler "${CMAKE_${language}_COMPILER_ID} ${CMAKE_${language}_COMPILER_VERSION}")
            _lbr2pgo_warn("the ${language} compiler (${compiler}) knows no ${flag}")
        endif()
    endforeach()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

# The path of the profile that arg_* speak of, and the rule that makes it; or nothing.
#
# `form` is what asks lbr2pgo convert for it, `trained` what TRAIN runs, `name` the profile's.
function(_lbr2pgo_find_profile result form trained name)
    set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}")
    set(recordings ${arg_RECORDING})
    set(binary "${arg_BINARY}")
    set(record "")
    if(arg_MODE STREQUAL "TRAIN")
        set(inputs ${trained})
        set(binary "$<TARGET_FILE:${trained}>")
        set(recordings "${output}.perf.data")
        set(record "${LBR2PGO_EXECUTABLE}" record ${LBR2PGO_RECORD_OPTIONS})
        if(arg_PROBES)
            list(APPEND record --call-graph)
        elseif("--startup-order" IN_LIST form)
            list(APPEND record --startup)
        endif()
        list(APPEND record -o "${recordings}" -- "${binary}" ${arg_TRAIN})
    else()
        _lbr2pgo_existing(inputs ${arg_PROFILE} ${recordings} ${binary})
        if(NOT inputs OR arg_MODE STREQUAL "PROFILE")
            set(${result} "${inputs}" PARENT_SCOPE)
            return()
        endif()
    endif()
    add_custom_command(
        OUTPUT "${output}"
        COMMAND ${record}
        COMMAND
            "${LBR2PGO_EXECUTABLE}" convert ${recordings} --binary "${binary}" ${form} "${output}"
        DEPENDS ${inputs}
        WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
        COMMENT "Making the profile ${name}"
        VERBATIM
    )
    set(${result} "${output}" PARENT_SCOPE)
endfunction()

# Moves the counts of a committed profile to where its lines are now, into `output`, whenever a
# source of the target changes; sets arg_PROFILE to it, or arg_MODE where too few are left.
macro(_lbr2pgo_carry output)
    _lbr2pgo_existing(committed "${arg_PROFILE}")
    get_target_property(sources ${arg_TARGET} SOURCES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} "${committed}")
    if(committed)
        set(least "")
        if(DEFINED arg_RETRAIN OR "RETRAIN" IN_LIST arg_KEYWORDS_MISSING_VALUES)
            set(least --min-carried ${LBR2PGO_MIN_CARRIED})
        endif()
        execute_process(
            COMMAND
                "${LBR2PGO_EXECUTABLE}" carry --committed "${committed}" -o "${output}" ${least}
            RESULT_VARIABLE result
            ERROR_VARIABLE said
            ERROR_STRIP_TRAILING_WHITESPACE
        )
        message(NOTICE "lbr2pgo: ${said}")
        if(result EQUAL 0)
            set(arg_PROFILE "${output}")
        elseif(result EQUAL 1)
            set(arg_MODE TRAIN)
            set(arg_TRAIN ${arg_RETRAIN})
        else()
            message(FATAL_ERROR "lbr2pgo carry failed")
        endif()
    endif()
endmacro()

# All of these files with their full paths; or nothing, if one is missing.
function(_lbr2pgo_existing result)
    set(found "")
    foreach(file IN LISTS ARGN)
        get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
        # Each build asks again whether the file is there. A name is no pattern: "[*]" is a star.
        string(REGEX REPLACE "([][*?])" "[\\1]" pattern "${path}")
        file(GLOB there CONFIGURE_DEPENDS "${pattern}")
        if(NOT there)
            set(${result} "" PARENT_SCOPE)
            return()
        endif()
        list(APPEND found "${path}")
    endforeach()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

# The program as it is without a profile, for the training run; built on demand only.
function(_lbr2pgo_clone target clone)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "EXECUTABLE")
        message(FATAL_ERROR "lbr2pgo_profile: only an executable can TRAIN, not ${target}")
    endif()
    add_executable(${clone} EXCLUDE_FROM_ALL)
    foreach(
        property IN ITEMS
            SOURCES
            COMPILE_DEFINITIONS
            COMPILE_FEATURES
            COMPILE_FLAGS
            COMPILE_OPTIONS
            INCLUDE_DIRECTORIES
            LINK_DIRECTORIES
            LINK_FLAGS
            LINK_LIBRARIES
            LINK_OPTIONS
            C_STANDARD
            C_EXTENSIONS
            CXX_STANDARD
            CXX_EXTENSIONS
            INTERPROCEDURAL_OPTIMIZATION
            POSITION_INDEPENDENT_CODE
    )
        get_target_property(value ${target} ${property})
        if(NOT value STREQUAL "value-NOTFOUND")
            set_property(TARGET ${clone} PROPERTY ${property} "${value}")
        endif()
    endforeach()
endfunction()

# What a build is given that is only recorded; reads languages and the profile's ending.
function(_lbr2pgo_train_options target)
    if(ending STREQUAL "prof")
        set(arg_TARGET ${target})
        _lbr2pgo_compile_options(
            -fno-omit-frame-pointer
            -mno-omit-leaf-frame-pointer
            -fno-optimize-sibling-calls
        )
        if(arg_PROBES) # calls that are alike stay apart, each with its own
            _lbr2pgo_compile_options(
                "SHELL:-mllvm -enable-tail-merge=0"
                "SHELL:-mllvm -simplifycfg-sink-common=0"
            )
        endif()
        _lbr2pgo_compile_options(${LBR2PGO_TRAINING_FLAGS})
    endif()
endfunction()

# Options of the languages that take profiles; reads arg_TARGET and languages.
function(_lbr2pgo_compile_options)
    foreach(language IN LISTS languages)
        foreach(option IN LISTS ARGN)
            target_compile_options(
                ${arg_TARGET}
                PRIVATE "$<$<COMPILE_LANGUAGE:${language}>:${option}>"
            )
        endforeach()
    endforeach()
endfunction()

# After each link, say how stale the profile is, and refuse another program's.
function(_lbr2pgo_check_fit target profile)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
        return()
    endif()
    add_custom_command(
        TARGET ${target}
        POST_BUILD
        COMMAND
            "${LBR2PGO_EXECUTABLE}" check "${profile}" --binary "$<TARGET_FILE:${target}>"
            --format line --max-stale ${LBR2PGO_MAX_STALE}
            --max-missing ${LBR2PGO_MAX_MISSING}
        VERBATIM
    )
endfunction()

# Recordings know a binary by its build-id, wherever it lies.
function(_lbr2pgo_link_build_id target)
    target_link_options(${target} PRIVATE -Wl,--build-id)
endfunction()

# One line, where message(WARNING) would print five.
function(_lbr2pgo_warn text)
    message(NOTICE "lbr2pgo: warning: ${text}")
endfunction()
