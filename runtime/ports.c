#include "ports.h"

#include <stdio.h>
#include <string.h>

size_t onnx2halide_value_bytes(int32_t type, int64_t elements) {
    static const uint8_t bits[] = {0, 32, 8,  8,  16, 16, 32,  64, 8 * sizeof(onnx2halide_string),
                                   8, 16, 64, 32, 64, 64, 128, 16, 8,
                                   8, 8,  8,  4,  4,  4,  8,   2,  2};
    const uint64_t own = type >= 0 && (size_t)type < sizeof bits ? bits[type] : 0,
                   bytes = (own * (uint64_t)elements + 7) / 8;
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

int64_t onnx2halide_count(const int64_t* dims, int64_t rank) {
    int64_t count = 1;
    for (int64_t i = 0; i < rank; ++i) {
        if (dims[i] < 0 || (dims[i] > 0 && count > INT32_MAX / dims[i])) return -1;
        count *= dims[i];
    }
    return count;
}

void onnx2halide_set_output(onnx2halide_value* output, const onnx2halide_port* port, const int64_t* dims, void* data,
                            size_t bytes) {
    const int is_own = output->data != NULL;
    *output = (onnx2halide_value){.kind = ONNX2HALIDE_TENSOR,
                                  .type = port->type,
                                  .rank = port->rank,
                                  .dims = dims,
                                  .data = data,
                                  .size = is_own ? output->size : bytes,
                                  .lent = is_own ? NULL : data};
}

int onnx2halide_take_strings(onnx2halide_session* session, const onnx2halide_string* texts, int64_t count,
                             const void** numbers) {
    int64_t* own = onnx2halide_keep(session, (size_t)count * sizeof *own);
    if (!own) return ONNX2HALIDE_NO_MEMORY;
    *numbers = own;
    int code = 0;
    for (int64_t i = 0; i < count && code == 0; ++i) {
        onnx2halide_string text;
        memcpy(&text, (const unsigned char*)texts + (size_t)i * sizeof text, sizeof text); /* texts may be unaligned */
        code = onnx2halide_number_of(session, text.text, text.text ? text.length : 0, &own[i]);
    }
    return code;
}

void onnx2halide_give_strings(const onnx2halide_session* session, const int64_t* numbers, int64_t count,
                              onnx2halide_string* texts) {
    for (int64_t i = 0; i < count; ++i) {
        const onnx2halide_string text = onnx2halide_text_of(session, numbers[i]);
        memcpy((unsigned char*)texts + (size_t)i * sizeof text, &text, sizeof text);
    }
}

static const char* kind_name(int32_t kind) {
    static const char* const names[] = {"a tensor", "a sequence", "a map", "an optional value"};
    return kind >= ONNX2HALIDE_TENSOR && kind <= ONNX2HALIDE_OPTIONAL ? names[kind] : "of unknown kind";
}

static int bad(onnx2halide_session* session, const char* name, const char* is, const char* expected) {
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s is %s, expected %s", name, is, expected);
}

/* Checks that a value is a tensor of the port's type and shape. */
static int check_tensor(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value,
                        const char* name) {
    if (value->kind != ONNX2HALIDE_TENSOR) return bad(session, name, kind_name(value->kind), "a tensor");
    if (value->type != port->type) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s has elements of type %s, expected %s", name,
                                onnx2halide_type_name(value->type), onnx2halide_type_name(port->type));
    }
    if (value->rank < 0 || value->rank > ONNX2HALIDE_MAX_RANK || (port->rank >= 0 && value->rank != port->rank)) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s has %lld dims, expected %d", name,
                                (long long)value->rank, port->rank >= 0 ? port->rank : ONNX2HALIDE_MAX_RANK);
    }
    if (value->rank > 0 && !value->dims)
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s has no dims", name);
    for (int axis = 0; axis < port->rank; ++axis) {
        if (port->dims[axis] < 0 || value->dims[axis] == port->dims[axis]) continue;
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s: dim %d is %lld, expected %lld", name, axis,
                                (long long)value->dims[axis], (long long)port->dims[axis]);
    }
    const int64_t count = onnx2halide_count(value->dims, value->rank);
    if (count < 0) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                "%s has a negative dim or more than 2147483647 elements", name);
    }
    const size_t bytes = onnx2halide_value_bytes(value->type, count);
    if (bytes > 0 && !value->data)
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s is a null pointer", name);
    if (value->size < bytes) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s needs %zu bytes, its data has %zu", name, bytes,
                                value->size);
    }
    return 0;
}

static int take_tensor(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value,
                       const char* name, onnx2halide_item* item) {
    const int code = check_tensor(session, port, value, name);
    if (code != 0) return code;
    int64_t* dims = onnx2halide_keep(session, (size_t)value->rank * sizeof *dims);
    if (!dims) return ONNX2HALIDE_NO_MEMORY;
    if (value->rank > 0) memcpy(dims, value->dims, (size_t)value->rank * sizeof *dims);
    *item = (onnx2halide_item){ONNX2HALIDE_NOTHING, (int32_t)value->rank, dims, NULL};
    const int64_t count = onnx2halide_count(dims, value->rank);
    if (port->type == ONNX2HALIDE_STRING) {
        const void* numbers = NULL;
        const int taken = onnx2halide_take_strings(session, value->data, count, &numbers);
        item->data = (void*)(uintptr_t)numbers;
        return taken;
    }
    const size_t bytes = onnx2halide_value_bytes(port->type, count);
    item->data = onnx2halide_keep(session, bytes);
    if (!item->data) return ONNX2HALIDE_NO_MEMORY;
    if (bytes > 0) memcpy(item->data, value->data, bytes);
    return 0;
}

