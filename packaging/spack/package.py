from spack.package import *


class Tapioca(CMakePackage):
    """Topology-aware collective parallel I/O for HPC simulations: C++20, C and Fortran on MPI."""

    # The clone to build from: set `git`, or use `spack develop` or `spack dev-build`.
    # git = "..."

    version("main", branch="main")

    variant("fortran", default=True, description="Build the Fortran module")
    variant("tools", default=True, description="Build the tapioca command and tapioca-bench")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("mpi")
    depends_on("hwloc@2.3:")
    depends_on("fmt")
    depends_on("nlohmann-json", type="build")
    depends_on("tl-expected", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("xxhash", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build", when="+tools")

    generator("ninja")
    conflicts("%gcc@:11", msg="needs C++20 as g++ 12 has it")

    def cmake_args(self):
        args = [
            self.define("TAPIOCA_BUILD_TESTS", False),
            self.define_from_variant("TAPIOCA_BUILD_FORTRAN", "fortran"),
            self.define_from_variant("TAPIOCA_BUILD_TOOLS", "tools"),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
        ]
        if self.spec.satisfies("+fortran"):
            args.append(self.define("MPI_Fortran_COMPILER", self.spec["mpi"].mpifc))
        return args
