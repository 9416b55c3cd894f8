! HACC-IO: every rank writes the nine arrays of its particles, and reads them back. With layout aos, the file has one
! rank after the other, each with its nine arrays. With layout soa, it has one variable after the other, each with the
! arrays of all ranks. Ranks have different numbers of particles; a scan tells each rank its place.
! usage: fortran_hacc [FILE [aos|soa]]
program hacc
    use, intrinsic :: iso_fortran_env, only: int16, int64, real32
    use mpi_f08
    use tapioca
    implicit none
    integer(int64), parameter :: variable_bytes(9) = [4, 4, 4, 4, 4, 4, 4, 8, 2]  ! XX YY ZZ VX VY VZ phi pid mask
    real(real32), allocatable, asynchronous :: floats(:, :), floats_back(:, :)
    integer(int64), allocatable, asynchronous :: pid(:), pid_back(:)
    integer(int16), allocatable, asynchronous :: mask(:), mask_back(:)
    integer(int64) :: mine, before, total, i
    type(tapioca_pattern) :: pattern
    type(tapioca_file) :: file
    type(tapioca_step) :: step
    character(len=255) :: path
    character(len=3) :: layout
    integer :: rank, v

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    path = "hacc.dat"
    layout = "aos"
    if (command_argument_count() > 0) call get_command_argument(1, path)
    if (command_argument_count() > 1) call get_command_argument(2, layout)
    mine = 1000 + 10 * rank
    before = 0
    call MPI_Exscan(mine, before, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) before = 0  ! MPI leaves it undefined there
    call MPI_Allreduce(mine, total, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)

    allocate (floats(mine, 7), pid(mine), mask(mine))
    allocate (floats_back(mine, 7), pid_back(mine), mask_back(mine))
    pid = [(before + i, i = 0, mine - 1)]
    do v = 1, 7
        floats(:, v) = real(pid * 10 + v - 1, real32)
    end do
    mask = int(mod(pid, 1000_int64), int16)

    call hacc_pattern(layout, mine, before, total, 0_int64, pattern)
    call tapioca_open(MPI_COMM_WORLD%MPI_VAL, path, TAPIOCA_MODE_CREATE, MPI_INFO_NULL%MPI_VAL, file)
    call tapioca_declare(file, pattern, step)
    call tapioca_pattern_free(pattern)
    do v = 1, 7
        call tapioca_step_write(step, v - 1, floats(:, v))
    end do
    call tapioca_step_write(step, 7, pid)
    call tapioca_step_write(step, 8, mask)
    call tapioca_step_finish(step)
    do v = 1, 7
        call tapioca_step_read(step, v - 1, floats_back(:, v))
    end do
    call tapioca_step_read(step, 7, pid_back)
    call tapioca_step_read(step, 8, mask_back)
    call tapioca_step_finish(step)
    call tapioca_step_free(step)
    call tapioca_close(file)
    if (any(floats_back /= floats) .or. any(pid_back /= pid) .or. any(mask_back /= mask)) error stop "wrong particles"
    call MPI_Finalize()

contains

    ! The nine variables of a rank with `mine` of all `total` particles; `before` particles are on lower ranks. Local.
    subroutine hacc_pattern(layout, mine, before, total, file_offset, pattern)
        character(len=*), intent(in) :: layout
        integer(int64), intent(in) :: mine, before, total, file_offset
        type(tapioca_pattern), intent(inout) :: pattern
        integer(int64) :: sizes_before, offset  ! sizes_before: bytes per particle of the variables before
        integer :: v
        call tapioca_pattern_create(pattern)
        sizes_before = 0
        do v = 1, size(variable_bytes)
            if (layout == "aos") then
                offset = before * sum(variable_bytes) + mine * sizes_before
            else
                offset = total * sizes_before + before * variable_bytes(v)
            end if
            call tapioca_pattern_add_extents(pattern, [file_offset + offset], [mine * variable_bytes(v)])
            sizes_before = sizes_before + variable_bytes(v)
        end do
    end subroutine
end program
