/* TAPIOCA for C: declare what will be written or read collectively, then move it.
 *
 *     TAPIOCA_File f;
 *     TAPIOCA_Open(comm, "out.dat", TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &f);  // collective
 *     TAPIOCA_Init(f, count, type_size, offset, 3);                         // collective: plans
 *     TAPIOCA_Write(f, offset[0], x, count[0], type_size[0], &status[0]);   // local: keeps x
 *     TAPIOCA_Write(f, offset[1], y, count[1], type_size[1], &status[1]);   // local: keeps y
 *     TAPIOCA_Write(f, offset[2], z, count[2], type_size[2], &status[2]);   // the last one: collective
 *     TAPIOCA_Finalize(f);                                                  // collective
 *     TAPIOCA_Close(&f);                                                    // collective
 *
 * These are the calls of the papers: one step at a time, whose variables are identified by their offsets. Patterns and
 * step handles (TAPIOCA_Declare) offer everything that the C++ interface has: extents, subarrays, several steps of a
 * file.
 *
 * Every function except TAPIOCA_Error_text and TAPIOCA_Last_error returns TAPIOCA_SUCCESS or an error code. No function
 * throws or ends the program, except after TAPIOCA_TIMEOUT. A collective call returns the same code on every rank. If
 * the data that a local call supplies or describes is wrong (a null pointer, an offset that was not declared), the
 * error is kept and returned by the next collective call, on every rank, so that one rank's mistake does not leave the
 * others waiting. For a handle that is null or no longer valid, the call itself returns the error. All sizes, counts
 * and offsets have 64 bits. Arguments of type TAPIOCA_Status* and TAPIOCA_Moved* may be null. docs/collectives.md
 * describes the calls in full. */
#ifndef TAPIOCA_TAPIOCA_H
#define TAPIOCA_TAPIOCA_H

#include <mpi.h>
#include <stdint.h>

#include <tapioca/built_for.h>
#include <tapioca/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct TAPIOCA_File_s* TAPIOCA_File;
typedef struct TAPIOCA_Step_s* TAPIOCA_Step;
typedef struct TAPIOCA_Pattern_s* TAPIOCA_Pattern;
#define TAPIOCA_FILE_NULL ((TAPIOCA_File)0)
#define TAPIOCA_STEP_NULL ((TAPIOCA_Step)0)
#define TAPIOCA_PATTERN_NULL ((TAPIOCA_Pattern)0)

/* Return codes. */
enum {
    TAPIOCA_SUCCESS = 0,
    TAPIOCA_ERR_INVALID_ARGUMENT = 1, /* a value that is never valid, such as a negative offset or a null pointer */
    TAPIOCA_ERR_INVALID_STATE = 2,    /* a call at the wrong time, such as a variable that is supplied twice */
    TAPIOCA_ERR_SETTING = 3,          /* an unknown or malformed TAPIOCA_* variable or hint */
    TAPIOCA_ERR_MISMATCH = 4,         /* ranks found different files, passed different arguments, or write the same
                                       * bytes (check mode) */
    TAPIOCA_ERR_NOT_FOUND = 5,        /* the file or a directory on its path does not exist */
    TAPIOCA_ERR_PERMISSION = 6,       /* the file system refuses access */
    TAPIOCA_ERR_IS_DIRECTORY = 7,     /* the path names a directory */
    TAPIOCA_ERR_NO_SPACE = 8,         /* the target, its quota or shared memory is full */
    TAPIOCA_ERR_IO = 9,               /* any other failure of the file system */
    TAPIOCA_ERR_MEMORY = 10,          /* the memory limit or the machine's memory is too small */
    TAPIOCA_ERR_UNSUPPORTED = 11,     /* something that this version cannot do */
    TAPIOCA_ERR_INTERNAL = 99         /* a defect of this library */
};

/* How a file is opened. */
enum {
    TAPIOCA_MODE_CREATE = 0, /* make the file, or empty an existing one; write and read */
    TAPIOCA_MODE_UPDATE = 1, /* an existing file; write and read */
    TAPIOCA_MODE_READ = 2    /* an existing file; read only */
};

