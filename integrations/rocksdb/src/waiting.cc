// How a request waits. It asks the lock for a while, and then looks for whom it waits: for a ring, and for transactions
// that have expired. Then it sleeps until its limit of time, or until one of those expires.

#include "manager.h"

#include "answers.h"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace spanlock_rocksdb {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// How often a request looks again where transactions may expire: one of them may come in its way later.
constexpr std::chrono::milliseconds again{20};

/// How often a request looks again where none may, as far as it knows: one may begin later. Who looks gives its place
/// up, so this is RocksDB's usual limit of a wait. Nor do others give way to one place for longer than that limit.
constexpr std::chrono::milliseconds seldom{1000};

/// How long it is at most until the lock has said who is in the way, of a request that must not wait.
/// Also when a request asks again for which the lock does not wait.
constexpr std::chrono::milliseconds moment{1};

/// Clock is CLOCK_MONOTONIC.
timespec TimeOf(std::chrono::steady_clock::time_point time) {
    const auto since = std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
    return {static_cast<time_t>(since / 1000000000), static_cast<long>(since % 1000000000)};
}

std::uint64_t NowMicros() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<microseconds>(now).count());
}

Status TimedOut() { return Status::TimedOut(Status::SubCode::kLockTimeout); }

} // namespace

bool LockManager::Rob(const std::vector<Holder> &blockers, std::uint64_t *next_expiry) {
    *next_expiry = 0;
    if (expirable_.load(std::memory_order_relaxed) == 0) return false;
    bool has_robbed = false;
    for (const Holder &blocker : blockers) {
        State *state = registry_.Of(blocker.owner);
        if (state == nullptr) continue;
        const std::lock_guard guard(state->mutex);
        if (state->transaction == nullptr || state->expires_at == 0) continue;
        if (state->expires_at > NowMicros()) {
            if (*next_expiry == 0 || state->expires_at < *next_expiry) *next_expiry = state->expires_at;
            continue;
        }
        // It lives: it cannot end without this mutex. If it commits just now it is not robbed.
        state->is_robbed |= state->transaction->IsExpired() && state->transaction->TryStealingLocks();
        if (!state->is_robbed) continue;
        state->EndWaits(); // What it is about to convert cannot be released here.
        state->ReleaseAll();
        has_robbed = true;
    }
    return has_robbed;
}

Status LockManager::StatusOf(int answer, State &state) {
    if (answer == 0) return Status::OK();
    {
        const std::lock_guard guard(state.mutex);
        if (state.is_robbed) return Status::Expired();
        if (state.is_cancelled || answer == ECANCELED) return Status::Aborted("The wait was cancelled");
    }
    switch (answer) {
    case EBUSY:
    case ETIMEDOUT:
    case EDEADLK: // Another one that shares it waits to have it alone already.
        return TimedOut();
    case EINVAL:
        return Status::Corruption("A lock is gone, or the comparator has no order");
    default:
        Expect(answer, "wait for a lock");
        return TimedOut();
    }
}

Status LockManager::WaitFor(Request &request, const Family &family, const Range &range, bool is_exclusive,
                            const Attempt &attempt) {
    PessimisticTransaction *transaction = request.transaction;
    State &state = request.state;
    waits_.fetch_add(1, std::memory_order_relaxed);

    const std::int64_t limit = transaction->GetLockTimeout();
    const Clock::time_point begun = Clock::now();
    // Longer than anybody waits, and no overflow.
    constexpr microseconds year = std::chrono::hours(24 * 365);
    const Clock::time_point never = begun + year;
    if (!request.deadline) request.deadline = limit < 0 || limit > year.count() ? never : begun + microseconds(limit);
    const Clock::time_point deadline = *request.deadline;

    // Others read it as long as the transaction is said to wait.
    const std::string key = family.Shown(range.low).slice;

    /// Leaves the table of those who wait, whatever happens.
    struct Entered {
        LockManager &manager;
        State &state;
        PessimisticTransaction *transaction;
        bool is_in = false;
        ~Entered() {
            if (!is_in) return;
            manager.waiting_.Leave(state);
            transaction->ClearWaitingTxn();
        }
    } entered{*this, state, transaction};

    const microseconds patience = std::max(options_.look_after, microseconds(1));
    Clock::time_point look = begun + patience;
    for (;;) {
        int answer = EBUSY;
        if (limit != 0) {
            const timespec until = TimeOf(std::min(deadline, look));
            answer = attempt(&until);
        }
        const Status status = StatusOf(answer, state);
        if (!status.IsTimedOut()) return status;
        // The lock does not wait in this case.
        const auto pause = [&] {
            if (answer == EDEADLK) std::this_thread::sleep_until(std::min(Clock::now() + moment, deadline));
        };
        const std::vector<Holder> blockers = family.Blockers(range, is_exclusive, state.owner);
        std::uint64_t next_expiry = 0;
        if (Rob(blockers, &next_expiry) || blockers.empty()) {
            if (limit == 0) { // Nobody holds it: somebody was about to, or to withdraw.
                const timespec until = TimeOf(deadline + moment);
                return StatusOf(attempt(&until), state);
            }
            if (Clock::now() >= deadline) return StatusOf(attempt(nullptr), state);
            pause();
            look = Clock::now() + patience;
            continue;
        }
        const Clock::time_point now = Clock::now();
        if (now >= deadline) return TimedOut();

        if (!entered.is_in) {
            waiting_.Enter(state, {&family, &range, is_exclusive, transaction->GetID()});
            entered.is_in = true;
        }
        rocksdb::RangeDeadlockPath path;
        if (transaction->IsDeadlockDetect() && waiting_.IsInRing(state, &path)) {
            deadlocks_.Add(std::move(path));
            return Status::Busy(Status::SubCode::kDeadlock);
        }
        rocksdb::autovector<rocksdb::TransactionID> ids;
        for (const Holder &blocker : blockers) {
            const State *holder = registry_.Of(blocker.owner);
            const rocksdb::TransactionID id = holder ? holder->id.load(std::memory_order_relaxed) : 0;
            if (id != 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
        }
        transaction->SetWaitingTxn(ids, family.id, &key);

        look = now + seldom;
        if (next_expiry != 0) {
            const std::uint64_t at = NowMicros();
            look = std::min(look, now + microseconds(next_expiry > at ? next_expiry - at : 0) + microseconds(100));
        }
        if (expirable_.load(std::memory_order_relaxed) != 0) look = std::min(look, now + again);
        pause();
    }
}

} // namespace spanlock_rocksdb
