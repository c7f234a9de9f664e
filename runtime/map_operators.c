/* Operators on maps. A map's box holds its keys and its values, both as vectors. Keys are int64 or strings, which are
 * int64 numbers, too. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box_operators.h"
#include "plain_numbers.h"

/* Creates a map's box and its two items, without their data. */
static int new_map(onnx2halide_session* session, const int64_t* size, int64_t* box, onnx2halide_item** items) {
    RUN(onnx2halide_new_box(session, 2, box, items));
    (*items)[0] = (*items)[1] = (onnx2halide_item){ONNX2HALIDE_NOTHING, 1, size, NULL};
    return 0;
}

int onnx2halide_map_rows(onnx2halide_session* session, const halide_buffer_t* x, const halide_buffer_t* keys,
                         onnx2halide_result result) {
    const int64_t columns = x->dim[0].extent, rows = x->dimensions == 2 ? x->dim[1].extent : 1;
    const size_t row_bytes = (size_t)columns * onnx2halide_element_bytes(x);
    if (columns != keys->dim[0].extent) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                "input 0 has %lld columns, expected %lld as there are labels", (long long)columns,
                                (long long)keys->dim[0].extent);
    }
    int64_t* size = onnx2halide_keep(session, sizeof *size);
    unsigned char* values = onnx2halide_keep(session, (size_t)rows * row_bytes);
    if (!size || !values) return ONNX2HALIDE_NO_MEMORY;
    *size = columns;
    if (rows > 0) memcpy(values, x->host, (size_t)rows * row_bytes);

    int64_t box;
    onnx2halide_item *maps, *items;
    RUN(onnx2halide_new_box(session, rows, &box, &maps));
    for (int64_t row = 0; row < rows; ++row) {
        RUN(new_map(session, size, &maps[row].box, &items));
        items[0].data = keys->host; /* a constant of the model, which all maps share */
        items[1].data = values + (size_t)row * row_bytes;
    }
    void* to = NULL;
    RUN(onnx2halide_make_result(session, result, 0, NULL, &to));
    memcpy(to, &box, sizeof box);
    return 0;
}

static const onnx2halide_item* map_in(const onnx2halide_session* session, const halide_buffer_t* tensor) {
    return onnx2halide_items_of(session, *(const int64_t*)tensor->host);
}

int onnx2halide_row_of_map(onnx2halide_session* session, const halide_buffer_t* map, const halide_buffer_t* words,
                           const halide_buffer_t* columns, onnx2halide_result result) {
    const onnx2halide_item* items = map_in(session, map);
    const int64_t *keys = items[0].data, *own = (const int64_t*)words->host;
    const int64_t count = words->dim[0].extent, dims[] = {1, count};
    unsigned char* to = NULL;
    RUN(onnx2halide_make_result(session, result, 2, dims, (void**)&to));
    const size_t bytes = onnx2halide_element_bytes(&session->tensors[result.tensor]);
    memset(to, 0, (size_t)count * bytes);
    for (int64_t i = 0; i < items[0].dims[0]; ++i) {
        const unsigned char* value = (const unsigned char*)items[1].data + (size_t)i * bytes;
        for (int64_t word = onnx2halide_first_from(own, count, keys[i]); word < count && own[word] == keys[i]; ++word)
            memcpy(to + (size_t)((const int64_t*)columns->host)[word] * bytes, value, bytes);
    }
    return 0;
}

/* CastMap */

/* A key, and its index among the keys. */
typedef struct place {
    int64_t key, index;
} place;

static int compare(const void* a, const void* b) {
    const place *one = a, *other = b;
    return one->key != other->key ? (one->key < other->key ? -1 : 1)
                                  : (one->index > other->index) - (one->index < other->index);
}

/* Parses a string of a map as a number. */
static int parse(onnx2halide_session* session, onnx2halide_string text, int32_t to, void* element) {
    char* end = NULL;
    if (to == ONNX2HALIDE_INT64)
        *(int64_t*)element = strtoll(text.text, &end, 10);
    else
        *(float*)element = strtof(text.text, &end);
    if (end != text.text) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "value '%.40s' is not a number", text.text);
}

