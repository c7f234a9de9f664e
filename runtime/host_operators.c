#include "host_operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether an element is not 0. Of a float the sign does not count. */
static int is_set(const halide_buffer_t* tensor, int64_t i) {
    const size_t bytes = onnx2halide_element_bytes(tensor);
    uint64_t bits = 0;
    memcpy(&bits, tensor->host + (size_t)i * bytes, bytes);
    if (tensor->type.code != halide_type_int && tensor->type.code != halide_type_uint) bits <<= 64 - 8 * bytes + 1;
    return bits != 0;
}

int onnx2halide_require_true(onnx2halide_session* session, const char* node, const halide_buffer_t* condition) {
    if (*condition->host) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                            "%s: the condition is false, and the results of else_branch have a rank that the model "
                            "cannot go on with",
                            node);
}

int onnx2halide_non_zero(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                         onnx2halide_result coordinates) {
    (void)node;
    const int64_t elements = onnx2halide_element_count(x);
    const int rank = x->dimensions;
    int64_t count = 0;
    for (int64_t i = 0; i < elements; ++i) count += is_set(x, i);
    int64_t* result = NULL;
    RUN(onnx2halide_make_result(session, coordinates, 2, (const int64_t[]){rank, count}, (void**)&result));
    int64_t found = 0;
    for (int64_t i = 0; i < elements && result; ++i) {
        if (!is_set(x, i)) continue;
        int64_t rest = i;
        for (int axis = rank - 1; axis >= 0; --axis) {
            result[axis * count + found] = rest % onnx2halide_extent(x, axis);
            rest /= onnx2halide_extent(x, axis);
        }
        ++found;
    }
    return 0;
}

/* Makes the result that has `count` of the slices of x, those with these numbers. */
static int take_slices(onnx2halide_session* session, const halide_buffer_t* x, int axis, const int64_t* numbers,
                       int64_t count, onnx2halide_result result) {
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const size_t bytes = (size_t)slices.inner * onnx2halide_element_bytes(x);
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    if (axis >= 0) onnx2halide_get_dims(x, dims);
    dims[axis < 0 ? 0 : axis] = count;
    unsigned char* to = NULL;
    RUN(onnx2halide_make_result(session, result, axis < 0 ? 1 : x->dimensions, dims, (void**)&to));
    for (int64_t outer = 0; outer < slices.outer && to; ++outer) {
        for (int64_t i = 0; i < count; ++i, to += bytes)
            memcpy(to, x->host + (size_t)(outer * slices.count + numbers[i]) * bytes, bytes);
    }
    return 0;
}

int onnx2halide_compress(onnx2halide_session* session, const char* node, int axis, const halide_buffer_t* x,
                         const halide_buffer_t* condition, onnx2halide_result kept) {
    (void)node;
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    const int64_t conditions = onnx2halide_element_count(condition), slices = onnx2halide_slices_along(x, axis).count;
    const int64_t considered = conditions < slices ? conditions : slices;
    int64_t* numbers = onnx2halide_keep(session, (size_t)considered * sizeof(int64_t));
    if (!numbers) return ONNX2HALIDE_NO_MEMORY;
    int64_t count = 0;
    for (int64_t i = 0; i < considered; ++i) {
        if (condition->host[i]) numbers[count++] = i;
    }
    const int code = take_slices(session, x, axis, numbers, count, kept);
    onnx2halide_give_back(session, mark);
    return code;
}

/* The order of two elements: negative, 0 or positive; NaN comes last. */
static int compare_elements(struct halide_type_t type, const unsigned char* a, const unsigned char* b) {
    const uint64_t p = onnx2halide_order_key(type, a), q = onnx2halide_order_key(type, b);
    return (p > q) - (p < q);
}

/* The order of two slices: that of the first elements that differ. */
static int compare_slices(const halide_buffer_t* x, const onnx2halide_slices* slices, int64_t a, int64_t b) {
    const size_t bytes = onnx2halide_element_bytes(x);
    for (int64_t outer = 0; outer < slices->outer; ++outer) {
        const unsigned char* p = x->host + (size_t)((outer * slices->count + a) * slices->inner) * bytes;
        const unsigned char* q = x->host + (size_t)((outer * slices->count + b) * slices->inner) * bytes;
        for (int64_t i = 0; i < slices->inner; ++i, p += bytes, q += bytes) {
            const int order = compare_elements(x->type, p, q);
            if (order != 0) return order;
        }
    }
    return 0;
}

