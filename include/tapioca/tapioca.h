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
 * That is the face of the papers: one step at a time, its variables named by their offsets. Patterns and step
 * handles (TAPIOCA_Declare) are the whole of the C++ interface: extents, subarrays, several steps of a file.
 *
 * Every function but TAPIOCA_Error_text and TAPIOCA_Last_error returns TAPIOCA_SUCCESS or an error code, and none
 * throws or ends the program (TAPIOCA_TIMEOUT aside). A collective call returns the same code on every rank. What
 * is wrong with data that a local call supplies or describes (a null pointer, an offset that was not declared) is
 * kept and returned by the next collective call, on every rank, so that one rank's mistake does not leave the others
 * waiting. A handle that is null, or was given back before, cannot be kept: it is an error where it is
 * passed. All sizes, counts and offsets are 64 bits
 * wide. Arguments of type TAPIOCA_Status* and TAPIOCA_Moved* may be null. docs/collectives.md has the contract. */
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

/* What is returned. */
enum {
    TAPIOCA_SUCCESS = 0,
    TAPIOCA_ERR_INVALID_ARGUMENT = 1, /* a value that cannot be right: a negative offset, a null pointer */
    TAPIOCA_ERR_INVALID_STATE = 2,    /* a call at the wrong time: a variable supplied twice */
    TAPIOCA_ERR_SETTING = 3,          /* an unknown or malformed TAPIOCA_* variable or hint */
    TAPIOCA_ERR_MISMATCH = 4,         /* ranks mean different files, passed different arguments, or write the same
                                       * bytes (check mode) */
    TAPIOCA_ERR_NOT_FOUND = 5,        /* the file or a directory on its path does not exist */
    TAPIOCA_ERR_PERMISSION = 6,       /* the file system refuses access */
    TAPIOCA_ERR_IS_DIRECTORY = 7,     /* the path names a directory */
    TAPIOCA_ERR_NO_SPACE = 8,         /* the target, its quota or shared memory is full */
    TAPIOCA_ERR_IO = 9,               /* any other failure of the file system */
    TAPIOCA_ERR_MEMORY = 10,          /* the memory cap or the machine's memory does not suffice */
    TAPIOCA_ERR_UNSUPPORTED = 11,     /* a job this version does not serve */
    TAPIOCA_ERR_INTERNAL = 99         /* a defect of this library */
};

/* How a file is opened. */
enum {
    TAPIOCA_MODE_CREATE = 0, /* make the file, or empty an existing one; write and read */
    TAPIOCA_MODE_UPDATE = 1, /* an existing file; write and read */
    TAPIOCA_MODE_READ = 2    /* an existing file; read only */
};

/* What became of one TAPIOCA_Write or TAPIOCA_Read. */
typedef struct TAPIOCA_Status {
    int64_t bytes; /* written, or read before the file's end; 0 after an error */
    int error;     /* the code that the collective call returned */
} TAPIOCA_Status;
#define TAPIOCA_STATUS_IGNORE ((TAPIOCA_Status*)0)

/* What a step did, on this rank. */
typedef struct TAPIOCA_Moved {
    int64_t bytes;            /* of this rank's variables, written or read before the file's end */
    int64_t overlapped_bytes; /* that this rank drained between start and wait */
} TAPIOCA_Moved;

/* The last error of this thread, in full. The texts live until its next one. */
typedef struct TAPIOCA_Failure {
    int code;         /* TAPIOCA_SUCCESS if there was none yet */
    int rank;         /* of the file's communicator, where it happened; -1 where it is not one rank's */
    int sys_errno;    /* errno of the system call that failed, or 0 */
    char const* path; /* of the file, or "" */
    char const* text; /* one line, the same on every rank after a collective call */
} TAPIOCA_Failure;

/* What a code means, in a few words. Local. */
char const* TAPIOCA_Error_text(int code);
/* TAPIOCA_Failure's text. Local. */
char const* TAPIOCA_Last_error(void);
int TAPIOCA_Last_failure(TAPIOCA_Failure* failure);

/* The version of the library that the program runs with; TAPIOCA_VERSION_MAJOR and the like are that of the headers.
 * Pointers may be null. Local; also before MPI_Init. */
int TAPIOCA_Get_version(int* major, int* minor, int* patch);

/* ---- files ---- */

/* Opens `path`. Collective over `comm`: all ranks pass the same. Options are hints: TAPIOCA_BUFFERSIZE of
 * docs/settings.md is the key `tapioca_buffersize`. `comm` and `info` may be freed while the file is open. After an
 * error
 * `*file` is TAPIOCA_FILE_NULL. */
