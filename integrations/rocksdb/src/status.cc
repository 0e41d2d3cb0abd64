// What a manager tells of itself, and its making.

#include "answers.h"
#include "manager.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <tuple>

#include <rocksdb/convenience.h>
#include <rocksdb/version.h>

// The layouts of RocksDB's private classes depend on it, and Debian's library is built without it.
#ifdef NDEBUG
#error "compile it without NDEBUG, as the library of RocksDB is"
#endif

namespace spanlock_rocksdb {

namespace {

/// Whether one range ends where the other one begins.
bool Touch(const End &one, const End &other) { return one.key == other.key && one.is_behind == other.is_behind; }

/// What transactions hold of a family. Pieces of one transaction that touch and are held alike are shown as one.
std::vector<std::pair<OwnRange, rocksdb::RangeLockInfo>> Listed(const Family &family, const Registry &registry) {
    std::vector<std::tuple<OwnRange, bool, std::uint32_t>> joined;
    std::unordered_map<std::uint32_t, std::size_t> last;
    for (const Holder &holder : family.All()) {
        const auto known = last.find(holder.owner);
        if (known != last.end()) {
            auto &[range, is_exclusive, owner] = joined[known->second];
            if (is_exclusive == holder.is_exclusive && Touch(range.high, holder.range.low)) {
                range.high = holder.range.high;
                continue;
            }
        }
        last[holder.owner] = joined.size();
        joined.emplace_back(holder.range, holder.is_exclusive, holder.owner);
    }
    // Those who share one range are listed together.
    std::vector<std::pair<OwnRange, rocksdb::RangeLockInfo>> listed;
    for (const auto &[range, is_exclusive, owner] : joined) {
        const State *state = registry.Of(owner);
        const std::uint64_t id = state == nullptr ? 0 : state->id.load(std::memory_order_relaxed);
        if (id == 0) continue; // It has just ended.
        // They are in the order of their starts.
        auto same = listed.rend();
        for (auto other = listed.rbegin(); !is_exclusive && other != listed.rend(); ++other) {
            if (!Touch(other->first.low, range.low)) break;
            if (other->second.exclusive || !Touch(other->first.high, range.high)) continue;
            same = other;
            break;
        }
        if (same != listed.rend())
            same->second.ids.push_back(id);
        else
            listed.push_back({range, {family.Shown(range.low), family.Shown(range.high), {id}, is_exclusive}});
    }
    return listed;
}

} // namespace

rocksdb::LockManager::RangeLockStatus LockManager::GetRangeLockStatus() {
    rocksdb::LockManager::RangeLockStatus status;
    std::vector<std::shared_ptr<Family>> families;
    {
        const std::shared_lock lock(families_mutex_);
        for (const auto &entry : families_) families.push_back(entry.second);
    }
    for (const auto &family : families)
        for (auto &[range, info] : Listed(*family, registry_)) status.emplace(family->id, std::move(info));
    return status;
}

rocksdb::LockManager::PointLockStatus LockManager::GetPointLockStatus() {
    PointLockStatus status;
    for (const auto &[id, info] : GetRangeLockStatus())
        status.emplace(id, rocksdb::KeyLockInfo{info.start.slice, info.ids, info.exclusive});
    return status;
}

std::vector<rocksdb::DeadlockPath> LockManager::GetDeadlockInfoBuffer() {
    std::vector<rocksdb::DeadlockPath> paths;
    for (const rocksdb::RangeDeadlockPath &ranges : deadlocks_.All()) {
        rocksdb::DeadlockPath path(ranges.deadlock_time, ranges.limit_exceeded);
        for (const rocksdb::RangeDeadlockInfo &step : ranges.path)
            path.path.push_back({step.m_txn_id, step.m_cf_id, step.m_exclusive, step.m_start.slice});
        paths.push_back(std::move(path));
    }
    return paths;
}

rocksdb::RangeLockManagerHandle::Counters LockManager::GetStatus() {
    Counters counters;
    counters.escalation_count = 0;
    counters.lock_wait_count = waits_.load(std::memory_order_relaxed);
    counters.current_lock_memory = registry_.Bytes();
    return counters;
}

int LockManager::SetMaxLockMemory(std::size_t most) {
    if (registry_.Bytes() > most) return EDOM;
    max_memory_.store(most, std::memory_order_relaxed);
    return 0;
}

void LockManager::Cancel(rocksdb::Transaction *transaction) {
    State &state = TrackerOf(static_cast<PessimisticTransaction *>(transaction)).GetState();
    const std::lock_guard guard(state.mutex);
    state.is_in_use.store(true, std::memory_order_relaxed);
    state.is_cancelled = true;
    state.EndWaits();
}

std::shared_ptr<Manager> NewSpanlockManager(const Options &options) {
    const std::string runs = rocksdb::GetRocksVersionAsString(true);
    const std::string built = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
                              std::to_string(ROCKSDB_PATCH);
    if (runs != built) {
        std::fprintf(stderr,
                     "spanlock-rocksdb is built for RocksDB %s, and this process runs %s: build it for that one.\n",
                     built.c_str(), runs.c_str());
        return nullptr;
    }
    int major = -1, minor = -1;
    const bool is_known = std::sscanf(spanlock_version(), "%d.%d", &major, &minor) == 2;
    if (!is_known || major != SPANLOCK_VERSION_MAJOR || minor != SPANLOCK_VERSION_MINOR) {
        std::fprintf(stderr, "spanlock-rocksdb is built for libspanlock %s, and this process runs %s.\n",
                     SPANLOCK_VERSION, spanlock_version());
        return nullptr;
    }
    return std::make_shared<LockManager>(options);
}

} // namespace spanlock_rocksdb
