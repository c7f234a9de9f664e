// A CPU and a device build of one model, together with a Halide kernel of the user's own and its runtime.
#include <cmath>
#include <cstdio>
#include <vector>

#include "brighten.h"
#include "HalideBuffer.h"
#include "image.h"
#include "image_device.h"

int main() {
    std::vector<float> picture(IMAGE_PICTURE_ELEMENTS), bright(picture.size()), host(IMAGE_FEATURES_ELEMENTS),
        device(host.size());
    for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<float>(i % 13) / 26;
    image* on_host = nullptr;
    image_device* on_device = nullptr;
    if (image_create(&on_host, nullptr) != 0 || image_device_create(&on_device, nullptr) != 0) return 2;
    for (int round = 0; round < 3; ++round) {
        Halide::Runtime::Buffer<float, 1> from(picture.data(), static_cast<int>(picture.size())),
            to(bright.data(), static_cast<int>(bright.size()));
        if (brighten(from, 2.0f, to) != 0) return 3;
        if (image_run(on_host, bright.data(), host.data()) != 0) return 4;
        if (image_device_run(on_device, bright.data(), device.data()) != 0) {
            std::fprintf(stderr, "%s\n", image_device_error(on_device));
            return 5;
        }
        for (size_t i = 0; i < host.size(); ++i) {
            if (std::abs(host[i] - device[i]) > 1e-4f * (1 + std::abs(host[i]))) return 6;
        }
    }
    for (const float feature : host) std::printf("%.9g\n", feature);
    image_destroy(on_host);
    image_device_destroy(on_device);
}
