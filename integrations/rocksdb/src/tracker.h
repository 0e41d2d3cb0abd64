// What a transaction, or a savepoint, remembers of locks.

#pragma once

#include "holds.h"

#include "utilities/transactions/lock/lock_tracker.h"
#include "utilities/transactions/lock/point/point_lock_tracker.h"

#include <atomic>

namespace spanlock_rocksdb {

class LockManager;

/// Points are tracked as RocksDB's point lock manager does it. Ranges are noted in the transaction's State: a savepoint
/// only remembers how many trackers there were before it.
class Tracker final : public rocksdb::LockTracker {
  public:
    explicit Tracker(LockManager &manager);
    ~Tracker() override;

    bool IsPointLockSupported() const override { return true; }
    bool IsRangeLockSupported() const override { return true; }
    void Track(const rocksdb::PointLockRequest &request) override { points_.Track(request); }
    rocksdb::UntrackStatus Untrack(const rocksdb::PointLockRequest &request) override {
        return points_.Untrack(request);
    }
    void Track(const rocksdb::RangeLockRequest &) override {}
    rocksdb::UntrackStatus Untrack(const rocksdb::RangeLockRequest &) override {
        return rocksdb::UntrackStatus::NOT_TRACKED;
    }
    void Merge(const rocksdb::LockTracker &other) override { points_.Merge(Of(other).points_); }
    void Subtract(const rocksdb::LockTracker &other) override { points_.Subtract(Of(other).points_); }
    void Clear() override { points_.Clear(); }
    rocksdb::LockTracker *GetTrackedLocksSinceSavePoint(const rocksdb::LockTracker &savepoint) const override;

    /// Also of a key that no point covers but a range does.
    rocksdb::PointLockStatus GetPointLockStatus(ColumnFamilyId family, const std::string &key) const override;

    std::uint64_t GetNumPointLocks() const override { return points_.GetNumPointLocks(); }
    ColumnFamilyIterator *GetColumnFamilyIterator() const override { return Points().GetColumnFamilyIterator(); }
    KeyIterator *GetKeyIterator(ColumnFamilyId family) const override { return Points().GetKeyIterator(family); }

    /// The State of the transaction whose tracker this is. Any thread may ask.
    State &GetState();

    /// Which one it is, of all trackers of its manager.
    std::uint64_t Number() const { return number_; }

    /// Of what a savepoint releases: the number of the savepoint. Zero: it releases no ranges.
    std::uint64_t Since() const { return since_; }

  private:
    static const Tracker &Of(const rocksdb::LockTracker &other) { return static_cast<const Tracker &>(other); }

    const rocksdb::LockTracker &Points() const {
        if (released_) return *released_;
        return points_;
    }

    LockManager &manager_;
    const std::uint64_t number_;
    std::uint64_t since_ = 0;
    /// Of what a savepoint releases: its points.
    std::unique_ptr<rocksdb::LockTracker> released_;
    rocksdb::PointLockTracker points_;
    std::atomic<State *> state_{nullptr};
};

class TrackerFactory final : public rocksdb::LockTrackerFactory {
  public:
    explicit TrackerFactory(LockManager &manager) : manager_(manager) {}
    rocksdb::LockTracker *Create() const override { return new Tracker(manager_); }

  private:
    LockManager &manager_;
};

} // namespace spanlock_rocksdb