/* The port of a map's keys, a tensor of rank 1. */
static onnx2halide_port keys_of(const onnx2halide_port* map) {
    static const int64_t any = -1;
    return (onnx2halide_port){NULL, map->type, 1, &any, ONNX2HALIDE_TENSOR, NULL, NULL};
}

static int take_map(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value,
                    const char* name, int64_t* number) {
    if (value->count != 2) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s has %lld items, expected keys and values", name,
                                (long long)value->count);
    }
    const onnx2halide_port keys = keys_of(port);
    onnx2halide_item* items;
    int code = onnx2halide_new_box(session, 2, number, &items);
    if (code == 0) code = take_tensor(session, &keys, &value->items[0], name, &items[0]);
    if (code == 0) code = take_tensor(session, port->item, &value->items[1], name, &items[1]);
    if (code == 0 && (items[1].rank != 1 || items[1].dims[0] != items[0].dims[0])) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s has %lld keys, expected a value for each", name,
                                (long long)items[0].dims[0]);
    }
    return code;
}

int onnx2halide_take_box(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value,
                         const char* name, int64_t* number) {
    if (value->kind != port->kind) return bad(session, name, kind_name(value->kind), kind_name(port->kind));
    const int64_t most = port->kind == ONNX2HALIDE_OPTIONAL ? 1 : INT32_MAX;
    if (value->count < 0 || value->count > most || (value->count > 0 && !value->items)) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s has %lld items%s, expected 0 to %lld", name,
                                (long long)value->count, value->items ? "" : " at a null pointer", (long long)most);
    }
    *number = ONNX2HALIDE_NOTHING;
    if (port->kind == ONNX2HALIDE_MAP) return take_map(session, port, value, name, number);
    if (port->kind == ONNX2HALIDE_OPTIONAL && value->count == 0) return 0;
    if (port->kind == ONNX2HALIDE_OPTIONAL && port->item->kind != ONNX2HALIDE_TENSOR)
        return onnx2halide_take_box(session, port->item, &value->items[0], name, number);
    onnx2halide_item* items;
    int code = onnx2halide_new_box(session, value->count, number, &items);
    for (int64_t i = 0; i < value->count && code == 0; ++i) {
        char own[256];
        snprintf(own, sizeof own, "%s: item %lld", name, (long long)i);
        code = port->item->kind == ONNX2HALIDE_TENSOR
                   ? take_tensor(session, port->item, &value->items[i], own, &items[i])
                   : onnx2halide_take_box(session, port->item, &value->items[i], own, &items[i].box);
    }
    return code;
}

static int give_tensor(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_item* item,
                       onnx2halide_value* value) {
    const int64_t count = onnx2halide_count(item->dims, item->rank);
    const size_t bytes = onnx2halide_value_bytes(port->type, count);
    void* data = item->data;
    if (port->type == ONNX2HALIDE_STRING) {
        data = onnx2halide_keep(session, bytes);
        if (!data) return ONNX2HALIDE_NO_MEMORY;
        onnx2halide_give_strings(session, item->data, count, data);
    }
    *value = (onnx2halide_value){ONNX2HALIDE_TENSOR, port->type, item->rank, item->dims, data, bytes, NULL, 0, data};
    return 0;
}

int onnx2halide_give_box(onnx2halide_session* session, const onnx2halide_port* port, int64_t number,
                         onnx2halide_value* value) {
    const int holds_box = port->kind == ONNX2HALIDE_OPTIONAL && port->item->kind != ONNX2HALIDE_TENSOR;
    const int64_t count = holds_box ? number != ONNX2HALIDE_NOTHING : onnx2halide_box_size(session, number);
    onnx2halide_value* items = onnx2halide_keep(session, (size_t)count * sizeof *items);
    if (!items) return ONNX2HALIDE_NO_MEMORY;
    *value = (onnx2halide_value){port->kind, port->type, 0, NULL, NULL, 0, items, count, NULL};
    if (holds_box) return count == 0 ? 0 : onnx2halide_give_box(session, port->item, number, items);
    const onnx2halide_item* from = onnx2halide_items_of(session, number);
    const onnx2halide_port keys = keys_of(port);
    int code = 0;
    for (int64_t i = 0; i < count && code == 0; ++i) {
        const onnx2halide_port* own = port->kind == ONNX2HALIDE_MAP && i == 0 ? &keys : port->item;
        code = own->kind == ONNX2HALIDE_TENSOR ? give_tensor(session, own, &from[i], &items[i])
                                               : onnx2halide_give_box(session, own, from[i].box, &items[i]);
    }
    return code;
}
