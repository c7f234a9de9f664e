#include <fmt/format.h>

#include "ops/families.h"

namespace onnx2halide {

namespace {

/// The coordinates of the element with a row-major index, as text.
Coordinates coordinates_text(KernelSource& source, const std::vector<Dim>& shape, const std::string& index) {
    Coordinates at(shape.size(), "0");
    Dim stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) {
        if (shape[i].is(1)) continue;
        at[i] = stride.is(1) ? index : fmt::format("{} / {}", index, source.dim(stride));
        if (i > 0) at[i] += fmt::format(" % {}", source.dim(shape[i]));
    }
    return at;
}

/// `Unpack` (internal): stores the elements of an input that packs several into a byte (see TensorType::packed) in one
/// byte each.
class Unpack : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override { return {input(0)->port_type()}; }
    bool takes_packed_types() const override { return true; }
    Dim flops() const override { return 0; }

    void algorithm(KernelSource& source) const override {
        const ElementInfo& type = info(out(0).element);
        const Coordinates at = source.vars(out(0).rank());
        const std::string index = source.local("i");
        source.line(fmt::format("const Expr {} = {};", index, source.linear_index(at, out(0).shape)));
        const std::string byte = source.element(input(0), {fmt::format("{} / {}", index, 8 / type.bits)});
        const std::string shift = fmt::format("cast<uint8_t>({} % {} * {})", index, 8 / type.bits, type.bits);
        source.store(output(0), at,
                     fmt::format("onnx::low_bits(cast<{}>({} >> {}), {})", type.halide_name, byte, shift, type.bits));
    }
};

/// `Pack` (internal): the inverse. Unused bits of the last byte are 0.
class Pack : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override { return {in(0).packed()}; }
    bool takes_packed_types() const override { return true; }
    Dim flops() const override { return 0; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(1);
        std::string byte;
        for (int i = 0; i < in_a_byte(); ++i) byte += (i > 0 ? " | " : "") + bits(source, at[0], i);
        source.store(output(0), at, byte);
    }

private:
    int in_a_byte() const { return 8 / info(in(0).element).bits; }

    /// A byte in which only the i-th element is set.
    std::string bits(KernelSource& source, const std::string& byte, int i) const {
        const int width = info(in(0).element).bits;
        const std::string index = source.local("i"), last = source.dim(in(0).elements() - 1);
        source.line(
            fmt::format("const Expr {} = {} * {}{};", index, byte, in_a_byte(), i > 0 ? fmt::format(" + {}", i) : ""));
        const bool may_miss = i > 0 && !exact_div(in(0).elements(), in_a_byte());
        const std::string place = may_miss ? fmt::format("min({}, {})", index, last) : index;
        std::string bits =
            fmt::format("(cast<uint8_t>({}) & Expr(uint8_t({})))",
                        source.element(input(0), coordinates_text(source, in(0).shape, place)), (1 << width) - 1);
        if (i > 0) bits = fmt::format("({} << {})", bits, i * width);
        return may_miss ? fmt::format("select({} <= {}, {}, cast<uint8_t>(0))", index, last, bits) : bits;
    }
};

}  // namespace

std::vector<Operator> packed_elements_operators() {
    return {{"Unpack", 1, make<Unpack>, own_domain}, {"Pack", 1, make<Pack>, own_domain}};
}

}  // namespace onnx2halide
