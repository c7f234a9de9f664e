#include "compiler/generator/lowered.h"

namespace onnx2halide {

using namespace Halide;
using namespace Halide::Internal;

Expr without_lets(Expr e, const Lets& lets) {
    for (auto let = lets.rbegin(); let != lets.rend(); ++let) {
        if (expr_uses_var(e, let->first)) e = substitute(let->first, let->second, e);
    }
    return e;
}

Stmt prefetched(const Expr& pointer, const Expr& bytes) {
    constexpr int is_read = 0, all_caches = 3, is_data = 1;
    const Expr address = reinterpret(UInt(64), pointer) + cast(UInt(64), bytes);
    return Evaluate::make(Call::make(Int(32), "llvm.prefetch.p0",
                                     {reinterpret(Handle(), address), is_read, all_caches, is_data}, Call::Extern));
}

}  // namespace onnx2halide
