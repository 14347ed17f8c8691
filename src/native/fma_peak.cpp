#include "fma_peak.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "dispatch.h"

namespace slimfl {

double fma_peak(int threads, double seconds) {
    using Clock = std::chrono::steady_clock;
    const Level& level = supported_levels().front();
    std::vector<double> rates(static_cast<std::size_t>(threads), 0.0);
    std::atomic<int> waiting{threads};
    const auto measure = [&](std::size_t index) {
        level.run_fma_chains(1000);
        --waiting;
        while (waiting.load() > 0) {
            std::this_thread::yield();
        }
        const auto start = Clock::now();
        double flops = 0;
        double elapsed = 0;
        do {
            flops += level.run_fma_chains(20000);
            elapsed = std::chrono::duration<double>(Clock::now() - start).count();
        } while (elapsed < seconds);
        rates[index] = flops / elapsed / 1e9;
    };
    std::vector<std::thread> pool;
    for (std::size_t index = 1; index < rates.size(); ++index) {
        pool.emplace_back(measure, index);
    }
    measure(0);
    double total = 0;
    for (std::thread& thread : pool) {
        thread.join();
    }
    for (double rate : rates) {
        total += rate;
    }
    return total;
}

}  // namespace slimfl
