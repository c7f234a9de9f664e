#include "ngrams.h"

/* The n-grams of a pool, and a row of the result. */
typedef struct ngrams {
    const int64_t *items, *lengths, *columns;
    int64_t longest, max_skip;
    const float* weights; /* NULL: 1 each */
    int adds_up;
    double* row;
} ngrams;

/* Compares `length` items, `distance` apart, with an n-gram. */
static int compare(const int64_t* items, int64_t distance, const int64_t* ngram, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
        const int64_t item = items[i * distance];
        if (item != ngram[i]) return item < ngram[i] ? -1 : 1;
    }
    return 0;
}

/* The index of an n-gram among `count` known ones of its length; -1 if it is not one of them. */
static int64_t find(const int64_t* items, int64_t distance, const int64_t* known, int64_t count, int64_t length) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = compare(items, distance, known + middle * length, length);
        if (order == 0) return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* Adds the weights of the n-grams that start at an item, which `left` others follow. Those of one item count at
 * distance 1 only. */
static void weigh_at(const ngrams* n, const int64_t* item, int64_t left, int64_t distance) {
    const int64_t* known = n->items;
    int64_t first = 0; /* the first n-gram of this length */
    for (int64_t length = 1; length <= n->longest && (length - 1) * distance <= left; ++length) {
        const int64_t count = n->lengths[length - 1];
        const int64_t place = length == 1 && distance > 1 ? -1 : find(item, distance, known, count, length);
        if (place >= 0) {
            const double weight = n->weights ? (double)n->weights[first + place] : 1.0;
            double* to = &n->row[n->columns[first + place]];
            *to = n->adds_up ? *to + weight : weight;
        }
        known += count * length;
        first += count;
    }
}

static void weigh_row(const ngrams* n, const int64_t* row, int64_t size) {
    for (int64_t distance = 1; distance - 1 <= n->max_skip && (distance == 1 || distance < size); ++distance) {
        for (int64_t start = 0; start < size; ++start) weigh_at(n, row + start, size - 1 - start, distance);
    }
}

int onnx2halide_weigh_ngrams(onnx2halide_session* session, int adds_up, int64_t max_skip, int64_t columns,
                             const halide_buffer_t* items, const halide_buffer_t* pool, const halide_buffer_t* lengths,
                             const halide_buffer_t* columns_of, const halide_buffer_t* weights,
                             onnx2halide_result result) {
    const int64_t size = items->dim[0].extent, rows = items->dimensions == 2 ? items->dim[1].extent : 1;
    const int64_t dims[] = {rows, columns};
    double* to = NULL;
    RUN(onnx2halide_make_result(session, result, items->dimensions, dims + 2 - items->dimensions, (void**)&to));
    for (int64_t i = 0; i < rows * columns; ++i) to[i] = 0;
    for (int64_t row = 0; row < rows; ++row) {
        const ngrams n = {(const int64_t*)pool->host,
                          (const int64_t*)lengths->host,
                          (const int64_t*)columns_of->host,
                          lengths->dim[0].extent,
                          max_skip,
                          weights ? (const float*)weights->host : NULL,
                          adds_up,
                          to + row * columns};
        weigh_row(&n, (const int64_t*)items->host + row * size, size);
    }
    return 0;
}
