#define _GNU_SOURCE
#include "string_operators.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "plain_numbers.h"

static const int64_t* numbers_of(const halide_buffer_t* strings) { return (const int64_t*)strings->host; }

static int no_memory(onnx2halide_session* session) {
    return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory");
}

/* StringConcat */

/* The index in an operand for an index in the result. The axes of the operand are the last ones of the result; those of
 * extent 1 are broadcast. */
static int64_t broadcast_place(const halide_buffer_t* operand, int64_t place, const int64_t* dims, int rank) {
    int64_t own = 0, stride = 1;
    for (int axis = rank - 1; axis >= rank - operand->dimensions; --axis) {
        const int64_t size = onnx2halide_extent(operand, axis - rank + operand->dimensions), at = place % dims[axis];
        if (size > 1) own += at * stride;
        stride *= size;
        place /= dims[axis];
    }
    return own;
}

static int concatenate(onnx2halide_session* session, int64_t a, int64_t b, int64_t* number) {
    const onnx2halide_string first = onnx2halide_text_of(session, a), second = onnx2halide_text_of(session, b);
    if (first.length == 0 || second.length == 0) {
        *number = first.length == 0 ? b : a;
        return 0;
    }
    char* text = malloc(first.length + second.length);
    if (!text) return ONNX2HALIDE_NO_MEMORY;
    memcpy(text, first.text, first.length);
    memcpy(text + first.length, second.text, second.length);
    const int code = onnx2halide_number_of(session, text, first.length + second.length, number);
    free(text);
    return code;
}

int onnx2halide_string_concat(onnx2halide_session* session, const halide_buffer_t* a, const halide_buffer_t* b,
                              onnx2halide_result result) {
    const int rank = a->dimensions > b->dimensions ? a->dimensions : b->dimensions;
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    for (int axis = 0; axis < rank; ++axis) {
        const int in_a = axis - rank + a->dimensions, in_b = axis - rank + b->dimensions;
        const int64_t p = in_a < 0 ? 1 : onnx2halide_extent(a, in_a), q = in_b < 0 ? 1 : onnx2halide_extent(b, in_b);
        if (p != q && p != 1 && q != 1) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "inputs have %lld and %lld strings along axis %d, expected as many or 1",
                                    (long long)p, (long long)q, axis);
        }
        dims[axis] = p == 1 ? q : p;
    }
    int64_t* to = NULL;
    RUN(onnx2halide_make_result(session, result, rank, dims, (void**)&to));
    const int64_t count = onnx2halide_element_count(&session->tensors[result.tensor]);
    int code = 0;
    for (int64_t i = 0; i < count && code == 0; ++i) {
        code = concatenate(session, numbers_of(a)[broadcast_place(a, i, dims, rank)],
                           numbers_of(b)[broadcast_place(b, i, dims, rank)], &to[i]);
    }
    return code == ONNX2HALIDE_NO_MEMORY ? no_memory(session) : code;
}

/* StringSplit */

static int is_space(char character) { return character == ' ' || (character >= '\t' && character <= '\r'); }

/* The state of splitting a text: what is left of it. */
typedef struct cutting {
    const char *at, *end;
    const char* delimiter; /* NULL: white space */
    int64_t cuts;          /* how many splits remain; -1: any number */
    int is_done;
} cutting;

static cutting start_cutting(onnx2halide_string text, const char* delimiter, int64_t most) {
    return (cutting){text.text, text.text + text.length, delimiter, most, 0};
}

/* Takes the next part. Returns 0 if there is none. */
static int next_part(cutting* c, onnx2halide_string* part) {
    if (!c->delimiter) {
        while (c->at < c->end && is_space(*c->at)) ++c->at;
        if (c->at == c->end) return 0;
    }
    if (c->is_done) return 0;
    const char* start = c->at;
    const size_t width = c->delimiter ? strlen(c->delimiter) : 1;
    const char* stop = c->end;
    if (c->cuts != 0 && c->delimiter) {
        const char* found = memmem(start, (size_t)(c->end - start), c->delimiter, width);
        if (found) stop = found;
    } else if (c->cuts != 0) {
        for (stop = start; stop < c->end && !is_space(*stop);) ++stop;
    }
    c->is_done = stop == c->end;
    if (!c->is_done) c->at = stop + width;
    if (c->cuts > 0) --c->cuts;
    *part = (onnx2halide_string){start, (size_t)(stop - start)};
    return 1;
}

