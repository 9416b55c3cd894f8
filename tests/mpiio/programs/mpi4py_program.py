# mpi4py's file calls: views of every kind, all families of reads and writes, pointers and sizes, checked by hand.
import sys
import zlib
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
failures = 0
digest = 0
INT = MPI.INT.Get_size()
WRITE = MPI.MODE_RDWR | MPI.MODE_CREATE


def check(right, what):
    global failures
    if not right:
        failures += 1
        print(f"[rank {rank}] wrong: {what}", file=sys.stderr)


def ints(count, first=0):
    return array("i", (rank * 10000 + first + i for i in range(count)))


def nothing(count):
    return array("i", [-1] * count)


def same(read, wanted, what):
    global digest
    digest = zlib.crc32(bytes(read), digest)
    check(list(read) == list(wanted), what)


def freed_after(view):
    """Calls with a committed type that is freed right after the view is set."""

    def with_type(file, filetype, displacement=0, etype=MPI.INT):
        filetype.Commit()
        view(file, displacement, etype, filetype)
        filetype.Free()

    return with_type


set_view = freed_after(lambda file, at, etype, filetype: file.Set_view(at, etype, filetype, "native"))


def explicit_offsets(file):
    n = 50
    data, back = ints(n), nothing(n)
    file.Set_view(0, MPI.INT, MPI.INT)
    status = MPI.Status()
    file.Write_at_all(rank * n, data, status)
    check(status.Get_count(MPI.INT) == n, "the count of write_at_all")
    file.Sync()
    comm.Barrier()
    file.Read_at_all(rank * n, back, status)
    check(status.Get_count(MPI.INT) == n, "the count of read_at_all")
    same(back, data, "read_at_all")
    check(file.Get_size() == ranks * n * INT, "the size")


def vector_view(file):
    n, block = 6, 5
    set_view(file, MPI.INT.Create_vector(n, block, block * ranks), rank * block * INT)
    data, back = ints(n * block), nothing(n * block)
    file.Write_all(data)
    check(file.Get_position() == n * block, "the pointer after write_all")
    check(file.Get_byte_offset(block) == (rank * block + block * ranks) * INT, "the byte offset")
    file.Seek(0)
    file.Read_all(back)
    same(back, data, "read_all through a vector")


def subarray_view(file):
    rows, columns = 8, 3
    set_view(file, MPI.INT.Create_subarray([rows, columns * ranks], [rows, columns], [0, columns * rank]), 64)
    memory = MPI.INT.Create_vector(rows * columns, 1, 2).Commit()
    data, back = ints(2 * rows * columns), nothing(2 * rows * columns)
    file.Write_all([data, 1, memory])
    file.Seek(0, MPI.SEEK_SET)
    file.Read_all([back, 1, memory])
    memory.Free()
    same(back, [value if i % 2 == 0 else -1 for i, value in enumerate(data)], "read_all into every other element")


def irregular_view(file):
    lengths = [1, 4, 2]
    places = [(i * 7 * ranks + rank * 7) * INT for i in range(3)]
    set_view(file, MPI.INT.Create_hindexed(lengths, places).Create_resized(0, 3 * 7 * ranks * INT), 12)
    data, back = ints(14), nothing(14)
    file.Write_at_all(0, data)
    file.Read_at_all(0, back)
    same(back, data, "read_at_all through an irregular view, twice its extent")


def split_calls(file):
    file.Set_view(rank * 400, MPI.BYTE, MPI.BYTE)
    data, back = ints(100), nothing(100)
    file.Write_all_begin(data)
    file.Write_all_end(data)
    file.Seek(0)
    file.Read_all_begin(back)
    status = MPI.Status()
    file.Read_all_end(back, status)
    check(status.Get_count(MPI.BYTE) == 400, "the count of read_all_end")
    same(back, data, "split calls")
    data, back = ints(50, 3000), nothing(50)
    file.Write_at_all_begin(100, data)
    file.Write_at_all_end(data)
    file.Read_at_all_begin(100, back)
    file.Read_at_all_end(back)
    same(back, data, "split calls at an offset")


def others(file):
    """Calls that are not collective, or that do not block, between collective ones on the same handle."""
    file.Set_view(0, MPI.INT, MPI.INT)
    data, back = ints(30), nothing(30)
    file.Write_at(rank * 30, data)
    file.Read_at_all(rank * 30, back)
    same(back, data, "a rank reads what it wrote")
    file.Iwrite_at_all(rank * 30, ints(30, 500)).Wait()
    file.Iread_at_all(rank * 30, back).Wait()
    same(back, ints(30, 500), "calls that do not block")
    file.Sync()
    comm.Barrier()
    file.Seek_shared(0)
    file.Write_ordered(ints(10, 7))
    file.Seek_shared(0)
    file.Read_ordered(back)
    file.Set_atomicity(True)
    file.Write_at_all(rank * 30, data)
    file.Read_at_all(rank * 30, back)
    same(back, data, "atomic mode")
    file.Set_atomicity(False)
    file.Write_at_all(rank * 30, ints(30) if rank % 2 == 0 else array("i"))
    file.Preallocate(ranks * 1000)
    file.Set_size(ranks * 500)
    check(file.Get_size() == ranks * 500, "the size that was set")


def errors():
    try:
        MPI.File.Open(comm, "not there", MPI.MODE_RDONLY)
        check(False, "a file that is not there was opened")
    except MPI.Exception as error:
        check(error.Get_error_class() in (MPI.ERR_NO_SUCH_FILE, MPI.ERR_FILE), "the class of a missing file")
    file = MPI.File.Open(MPI.COMM_SELF, f"own{rank}", WRITE | MPI.MODE_DELETE_ON_CLOSE)
    check(file.Get_amode() & MPI.MODE_DELETE_ON_CLOSE, "the mode")
    file.Write_all(ints(20))
    file.Close()


for number, part in enumerate([explicit_offsets, vector_view, subarray_view, irregular_view, split_calls, others]):
    file = MPI.File.Open(comm, f"{number}.dat", WRITE, MPI.INFO_NULL)
    part(file)
    file.Close()
errors()
total = comm.allreduce(failures)
digests = comm.gather(digest)
if rank == 0:
    print(f"mpi4py on {ranks} ranks: {total} wrong, digest {digests}")
sys.exit(1 if total else 0)
