#include "manager.h"

#include "answers.h"

#include <algorithm>
#include <cinttypes>

namespace spanlock_rocksdb {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Transaction;

namespace {

/// A transaction's database, which it shows to classes derived from it.
class Database : public PessimisticTransaction {
  public:
    static rocksdb::DB *Of(PessimisticTransaction *transaction) { return transaction->*(&Database::db_); }
};

rocksdb::SequenceNumber LatestOf(PessimisticTransaction *transaction) {
    return Database::Of(transaction)->GetLatestSequenceNumber();
}

} // namespace

LockManager::LockManager(const Options &options) : options_(options), deadlocks_(options.max_num_deadlocks) {}

void LockManager::AddColumnFamily(const ColumnFamilyHandle *handle) {
    auto family = std::make_shared<Family>(handle->GetID(), handle->GetComparator(), options_.max_num_locks);
    const std::unique_lock lock(families_mutex_);
    families_.insert_or_assign(handle->GetID(), std::move(family));
    families_changed_.fetch_add(1, std::memory_order_release);
}

void LockManager::RemoveColumnFamily(const ColumnFamilyHandle *handle) {
    const std::unique_lock lock(families_mutex_);
    families_.erase(handle->GetID()); // Transactions that hold something there keep it.
    families_changed_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<Family> LockManager::FamilyOf(ColumnFamilyId id) const {
    const std::shared_lock lock(families_mutex_);
    const auto found = families_.find(id);
    return found == families_.end() ? nullptr : found->second;
}

Holds *LockManager::HoldsOf(State &state, ColumnFamilyId id) {
    const std::uint64_t changed = families_changed_.load(std::memory_order_acquire);
    if (state.families_seen != changed) {
        const auto is_old = [&](const Holds &holds) {
            return holds.pieces.empty() && FamilyOf(holds.family->id) != holds.family;
        };
        state.held.erase(std::remove_if(state.held.begin(), state.held.end(), is_old), state.held.end());
        state.families_seen = changed;
    }
    if (Holds *holds = state.Find(id)) return holds;
    std::shared_ptr<Family> family = FamilyOf(id);
    if (family == nullptr) return nullptr;
    state.held.emplace_back(std::move(family));
    return &state.held.back();
}

Tracker &LockManager::TrackerOf(PessimisticTransaction *transaction) {
    return static_cast<Tracker &>(transaction->GetTrackedLocks());
}

Status LockManager::TryLock(PessimisticTransaction *transaction, ColumnFamilyId family, const std::string &key, Env *,
                            bool exclusive) {
    Request request{transaction, TrackerOf(transaction).GetState(), exclusive, true};
    Holds *holds;
    const Status begun = Begin(request, family, &holds);
    if (holds == nullptr) return begun;
    request.range = holds->family->PointOf(key, &request.texts.low);
    return Gain(request, *holds);
}

Status LockManager::TryLock(PessimisticTransaction *transaction, ColumnFamilyId family, const Endpoint &start,
                            const Endpoint &end, Env *, bool exclusive) {
    Request request{transaction, TrackerOf(transaction).GetState(), exclusive, false};
    Holds *holds;
    const Status begun = Begin(request, family, &holds);
    if (holds == nullptr) return begun;
    if (!holds->family->RangeOf(start, end, &request.texts, &request.range))
        return Status::InvalidArgument("The range ends before it starts");
    return Gain(request, *holds);
}

Status LockManager::LockRange(Transaction *transaction, ColumnFamilyHandle *handle, const Endpoint &start,
                              const Endpoint &end, Mode mode) {
    auto *pessimistic = static_cast<PessimisticTransaction *>(transaction);
    const ColumnFamilyId family = handle == nullptr ? 0 : handle->GetID();
    return TryLock(pessimistic, family, start, end, nullptr, mode == Mode::Exclusive);
}

Status LockManager::Begin(Request &request, ColumnFamilyId family, Holds **holds) {
    State &state = request.state;
    *holds = nullptr;
    if (state.transaction == nullptr) {
        state.is_in_use.store(true, std::memory_order_relaxed);
        state.transaction = request.transaction;
        state.id.store(request.transaction->GetID(), std::memory_order_relaxed);
        state.expires_at = request.transaction->GetExpirationTime();
        if (state.expires_at != 0) expirable_.fetch_add(1, std::memory_order_relaxed);
    }
    if (state.is_robbed) return Status::Expired();
    *holds = HoldsOf(state, family);
    if (*holds == nullptr) return Status::InvalidArgument("Column family id not found: " + std::to_string(family));
    return Status::OK();
}

Status LockManager::Gain(Request &request, Holds &holds) {
    State &state = request.state;
    auto piece = holds.FirstBehind(request.range.low);
    Status status;
    if (holds.BeginsBefore(piece, request.range.high)) {
        status = GainBeside(request, holds);
    } else {
        status = HasRoom(*holds.family);
        if (status.ok()) status = GainPart(request, holds, request.range, &piece);
        if (status.ok() && !state.is_robbed) {
            holds.family->Count(1);
            Note(request, piece);
            if (!request.is_key) NoteRange(request, *holds.family);
        }
    }
    if (!state.is_robbed) return status;
    state.ReleaseAll(); // What was gained since, and what this thread was about to convert.
    return Status::Expired();
}

Status LockManager::GainBeside(Request &request, Holds &holds) {
    State &state = request.state;
    const Range &range = request.range;
    // A point is noted in any case: where a range holds it, RocksDB asks only if it has tracked the key before.
    if (!request.is_key && holds.IsCovered(range, request.is_exclusive)) return Status::OK();
    const auto named = request.is_key ? holds.FindPoint(range) : holds.pieces.end();
    const bool is_known = named != holds.pieces.end() && named->second.IsNamed(named->first, range.low.key);
    if (!is_known) {
        const Status room = HasRoom(*holds.family);
        if (!room.ok()) return room;
    }
    const Status status = GainParts(request, holds);
    if (state.is_robbed) return status;
    auto piece = holds.FirstBehind(range.low);
    if (!status.ok()) {
        // What was gained goes again: nobody has asked for it.
        while (holds.BeginsBefore(piece, range.high)) {
            const auto next = std::next(piece);
            state.Relax(holds, piece);
            piece = next;
        }
        return status;
    }
    if (!is_known) holds.family->Count(1);
    if (request.is_key) {
        Note(request, piece);
        state.Relax(holds, piece);
        return status;
    }
    for (; holds.BeginsBefore(piece, range.high); ++piece) Note(request, piece);
    NoteRange(request, *holds.family);
    return status;
}

void LockManager::Note(const Request &request, Holds::Pieces::iterator piece) {
    if (request.is_key)
        piece->second.Name(piece->first, request.range.low.key, request.is_exclusive);
    else
        ++(request.is_exclusive ? piece->second.alone : piece->second.shared);
}

void LockManager::NoteRange(const Request &request, const Family &family) {
    const std::uint64_t trackers = trackers_made_.load(std::memory_order_relaxed);
    request.state.ranges.Add(family.id, request.range, request.is_exclusive, trackers);
}

Status LockManager::GainParts(Request &request, Holds &holds) {
    State &state = request.state;
    const Family &family = *holds.family;
    state.CutAt(holds, request.range.low);
    state.CutAt(holds, request.range.high);
    // Pieces do not outlast a wait, so it has keys of its own.
    OwnRange part;
    part.high = request.range.low;
    Status status;
    while (status.ok() && !state.is_robbed && family.Compare(part.high, request.range.high) < 0) {
        part.low = part.high;
        auto piece = holds.FirstBehind(part.low);
        const bool is_there = holds.BeginsBefore(piece, request.range.high);
        if (is_there && family.Compare(piece->first, part.low) <= 0) {
            part.high = piece->second.High(piece->first);
            if (request.is_exclusive && !piece->second.is_exclusive)
                status = Upgrade(request, holds, part, piece->second.token);
        } else {
            part.high = is_there ? End(piece->first) : request.range.high;
            status = GainPart(request, holds, part, &piece);
        }
    }
    return status;
}

Status LockManager::HasRoom(const Family &family) const {
    const std::size_t most = max_memory_.load(std::memory_order_relaxed);
    const bool is_full = family.IsFull() || (most != SIZE_MAX && registry_.Bytes() >= most);
    return is_full ? Status::Busy(Status::SubCode::kLockLimit) : Status::OK();
}

Status LockManager::GainPart(Request &request, Holds &holds, const Range &gap, Holds::Pieces::iterator *next) {
    State &state = request.state;
    const Family &family = *holds.family;
    const spanlock_key_range raw = gap.Raw();
    const std::uint32_t mode = request.is_exclusive ? SPANLOCK_EXCLUSIVE : SPANLOCK_SHARED;
    spanlock_token token{};
    if (spanlock_key_lock_try_acquire(family.lock, state.owner, &raw, mode, &token) != 0) {
        request.guard.unlock();
        const Attempt attempt = [&](const timespec *until) {
            return until == nullptr
                       ? spanlock_key_lock_try_acquire(family.lock, state.owner, &raw, mode, &token)
                       : spanlock_key_lock_timed_acquire(family.lock, state.owner, &raw, mode, CLOCK_MONOTONIC, until,
                                                         &token);
        };
        const Status status = WaitFor(request, family, gap, request.is_exclusive, attempt);
        request.guard.lock();
        if (!status.ok()) return status;
        *next = holds.FirstBehind(gap.low);
    }
    *next = state.Insert(holds, *next, gap, token, request.is_exclusive, LatestOf(request.transaction));
    return Status::OK();
}

Status LockManager::Upgrade(Request &request, Holds &holds, const Range &range, spanlock_token token) {
    State &state = request.state;
    const Family &family = *holds.family;
    const spanlock_key_range raw = range.Raw();
    constexpr std::uint32_t mode = SPANLOCK_EXCLUSIVE;
    if (spanlock_key_lock_try_convert(family.lock, state.owner, &token, &raw, mode) != 0) {
        request.guard.unlock();
        const Attempt attempt = [&](const timespec *until) {
            return until == nullptr
                       ? spanlock_key_lock_try_convert(family.lock, state.owner, &token, &raw, mode)
                       : spanlock_key_lock_timed_convert(family.lock, state.owner, &token, &raw, mode, CLOCK_MONOTONIC,
                                                         until);
        };
        const Status status = WaitFor(request, family, range, true, attempt);
        request.guard.lock();
        if (!status.ok()) return status;
    }
    const auto piece = holds.pieces.find(range.low);
    if (piece != holds.pieces.end()) piece->second.is_exclusive = true;
    return Status::OK();
}

void LockManager::Finish(State &state) {
    if (!state.is_in_use.load(std::memory_order_relaxed)) return; // Only its transaction uses it.
    const std::lock_guard guard(state.mutex);
    state.is_in_use.store(false, std::memory_order_relaxed);
    if (state.transaction != nullptr) {
        state.ReleaseAll();
        if (state.expires_at != 0) expirable_.fetch_sub(1, std::memory_order_relaxed);
        state.transaction = nullptr;
        state.id.store(0, std::memory_order_relaxed);
    }
    state.is_robbed = state.is_cancelled = false;
    if (!state.is_worn) return;
    state.is_worn = false;
    registry_.Renew(state);
}

void LockManager::PutBack(State &state) {
    Finish(state);
    registry_.PutBack(state);
}

void LockManager::UnLock(PessimisticTransaction *transaction, const LockTracker &tracker, Env *) {
    Tracker &whole = TrackerOf(transaction);
    State &state = whole.GetState();
    if (&tracker == &whole) return Finish(state);
    const std::lock_guard guard(state.mutex);
    const auto &released = static_cast<const Tracker &>(tracker);
    const std::unique_ptr<LockTracker::ColumnFamilyIterator> families(released.GetColumnFamilyIterator());
    while (families->HasNext()) {
        const ColumnFamilyId family = families->Next();
        const std::unique_ptr<LockTracker::KeyIterator> keys(released.GetKeyIterator(family));
        while (keys->HasNext()) {
            const std::string &key = keys->Next();
            if (Holds *holds = state.Find(family)) state.ReleasePoint(*holds, key);
        }
    }
    while (released.Since() != 0 && !state.ranges.IsEmpty() && state.ranges.Last().trackers >= released.Since()) {
        RangeNote &note = state.ranges.Last();
        if (Holds *holds = state.Find(note.family)) state.ReleaseRange(*holds, note.range, note.is_exclusive);
        state.ranges.Remove(&note);
    }
}

void LockManager::UnLock(PessimisticTransaction *transaction, ColumnFamilyId family, const std::string &key, Env *) {
    State &state = TrackerOf(transaction).GetState();
    const std::lock_guard guard(state.mutex);
    if (Holds *holds = state.Find(family)) state.ReleasePoint(*holds, key);
}

void LockManager::UnLock(PessimisticTransaction *transaction, ColumnFamilyId family, const Endpoint &start,
                         const Endpoint &end, Env *) {
    State &state = TrackerOf(transaction).GetState();
    const std::lock_guard guard(state.mutex);
    Holds *holds = state.Find(family);
    Texts texts;
    Range range;
    if (holds == nullptr || !holds->family->RangeOf(start, end, &texts, &range)) return;
    RangeNote *last = nullptr;
    for (RangeNote &note : state.ranges) {
        const bool is_it = note.family == family && holds->family->Compare(note.range.low, range.low) == 0 &&
                           holds->family->Compare(note.range.high, range.high) == 0;
        if (is_it) last = &note;
    }
    if (last == nullptr) return;
    state.ReleaseRange(*holds, range, last->is_exclusive);
    state.ranges.Remove(last);
}

} // namespace spanlock_rocksdb
