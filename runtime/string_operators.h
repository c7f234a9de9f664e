/* Operators on strings. Tensors of strings hold numbers of strings in the session's table (see run_memory.h). */
#ifndef ONNX2HALIDE_STRING_OPERATORS_H
#define ONNX2HALIDE_STRING_OPERATORS_H

#include "steps.h"

/* StringConcat: each string of a, followed by that of b, with broadcasting. */
int onnx2halide_string_concat(onnx2halide_session* session, const halide_buffer_t* a, const halide_buffer_t* b,
                              onnx2halide_result result);

/* StringSplit: the substrings between delimiters (NULL: runs of white space) along a new last axis, which is padded
 * with empty strings, and the number of substrings of each element. At most `most` splits; -1: any number. */
int onnx2halide_string_split(onnx2halide_session* session, const char* delimiter, int64_t most,
                             const halide_buffer_t* x, onnx2halide_result parts, onnx2halide_result counts);

enum { ONNX2HALIDE_SAME_CASE = 0, ONNX2HALIDE_LOWER_CASE = 1, ONNX2HALIDE_UPPER_CASE = 2 };

/* StringNormalizer: the strings of a row that are not stop words, with their case changed; one empty string if none is
 * left. If the system lacks the locale, C.UTF-8 takes its place. */
int onnx2halide_string_normalizer(onnx2halide_session* session, int change, int is_case_sensitive, const char* locale,
                                  int stop_count, const onnx2halide_string* stop_words, const halide_buffer_t* x,
                                  onnx2halide_result result);

/* com.microsoft.MurmurHash3: a 32-bit hash of each string or, for other types, of the bytes of each element. */
int onnx2halide_murmur_hash(onnx2halide_session* session, int are_strings, uint32_t seed, const halide_buffer_t* x,
                            onnx2halide_result hashes);

/* Cast between strings and float32, float64, int64 or uint64. Floats are printed with up to 8 digits. A string is
 * parsed as the number that it starts with; it is an error if there is none, or if it is out of the range of int64,
 * uint64 or, for both types of floats, float64. */
int onnx2halide_print_numbers(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result result);
int onnx2halide_parse_numbers(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result result);

/* RegexFullMatch: whether each string as a whole matches a regular expression of RE2. Defined in
 * regular_expressions.cc, which is linked only into models that need it. */
int onnx2halide_regex_full_match(onnx2halide_session* session, const char* pattern, int64_t length,
                                 const halide_buffer_t* x, onnx2halide_result result);

/* com.microsoft.Tokenizer: the tokens of each string along a new last axis, which is padded with `pad`. Tokens are the
 * longest matches of one regular expression of RE2 or, with are_separators, the text between the matches of several,
 * which are applied one after another. Tokens of fewer than `least` characters are dropped. With is_marked, the strings
 * "\x02" and "\x03" enclose the tokens of each element. Defined in regular_expressions.cc, too. */
int onnx2halide_tokenizer(onnx2halide_session* session, int are_separators, int64_t least, int is_marked,
                          onnx2halide_string pad, int count, const onnx2halide_string* patterns,
                          const halide_buffer_t* x, onnx2halide_result result);

#endif
