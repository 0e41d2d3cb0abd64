// A cache under a `spanlock::shared_mutex`, as it would be under a `std::shared_mutex`: one line differs.
#include <spanlock.hpp>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Mutex = spanlock::shared_mutex; // std::shared_mutex

// Looks up what was computed, and computes what was not.
class Cache {
public:
    std::string get(int key)
    {
        if (const auto known = find(key))
            return *known;
        std::string made = "value " + std::to_string(key); // Without the lock: it may take long.
        const std::unique_lock lock(mutex_);
        const auto& value = values_.try_emplace(key, std::move(made)).first->second;
        changed_.notify_all();
        return value;
    }

    std::optional<std::string> find(int key) const
    {
        const std::shared_lock lock(mutex_);
        const auto found = values_.find(key);
        return found == values_.end() ? std::nullopt : std::optional(found->second);
    }

    // Waits until so many keys are known.
    bool wait_for(std::size_t count, std::chrono::milliseconds timeout) const
    {
        std::shared_lock lock(mutex_);
        return changed_.wait_for(lock, timeout, [&] { return values_.size() >= count; });
    }

private:
    mutable Mutex mutex_;
    mutable std::condition_variable_any changed_;
    std::unordered_map<int, std::string> values_;
};

} // namespace

int main()
{
    Cache cache;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++)
        threads.emplace_back([&cache, thread] {
            for (int i = 0; i < 20000; i++)
                if (cache.get((i + thread) % 100).empty())
                    std::terminate();
        });
    const bool is_full = cache.wait_for(100, std::chrono::seconds(60));
    for (auto& thread : threads)
        thread.join();
    std::cout << (is_full ? "all 100 keys are known\n" : "some keys are missing\n");
    return is_full ? 0 : 1;
}
