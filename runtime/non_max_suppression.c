#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host_operators.h"

typedef struct box {
    float y1, x1, y2, x2;
} box;

/* Unlike fminf and fmaxf, these are not function calls. */
static float smaller(float a, float b) { return a < b ? a : b; }
static float larger(float a, float b) { return a < b ? b : a; }

static box read_box(const float* numbers, int center_point_box) {
    const float a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3];
    if (center_point_box) return (box){b - d / 2, a - c / 2, b + d / 2, a + c / 2};
    return (box){smaller(a, c), smaller(b, d), larger(a, c), larger(b, d)};
}

static float area_of(box b) { return (b.y2 - b.y1) * (b.x2 - b.x1); }

/* A structure of arrays, so that the compiler vectorises loops over boxes. */
enum { BOXES_AT_ONCE = 8 };
typedef struct boxes_at_once {
    float y1[BOXES_AT_ONCE], x1[BOXES_AT_ONCE], y2[BOXES_AT_ONCE], x2[BOXES_AT_ONCE], area[BOXES_AT_ONCE];
} boxes_at_once;

/* The boxes that are kept, in cells by their left edges: a box is compared only with those that may reach it. */
enum { MOST_CELLS = 256 };
typedef struct kept_boxes {
    boxes_at_once* groups;
    int cells;
    float low, scale, widest;      /* cell = (x1 - low) * scale; with a single cell the scale is 0 */
    int64_t first[MOST_CELLS + 1]; /* the first group of each cell */
    int64_t count[MOST_CELLS];     /* number of boxes in each cell */
} kept_boxes;

static int cell_at(const kept_boxes* kept, float x) {
    const float place = (x - kept->low) * kept->scale;
    return !(place > 0) ? 0 : place < (float)(kept->cells - 1) ? (int)place : kept->cells - 1;
}

/* Adds a box to its cell. Unused boxes of a group are empty, so that they overlap no box. */
static void put_box(kept_boxes* kept, box b) {
    const int cell = cell_at(kept, b.x1);
    boxes_at_once* group = kept->groups + kept->first[cell] + kept->count[cell] / BOXES_AT_ONCE;
    const int64_t place = kept->count[cell]++ % BOXES_AT_ONCE;
    if (place == 0) {
        for (int i = 0; i < BOXES_AT_ONCE; ++i) {
            group->y1[i] = group->x1[i] = INFINITY;
            group->y2[i] = group->x2[i] = -INFINITY;
            group->area[i] = 0;
        }
    }
    group->y1[place] = b.y1;
    group->x1[place] = b.x1;
    group->y2[place] = b.y2;
    group->x2[place] = b.x2;
    group->area[place] = area_of(b);
}

/* Whether the intersection over union of a box and one of a group exceeds the threshold. */
static int overlaps(const boxes_at_once* group, box own, float own_area, float threshold) {
    float shared[BOXES_AT_ONCE];
    for (int i = 0; i < BOXES_AT_ONCE; ++i) {
        const float height = smaller(own.y2, group->y2[i]) - larger(own.y1, group->y1[i]);
        const float width = smaller(own.x2, group->x2[i]) - larger(own.x1, group->x1[i]);
        shared[i] = larger(height, 0) * larger(width, 0);
    }
    for (int i = 0; i < BOXES_AT_ONCE; ++i) {
        if (!(shared[i] > 0)) continue;
        const float covered = own_area + group->area[i] - shared[i];
        if (covered > 0 && shared[i] / covered > threshold) return 1;
    }
    return 0;
}

static int overlaps_any(const kept_boxes* kept, box own, float threshold) {
    const float area = area_of(own);
    /* One more cell makes up for rounding. */
    const int before = cell_at(kept, own.x1 - kept->widest), last = cell_at(kept, own.x2);
    for (int cell = before > 0 ? before - 1 : 0; cell <= last; ++cell) {
        const boxes_at_once* group = kept->groups + kept->first[cell];
        for (int64_t i = 0; i < kept->count[cell]; i += BOXES_AT_ONCE, ++group) {
            if (overlaps(group, own, area, threshold)) return 1;
        }
    }
    return 0;
}

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

/* Higher scores come first; among equal scores the box with the lower index. */
static int compare_candidates(const void* a, const void* b) {
    const candidate *p = a, *q = b;
    if (p->score != q->score) return p->score < q->score ? 1 : -1;
    return (p->box > q->box) - (p->box < q->box);
}

/* Chooses cells such that each box reaches few of them, or a single cell if numbers are not finite or too close
 * together. Reserves in each cell groups for all candidates that begin there. */