/* The result of one TAPIOCA_Write or TAPIOCA_Read. */
typedef struct TAPIOCA_Status {
    int64_t bytes; /* bytes written, or bytes read before the end of the file; 0 after an error */
    int error;     /* the code that the collective call returned */
} TAPIOCA_Status;
#define TAPIOCA_STATUS_IGNORE ((TAPIOCA_Status*)0)

/* What a step did on this rank. */
typedef struct TAPIOCA_Moved {
    int64_t bytes;            /* bytes of this rank's variables, written or read before the end of the file */
    int64_t overlapped_bytes; /* bytes that this rank drained between start and wait */
} TAPIOCA_Moved;

/* The last error of this thread, in full. The texts are valid until the thread's next error. */
typedef struct TAPIOCA_Failure {
    int code;         /* TAPIOCA_SUCCESS if there was no error yet */
    int rank;         /* the rank, in the file's communicator, on which it happened; -1 if it does not belong to one */
    int sys_errno;    /* errno of the system call that failed, or 0 */
    char const* path; /* path of the file, or "" */
    char const* text; /* one line, the same on every rank after a collective call */
} TAPIOCA_Failure;

/* What a code means, in a few words. Local. */
char const* TAPIOCA_Error_text(int code);
/* The text of the last error of this thread. Local. */
char const* TAPIOCA_Last_error(void);
/* The last error of this thread, in full. Local. */
int TAPIOCA_Last_failure(TAPIOCA_Failure* failure);

/* The version of the library that the program runs with. (TAPIOCA_VERSION_MAJOR, _MINOR and _PATCH are the version of
 * the headers.) Pointers may be null. Local; may be called before MPI_Init. */
int TAPIOCA_Get_version(int* major, int* minor, int* patch);

/* ---- files ---- */

/* Opens `path`. Collective over `comm`: all ranks pass the same arguments. Options are given as hints in `info`: the
 * setting TAPIOCA_BUFFERSIZE of docs/settings.md has the key `tapioca_buffersize`. `comm` and `info` may be freed while
 * the file is open. After an error, `*file` is TAPIOCA_FILE_NULL. */
int TAPIOCA_Open(MPI_Comm comm, char const* path, int mode, MPI_Info info, TAPIOCA_File* file);
/* Writes everything in the log of a staged file to the file. For other files, there is nothing to do. Collective. */
int TAPIOCA_Flush(TAPIOCA_File file);
/* Brings everything written so far to the file system: from the log of a staged file, and from the tiers of the nodes
 * if they are the file's target (docs/target.md). For other files, there is nothing to do. A file on tiers must have
 * been opened for writing, and not while another handle or job was writing to it. Collective. */
int TAPIOCA_Drain(TAPIOCA_File file);
/* Makes everything written so far durable. Collective. */
int TAPIOCA_Sync(TAPIOCA_File file);
/* The current size of the file in bytes. Collective. */
int TAPIOCA_Size(TAPIOCA_File file, int64_t* bytes);
/* Closes the file, ends the step declared by TAPIOCA_Init, and writes the report if one was requested. Collective. The
 * handle becomes TAPIOCA_FILE_NULL, even if closing fails. There are two exceptions, in which the file stays as it is:
 * while a step is under way or has only some of its variables, and after MPI_Finalize. Steps of TAPIOCA_Declare must
 * still be freed; it is an error if variables of one were supplied and it was never run. */
int TAPIOCA_Close(TAPIOCA_File* file);
/* Releases a file without communication, for a program that ends after an error. Local. */
int TAPIOCA_Release(TAPIOCA_File* file);

/* ---- one step at a time, variables by offset ---- */

/* Declares a step of `nvars` variables, the same number on every rank, and plans it. Variable i consists of
 * count[i] * type_size[i] bytes at offset[i] of the file. Collective. The step can be run any number of times until
 * TAPIOCA_Finalize. */
int TAPIOCA_Init(TAPIOCA_File file, int64_t const count[], int64_t const type_size[], int64_t const offset[],
                 int nvars);
