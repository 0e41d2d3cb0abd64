// A store of keys and values in memory. Transfers between two keys and sums of whole ranges of keys run side by side,
// unless their ranges overlap: so a sum never sees half of a transfer.
#include <spanlock.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>
#include <vector>

namespace {

class Store {
public:
    static constexpr std::uint64_t keys = 1000;
    static constexpr std::int64_t initial = 100;

    Store() { values_.fill(initial); }

    // Moves an amount, with both keys locked and no others.
    void transfer(std::uint64_t from, std::uint64_t to, std::int64_t amount)
    {
        const spanlock::ranges_guard guard(lock_, {key(from), key(to)});
        values_[from] -= amount;
        values_[to] += amount;
    }

    // The sum of a range of keys, without `end`.
    std::int64_t sum(std::uint64_t start, std::uint64_t end)
    {
        const spanlock::shared_range_guard guard(lock_, spanlock::range(start, end));
        std::int64_t sum = 0;
        for (std::uint64_t at = start; at < end; at++)
            sum += values_[at];
        return sum;
    }

    // Sets a range of keys to its mean, unless that would have to wait.
    bool try_level(std::uint64_t start, std::uint64_t end)
    {
        const spanlock::range_guard guard(lock_, spanlock::range(start, end), std::try_to_lock);
        if (!guard)
            return false;
        std::int64_t left = 0;
        for (std::uint64_t at = start; at < end; at++)
            left += std::exchange(values_[at], 0);
        for (std::uint64_t at = start; at < end; at++) {
            values_[at] = left / static_cast<std::int64_t>(end - at);
            left -= values_[at];
        }
        return true;
    }

private:
    static spanlock::range_type key(std::uint64_t key) { return spanlock::range(key, key + 1); }

    spanlock::range_lock lock_;
    std::array<std::int64_t, keys> values_{};
};

} // namespace

int main()
{
    Store store;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; seed++)
        threads.emplace_back([&store, seed] {
            std::minstd_rand random(seed + 1);
            for (int i = 0; i < 5000; i++) {
                const std::uint64_t from = random() % Store::keys, to = random() % Store::keys;
                store.transfer(from, to, static_cast<std::int64_t>(random() % 10));
                if (i % 50 == 0 && store.sum(0, Store::keys) != Store::keys * Store::initial)
                    std::abort();
                if (i % 100 == 0)
                    store.try_level(from / 2, from / 2 + 100);
            }
        });
    for (auto& thread : threads)
        thread.join();
    std::cout << "the sum is " << store.sum(0, Store::keys) << '\n';
}
