// Independent tasks on several threads from one queue, heaviest first.
//
// One thread computes a task from start to end, so its result does not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace slimfl {

// Calls work(worker, task) for every task; `worker` < threads names the calling thread.  The
// first exception stops the queue and is thrown again here.
template <class Work>
void run_queue(const std::vector<std::int64_t>& weights, int threads, Work work) {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t left, std::size_t right) { return weights[left] > weights[right]; });

    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto serve = [&](std::size_t worker) {
        try {
            for (std::size_t position = next++; position < order.size(); position = next++) {
                work(worker, order[position]);
            }
        } catch (...) {
            const std::lock_guard<std::mutex> lock(failure_mutex);
            if (!failure) {
                failure = std::current_exception();
            }
            next = order.size();
        }
    };
    const std::size_t workers = std::min(static_cast<std::size_t>(threads), order.size());
    std::vector<std::thread> pool;
    try {
        for (std::size_t worker = 1; worker < workers; ++worker) {
            pool.emplace_back(serve, worker);
        }
    } catch (...) {
        // Fewer threads than requested: those that exist do all the work.
    }
    serve(0);
    for (std::thread& thread : pool) {
        thread.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace slimfl
