! TAPIOCA for Fortran: the calls of tapioca.h, with the same names and the same order of arguments.
!
!     use tapioca
!     type(tapioca_file) :: f
!     call tapioca_open(MPI_COMM_WORLD%MPI_VAL, "out.dat", TAPIOCA_MODE_CREATE, MPI_INFO_NULL%MPI_VAL, f)
!     call tapioca_init(f, count, type_size, offset, 3)
!     call tapioca_write(f, offset(1), x, count(1), type_size(1), status(1))
!     ...
!
! tapioca.h describes each call. The differences are:
!
! - Communicators and infos are integer handles: `comm` with `use mpi`, `comm%MPI_VAL` with `use mpi_f08`. So this
!   module depends on the compiler, but not on the MPI.
! - The last argument of every subroutine is the optional ierror. Without it, an error is printed and ends the program.
! - Buffers are arrays or scalars of any type and rank, or sections of arrays, such as u(1:nx, 1:ny) of an array with
!   ghost cells, or u(::2, :). Sections are moved in place, and only as a whole. Do not pass what the
!   compiler copies, because it discards the copy too early: sections with a vector subscript, such as u([1, 3, 8]),
!   components of arrays of a derived type, such as p%m or a pointer to it, and substrings of arrays. With
!   -Warray-temporaries, gfortran warns of copies. Buffers and statuses are used until the run is over, which the
!   compiler cannot know. Therefore declare them `asynchronous` (or `target`), and keep them in scope.
! - Dimensions of subarrays are in Fortran's order, with the fastest first. `start` and variable numbers count from 0,
!   as in MPI. Counts, sizes and offsets are integer(int64).
module tapioca
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int64, error_unit
    implicit none
    private

    integer, parameter, public :: TAPIOCA_SUCCESS = 0
    integer, parameter, public :: TAPIOCA_ERR_INVALID_ARGUMENT = 1
    integer, parameter, public :: TAPIOCA_ERR_INVALID_STATE = 2
    integer, parameter, public :: TAPIOCA_ERR_SETTING = 3
    integer, parameter, public :: TAPIOCA_ERR_MISMATCH = 4
    integer, parameter, public :: TAPIOCA_ERR_NOT_FOUND = 5
    integer, parameter, public :: TAPIOCA_ERR_PERMISSION = 6
    integer, parameter, public :: TAPIOCA_ERR_IS_DIRECTORY = 7
    integer, parameter, public :: TAPIOCA_ERR_NO_SPACE = 8
    integer, parameter, public :: TAPIOCA_ERR_IO = 9
    integer, parameter, public :: TAPIOCA_ERR_MEMORY = 10
    integer, parameter, public :: TAPIOCA_ERR_UNSUPPORTED = 11
    integer, parameter, public :: TAPIOCA_ERR_INTERNAL = 99

    ! The version of this module; tapioca_get_version returns that of the library.
    integer, parameter, public :: TAPIOCA_VERSION_MAJOR = 0
    integer, parameter, public :: TAPIOCA_VERSION_MINOR = 1
    integer, parameter, public :: TAPIOCA_VERSION_PATCH = 0

    integer, parameter, public :: TAPIOCA_MODE_CREATE = 0
    integer, parameter, public :: TAPIOCA_MODE_UPDATE = 1
    integer, parameter, public :: TAPIOCA_MODE_READ = 2

    type, public :: tapioca_file
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: tapioca_step
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: tapioca_pattern
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    type, bind(C), public :: tapioca_status
        integer(c_int64_t) :: bytes = 0
        integer(c_int) :: error = 0
    end type
    type, bind(C), public :: tapioca_moved
        integer(c_int64_t) :: bytes = 0
        integer(c_int64_t) :: overlapped_bytes = 0
    end type
    type, public :: tapioca_failure
        integer :: code = TAPIOCA_SUCCESS
        integer :: rank = -1
        integer :: sys_errno = 0
        character(len=:), allocatable :: path
        character(len=:), allocatable :: text
    end type

    public :: tapioca_error_text, tapioca_last_error, tapioca_last_failure, tapioca_get_version
    public :: tapioca_open, tapioca_flush, tapioca_drain, tapioca_sync, tapioca_size, tapioca_close, tapioca_release
    public :: tapioca_init, tapioca_write, tapioca_read, tapioca_start, tapioca_progress, tapioca_wait
    public :: tapioca_finalize, tapioca_step_of
    public :: tapioca_pattern_create, tapioca_pattern_add_extents, tapioca_pattern_add_subarray
    public :: tapioca_pattern_add_block, tapioca_block_of
    public :: tapioca_pattern_set_name, tapioca_pattern_variables, tapioca_pattern_bytes
    public :: tapioca_pattern_bookkeeping_bytes, tapioca_pattern_free
    public :: tapioca_declare, tapioca_step_write, tapioca_step_read, tapioca_step_finish, tapioca_step_start
    public :: tapioca_step_progress, tapioca_step_wait, tapioca_step_received, tapioca_step_rebase
    public :: tapioca_step_retarget, tapioca_step_plan_text, tapioca_step_plan_json, tapioca_step_free

    include "interfaces.inc"

