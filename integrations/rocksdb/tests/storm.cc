// Random transactions against a model of who may hold what.
//
//     storm [COUNT] [SEED]
//
// First one thread steps through several transactions that never wait: the model says of each request whether it is
// granted. Then threads run COUNT transactions at once, with savepoints, upgrades, limits of time, deadlocks, expiry
// and cancellation: what a transaction holds is marked, key by key, and nobody may find a mark in the way.

#include "harness.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <vector>

using namespace harness;

namespace {

constexpr int keys = 16;

/// Every second one is longer than a string has room for within itself.
std::string KeyAt(int at) {
    const std::string key(1, static_cast<char>('a' + at));
    return at % 2 == 0 ? key : key + std::string(100, 'x');
}

/// How a key is held.
enum Hold { No, Shared, Alone };

/// What one transaction holds, as RocksDB promises it.
struct Model {
    struct RangeHeld {
        int first, last;
        Hold hold;
        int level; // How many savepoints there were.
    };
    struct Point {
        Hold hold;
        int level;
    };
    std::vector<RangeHeld> ranges;
    std::map<int, Point> points;
    int savepoints = 0;

    Hold At(int key) const {
        Hold hold = No;
        for (const RangeHeld &range : ranges)
            if (range.first <= key && key <= range.last) hold = std::max(hold, range.hold);
        const auto point = points.find(key);
        return point == points.end() ? hold : std::max(hold, point->second.hold);
    }
    void Add(int first, int last, Hold hold, bool is_range) {
        if (is_range) {
            ranges.push_back({first, last, hold, savepoints});
            return;
        }
        const auto [point, is_new] = points.try_emplace(first, Point{hold, savepoints});
        if (!is_new) point->second.hold = std::max(point->second.hold, hold);
    }
    void RollBackToSavepoint() {
        const auto is_later = [this](const auto &held) { return held.level >= savepoints; };
        ranges.erase(std::remove_if(ranges.begin(), ranges.end(), is_later), ranges.end());
        for (auto point = points.begin(); point != points.end();)
            point = is_later(point->second) ? points.erase(point) : std::next(point);
        --savepoints;
    }
};

Status Request(const Database &at, Transaction *transaction, int first, int last, Hold hold, bool is_range) {
    const std::string start = KeyAt(first), end = KeyAt(last);
    if (!is_range) return LockKey(transaction, start, hold == Alone);
    const Mode mode = hold == Alone ? Mode::Exclusive : Mode::Shared;
    return at.spanlock->LockRange(transaction, nullptr, Endpoint(start), Endpoint(end), mode);
}

void StepByStep(std::uint64_t steps, std::uint64_t seed) {
    Database at(Kind::Spanlock);
    constexpr int count = 5;
    std::mt19937_64 random(seed);
    std::array<Txn, count> all;
    std::array<Model, count> models;
    for (Txn &one : all) one = at.Begin(0);
    for (std::uint64_t step = 0; step < steps; ++step) {
        const int who = static_cast<int>(random() % count);
        Transaction *transaction = all[who].get();
        Model &model = models[who];
        switch (random() % 12) {
        case 0:
            transaction->SetSavePoint();
            ++model.savepoints;
            break;
        case 1:
            if (model.savepoints == 0) break;
            GOOD(transaction->RollbackToSavePoint());
            model.RollBackToSavepoint();
            break;
        case 2:
            GOOD(random() % 2 == 0 ? transaction->Commit() : transaction->Rollback());
            all[who] = at.Begin(0);
            model = {};
            break;
        default: {
            const bool is_range = random() % 3 == 0;
            const int first = static_cast<int>(random() % keys);
            const int last = is_range ? first + static_cast<int>(random() % std::min(6, keys - first)) : first;
            const Hold hold = random() % 2 == 0 ? Shared : Alone;
            bool may = true;
            for (int key = first; key <= last; ++key)
                for (int other = 0; other < count; ++other)
                    if (other != who && models[other].At(key) != No)
                        may &= models[other].At(key) == Shared && hold == Shared;
            const Status status = Request(at, transaction, first, last, hold, is_range);
            if (may != status.ok()) {
                std::cerr << "step " << step << ": transaction " << who << " asks for " << KeyAt(first) << ".."
                          << KeyAt(last) << (hold == Alone ? " alone" : " shared") << (is_range ? ", a range" : "")
                          << ": " << status.ToString() << ", and the model says " << may << '\n';
                for (int other = 0; other < count; ++other) {
                    std::cerr << "  " << other << " holds";
                    for (int key = 0; key < keys; ++key)
                        if (models[other].At(key) != No) std::cerr << ' ' << KeyAt(key) << models[other].At(key);
                    std::cerr << '\n';
                }
                throw Failure("the model differs");
            }
            if (may) model.Add(first, last, hold, is_range);
        }
        }
    }
    for (Txn &one : all) one.reset();
    CHECK(at.ranges->GetRangeLockStatusData().empty());
    CHECK(at.ranges->GetStatus().current_lock_memory == 0);
}

/// Who holds a key, as the transactions themselves mark it: one for each that shares it, many for one that does not.
std::array<std::atomic<int>, keys> marks;
constexpr int alone = 1 << 16;

class Marked {
  public:
    ~Marked() { Become({}); }
    /// Marks what a model holds, and nothing else.
    void Become(const Model &model) {
        for (int key = 0; key < keys; ++key) {
            const Hold hold = model.At(key);
            if (hold == held_[key]) continue;
            marks[key] -= Weight(held_[key]);
            held_[key] = hold;
            const int others = marks[key].fetch_add(Weight(hold));
            if (hold == Alone && others != 0) throw Failure("a key is held alone and by others");
            if (hold == Shared && others >= alone) throw Failure("a key is shared and held alone");
        }
    }

