/* PnetCDF: fixed and record variables, blocking, posted and buffered calls, strides, maps, lists and fill values. */
#include <pnetcdf.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { lines_each = 4, width = 30, records = 3 };

static MPI_Offset all_lines;

static void right(int error, char const* what)
{
    if (error != NC_NOERR) fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(error));
    check(error == NC_NOERR, what);
}

static int value(int variable, MPI_Offset record, MPI_Offset line, MPI_Offset column)
{
    return (int)(variable * 100000 + record * 10000 + line * 100 + column);
}

static void fill_lines(int* data, int variable, MPI_Offset record)
{
    for (int line = 0; line < lines_each; ++line)
        for (int column = 0; column < width; ++column)
            data[line * width + column] = value(variable, record, my_rank * lines_each + line, column);
}

static int define(int nc, char const* name, nc_type type, int dimensions, int const* ids)
{
    int variable = -1;
    right(ncmpi_def_var(nc, name, type, dimensions, ids, &variable), name);
    return variable;
}

enum { whole, strided, mapped, listed, posted, buffered, alone, as_double, untouched, fixed_variables };
enum { first_record = fixed_variables, second_record, posted_record, variables };
static char const* const names[] = {"whole",     "strided",      "mapped",        "listed",
                                    "posted",    "buffered",     "alone",         "as_double",
                                    "untouched", "first_record", "second_record", "posted_record"};

static void write_fixed(int nc, int const* variable)
{
    MPI_Offset const start[] = {my_rank * lines_each, 0}, count[] = {lines_each, width};
    int data[lines_each * width], turned[width * lines_each], request[8], status[8];
    double real[lines_each * width];

    fill_lines(data, whole, 0);
    right(ncmpi_put_vara_int_all(nc, variable[whole], start, count, data), "put_vara_all");

    /* every all_ranks-th line, every third column */
    MPI_Offset const first[] = {my_rank, 0}, some[] = {lines_each, width / 3}, stride[] = {all_ranks, 3};
    for (int i = 0; i < lines_each; ++i)
        for (int j = 0; j < width / 3; ++j)
            data[i * (width / 3) + j] = value(strided, 0, my_rank + i * all_ranks, 3 * j);
    right(ncmpi_put_vars_int_all(nc, variable[strided], first, some, stride, data), "put_vars_all");

    MPI_Offset const map[] = {1, lines_each};
    for (int i = 0; i < lines_each; ++i)
        for (int j = 0; j < width; ++j) turned[j * lines_each + i] = value(mapped, 0, my_rank * lines_each + i, j);
    right(ncmpi_put_varm_int_all(nc, variable[mapped], start, count, NULL, map, turned), "put_varm_all");

    /* pieces of growing width, one in each of the lines */
    MPI_Offset starts[lines_each][2], counts[lines_each][2], *at[lines_each], *size[lines_each];
    int n = 0;
    for (int i = 0; i < lines_each; ++i) {
        starts[i][0] = my_rank * lines_each + i;
        starts[i][1] = 2 * i;
        counts[i][0] = 1;
        counts[i][1] = 3 + i;
        at[i] = starts[i];
        size[i] = counts[i];
        for (int j = 0; j < 3 + i; ++j) data[n++] = value(listed, 0, starts[i][0], 2 * i + j);
    }
    int const pieces = my_rank == all_ranks - 1 ? 0 : lines_each; /* the last rank has none */
    right(ncmpi_put_varn_int_all(nc, variable[listed], pieces, at, size, data), "put_varn_all");

    /* one request a line, waited for together */
    int lines[lines_each * width];
    fill_lines(lines, posted, 0);
    for (int i = 0; i < lines_each; ++i) {
        MPI_Offset const line[] = {my_rank * lines_each + i, 0}, one[] = {1, width};
        right(ncmpi_iput_vara_int(nc, variable[posted], line, one, lines + i * width, &request[i]), "iput_vara");
    }
    right(ncmpi_wait_all(nc, lines_each, request, status), "wait_all");
    for (int i = 0; i < lines_each; ++i) right(status[i], "a request");

    right(ncmpi_buffer_attach(nc, sizeof lines), "buffer_attach");
    fill_lines(lines, buffered, 0);
    for (int i = 0; i < lines_each; ++i) {
        MPI_Offset const line[] = {my_rank * lines_each + i, 0}, one[] = {1, width};
        right(ncmpi_bput_vara_int(nc, variable[buffered], line, one, lines + i * width, &request[i]), "bput_vara");
    }
    memset(lines, 0, sizeof lines);
    right(ncmpi_wait_all(nc, lines_each, request, status), "wait_all of buffered");
    right(ncmpi_buffer_detach(nc), "buffer_detach");

    right(ncmpi_begin_indep_data(nc), "begin_indep_data");
    fill_lines(data, alone, 0);
    right(ncmpi_put_vara_int(nc, variable[alone], start, count, data), "put_vara");
    right(ncmpi_end_indep_data(nc), "end_indep_data");

    for (int i = 0; i < lines_each * width; ++i)
        real[i] = value(as_double, 0, my_rank * lines_each + i / width, i % width);
    right(ncmpi_put_vara_double_all(nc, variable[as_double], start, count, real), "put_vara_double_all");
}

