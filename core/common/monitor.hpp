// Keeps a long call responsive: it checks a cancel flag, counts its progress and, on the main
// thread, handles pending signals.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ldsm {

struct Cancelled {};  // thrown; the binding turns it into the right Python exception

class Monitor {
  public:
    // `poll` may throw; it is called at most every 50 ms.
    Monitor(int32_t* cancel, int64_t* progress, void (*poll)())
        : cancel_(cancel), progress_(progress), poll_(poll), last_(Clock::now()) {}

    void check() {
        if (std::atomic_ref<int32_t>(*cancel_).load(std::memory_order_relaxed) != 0)
            throw Cancelled{};
        const auto now = Clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        last_ = now;
        poll_();
    }
    void report(int64_t done) {
        std::atomic_ref<int64_t>(*progress_).store(done, std::memory_order_relaxed);
    }

  private:
    using Clock = std::chrono::steady_clock;
    int32_t* cancel_;
    int64_t* progress_;
    void (*poll_)();
    Clock::time_point last_;
};

}  // namespace ldsm
