/* N-grams: TfIdfVectorizer. */
#ifndef ONNX2HALIDE_NGRAMS_H
#define ONNX2HALIDE_NGRAMS_H

#include "steps.h"

/* TfIdfVectorizer: the weights of the n-grams in each row of `items` (int64, or the numbers of strings), as float64
 * [columns] or [rows, columns]. A column holds the sum of the weights of all occurrences or, unless `adds_up`, the
 * weight of one. `pool` holds lengths[0] n-grams of one item, then lengths[1] of two, and so on, each group in
 * ascending order. columns_of and `weights` (NULL: 1) belong to these n-grams. The items of an occurrence are equally
 * spaced, with up to max_skip others between two. */
int onnx2halide_weigh_ngrams(onnx2halide_session* session, int adds_up, int64_t max_skip, int64_t columns,
                             const halide_buffer_t* items, const halide_buffer_t* pool, const halide_buffer_t* lengths,
                             const halide_buffer_t* columns_of, const halide_buffer_t* weights,
                             onnx2halide_result result);

#endif
