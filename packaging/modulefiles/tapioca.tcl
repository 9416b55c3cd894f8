#%Module
# Environment Modules. The prefix that was given to `cmake --install`:
set prefix /opt/tapioca

module-whatis "TAPIOCA: collective parallel I/O"
proc ModulesHelp {} {
    puts stderr "Headers, library, Fortran module and the tapioca command. Load the MPI that TAPIOCA was built with first."
}
prepend-path PATH $prefix/bin
prepend-path LD_LIBRARY_PATH $prefix/lib
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
prepend-path MANPATH $prefix/share/man
