// All transactions that a manager knows, and which of them wait for what.

#pragma once

#include "holds.h"

#include <rocksdb/utilities/transaction_db.h>

#include <deque>
#include <unordered_map>

namespace spanlock_rocksdb {

/// States, by the numbers of their owners. They are kept for later transactions.
class Registry {
  public:
    State &Take();
    void PutBack(State &state);

    /// Gives it another owner, when it holds nothing.
    void Renew(State &state);

    /// The State of an owner; null if it is none of this manager's.
    State *Of(std::uint32_t owner) const;

    /// What all transactions hold takes about so many bytes.
    std::size_t Bytes() const;

  private:
    mutable std::mutex mutex_;
    std::unordered_map<std::uint32_t, std::unique_ptr<State>> all_;
    std::vector<State *> free_;
};

/// The latest deadlocks.
class Deadlocks {
  public:
    explicit Deadlocks(std::size_t most) : most_(most) {}
    void Resize(std::size_t most);
    void Add(rocksdb::RangeDeadlockPath path);
    /// The latest first.
    std::vector<rocksdb::RangeDeadlockPath> All() const;

  private:
    mutable std::mutex mutex_;
    std::size_t most_;
    std::deque<rocksdb::RangeDeadlockPath> latest_;
};

/// A request that has waited for some time.
struct Waiting {
    const Family *family;
    const Range *range;
    bool is_exclusive;
    rocksdb::TransactionID transaction;
};

/// Requests that wait, and the rings of which they are part.
///
/// A search follows who holds, at that time, what a request waits for: it asks the lock. All that it visits is in this
/// table as long as the search has the mutex. A transaction that waits releases nothing until it has left the table. So
/// of a ring all is true at one time, and whoever enters last finds it.
class Waits {
  public:
    explicit Waits(const Registry &registry) : registry_(registry) {}

    void Enter(State &state, const Waiting &waiting);
    void Leave(State &state);

    /// Whether a request that waits is part of a ring. The path goes from whom it waits for to itself.
    bool IsInRing(State &state, rocksdb::RangeDeadlockPath *path) const;

  private:
    const Registry &registry_;
    mutable std::mutex mutex_;
    std::unordered_map<State *, Waiting> all_;
};

} // namespace spanlock_rocksdb
