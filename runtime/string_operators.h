/* Operators on strings, whose tensors hold numbers in the session's table (see run_memory.h). */
#ifndef ONNX2HALIDE_STRING_OPERATORS_H
#define ONNX2HALIDE_STRING_OPERATORS_H

#include "steps.h"

/* StringConcat: a's strings before b's, broadcast. */
int onnx2halide_string_concat(onnx2halide_session* session, const char* node, const halide_buffer_t* a,
                              const halide_buffer_t* b, onnx2halide_result result);

/* StringSplit: the parts between delimiters (NULL: stretches of white space) along a new last axis, filled up with
 * empty strings, and how many each has. At most `most` cuts; -1: any number. */
int onnx2halide_string_split(onnx2halide_session* session, const char* node, const char* delimiter, int64_t most,
                             const halide_buffer_t* x, onnx2halide_result parts, onnx2halide_result counts);

enum { ONNX2HALIDE_SAME_CASE = 0, ONNX2HALIDE_LOWER_CASE = 1, ONNX2HALIDE_UPPER_CASE = 2 };

/* StringNormalizer: those of a row of strings that are no stop words, in this case; one empty string where none is
 * left. A locale that the system lacks counts as C.UTF-8. */
int onnx2halide_string_normalizer(onnx2halide_session* session, const char* node, int change, int is_case_sensitive,
                                  const char* locale, int stop_count, const onnx2halide_string* stop_words,
                                  const halide_buffer_t* x, onnx2halide_result result);

/* com.microsoft.MurmurHash3: 32 bits for each string or, of another tensor, for each element's bytes. */
int onnx2halide_murmur_hash(onnx2halide_session* session, const char* node, int are_strings, uint32_t seed,
                            const halide_buffer_t* x, onnx2halide_result hashes);

/* Cast: float32, float64, int64 or uint64 as text, floats with up to 8 digits, and the reverse, for which the number at
 * the start of a text counts. Fails on a text that does not start with one, or with one out of range. */
int onnx2halide_print_numbers(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                              onnx2halide_result result);
int onnx2halide_parse_numbers(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                              onnx2halide_result result);

/* RegexFullMatch: whether each string as a whole matches an expression of RE2. In regular_expressions.cc, which only
 * models that call it have. */
int onnx2halide_regex_full_match(onnx2halide_session* session, const char* node, const char* pattern, int64_t length,
                                 const halide_buffer_t* x, onnx2halide_result result);

/* com.microsoft.Tokenizer: along a new last axis the tokens of each string, filled up with `pad`: what matches one
 * expression of RE2, as long as can be, or what lies between separators, which are expressions that cut one after
 * another. Tokens of fewer than `least` characters are left out; marks are characters 2 and 3 around the others. There,
 * too. */
int onnx2halide_tokenizer(onnx2halide_session* session, const char* node, int are_separators, int64_t least,
                          int is_marked, onnx2halide_string pad, int count, const onnx2halide_string* patterns,
                          const halide_buffer_t* x, onnx2halide_result result);

#endif
