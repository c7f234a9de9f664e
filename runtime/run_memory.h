/* What a run creates besides tensors: memory, strings and boxes. They belong to the session until its next run. */
#ifndef ONNX2HALIDE_RUN_MEMORY_H
#define ONNX2HALIDE_RUN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "onnx2halide_types.h"

struct onnx2halide_session;

/* A chunk of the memory that a run allocates from. The first in the list is in use. */
typedef struct onnx2halide_chunk {
    struct onnx2halide_chunk* next;
    size_t bytes, used;
} onnx2halide_chunk;

/* The table of all strings in a run, each stored once. A tensor of strings holds their numbers. Number 0 is the empty
 * string; the model's constants come first. */
typedef struct onnx2halide_strings {
    onnx2halide_string* texts;
    int64_t* next;    /* the next string in the same bucket; -1: none */
    int64_t* buckets; /* first string of each; their number is a power of two */
    int64_t count, capacity, bucket_count;
} onnx2halide_strings;

/* An item of a box: a tensor or another box. */
typedef struct onnx2halide_item {
    int64_t box;         /* the number of the box, if it is one */
    int32_t rank;        /* the rank of the tensor, if it is one */
    const int64_t* dims; /* outermost first */
    void* data;
} onnx2halide_item;

/* Items that boxes share. An item appended to a sequence is stored after the sequence's own, unless another sequence
 * has already stored one there. */
typedef struct onnx2halide_items {
    int64_t used, capacity;
    onnx2halide_item items[];
} onnx2halide_items;

/* A sequence, a map (its keys and its values) or an optional tensor. An optional sequence or map is the box of its
 * content. Boxes are immutable. Box 0 is an absent value, box 1 an empty sequence. */
typedef struct onnx2halide_box {
    onnx2halide_items* storage;
    int64_t first, count;
} onnx2halide_box;

typedef struct onnx2halide_boxes {
    onnx2halide_box* boxes;
    int64_t count, capacity;
} onnx2halide_boxes;

enum { ONNX2HALIDE_NOTHING = 0, ONNX2HALIDE_EMPTY_SEQUENCE = 1 };

typedef struct onnx2halide_run_memory {
    onnx2halide_chunk* chunks;
    onnx2halide_strings strings;
    onnx2halide_boxes boxes;
} onnx2halide_run_memory;

/* Discards what the last run created, but keeps the memory for the next. */
int onnx2halide_forget_run(struct onnx2halide_session* session);
void onnx2halide_free_run_memory(struct onnx2halide_session* session);

/* Allocates memory that is valid until the next run, aligned for any C type. Returns NULL on failure, and sets the
 * session's error. */
void* onnx2halide_keep(struct onnx2halide_session* session, size_t bytes);

/* Temporary memory of an operator: onnx2halide_give_back releases everything that onnx2halide_keep has allocated since
 * the mark was set. */
typedef struct onnx2halide_mark {
    onnx2halide_chunk* chunk;
    size_t used;
} onnx2halide_mark;
onnx2halide_mark onnx2halide_set_mark(const struct onnx2halide_session* session);
void onnx2halide_give_back(struct onnx2halide_session* session, onnx2halide_mark mark);

/* Finds the number of a string. A new string's text is copied and followed by a null character. */
int onnx2halide_number_of(struct onnx2halide_session* session, const char* text, size_t length, int64_t* number);
onnx2halide_string onnx2halide_text_of(const struct onnx2halide_session* session, int64_t number);

/* Creates a box of `count` items for the caller to fill in. */
int onnx2halide_new_box(struct onnx2halide_session* session, int64_t count, int64_t* number, onnx2halide_item** items);
/* Creates a box of `count` items of another one, from index `first`. */
int onnx2halide_part_of_box(struct onnx2halide_session* session, int64_t box, int64_t first, int64_t count,
                            int64_t* number);
/* Creates a box of the items of another one and one more at the end. */
int onnx2halide_box_with(struct onnx2halide_session* session, int64_t box, onnx2halide_item item, int64_t* number);
int64_t onnx2halide_box_size(const struct onnx2halide_session* session, int64_t box);
const onnx2halide_item* onnx2halide_items_of(const struct onnx2halide_session* session, int64_t box);

#endif
