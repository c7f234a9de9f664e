/* Operators that no kernel can compute: the size of their results, or the end of their computation, depends on the
 * elements of their inputs, or they fail for some elements. Parameters: the session, whose node messages name, the
 * attributes, the inputs (NULL if omitted) and the results. */
#ifndef ONNX2HALIDE_HOST_OPERATORS_H
#define ONNX2HALIDE_HOST_OPERATORS_H

#include "steps.h"

/* Fails unless the condition of an If, whose other branch has results that do not fit what follows, is true (`wanted`
 * 1) or false (0). */
int onnx2halide_require_condition(onnx2halide_session* session, int wanted, const halide_buffer_t* condition);

/* NonZero: the coordinates of the elements that are not 0, int64 [rank, count]. */
int onnx2halide_non_zero(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result coordinates);

/* Compress: the slices along `axis` (-1: the elements) for which the condition is true. */
int onnx2halide_compress(onnx2halide_session* session, int axis, const halide_buffer_t* x,
                         const halide_buffer_t* condition, onnx2halide_result kept);

/* Unique: the distinct slices along `axis` (-1: elements), in ascending order if `sorted`, else in order of occurrence;
 * the index of the first occurrence of each; for each slice of x the index of its value; how often each occurs. */
int onnx2halide_unique(onnx2halide_session* session, int are_strings, int axis, int sorted, const halide_buffer_t* x,
                       onnx2halide_result values, onnx2halide_result first, onnx2halide_result inverse,
                       onnx2halide_result counts);

/* NonMaxSuppression: from boxes [batches, n, 4] and scores [batches, classes, n] to int64 [count, 3], the batch, class
 * and box of each selection. The limits are scalars: the maximum number of boxes per class (NULL: 0), the largest
 * overlap (NULL: 0), the lowest score (NULL: none). */
int onnx2halide_non_max_suppression(onnx2halide_session* session, int center_point_box, const halide_buffer_t* boxes,
                                    const halide_buffer_t* scores, const halide_buffer_t* max_boxes,
                                    const halide_buffer_t* iou_threshold, const halide_buffer_t* score_threshold,
                                    onnx2halide_result selected);

/* Range: start, start + delta, … up to but excluding the limit; all operands are scalars of the result's type. */
int onnx2halide_range(onnx2halide_session* session, const halide_buffer_t* start, const halide_buffer_t* limit,
                      const halide_buffer_t* delta, onnx2halide_result range);

/* Maps elements of a type to unsigned integers in the same order. NaN comes last, and zeros of both signs are equal. */
uint64_t onnx2halide_order_key(struct halide_type_t type, const unsigned char* element);

/* TopK: the `count` largest or smallest elements along an axis and their indices, best first; among equal elements the
 * one with the lower index. */
int onnx2halide_top_k(onnx2halide_session* session, int axis, int largest, int64_t count, const halide_buffer_t* x,
                      onnx2halide_result values, onnx2halide_result indices);
/* The same for k, an int64 scalar, instead of `count`. */
int onnx2halide_top_k_of_operand(onnx2halide_session* session, int axis, int largest, const halide_buffer_t* x,
                                 const halide_buffer_t* k, onnx2halide_result values, onnx2halide_result indices);

/* Pairwise coupling of a support vector machine's probabilities. pairs [rows, classes * (classes - 1) / 2] holds for
 * each pair of classes the probability of the first against the second. Each row of the result, [rows, 3 * classes],
 * holds the probabilities of the classes, then work space. */
int onnx2halide_couple_pairs(onnx2halide_session* session, int64_t classes, const halide_buffer_t* pairs,
                             onnx2halide_result result);

/* com.microsoft.DynamicTimeWarping: the path through a matrix of costs with the least sum, among those whose steps
 * advance by a row, a column or both; as its row indices and its column indices. */
int onnx2halide_warp_time(onnx2halide_session* session, const halide_buffer_t* costs, onnx2halide_result path);

/* Det: the determinants of the matrices along the last two axes, of float or double. */
int onnx2halide_determinant(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result determinants);
/* com.microsoft.Inverse: the inverses of such matrices; the elements for a singular matrix are not finite. */
int onnx2halide_inverse(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result inverses);

/* The shape, int64, of a tensor that gains axes of extent 1 (Unsqueeze), or loses such axes (Squeeze). `axes` refer to
 * the longer shape; negative ones count from its end. */
int onnx2halide_insert_axes(onnx2halide_session* session, const halide_buffer_t* shape, const halide_buffer_t* axes,
                            onnx2halide_result longer);
int onnx2halide_remove_axes(onnx2halide_session* session, const halide_buffer_t* shape, const halide_buffer_t* axes,
                            onnx2halide_result shorter);

/* OneHotEncoder (ai.onnx.ml) with zeros = 0, of int64, strings, float or double: float32, with a new last axis of
 * `width` elements, of which the one at columns[i] is 1 if the element is categories[i]. Categories, int64 or strings,
 * are in ascending order. Fails for an element that is not a category. */
int onnx2halide_one_hot(onnx2halide_session* session, int is_string, int64_t width, const halide_buffer_t* x,
                        const halide_buffer_t* categories, const halide_buffer_t* columns, onnx2halide_result result);

#endif
