// Numbers that need not be in memory: an unnamed file, which ends with the process in any case, and
// arrays that grow either in memory or in such a file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ldsm {

class ScratchFile {
  public:
    explicit ScratchFile(const std::string& folder) {
        std::string name = folder + "/.ldsm-scratch-XXXXXX";
        file_ = mkostemp(name.data(), O_CLOEXEC);
        if (file_ < 0) fail();
        unlink(name.c_str());
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    ~ScratchFile() { close(file_); }

    int64_t size() const { return size_; }

    // Written with `write`, not through memory: a full disk is then an error and
    // no signal that ends the process.
    void append(const void* data, int64_t n_bytes) {
        const auto* bytes = static_cast<const char*>(data);
        while (n_bytes > 0) {
            const ssize_t n = pwrite(file_, bytes, static_cast<size_t>(n_bytes), size_);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) fail();
            bytes += n;
            n_bytes -= n;
            size_ += n;
        }
    }

    void read(int64_t at, void* data, int64_t n_bytes) const {
        auto* bytes = static_cast<char*>(data);
        while (n_bytes > 0) {
            const ssize_t n = pread(file_, bytes, static_cast<size_t>(n_bytes), at);
            if (n < 0 && errno == EINTR) continue;
            if (n == 0) errno = EIO;
            if (n <= 0) fail();
            bytes += n;
            n_bytes -= n;
            at += n;
        }
    }

    // The file as memory; it outlives the object.
    std::shared_ptr<void> mapped() const {
        const auto n_bytes = static_cast<size_t>(size_);
        void* data = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (data == MAP_FAILED) fail();
        return {data, [n_bytes](void* p) { munmap(p, n_bytes); }};
    }

  private:
    [[noreturn]] static void fail() { throw std::system_error(errno, std::generic_category()); }

    int file_ = -1;
    int64_t size_ = 0;
};

// Appended to, then read as one array.
template <typename T>
class FlatArray {
  public:
    FlatArray() = default;
    // Continue in a file; call before adding the first number.
    void use_file(const std::string& folder) { file_ = std::make_unique<ScratchFile>(folder); }
    void reserve(size_t n) {
        if (!file_) memory_.reserve(n);
    }
    void append(const std::vector<T>& numbers) {
        if (file_)
            file_->append(numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(T)));
        else
            memory_.insert(memory_.end(), numbers.begin(), numbers.end());
    }
    size_t size() const {
        return file_ ? static_cast<size_t>(file_->size()) / sizeof(T) : memory_.size();
    }
    // The numbers, and what must live as long as they are read.
    std::pair<T*, std::shared_ptr<void>> take() {
        if (file_ && file_->size() > 0) {
            const std::shared_ptr<void> mapping = file_->mapped();
            return {static_cast<T*>(mapping.get()), mapping};
        }
        auto owned = std::make_shared<std::vector<T>>(std::move(memory_));
        return {owned->data(), owned};
    }

  private:
    std::vector<T> memory_;
    std::unique_ptr<ScratchFile> file_;
};

}  // namespace ldsm
