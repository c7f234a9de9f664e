#include <new>

#include <re2/re2.h>

// What the runtime's headers include of C++'s own.
#include "HalideRuntime.h"

extern "C" {
#include "string_operators.h"
}

namespace {

int match_all(onnx2halide_session* session, const RE2& expression, const halide_buffer_t* x, uint8_t* matches) {
    const size_t count = onnx2halide_tensor_bytes(x) / sizeof(int64_t);
    const auto* numbers = reinterpret_cast<const int64_t*>(x->host);
    for (size_t i = 0; i < count; ++i) {
        const onnx2halide_string text = onnx2halide_text_of(session, numbers[i]);
        matches[i] = RE2::FullMatch(re2::StringPiece(text.text, text.length), expression);
    }
    return 0;
}

}  // namespace

extern "C" int onnx2halide_regex_full_match(onnx2halide_session* session, const char* node, const char* pattern,
                                            int64_t length, const halide_buffer_t* x, onnx2halide_result result) {
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    void* matches = nullptr;
    RUN(onnx2halide_make_result(session, result, x->dimensions, dims, &matches));
    try {
        RE2::Options options;
        options.set_log_errors(false);
        const RE2 expression(re2::StringPiece(pattern, static_cast<size_t>(length)), options);
        if (!expression.ok())
            return onnx2halide_fail(session, ONNX2HALIDE_FAILED, "%s: %s", node, expression.error().c_str());
        return match_all(session, expression, x, static_cast<uint8_t*>(matches));
    } catch (const std::bad_alloc&) {
        return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "%s: no memory", node);
    }
}
