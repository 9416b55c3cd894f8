/* Parallel netCDF-4: chunked, contiguous and growing variables, collective and independent, with fill values. */
#include <netcdf.h>
#include <netcdf_par.h>

#include "check.h"

enum { lines_each = 5, width = 24, records = 3 };
enum { contiguous, chunked, strided, compressed, alone, partly, growing, variables };
static char const* const names[] = {"contiguous", "chunked", "strided", "compressed", "alone", "partly", "growing"};

static void right(int error, char const* what)
{
    if (error != NC_NOERR) fprintf(stderr, "%s: %s\n", what, nc_strerror(error));
    check(error == NC_NOERR, what);
}

static float value(int variable, size_t record, size_t line, size_t column)
{
    return (float)(variable * 10000 + (int)record * 3000 + (int)line * 50) + (float)column / 32;
}

static float wanted(int variable, size_t record, size_t line, size_t column)
{
    if (variable == partly && line / lines_each % 2 == 1) return -5.5F;
    if (variable == strided && column % 2 == 1) return NC_FILL_FLOAT;
    return value(variable, record, line, column);
}

static void write_variable(int nc, int id, int variable)
{
    float data[lines_each * width];
    size_t const own = (size_t)my_rank * lines_each;
    int const grows = variable == growing;
    right(nc_var_par_access(nc, id, variable == alone ? NC_INDEPENDENT : NC_COLLECTIVE), "var_par_access");
    for (size_t record = 0; record < (size_t)(grows ? records : 1); ++record) {
        size_t const start[] = {record, own, 0};
        size_t count[] = {1, lines_each, width};
        if (variable == strided) {
            ptrdiff_t const stride[] = {1, 2};
            count[2] = width / 2;
            for (size_t i = 0; i < lines_each * width / 2; ++i)
                data[i] = value(variable, 0, own + i / (width / 2), i % (width / 2) * 2);
            right(nc_put_vars_float(nc, id, start + 1, count + 1, stride, data), "put_vars");
            continue;
        }
        for (size_t i = 0; i < lines_each * width; ++i) data[i] = value(variable, record, own + i / width, i % width);
        if (variable == partly && my_rank % 2 == 1) count[1] = count[2] = 0;
        right(nc_put_vara_float(nc, id, start + !grows, count + !grows, data), names[variable]);
    }
}

static void read_variable(int nc, int variable)
{
    float data[lines_each * width];
    int id = -1;
    size_t const other = (size_t)((my_rank + 1) % all_ranks) * lines_each;
    int const grows = variable == growing;
    right(nc_inq_varid(nc, names[variable], &id), "inq_varid");
    for (int access = NC_INDEPENDENT; access <= NC_COLLECTIVE; ++access) {
        right(nc_var_par_access(nc, id, access), "var_par_access");
        for (size_t record = 0; record < (size_t)(grows ? records : 1); ++record) {
            size_t const start[] = {record, other, 0}, count[] = {1, lines_each, width};
            right(nc_get_vara_float(nc, id, start + !grows, count + !grows, data), "get_vara");
            for (size_t i = 0; i < lines_each * width; ++i)
                check(data[i] == wanted(variable, record, other + i / width, i % width), names[variable]);
            add_to_digest(data, sizeof data);
        }
    }
}

int main(int argc, char** argv)
{
    begin(&argc, &argv);
    int nc = -1, ids[3], variable[variables];
    char const* const path = "netcdf4.nc";
    right(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &nc), path);
    right(nc_def_dim(nc, "time", NC_UNLIMITED, &ids[0]), "def_dim");
    right(nc_def_dim(nc, "line", (size_t)all_ranks * lines_each, &ids[1]), "def_dim");
    right(nc_def_dim(nc, "column", width, &ids[2]), "def_dim");
    for (int v = 0; v < variables; ++v) {
        int const grows = v == growing;
        size_t const chunk[] = {1, 7, 10};
        right(nc_def_var(nc, names[v], NC_FLOAT, grows ? 3 : 2, grows ? ids : ids + 1, &variable[v]), names[v]);
        if (v == contiguous) right(nc_def_var_chunking(nc, variable[v], NC_CONTIGUOUS, NULL), "def_var_chunking");
        if (v == chunked || v == compressed)
            right(nc_def_var_chunking(nc, variable[v], NC_CHUNKED, chunk + 1), "chunks");
        if (v == compressed) right(nc_def_var_deflate(nc, variable[v], 1, 1, 1), "def_var_deflate");
        float const nothing = -5.5F;
        if (v == partly) right(nc_def_var_fill(nc, variable[v], NC_FILL, &nothing), "def_var_fill");
    }
    right(nc_enddef(nc), "enddef");
    for (int v = 0; v < variables; ++v) write_variable(nc, variable[v], v);
    right(nc_close(nc), "close");

    right(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &nc), path);
    for (int v = 0; v < variables; ++v) read_variable(nc, v);
    right(nc_close(nc), "close");
    return finish("netcdf");
}