static void make_cells(kept_boxes* kept, const float* boxes, int center_point_box, const candidate* candidates,
                       int64_t count) {
    float low = INFINITY, high = -INFINITY, widest = 0, sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        const box b = read_box(boxes + 4 * candidates[i].box, center_point_box);
        low = smaller(low, b.x1);
        high = larger(high, b.x1);
        widest = larger(widest, b.x2 - b.x1);
        sum += fabsf(b.x1) + fabsf(b.x2); /* NaN or infinite if any of them is */
    }
    const float range = high - low;
    const int64_t wanted = count / (4 * BOXES_AT_ONCE);
    const int is_even = sum < INFINITY && range > 1e-3f * (fabsf(low) + fabsf(high));
    kept->cells = !is_even || wanted < 1 ? 1 : wanted < MOST_CELLS ? (int)wanted : MOST_CELLS;
    kept->low = low;
    kept->widest = widest;
    kept->scale = kept->cells > 1 ? (float)kept->cells / range : 0;
    memset(kept->count, 0, sizeof kept->count);
    for (int64_t i = 0; i < count; ++i)
        ++kept->count[cell_at(kept, read_box(boxes + 4 * candidates[i].box, center_point_box).x1)];
    kept->first[0] = 0;
    for (int cell = 0; cell < kept->cells; ++cell) {
        kept->first[cell + 1] = kept->first[cell] + (kept->count[cell] + BOXES_AT_ONCE - 1) / BOXES_AT_ONCE;
        kept->count[cell] = 0;
    }
}

/* Selects the boxes of one class, best first, without those that overlap a better one. Returns their number. */
static int64_t suppress(const float* boxes, const float* scores, int64_t count, int center_point_box, int64_t most,
                        float iou_threshold, float score_threshold, candidate* candidates, kept_boxes* kept,
                        int64_t* numbers) {
    int64_t found = 0, taken = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (scores[i] > score_threshold) candidates[found++] = (candidate){scores[i], i};
    }
    qsort(candidates, (size_t)found, sizeof *candidates, compare_candidates);
    /* With a negative threshold, or NaN, all boxes overlap each other. */
    if (!(iou_threshold >= 0) && most > 1) most = 1;
    make_cells(kept, boxes, center_point_box, candidates, found);
    for (int64_t i = 0; i < found && taken < most; ++i) {
        const box own = read_box(boxes + 4 * candidates[i].box, center_point_box);
        if (overlaps_any(kept, own, iou_threshold)) continue;
        put_box(kept, own);
        numbers[taken++] = candidates[i].box;
    }
    return taken;
}

int onnx2halide_non_max_suppression(onnx2halide_session* session, int center_point_box, const halide_buffer_t* boxes,
                                    const halide_buffer_t* scores, const halide_buffer_t* max_boxes,
                                    const halide_buffer_t* iou_threshold, const halide_buffer_t* score_threshold,
                                    onnx2halide_result selected) {
    const int64_t batches = onnx2halide_extent(scores, 0), classes = onnx2halide_extent(scores, 1),
                  count = onnx2halide_extent(scores, 2);
    if (onnx2halide_extent(boxes, 0) != batches || onnx2halide_extent(boxes, 1) != count ||
        onnx2halide_extent(boxes, 2) != 4) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                "boxes are %lld x %lld x %lld, expected %lld x %lld x 4",
                                (long long)onnx2halide_extent(boxes, 0), (long long)onnx2halide_extent(boxes, 1),
                                (long long)onnx2halide_extent(boxes, 2), (long long)batches, (long long)count);
    }
    const int64_t asked = max_boxes ? *(const int64_t*)max_boxes->host : 0;
    const int64_t most = asked < 0 ? 0 : asked < count ? asked : count;
    const float iou = iou_threshold ? *(const float*)iou_threshold->host : 0;
    const float lowest = score_threshold ? *(const float*)score_threshold->host : -INFINITY;
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    candidate* candidates = onnx2halide_keep(session, (size_t)count * sizeof *candidates);
    int64_t* chosen =
        onnx2halide_keep(session, ((size_t)(batches * classes * most) * 3 + (size_t)count) * sizeof(int64_t));
    kept_boxes kept;
    kept.groups = onnx2halide_keep(session, (size_t)(count / BOXES_AT_ONCE + MOST_CELLS) * sizeof *kept.groups);
    if (!candidates || !chosen || !kept.groups) return ONNX2HALIDE_NO_MEMORY;
    int64_t *of_class = chosen + batches * classes * most * 3, total = 0;
    for (int64_t i = 0; i < batches * classes; ++i) {
        const float* of_batch = (const float*)boxes->host + i / classes * count * 4;
        const int64_t taken = suppress(of_batch, (const float*)scores->host + i * count, count, center_point_box, most,
                                       iou, lowest, candidates, &kept, of_class);
        for (int64_t j = 0; j < taken; ++j, ++total)
            memcpy(chosen + 3 * total, (const int64_t[]){i / classes, i % classes, of_class[j]}, 3 * sizeof(int64_t));
    }
    int64_t* to = NULL;
    const int code = onnx2halide_make_result(session, selected, 2, (const int64_t[]){total, 3}, (void**)&to);
    if (code == 0) memcpy(to, chosen, (size_t)total * 3 * sizeof(int64_t));
    onnx2halide_give_back(session, mark);
    return code;
}
