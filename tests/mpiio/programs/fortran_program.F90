! MPI-IO from Fortran, in each of the three styles: compiled with MPIF_H, USE_MPI or USE_MPI_F08 defined.
#if defined(MPIF_H)
#define FILE_HANDLE integer
#define TYPE_HANDLE integer
#define ERRHANDLER integer
#define REQUEST integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STYLE "mpif.h"
#elif defined(USE_MPI)
#define MODULE mpi
#define FILE_HANDLE integer
#define TYPE_HANDLE integer
#define ERRHANDLER integer
#define REQUEST integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STYLE "use mpi"
#else
#define MODULE mpi_f08
#define FILE_HANDLE type(MPI_File)
#define TYPE_HANDLE type(MPI_Datatype)
#define ERRHANDLER type(MPI_Errhandler)
#define REQUEST type(MPI_Request)
#define STATUS(name) type(MPI_Status) :: name
#define STYLE "use mpi_f08"
#endif

! What went wrong in this process, and what the error handler was told.
module shared
    implicit none
    integer, save :: rank = 0, ranks = 1, failures = 0, handled = 0, handled_class = 0
    integer(8), save :: digest = 0
contains
    subroutine check(right, what)
        logical, intent(in) :: right
        character(len=*), intent(in) :: what
        if (right) return
        failures = failures + 1
        write (0, '(a, i0, 2a)') "[rank ", rank, "] wrong: ", what
    end subroutine
    subroutine add_to_digest(values)
        integer, intent(in) :: values(:)
        integer :: i
        do i = 1, size(values)
            digest = mod(digest * 31 + iand(values(i), 65535), 1000000007_8)
        end do
    end subroutine
end module

module handlers
    implicit none
contains
    subroutine on_error(file, code)
        use shared
#ifdef MPIF_H
        implicit none
        include 'mpif.h'
#else
        use MODULE
        implicit none
#endif
        FILE_HANDLE :: file
        integer :: code, ierror
        handled = handled + 1
        call MPI_Error_class(code, handled_class, ierror)
    end subroutine
end module

program fortran_program
    use shared
    use handlers
#ifdef MPIF_H
    implicit none
    include 'mpif.h'
#else
    use MODULE
    implicit none
