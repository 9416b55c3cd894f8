! Every rank writes "rank N" and a newline, through the installed module.
program main
    use, intrinsic :: iso_fortran_env, only: int64
    use mpi_f08
    use tapioca
    implicit none
    type(tapioca_file) :: file
    character(len=7), asynchronous :: text
    character(len=1000) :: path
    integer(int64) :: offset
    integer :: rank
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call get_command_argument(1, path)
    write (text, '(a, i1, a)') "rank ", mod(rank, 10), new_line("a")
    offset = rank * 7
    call tapioca_open(MPI_COMM_WORLD%MPI_VAL, path, TAPIOCA_MODE_CREATE, MPI_INFO_NULL%MPI_VAL, file)
    call tapioca_init(file, [7_int64], [1_int64], [offset], 1)
    call tapioca_write(file, offset, text, 7_int64, 1_int64)
    call tapioca_close(file)
    call MPI_Finalize()
end program
