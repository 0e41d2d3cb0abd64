#include "tracker.h"

#include "manager.h"

namespace spanlock_rocksdb {

Tracker::Tracker(LockManager &manager) : manager_(manager), number_(manager.NextTracker()) {}

Tracker::~Tracker() {
    if (State *state = state_.load(std::memory_order_acquire)) manager_.PutBack(*state);
}

rocksdb::LockTracker *Tracker::GetTrackedLocksSinceSavePoint(const rocksdb::LockTracker &savepoint) const {
    auto *released = new Tracker(manager_);
    released->since_ = Of(savepoint).number_;
    released->released_.reset(points_.GetTrackedLocksSinceSavePoint(Of(savepoint).points_));
    return released;
}

rocksdb::PointLockStatus Tracker::GetPointLockStatus(ColumnFamilyId family, const std::string &key) const {
    const rocksdb::PointLockStatus status = points_.GetPointLockStatus(family, key);
    State *state = state_.load(std::memory_order_acquire);
    if (status.locked || state == nullptr || state->ranges.IsEmpty()) return status;
    const std::lock_guard lock(state->mutex);
    Holds *holds = state->Find(family);
    if (holds == nullptr) return status;
    std::string text;
    const Range point = holds->family->PointOf(key, &text);
    if (!holds->IsCovered(point, false)) return status;
    const Piece &piece = holds->FirstBehind(point.low)->second;
    return {true, piece.IsCovered(true), piece.since};
}

State &Tracker::GetState() {
    if (State *state = state_.load(std::memory_order_acquire)) return *state;
    State &fresh = manager_.TakeState();
    State *before = nullptr;
    if (state_.compare_exchange_strong(before, &fresh, std::memory_order_acq_rel)) return fresh;
    manager_.PutBack(fresh);
    return *before;
}

} // namespace spanlock_rocksdb