/* Supplies the variable that was declared with this offset, count and type size. `data` must stay valid and unchanged,
 * and `status` valid, until the run is over.
 *
 * A run has `nvars` such calls on every rank. The last one is collective: it moves all variables and fills all
 * statuses, and the buffers may be reused when it returns. The calls before it are local. A variable of no bytes counts
 * like any other, and its `data` may be null. A call that supplies nothing (not declared, supplied before, null data, a
 * write among reads) also counts, and makes the last call fail on every rank; then nothing is written through
 * aggregators. The next call begins the next run. */
int TAPIOCA_Write(TAPIOCA_File file, int64_t offset, void const* data, int64_t count, int64_t type_size,
                  TAPIOCA_Status* status);
/* The same for reading: `data` is filled when the last call returns. */
int TAPIOCA_Read(TAPIOCA_File file, int64_t offset, void* data, int64_t count, int64_t type_size,
                 TAPIOCA_Status* status);
/* Splits the next run: its last TAPIOCA_Write or TAPIOCA_Read only starts to move the data, and TAPIOCA_Wait completes
 * the run. Until then, the buffers belong to the library. Local, but all ranks must call it or none. */
int TAPIOCA_Start(TAPIOCA_File file);
/* Moves what can be moved now. Local. `*done` is 1 when only TAPIOCA_Wait is left to do. */
int TAPIOCA_Progress(TAPIOCA_File file, int* done);
/* Completes a run that TAPIOCA_Start split. Collective. Without TAPIOCA_Start, it runs the step in place of the last
 * TAPIOCA_Write or TAPIOCA_Read: for a step without variables, or on a rank that leaves out variables of no bytes.
 * Variables that were not supplied must have no bytes. */
int TAPIOCA_Wait(TAPIOCA_File file, TAPIOCA_Moved* moved);
/* Ends the declared step; the file stays open for the next TAPIOCA_Init. Collective. If a rank has supplied some
 * variables and not run the step, or has not waited for it, the call fails on every rank and the step stays. */
int TAPIOCA_Finalize(TAPIOCA_File file);
/* The step declared by TAPIOCA_Init, for TAPIOCA_Step_rebase, _retarget, _received, _plan_text and _plan_json. After a
 * rebase, TAPIOCA_Write is still given the declared offsets. The handle belongs to the file and is valid until
 * TAPIOCA_Finalize or TAPIOCA_Close. Local. */
int TAPIOCA_Step_of(TAPIOCA_File file, TAPIOCA_Step* step);

/* ---- patterns: what one rank moves, variable by variable. Local; bad values are kept for TAPIOCA_Declare ---- */

int TAPIOCA_Pattern_create(TAPIOCA_Pattern* pattern);
/* Adds a variable of n extents, in any order: extent i is length[i] bytes at offset[i]. If `var` is not null, `*var`
 * becomes the variable's number. The buffer holds the extents packed, in the order of the list. */
int TAPIOCA_Pattern_add_extents(TAPIOCA_Pattern pattern, int64_t n, int64_t const offset[], int64_t const length[],
                                int* var);
/* Adds a variable: this rank's part of an array that is stored in the file starting at file_offset. The array has ndims
 * dimensions, the slowest first. If `stride` is null, it is 1 in every dimension. */
int TAPIOCA_Pattern_add_subarray(TAPIOCA_Pattern pattern, int ndims, int64_t const shape[], int64_t const start[],
                                 int64_t const count[], int64_t const stride[], int64_t element_size,
                                 int64_t file_offset, int* var);
/* Adds a variable: block `rank` of an array that is cut into `ranks` blocks, as in TAPIOCA_Block_of. */
int TAPIOCA_Pattern_add_block(TAPIOCA_Pattern pattern, int ndims, int64_t const shape[], int ranks, int rank,
                              int64_t element_size, int64_t file_offset, int* var);
/* The block of rank `rank` if an array of 1 to 4 dimensions is cut into blocks for `ranks` ranks, as square as the
 * numbers allow. If an extent cannot be divided evenly, the first blocks are longer by one element. */
int TAPIOCA_Block_of(int ndims, int64_t const shape[], int ranks, int rank, int64_t start[], int64_t count[]);