static void write_records(int nc, int const* variable)
{
    MPI_Offset const count[] = {1, lines_each, width};
    int data[records][lines_each * width], request[records], status[records];
    for (int record = 0; record < records; ++record) {
        MPI_Offset const start[] = {record, my_rank * lines_each, 0};
        fill_lines(data[0], first_record, record);
        right(ncmpi_put_vara_int_all(nc, variable[first_record], start, count, data[0]), "put_vara_all of a record");
        fill_lines(data[0], second_record, record);
        right(ncmpi_put_vara_int_all(nc, variable[second_record], start, count, data[0]), "put_vara_all of a record");
    }
    for (int record = 0; record < records; ++record) {
        MPI_Offset const start[] = {record, my_rank * lines_each, 0};
        fill_lines(data[record], posted_record, record);
        right(ncmpi_iput_vara_int(nc, variable[posted_record], start, count, data[record], &request[record]), "iput");
    }
    right(ncmpi_wait_all(nc, records, request, status), "wait_all of records");
}

static int wanted(int variable, MPI_Offset record, MPI_Offset line, MPI_Offset column)
{
    MPI_Offset const in_rank = line % lines_each;
    if (variable == untouched) return 77;
    if (variable == strided && column % 3 != 0) return NC_FILL_INT;
    if (variable == listed && (line / lines_each == all_ranks - 1 || column < 2 * in_rank || column >= 3 * in_rank + 3))
        return NC_FILL_INT;
    return value(variable, record, line, column);
}

/* Everything, by way of the lines of the next rank, in each of several kinds of call. */
static void read_back(int nc, int const* variable)
{
    int const other = (my_rank + 1) % all_ranks;
    int data[variables][lines_each * width], request[variables], status[variables];
    for (int record = 0; record < records; ++record)
        for (int kind = 0; kind < 3; ++kind) {
            for (int v = record == 0 ? 0 : fixed_variables; v < variables; ++v) {
                MPI_Offset const start[] = {record, other * lines_each, 0}, count[] = {1, lines_each, width};
                MPI_Offset const stride[] = {1, 1, 1};
                int const skip = v < fixed_variables;
                memset(data[v], 0, sizeof data[v]);
                if (kind == 0)
                    right(ncmpi_get_vara_int_all(nc, variable[v], start + skip, count + skip, data[v]), "get_vara_all");
                else if (kind == 1)
                    right(ncmpi_get_vars_int_all(nc, variable[v], start + skip, count + skip, stride, data[v]),
                          "get_vars");
                else
                    right(ncmpi_iget_vara_int(nc, variable[v], start + skip, count + skip, data[v], &request[v]),
                          "iget");
            }
            int const first = record == 0 ? 0 : fixed_variables;
            if (kind == 2) right(ncmpi_wait_all(nc, variables - first, request + first, status + first), "wait_all");
            for (int v = first; v < variables; ++v) {
                for (int i = 0; i < lines_each * width; ++i)
                    check(data[v][i] == wanted(v, record, other * lines_each + i / width, i % width), names[v]);
                add_to_digest(data[v], sizeof data[v]);
            }
        }
}

static void write_and_read(char const* path, int format)
{
    int nc = -1, variable[variables], ids[3], late = -1;
    right(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | format, MPI_INFO_NULL, &nc), path);
    right(ncmpi_set_fill(nc, NC_FILL, NULL), "set_fill");
    right(ncmpi_def_dim(nc, "time", NC_UNLIMITED, &ids[0]), "def_dim");
    right(ncmpi_def_dim(nc, "line", all_lines, &ids[1]), "def_dim");
    right(ncmpi_def_dim(nc, "column", width, &ids[2]), "def_dim");
    for (int v = 0; v < variables; ++v)
        variable[v] = v < fixed_variables ? define(nc, names[v], v == as_double ? NC_DOUBLE : NC_INT, 2, ids + 1)
                                          : define(nc, names[v], NC_INT, 3, ids);
    int const own_fill = 77;
    right(ncmpi_def_var_fill(nc, variable[untouched], 0, &own_fill), "def_var_fill");
    right(ncmpi_put_att_text(nc, NC_GLOBAL, "title", 8, "programs"), "put_att");
    right(ncmpi_enddef(nc), "enddef");
    write_fixed(nc, variable);
    write_records(nc, variable);
    right(ncmpi_redef(nc), "redef"); /* a longer header and one more variable move the records */
    char text[3000];
    memset(text, 'x', sizeof text);
    right(ncmpi_put_att_text(nc, NC_GLOBAL, "history", sizeof text, text), "put_att");
    late = define(nc, "late", NC_SHORT, 1, ids + 1);
    right(ncmpi_enddef(nc), "enddef");
    MPI_Offset const start = my_rank * lines_each, count = lines_each;
    short const four[lines_each] = {1, 2, 3, (short)my_rank};
    right(ncmpi_put_vara_short_all(nc, late, &start, &count, four), "put_vara_short_all");
    right(ncmpi_close(nc), "close");

    right(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &nc), path);
    read_back(nc, variable);
    right(ncmpi_close(nc), "close");
}

int main(int argc, char** argv)
{
    begin(&argc, &argv);
    all_lines = (MPI_Offset)all_ranks * lines_each;
    write_and_read("offset.nc", NC_64BIT_OFFSET);
    write_and_read("data.nc", NC_64BIT_DATA);
    return finish("pnetcdf");
}
