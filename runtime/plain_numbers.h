/* The C locale, in which printf and strtod use a decimal point whatever the program has chosen with setlocale.
 * Includers define _GNU_SOURCE. */
#ifndef ONNX2HALIDE_PLAIN_NUMBERS_H
#define ONNX2HALIDE_PLAIN_NUMBERS_H

#include <locale.h>

#include "session.h"

typedef struct onnx2halide_locales {
    locale_t plain, before;
} onnx2halide_locales;

/* Switches the calling thread to the C locale. */
static inline int onnx2halide_use_plain_numbers(onnx2halide_session* session, onnx2halide_locales* locales) {
    locales->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locales->plain) return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory");
    locales->before = uselocale(locales->plain);
    return 0;
}

/* Switches back. */
static inline void onnx2halide_restore_locale(const onnx2halide_locales* locales) {
    uselocale(locales->before);
    freelocale(locales->plain);
}

#endif
