/* Calls a session of the model `layer` (x: float32 4x3 -> y: float32 4x5) wrongly, and prints the message of each case
 * in a line. */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, IN = 3, OUT = 5 };

static const int64_t in_dims[] = {ROWS, IN};

static void tell(const char* what, int code, const layer* session) {
    printf("%s: %d %s\n", what, code, layer_error(session));
}

/* A call of create that must fail. */
static void create(const char* what, onnx2halide_options options) {
    layer* session = (layer*)&options; /* must be set to NULL */
    const int code = layer_create(&session, &options);
    tell(what, code, NULL);
    if (session) printf("%s: the session is not null\n", what);
}

static void creations(void) {
    const onnx2halide_options good = {.size = sizeof(onnx2halide_options), .threads = 1};
    unsigned char* arena = aligned_alloc(64, LAYER_ARENA_SIZE + 64);
    onnx2halide_options options = good;
    options.size = 8;
    create("options.size", options);
    options = good;
    options.threads = -1;
    create("too few threads", options);
    options.threads = 257;
    create("too many threads", options);
    options = good;
    options.arena = arena;
    options.arena_size = LAYER_ARENA_SIZE - 1;
    create("arena one byte short", options);
    options.arena_size = 0;
    create("arena without size", options);
    options.arena = arena + 1;
    options.arena_size = LAYER_ARENA_SIZE;
    create("arena unaligned", options);
    tell("no place for the session", layer_create(NULL, NULL), NULL);
    options = good;
    options.arena = arena;
    options.arena_size = LAYER_ARENA_SIZE;
    layer* session;
    tell("arena of the right size", layer_create(&session, &options), NULL);
    layer_destroy(session);
    layer_destroy(NULL);
    free(arena);
}

static float x[ROWS * IN], y[ROWS * OUT], expected[ROWS * OUT];

static onnx2halide_value tensor(int32_t type, int64_t rank, const int64_t* dims, void* data, size_t size) {
    onnx2halide_value value;
    memset(&value, 0, sizeof value);
    value.type = type;
    value.rank = rank;
    value.dims = dims;
    value.data = data;
    value.size = size;
    return value;
}

static void run_values(const char* what, layer* session, onnx2halide_value input, onnx2halide_value output) {
    tell(what, layer_run_values(session, &input, &output), session);
}

static void without_a_session(void) {
    onnx2halide_value value;
    memset(&value, 0, sizeof value);
    tell("run without a session", layer_run(NULL, x, y), NULL);
    tell("run_values without a session", layer_run_values(NULL, &value, &value), NULL);
}

static void runs(layer* session) {
    tell("null input", layer_run(session, NULL, y), session);
    tell("null output", layer_run(session, x, NULL), session);

    const onnx2halide_value in = tensor(ONNX2HALIDE_FLOAT32, 2, in_dims, x, sizeof x),
                            out = tensor(0, 0, NULL, y, sizeof y);
    const int64_t wide[] = {ROWS, IN + 1}, negative[] = {-1, IN};
    onnx2halide_value wrong = in;
    wrong.data = NULL;
    run_values("values: null data", session, wrong, out);
    wrong = in;
    wrong.kind = ONNX2HALIDE_SEQUENCE;
    run_values("values: a sequence", session, wrong, out);
    wrong = in;
    wrong.type = ONNX2HALIDE_FLOAT64;
    run_values("values: element type", session, wrong, out);
    wrong.type = 99;
    run_values("values: no element type", session, wrong, out);
    wrong = in;
    wrong.rank = 3;
    run_values("values: rank", session, wrong, out);
    wrong = in;
    wrong.dims = NULL;
    run_values("values: no dims", session, wrong, out);
    wrong = in;
    wrong.dims = wide;
    run_values("values: dim", session, wrong, out);
    wrong.dims = negative;
    run_values("values: negative dim", session, wrong, out);
    wrong = in;
    wrong.size -= 1;
    run_values("values: data too short", session, wrong, out);
    wrong = out;
    wrong.size -= 1;
    run_values("values: output too small", session, in, wrong);
    onnx2halide_value none = out;
    tell("values: no inputs", layer_run_values(session, NULL, &none), session);
    tell("values: no outputs", layer_run_values(session, &in, NULL), session);

    /* The session still works afterwards, with the caller's buffer and with its own. */
    memset(y, 0, sizeof y);
    run_values("values", session, in, out);
    printf("right: %d\n", memcmp(y, expected, sizeof y) == 0);
    onnx2halide_value own = tensor(0, 0, NULL, NULL, 0);
    tell("values: the session's buffer", layer_run_values(session, &in, &own), session);
    printf("right: %d\n", own.data && own.size == sizeof y && memcmp(own.data, expected, sizeof y) == 0);
    own.size = 0; /* of no account in memory that is the session's */
    tell("values: the session's buffer again", layer_run_values(session, &in, &own), session);
    printf("right: %d\n", own.data && own.size == sizeof y && memcmp(own.data, expected, sizeof y) == 0);
    memset(y, 0, sizeof y);
    own.data = y;
    own.lent = NULL;
    tell("values: the caller's buffer instead", layer_run_values(session, &in, &own), session);
    printf("right: %d\n", own.data == y && memcmp(y, expected, sizeof y) == 0);
    printf("type %s, rank %d, dims %d %d\n", onnx2halide_type_name(own.type), (int)own.rank, (int)own.dims[0],
           (int)own.dims[1]);
}

int main(void) {
    for (int i = 0; i < ROWS * IN; ++i) x[i] = (float)(i % 7) - 3;
    creations();
    without_a_session();
    layer* session;
    tell("create", layer_create(&session, NULL), NULL);
    tell("run", layer_run(session, x, expected), session);
    runs(session);
    layer_destroy(session);
    return 0;
}
