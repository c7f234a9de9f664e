// A Halide kernel of the user's own.
#include "Halide.h"

class Brighten : public Halide::Generator<Brighten> {
public:
    Input<Buffer<float, 1>> from{"from"};
    Input<float> factor{"factor"};
    Output<Buffer<float, 1>> to{"to"};

    void generate() {
        to(x) = from(x) * factor;
        to.parallel(x, 256).vectorize(x, 8);
    }

private:
    Halide::Var x{"x"};
};
HALIDE_REGISTER_GENERATOR(Brighten, brighten)