int TAPIOCA_Open(MPI_Comm comm, char const* path, int mode, MPI_Info info, TAPIOCA_File* file);
/* Brings what is in the log of a staged file into the file. Collective; nothing to do for others. */
int TAPIOCA_Flush(TAPIOCA_File file);
/* Makes everything written so far durable. Collective. */
int TAPIOCA_Sync(TAPIOCA_File file);
/* Bytes in the file now. Collective. */
int TAPIOCA_Size(TAPIOCA_File file, int64_t* bytes);
/* Ends the file, with a step declared by TAPIOCA_Init, and writes the report if one was asked for. Collective.
 * The handle becomes TAPIOCA_FILE_NULL, also when closing failed; only while a step is under way or supplied in
 * part, and after MPI_Finalize, the file stays as it is. Steps of TAPIOCA_Declare remain to be freed; one that was
 * supplied and never run is an error. */
int TAPIOCA_Close(TAPIOCA_File* file);
/* Lets go of a file without communication, as in a program that ends after an error. Local. */
int TAPIOCA_Release(TAPIOCA_File* file);

/* ---- one step at a time, variables by offset ---- */

/* Declares `nvars` variables, the same number on every rank: variable i is count[i] * type_size[i] bytes at
 * offset[i] of the file. Collective: plans. The step can be run again and again until TAPIOCA_Finalize. */
int TAPIOCA_Init(TAPIOCA_File file, int64_t const count[], int64_t const type_size[], int64_t const offset[],
                 int nvars);
/* Supplies the variable that was declared with this offset, count and type size. `data` must stay valid and
 * unchanged, and `status` valid, until the run is over.
 *
 * The call with which this rank has made `nvars` of them is the last of the run, and collective: it moves all
 * variables and fills all statuses; the buffers may be reused when it returns. The calls before are local. A
 * variable of no bytes counts like any other, and its `data` may be null. A call that supplies nothing (not
 * declared, supplied before, null data, a write among reads) counts too, and makes the last call fail on every
 * rank; nothing is then written through aggregators. The next call begins the next run. */
int TAPIOCA_Write(TAPIOCA_File file, int64_t offset, void const* data, int64_t count, int64_t type_size,
                  TAPIOCA_Status* status);
/* The same for reading: `data` is filled when the last call returns. */
int TAPIOCA_Read(TAPIOCA_File file, int64_t offset, void* data, int64_t count, int64_t type_size,
                 TAPIOCA_Status* status);
/* Splits the next run: its last TAPIOCA_Write or TAPIOCA_Read only starts to move the data, and TAPIOCA_Wait
 * completes it. Until then buffers belong to the library. Local; the same on all ranks. */
int TAPIOCA_Start(TAPIOCA_File file);
/* Moves what can be moved now. Local. `*done` is 1 when nothing is left but TAPIOCA_Wait. */
int TAPIOCA_Progress(TAPIOCA_File file, int* done);
/* Completes the run that TAPIOCA_Start split. Collective. Without TAPIOCA_Start it runs the step, in place of the last
 * TAPIOCA_Write or TAPIOCA_Read: for a step of no variables, and for a rank that leaves out some that are empty.
 * What was not supplied must be empty. */
int TAPIOCA_Wait(TAPIOCA_File file, TAPIOCA_Moved* moved);
/* Ends the declared step; the file stays open for the next TAPIOCA_Init. Collective. Fails on every rank if a rank
 * has supplied some variables and not run the step, or has not waited for it; the step is then still there. */
int TAPIOCA_Finalize(TAPIOCA_File file);
/* The step declared by TAPIOCA_Init, for TAPIOCA_Step_rebase, _retarget, _received, _plan_text and _plan_json; offsets
 * given to TAPIOCA_Write stay those declared. Belongs to the file, until TAPIOCA_Finalize or TAPIOCA_Close. Local. */
int TAPIOCA_Step_of(TAPIOCA_File file, TAPIOCA_Step* step);

/* ---- patterns: what one rank moves, variable by variable. Local; bad values are kept for TAPIOCA_Declare ---- */

int TAPIOCA_Pattern_create(TAPIOCA_Pattern* pattern);
/* Adds a variable: length[i] bytes from offset[i] on, for i below n, in any order. `*var`, if not null, becomes its
 * number. Its buffer holds the extents packed, in the order of the list. */
int TAPIOCA_Pattern_add_extents(TAPIOCA_Pattern pattern, int64_t n, int64_t const offset[], int64_t const length[],
                                int* var);
/* Adds a variable: this rank's part of an array of ndims dimensions, slowest first, stored from file_offset on.
 * `stride` may be null: 1 everywhere. */
int TAPIOCA_Pattern_add_subarray(TAPIOCA_Pattern pattern, int ndims, int64_t const shape[], int64_t const start[],
                                 int64_t const count[], int64_t const stride[], int64_t element_size,
                                 int64_t file_offset, int* var);