/* Sorts numbers of slices by the slices and, of equal ones, by number: merges ever longer runs. */
static void sort_slices(const halide_buffer_t* x, const onnx2halide_slices* slices, int64_t* numbers, int64_t* spare) {
    const int64_t count = slices->count;
    for (int64_t run = 1; run < count; run *= 2) {
        for (int64_t start = 0; start < count; start += 2 * run) {
            const int64_t middle = start + run < count ? start + run : count;
            const int64_t end = start + 2 * run < count ? start + 2 * run : count;
            int64_t left = start, right = middle;
            for (int64_t i = start; i < end; ++i) {
                const int takes_left =
                    right >= end || (left < middle && compare_slices(x, slices, numbers[left], numbers[right]) <= 0);
                spare[i] = numbers[takes_left ? left++ : right++];
            }
        }
        memcpy(numbers, spare, (size_t)count * sizeof(int64_t));
    }
}

static int make_numbers(onnx2halide_session* session, onnx2halide_result result, const int64_t* numbers,
                        int64_t count) {
    if (result.tensor < 0) return 0;
    int64_t* to = NULL;
    RUN(onnx2halide_make_result(session, result, 1, &count, (void**)&to));
    memcpy(to, numbers, (size_t)count * sizeof(int64_t));
    return 0;
}

int onnx2halide_unique(onnx2halide_session* session, const char* node, int axis, int sorted, const halide_buffer_t* x,
                       onnx2halide_result values, onnx2halide_result first, onnx2halide_result inverse,
                       onnx2halide_result counts) {
    (void)node;
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const int64_t count = slices.count;
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    int64_t* memory = onnx2halide_keep(session, (size_t)count * 6 * sizeof(int64_t));
    if (!memory) return ONNX2HALIDE_NO_MEMORY;
    memset(memory, 0, (size_t)count * 6 * sizeof(int64_t));
    int64_t *numbers = memory, *spare = numbers + count, *firsts = spare + count, *repeats = firsts + count,
            *group_of = repeats + count, *place = group_of + count;
    for (int64_t i = 0; i < count; ++i) numbers[i] = i;
    sort_slices(x, &slices, numbers, spare);
    int64_t groups = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i == 0 || compare_slices(x, &slices, numbers[i - 1], numbers[i]) != 0) firsts[groups++] = numbers[i];
        group_of[numbers[i]] = groups - 1;
        ++repeats[groups - 1];
    }
    if (!sorted) { /* groups are renumbered as they occur */
        for (int64_t i = 0; i < groups; ++i) place[i] = -1;
        int64_t next = 0;
        for (int64_t i = 0; i < count; ++i) {
            int64_t* new_number = &place[group_of[i]];
            if (*new_number < 0) {
                spare[next] = group_of[i];
                *new_number = next++;
            }
            group_of[i] = *new_number;
        }
        for (int64_t i = 0; i < groups; ++i) numbers[i] = firsts[spare[i]];
        memcpy(firsts, numbers, (size_t)groups * sizeof(int64_t));
        for (int64_t i = 0; i < groups; ++i) numbers[i] = repeats[spare[i]];
        memcpy(repeats, numbers, (size_t)groups * sizeof(int64_t));
    }
    int code = values.tensor < 0 ? 0 : take_slices(session, x, axis, firsts, groups, values);
    if (code == 0) code = make_numbers(session, first, firsts, groups);
    if (code == 0) code = make_numbers(session, inverse, group_of, count);
    if (code == 0) code = make_numbers(session, counts, repeats, groups);
    onnx2halide_give_back(session, mark);
    return code;
}

typedef struct box {
    float y1, x1, y2, x2;
} box;

/* Not fminf and fmaxf, which are calls. */
static float smaller(float a, float b) { return a < b ? a : b; }
static float larger(float a, float b) { return a < b ? b : a; }

static box read_box(const float* numbers, int center_point_box) {
    const float a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3];
    if (center_point_box) return (box){b - d / 2, a - c / 2, b + d / 2, a + c / 2};
    return (box){smaller(a, c), smaller(b, d), larger(a, c), larger(b, d)};
}

static float area_of(box b) { return (b.y2 - b.y1) * (b.x2 - b.x1); }

/* Boxes side by side, so that compilers make vectors of them. */
enum { BOXES_AT_ONCE = 8 };
typedef struct boxes_at_once {
    float y1[BOXES_AT_ONCE], x1[BOXES_AT_ONCE], y2[BOXES_AT_ONCE], x2[BOXES_AT_ONCE], area[BOXES_AT_ONCE];
} boxes_at_once;

