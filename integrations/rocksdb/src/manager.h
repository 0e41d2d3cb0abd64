// The lock manager: what RocksDB calls, and how a request waits.

#pragma once

#include "registry.h"
#include "tracker.h"

#include <spanlock/rocksdb.h>

#include "utilities/transactions/lock/lock_manager.h"

#include <functional>
#include <optional>
#include <shared_mutex>

namespace spanlock_rocksdb {

using rocksdb::Endpoint;
using rocksdb::Env;
using rocksdb::LockTracker;
using rocksdb::PessimisticTransaction;
using rocksdb::Status;

class LockManager final : public rocksdb::LockManager, public Manager {
  public:
    explicit LockManager(const Options &options);

    // Of rocksdb::LockManager.
    bool IsPointLockSupported() const override { return true; }
    bool IsRangeLockSupported() const override { return true; }
    const rocksdb::LockTrackerFactory &GetLockTrackerFactory() const override { return trackers_; }
    void AddColumnFamily(const rocksdb::ColumnFamilyHandle *handle) override;
    void RemoveColumnFamily(const rocksdb::ColumnFamilyHandle *handle) override;
    Status TryLock(PessimisticTransaction *transaction, ColumnFamilyId family, const std::string &key, Env *env,
                   bool exclusive) override;
    Status TryLock(PessimisticTransaction *transaction, ColumnFamilyId family, const Endpoint &start,
                   const Endpoint &end, Env *env, bool exclusive) override;
    void UnLock(PessimisticTransaction *transaction, const LockTracker &tracker, Env *env) override;
    void UnLock(PessimisticTransaction *transaction, ColumnFamilyId family, const std::string &key, Env *env) override;
    void UnLock(PessimisticTransaction *transaction, ColumnFamilyId family, const Endpoint &start, const Endpoint &end,
                Env *env) override;
    PointLockStatus GetPointLockStatus() override;
    rocksdb::LockManager::RangeLockStatus GetRangeLockStatus() override;
    std::vector<rocksdb::DeadlockPath> GetDeadlockInfoBuffer() override;
    void Resize(std::uint32_t most) override { deadlocks_.Resize(most); }

    // Of Manager.
    rocksdb::LockManager *getLockManager() override { return this; }
    Status LockRange(rocksdb::Transaction *transaction, rocksdb::ColumnFamilyHandle *handle, const Endpoint &start,
                     const Endpoint &end, Mode mode) override;
    void Cancel(rocksdb::Transaction *transaction) override;
    int SetMaxLockMemory(std::size_t most) override;
    std::size_t GetMaxLockMemory() override { return max_memory_.load(std::memory_order_relaxed); }
    void SetEscalationBarrierFunc(EscalationBarrierFunc) override {}
    rocksdb::LockManager::RangeLockStatus GetRangeLockStatusData() override { return GetRangeLockStatus(); }
    Counters GetStatus() override;
    std::vector<rocksdb::RangeDeadlockPath> GetRangeDeadlockInfoBuffer() override { return deadlocks_.All(); }
    void SetRangeDeadlockInfoBufferSize(std::uint32_t most) override { Resize(most); }

    // For trackers.
    std::uint64_t NextTracker() { return trackers_made_.fetch_add(1, std::memory_order_relaxed) + 1; }
    State &TakeState() { return registry_.Take(); }
    void PutBack(State &state);

  private:
    using Clock = std::chrono::steady_clock;

    /// A request, and what it goes on with after a wait. It has the State's mutex, but for when it waits.
    struct Request {
        PessimisticTransaction *transaction;
        State &state;
        bool is_exclusive;
        /// Whether it is a key that is asked for, and not a range.
        bool is_key;
        std::unique_lock<std::mutex> guard{state.mutex};
        Texts texts{};
        Range range{};
        /// When it gives up. It is set when the request first waits, and holds for all that it waits for.
        std::optional<Clock::time_point> deadline = std::nullopt;
    };
    /// Asks the lock for something, until a time.
    using Attempt = std::function<int(const timespec *until)>;

    /// What the transaction holds of the family; null, if the answer is not OK. It stays where it is until the
    /// transaction's next request.
    Status Begin(Request &request, ColumnFamilyId family, Holds **holds);
    Status Gain(Request &request, Holds &holds);
    /// Where the transaction holds some of it.
    Status GainBeside(Request &request, Holds &holds);
    Status GainParts(Request &request, Holds &holds);
    /// What nobody of the transaction holds: a piece that is to be before `next`, and is that afterwards.
    Status GainPart(Request &request, Holds &holds, const Range &gap, Holds::Pieces::iterator *next);
    Status Upgrade(Request &request, Holds &holds, const Range &range, spanlock_token token);
    /// Notes that it was asked for a piece.
    void Note(const Request &request, Holds::Pieces::iterator piece);
    void NoteRange(const Request &request, const Family &family);
    Status WaitFor(Request &request, const Family &family, const Range &range, bool is_exclusive,
                   const Attempt &attempt);
    /// What an answer of the lock comes to. To go on with is a limit of time that has passed.
    static Status StatusOf(int answer, State &state);
    /// Takes the locks of transactions that have expired, and ends their waits: they release the rest by themselves.
    /// Whether one was.
    bool Rob(const std::vector<Holder> &blockers, std::uint64_t *next_expiry);
    /// Whether one more lock is within the limits.
    Status HasRoom(const Family &family) const;
    void Finish(State &state);

    std::shared_ptr<Family> FamilyOf(ColumnFamilyId id) const;
    Holds *HoldsOf(State &state, ColumnFamilyId id);
    static Tracker &TrackerOf(PessimisticTransaction *transaction);

    const Options options_;
    TrackerFactory trackers_{*this};
    std::atomic<std::uint64_t> trackers_made_{0};
    std::atomic<std::uint64_t> waits_{0};
    std::atomic<std::size_t> max_memory_{SIZE_MAX};
    /// How many transactions that may expire hold locks.
    std::atomic<std::int64_t> expirable_{0};

    mutable std::shared_mutex families_mutex_;
    std::unordered_map<ColumnFamilyId, std::shared_ptr<Family>> families_;
    /// How often that has changed.
    std::atomic<std::uint64_t> families_changed_{0};

    Registry registry_;
    Waits waiting_{registry_};
    Deadlocks deadlocks_;
};

} // namespace spanlock_rocksdb
