/* Operators whose results have sizes, or whose computations an end, that only their inputs' elements tell, or that fail
 * on some elements, so no kernel can compute them. Each takes the session, what messages call its node, its attributes,
 * its inputs (NULL where omitted) and its results. */
#ifndef ONNX2HALIDE_HOST_OPERATORS_H
#define ONNX2HALIDE_HOST_OPERATORS_H

#include "steps.h"

/* Fails where the condition of an If is false whose other branch gives results of another rank. */
int onnx2halide_require_true(onnx2halide_session* session, const char* node, const halide_buffer_t* condition);

/* NonZero: coordinates of the elements that are not 0, int64 [rank, count]. */
int onnx2halide_non_zero(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                         onnx2halide_result coordinates);

/* Compress: the slices along `axis` (-1: the elements) where the condition is true. */
int onnx2halide_compress(onnx2halide_session* session, const char* node, int axis, const halide_buffer_t* x,
                         const halide_buffer_t* condition, onnx2halide_result kept);

/* Unique: the different slices along `axis` (-1: elements), in order of size or, not sorted, of occurrence; where each
 * occurs first; which one each slice is; how often each occurs. */
int onnx2halide_unique(onnx2halide_session* session, const char* node, int axis, int sorted, const halide_buffer_t* x,
                       onnx2halide_result values, onnx2halide_result first, onnx2halide_result inverse,
                       onnx2halide_result counts);

/* NonMaxSuppression: boxes [batches, n, 4], scores [batches, classes, n]; int64 [count, 3] of batch, class and box. The
 * limits are scalars: the most boxes a class (NULL: 0), the largest overlap (NULL: 0), the lowest score (NULL: none).
 */
int onnx2halide_non_max_suppression(onnx2halide_session* session, const char* node, int center_point_box,
                                    const halide_buffer_t* boxes, const halide_buffer_t* scores,
                                    const halide_buffer_t* max_boxes, const halide_buffer_t* iou_threshold,
                                    const halide_buffer_t* score_threshold, onnx2halide_result selected);

/* Range: start, start + delta, ... before the limit, all scalars of the result's type. */
int onnx2halide_range(onnx2halide_session* session, const char* node, const halide_buffer_t* start,
                      const halide_buffer_t* limit, const halide_buffer_t* delta, onnx2halide_result range);

/* A number that is the larger the larger an element of its type is; NaN comes last, and zeros of both signs are equal.
 */
uint64_t onnx2halide_order_key(struct halide_type_t type, const unsigned char* element);

/* TopK: the `count` largest or smallest elements along an axis and their indices, in order, of equal ones the first. */
int onnx2halide_top_k(onnx2halide_session* session, const char* node, int axis, int largest, int64_t count,
                      const halide_buffer_t* x, onnx2halide_result values, onnx2halide_result indices);
/* The same, as many as k, an int64, says. */
int onnx2halide_top_k_of_operand(onnx2halide_session* session, const char* node, int axis, int largest,
                                 const halide_buffer_t* x, const halide_buffer_t* k, onnx2halide_result values,
                                 onnx2halide_result indices);

/* Probabilities of classes, [rows, 3 classes], from those that the first of two has against the second, [rows, pairs]:
 * those of a row, then what was needed to find them. */
int onnx2halide_couple_pairs(onnx2halide_session* session, const char* node, int64_t classes,
                             const halide_buffer_t* pairs, onnx2halide_result result);

/* com.microsoft.DynamicTimeWarping: of the paths through a matrix of costs that go on by a row, a column or both, the
 * one whose costs add up to least, as its rows and its columns. */
int onnx2halide_warp_time(onnx2halide_session* session, const char* node, const halide_buffer_t* costs,
                          onnx2halide_result path);

/* Det: the determinants of the matrices that the last two axes hold, of float or double. */
int onnx2halide_determinant(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                            onnx2halide_result determinants);
/* com.microsoft.Inverse: the inverses of such matrices; of a singular one numbers that are not finite. */
int onnx2halide_inverse(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                        onnx2halide_result inverses);

/* The extents, int64, of a tensor that gets axes of extent 1, or loses such axes. Axes count in the longer shape, and
 * from its end where they are negative. */
int onnx2halide_insert_axes(onnx2halide_session* session, const char* node, const halide_buffer_t* shape,
                            const halide_buffer_t* axes, onnx2halide_result longer);
int onnx2halide_remove_axes(onnx2halide_session* session, const char* node, const halide_buffer_t* shape,
                            const halide_buffer_t* axes, onnx2halide_result shorter);

/* OneHotEncoder (ai.onnx.ml) with zeros = 0: float32, a new last axis with a 1 in the place of each element's category,
 * the last of equal ones. Categories are int64 or strings. Fails on an element that is none of them. */
int onnx2halide_one_hot(onnx2halide_session* session, const char* node, int is_string, const halide_buffer_t* x,
                        const halide_buffer_t* categories, onnx2halide_result result);

#endif
