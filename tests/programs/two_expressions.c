/* Two models, each with its own copy of RE2, print which of the program's arguments match their expressions. */
#include <stdio.h>
#include <string.h>

#include "others.h"
#include "words.h"

enum { MOST = 16 };

int main(int count, char** arguments) {
    onnx2halide_string texts[MOST];
    const int64_t dims[] = {count - 1};
    onnx2halide_value input = {.type = ONNX2HALIDE_STRING, .rank = 1, .dims = dims, .data = texts};
    onnx2halide_value result = {0}, other_result = {0};
    words* session;
    others* other_session;
    for (int i = 0; i + 1 < count && i < MOST; ++i) {
        texts[i].text = arguments[i + 1];
        texts[i].length = strlen(arguments[i + 1]);
    }
    input.size = (size_t)dims[0] * sizeof *texts;
    if (words_create(&session, NULL) != 0 || others_create(&other_session, NULL) != 0) return 1;
    if (words_run_values(session, &input, &result) != 0) return fprintf(stderr, "%s\n", words_error(session)), 2;
    if (others_run_values(other_session, &input, &other_result) != 0) return 3;
    for (int i = 0; i + 1 < count; ++i)
        printf("%s %d %d\n", texts[i].text, ((uint8_t*)result.data)[i], ((uint8_t*)other_result.data)[i]);
    words_destroy(session);
    others_destroy(other_session);
    return 0;
}
