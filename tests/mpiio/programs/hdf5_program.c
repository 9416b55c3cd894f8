/* Parallel HDF5: every kind of selection on every kind of storage, collective and independent, read back and checked.
 */
#include <hdf5.h>
#include <stdlib.h>

#include "check.h"

enum { columns = 40, rows_each = 6, fill = -1 };
enum selection { rows, interleaved, blocks, joined, points, some_ranks, selections };
enum storage { contiguous, chunked, filled_early, compressed, converted, storages };
enum memory { dense, gaps };

static char const* const selection_names[] = {"rows", "interleaved", "blocks", "joined", "points", "some_ranks"};
static char const* const storage_names[] = {"contiguous", "chunked", "filled_early", "compressed", "converted"};
static int all_rows;

/* The rank that writes an element, or -1. What select_part() must agree with. */
static int owner(enum selection selection, int row, int column)
{
    switch (selection) {
    case rows: return row / rows_each;
    case interleaved: return column < columns / all_ranks * all_ranks ? column % all_ranks : -1;
    case blocks: return row % 3 != 2 && column % 10 < 3 ? row / rows_each : -1;
    case joined: return column < 5 || column >= 30 ? row / rows_each : column == 17 ? row % all_ranks : -1;
    case points: return (row * columns + column) % 7 == 0 ? row / rows_each : -1;
    default: return row / rows_each % 2 == 0 ? row / rows_each : -1;
    }
}

static void select_part(hid_t space, enum selection selection)
{
    hsize_t const first = (hsize_t)(my_rank * rows_each), each = rows_each, ranks = (hsize_t)all_ranks;
    if (selection == rows || selection == some_ranks) {
        hsize_t const start[] = {first, 0}, count[] = {each, columns};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (selection == some_ranks && my_rank % 2 == 1) H5Sselect_none(space);
    } else if (selection == interleaved) {
        hsize_t const start[] = {0, (hsize_t)my_rank}, stride[] = {1, ranks};
        hsize_t const count[] = {(hsize_t)all_rows, columns / ranks};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL);
    } else if (selection == blocks) {
        hsize_t const start[] = {first, 0}, stride[] = {3, 10}, count[] = {each / 3, columns / 10}, block[] = {2, 3};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block);
    } else if (selection == joined) {
        hsize_t const left[] = {first, 0}, right[] = {first, 30}, line[] = {(hsize_t)my_rank, 17};
        hsize_t const narrow[] = {each, 5}, wide[] = {each, 10}, stride[] = {ranks, 1};
        hsize_t const thin[] = {(hsize_t)(all_rows / all_ranks), 1};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, left, NULL, narrow, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_OR, right, NULL, wide, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_OR, line, stride, thin, NULL);
    } else {
        hsize_t at[rows_each * columns * 2];
        size_t n = 0;
        for (int row = (int)first; row < (int)(first + each); ++row)
            for (int column = 0; column < columns; ++column)
                if (owner(points, row, column) == my_rank) {
                    at[2 * n] = (hsize_t)row;
                    at[2 * n++ + 1] = (hsize_t)column;
                }
        H5Sselect_elements(space, H5S_SELECT_SET, n, at);
    }
}

static int value(int number, int row, int column)
{
    return (number * 131 + row * 41 + column) % 30011; /* fits into two bytes */
}

