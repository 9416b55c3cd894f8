// Nothing: what is precompiled for the tests without MPI needs a source to belong to (CMakeLists.txt).
