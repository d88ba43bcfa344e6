# motley_of_this_system(LIST): without files of others: NAME_windows.cpp is for Windows alone, NAME_posix.cpp for all but it. Windows'
# headers define words such as near and far, so its files are compiled by themselves.
function(motley_of_this_system list_name)
  if(WIN32)
    list(FILTER ${list_name} EXCLUDE REGEX "_posix\\.cpp$")
    set(own "${${list_name}}")
    list(FILTER own INCLUDE REGEX "_windows\\.cpp$")
    set_source_files_properties(${own} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  else()
    list(FILTER ${list_name} EXCLUDE REGEX "_windows\\.cpp$")
  endif()
  set(${list_name} "${${list_name}}" PARENT_SCOPE)
endfunction()

# motley_library(NAME DEPENDS a b PRIVATE_DEPENDS c): one static library for the folder it is called in, from all its .cpp files.
# Headers are included as "NAME/header.h", and only NAME and what it DEPENDS on is on the include path: each library sees its
# folder through a link of its own in the build tree, so an include against the arrows of ARCHITECTURE.md does not build.
function(motley_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  motley_of_this_system(sources)
  set(include_root "${PROJECT_BINARY_DIR}/include/${name}")
  file(MAKE_DIRECTORY "${include_root}")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${include_root}/${name}" SYMBOLIC)
  list(TRANSFORM arg_DEPENDS PREPEND motley::)
  if(sources)
    add_library(motley_${name} STATIC ${sources})
    # Python loads a module made of the same objects.
    set_target_properties(motley_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(motley_${name} PUBLIC "${include_root}")
    target_link_libraries(motley_${name} PUBLIC ${arg_DEPENDS} PRIVATE motley_options ${arg_PRIVATE_DEPENDS})
  else()
    add_library(motley_${name} INTERFACE)
    target_include_directories(motley_${name} INTERFACE "${include_root}")
    target_link_libraries(motley_${name} INTERFACE ${arg_DEPENDS})
  endif()
  add_library(motley::${name} ALIAS motley_${name})
endfunction()

# motley_vector_loops(NAME PREFIX): loops of a library that compilers turn into vector instructions, and PREFIX_avx2.cpp and
# PREFIX_avx512.cpp for those sets. sqrt's errno and trapping maths block that; contraction to FMA would make processors disagree in
# the last bit.
function(motley_vector_loops name prefix)
  target_compile_options(motley_${name} PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${prefix}_avx2.cpp PROPERTIES COMPILE_OPTIONS "-mavx2")
    set_source_files_properties(${prefix}_avx512.cpp PROPERTIES COMPILE_OPTIONS
                                "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
  endif()
endfunction()

# motley_precompile(TARGET PRIVATE <header>... | REUSE_FROM other): target_precompile_headers(), so that ccache can tell one header
# from another.
function(motley_precompile target)
  target_precompile_headers(${target} ${ARGN})
  target_compile_options(${target} PRIVATE "$<IF:$<CXX_COMPILER_ID:GNU>,-fpch-preprocess,SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# motley_test(NAME DIRECTORY dir LIBRARIES a b EXTRA targets [THREADS]): a GoogleTest program from all .cpp files of `dir`, known to
# ctest test by test. THREADS: more than one runs in it. Its files are compiled several at once, so what they name for themselves is
# named once in `dir`. Nothing where there are no files, or where an EXTRA target is not there.
function(motley_test name)
  cmake_parse_arguments(arg "THREADS" "DIRECTORY" "LIBRARIES;EXTRA" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${arg_DIRECTORY}/*.cpp")
  motley_of_this_system(sources)
  if(NOT sources)
    return()
  endif()
  foreach(target ${arg_EXTRA})
    if(NOT TARGET ${target})
      return()
    endif()
  endforeach()
  add_executable(${name} ${sources})
  list(TRANSFORM arg_LIBRARIES PREPEND motley::)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} ${arg_EXTRA} motley_options GTest::gtest_main GTest::gmock)
  motley_precompile(${name} REUSE_FROM test_headers)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  target_compile_definitions(${name} PRIVATE MOTLEY_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/${arg_DIRECTORY}/data")
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES PROPERTIES TIMEOUT 600
                       LABELS "$<$<BOOL:${arg_THREADS}>:threads>")
  add_dependencies(tests ${name})
  if(arg_THREADS)
    add_dependencies(tests_with_threads ${name})
  endif()
endfunction()
