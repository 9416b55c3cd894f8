# What the CMakeLists.txt of the folders have in common.

# A directory for a test to run in, of its own.
function(tapioca_private_directory name out)
  set(directory ${PROJECT_BINARY_DIR}/tests/run/${name})
  file(MAKE_DIRECTORY ${directory})
  set(${out} ${directory} PARENT_SCOPE)
endfunction()

# The headers that nearly all tests have, read once, in `owner` (support/CMakeLists.txt).
function(tapioca_precompile name owner)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=invalid-pch>)  # slower, and no harm
  if(name STREQUAL owner)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE)  # as in the programs that use them
    target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <algorithm> <filesystem> <functional> <fstream> <random>
      <string> <vector>)
  else()
    target_precompile_headers(${name} REUSE_FROM ${owner})
  endif()
endfunction()

# A test without MPI; USES are the parts of the library that it tests.
function(tapioca_add_unit_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${TEST_USES} GTest::gtest GTest::gtest_main)
  tapioca_precompile(${name} support_unit_headers)
  if(NOT TAPIOCA_UNIT_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  tapioca_private_directory(${name} directory)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${directory})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 240)  # 70 s under the sanitizers on an idle machine
endfunction()

# How many processors `ranks` ranks count as, where ctest runs tests side by side: they wait for each other most of the time.
function(tapioca_processors ranks out)
  math(EXPR processors "(${ranks} + 3) / 4")
  set(${out} ${processors} PARENT_SCOPE)
endfunction()

# Adds one ctest entry that starts `ranks` ranks of `target`. WRAPPER is put before the launcher.
function(tapioca_add_launch name target ranks)
  cmake_parse_arguments(LAUNCH "" "TIMEOUT" "WRAPPER;ENVIRONMENT;ARGUMENTS" ${ARGN})
  if(NOT LAUNCH_TIMEOUT)
    set(LAUNCH_TIMEOUT 120)
  endif()
  tapioca_private_directory(${name} directory)
  add_test(NAME ${name} WORKING_DIRECTORY ${directory}
    COMMAND ${LAUNCH_WRAPPER} ${test_launcher} -n ${ranks} $<TARGET_FILE:${target}> ${LAUNCH_ARGUMENTS})
  tapioca_processors(${ranks} processors)
  set_tests_properties(${name} PROPERTIES LABELS mpi PROCESSORS ${processors} TIMEOUT ${LAUNCH_TIMEOUT}
    ENVIRONMENT "${test_environment};${LAUNCH_ENVIRONMENT}")
endfunction()

# A test of the public interface: one ctest entry per number of ranks, such as steps_np4.
function(tapioca_add_mpi_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;RANKS;USES" ${ARGN})
  add_executable(${name}_test ${TEST_SOURCES})
  target_link_libraries(${name}_test PRIVATE tapioca_mpi_main fmt::fmt ${TEST_USES})
  tapioca_precompile(${name}_test tapioca_mpi_main)
  foreach(ranks ${TEST_RANKS})
    tapioca_add_launch(${name}_np${ranks} ${name}_test ${ranks} TIMEOUT ${TEST_TIMEOUT})
  endforeach()
endfunction()

# The same test where every `per_node` ranks pretend to be a node, such as property_np4_nodes2_rma. WITHOUT are tests
# that cannot hold there.
function(tapioca_add_nodes_launch name ranks per_node transport)
  cmake_parse_arguments(NODES "" "" "ENVIRONMENT;WITHOUT" ${ARGN})
  set(arguments)
  if(NODES_WITHOUT)
    string(REPLACE ";" ":" without "${NODES_WITHOUT}")
    set(arguments ARGUMENTS --gtest_filter=-${without})
  endif()
  tapioca_add_launch(${name}_np${ranks}_nodes${per_node}_${transport} ${name}_test ${ranks} ${arguments}
    ENVIRONMENT TAPIOCA_RANKS_PER_NODE=${per_node} TAPIOCA_TRANSPORT=${transport} ${windows} ${NODES_ENVIRONMENT})
endfunction()

# A test that is a script, of the folder that adds it: SCRIPT and its arguments.
function(tapioca_add_script_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT;PROCESSORS" "COMMAND" ${ARGN})
  list(POP_FRONT TEST_COMMAND script)
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${TEST_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS tools TIMEOUT ${TEST_TIMEOUT} ENVIRONMENT "${test_environment}")
  if(TEST_PROCESSORS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${TEST_PROCESSORS})
  endif()
endfunction()

# About how many seconds the longest tests take: ctest starts them first.
function(tapioca_takes_long name seconds)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endfunction()
