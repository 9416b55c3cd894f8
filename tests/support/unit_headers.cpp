// Empty: the precompiled headers of the tests without MPI need a source file (CMakeLists.txt).