/* Adds a variable: block `rank` of an array cut into `ranks` blocks, as TAPIOCA_Block_of does. */
int TAPIOCA_Pattern_add_block(TAPIOCA_Pattern pattern, int ndims, int64_t const shape[], int ranks, int rank,
                              int64_t element_size, int64_t file_offset, int* var);
/* The part of rank `rank` when an array of 1 to 4 dimensions is cut into blocks for `ranks` ranks, as square as the
 * numbers allow; remainders go to the first blocks. */
int TAPIOCA_Block_of(int ndims, int64_t const shape[], int ranks, int rank, int64_t start[], int64_t count[]);

/* Gives variable `var` a name, for messages, reports and the plan's text. Ranks should give the same. */
int TAPIOCA_Pattern_set_name(TAPIOCA_Pattern pattern, int var, char const* name);
int TAPIOCA_Pattern_variables(TAPIOCA_Pattern pattern, int* variables);
/* Bytes this rank moves for `var`: the size of its buffer. */
int TAPIOCA_Pattern_bytes(TAPIOCA_Pattern pattern, int var, int64_t* bytes);
/* What is kept in memory for this pattern. */
int TAPIOCA_Pattern_bookkeeping_bytes(TAPIOCA_Pattern pattern, int64_t* bytes);
/* The pattern may be freed as soon as TAPIOCA_Declare has returned. */
int TAPIOCA_Pattern_free(TAPIOCA_Pattern* pattern);

/* ---- steps: variables by number ---- */

/* Plans a step for `pattern`. Collective. The step can be run again and again. */
int TAPIOCA_Declare(TAPIOCA_File file, TAPIOCA_Pattern pattern, TAPIOCA_Step* step);
/* Supplies the `bytes` bytes of variable `var`. Local. `data` must stay valid and unchanged until TAPIOCA_Step_finish
 * or _wait returns. A variable of no bytes need not be supplied. What is wrong here is returned by those, on every
 * rank. */
int TAPIOCA_Step_write(TAPIOCA_Step step, int var, void const* data, int64_t bytes);
/* Names the buffer that receives variable `var`. Local; otherwise as TAPIOCA_Step_write. */
int TAPIOCA_Step_read(TAPIOCA_Step step, int var, void* data, int64_t bytes);
/* Supplies variable `var` from a part of an array in memory, such as all of it but its ghost cells: in each of `ndims`
 * dimensions, slowest first, count[d] elements from start[d] on, stride[d] apart, of an array of shape[] elements.
 * `stride` may be null: 1 everywhere. Nothing is packed: the elements are taken from where they lie. Otherwise as
 * TAPIOCA_Step_write. */
int TAPIOCA_Step_write_section(TAPIOCA_Step step, int var, void const* array, int ndims, int64_t const shape[],
                               int64_t const start[], int64_t const count[], int64_t const stride[],
                               int64_t element_size);
/* The same for reading; what lies around the part is not touched. */
int TAPIOCA_Step_read_section(TAPIOCA_Step step, int var, void* array, int ndims, int64_t const shape[],
                              int64_t const start[], int64_t const count[], int64_t const stride[],
                              int64_t element_size);
/* Moves all variables. Collective; the buffers may be reused when it returns, also with an error. */
int TAPIOCA_Step_finish(TAPIOCA_Step step, TAPIOCA_Moved* moved);
/* Begins to move the variables and returns without waiting for the file. Collective. */
int TAPIOCA_Step_start(TAPIOCA_Step step);
/* Moves what can be moved now. Local. `*done` is 1 when nothing is left but TAPIOCA_Step_wait. */
int TAPIOCA_Step_progress(TAPIOCA_Step step, int* done);
/* Completes TAPIOCA_Step_start. Collective. */
int TAPIOCA_Step_wait(TAPIOCA_Step step, TAPIOCA_Moved* moved);
/* Bytes of `var` that the last read delivered: less than declared where the file ended. Local. */
int TAPIOCA_Step_received(TAPIOCA_Step step, int var, int64_t* bytes);
/* Moves the step to `offset` bytes further on in the file from the next run on. Local; the same on all ranks. */
int TAPIOCA_Step_rebase(TAPIOCA_Step step, int64_t offset);
/* Runs the step on another file of the same communicator from now on. Local; the same on all ranks. */
int TAPIOCA_Step_retarget(TAPIOCA_Step step, TAPIOCA_File file);
/* How the step will be carried out, for people and as a JSON object. Local. The text belongs to the step and lives
 * until it is freed or the same is asked again. */
int TAPIOCA_Step_plan_text(TAPIOCA_Step step, char const** text);
int TAPIOCA_Step_plan_json(TAPIOCA_Step step, char const** json);
/* Local. A step freed between start and wait is abandoned, as docs/collectives.md tells. */
int TAPIOCA_Step_free(TAPIOCA_Step* step);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