int onnx2halide_string_split(onnx2halide_session* session, const char* delimiter, int64_t most,
                             const halide_buffer_t* x, onnx2halide_result parts, onnx2halide_result counts) {
    const int rank = x->dimensions;
    const int64_t count = onnx2halide_element_count(x);
    int64_t dims[ONNX2HALIDE_MAX_RANK], *numbers = NULL, *found = NULL, widest = 0;
    onnx2halide_string part;
    onnx2halide_get_dims(x, dims);
    if (counts.tensor >= 0) RUN(onnx2halide_make_result(session, counts, rank, dims, (void**)&found));
    for (int64_t i = 0; i < count; ++i) {
        int64_t own = 0;
        cutting c = start_cutting(onnx2halide_text_of(session, numbers_of(x)[i]), delimiter, most);
        while (next_part(&c, &part)) ++own;
        if (found) found[i] = own;
        if (own > widest) widest = own;
    }
    if (parts.tensor < 0) return 0;
    dims[rank] = widest;
    RUN(onnx2halide_make_result(session, parts, rank + 1, dims, (void**)&numbers));
    for (int64_t i = 0; i < count && widest > 0; ++i) {
        int64_t* own = numbers + i * widest;
        memset(own, 0, (size_t)widest * sizeof *own);
        cutting c = start_cutting(onnx2halide_text_of(session, numbers_of(x)[i]), delimiter, most);
        while (next_part(&c, &part)) RUN(onnx2halide_number_of(session, part.text, part.length, own++));
    }
    return 0;
}

/* StringNormalizer */

/* Returns the first code point of UTF-8 text and its number of bytes. Invalid bytes are taken one by one, as code point
 * 0. */
static uint32_t code_point(const unsigned char* text, size_t length, size_t* bytes) {
    const unsigned char first = text[0];
    *bytes = first < 0x80                    ? 1
             : first >= 0xf0 && first < 0xf8 ? 4
             : first >= 0xe0 && first < 0xf0 ? 3
             : first >= 0xc2 && first < 0xe0 ? 2
                                             : 0;
    uint32_t code = *bytes < 2 ? first : first & (0x7fu >> *bytes);
    for (size_t i = 1; i < *bytes; ++i) {
        if (i >= length || (text[i] & 0xc0) != 0x80)
            *bytes = 0;
        else
            code = code << 6 | (text[i] & 0x3f);
    }
    if (*bytes > 0) return code;
    *bytes = 1;
    return 0;
}

static size_t write_code_point(uint32_t code, char* to) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes - 1; i > 0; --i, code >>= 6) to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(marks[bytes] | code);
    return bytes;
}

/* Writes a text with its case changed to `to`, which has room for four times its length. Returns the new length. */
static size_t change_case(onnx2halide_string text, int change, locale_t locale, char* to) {
    size_t length = 0, bytes = 0;
    for (size_t i = 0; i < text.length; i += bytes) {
        const uint32_t code = code_point((const unsigned char*)text.text + i, text.length - i, &bytes);
        if (code == 0) {
            to[length++] = text.text[i];
            continue;
        }
        const wint_t changed = change == ONNX2HALIDE_LOWER_CASE   ? towlower_l((wint_t)code, locale)
                               : change == ONNX2HALIDE_UPPER_CASE ? towupper_l((wint_t)code, locale)
                                                                  : (wint_t)code;
        length += write_code_point((uint32_t)changed, to + length);
    }
    return length;
}

/* Finds the number of a string with its case changed. */
static int in_case(onnx2halide_session* session, onnx2halide_string text, int change, locale_t locale,
                   int64_t* number) {
    char* changed = malloc(4 * text.length + 1);
    if (!changed) return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for a string");
    const int code = onnx2halide_number_of(session, changed, change_case(text, change, locale, changed), number);
    free(changed);
    return code;
}

static locale_t open_locale(const char* name) {
    locale_t locale = name[0] ? newlocale(LC_CTYPE_MASK, name, (locale_t)0) : (locale_t)0;
    if (!locale) locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return locale ? locale : newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
}

/* Writes the numbers of the strings that are kept. Stop words are compared as they are or in lower case. */
static int normalise(onnx2halide_session* session, int change, int is_case_sensitive, locale_t locale, int stop_count,
                     const onnx2halide_string* stop_words, const halide_buffer_t* x, int64_t* stops, int64_t* kept,
                     int64_t* kept_count) {
    const int compared = is_case_sensitive ? ONNX2HALIDE_SAME_CASE : ONNX2HALIDE_LOWER_CASE;
    for (int i = 0; i < stop_count; ++i) RUN(in_case(session, stop_words[i], compared, locale, &stops[i]));
    for (int64_t i = 0; i < onnx2halide_element_count(x); ++i) {
        const onnx2halide_string text = onnx2halide_text_of(session, numbers_of(x)[i]);
        int64_t word = 0;
        int is_stop = 0;
        RUN(in_case(session, text, compared, locale, &word));
        for (int j = 0; j < stop_count && !is_stop; ++j) is_stop = stops[j] == word;
        if (is_stop) continue;
        RUN(in_case(session, text, change, locale, &kept[(*kept_count)++]));
    }
    if (*kept_count == 0) kept[(*kept_count)++] = 0;
    return 0;
}

