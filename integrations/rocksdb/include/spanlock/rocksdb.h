// A lock manager for RocksDB's TransactionDB, over Spanlock's locks for ranges of keys. docs/guide/rocksdb.md is the
// users' document.
//
//     rocksdb::TransactionDBOptions options;
//     options.lock_mgr_handle = spanlock_rocksdb::NewSpanlockManager();
//     rocksdb::TransactionDB::Open(…, options, …);
//
// Only with the version of RocksDB for which this library was built: see NewSpanlockManager.

#ifndef SPANLOCK_ROCKSDB_H
#define SPANLOCK_ROCKSDB_H

#include <rocksdb/utilities/transaction_db.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace spanlock_rocksdb {

/// How a range is locked.
enum class Mode {
    Shared,    ///< Together with other transactions that share.
    Exclusive, ///< Alone.
};

/// How a lock manager is made.
struct Options {
    /// How many locks all transactions together may hold in a column family. A request for more is answered with
    /// Status::Busy and the subcode kLockLimit. Not positive: any number.
    std::int64_t max_num_locks = -1;

    /// How many of the latest deadlocks are kept.
    std::uint32_t max_num_deadlocks = rocksdb::kInitialMaxDeadlocks;

    /// After how much waiting a request looks for whom it waits: for deadlocks, for transactions that have expired, and
    /// for Transaction::GetWaitingTxns. At least a microsecond.
    std::chrono::microseconds look_after{1000};
};

/// A lock manager, and what can be asked of it beside TransactionDB. What the base class says of ranges, deadlocks and
/// counters holds here, but locks are never escalated: the number of escalations is zero, a barrier is ignored, and a
/// request that would take more memory than it may is answered with Status::Busy and the subcode kLockLimit.
class Manager : public rocksdb::RangeLockManagerHandle {
  public:
    /// Locks a range for a transaction in either mode, as Transaction::GetRangeLock does exclusively. A column family
    /// that is null is the default one.
    virtual rocksdb::Status LockRange(rocksdb::Transaction *transaction, rocksdb::ColumnFamilyHandle *family,
                                      const rocksdb::Endpoint &start, const rocksdb::Endpoint &end, Mode mode) = 0;

    /// Ends the transaction's wait for a lock, if there is one, and its later ones: they are answered with
    /// Status::Aborted, until it is committed or rolled back. Any thread may call this while the transaction lives.
    virtual void Cancel(rocksdb::Transaction *transaction) = 0;
};

/// Makes a lock manager, for one database at a time.
///
/// Null, and a sentence on the standard error output, if the process runs with another version of RocksDB than the one
/// for which this library was built, or with another ABI of libspanlock.
std::shared_ptr<Manager> NewSpanlockManager(const Options &options = Options());

} // namespace spanlock_rocksdb

#endif