static int cast_real(onnx2halide_session* session, float real, int32_t to, void* element) {
    if (to == ONNX2HALIDE_FLOAT32) {
        *(float*)element = real;
    } else if (to == ONNX2HALIDE_INT64) {
        *(int64_t*)element = real >= -0x1p63f && real < 0x1p63f ? (int64_t)real : INT64_MIN;
    } else {
        char text[64];
        const int length = snprintf(text, sizeof text, "%f", (double)real);
        return onnx2halide_number_of(session, text, (size_t)length, element);
    }
    return 0;
}

/* Casts the i-th value of a map. */
static int cast_value(onnx2halide_session* session, int32_t from, int32_t to, const onnx2halide_item* values, int64_t i,
                      void* element) {
    if (from == ONNX2HALIDE_FLOAT32) return cast_real(session, ((const float*)values->data)[i], to, element);
    const int64_t number = ((const int64_t*)values->data)[i];
    if (to != ONNX2HALIDE_STRING) return parse(session, onnx2halide_text_of(session, number), to, element);
    *(int64_t*)element = number;
    return 0;
}

static size_t bytes_of(int32_t type) { return type == ONNX2HALIDE_FLOAT32 ? sizeof(float) : sizeof(int64_t); }

/* Casts the values in the order of their keys. */
static int cast_dense(onnx2halide_session* session, int32_t from, int32_t to, const onnx2halide_item* items,
                      onnx2halide_result result) {
    const int64_t *keys = items[0].data, count = items[0].dims[0], dims[] = {1, count};
    unsigned char* row = NULL;
    RUN(onnx2halide_make_result(session, result, 2, dims, (void**)&row));
    place* places = onnx2halide_keep(session, (size_t)count * sizeof *places);
    if (!places) return ONNX2HALIDE_NO_MEMORY;
    for (int64_t i = 0; i < count; ++i) places[i] = (place){keys[i], i};
    qsort(places, (size_t)count, sizeof *places, compare);
    for (int64_t i = 0; i < count; ++i)
        RUN(cast_value(session, from, to, &items[1], places[i].index, row + (size_t)i * bytes_of(to)));
    return 0;
}

/* Casts each value into the column that is its key, if there is one. Other columns are 0, as a string "0.f", which is
 * onnxruntime's. */
static int cast_sparse(onnx2halide_session* session, int32_t from, int32_t to, int64_t columns,
                       const onnx2halide_item* items, onnx2halide_result result) {
    const int64_t *keys = items[0].data, dims[] = {1, columns};
    unsigned char* row = NULL;
    RUN(onnx2halide_make_result(session, result, 2, dims, (void**)&row));
    memset(row, 0, (size_t)columns * bytes_of(to));
    int64_t nothing = 0;
    if (to == ONNX2HALIDE_STRING) RUN(onnx2halide_number_of(session, "0.f", 3, &nothing));
    for (int64_t i = 0; nothing != 0 && i < columns; ++i) ((int64_t*)(void*)row)[i] = nothing;
    for (int64_t i = 0; i < items[0].dims[0]; ++i) {
        if (keys[i] < 0) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "a key is %lld, expected 0 or more",
                                    (long long)keys[i]);
        }
        if (keys[i] < columns) RUN(cast_value(session, from, to, &items[1], i, row + (size_t)keys[i] * bytes_of(to)));
    }
    return 0;
}

int onnx2halide_cast_map(onnx2halide_session* session, int32_t from, int32_t to, int64_t columns,
                         const halide_buffer_t* map, onnx2halide_result result) {
    const onnx2halide_item* items = map_in(session, map);
    onnx2halide_locales locales;
    RUN(onnx2halide_use_plain_numbers(session, &locales));
    const int code = columns < 0 ? cast_dense(session, from, to, items, result)
                                 : cast_sparse(session, from, to, columns, items, result);
    onnx2halide_restore_locale(&locales);
    return code;
}
