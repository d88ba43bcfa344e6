# The libtorch inside the torch wheel of MOTLEY_PYTHON, as motley::torch_wheel. The wheel's own TorchConfig.cmake demands a
# CUDA toolkit for CUDA builds; linking the shared libraries directly needs none, as long as no header of c10/cuda is used.
set(MOTLEY_TORCH_MIN 2.7)  # the first wheels with the C++11 ABI on every platform
set(MOTLEY_TORCH_MAX 2.15)

# Importing torch takes seconds, so the answer is kept until the interpreter or the installed version changes.
set(_probe_stamp "")
if(MOTLEY_TORCH_DIR AND EXISTS "${MOTLEY_TORCH_DIR}/version.py")
  file(TIMESTAMP "${MOTLEY_TORCH_DIR}/version.py" _probe_stamp)
  string(PREPEND _probe_stamp "${MOTLEY_PYTHON} ")
endif()
if(NOT _probe_stamp OR NOT _probe_stamp STREQUAL "${MOTLEY_TORCH_PROBED}")
  set(_probe "import os, torch; print(';'.join([os.path.dirname(torch.__file__), torch.__version__, \
str(int(torch.compiled_with_cxx11_abi())), str(torch.version.cuda or '')]))")
  set(_status "no such file")
  if(EXISTS "${MOTLEY_PYTHON}")
    execute_process(COMMAND "${MOTLEY_PYTHON}" -c "${_probe}" OUTPUT_VARIABLE _answer ERROR_VARIABLE _status
                    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _exit)
  endif()
  if(NOT _exit EQUAL 0 OR NOT EXISTS "${MOTLEY_PYTHON}")
    message(FATAL_ERROR "MOTLEY_WITH_TORCH is on and needs a Python that can import torch, but ${MOTLEY_PYTHON} cannot:\n"
                        "${_status}\nRun `make setup` to create it, point MOTLEY_PYTHON at an environment that has torch, "
                        "or build without torch with -DMOTLEY_WITH_TORCH=OFF.")
  endif()
  list(GET _answer 0 _torch_dir)
  list(GET _answer 1 _torch_version)
  list(GET _answer 2 _torch_abi)
  list(GET _answer 3 _torch_cuda)
  file(TIMESTAMP "${_torch_dir}/version.py" _probe_stamp)
  set(MOTLEY_TORCH_DIR "${_torch_dir}" CACHE INTERNAL "")
  set(MOTLEY_TORCH_VERSION "${_torch_version}" CACHE INTERNAL "")
  set(MOTLEY_TORCH_ABI "${_torch_abi}" CACHE INTERNAL "")
  set(MOTLEY_TORCH_CUDA "${_torch_cuda}" CACHE INTERNAL "")
  set(MOTLEY_TORCH_PROBED "${MOTLEY_PYTHON} ${_probe_stamp}" CACHE INTERNAL "")
endif()

string(REGEX MATCH "^[0-9]+\\.[0-9]+" _series "${MOTLEY_TORCH_VERSION}")
if(_series VERSION_LESS MOTLEY_TORCH_MIN OR _series VERSION_GREATER MOTLEY_TORCH_MAX)
  message(FATAL_ERROR "torch ${MOTLEY_TORCH_VERSION} in ${MOTLEY_PYTHON} is outside the supported window "
                      "${MOTLEY_TORCH_MIN} to ${MOTLEY_TORCH_MAX}. Run `make setup` to install the pinned version.")
endif()

set(_names torch_cpu c10 torch)
if(MOTLEY_TORCH_CUDA)
  list(APPEND _names torch_cuda c10_cuda)
endif()
set(_libraries)
foreach(_name IN LISTS _names)
  find_library(_torch_library_${_name} ${_name} PATHS "${MOTLEY_TORCH_DIR}/lib" NO_DEFAULT_PATH NO_CACHE)
  if(NOT _torch_library_${_name})
    message(FATAL_ERROR "torch ${MOTLEY_TORCH_VERSION} in ${MOTLEY_TORCH_DIR} has no lib${_name}: the installation is "
                        "damaged. Run `make setup` to install it again.")
  endif()
  if(_name MATCHES "cuda" AND UNIX AND NOT APPLE)
    # Nothing refers to these by name; they register the CUDA kernels when they are loaded.
    list(APPEND _libraries "-Wl,--push-state,--no-as-needed,${_torch_library_${_name}},--pop-state")
  else()
    list(APPEND _libraries "${_torch_library_${_name}}")
  endif()
  unset(_torch_library_${_name})
endforeach()

add_library(motley_torch_wheel INTERFACE)
add_library(motley::torch_wheel ALIAS motley_torch_wheel)
target_include_directories(motley_torch_wheel SYSTEM INTERFACE "${MOTLEY_TORCH_DIR}/include"
                           "${MOTLEY_TORCH_DIR}/include/torch/csrc/api/include")
target_link_libraries(motley_torch_wheel INTERFACE ${_libraries})
if(UNIX)
  target_link_options(motley_torch_wheel INTERFACE "-Wl,-rpath,${MOTLEY_TORCH_DIR}/lib")
endif()
if(MOTLEY_TORCH_CUDA AND UNIX AND NOT APPLE)
  # The CUDA libraries of the wheel are found through its own run paths when the program starts.
  target_link_options(motley_torch_wheel INTERFACE "-Wl,--allow-shlib-undefined")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR UNIX AND NOT APPLE)
  target_compile_definitions(motley_torch_wheel INTERFACE _GLIBCXX_USE_CXX11_ABI=${MOTLEY_TORCH_ABI})
endif()
set(TorchWheel_FOUND TRUE)
if(NOT TorchWheel_FIND_QUIETLY)
  message(STATUS "torch ${MOTLEY_TORCH_VERSION} from ${MOTLEY_TORCH_DIR}")
endif()
