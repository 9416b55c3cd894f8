# cmake --install: what users need, and nothing else. The tree can be moved as a whole.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(TAPIOCA_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/tapioca)
set(TAPIOCA_INSTALL_MODDIR ${CMAKE_INSTALL_INCLUDEDIR}/tapioca/fortran)

install(DIRECTORY include/tapioca DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/tapioca/built_for.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tapioca)
install(DIRECTORY platforms/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tapioca/platforms FILES_MATCHING PATTERN "*.toml")
install(TARGETS tapioca EXPORT tapioca-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(TAPIOCA_MPI_FAMILY mpich)
if(TAPIOCA_OPEN_MPI)
  set(TAPIOCA_MPI_FAMILY openmpi)
endif()
# Also in a folder of its MPI's name, where `tapioca run` finds it when a build for another MPI is installed over this.
install(TARGETS tapioca_mpiio LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tapioca_mpiio LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tapioca/${TAPIOCA_MPI_FAMILY})
if(TAPIOCA_BUILD_FORTRAN)
  target_include_directories(tapioca_fortran INTERFACE $<INSTALL_INTERFACE:${TAPIOCA_INSTALL_MODDIR}>)
  set_target_properties(tapioca_fortran PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS tapioca_fortran EXPORT tapioca-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${CMAKE_BINARY_DIR}/fortran/tapioca.mod DESTINATION ${TAPIOCA_INSTALL_MODDIR})
endif()
install(EXPORT tapioca-targets NAMESPACE tapioca:: DESTINATION ${TAPIOCA_INSTALL_CMAKEDIR})
if(TAPIOCA_BUILD_TOOLS)
  file(RELATIVE_PATH from_bin_to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(tapioca-command tapioca-bench tapioca-calibrate tapioca-recover tapioca-join PROPERTIES
    INSTALL_RPATH "$ORIGIN/${from_bin_to_lib}")
  install(TARGETS tapioca-command tapioca-bench tapioca-calibrate tapioca-recover tapioca-join DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/tapioca.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# find_package(tapioca). Consumers get the MPI this was built with, unless they choose one themselves.
find_program(TAPIOCA_MPI_C_WRAPPER NAMES ${MPI_C_COMPILER})
find_program(TAPIOCA_MPI_Fortran_WRAPPER NAMES ${MPI_Fortran_COMPILER})
string(REPLACE mpicc mpicxx TAPIOCA_MPI_CXX_WRAPPER "${TAPIOCA_MPI_C_WRAPPER}")
mark_as_advanced(TAPIOCA_MPI_C_WRAPPER TAPIOCA_MPI_Fortran_WRAPPER)
configure_package_config_file(cmake/tapioca-config.cmake.in ${CMAKE_BINARY_DIR}/cmake/tapioca-config.cmake
  INSTALL_DESTINATION ${TAPIOCA_INSTALL_CMAKEDIR} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/tapioca-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/tapioca-config.cmake ${CMAKE_BINARY_DIR}/cmake/tapioca-config-version.cmake
  DESTINATION ${TAPIOCA_INSTALL_CMAKEDIR})

# pkg-config, for use with the MPI's compiler wrappers.
file(RELATIVE_PATH from_pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(package tapioca tapioca-fortran)
  if(package STREQUAL tapioca OR TAPIOCA_BUILD_FORTRAN)
    configure_file(cmake/${package}.pc.in ${CMAKE_BINARY_DIR}/cmake/${package}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/cmake/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()