  private:
    static int Weight(Hold hold) { return hold == No ? 0 : hold == Shared ? 1 : alone; }
    std::array<Hold, keys> held_{};
};

/// A transaction that others may look at, and cancel.
struct Slot {
    std::mutex mutex;
    Transaction *transaction = nullptr;
};

struct Counts {
    std::atomic<std::uint64_t> granted{0}, timed_out{0}, deadlocks{0}, cancelled{0}, robbed{0};
};

void AtOnce(std::uint64_t transactions, std::uint64_t seed) {
    constexpr int count = 8;
    spanlock_rocksdb::Options options;
    options.look_after = std::chrono::microseconds(300);
    Database at(Kind::Spanlock, options);
    std::array<Slot, count> slots;
    std::atomic<std::uint64_t> left{transactions};
    std::atomic<bool> has_failed{false};
    Counts counts;
    const auto work = [&](int number) {
        std::mt19937_64 random(seed * 1000 + number);
        while (!has_failed) {
            if (left.fetch_sub(1) - 1 >= transactions) break;
            const bool expires = random() % 32 == 0;
            Txn one = at.Begin(static_cast<std::int64_t>(random() % 8), random() % 2 == 0, expires ? 1 : -1);
            {
                const std::lock_guard lock(slots[number].mutex);
                slots[number].transaction = one.get();
            }
            {
                Model model;
                Marked marked;
                for (std::uint64_t step = random() % 8; step > 0; --step) {
                    const auto what = random() % 10;
                    if (what == 0) {
                        one->SetSavePoint();
                        ++model.savepoints;
                    } else if (what == 1 && model.savepoints > 0) {
                        model.RollBackToSavepoint();
                        if (!expires) marked.Become(model);
                        const Status status = one->RollbackToSavePoint();
                        if (!status.ok() && !expires) throw Failure("a savepoint: " + status.ToString());
                    } else {
                        const bool is_range = random() % 3 == 0;
                        const int first = static_cast<int>(random() % keys);
                        const int more = static_cast<int>(random() % std::min(5, keys - first));
                        const int last = is_range ? first + more : first;
                        const Hold hold = random() % 2 == 0 ? Shared : Alone;
                        const Status status = Request(at, one.get(), first, last, hold, is_range);
                        if (status.ok()) {
                            ++counts.granted;
                            model.Add(first, last, hold, is_range);
                            if (!expires) marked.Become(model);
                        } else {
                            if (status.IsTimedOut()) ++counts.timed_out;
                            else if (IsDeadlock(status)) ++counts.deadlocks;
                            else if (status.IsAborted()) ++counts.cancelled;
                            else if (!status.IsExpired() || !expires)
                                throw Failure("a request is answered: " + status.ToString());
                            if (random() % 2 == 0) break;
                        }
                    }
                    Slot &other = slots[random() % count];
                    const std::unique_lock lock(other.mutex, std::try_to_lock);
                    if (!lock || !other.transaction) continue;
                    std::uint32_t family = 0;
                    std::string key;
                    const auto ids = other.transaction->GetWaitingTxns(&family, &key);
                    if (!ids.empty() && (key.empty() || key != KeyAt(key[0] - 'a')))
                        throw Failure("a transaction waits for no key that there is: " + key);
                    if (random() % 64 == 0) at.spanlock->Cancel(other.transaction);
                }
                if (expires) Sleep(2);
            }
            {
                const std::lock_guard lock(slots[number].mutex);
                slots[number].transaction = nullptr;
            }
            const Status status = random() % 2 == 0 ? one->Commit() : one->Rollback();
            if (!status.ok() && !expires) throw Failure("a transaction ends: " + status.ToString());
            if (!status.ok()) ++counts.robbed;
        }
    };
    std::string why;
    std::mutex mutex;
    std::vector<std::thread> crew;
    for (int number = 0; number < count; ++number) {
        crew.emplace_back([&, number] {
            try {
                work(number);
            } catch (const std::exception &failure) {
                const std::lock_guard lock(mutex);
                why = failure.what();
                has_failed = true;
            }
        });
    }
    for (auto &thread : crew) thread.join();
    if (has_failed) throw Failure(why);
    for (const auto &mark : marks) CHECK(mark == 0);
    CHECK(at.ranges->GetRangeLockStatusData().empty());
    CHECK(at.ranges->GetStatus().current_lock_memory == 0);
    std::cout << "storm: " << transactions << " transactions: " << counts.granted << " granted, " << counts.timed_out
              << " timed out, " << counts.deadlocks << " deadlocks, " << counts.cancelled << " cancelled, "
              << counts.robbed << " expired\n";
}

} // namespace

int main(int argc, char **argv) {
    const std::uint64_t count = argc > 1 ? std::stoull(argv[1]) : 20000;
    const std::uint64_t seed = argc > 2 ? std::stoull(argv[2]) : 1;
    try {
        StepByStep(count, seed);
        AtOnce(count, seed);
    } catch (const std::exception &failure) {
        std::cerr << "storm: " << failure.what() << '\n';
        return 1;
    }
    return 0;
}
