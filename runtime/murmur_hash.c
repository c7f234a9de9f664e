#include "string_operators.h"

/* MurmurHash3_x86_32 by Austin Appleby; bytes are read as little-endian words. */

static uint32_t rotated(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }

static uint32_t mixed(uint32_t word) { return rotated(word * 0xcc9e2d51u, 15) * 0x1b873593u; }

static uint32_t word_of(const unsigned char* bytes, size_t count) {
    uint32_t word = 0;
    for (size_t i = 0; i < count; ++i) word |= (uint32_t)bytes[i] << (8 * i);
    return word;
}

static uint32_t murmur_hash(const unsigned char* bytes, size_t length, uint32_t seed) {
    uint32_t hash = seed;
    const size_t whole = length / 4 * 4;
    for (size_t i = 0; i < whole; i += 4) hash = rotated(hash ^ mixed(word_of(bytes + i, 4)), 13) * 5 + 0xe6546b64u;
    if (length > whole) hash ^= mixed(word_of(bytes + whole, length - whole));
    hash ^= (uint32_t)length;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

int onnx2halide_murmur_hash(onnx2halide_session* session, int are_strings, uint32_t seed, const halide_buffer_t* x,
                            onnx2halide_result hashes) {
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    uint32_t* to = NULL;
    RUN(onnx2halide_make_result(session, hashes, x->dimensions, dims, (void**)&to));
    const int64_t count = onnx2halide_element_count(x);
    const size_t bytes = onnx2halide_element_bytes(x);
    for (int64_t i = 0; i < count && to; ++i) {
        onnx2halide_string text = {(const char*)x->host + (size_t)i * bytes, bytes};
        if (are_strings) text = onnx2halide_text_of(session, ((const int64_t*)x->host)[i]);
        to[i] = murmur_hash((const unsigned char*)text.text, text.length, seed);
    }
    return 0;
}
