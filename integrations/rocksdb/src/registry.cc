#include "registry.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

namespace spanlock_rocksdb {

State &Registry::Take() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
        State &state = *free_.back();
        free_.pop_back();
        return state;
    }
    auto fresh = std::make_unique<State>();
    State &state = *fresh;
    all_.emplace(state.number, std::move(fresh));
    return state;
}

void Registry::PutBack(State &state) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&state);
}

void Registry::Renew(State &state) {
    const std::lock_guard lock(mutex_);
    auto entry = all_.extract(state.number);
    state.Renew();
    entry.key() = state.number;
    all_.insert(std::move(entry));
}

State *Registry::Of(std::uint32_t owner) const {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(owner);
    return found == all_.end() ? nullptr : found->second.get();
}

std::size_t Registry::Bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto &entry : all_) sum += entry.second->bytes.load(std::memory_order_relaxed);
    return sum;
}

void Deadlocks::Resize(std::size_t most) {
    const std::lock_guard lock(mutex_);
    most_ = most;
    if (latest_.size() > most_) latest_.resize(most_);
}

void Deadlocks::Add(rocksdb::RangeDeadlockPath path) {
    const std::lock_guard lock(mutex_);
    latest_.push_front(std::move(path));
    if (latest_.size() > most_) latest_.pop_back();
}

std::vector<rocksdb::RangeDeadlockPath> Deadlocks::All() const {
    const std::lock_guard lock(mutex_);
    return {latest_.begin(), latest_.end()};
}

void Waits::Enter(State &state, const Waiting &waiting) {
    const std::lock_guard lock(mutex_);
    all_.insert_or_assign(&state, waiting);
}

void Waits::Leave(State &state) {
    const std::lock_guard lock(mutex_);
    all_.erase(&state);
}

bool Waits::IsInRing(State &state, rocksdb::RangeDeadlockPath *path) const {
    using std::chrono::seconds;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t time = std::chrono::duration_cast<seconds>(now).count();
    const std::lock_guard lock(mutex_);
    struct Step {
        State *state;
        std::size_t from; // Which step waits for it.
    };
    std::vector<Step> steps{{&state, 0}};
    std::unordered_set<State *> known{&state};
    for (std::size_t at = 0; at < steps.size(); ++at) {
        const auto found = all_.find(steps[at].state);
        if (found == all_.end()) continue; // It goes on.
        const Waiting &waiting = found->second;
        for (const Holder &holder :
             waiting.family->Blockers(*waiting.range, waiting.is_exclusive, steps[at].state->owner)) {
            State *next = registry_.Of(holder.owner);
            if (next == &state) {
                std::vector<rocksdb::RangeDeadlockInfo> ring;
                for (std::size_t of = at;; of = steps[of].from) {
                    const Waiting &waits = all_.at(steps[of].state);
                    ring.push_back({waits.transaction, waits.family->id, waits.is_exclusive,
                                    waits.family->Shown(waits.range->low), waits.family->Shown(waits.range->high)});
                    if (of == 0) break;
                }
                // Found from the last one to this one.
                std::rotate(ring.begin(), ring.end() - 1, ring.end());
                std::reverse(ring.begin(), ring.end());
                *path = rocksdb::RangeDeadlockPath(ring, time);
                return true;
            }
            if (next != nullptr && known.insert(next).second) steps.push_back({next, at});
        }
    }
    return false;
}

} // namespace spanlock_rocksdb
