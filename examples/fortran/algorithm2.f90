! Algorithm 2 of the TAPIOCA paper: every rank writes its x, y and z as an array of structures, with three collective
! writes that were declared first.
program algorithm2
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi_f08
    use tapioca
    implicit none
    integer(int64), parameter :: n = 5
    real(real64), asynchronous :: x(n), y(n), z(n)
    integer(int64) :: count(3), type_size(3), ofst(3), offset
    type(tapioca_file) :: f
    type(tapioca_status), asynchronous :: status(3)
    character(len=255) :: path
    integer :: rank, i

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    path = "algorithm2.dat"
    if (command_argument_count() > 0) call get_command_argument(1, path)
    x = [(rank + 0.1_real64 * i, i = 0, int(n) - 1)]
    y = 2 * x
    z = 3 * x

    offset = rank * 3 * n * 8
    do i = 1, 3
        count(i) = n
        type_size(i) = storage_size(x) / 8
        ofst(i) = offset + (i - 1) * n * type_size(i)
    end do

    ! Without ierror, an error is printed and ends the program.
    call tapioca_open(MPI_COMM_WORLD%MPI_VAL, path, TAPIOCA_MODE_CREATE, MPI_INFO_NULL%MPI_VAL, f)
    call tapioca_init(f, count, type_size, ofst, 3)
    call tapioca_write(f, ofst(1), x, n, type_size(1), status(1))
    call tapioca_write(f, ofst(2), y, n, type_size(2), status(2))
    call tapioca_write(f, ofst(3), z, n, type_size(3), status(3))  ! the last one: moves x, y and z
    if (rank == 0) print '(a, 3i5, a)', "rank 0:", status%bytes, " bytes"
    call tapioca_finalize(f)
    call tapioca_close(f)
    call MPI_Finalize()
end program
