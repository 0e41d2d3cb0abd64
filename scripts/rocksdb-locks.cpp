// Locks keys, or ranges of keys, by RocksDB's lock managers: see scripts/rocksdb-locks.

#include <rocksdb/utilities/transaction_db.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using rocksdb::Status;

namespace {

constexpr std::uint64_t keys = 1 << 16;
constexpr std::uint64_t scanned = 16;

void check(const Status &status) {
    if (!status.ok() && !status.IsBusy() && !status.IsTimedOut() && !status.IsNotFound()) {
        std::cerr << "error: " << status.ToString() << '\n';
        std::exit(1);
    }
}

// As in `bench keys`: letters, and a number in decimal digits.
std::string key_of(std::size_t length, std::uint64_t number) {
    std::string key(length, 'u');
    for (std::size_t digit = 0; digit < 12; ++digit) {
        key[length - 1 - digit] = static_cast<char>('0' + number % 10);
        number /= 10;
    }
    return key;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 7) {
        std::cerr << "usage: program FOLDER own|points|apart|scans LENGTH WRITES THREADS SECONDS\n";
        return 2;
    }
    const std::string folder = argv[1], access = argv[2];
    const std::size_t length = std::stoul(argv[3]);
    const unsigned writes = std::stoul(argv[4]), threads = std::stoul(argv[5]);
    const double seconds = std::stod(argv[6]);
    const bool is_scan = access == "apart" || access == "scans";
    const bool is_disjoint = access == "own" || access == "apart";

    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::TransactionDBOptions locks;
    std::shared_ptr<rocksdb::RangeLockManagerHandle> ranges;
    if (is_scan) {
        ranges.reset(rocksdb::NewRangeLockManager(nullptr));
        locks.lock_mgr_handle = ranges;
    }
    rocksdb::TransactionDB *opened = nullptr;
    check(rocksdb::TransactionDB::Open(options, locks, folder, &opened));
    const std::unique_ptr<rocksdb::TransactionDB> database(opened);
    auto *family = database->DefaultColumnFamily();

    std::atomic<bool> measures{false}, stops{false};
    std::atomic<std::uint64_t> all{0};
    std::vector<std::thread> crew;
    for (unsigned number = 0; number < threads; ++number) {
        crew.emplace_back([&, number] {
            const std::uint64_t part = is_disjoint ? keys / threads : keys;
            const std::uint64_t first = is_disjoint ? part * number : 0;
            std::mt19937_64 random(number + 1);
            rocksdb::ReadOptions read;
            std::string value;
            std::uint64_t count = 0;
            rocksdb::Transaction *transaction = nullptr;
            while (!stops.load(std::memory_order_relaxed)) {
                transaction = database->BeginTransaction({}, {}, transaction);
                const std::uint64_t at = random() % part;
                const bool alone = random() % 100 < writes;
                Status status;
                if (is_scan) {
                    const std::uint64_t count = std::min(1 + random() % scanned, part - at);
                    // Both ends belong to it.
                    const std::string last = key_of(length, first + at + count - 1);
                    status = transaction->GetRangeLock(
                        family, rocksdb::Endpoint(key_of(length, first + at)), rocksdb::Endpoint(last));
                } else {
                    status = transaction->GetForUpdate(read, key_of(length, first + at), &value, alone);
                }
                check(status);
                check(transaction->Rollback());
                count += status.ok() || status.IsNotFound();
                if (!measures.load(std::memory_order_relaxed)) count = 0;
            }
            delete transaction;
            all += count;
        });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 2));
    measures = true;
    const auto begun = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stops = true;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    for (auto &thread : crew) thread.join();
    std::cout << (is_scan ? "rocksdb-ranges" : "rocksdb-points") << "  " << access << "  " << length << " bytes  "
              << writes << " % writes  " << threads << " threads  " << static_cast<double>(all) / took.count() / 1e6
              << " M/s\n";
    return 0;
}
