// A hash of strings whose collisions cannot be provoked without knowing the seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace ldsm {

class StringHash {
  public:
    // Drawn at random each time.
    StringHash() {
        std::random_device device;
        for (uint64_t& part : seed_) part = uint64_t{device()} << 32 | device();
    }
    explicit StringHash(uint64_t seed) {
        for (uint64_t& part : seed_) {  // SplitMix64
            seed += 0x9E3779B97F4A7C15;
            uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
            part = z ^ (z >> 31);
        }
    }
    // Strings of different kinds are different.
    uint64_t operator()(std::string_view s, bool kind = false) const {
        uint64_t h = seed_[0] ^ (kind ? seed_[1] : seed_[2]) ^ s.size();
        const char* at = s.data();
        size_t left = s.size();
        for (; left >= 8; at += 8, left -= 8) {
            uint64_t part;
            std::memcpy(&part, at, 8);
            h = mixed(h, part);
        }
        uint64_t rest = 0;
        for (size_t i = 0; i < left; ++i)
            rest |= static_cast<uint64_t>(static_cast<uint8_t>(at[i])) << (8 * i);
        h = mixed(h, rest);
        return (h ^ (h >> 32)) * (seed_[1] | 1);
    }

  private:
    uint64_t mixed(uint64_t h, uint64_t part) const {
        h = (h ^ part) * (seed_[3] | 1);
        return h ^ (h >> 29);
    }

    uint64_t seed_[4];
};

}  // namespace ldsm
