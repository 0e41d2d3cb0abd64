// What the tests share: a database with one of three lock managers, transactions, and checks that say where they fail.

#pragma once

#include <spanlock/rocksdb.h>

#include <rocksdb/comparator.h>
#include <rocksdb/options.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace harness {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Endpoint;
using rocksdb::Status;
using rocksdb::Transaction;
using rocksdb::TransactionOptions;
using spanlock_rocksdb::Mode;

/// A check that has failed.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void Fail(int line, const std::string &what) {
    throw Failure("line " + std::to_string(line) + ": " + what);
}

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) harness::Fail(__LINE__, "not so: " #condition);                                             \
    } while (0)

#define ANSWERS(is_so, call)                                                                                          \
    do {                                                                                                              \
        const rocksdb::Status answered = (call);                                                                      \
        if (!(answered.is_so())) harness::Fail(__LINE__, #call " is not " #is_so ": " + answered.ToString());         \
    } while (0)

#define GOOD(call) ANSWERS(ok, call)

inline bool IsDeadlock(const Status &status) {
    return status.IsBusy() && status.subcode() == Status::SubCode::kDeadlock;
}
inline bool IsLimit(const Status &status) {
    return status.IsBusy() && status.subcode() == Status::SubCode::kLockLimit;
}

/// Whose lock manager a database has.
enum class Kind { Spanlock, Ranges, Points };

inline Kind KindOf(const std::string &name) {
    if (name == "spanlock") return Kind::Spanlock;
    if (name == "ranges") return Kind::Ranges;
    if (name == "points") return Kind::Points;
    throw std::invalid_argument("not spanlock, ranges or points: " + name);
}

/// A folder of its own, which goes with it.
class Folder {
  public:
    Folder() {
        const char *base = std::getenv("TMPDIR");
        std::string pattern = std::string(base ? base : "/tmp") + "/spanlock-rocksdb-XXXXXX";
        if (mkdtemp(pattern.data()) == nullptr) throw Failure("no folder can be made");
        path = pattern;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    std::string path;
};

using Txn = std::unique_ptr<Transaction>;

struct Database {
    explicit Database(Kind kind, spanlock_rocksdb::Options options = {}, rocksdb::TransactionDBOptions given = {},
                      const rocksdb::Comparator *comparator = rocksdb::BytewiseComparator())
        : kind(kind), own(options), locking(given) {
        database.create_if_missing = true;
        database.comparator = comparator;
        locking.transaction_lock_timeout = 50;
        locking.default_lock_timeout = 50;
        Open();
    }
    ~Database() { Close(); }

    void Open() {
        if (kind == Kind::Spanlock) {
            spanlock = spanlock_rocksdb::NewSpanlockManager(own);
            if (spanlock == nullptr) throw Failure("there is no manager");
            ranges = spanlock;
        } else if (kind == Kind::Ranges) {
            ranges.reset(rocksdb::NewRangeLockManager(nullptr));
        }
        locking.lock_mgr_handle = ranges;
        rocksdb::TransactionDB *opened = nullptr;
        const Status status = rocksdb::TransactionDB::Open(database, locking, folder.path, &opened);
        if (!status.ok()) throw Failure("the database is not opened: " + status.ToString());
        db.reset(opened);
    }
    void Close() {
        db.reset();
        locking.lock_mgr_handle.reset();
        ranges.reset();
        spanlock.reset();
    }

    ColumnFamilyHandle *Default() const { return db->DefaultColumnFamily(); }

    /// A transaction with a limit of time for each lock, which may look for deadlocks.
    Txn Begin(std::int64_t timeout = 50, bool detects = false, std::int64_t expiration = -1) const {
        TransactionOptions options;
        options.lock_timeout = timeout;
        options.deadlock_detect = detects;
        options.expiration = expiration;
        return Txn(db->BeginTransaction({}, options));
    }

    /// Locks a range shared, where the manager can.
    Status Share(Transaction *transaction, const Endpoint &start, const Endpoint &end) const {
        if (spanlock) return spanlock->LockRange(transaction, nullptr, start, end, Mode::Shared);
        return transaction->GetRangeLock(Default(), start, end);
    }

    const Kind kind;
    Folder folder;
    spanlock_rocksdb::Options own;
    rocksdb::TransactionDBOptions locking;
    rocksdb::Options database;
    std::shared_ptr<spanlock_rocksdb::Manager> spanlock;
    std::shared_ptr<rocksdb::RangeLockManagerHandle> ranges;
    std::unique_ptr<rocksdb::TransactionDB> db;
};

/// Locks a key. OK also if the database does not have it.
inline Status LockKey(Transaction *transaction, const std::string &key, bool exclusive = true,
                      ColumnFamilyHandle *family = nullptr) {
    std::string value;
    const Status status = family ? transaction->GetForUpdate({}, family, key, &value, exclusive)
                                 : transaction->GetForUpdate({}, key, &value, exclusive);
    return status.IsNotFound() ? Status::OK() : status;
}

inline Status LockRange(Transaction *transaction, const std::string &start, const std::string &end) {
    return transaction->GetRangeLock(nullptr, Endpoint(start), Endpoint(end));
}

inline void Sleep(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

/// Waits until a transaction waits for a lock.
inline void AwaitWait(Transaction *transaction) {
    for (int round = 0; round < 2000; ++round) {
        std::uint32_t family;
        std::string key;
        if (!transaction->GetWaitingTxns(&family, &key).empty()) return;
        Sleep(1);
    }
    throw Failure("a transaction does not wait");
}

/// A thread that calls one function, whose Status is asked for at its end.
class Call {
  public:
    template <typename F> explicit Call(F f) : thread_([this, f] { status_ = f(); }) {}
    ~Call() {
        if (thread_.joinable()) thread_.join();
    }
    Status Answer() {
        thread_.join();
        return status_;
    }

  private:
    Status status_;
    std::thread thread_;
};

} // namespace harness
