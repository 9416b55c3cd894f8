! The Fortran module on any number of ranks: round trips in both styles, buffers of several types and ranks, arrays
! that are not contiguous, texts. Ends with an error on every rank if anything is wrong on one.
program fortran_test
    use, intrinsic :: iso_fortran_env
    use mpi_f08
    use tapioca
    implicit none
    integer :: rank, ranks, failures, total

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    failures = 0
    call declared_variables()
    call split_phase()
    call any_type_and_rank()
    call mistakes()
    call patterns()
    call sections()
    call version()
    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Finalize()
    if (total > 0) error stop 1
    if (rank == 0) print '(a, i0, a)', "fortran_test on ", ranks, " ranks: ok"

contains

    subroutine check(right, what)
        logical, intent(in) :: right
        character(len=*), intent(in) :: what
        if (right) return
        failures = failures + 1
        write (error_unit, '(a, i0, 3a)') "[rank ", rank, "] wrong: ", what, " ("//tapioca_last_error()//")"
    end subroutine

    subroutine open_file(path, file)
        character(len=*), intent(in) :: path
        type(tapioca_file), intent(out) :: file
        integer :: ierror
        call tapioca_open(MPI_COMM_WORLD%MPI_VAL, path, TAPIOCA_MODE_CREATE, MPI_INFO_NULL%MPI_VAL, file, ierror)
        call check(ierror == TAPIOCA_SUCCESS, "open "//path)
    end subroutine

    subroutine version()
        integer :: major, minor, patch, ierror
        call tapioca_get_version(major, minor, patch, ierror)
        call check(ierror == TAPIOCA_SUCCESS, "version")
        call check(all([major, minor, patch] == &
            [TAPIOCA_VERSION_MAJOR, TAPIOCA_VERSION_MINOR, TAPIOCA_VERSION_PATCH]), "the library's version is the module's")
    end subroutine

    ! Three arrays of n reals on every rank, one after the other.
    subroutine declare_three(file, n, count, sizes, offset)
        type(tapioca_file), intent(in) :: file
        integer(int64), intent(in) :: n
        integer(int64), intent(out) :: count(3), sizes(3), offset(3)
        integer :: i, ierror
        count = n
        sizes = 8
        offset = [((rank * 3 + i) * n * 8, i = 0, 2)]
        call tapioca_init(file, count, sizes, offset, 3, ierror)
        call check(ierror == TAPIOCA_SUCCESS, "init")
    end subroutine

    subroutine declared_variables()
        integer(int64), parameter :: n = 7
        real(real64), asynchronous :: x(n, 3), back(n, 3)
        type(tapioca_status), asynchronous :: status(3)
        type(tapioca_file) :: file
        type(tapioca_step) :: step
        integer(int64) :: count(3), sizes(3), offset(3), bytes
        real(real64), allocatable :: all(:)
        character(len=:), allocatable :: text
        integer :: i, turn, unit
        call open_file("declared.dat   ", file)
        call declare_three(file, n, count, sizes, offset)
        x = reshape([(rank * 100 + i, i = 1, size(x))], shape(x))
        call tapioca_step_of(file, step)
        do turn = 0, 1
            call tapioca_step_rebase(step, turn * ranks * 3 * n * 8)
            status%bytes = -1
            do i = 1, 3
                call tapioca_write(file, offset(i), x(:, i), n, 8_int64, status(i))
            end do
            call check(all_equal(status%bytes, n * 8) .and. all_equal(int(status%error, int64), 0_int64), "statuses")
        end do
        call tapioca_flush(file)
        call tapioca_drain(file)
        call tapioca_sync(file)
        call tapioca_size(file, bytes)
        call check(bytes == 2 * ranks * 3 * n * 8, "size")
        do i = 3, 1, -1
            call tapioca_read(file, offset(i), back(:, i), n, 8_int64)
        end do
        call check(.not. any(back /= x), "what was read")
        call tapioca_step_received(step, 1, bytes)
        call check(bytes == n * 8, "received")
        call tapioca_step_plan_text(step, text)
        call check(index(text, "plan for") == 1, "plan: "//text)
        call tapioca_step_plan_json(step, text)
        call check(text(1:1) == "{", "plan: "//text)
        call tapioca_finalize(file)
        call tapioca_close(file)
        allocate (all(2 * ranks * 3 * n))
        open (newunit=unit, file="declared.dat", access="stream", form="unformatted", status="old")
        read (unit) all
        close (unit)
        do i = 0, ranks - 1
            call check(.not. any(all(i * 21 + 1:i * 21 + 21) /= [(i * 100 + turn, turn = 1, 21)]), "the file")
        end do
        call MPI_Barrier(MPI_COMM_WORLD)
    end subroutine

    logical function all_equal(numbers, value)
        integer(int64), intent(in) :: numbers(:), value
        all_equal = .not. any(numbers /= value)
    end function

    subroutine split_phase()
        integer(int64), parameter :: n = 1000
        real(real64), asynchronous :: x(n), y(n), z(n)
        type(tapioca_moved) :: moved
        type(tapioca_file) :: file
        integer(int64) :: count(3), sizes(3), offset(3)
        logical :: done
        call open_file("split.dat", file)
        call declare_three(file, n, count, sizes, offset)
        x = rank
        y = rank + 0.5_real64
        z = -rank
        call tapioca_start(file)
        call tapioca_write(file, offset(1), x, n, 8_int64)
        call tapioca_write(file, offset(2), y, n, 8_int64)
        call tapioca_write(file, offset(3), z, n, 8_int64)
        call tapioca_progress(file, done)
        call tapioca_wait(file, moved)
        call check(moved%bytes == 3 * n * 8, "moved")
        x = 99
        y = 99
        z = 99
        call tapioca_start(file)
        call tapioca_read(file, offset(1), x, n, 8_int64)
        call tapioca_read(file, offset(2), y, n, 8_int64)
        call tapioca_read(file, offset(3), z, n, 8_int64)
        call tapioca_wait(file)
        call check(.not. any(x /= rank) .and. .not. any(y /= rank + 0.5_real64) .and. .not. any(z /= -rank), "split")
        call tapioca_close(file)
    end subroutine

    subroutine any_type_and_rank()
        type :: mixed
            integer(int32) :: a
            real(real32) :: b
        end type
        integer(int32), asynchronous :: i4(6), i4_back(6)
        integer(int64), asynchronous :: i8(2, 3), i8_back(2, 3)
        real(real32), asynchronous :: r4(1, 2, 3), r4_back(1, 2, 3)
        type(mixed), asynchronous :: m(2), m_back(2)
        character(len=5), asynchronous :: c, c_back
        real(real64), asynchronous :: scalar, scalar_back
        integer(int64) :: bytes(6), offset
        type(tapioca_pattern) :: pattern
        type(tapioca_file) :: file
        type(tapioca_step) :: step
        integer :: i, var
        bytes = [24, 48, 24, 16, 5, 8]
        offset = rank * sum(bytes)
        call tapioca_pattern_create(pattern)
        do i = 1, 6
            call tapioca_pattern_add_extents(pattern, [offset], [bytes(i)], var)
            call check(var == i - 1, "number of a variable")
            offset = offset + bytes(i)
        end do
        call tapioca_pattern_variables(pattern, var)
        call check(var == 6, "number of variables")
        call open_file("types.dat", file)
        call tapioca_declare(file, pattern, step)
        call tapioca_pattern_free(pattern)
        i4 = rank
        i8 = rank + 1
        r4 = rank + 0.25
        m = mixed(rank, -1.0)
        c = "hello"
        scalar = rank * 2
        call tapioca_step_write(step, 0, i4)
        call tapioca_step_write(step, 1, i8)
        call tapioca_step_write(step, 2, r4)
        call tapioca_step_write(step, 3, m)
        call tapioca_step_write(step, 4, c)
        call tapioca_step_write(step, 5, scalar)
        call tapioca_step_finish(step)
        call tapioca_step_read(step, 0, i4_back)
        call tapioca_step_read(step, 1, i8_back, 48_int64)
        call tapioca_step_read(step, 2, r4_back)
        call tapioca_step_read(step, 3, m_back)
        call tapioca_step_read(step, 4, c_back)
        call tapioca_step_read(step, 5, scalar_back)
        call tapioca_step_finish(step)
        call check(.not. any(i4 /= i4_back) .and. .not. any(i8 /= i8_back) .and. .not. any(r4 /= r4_back), "arrays")
        call check(.not. any(m%a /= m_back%a) .and. .not. any(m%b /= m_back%b), "derived type")
        call check(c == c_back .and. scalar == scalar_back, "scalars")
        call tapioca_step_free(step)
        call tapioca_close(file)
    end subroutine

    ! One rank's mistake: the same code on all, and the file can be used on.
    subroutine mistakes()
        integer(int64), parameter :: n = 4
        real(real64), asynchronous :: x(n), y(n), z(n), wide(2, n)
        type(tapioca_status), asynchronous :: status
        type(tapioca_failure) :: failure
        type(tapioca_file) :: file, copy, nothing
        integer(int64) :: count(3), sizes(3), offset(3)
        integer :: ierror
        call open_file("mistakes.dat", file)
        call declare_three(file, n, count, sizes, offset)
        x = 1
        y = 2
        z = 3
        wide = 4
        call tapioca_write(file, offset(1), x, n, 8_int64, status)
        if (rank == ranks - 1) then
            call tapioca_write(file, offset(2), wide(1, 1:3), n, 8_int64)
        else
            call tapioca_write(file, offset(2), y, n, 8_int64)
        end if
        call tapioca_write(file, offset(3), z, n, 8_int64, ierror=ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_ARGUMENT, "code of a section of another size")
        call check(index(tapioca_last_error(), "not contiguous, and can only be moved as a whole: it has 24") > 0, &
            "text of the same")
        call check(status%error == ierror .and. status%bytes == 0, "status of the same")
        call tapioca_last_failure(failure)
        call check(failure%code == ierror .and. failure%rank == ranks - 1, "failure")
        call check(index(failure%path, "mistakes.dat") > 0 .and. failure%text == tapioca_last_error(), "failure's text")
        call tapioca_write(file, offset(1), x, n, 8_int64)
        if (rank == ranks - 1) then
            call tapioca_write(file, offset(2), y(1:2), n, 8_int64)
        else
            call tapioca_write(file, offset(2), y, n, 8_int64)
        end if
        call tapioca_write(file, offset(3), z, n, 8_int64, ierror=ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_ARGUMENT, "code of a short array")
        call check(index(tapioca_last_error(), "only 16 bytes") > 0, "text of a short array")
        call tapioca_write(file, offset(1), x, n, 8_int64)
        call tapioca_write(file, offset(2), y, n, 8_int64)
        call tapioca_write(file, offset(3), z, n, 8_int64, ierror=ierror)
        call check(ierror == TAPIOCA_SUCCESS, "the run after a failed one")
        call tapioca_init(file, count, sizes, offset, 4, ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_STATE, "init twice")
        call tapioca_finalize(file)
        call tapioca_init(file, count, sizes, offset, 4, ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_ARGUMENT, "more variables than elements")
        copy = file
        call tapioca_close(file)
        call tapioca_sync(file, ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_ARGUMENT, "a closed file")
        call tapioca_sync(copy, ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_ARGUMENT, "a copy of the handle of a closed file")
        call tapioca_open(MPI_COMM_WORLD%MPI_VAL, "none/none", TAPIOCA_MODE_READ, MPI_INFO_NULL%MPI_VAL, nothing, ierror)
        call check(ierror == TAPIOCA_ERR_NOT_FOUND, "no such file")
        call check(tapioca_error_text(ierror) == "no such file or directory", "text of a code")
        call tapioca_release(nothing)
    end subroutine

    ! Blocks of a 2-d array in Fortran's order, then a strided part of it.
    subroutine patterns()
        integer(int64) :: extents(2), start(2), count(2), bytes, i, j
        integer(int32), allocatable, asynchronous :: block(:, :), half(:, :)
        integer(int32), allocatable :: whole(:, :)
        type(tapioca_pattern) :: pattern
        type(tapioca_file) :: file, next
        type(tapioca_step) :: step
        integer :: unit, ierror
        extents = [12_int64, 10_int64 * ranks]
        call tapioca_block_of(extents, ranks, rank, start, count)
        allocate (block(count(1), count(2)))
        do j = 1, count(2)
            block(:, j) = [(int((start(2) + j) * 1000 + start(1) + i), i = 1, count(1))]
        end do
        call tapioca_pattern_create(pattern)
        call tapioca_pattern_add_block(pattern, extents, ranks, rank, 4_int64, 0_int64)
        call tapioca_pattern_bytes(pattern, 0, bytes)
        call check(bytes == 4 * product(count), "bytes of a block")
        call tapioca_pattern_bookkeeping_bytes(pattern, bytes)
        call check(bytes > 0, "bookkeeping")
        call open_file("block.dat", file)
        call open_file("next.dat", next)
        call tapioca_declare(file, pattern, step)
        call tapioca_pattern_free(pattern)
        call tapioca_step_write(step, 0, block)
        call tapioca_step_finish(step)
        call tapioca_step_retarget(step, next)
        call tapioca_step_write(step, 0, block)
        call tapioca_step_start(step)
        call tapioca_step_wait(step)
        call tapioca_step_free(step)
        call tapioca_close(next)
        allocate (whole(extents(1), extents(2)))
        open (newunit=unit, file="next.dat", access="stream", form="unformatted", status="old")
        read (unit) whole
        close (unit)
        do j = 1, extents(2)
            call check(.not. any(whole(:, j) /= [(int(j * 1000 + i), i = 1, extents(1))]), "order in the file")
        end do
        call tapioca_pattern_create(pattern)
        call tapioca_pattern_add_subarray(pattern, extents, [1_int64, 0_int64], [4_int64, 5_int64], 4_int64, 0_int64, &
            stride=[3_int64, 2_int64])
        call tapioca_declare(file, pattern, step)
        call tapioca_pattern_free(pattern)
        allocate (half(4, 5))
        call tapioca_step_read(step, 0, half)
        call tapioca_step_finish(step)
        call check(.not. any(half /= whole(2:11:3, 1:9:2)), "strided part")
        call tapioca_step_read(step, 0, half(1:2, :), ierror=ierror)
        call check(ierror == TAPIOCA_SUCCESS, "a mistake that is kept")
        call tapioca_step_finish(step, ierror=ierror)
        call check(ierror == TAPIOCA_ERR_INVALID_ARGUMENT, "a section of another size")
        call tapioca_step_free(step)
        call tapioca_close(file)
        call MPI_Barrier(MPI_COMM_WORLD)
    end subroutine

    ! Arrays with ghost cells in 1 to 4 dimensions, and sections with strides, also backwards.
    subroutine sections()
        integer(int64), parameter :: n = 5
        real(real64), asynchronous :: a1(0:n + 1), a2(0:n + 1, -1:n), a3(n + 1, 0:n, n + 2), a4(n, 2:n + 2, n, n + 1)
        real(real64), asynchronous :: long(2 * n), back(2 * n)
        real(real64), allocatable :: all(:)
        type(tapioca_file) :: file
        type(tapioca_pattern) :: pattern
        type(tapioca_step) :: step
        integer(int64) :: bytes, offset
        integer :: d, unit
        character(len=:), allocatable :: text
        call open_file("sections.dat", file)
        call tapioca_pattern_create(pattern)
        offset = 0
        do d = 1, 5
            bytes = 8 * n**min(d, 4)
            if (d == 5) bytes = 8 * n
            call tapioca_pattern_add_extents(pattern, [offset + rank * bytes], [bytes])
            offset = offset + ranks * bytes
        end do
        call tapioca_pattern_set_name(pattern, 3, "mass  ")
        call tapioca_declare(file, pattern, step)
        call tapioca_pattern_free(pattern)
        call tapioca_step_plan_text(step, text)
        call check(index(text, "variable 2, mass, variable 4") > 0, "a name: "//text)
        a1 = -1
        a2 = -1
        a3 = -1
        a4 = -1
        a1(1:n) = numbers(n)
        a2(1:n, 0:n - 1) = reshape(numbers(n**2), [n, n])
        a3(2:n + 1, 1:n, 2:n + 1) = reshape(numbers(n**3), [n, n, n])
        a4(:, 3:n + 2, :, 1:n) = reshape(numbers(n**4), [n, n, n, n])
        long = 0
        long(2 * n:1:-2) = numbers(n)
        call tapioca_step_write(step, 0, a1(1:n))
        call tapioca_step_write(step, 1, a2(1:n, 0:n - 1))
        call tapioca_step_write(step, 2, a3(2:n + 1, 1:n, 2:n + 1))
        call tapioca_step_write(step, 3, a4(:, 3:n + 2, :, 1:n))
        call tapioca_step_write(step, 4, long(2 * n:1:-2))
        call tapioca_step_finish(step)
        allocate (all(offset / 8))
        open (newunit=unit, file="sections.dat", access="stream", form="unformatted", status="old")
        read (unit) all
        close (unit)
        offset = 0
        do d = 1, 5
            bytes = merge(n, n**min(d, 4), d == 5)
            call check(.not. any(all(offset + rank * bytes + 1:offset + (rank + 1) * bytes) /= numbers(bytes)), "section")
            offset = offset + ranks * bytes
        end do
        call MPI_Barrier(MPI_COMM_WORLD)
        a1 = -2
        a2 = -2
        a3 = -2
        a4 = -2
        back = -2
        call tapioca_step_read(step, 0, a1(1:n))
        call tapioca_step_read(step, 1, a2(1:n, 0:n - 1))
        call tapioca_step_read(step, 2, a3(2:n + 1, 1:n, 2:n + 1))
        call tapioca_step_read(step, 3, a4(:, 3:n + 2, :, 1:n))
        call tapioca_step_read(step, 4, back(1::2))
        call tapioca_step_finish(step)
        call check(.not. any(a1(1:n) /= numbers(n)) .and. count(a1 < -1) == 2, "one dimension")
        call check(.not. any(a2(1:n, 0:n - 1) /= reshape(numbers(n**2), [n, n])) .and. &
            count(a2 < -1) == size(a2) - n**2, "two dimensions")
        call check(.not. any(a3(2:n + 1, 1:n, 2:n + 1) /= reshape(numbers(n**3), [n, n, n])) .and. &
            count(a3 < -1) == size(a3) - n**3, "three dimensions")
        call check(.not. any(a4(:, 3:n + 2, :, 1:n) /= reshape(numbers(n**4), [n, n, n, n])) .and. &
            count(a4 < -1) == size(a4) - n**4, "four dimensions")
        call check(.not. any(back(1::2) /= numbers(n)) .and. count(back < -1) == n, "every second element")
        call tapioca_step_free(step)
        ! The papers' calls take them, too.
        call tapioca_init(file, [n], [8_int64], [rank * 8 * n], 1)
        call tapioca_write(file, rank * 8 * n, long(2 * n:1:-2), n, 8_int64)
        call tapioca_read(file, rank * 8 * n, back(2::2), n, 8_int64)
        call check(.not. any(back(2::2) /= numbers(n)), "by offset")
        call tapioca_close(file)
        call MPI_Barrier(MPI_COMM_WORLD)
    end subroutine

    function numbers(n) result(values)
        integer(int64), intent(in) :: n
        real(real64) :: values(n)
        integer(int64) :: i
        values = [(real(rank * 10000 + i, real64), i = 1, n)]
    end function
end program
