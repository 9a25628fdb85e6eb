// The weights of finished nodes: in memory as long as they are few, else in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/scratch.hpp"
#include "trees/node.hpp"

namespace ldsm {

class FinishedWeights {
  public:
    explicit FinishedWeights(const Memory& memory) : memory_(memory) {}

    // Takes charge of a node's weights. When too many are in memory, they all go to the file.
    void keep(Node& node) {
        in_memory_.push_back(&node);
        each_weight_array(node.split, [&](auto& numbers) {
            bytes_ += static_cast<int64_t>(numbers.capacity() * sizeof numbers[0]);
        });
        if (bytes_ <= memory_.limit / 4 || memory_.scratch_folder.empty()) return;
        if (!file_) file_ = std::make_unique<ScratchFile>(memory_.scratch_folder);
        for (Node* kept : in_memory_) write(*kept);
        in_memory_.clear();
        bytes_ = 0;
    }

    bool in_file() const { return file_ != nullptr; }

    // Puts a node's weights back into its split.
    void fetch(Node& node) const {
        int64_t at = node.scratch_at;
        if (at < 0) return;
        each_weight_array(node.split, [&](auto& numbers) {
            int64_t n = 0;
            file_->read(at, &n, sizeof n);
            numbers.resize(static_cast<size_t>(n));
            const int64_t n_bytes = n * static_cast<int64_t>(sizeof numbers[0]);
            file_->read(at + static_cast<int64_t>(sizeof n), numbers.data(), n_bytes);
            at += static_cast<int64_t>(sizeof n) + n_bytes;
        });
    }

  private:
    void write(Node& node) {
        node.scratch_at = file_->size();
        each_weight_array(node.split, [&](auto& numbers) {
            const auto n = static_cast<int64_t>(numbers.size());
            file_->append(&n, sizeof n);
            file_->append(numbers.data(), n * static_cast<int64_t>(sizeof numbers[0]));
            release(numbers);
        });
    }

    const Memory& memory_;
    std::unique_ptr<ScratchFile> file_;
    std::vector<Node*> in_memory_;
    int64_t bytes_ = 0;  // of these
};

}  // namespace ldsm
