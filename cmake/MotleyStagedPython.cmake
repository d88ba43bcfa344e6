# motley._core for Pythons that are not here, as motley/_core.SUFFIX in a folder for each ABI. MOTLEY_PYTHON_ABIS lists them: "cp311"
# is for that version alone, "abi3" for 3.12 and what comes after it. Headers lie in MOTLEY_STAGE, nanobind in MOTLEY_NANOBIND.
# nanobind_add_module() asks a Python of the target that can be run; there is none.
foreach(abi IN LISTS MOTLEY_PYTHON_ABIS)
  set(nanobind motley_nanobind_${abi})
  add_library(${nanobind} STATIC "${MOTLEY_NANOBIND}/src/nb_combined.cpp")
  set_target_properties(${nanobind} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  target_include_directories(${nanobind} SYSTEM PUBLIC "${MOTLEY_NANOBIND}/include" "${MOTLEY_STAGE}/python-${abi}")
  target_include_directories(${nanobind} SYSTEM PRIVATE "${MOTLEY_NANOBIND}/ext/robin_map/include")
  target_compile_definitions(${nanobind} PUBLIC NB_COMPACT_ASSERTIONS $<$<STREQUAL:${abi},abi3>:Py_LIMITED_API=0x030C0000>)
  target_compile_options(${nanobind} PUBLIC -fno-strict-aliasing "SHELL:-include cstdio" PRIVATE -w)  # nanobind 3.1 says stderr

  set(module motley_core_${abi})
  if(APPLE)
    add_library(${module} SHARED ${sources})  # Python opens either; zig links no bundles
    target_link_options(${module} PRIVATE -Wl,-undefined,dynamic_lookup -Wl,-dead_strip -Wl,-S -Wl,-x)
    set_target_properties(${module} PROPERTIES SUFFIX .so NO_SONAME ON)
  elseif(WIN32)
    add_library(${module} MODULE ${sources})
    target_link_options(${module} PRIVATE -Wl,--gc-sections -Wl,-s)
    target_link_libraries(${nanobind} PUBLIC "${MOTLEY_STAGE}/lib/libpython3.a")
    set_target_properties(${module} PROPERTIES SUFFIX .pyd)
  else()
    add_library(${module} MODULE ${sources})
    target_link_options(${module} PRIVATE -Wl,--gc-sections -Wl,-s "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/core/exports.map")
    set_target_properties(${module} PROPERTIES LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/core/exports.map")
  endif()
  set_target_properties(${module} PROPERTIES PREFIX "" OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${abi}")
  target_link_libraries(${module} PRIVATE ${nanobind} motley::commands motley::runtime motley_options)
endforeach()
