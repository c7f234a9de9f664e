/* Operators on sequences, optional values and maps, whose tensors hold the number of a box (see run_memory.h). Tensors
 * are copied into boxes and out of them. */
#ifndef ONNX2HALIDE_BOX_OPERATORS_H
#define ONNX2HALIDE_BOX_OPERATORS_H

#include "steps.h"

/* SequenceEmpty, and Optional without an input. */
int onnx2halide_empty_box(onnx2halide_session* session, const char* node, int64_t box, onnx2halide_result result);

/* SequenceConstruct, and Optional of a tensor. */
int onnx2halide_sequence_construct(onnx2halide_session* session, const char* node, int count,
                                   const halide_buffer_t* const* tensors, onnx2halide_result result);

/* SequenceInsert: a position in [-size, size]; NULL: the end. */
int onnx2halide_sequence_insert(onnx2halide_session* session, const char* node, const halide_buffer_t* sequence,
                                const halide_buffer_t* tensor, const halide_buffer_t* position,
                                onnx2halide_result result);

/* SequenceErase: a position in [-size, size); NULL: the last. */
int onnx2halide_sequence_erase(onnx2halide_session* session, const char* node, const halide_buffer_t* sequence,
                               const halide_buffer_t* position, onnx2halide_result result);

/* SequenceAt. The tensor must have this rank and these extents; -1 is any. */
int onnx2halide_sequence_at(onnx2halide_session* session, const char* node, int rank, const int64_t* dims,
                            const halide_buffer_t* sequence, const halide_buffer_t* position,
                            onnx2halide_result result);

int onnx2halide_sequence_length(onnx2halide_session* session, const char* node, const halide_buffer_t* sequence,
                                onnx2halide_result result);

/* SplitToSequence: `split` is the extent of each part, those of all parts, or NULL: 1, without the axis unless it is
 * kept. */
int onnx2halide_split_to_sequence(onnx2halide_session* session, const char* node, int axis, int keeps_axis,
                                  const halide_buffer_t* x, const halide_buffer_t* split, onnx2halide_result result);

/* ConcatFromSequence; the result must have this rank and these extents. */
int onnx2halide_concat_from_sequence(onnx2halide_session* session, const char* node, int rank, const int64_t* dims,
                                     int axis, int is_new_axis, const halide_buffer_t* sequence,
                                     onnx2halide_result result);

int onnx2halide_optional_has_element(onnx2halide_session* session, const char* node, const halide_buffer_t* optional,
                                     onnx2halide_result result);

/* OptionalGetElement of what holds a box, or a tensor of this rank and these extents. */
int onnx2halide_optional_get_box(onnx2halide_session* session, const char* node, const halide_buffer_t* optional,
                                 onnx2halide_result result);
int onnx2halide_optional_get_tensor(onnx2halide_session* session, const char* node, int rank, const int64_t* dims,
                                    const halide_buffer_t* optional, onnx2halide_result result);

/* ZipMap: a sequence of maps from these keys, a constant, to the elements of a row. */
int onnx2halide_map_rows(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                         const halide_buffer_t* keys, onnx2halide_result result);

/* DictVectorizer: a row with a map's values in the columns that belong to the words, which are in ascending order;
 * elsewhere 0. Keys that are no words have no column. */
int onnx2halide_row_of_map(onnx2halide_session* session, const char* node, const halide_buffer_t* map,
                           const halide_buffer_t* words, const halide_buffer_t* columns, onnx2halide_result result);

/* CastMap: a row with a map's values, float32 or strings, as float32, strings or int64, in the order of their keys, or
 * each in the column that its key tells where that is one of so many; columns -1: as many as keys. */
int onnx2halide_cast_map(onnx2halide_session* session, const char* node, int32_t from, int32_t to, int64_t columns,
                         const halide_buffer_t* map, onnx2halide_result result);

#endif