static hid_t transfer(int collective, int number)
{
    hid_t const list = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(list, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
    if (collective && number % 3 == 1) H5Pset_dxpl_mpio_chunk_opt(list, H5FD_MPIO_CHUNK_MULTI_IO);
    if (collective && number % 3 == 2) H5Pset_dxpl_mpio_collective_opt(list, H5FD_MPIO_INDIVIDUAL_IO);
    return list;
}

static hid_t create(hid_t file, char const* name, enum storage storage)
{
    hsize_t const size[] = {(hsize_t)all_rows, columns}, most[] = {H5S_UNLIMITED, columns}, chunk[] = {5, 7};
    hid_t const space = H5Screate_simple(2, size, storage == chunked ? most : NULL);
    hid_t const list = H5Pcreate(H5P_DATASET_CREATE);
    int const nothing = fill;
    H5Pset_fill_value(list, H5T_NATIVE_INT, &nothing);
    H5Pset_obj_track_times(list, 0);
    if (storage == chunked || storage == filled_early || storage == compressed) H5Pset_chunk(list, 2, chunk);
    if (storage == compressed) H5Pset_deflate(list, 1);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(list, H5D_FILL_TIME_ALLOC);
    hid_t const type = storage == converted ? H5T_STD_I16BE : H5T_NATIVE_INT;
    hid_t const set = H5Dcreate(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    check(set >= 0, name);
    H5Pclose(list);
    H5Sclose(space);
    return set;
}

/* Writes this rank's part, or reads and checks it. `number` makes the values different. */
static void move_part(hid_t set, enum selection selection, enum memory memory, int collective, int number, int write)
{
    hid_t const space = H5Dget_space(set);
    select_part(space, selection);
    hsize_t const elements = (hsize_t)H5Sget_select_npoints(space), step = memory == gaps ? 3 : 1, start = 0;
    hsize_t const room = (elements + 1) * step;
    hid_t const mine = H5Screate_simple(1, &room, NULL);
    if (elements > 0)
        H5Sselect_hyperslab(mine, H5S_SELECT_SET, &start, &step, &elements, NULL);
    else
        H5Sselect_none(mine);
    int* const data = malloc(room * sizeof *data);
    for (hsize_t i = 0; i < room; ++i) data[i] = -7;
    hid_t const list = transfer(collective, number);
    if (!write) check(H5Dread(set, H5T_NATIVE_INT, mine, space, list, data) >= 0, "H5Dread of a part");
    hsize_t i = 0;
    for (int row = 0; row < all_rows; ++row)
        for (int column = 0; column < columns; ++column)
            if (owner(selection, row, column) == my_rank) {
                if (write)
                    data[i * step] = value(number, row, column);
                else
                    check(data[i * step] == value(number, row, column), "an element of a part");
                ++i;
            }
    check(i == elements, "the number of elements selected");
    if (write)
        check(H5Dwrite(set, H5T_NATIVE_INT, mine, space, list, data) >= 0, "H5Dwrite");
    else
        add_to_digest(data, room * sizeof *data);
    for (i = 0; i < room; ++i)
        if (i % step != 0) check(data[i] == -7, "memory between elements");
    free(data);
    H5Pclose(list);
    H5Sclose(mine);
    H5Sclose(space);
}

static void check_whole(hid_t set, enum selection selection, int collective, int number)
{
    int* const data = malloc((size_t)all_rows * columns * sizeof *data);
    hid_t const list = transfer(collective, number);
    check(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, data) >= 0, "H5Dread");
    for (int row = 0; row < all_rows; ++row)
        for (int column = 0; column < columns; ++column) {
            int const wanted = owner(selection, row, column) < 0 ? fill : value(number, row, column);
            check(data[row * columns + column] == wanted, "an element of the whole");
        }
    add_to_digest(data, (size_t)all_rows * columns * sizeof *data);
    H5Pclose(list);
    free(data);
}

/* A dataset that grows, a row of every rank at a time. */
static void grow(hid_t file)
{
    hsize_t size[] = {2, columns};
    hsize_t const most[] = {H5S_UNLIMITED, columns}, chunk[] = {2, 16}, one[] = {1, columns};
    hid_t const space = H5Screate_simple(2, size, most), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, chunk);
    H5Pset_obj_track_times(list, 0);
    hid_t const set = H5Dcreate(file, "growing", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    hid_t const all = transfer(1, 0), mine = H5Screate_simple(2, one, NULL);
    double line[columns];
    for (int step = 0; step < 3; ++step) {
        size[0] = (hsize_t)(all_ranks * (step + 1));
        check(H5Dset_extent(set, size) >= 0, "H5Dset_extent");
        hid_t const now = H5Dget_space(set);
        hsize_t const at[] = {(hsize_t)(all_ranks * step + my_rank), 0};
        H5Sselect_hyperslab(now, H5S_SELECT_SET, at, NULL, one, NULL);
        for (int i = 0; i < columns; ++i) line[i] = step * 100 + my_rank + i / 64.0;
        check(H5Dwrite(set, H5T_NATIVE_DOUBLE, mine, now, all, line) >= 0, "H5Dwrite of a step");
        H5Sclose(now);
    }
    double* const back = malloc(3 * (size_t)all_ranks * sizeof line);
    check(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, all, back) >= 0, "H5Dread of what grew");
    for (int row = 0; row < 3 * all_ranks; ++row)
        for (int i = 0; i < columns; ++i)
            check(back[row * columns + i] == row / all_ranks * 100 + row % all_ranks + i / 64.0, "a row that grew");
    free(back);
    H5Sclose(mine);
    H5Pclose(all);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
}

static void name_of(char* name, enum selection selection, enum storage storage, int collective)
{
    sprintf(name, "%s %s %s", selection_names[selection], storage_names[storage], collective ? "all" : "one");
}

/* Filters need collective writes in HDF5; of the other cases some will do. */
static int possible(enum storage storage, int collective, int collective_metadata)
{
    if (collective_metadata) return collective && storage != filled_early && storage != converted;
    return collective || storage == contiguous || storage == chunked;
}

static void write_and_read(char const* path, int collective_metadata)
{
    hid_t const access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    if (collective_metadata) {
        H5Pset_coll_metadata_write(access, 1);
        H5Pset_all_coll_metadata_ops(access, 1);
        H5Pset_alignment(access, 1, 4096);
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(file >= 0, path);
    char name[64];
    int number = 0;
    for (int storage = 0; storage < storages; ++storage)
        for (int selection = 0; selection < selections; ++selection)
            for (int collective = 0; collective < 2; ++collective) {
                ++number;
                if (!possible((enum storage)storage, collective, collective_metadata)) continue;
                name_of(name, (enum selection)selection, (enum storage)storage, collective);
                hid_t const set = create(file, name, (enum storage)storage);
                move_part(set, (enum selection)selection, number % 2 ? gaps : dense, collective, number, 1);
                H5Dclose(set);
            }
    grow(file);
    H5Fclose(file);

    file = H5Fopen(path, H5F_ACC_RDONLY, access);
    check(file >= 0, path);
    number = 0;
    for (int storage = 0; storage < storages; ++storage)
        for (int selection = 0; selection < selections; ++selection)
            for (int collective = 0; collective < 2; ++collective) {
                ++number;
                if (!possible((enum storage)storage, collective, collective_metadata)) continue;
                name_of(name, (enum selection)selection, (enum storage)storage, collective);
                hid_t const set = H5Dopen(file, name, H5P_DEFAULT);
                move_part(set, (enum selection)selection, number % 2 ? dense : gaps, number % 4 != 0, number, 0);
                check_whole(set, (enum selection)selection, collective, number);
                H5Dclose(set);
            }
    H5Fclose(file);
    H5Pclose(access);
}

int main(int argc, char** argv)
{
    begin(&argc, &argv);
    all_rows = all_ranks * rows_each;
    write_and_read("plain.h5", 0);
    write_and_read("collective_metadata.h5", 1);
    H5close();
    return finish("hdf5");
}