#endif
    integer :: ierror, total
    integer(8) :: sum_of_digests
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call contiguous()
    call through_a_view()
    call beside_the_program()
    call absolute_addresses()
    call with_an_error_handler()
    digest = digest * (rank + 1)
    call MPI_Reduce(digest, sum_of_digests, 1, MPI_INTEGER8, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (rank == 0) print '(2a, i0, a, i0, a, i0)', STYLE, " on ", ranks, " ranks: ", total, &
        " wrong, digest ", sum_of_digests
    call MPI_Finalize(ierror)
    if (total > 0) error stop 1

contains

    subroutine right(ierror, what)
        integer, intent(in) :: ierror
        character(len=*), intent(in) :: what
        call check(ierror == MPI_SUCCESS, what)
    end subroutine

    subroutine open_file(name, file)
        character(len=*), intent(in) :: name
        FILE_HANDLE, intent(out) :: file
        integer :: ierror
        call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR + MPI_MODE_CREATE, MPI_INFO_NULL, file, ierror)
        call right(ierror, "open "//name)
    end subroutine

    subroutine contiguous()
        integer, parameter :: n = 300
        integer :: data(n), back(n), count, ierror, i
        real(8) :: reals(n), reals_back(n)
        integer(MPI_OFFSET_KIND) :: at, length
        FILE_HANDLE :: file
        STATUS(state)
        call open_file("contiguous.dat  ", file)  ! trailing blanks are not part of the name
        data = [(rank * 1000 + i, i = 1, n)]
        at = int(rank, MPI_OFFSET_KIND) * n * 4
        call MPI_File_write_at_all(file, at, data, n, MPI_INTEGER, state, ierror)
        call right(ierror, "write_at_all")
        call MPI_Get_count(state, MPI_INTEGER, count, ierror)
        call check(count == n, "the count of write_at_all")
        call MPI_File_read_at_all(file, at, back, n, MPI_INTEGER, state, ierror)
        call MPI_Get_count(state, MPI_INTEGER, count, ierror)
        call check(count == n, "the count of read_at_all")
        call check(all(back == data), "read_at_all")
        call add_to_digest(back)
        call MPI_Barrier(MPI_COMM_WORLD, ierror)
        call MPI_File_get_size(file, length, ierror)
        call check(length == int(ranks, MPI_OFFSET_KIND) * n * 4, "get_size")

        at = int(ranks, MPI_OFFSET_KIND) * n * 4 + int(rank, MPI_OFFSET_KIND) * n * 8
        reals = [(rank + i / 8.0d0, i = 1, n)]
        call MPI_File_write_at_all(file, at, reals, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierror)
        call right(ierror, "write_at_all of reals")
        call MPI_File_read_at_all(file, at, reals_back, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierror)
        call check(all(reals_back == reals), "read_at_all of reals")
        call MPI_File_close(file, ierror)
        call right(ierror, "close")
    end subroutine

    subroutine through_a_view()
        integer, parameter :: rows = 6, columns = 5
        integer :: data(rows, columns), back(rows, columns), wide(2 * rows, columns), ierror, count, i
        integer(MPI_OFFSET_KIND) :: position, displacement, place
        TYPE_HANDLE :: part, every_other
        FILE_HANDLE :: file
        STATUS(state)
        call open_file("view.dat", file)
        call MPI_Type_create_subarray(2, [rows, columns * ranks], [rows, columns], [0, columns * rank], &
            MPI_ORDER_FORTRAN, MPI_INTEGER, part, ierror)
        call MPI_Type_commit(part, ierror)
        displacement = 128
        call MPI_File_set_view(file, displacement, MPI_INTEGER, part, "native", MPI_INFO_NULL, ierror)
        call right(ierror, "set_view")
        call MPI_Type_free(part, ierror)
        data = reshape([(rank * 100 + i, i = 1, rows * columns)], [rows, columns])
        call MPI_File_write_all(file, data, rows * columns, MPI_INTEGER, state, ierror)
        call right(ierror, "write_all")
        call MPI_Get_count(state, MPI_INTEGER, count, ierror)
        call check(count == rows * columns, "the count of write_all")
        call MPI_File_get_position(file, position, ierror)
        call check(position == rows * columns, "get_position")
        call MPI_File_get_byte_offset(file, 0_MPI_OFFSET_KIND, place, ierror)
        call check(place == 128 + 4 * rows * columns * rank, "get_byte_offset")

        ! read into every other row of a wider array
        call MPI_Type_vector(rows * columns, 1, 2, MPI_INTEGER, every_other, ierror)
        call MPI_Type_commit(every_other, ierror)
        wide = -1
        call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierror)
        call MPI_File_read_all(file, wide, 1, every_other, state, ierror)
        call right(ierror, "read_all")
        call MPI_Get_count(state, every_other, count, ierror)
        call check(count == 1, "the count of read_all")
        call check(all(wide(1::2, :) == data) .and. all(wide(2::2, :) == -1), "read_all into a vector")
        call MPI_Type_free(every_other, ierror)

        call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierror)
        call MPI_File_read_all_begin(file, back, rows * columns, MPI_INTEGER, ierror)
        call MPI_File_read_all_end(file, back, state, ierror)
        call MPI_Get_count(state, MPI_INTEGER, count, ierror)
        call check(count == rows * columns, "the count of read_all_end")
        call check(all(back == data), "read_all_begin and read_all_end")
        call add_to_digest(reshape(back, [rows * columns]))
        call MPI_File_close(file, ierror)
    end subroutine

    subroutine beside_the_program()
        integer, parameter :: n = 200
        integer, asynchronous, save :: data(n, 2), back(n, 2)
        integer :: count, ierror, i
        integer(MPI_OFFSET_KIND) :: at
        logical :: done
        FILE_HANDLE :: file
        REQUEST :: requests(2)
        STATUS(state)
        call open_file("beside.dat", file)
        data = reshape([(rank * 1000 + i, i = 1, 2 * n)], [n, 2])
        do i = 1, 2
            at = int(ranks * (i - 1) + rank, MPI_OFFSET_KIND) * n * 4
            call MPI_File_iwrite_at_all(file, at, data(:, i), n, MPI_INTEGER, requests(i), ierror)
            call right(ierror, "iwrite_at_all")
        end do
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
        call right(ierror, "waitall")
        do i = 1, 2
            at = int(ranks * (i - 1) + rank, MPI_OFFSET_KIND) * n * 4
            call MPI_File_iread_at_all(file, at, back(:, i), n, MPI_INTEGER, requests(i), ierror)
            call right(ierror, "iread_at_all")
        end do
        call MPI_Wait(requests(1), state, ierror)
        call MPI_Get_count(state, MPI_INTEGER, count, ierror)
        call check(count == n, "the count of iread_at_all")
        done = .false.
        do while (.not. done)
            call MPI_Test(requests(2), done, state, ierror)
        end do
        call check(all(back == data), "iread_at_all")
        call add_to_digest(reshape(back, [2 * n]))
        call MPI_File_close(file, ierror)
    end subroutine

    ! One type that names the places of two arrays, at MPI_BOTTOM.
    subroutine absolute_addresses()
        integer, asynchronous, save :: first(40), second(60)
        integer(MPI_ADDRESS_KIND) :: places(2)
        integer(MPI_OFFSET_KIND) :: at
        integer :: ierror, i, count
        TYPE_HANDLE :: both
        FILE_HANDLE :: file
        STATUS(state)
        call open_file("absolute.dat", file)
        call MPI_Get_address(first, places(1), ierror)
        call MPI_Get_address(second, places(2), ierror)
        call MPI_Type_create_hindexed(2, [40, 60], places, MPI_INTEGER, both, ierror)
        call MPI_Type_commit(both, ierror)
        first = [(rank * 50 + i, i = 1, 40)]
        second = [(-rank * 50 - i, i = 1, 60)]
        at = 400 * rank
        call MPI_File_write_at_all(file, at, MPI_BOTTOM, 1, both, state, ierror)
        call right(ierror, "write_at_all from MPI_BOTTOM")
        call MPI_Get_elements(state, both, count, ierror)
        call check(count == 100, "the elements written from MPI_BOTTOM")
        call cleared(first, second)
        call MPI_File_read_at_all(file, at, MPI_BOTTOM, 1, both, MPI_STATUS_IGNORE, ierror)
        call right(ierror, "read_at_all to MPI_BOTTOM")
        call check(all(first == [(rank * 50 + i, i = 1, 40)]), "the first array")
        call check(all(second == [(-rank * 50 - i, i = 1, 60)]), "the second array")
        call add_to_digest(first)
        call MPI_Type_free(both, ierror)
        call MPI_File_close(file, ierror)
    end subroutine

    subroutine cleared(first, second)
        integer, intent(out) :: first(:), second(:)
        first = 0
        second = 0
    end subroutine

    ! The call failed, and the handler was called for it: once, and with the same code.
    subroutine check_error(code, calls, what)
        integer, intent(in) :: code, calls
        character(len=*), intent(in) :: what
        integer :: class, ierror
        call check(code /= MPI_SUCCESS, what//" is an error")
        call check(handled == calls, what//": how often the error handler was called")
        call MPI_Error_class(code, class, ierror)
        call check(class == handled_class, what//": the class that the error handler saw")
        if (rank == 0) print '(2a, i0)', what, ": class ", class
    end subroutine

    subroutine with_an_error_handler()
        integer :: data(10), ierror
        ERRHANDLER :: handler
        FILE_HANDLE :: file
        call MPI_File_open(MPI_COMM_WORLD, "not there", MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierror)
        call check(ierror /= MPI_SUCCESS, "a file that is not there was opened")
        call MPI_File_open(MPI_COMM_WORLD, "view.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierror)
        call MPI_File_create_errhandler(on_error, handler, ierror)
        call MPI_File_set_errhandler(file, handler, ierror)
        call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, data, 10, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
        call check_error(ierror, 1, "writing to a file that is open for reading")
        call MPI_File_read_all(file, data, -1, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
        call check_error(ierror, 2, "a negative count")
        call MPI_File_read_all(file, data, 10, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
        call right(ierror, "reading goes on after the error")
        call add_to_digest(data)
        call MPI_File_close(file, ierror)
        call MPI_Errhandler_free(handler, ierror)
    end subroutine
end program
