-- Lmod. The prefix that was given to `cmake --install`:
local prefix = "/opt/tapioca"

whatis("TAPIOCA: collective parallel I/O")
help([[Headers, library, Fortran module and the tapioca command. Load the MPI that TAPIOCA was built with first.]])
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(prefix, "lib"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