/* Gives variable `var` a name for messages, reports and the plan's text. All ranks should use the same name. */
int TAPIOCA_Pattern_set_name(TAPIOCA_Pattern pattern, int var, char const* name);
int TAPIOCA_Pattern_variables(TAPIOCA_Pattern pattern, int* variables);
/* The number of bytes that this rank moves for `var`, which is the size of its buffer. */
int TAPIOCA_Pattern_bytes(TAPIOCA_Pattern pattern, int var, int64_t* bytes);
/* The number of bytes of memory that this pattern takes. */
int TAPIOCA_Pattern_bookkeeping_bytes(TAPIOCA_Pattern pattern, int64_t* bytes);
/* The pattern may be freed as soon as TAPIOCA_Declare has returned. */
int TAPIOCA_Pattern_free(TAPIOCA_Pattern* pattern);

/* ---- steps: variables by number ---- */

/* Plans a step for `pattern`. Collective. The step can be run any number of times. */
int TAPIOCA_Declare(TAPIOCA_File file, TAPIOCA_Pattern pattern, TAPIOCA_Step* step);
/* Supplies the `bytes` bytes of variable `var`. Local. `data` must stay valid and unchanged until TAPIOCA_Step_finish
 * or _wait returns. A variable of no bytes need not be supplied. Mistakes are returned by TAPIOCA_Step_finish or _wait,
 * on every rank. */
int TAPIOCA_Step_write(TAPIOCA_Step step, int var, void const* data, int64_t bytes);
/* Supplies the buffer that receives variable `var`. Local. The rules of TAPIOCA_Step_write apply. */
int TAPIOCA_Step_read(TAPIOCA_Step step, int var, void* data, int64_t bytes);
/* Supplies variable `var` from a part of an array in memory, such as everything except its ghost cells. The array has
 * shape[] elements; in each of its `ndims` dimensions, the slowest first, the part has count[d] elements, starting at
 * start[d] and stride[d] apart. If `stride` is null, it is 1 in every dimension. The elements are taken in place,
 * without packing. Otherwise the rules of TAPIOCA_Step_write apply. */
int TAPIOCA_Step_write_section(TAPIOCA_Step step, int var, void const* array, int ndims, int64_t const shape[],
                               int64_t const start[], int64_t const count[], int64_t const stride[],
                               int64_t element_size);
/* The same for reading. Elements outside the part are not touched. */
int TAPIOCA_Step_read_section(TAPIOCA_Step step, int var, void* array, int ndims, int64_t const shape[],
                              int64_t const start[], int64_t const count[], int64_t const stride[],
                              int64_t element_size);
/* Moves all variables. Collective. The buffers may be reused when it returns, even if it returns an error. */
int TAPIOCA_Step_finish(TAPIOCA_Step step, TAPIOCA_Moved* moved);
/* Begins to move the variables and returns without waiting for the file. Collective. */
int TAPIOCA_Step_start(TAPIOCA_Step step);
/* Moves what can be moved now. Local. `*done` is 1 when only TAPIOCA_Step_wait is left to do. */
int TAPIOCA_Step_progress(TAPIOCA_Step step, int* done);
/* Completes TAPIOCA_Step_start. Collective. */
int TAPIOCA_Step_wait(TAPIOCA_Step step, TAPIOCA_Moved* moved);
/* The number of bytes of `var` that the last read delivered: fewer than declared if the file ended before. Local. */
int TAPIOCA_Step_received(TAPIOCA_Step step, int var, int64_t* bytes);
/* From the next run on, `offset` is added to all declared offsets of the step. Local; the same on all ranks. */
int TAPIOCA_Step_rebase(TAPIOCA_Step step, int64_t offset);
/* From the next run on, the step runs on another file of the same communicator. Local; the same on all ranks. */
int TAPIOCA_Step_retarget(TAPIOCA_Step step, TAPIOCA_File file);
/* How the step will be carried out, as text for people and as a JSON object. Local. The text belongs to the step and is
 * valid until the step is freed or the same function is called again. */
int TAPIOCA_Step_plan_text(TAPIOCA_Step step, char const** text);
int TAPIOCA_Step_plan_json(TAPIOCA_Step step, char const** json);
/* Frees a step. Local. A step that is freed between start and wait is abandoned (docs/collectives.md). */
int TAPIOCA_Step_free(TAPIOCA_Step* step);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
