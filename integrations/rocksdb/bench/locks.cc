// Measures RocksDB's lock managers and this one side by side: see scripts/rocksdb-locks.

#include "../tests/harness.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <random>

using namespace harness;

namespace {

constexpr std::uint64_t keys = 1 << 16;
constexpr std::uint64_t scanned = 16;

/// Letters, and a number in decimal digits, as in `spanlock bench keys`.
std::string KeyOf(std::size_t length, std::uint64_t number, char letter = 'u') {
    std::string key(length, letter);
    for (std::size_t digit = 0; digit < 12; ++digit) {
        key[length - 1 - digit] = static_cast<char>('0' + number % 10);
        number /= 10;
    }
    return key;
}

/// What is locked.
struct Access {
    const char *name;
    bool is_range;
    bool is_disjoint;
    bool is_zipfian;
    /// Percent of requests that are exclusive.
    unsigned writes;
};

const Access accesses[] = {
    {"points, each thread its own", false, true, false, 100},
    {"points, zipfian, 5 % written", false, false, true, 5},
    {"ranges, each thread its own", true, true, false, 100},
    {"ranges anywhere", true, false, false, 100},
    {"ranges anywhere, 5 % written", true, false, false, 5},
};

/// Numbers that are the more frequent the smaller they are, with exponent .99.
class Zipfian {
  public:
    Zipfian() {
        double sum = 0;
        for (std::uint64_t number = 0; number < keys; ++number) {
            sum += 1 / std::pow(static_cast<double>(number + 1), .99);
            sums_.push_back(sum);
        }
    }
    std::uint64_t Next(std::mt19937_64 &random) const {
        const double at = std::uniform_real_distribution<double>(0, sums_.back())(random);
        const auto found = std::lower_bound(sums_.begin(), sums_.end(), at);
        // Frequent keys are not neighbours.
        return static_cast<std::uint64_t>(found - sums_.begin()) * 40503 % keys;
    }

  private:
    std::vector<double> sums_;
};

/// Millions of transactions per second that lock one key or one range each, and roll back.
double Measure(const Database &at, const Access &access, const Zipfian &zipfian, std::size_t length,
               unsigned threads, double seconds) {
    std::atomic<bool> measures{false}, stops{false};
    std::atomic<std::uint64_t> all{0};
    std::vector<std::thread> crew;
    for (unsigned number = 0; number < threads; ++number) {
        crew.emplace_back([&, number] {
            const std::uint64_t part = access.is_disjoint ? keys / threads : keys;
            const std::uint64_t first = access.is_disjoint ? part * number : 0;
            std::mt19937_64 random(number + 1);
            rocksdb::TransactionOptions options;
            options.lock_timeout = 1000;
            Transaction *transaction = nullptr;
            std::uint64_t count = 0;
            while (!stops.load(std::memory_order_relaxed)) {
                transaction = at.db->BeginTransaction({}, options, transaction);
                const std::uint64_t key = access.is_zipfian ? zipfian.Next(random) : random() % part;
                const bool alone = random() % 100 < access.writes;
                Status status;
                if (access.is_range) {
                    const std::uint64_t size = std::min(1 + random() % scanned, part - key);
                    const std::string start = KeyOf(length, first + key), end = KeyOf(length, first + key + size - 1);
                    status = alone ? transaction->GetRangeLock(nullptr, Endpoint(start), Endpoint(end))
                                   : at.Share(transaction, Endpoint(start), Endpoint(end));
                } else {
                    status = LockKey(transaction, KeyOf(length, first + key), alone);
                }
                count += status.ok();
                if (!status.ok() && !status.IsTimedOut() && !status.IsBusy()) std::abort();
                if (!transaction->Rollback().ok()) std::abort();
                if (!measures.load(std::memory_order_relaxed)) count = 0;
            }
            delete transaction;
            all += count;
        });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 4));
    measures = true;
    const auto begun = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stops = true;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    for (auto &thread : crew) thread.join();
    return static_cast<double>(all) / took.count() / 1e6;
}

double Median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

std::vector<std::uint64_t> Numbers(const char *list) {
    std::vector<std::uint64_t> numbers;
    std::istringstream words(list);
    for (std::uint64_t number; words >> number;) numbers.push_back(number);
    return numbers;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 6) {
        std::cerr << "usage: locks THREADS LENGTHS HELD SECONDS ROUNDS   (each but the last two a list in quotes)\n";
        return 2;
    }
    const auto threads = Numbers(argv[1]), lengths = Numbers(argv[2]), held = Numbers(argv[3]);
    const double seconds = std::stod(argv[4]);
    const int rounds = std::stoi(argv[5]);
    const Zipfian zipfian;
    std::cout << std::fixed << std::setprecision(3);
    std::cout << "Millions of transactions per second, medians of " << rounds
              << ". A range lock of RocksDB's is exclusive, whatever is asked for.\n\n"
              << std::left << std::setw(30) << "what" << std::right << std::setw(6) << "bytes" << std::setw(8) << "held"
              << std::setw(9) << "threads" << std::setw(10) << "spanlock" << std::setw(10) << "ranges" << std::setw(10)
              << "points" << std::setw(10) << "/ranges" << std::setw(10) << "/points" << '\n';
    for (const std::uint64_t length : lengths) {
        for (const std::uint64_t count : held) {
            std::vector<std::unique_ptr<Database>> databases;
            std::vector<Txn> bystanders;
            for (const Kind kind : {Kind::Spanlock, Kind::Ranges, Kind::Points}) {
                databases.push_back(std::make_unique<Database>(kind));
                bystanders.push_back(databases.back()->Begin(0));
                // Half of them before all that is measured, half of them behind.
                for (std::uint64_t number = 0; number < count; ++number)
                    if (!LockKey(bystanders.back().get(), KeyOf(length, number, number % 2 == 0 ? 't' : 'v')).ok())
                        std::abort();
            }
            for (const Access &access : accesses) {
                for (const std::uint64_t crew : threads) {
                    std::vector<std::vector<double>> results(databases.size());
                    for (int round = 0; round < rounds; ++round) {
                        for (std::size_t at = 0; at < databases.size(); ++at) {
                            if (access.is_range && databases[at]->kind == Kind::Points) continue;
                            results[at].push_back(Measure(*databases[at], access, zipfian, length,
                                                          static_cast<unsigned>(crew), seconds));
                        }
                    }
                    const double ours = Median(results[0]), ranges = Median(results[1]);
                    std::cout << std::left << std::setw(30) << access.name << std::right << std::setw(6) << length
                              << std::setw(8) << count << std::setw(9) << crew << std::setw(10) << ours
                              << std::setw(10) << ranges;
                    if (results[2].empty())
                        std::cout << std::setw(10) << "-" << std::setw(10) << ours / ranges << std::setw(10) << "-";
                    else
                        std::cout << std::setw(10) << Median(results[2]) << std::setw(10) << ours / ranges
                                  << std::setw(10) << ours / Median(results[2]);
                    std::cout << std::endl;
                }
            }
            bystanders.clear();
        }
    }
    return 0;
}
