/* Operators on sequences, optional values and maps. A tensor represents such a value by the number of a box (see
 * run_memory.h). Tensors are copied into boxes and out of them. */
#ifndef ONNX2HALIDE_BOX_OPERATORS_H
#define ONNX2HALIDE_BOX_OPERATORS_H

#include "steps.h"

/* SequenceEmpty, and Optional without an input. */
int onnx2halide_empty_box(onnx2halide_session* session, int64_t box, onnx2halide_result result);

/* SequenceConstruct, and Optional of a tensor. */
int onnx2halide_sequence_construct(onnx2halide_session* session, int count, const halide_buffer_t* const* tensors,
                                   onnx2halide_result result);

/* SequenceInsert. The position is in [-size, size]; NULL: the end. */
int onnx2halide_sequence_insert(onnx2halide_session* session, const halide_buffer_t* sequence,
                                const halide_buffer_t* tensor, const halide_buffer_t* position,
                                onnx2halide_result result);

/* SequenceErase. The position is in [-size, size); NULL: the last. */
int onnx2halide_sequence_erase(onnx2halide_session* session, const halide_buffer_t* sequence,
                               const halide_buffer_t* position, onnx2halide_result result);

/* SequenceAt. The tensor must have this rank and these extents; extent -1 allows any. */
int onnx2halide_sequence_at(onnx2halide_session* session, int rank, const int64_t* dims,
                            const halide_buffer_t* sequence, const halide_buffer_t* position,
                            onnx2halide_result result);

int onnx2halide_sequence_length(onnx2halide_session* session, const halide_buffer_t* sequence,
                                onnx2halide_result result);

/* SplitToSequence. `split` is a scalar, the extent of each part; or a vector with the extents of all parts; or NULL,
 * for parts of extent 1, which lose the axis unless `keeps_axis`. */
int onnx2halide_split_to_sequence(onnx2halide_session* session, int axis, int keeps_axis, const halide_buffer_t* x,
                                  const halide_buffer_t* split, onnx2halide_result result);

/* ConcatFromSequence. The result must have this rank and these extents; -1 allows any. */
int onnx2halide_concat_from_sequence(onnx2halide_session* session, int rank, const int64_t* dims, int axis,
                                     int is_new_axis, const halide_buffer_t* sequence, onnx2halide_result result);

int onnx2halide_optional_has_element(onnx2halide_session* session, const halide_buffer_t* optional,
                                     onnx2halide_result result);

/* OptionalGetElement, of an optional sequence or map, and of an optional tensor, which must have this rank and these
 * extents. */
int onnx2halide_optional_get_box(onnx2halide_session* session, const halide_buffer_t* optional,
                                 onnx2halide_result result);
int onnx2halide_optional_get_tensor(onnx2halide_session* session, int rank, const int64_t* dims,
                                    const halide_buffer_t* optional, onnx2halide_result result);

/* ZipMap: a sequence of one map per row of x, from `keys`, a constant, to the row's elements. */
int onnx2halide_map_rows(onnx2halide_session* session, const halide_buffer_t* x, const halide_buffer_t* keys,
                         onnx2halide_result result);

/* DictVectorizer: a row that holds the value of words[i], if it is a key of the map, in column columns[i], and 0
 * elsewhere. `words` is in ascending order. Other keys of the map are ignored. */
int onnx2halide_row_of_map(onnx2halide_session* session, const halide_buffer_t* map, const halide_buffer_t* words,
                           const halide_buffer_t* columns, onnx2halide_result result);

/* CastMap: a row of the map's values, which are cast from float32 or string to float32, string or int64. With columns
 * -1 (map_form DENSE) values are in the order of their keys; else (SPARSE) the row has that many columns, and a key is
 * the column of its value. */
int onnx2halide_cast_map(onnx2halide_session* session, int32_t from, int32_t to, int64_t columns,
                         const halide_buffer_t* map, onnx2halide_result result);

#endif