contains

    ! Trailing blanks of `path` are not part of it.
    subroutine tapioca_open(comm, path, mode, info, file, ierror)
        integer, intent(in) :: comm, mode, info
        character(len=*), intent(in) :: path
        type(tapioca_file), intent(inout) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_open(comm, trim(path)//c_null_char, mode, info, file%handle), ierror)
    end subroutine

    subroutine tapioca_flush(file, ierror)
        type(tapioca_file), intent(in) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_flush(file%handle), ierror)
    end subroutine

    subroutine tapioca_drain(file, ierror)
        type(tapioca_file), intent(in) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_drain(file%handle), ierror)
    end subroutine

    subroutine tapioca_sync(file, ierror)
        type(tapioca_file), intent(in) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_sync(file%handle), ierror)
    end subroutine

    subroutine tapioca_size(file, bytes, ierror)
        type(tapioca_file), intent(in) :: file
        integer(int64), intent(out) :: bytes
        integer, intent(out), optional :: ierror
        call deliver(c_size(file%handle, bytes), ierror)
    end subroutine

    subroutine tapioca_close(file, ierror)
        type(tapioca_file), intent(inout) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_close(file%handle), ierror)
    end subroutine

    subroutine tapioca_release(file, ierror)
        type(tapioca_file), intent(inout) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_release(file%handle), ierror)
    end subroutine

    subroutine tapioca_init(file, count, type_size, offset, nvars, ierror)
        type(tapioca_file), intent(in) :: file
        integer(int64), intent(in) :: count(:), type_size(:), offset(:)
        integer, intent(in) :: nvars
        integer, intent(out), optional :: ierror
        integer :: least, known
        least = min(size(count), size(type_size), size(offset))
        known = merge(nvars, -1, nvars <= least)  ! a negative number fails on every rank
        call deliver(c_init(file%handle, count, type_size, offset, known), ierror)
    end subroutine

    subroutine tapioca_write(file, offset, data, count, type_size, status, ierror)
        type(tapioca_file), intent(in) :: file
        integer(int64), intent(in) :: offset, count, type_size
        type(*), dimension(..), intent(in), asynchronous, target :: data
        type(tapioca_status), intent(inout), optional, asynchronous, target :: status
        integer, intent(out), optional :: ierror
        type(array_description) :: array
        type(c_ptr) :: place
        call describe(data, array)
        place = c_null_ptr
        if (present(status)) place = c_loc(status)
        call deliver(c_write(file%handle, offset, array, count, type_size, place), ierror)
    end subroutine

    subroutine tapioca_read(file, offset, data, count, type_size, status, ierror)
        type(tapioca_file), intent(in) :: file
        integer(int64), intent(in) :: offset, count, type_size
        type(*), dimension(..), intent(inout), asynchronous, target :: data
        type(tapioca_status), intent(inout), optional, asynchronous, target :: status
        integer, intent(out), optional :: ierror
        type(array_description) :: array
        type(c_ptr) :: place
        call describe(data, array)
        place = c_null_ptr
        if (present(status)) place = c_loc(status)
        call deliver(c_read(file%handle, offset, array, count, type_size, place), ierror)
    end subroutine

    subroutine tapioca_start(file, ierror)
        type(tapioca_file), intent(in) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_start(file%handle), ierror)
    end subroutine

    subroutine tapioca_progress(file, done, ierror)
        type(tapioca_file), intent(in) :: file
        logical, intent(out) :: done
        integer, intent(out), optional :: ierror
        integer(c_int) :: answer
        answer = 0
        call deliver(c_progress(file%handle, answer), ierror)
        done = answer /= 0
    end subroutine

    subroutine tapioca_wait(file, moved, ierror)
        type(tapioca_file), intent(in) :: file
        type(tapioca_moved), intent(out), optional, target :: moved
        integer, intent(out), optional :: ierror
        type(c_ptr) :: place
        place = c_null_ptr
        if (present(moved)) place = c_loc(moved)
        call deliver(c_wait(file%handle, place), ierror)
    end subroutine

    subroutine tapioca_finalize(file, ierror)
        type(tapioca_file), intent(in) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_finalize(file%handle), ierror)
    end subroutine

    subroutine tapioca_step_of(file, step, ierror)
        type(tapioca_file), intent(in) :: file
        type(tapioca_step), intent(inout) :: step
        integer, intent(out), optional :: ierror
        call deliver(c_step_of(file%handle, step%handle), ierror)
    end subroutine

    subroutine tapioca_pattern_create(pattern, ierror)
        type(tapioca_pattern), intent(inout) :: pattern
        integer, intent(out), optional :: ierror
        call deliver(c_pattern_create(pattern%handle), ierror)
    end subroutine

    subroutine tapioca_pattern_add_extents(pattern, offset, length, var, ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer(int64), intent(in) :: offset(:), length(:)
        integer, intent(out), optional, target :: var
        integer, intent(out), optional :: ierror
        integer(int64) :: n
        n = size(offset, kind=int64)
        if (size(length, kind=int64) /= n) n = -1  ! a negative number is kept as a mistake
        call deliver(c_add_extents(pattern%handle, n, offset, length, pointer_to(var)), ierror)
    end subroutine

    ! `extents` is the shape of the global array. The optional `stride` comes after the required arguments.
    subroutine tapioca_pattern_add_subarray(pattern, extents, start, count, element_size, file_offset, stride, var, &
            ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer(int64), intent(in) :: extents(:), start(:), count(:)
        integer(int64), intent(in) :: element_size, file_offset
        integer(int64), intent(in), optional :: stride(:)
        integer, intent(out), optional, target :: var
        integer, intent(out), optional :: ierror
        integer(int64), allocatable :: steps(:)
        integer :: n
        n = size(extents)
        if (size(start) /= n .or. size(count) /= n) n = -1
        if (present(stride)) then
            if (size(stride) /= n) n = -1
            steps = reversed(stride)
        else
            allocate (steps(size(extents)), source=1_int64)
        end if
        call deliver(c_add_subarray(pattern%handle, n, reversed(extents), reversed(start), reversed(count), steps, &
                element_size, file_offset, pointer_to(var)), ierror)
    end subroutine

    subroutine tapioca_pattern_add_block(pattern, extents, ranks, rank, element_size, file_offset, var, ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer(int64), intent(in) :: extents(:)
        integer, intent(in) :: ranks, rank
        integer(int64), intent(in) :: element_size, file_offset
        integer, intent(out), optional, target :: var
        integer, intent(out), optional :: ierror
        call deliver(c_add_block(pattern%handle, size(extents), reversed(extents), ranks, rank, element_size, &
                file_offset, pointer_to(var)), ierror)
    end subroutine

    subroutine tapioca_block_of(extents, ranks, rank, start, count, ierror)
        integer(int64), intent(in) :: extents(:)
        integer, intent(in) :: ranks, rank
        integer(int64), intent(out) :: start(:), count(:)
        integer, intent(out), optional :: ierror
        integer(int64) :: first(size(extents)), length(size(extents))
        integer :: n
        n = size(extents)
        if (size(start) < n .or. size(count) < n) n = -1
        call deliver(c_block_of(n, reversed(extents), ranks, rank, first, length), ierror)
        if (n < 1) return
        start(1:n) = reversed(first)
        count(1:n) = reversed(length)
    end subroutine

    ! Trailing blanks of `name` are not part of it.
    subroutine tapioca_pattern_set_name(pattern, var, name, ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer, intent(in) :: var
        character(len=*), intent(in) :: name
        integer, intent(out), optional :: ierror
        call deliver(c_set_name(pattern%handle, var, trim(name)//c_null_char), ierror)
    end subroutine

    subroutine tapioca_pattern_variables(pattern, variables, ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer, intent(out) :: variables
        integer, intent(out), optional :: ierror
        call deliver(c_variables(pattern%handle, variables), ierror)
    end subroutine

    subroutine tapioca_pattern_bytes(pattern, var, bytes, ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer, intent(in) :: var
        integer(int64), intent(out) :: bytes
        integer, intent(out), optional :: ierror
        call deliver(c_bytes(pattern%handle, var, bytes), ierror)
    end subroutine

    subroutine tapioca_pattern_bookkeeping_bytes(pattern, bytes, ierror)
        type(tapioca_pattern), intent(in) :: pattern
        integer(int64), intent(out) :: bytes
        integer, intent(out), optional :: ierror
        call deliver(c_bookkeeping_bytes(pattern%handle, bytes), ierror)
    end subroutine

    subroutine tapioca_pattern_free(pattern, ierror)
        type(tapioca_pattern), intent(inout) :: pattern
        integer, intent(out), optional :: ierror
        call deliver(c_pattern_free(pattern%handle), ierror)
    end subroutine

    subroutine tapioca_declare(file, pattern, step, ierror)
        type(tapioca_file), intent(in) :: file
        type(tapioca_pattern), intent(in) :: pattern
        type(tapioca_step), intent(inout) :: step
        integer, intent(out), optional :: ierror
        call deliver(c_declare(file%handle, pattern%handle, step%handle), ierror)
    end subroutine

    ! Moves all of `data` or, if it is contiguous, its first `bytes` bytes.
    subroutine tapioca_step_write(step, var, data, bytes, ierror)
        type(tapioca_step), intent(in) :: step
        integer, intent(in) :: var
        type(*), dimension(..), intent(in), asynchronous, target :: data
        integer(int64), intent(in), optional :: bytes
        integer, intent(out), optional :: ierror
        type(array_description) :: array
        integer(c_int64_t) :: length
        call describe(data, array)
        length = -1  ! all of it
        if (present(bytes)) length = max(bytes, 0_int64)
        call deliver(c_step_write(step%handle, var, array, length), ierror)
    end subroutine

    subroutine tapioca_step_read(step, var, data, bytes, ierror)
        type(tapioca_step), intent(in) :: step
        integer, intent(in) :: var
        type(*), dimension(..), intent(inout), asynchronous, target :: data
        integer(int64), intent(in), optional :: bytes
        integer, intent(out), optional :: ierror
        type(array_description) :: array
        integer(c_int64_t) :: length
        call describe(data, array)
        length = -1  ! all of it
        if (present(bytes)) length = max(bytes, 0_int64)
        call deliver(c_step_read(step%handle, var, array, length), ierror)
    end subroutine

    subroutine tapioca_step_finish(step, moved, ierror)
        type(tapioca_step), intent(in) :: step
        type(tapioca_moved), intent(out), optional, target :: moved
        integer, intent(out), optional :: ierror
        type(c_ptr) :: place
        place = c_null_ptr
        if (present(moved)) place = c_loc(moved)
        call deliver(c_step_finish(step%handle, place), ierror)
    end subroutine

    subroutine tapioca_step_start(step, ierror)
        type(tapioca_step), intent(in) :: step
        integer, intent(out), optional :: ierror
        call deliver(c_step_start(step%handle), ierror)
    end subroutine

    subroutine tapioca_step_progress(step, done, ierror)
        type(tapioca_step), intent(in) :: step
        logical, intent(out) :: done
        integer, intent(out), optional :: ierror
        integer(c_int) :: answer
        answer = 0
        call deliver(c_step_progress(step%handle, answer), ierror)
        done = answer /= 0
    end subroutine

    subroutine tapioca_step_wait(step, moved, ierror)
        type(tapioca_step), intent(in) :: step
        type(tapioca_moved), intent(out), optional, target :: moved
        integer, intent(out), optional :: ierror
        type(c_ptr) :: place
        place = c_null_ptr
        if (present(moved)) place = c_loc(moved)
        call deliver(c_step_wait(step%handle, place), ierror)
    end subroutine

    subroutine tapioca_step_received(step, var, bytes, ierror)
        type(tapioca_step), intent(in) :: step
        integer, intent(in) :: var
        integer(int64), intent(out) :: bytes
        integer, intent(out), optional :: ierror
        call deliver(c_step_received(step%handle, var, bytes), ierror)
    end subroutine

    subroutine tapioca_step_rebase(step, offset, ierror)
        type(tapioca_step), intent(in) :: step
        integer(int64), intent(in) :: offset
        integer, intent(out), optional :: ierror
        call deliver(c_step_rebase(step%handle, offset), ierror)
    end subroutine

    subroutine tapioca_step_retarget(step, file, ierror)
        type(tapioca_step), intent(in) :: step
        type(tapioca_file), intent(in) :: file
        integer, intent(out), optional :: ierror
        call deliver(c_step_retarget(step%handle, file%handle), ierror)
    end subroutine

    subroutine tapioca_step_plan_text(step, text, ierror)
        type(tapioca_step), intent(in) :: step
        character(len=:), allocatable, intent(out) :: text
        integer, intent(out), optional :: ierror
        type(c_ptr) :: address
        integer(c_int) :: code
        address = c_null_ptr
        code = c_plan_text(step%handle, address)
        text = from_c(address)
        call deliver(code, ierror)
    end subroutine

    subroutine tapioca_step_plan_json(step, json, ierror)
        type(tapioca_step), intent(in) :: step
        character(len=:), allocatable, intent(out) :: json
        integer, intent(out), optional :: ierror
        type(c_ptr) :: address
        integer(c_int) :: code
        address = c_null_ptr
        code = c_plan_json(step%handle, address)
        json = from_c(address)
        call deliver(code, ierror)
    end subroutine

    subroutine tapioca_step_free(step, ierror)
        type(tapioca_step), intent(inout) :: step
        integer, intent(out), optional :: ierror
        call deliver(c_step_free(step%handle), ierror)
    end subroutine

    ! What a code means, in a few words.
    function tapioca_error_text(code) result(text)
        integer, intent(in) :: code
        character(len=:), allocatable :: text
        text = from_c(c_error_text(code))
    end function

    ! One line that describes the last error of this thread.
    function tapioca_last_error() result(text)
        character(len=:), allocatable :: text
        text = from_c(c_last_error())
    end function

    subroutine tapioca_last_failure(failure, ierror)
        type(tapioca_failure), intent(out) :: failure
        integer, intent(out), optional :: ierror
        type(c_failure) :: last
        call deliver(c_last_failure(last), ierror)
        failure%code = last%code
        failure%rank = last%rank
        failure%sys_errno = last%sys_errno
        failure%path = from_c(last%path)
        failure%text = from_c(last%text)
    end subroutine

    subroutine tapioca_get_version(major, minor, patch, ierror)
        integer, intent(out) :: major, minor, patch
        integer, intent(out), optional :: ierror
        call deliver(c_get_version(major, minor, patch), ierror)
    end subroutine

    ! Returns the code in ierror if that is present; otherwise an error ends the program.
    subroutine deliver(code, ierror)
        integer(c_int), intent(in) :: code
        integer, intent(out), optional :: ierror
        if (present(ierror)) then
            ierror = code
        else if (code /= TAPIOCA_SUCCESS) then
            write (error_unit, '(a)') tapioca_last_error()
            error stop 1
        end if
    end subroutine

    function from_c(address) result(text)
        type(c_ptr), intent(in) :: address
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer(c_size_t) :: i, length
        length = 0
        if (c_associated(address)) length = c_strlen(address)
        allocate (character(len=length) :: text)
        if (length == 0) return
        call c_f_pointer(address, letters, [length])
        do i = 1, length
            text(i:i) = letters(i)
        end do
    end function

    function pointer_to(number) result(address)
        integer, intent(in), optional, target :: number
        type(c_ptr) :: address
        address = c_null_ptr
        if (present(number)) address = c_loc(number)
    end function

    pure function reversed(numbers) result(backwards)
        integer(int64), intent(in) :: numbers(:)
        integer(int64) :: backwards(size(numbers))
        backwards = numbers(size(numbers):1:-1)
    end function
end module