int onnx2halide_string_normalizer(onnx2halide_session* session, int change, int is_case_sensitive, const char* locale,
                                  int stop_count, const onnx2halide_string* stop_words, const halide_buffer_t* x,
                                  onnx2halide_result result) {
    const int64_t count = onnx2halide_element_count(x);
    int64_t* stops = malloc(((size_t)stop_count + (size_t)count + 1) * sizeof *stops);
    const locale_t cases = open_locale(locale);
    int64_t *kept = stops + stop_count, kept_count = 0;
    int code = stops && cases ? normalise(session, change, is_case_sensitive, cases, stop_count, stop_words, x, stops,
                                          kept, &kept_count)
                              : no_memory(session);
    int64_t* to = NULL;
    const int64_t dims[] = {1, kept_count};
    if (code == 0)
        code = onnx2halide_make_result(session, result, x->dimensions, dims + 2 - x->dimensions, (void**)&to);
    if (code == 0) memcpy(to, kept, (size_t)kept_count * sizeof *to);
    if (cases) freelocale(cases);
    free(stops);
    return code;
}

/* Cast */

static int print_real(double real, char* text, size_t size) {
    if (isnan(real)) return snprintf(text, size, "NaN");
    if (isinf(real)) return snprintf(text, size, real < 0 ? "-INF" : "INF");
    return snprintf(text, size, "%.8g", real);
}

static int print_number(const halide_buffer_t* x, int64_t i, char* text, size_t size) {
    switch (x->type.code) {
    case halide_type_int: return snprintf(text, size, "%lld", (long long)((const int64_t*)x->host)[i]);
    case halide_type_uint: return snprintf(text, size, "%llu", (unsigned long long)((const uint64_t*)x->host)[i]);
    default: return print_real(onnx2halide_real_at(x, i), text, size);
    }
}

static int print_all(onnx2halide_session* session, const halide_buffer_t* x, int64_t count, int64_t* to) {
    char text[64];
    for (int64_t i = 0; i < count; ++i) {
        const int length = print_number(x, i, text, sizeof text);
        RUN(onnx2halide_number_of(session, text, (size_t)length, &to[i]));
    }
    return 0;
}

/* Returns 0 if the text does not start with a number of this type. A float is a double first, as in onnxruntime: one
 * beyond its own range is infinite or 0. */
static int parse_number(const char* text, struct halide_type_t type, void* to, int64_t i) {
    char* end = NULL;
    errno = 0;
    if (type.code == halide_type_int) {
        ((int64_t*)to)[i] = strtoll(text, &end, 10);
    } else if (type.code == halide_type_uint) {
        ((uint64_t*)to)[i] = strtoull(text, &end, 10);
    } else {
        const double real = strtod(text, &end);
        if (type.bits == 64)
            ((double*)to)[i] = real;
        else
            ((float*)to)[i] = (float)real;
    }
    return end != text && errno != ERANGE;
}

static const char* name_of(struct halide_type_t type) {
    if (type.code == halide_type_int) return "int64";
    if (type.code == halide_type_uint) return "uint64";
    return type.bits == 64 ? "float64" : "float32";
}

static int parse_all(onnx2halide_session* session, const halide_buffer_t* x, struct halide_type_t type, void* to) {
    for (int64_t i = 0; i < onnx2halide_element_count(x); ++i) {
        const char* text = onnx2halide_text_of(session, numbers_of(x)[i]).text;
        if (parse_number(text, type, to, i)) continue;
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                "input 0 has the string '%.40s', expected a number of type %s", text, name_of(type));
    }
    return 0;
}

int onnx2halide_print_numbers(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result result) {
    int64_t dims[ONNX2HALIDE_MAX_RANK], *to = NULL;
    onnx2halide_get_dims(x, dims);
    RUN(onnx2halide_make_result(session, result, x->dimensions, dims, (void**)&to));
    onnx2halide_locales locales;
    RUN(onnx2halide_use_plain_numbers(session, &locales));
    const int64_t count = onnx2halide_element_count(x);
    const int code = print_all(session, x, count, to);
    onnx2halide_restore_locale(&locales);
    return code;
}

int onnx2halide_parse_numbers(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result result) {
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    void* to = NULL;
    onnx2halide_get_dims(x, dims);
    RUN(onnx2halide_make_result(session, result, x->dimensions, dims, &to));
    onnx2halide_locales locales;
    RUN(onnx2halide_use_plain_numbers(session, &locales));
    const int code = parse_all(session, x, session->tensors[result.tensor].type, to);
    onnx2halide_restore_locale(&locales);
    return code;
}
