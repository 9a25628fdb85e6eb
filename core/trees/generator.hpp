// A function that yields one value after another: it stops at each co_yield and resumes there when
// the next value is requested.
#pragma once

#include <coroutine>
#include <utility>

namespace ldsm {

template <typename T>
class Generator {
  public:
    struct promise_type {
        T* current = nullptr;

        Generator get_return_object() {
            return Generator(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(T& value) noexcept {
            current = &value;
            return {};
        }
        void return_void() noexcept { current = nullptr; }
        void unhandled_exception() { throw; }  // passed to the caller of next()
    };

    Generator() = default;
    Generator(Generator&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Generator& operator=(Generator&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Generator() {
        if (handle_) handle_.destroy();
    }

    // Null: there are no more. The previous value is no longer valid.
    T* next() {
        handle_.resume();
        return handle_.promise().current;
    }

  private:
    explicit Generator(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

    std::coroutine_handle<promise_type> handle_;
};

}  // namespace ldsm
