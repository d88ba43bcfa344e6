# Options, standard, warnings, sanitizers.
option(MOTLEY_BUILD_TESTS "Build the tests and the simulator" OFF)
option(MOTLEY_WITHOUT_PROPERTY_TESTS "Build the tests without those that need RapidCheck" OFF)
option(MOTLEY_BUILD_BENCHMARKS "Build the benchmarks and the simulator" OFF)
option(MOTLEY_BUILD_FUZZERS "Build the libFuzzer targets (clang)" OFF)
option(MOTLEY_BUILD_PYTHON "Build the Python extension, which is the program" OFF)
set(MOTLEY_STAGE "" CACHE PATH "Headers and static libraries instead of the system's, as tools/wheels lays them out")
set(MOTLEY_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(MOTLEY_CCACHE ccache)
if(MOTLEY_CCACHE)
  # Paths relative to the source, so that the package for Python and another clone find what was compiled here.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros,locale "${MOTLEY_CCACHE}")
endif()

find_package(Threads REQUIRED)

add_library(motley_options INTERFACE)
# Assertions name files from the root of the tree: shorter, and what was compiled here is found by another clone.
target_compile_options(motley_options INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
# GCC 12 sees overlaps in std::string concatenation that are not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(motley_options INTERFACE -Wno-restrict)
endif()
target_link_libraries(motley_options INTERFACE Threads::Threads)
if(MOTLEY_SANITIZE)
  target_compile_options(motley_options INTERFACE -fsanitize=${MOTLEY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(motley_options INTERFACE -fsanitize=${MOTLEY_SANITIZE})
  # Instrumented code defeats GCC's flow analysis (it warns inside its own <regex>); every other build keeps the warning.
  target_compile_options(motley_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
