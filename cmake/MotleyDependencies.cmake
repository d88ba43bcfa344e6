# Third-party libraries: the system's, or those that tools/wheels has laid out for another one.
if(MOTLEY_STAGE)
  include(MotleyStage)
else()
  find_package(OpenSSL 3.0 REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(tomlplusplus REQUIRED)
  find_package(nlohmann_json REQUIRED)
endif()

find_path(MOTLEY_ASIO_INCLUDE asio.hpp REQUIRED)
add_library(motley_asio INTERFACE)
add_library(motley::asio ALIAS motley_asio)
target_include_directories(motley_asio SYSTEM INTERFACE "${MOTLEY_ASIO_INCLUDE}")
# How Asio allocates would otherwise follow from whether a file has a header of the standard library before Asio's.
target_compile_definitions(motley_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1 ASIO_DISABLE_STD_ALIGNED_ALLOC
                           $<$<BOOL:${MOTLEY_STAGE}>:ASIO_DISABLE_VISIBILITY>)  # what is weak is shared with whoever else has Asio

find_path(MOTLEY_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
add_library(motley_protozero INTERFACE)
add_library(motley::protozero ALIAS motley_protozero)
target_include_directories(motley_protozero SYSTEM INTERFACE "${MOTLEY_PROTOZERO_INCLUDE}")

if(MOTLEY_BUILD_TESTS)
  if(MOTLEY_STAGE)
    add_subdirectory("${MOTLEY_STAGE}/googletest" "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL SYSTEM)
  else()
    find_package(GTest REQUIRED)
  endif()
  include(GoogleTest)
  if(NOT MOTLEY_WITHOUT_PROPERTY_TESTS)
    find_path(MOTLEY_RAPIDCHECK_INCLUDE rapidcheck/gtest.h)
    find_library(MOTLEY_RAPIDCHECK_LIBRARY rapidcheck)
    if(NOT MOTLEY_RAPIDCHECK_INCLUDE OR NOT MOTLEY_RAPIDCHECK_LIBRARY)
      message(FATAL_ERROR "expected RapidCheck, for the property tests, found none; install it (librapidcheck-dev), or leave them out: "
                          "tools/configure MOTLEY_WITHOUT_PROPERTY_TESTS=ON")
    endif()
    add_library(motley_rapidcheck INTERFACE)
    add_library(motley::rapidcheck ALIAS motley_rapidcheck)
    target_include_directories(motley_rapidcheck SYSTEM INTERFACE "${MOTLEY_RAPIDCHECK_INCLUDE}")
    target_link_libraries(motley_rapidcheck INTERFACE "${MOTLEY_RAPIDCHECK_LIBRARY}")
  endif()
endif()
