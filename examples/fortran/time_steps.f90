! Appends time steps to one file: every rank writes its block of a 2-d array while it computes the next step. It uses
! the older `use mpi`, whose communicators are integers.
program time_steps
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi
    use tapioca
    implicit none
    integer, parameter :: steps = 3
    integer(int64), parameter :: extents(2) = [256_int64, 512_int64], real_bytes = 8
    real(real64), allocatable, asynchronous :: now(:, :)
    real(real64), allocatable :: next(:, :)
    integer(int64) :: start(2), count(2)
    type(tapioca_pattern) :: pattern
    type(tapioca_file) :: file
    type(tapioca_step) :: step
    character(len=255) :: path
    integer :: rank, ranks, t, j, ierror
    logical :: done

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    path = "time_steps.dat"
    if (command_argument_count() > 0) call get_command_argument(1, path)

    call tapioca_block_of(extents, ranks, rank, start, count)
    call tapioca_pattern_create(pattern)
    call tapioca_pattern_add_subarray(pattern, extents, start, count, real_bytes, 0_int64)
    call tapioca_open(MPI_COMM_WORLD, path, TAPIOCA_MODE_CREATE, MPI_INFO_NULL, file)
    call tapioca_declare(file, pattern, step)
    call tapioca_pattern_free(pattern)

    allocate (now(count(1), count(2)), next(count(1), count(2)))
    now = rank
    do t = 0, steps - 1
        call tapioca_step_rebase(step, t * product(extents) * real_bytes)
        call tapioca_step_write(step, 0, now)
        call tapioca_step_start(step)  ! `now` belongs to the library until the wait
        do j = 1, size(now, 2)
            next(:, j) = now(:, j) + 1  ! compute; reading `now` is allowed
            if (mod(j, 64) == 0) call tapioca_step_progress(step, done)
        end do
        call tapioca_step_wait(step)
        now = next
    end do

    call tapioca_step_read(step, 0, now)  ! still at the last step's base
    call tapioca_step_finish(step)
    if (any(now /= rank + steps - 1)) error stop "wrong values"
    call tapioca_step_free(step)
    call tapioca_close(file)
    if (rank == 0) print '(i0, 3a)', steps, " time steps are in ", trim(path), ", and the last one was read back"
    call MPI_Finalize(ierror)
end program
