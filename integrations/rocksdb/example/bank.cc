// A bank over RocksDB's TransactionDB, with range locks: transfers between accounts, sums of a range of accounts, and
// audits of all, on eight threads. Some transfers are killed in the middle, some wait in a ring and are refused.
//
//     bank [SECONDS]

#include <spanlock/rocksdb.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using rocksdb::Endpoint;
using rocksdb::Status;
using rocksdb::Transaction;
using spanlock_rocksdb::Mode;

namespace {

constexpr int accounts = 64;
constexpr long each = 100;

std::string Account(int number) {
    char key[16];
    std::snprintf(key, sizeof key, "account/%05d", number);
    return key;
}

[[noreturn]] void Die(const std::string &what) {
    std::cerr << "bank: " << what << '\n';
    std::_Exit(1);
}

/// A transaction that was refused rolls back, and may try again.
bool IsRefusal(const Status &status) { return status.IsBusy() || status.IsTimedOut() || status.IsAborted(); }

void Check(const Status &status) {
    if (!status.ok() && !IsRefusal(status)) Die(status.ToString());
}

class Bank {
  public:
    explicit Bank(const std::string &folder) : locks_(spanlock_rocksdb::NewSpanlockManager()) {
        if (locks_ == nullptr) std::exit(1); // It has said why.
        rocksdb::Options options;
        options.create_if_missing = true;
        rocksdb::TransactionDBOptions locking;
        locking.lock_mgr_handle = locks_;
        rocksdb::TransactionDB *opened = nullptr;
        Check(rocksdb::TransactionDB::Open(options, locking, folder, &opened));
        database_.reset(opened);
        for (int number = 0; number < accounts; ++number)
            Check(database_->Put({}, Account(number), std::to_string(each)));
    }

    std::unique_ptr<Transaction> Begin() {
        rocksdb::TransactionOptions options;
        options.deadlock_detect = true;
        return std::unique_ptr<Transaction>(database_->BeginTransaction({}, options));
    }

    /// Moves some money. It locks one account after the other, so two transfers may wait for each other.
    Status Transfer(Transaction *transaction, int from, int to, long amount) {
        long here = 0, there = 0;
        Status status = Read(transaction, from, &here);
        if (status.ok()) status = Read(transaction, to, &there);
        if (!status.ok()) return status;
        if (here < amount) return Status::OK();
        status = transaction->Put(Account(from), std::to_string(here - amount));
        if (status.ok()) status = transaction->Put(Account(to), std::to_string(there + amount));
        return status;
    }

    /// What is on the accounts of a range, which nobody changes meanwhile. Others may sum it up at the same time.
    Status Sum(Transaction *transaction, int first, int last, long *sum) {
        const std::string start = Account(first), end = Account(last);
        const Status status =
            locks_->LockRange(transaction, nullptr, Endpoint(start), Endpoint(end), Mode::Shared);
        if (!status.ok()) return status;
        *sum = 0;
        const std::unique_ptr<rocksdb::Iterator> each_account(transaction->GetIterator({}));
        for (each_account->Seek(start); each_account->Valid() && each_account->key().compare(end) <= 0;
             each_account->Next())
            *sum += std::stol(each_account->value().ToString());
        return each_account->status();
    }

    /// The transaction's waits end, now and later.
    void Kill(Transaction *transaction) { locks_->Cancel(transaction); }

    std::size_t Held() { return locks_->GetRangeLockStatusData().size(); }
    std::size_t Deadlocks() { return locks_->GetRangeDeadlockInfoBuffer().size(); }

  private:
    Status Read(Transaction *transaction, int number, long *amount) {
        std::string value;
        const Status status = transaction->GetForUpdate({}, Account(number), &value);
        if (status.ok()) *amount = std::stol(value);
        return status;
    }

    std::shared_ptr<spanlock_rocksdb::Manager> locks_;
    std::unique_ptr<rocksdb::TransactionDB> database_;
};

/// A transaction that another thread may kill.
struct Slot {
    std::mutex mutex;
    Transaction *transaction = nullptr;
};

} // namespace

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::stod(argv[1]) : 2;
    char folder[] = "/tmp/spanlock-bank-XXXXXX";
    if (mkdtemp(folder) == nullptr) Die("no folder can be made");
    constexpr int threads = 8;
    std::atomic<bool> stops{false};
    std::atomic<long> transfers{0}, sums{0}, audits{0}, refused{0}, killed{0};
    {
        Bank bank(folder);
        std::vector<Slot> slots(threads);
        const auto work = [&](int number) {
            std::mt19937_64 random(number + 1);
            while (!stops) {
                const auto transaction = bank.Begin();
                {
                    const std::lock_guard lock(slots[number].mutex);
                    slots[number].transaction = transaction.get();
                }
                const int first = static_cast<int>(random() % accounts), second = static_cast<int>(random() % accounts);
                const auto what = random() % 100;
                long sum = 0;
                Status status;
                if (what < 80 && first != second) {
                    status = bank.Transfer(transaction.get(), first, second, static_cast<long>(random() % 20));
                } else if (what < 95) {
                    status = bank.Sum(transaction.get(), std::min(first, second), std::max(first, second), &sum);
                } else {
                    status = bank.Sum(transaction.get(), 0, accounts - 1, &sum);
                    if (status.ok() && sum != accounts * each) Die("an audit finds " + std::to_string(sum));
                }
                Check(status);
                if (random() % 100 == 0) { // Somebody has lost patience with a transaction.
                    Slot &other = slots[random() % threads];
                    const std::unique_lock lock(other.mutex, std::try_to_lock);
                    if (lock && other.transaction) bank.Kill(other.transaction);
                }
                {
                    const std::lock_guard lock(slots[number].mutex);
                    slots[number].transaction = nullptr;
                }
                if (status.ok()) {
                    Check(transaction->Commit());
                    ++(what < 80 ? transfers : what < 95 ? sums : audits);
                } else {
                    Check(transaction->Rollback());
                    ++(status.IsAborted() ? killed : refused);
                }
            }
        };
        std::vector<std::thread> crew;
        for (int number = 0; number < threads; ++number) crew.emplace_back(work, number);
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        stops = true;
        for (auto &thread : crew) thread.join();
        const auto audit = bank.Begin();
        long sum = 0;
        Check(bank.Sum(audit.get(), 0, accounts - 1, &sum));
        if (sum != accounts * each) Die("the last audit finds " + std::to_string(sum));
        Check(audit->Commit());
        if (bank.Held() != 0) Die("locks are left");
        std::cout << "bank: " << transfers << " transfers, " << sums << " sums, " << audits << " audits, " << refused
                  << " refused, " << killed << " killed; " << bank.Deadlocks() << " deadlocks are kept\n";
    }
    std::filesystem::remove_all(folder);
    return 0;
}
