/* N-grams: TfIdfVectorizer. */
#ifndef ONNX2HALIDE_NGRAMS_H
#define ONNX2HALIDE_NGRAMS_H

#include "steps.h"

/* What the n-grams in each row of items (int64, or strings' numbers) weigh, in float64 [columns] or [rows, columns]:
 * the weights of all that count in a column together or, not added up, of one of them. The pool has lengths[0] n-grams
 * of one item, then lengths[1] of two, ..., those of a length in ascending order; each counts in a column, and has a
 * weight (NULL: 1). Items of an n-gram lie equally far from each other, with up to max_skip others between two. */
int onnx2halide_weigh_ngrams(onnx2halide_session* session, const char* node, int adds_up, int64_t max_skip,
                             int64_t columns, const halide_buffer_t* items, const halide_buffer_t* pool,
                             const halide_buffer_t* lengths, const halide_buffer_t* columns_of,
                             const halide_buffer_t* weights, onnx2halide_result result);

#endif