/* Those of a group that are none share nothing with any box. */
static void put_box(boxes_at_once* groups, int64_t number, box b) {
    boxes_at_once* group = groups + number / BOXES_AT_ONCE;
    const int64_t place = number % BOXES_AT_ONCE;
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

/* Whether the area that a box shares with one of a group is more than this part of the area that both cover. */
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

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

/* Best scores first, of equal ones the first box. */
static int compare_candidates(const void* a, const void* b) {
    const candidate *p = a, *q = b;
    if (p->score != q->score) return p->score < q->score ? 1 : -1;
    return (p->box > q->box) - (p->box < q->box);
}

/* Boxes of one class, best first, without those that overlap a better one. Returns how many are kept in `kept`. */
static int64_t suppress(const float* boxes, const float* scores, int64_t count, int center_point_box, int64_t most,
                        float iou_threshold, float score_threshold, candidate* candidates, boxes_at_once* groups,
                        int64_t* kept) {
    int64_t found = 0, taken = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (scores[i] > score_threshold) candidates[found++] = (candidate){scores[i], i};
    }
    qsort(candidates, (size_t)found, sizeof *candidates, compare_candidates);
    /* Of a threshold below 0, or none, each box overlaps each other. */
    if (!(iou_threshold >= 0) && most > 1) most = 1;
    for (int64_t i = 0; i < found && taken < most; ++i) {
        const box own = read_box(boxes + 4 * candidates[i].box, center_point_box);
        const float area = area_of(own);
        int is_free = 1;
        for (int64_t j = 0; j < taken && is_free; j += BOXES_AT_ONCE)
            is_free = !overlaps(groups + j / BOXES_AT_ONCE, own, area, iou_threshold);
        if (!is_free) continue;
        put_box(groups, taken, own);
        kept[taken++] = candidates[i].box;
    }
    return taken;
}

int onnx2halide_non_max_suppression(onnx2halide_session* session, const char* node, int center_point_box,
                                    const halide_buffer_t* boxes, const halide_buffer_t* scores,
                                    const halide_buffer_t* max_boxes, const halide_buffer_t* iou_threshold,
                                    const halide_buffer_t* score_threshold, onnx2halide_result selected) {
    const int64_t batches = onnx2halide_extent(scores, 0), classes = onnx2halide_extent(scores, 1),
                  count = onnx2halide_extent(scores, 2);
    if (onnx2halide_extent(boxes, 0) != batches || onnx2halide_extent(boxes, 1) != count ||
        onnx2halide_extent(boxes, 2) != 4) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                "%s: boxes are %lld x %lld x %lld, expected %lld x %lld x 4", node,
                                (long long)onnx2halide_extent(boxes, 0), (long long)onnx2halide_extent(boxes, 1),
                                (long long)onnx2halide_extent(boxes, 2), (long long)batches, (long long)count);
    }
    const int64_t asked = max_boxes ? *(const int64_t*)max_boxes->host : 0;
    const int64_t most = asked < 0 ? 0 : asked < count ? asked : count;
    const float iou = iou_threshold ? *(const float*)iou_threshold->host : 0;
    const float lowest = score_threshold ? *(const float*)score_threshold->host : -INFINITY;
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    candidate* candidates = onnx2halide_keep(session, (size_t)count * sizeof *candidates);
    int64_t* kept =
        onnx2halide_keep(session, ((size_t)(batches * classes * most) * 3 + (size_t)count) * sizeof(int64_t));
    boxes_at_once* groups = onnx2halide_keep(session, (size_t)(most / BOXES_AT_ONCE + 1) * sizeof *groups);
    if (!candidates || !kept || !groups) return ONNX2HALIDE_NO_MEMORY;
    int64_t *of_class = kept + batches * classes * most * 3, total = 0;
    for (int64_t i = 0; i < batches * classes; ++i) {
        const float* of_batch = (const float*)boxes->host + i / classes * count * 4;
        const int64_t taken = suppress(of_batch, (const float*)scores->host + i * count, count, center_point_box, most,
                                       iou, lowest, candidates, groups, of_class);
        for (int64_t j = 0; j < taken; ++j, ++total)
            memcpy(kept + 3 * total, (const int64_t[]){i / classes, i % classes, of_class[j]}, 3 * sizeof(int64_t));
    }
    int64_t* to = NULL;
    const int code = onnx2halide_make_result(session, selected, 2, (const int64_t[]){total, 3}, (void**)&to);
    if (code == 0) memcpy(to, kept, (size_t)total * 3 * sizeof(int64_t));
    onnx2halide_give_back(session, mark);
    return code;
}
