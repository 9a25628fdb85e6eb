// Sums by label for one row at a time, which has few of all labels.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ldsm {

// An array of all labels where they are not many, or where most of them occur. Otherwise a hash
// table: one that fits into the cache, and a single row does not pay for all labels.
template <typename Number>
class LabelSums {
  public:
    explicit LabelSums(int32_t n_labels) : n_labels_(n_labels) {}

    // Starts a row to which at most `n_entries` numbers will be added.
    void begin(int64_t n_entries) {
        clear();
        hashed_ = n_labels_ > kManyLabels && n_entries < n_labels_ / 8;
        // Many numbers are cheaper to add up without noting which labels occur.
        tracked_ = hashed_ || n_entries < n_labels_;
        if (!hashed_) {
            sums_.resize(static_cast<size_t>(n_labels_), Number{0});
            return;
        }
        const size_t slots = std::bit_ceil(static_cast<size_t>(2 * n_entries) | 16);
        shift_ = 64 - std::countr_zero(slots);
        if (table_.size() < slots) table_.resize(slots, {});
    }

    // Calls fill(add), where add(label, number) adds up; labels must be in range.
    template <typename Fill>
    void fill(Fill&& fill) {
        if (hashed_)
            fill([this](uint32_t label, Number number) { slot_of(label).sum += number; });
        else if (tracked_)
            fill([this](uint32_t label, Number number) {
                if (sums_[label] == 0) touched_.push_back(static_cast<int32_t>(label));
                sums_[label] += number;
            });
        else
            fill([this](uint32_t label, Number number) { sums_[label] += number; });
    }
    // After the last number.
    void end() {
        if (tracked_) return;
        for (int32_t label = 0; label < n_labels_; ++label)
            if (sums_[label] != 0) touched_.push_back(label);
    }

    Number of(int32_t label) const {
        if (!hashed_) return sums_.empty() ? Number{0} : sums_[label];
        const Slot* slot = &table_[first_slot(static_cast<uint32_t>(label))];
        while (slot->key != 0) {
            if (slot->key == static_cast<uint32_t>(label) + 1) return slot->sum;
            slot = next(slot);
        }
        return Number{0};
    }
    // Calls visit(label, sum) for each label that has one, in no particular order.
    template <typename Visit>
    void each(Visit&& visit) const {
        for (const int32_t at : touched_)
            hashed_ ? visit(static_cast<int32_t>(table_[at].key - 1), table_[at].sum)
                    : visit(at, sums_[at]);
    }

  private:
    static constexpr int32_t kManyLabels = 65'536;

    struct Slot {
        uint32_t key = 0;  // the label + 1; 0 if the slot is free
        Number sum = 0;
    };

    size_t first_slot(uint32_t label) const { return (label * 0x9E3779B97F4A7C15ULL) >> shift_; }
    const Slot* next(const Slot* slot) const {
        const auto at = static_cast<size_t>(slot - table_.data()) + 1;
        return &table_[at & ((size_t{1} << (64 - shift_)) - 1)];
    }
    Slot& slot_of(uint32_t label) {
        const Slot* slot = &table_[first_slot(label)];
        while (slot->key != label + 1) {
            if (slot->key == 0) {
                const auto at = static_cast<size_t>(slot - table_.data());
                touched_.push_back(static_cast<int32_t>(at));
                table_[at].key = label + 1;
                break;
            }
            slot = next(slot);
        }
        return table_[static_cast<size_t>(slot - table_.data())];
    }
    void clear() {
        for (const int32_t at : touched_) {
            if (hashed_)
                table_[at] = {};
            else
                sums_[at] = 0;
        }
        touched_.clear();
    }

    int32_t n_labels_;
    bool hashed_ = false, tracked_ = true;
    int shift_ = 60;
    std::vector<Number> sums_;      // by label; all 0 between rows
    std::vector<Slot> table_;       // all free between rows
    std::vector<int32_t> touched_;  // labels, or slots of the table
};

}  // namespace ldsm
