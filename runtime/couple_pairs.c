#include "host_operators.h"

#include <math.h>

/* One row: from the probabilities of the first class of each pair (0, 1), (0, 2), …, (1, 2), …, the probabilities p of
 * the classes that minimise p Q p, where Q is symmetric. */
typedef struct coupling {
    int64_t classes;
    const float* pairs;
    float *p, *products, *q; /* a number for each class: p, Q p, and a row of Q */
} coupling;

/* Computes row i of Q into q. */
static void set_row(const coupling* c, int64_t i) {
    float losses = 0;
    int64_t pair = i - 1; /* (0, i) */
    for (int64_t j = 0; j < i; ++j) {
        const float loss = c->pairs[pair];
        c->q[j] = -loss * (1 - loss);
        losses += loss * loss;
        pair += c->classes - 2 - j; /* (j + 1, i) */
    }
    for (int64_t j = i + 1; j < c->classes; ++j) {
        const float loss = 1 - c->pairs[++pair]; /* (i, j) */
        c->q[j] = -loss * (1 - loss);
        losses += loss * loss;
    }
    c->q[i] = losses;
}

/* Computes the products Q p, and returns p Q p. */
static float multiply(const coupling* c) {
    float sum = 0;
    for (int64_t i = 0; i < c->classes; ++i) {
        float product = 0;
        set_row(c, i);
        for (int64_t j = 0; j < c->classes; ++j) product += c->q[j] * c->p[j];
        c->products[i] = product;
        sum += c->p[i] * product;
    }
    return sum;
}

/* The largest deviation of the products from p Q p. At the minimum all products are equal. */
static float distance(const coupling* c, float sum) {
    float largest = 0;
    for (int64_t i = 0; i < c->classes; ++i) {
        const float error = fabsf(c->products[i] - sum);
        if (error > largest) largest = error;
    }
    return largest;
}

/* Updates one probability after another, and each time scales all of them to the sum 1. */
static void improve(const coupling* c, float sum) {
    for (int64_t i = 0; i < c->classes; ++i) {
        set_row(c, i);
        const float change = (sum - c->products[i]) / c->q[i], scale = 1 / (1 + change);
        c->p[i] += change;
        sum = (sum + change * (change * c->q[i] + 2 * c->products[i])) * scale * scale;
        for (int64_t j = 0; j < c->classes; ++j) {
            c->products[j] = (c->products[j] + change * c->q[j]) * scale;
            c->p[j] *= scale;
        }
    }
}

int onnx2halide_couple_pairs(onnx2halide_session* session, int64_t classes, const halide_buffer_t* pairs,
                             onnx2halide_result result) {
    const int64_t rows = pairs->dim[1].extent, dims[] = {rows, 3 * classes};
    float* to = NULL;
    RUN(onnx2halide_make_result(session, result, 2, dims, (void**)&to));
    for (int64_t row = 0; row < rows; ++row, to += 3 * classes) {
        const coupling c = {classes, (const float*)pairs->host + row * pairs->dim[0].extent, to, to + classes,
                            to + 2 * classes};
        for (int64_t i = 0; i < classes; ++i) c.p[i] = 1 / (float)classes;
        for (int iteration = 0; iteration < 100; ++iteration) {
            const float sum = multiply(&c);
            if (distance(&c, sum) < 0.005f / (float)classes) break;
            improve(&c, sum);
        }
    }
    return 0;
}
