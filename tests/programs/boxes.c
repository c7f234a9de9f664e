/* Passes strings and a sequence in and out, repeatedly with different sizes, and prints the messages of errors. */
#include <stdio.h>
#include <string.h>

#include "boxes.h"

enum { MOST = 40 };

static float numbers[MOST];
static const int64_t lengths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/* Makes a sequence of `count` tensors, the i-th with i numbers. */
static onnx2halide_value sequence_of(onnx2halide_value* items, int count) {
    onnx2halide_value sequence = {0};
    sequence.kind = ONNX2HALIDE_SEQUENCE;
    sequence.items = items;
    sequence.count = count;
    for (int i = 0; i < count; ++i) {
        memset(&items[i], 0, sizeof items[i]);
        items[i].type = ONNX2HALIDE_FLOAT32;
        items[i].rank = 1;
        items[i].dims = &lengths[i];
        items[i].data = numbers;
        items[i].size = (size_t)i * sizeof(float);
    }
    return sequence;
}

static onnx2halide_value strings_of(onnx2halide_string* texts, const int64_t* count) {
    onnx2halide_value strings = {0};
    strings.type = ONNX2HALIDE_STRING;
    strings.rank = 1;
    strings.dims = count;
    strings.data = texts;
    strings.size = (size_t)*count * sizeof *texts;
    return strings;
}

/* Whether the outputs are the inputs, with "!" after each string and one more tensor at the end. */
static int check(const onnx2halide_value* in, const onnx2halide_value* out) {
    const onnx2halide_string *words = in[0].data, *shouts = out[0].data;
    if (out[0].dims[0] != in[0].dims[0] || out[1].count != in[1].count + 1) return 1;
    for (int64_t i = 0; i < in[0].dims[0]; ++i) {
        const size_t length = words[i].length;
        if (shouts[i].length != length + 1 || memcmp(shouts[i].text, words[i].text, length) != 0) return 2;
        if (strcmp(shouts[i].text + length, "!") != 0) return 3;
    }
    for (int64_t i = 0; i < in[1].count; ++i) {
        const onnx2halide_value* item = &out[1].items[i];
        if (item->rank != 1 || item->dims[0] != i || item->size != (size_t)i * sizeof(float)) return 4;
        if (memcmp(item->data, numbers, item->size) != 0) return 5;
    }
    if (*(const int64_t*)out[2].data != out[1].count) return 6;
    return out[3].count != 1 || out[3].items[0].type != ONNX2HALIDE_STRING ? 7 : 0;
}

static int run_many(boxes* session) {
    char texts[MOST][16];
    onnx2halide_string words[MOST];
    onnx2halide_value items[MOST], out[BOXES_OUTPUTS];
    memset(out, 0, sizeof out); /* once, as the session's memory is returned to it */
    for (int turn = 0; turn < 200; ++turn) {
        const int64_t count = 1 + turn * 7 % MOST;
        for (int i = 0; i < count; ++i) {
            numbers[i] = (float)(turn + i);
            words[i].text = texts[i];
            words[i].length = (size_t)sprintf(texts[i], "%d-%d", turn, i % 5);
        }
        const onnx2halide_value in[] = {strings_of(words, &count), sequence_of(items, turn % 10)};
        if (boxes_run_values(session, in, out) != 0) return fprintf(stderr, "%s\n", boxes_error(session)), 1;
        const int wrong = check(in, out);
        if (wrong != 0) return fprintf(stderr, "turn %d: %d\n", turn, wrong), 1;
    }
    return 0;
}

static void show_errors(boxes* session) {
    const int64_t one = 1;
    onnx2halide_string word = {"word", 4};
    onnx2halide_value items[3], in[] = {strings_of(&word, &one), sequence_of(items, 3)}, out[BOXES_OUTPUTS];
    memset(out, 0, sizeof out);
    items[2].type = ONNX2HALIDE_INT64;
    if (boxes_run_values(session, in, out) != 0) printf("%s\n", boxes_error(session));
    in[1] = sequence_of(items, 3);
    items[2].size = 7;
    if (boxes_run_values(session, in, out) != 0) printf("%s\n", boxes_error(session));
    in[1].kind = ONNX2HALIDE_TENSOR;
    if (boxes_run_values(session, in, out) != 0) printf("%s\n", boxes_error(session));
    in[1] = sequence_of(items, 3);
    in[0].type = ONNX2HALIDE_INT64;
    if (boxes_run_values(session, in, out) != 0) printf("%s\n", boxes_error(session));
}

int main(void) {
    boxes* session;
    if (boxes_create(&session, NULL) != 0) return fprintf(stderr, "%s\n", boxes_error(NULL)), 1;
    const onnx2halide_port *words = &boxes_inputs[0], *tensors = &boxes_inputs[1];
    printf("%s of kind %d, %s of kind %d with tensors of type %s and rank %d\n", words->name, (int)words->kind,
           tensors->name, (int)tensors->kind, onnx2halide_type_name(tensors->item->type), (int)tensors->item->rank);
    const int failed = run_many(session);
    show_errors(session);
    boxes_destroy(session);
    return failed;
}
