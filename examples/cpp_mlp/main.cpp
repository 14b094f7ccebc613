// The network of `./dev tour` through tidemill.hpp: matmul + bias + relu, matmul, softmax, checked against the CPU.
//
//     ./dev cpp_mlp
//
// usage: cpp_mlp [FILE]; with FILE it runs under the validation layer and leaves the result there, as raw floats.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <tidemill.hpp>
#include <vector>

constexpr std::size_t BATCH = 64, WIDE = 784, HIDDEN = 256, CLASSES = 10;

// How far the device may be from the CPU: sums of 784 products in f32, against f64.
constexpr double TOLERANCE = 1e-5;

static std::vector<float> wave(std::size_t n, float step, float scale) {
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; i++) out[i] = scale * std::sin(static_cast<float>(i) * step);
    return out;
}

struct Network {
    std::vector<float> x = wave(BATCH * WIDE, 0.37f, 1.0f), w1 = wave(WIDE * HIDDEN, 0.11f, 0.1f);
    std::vector<float> b1 = wave(HIDDEN, 0.73f, 0.5f), w2 = wave(HIDDEN * CLASSES, 0.53f, 0.2f);

    std::vector<float> on_device(const tidemill::Accelerator &gpu) const {
        auto tx = gpu.upload(x, {BATCH, WIDE}), tw1 = gpu.upload(w1, {WIDE, HIDDEN});
        auto tb1 = gpu.upload(b1, {HIDDEN}), tw2 = gpu.upload(w2, {HIDDEN, CLASSES});
        auto r = gpu.begin_recording();
        auto h = r.matmul(tx, tw1, tidemill::Epilogue::bias(tb1).relu());
        auto y = r.matmul(h, tw2);
        auto p = r.keep(r.softmax(y));  // the one value that outlives the recording
        r.end_recording();              // one submission; nothing is waited for
        return p.read<float>();         // waits by itself
    }

    // The same on the CPU, in f64: the worst difference.
    double worst_error(const std::vector<float> &result) const {
        double worst = 0.0;
        for (std::size_t row = 0; row < BATCH; row++) {
            std::vector<double> h(b1.begin(), b1.end()), y(CLASSES, 0.0);
            for (std::size_t i = 0; i < WIDE; i++)
                for (std::size_t j = 0; j < HIDDEN; j++)
                    h[j] += static_cast<double>(x[row * WIDE + i]) * static_cast<double>(w1[i * HIDDEN + j]);
            for (std::size_t i = 0; i < HIDDEN; i++)
                for (std::size_t j = 0; j < CLASSES; j++)
                    y[j] += std::max(h[i], 0.0) * static_cast<double>(w2[i * CLASSES + j]);
            double largest = *std::max_element(y.begin(), y.end()), sum = 0.0;
            for (double &e : y) sum += e = std::exp(e - largest);
            for (std::size_t j = 0; j < CLASSES; j++) {
                double error = std::abs(static_cast<double>(result[row * CLASSES + j]) - y[j] / sum);
                // NaN is not small, either.
                if (!(error <= worst)) worst = error;
            }
        }
        return worst;
    }
};

int main(int argc, char **argv) {
    try {
        int complaints = 0;
        tm_config config = tm_config_defaults();
        if (argc > 1) {
            config.validation = config.memory_checks = config.no_cache = true;
            config.prewarm = TM_PREWARM_OFF;
            config.on_message_user = &complaints;
            config.on_message = [](const char *message, void *user) {
                std::fprintf(stderr, "validation: %s\n", message);
                *static_cast<int *>(user) = 1;
            };
        }
        tidemill::Accelerator gpu(config);
        Network network;
        std::vector<float> result = network.on_device(gpu);
        gpu.close();  // throws if anything is left
        double error = network.worst_error(result);
        std::printf("tidemill %s: %zu-%zu-%zu, a batch of %zu: worst error %.1e, %s\n", tm_version(), WIDE, HIDDEN,
                    CLASSES, BATCH, error, error <= TOLERANCE ? "equal to the CPU's" : "WRONG");
        if (argc > 1) {
            std::ofstream file(argv[1], std::ios::binary);
            file.write(reinterpret_cast<const char *>(result.data()),
                       static_cast<std::streamsize>(result.size() * sizeof(float)));
            if (!file.flush()) throw std::runtime_error(std::string("can't write ") + argv[1]);
        }
        return error <= TOLERANCE && complaints == 0 ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
