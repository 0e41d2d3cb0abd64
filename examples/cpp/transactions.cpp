// Transfers between accounts, as transactions that go from thread to thread. One thread takes them in and waits for
// their ranges, so that the workers never wait. A worker applies a transfer, and a third thread writes it to a log. The
// ranges are the transaction's, whichever thread has it: its owner holds them.
//
//   intake: waits for the ranges --> workers: change, then share --> log: reads, and releases
#include <spanlock.hpp>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

using spanlock::mode;

struct Transaction {
    spanlock::owner owner;
    spanlock::owned_guard rows; // Destroyed before its owner.
    std::uint64_t from = 0, to = 0;
    std::int64_t amount = 0;
};

using Handed = std::unique_ptr<Transaction>;

// Hands transactions to other threads. An empty one is the end.
class Queue {
public:
    void put(Handed transaction)
    {
        const std::lock_guard guard(mutex_);
        waiting_.push_back(std::move(transaction));
        changed_.notify_one();
    }

    Handed take()
    {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [this] { return !waiting_.empty(); });
        Handed transaction = std::move(waiting_.front());
        waiting_.pop_front();
        return transaction;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Handed> waiting_;
};

class Bank {
public:
    static constexpr std::uint64_t accounts = 200;
    static constexpr std::int64_t initial = 100;

    Bank() { balances_.fill(initial); }

    // Waits until all that a transfer needs is the transaction's: both accounts alone, and the limit shared.
    void acquire(Transaction& it)
    {
        const auto key = [](std::uint64_t at) { return spanlock::range(at, at + 1); };
        it.rows = spanlock::owned_guard(it.owner, lock_,
                                        {want(key(it.from), mode::exclusive), want(key(it.to), mode::exclusive),
                                         want(key(limit_key), mode::shared)});
    }

    void apply(Transaction& it)
    {
        if (it.amount <= limit_ && it.from != it.to) {
            balances_[it.from] -= it.amount;
            balances_[it.to] += it.amount;
        }
        it.rows.shrink(spanlock::range(0, accounts)); // The limit is not needed any more.
        it.rows.downgrade();                          // Others may read the result, which stays as it is.
    }

    std::int64_t balance(std::uint64_t account) const { return balances_[account]; }

    // The sum of all accounts, which this thread reads for itself.
    std::int64_t sum()
    {
        const spanlock::shared_range_guard guard(lock_, spanlock::range(0, accounts));
        std::int64_t sum = 0;
        for (const std::int64_t balance : balances_)
            sum += balance;
        return sum;
    }

    // Changes the limit, unless a transaction needs it or that takes too long.
    void set_limit(std::int64_t limit)
    {
        spanlock::owner clerk;
        if (const spanlock::owned_guard guard(clerk, lock_, spanlock::range(limit_key, limit_key + 1), mode::exclusive,
                                              std::chrono::milliseconds(5));
            guard)
            limit_ = limit;
    }

private:
    static constexpr std::uint64_t limit_key = accounts;

    spanlock::range_lock lock_;
    std::array<std::int64_t, accounts> balances_{};
    std::int64_t limit_ = 10;
};

} // namespace

int main()
{
    constexpr int transfers = 3000, workers = 3;
    Bank bank;
    Queue to_apply, to_log;
    std::int64_t logged = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; i++)
        threads.emplace_back([&] {
            while (Handed transaction = to_apply.take()) {
                bank.apply(*transaction);
                to_log.put(std::move(transaction));
            }
            to_log.put(nullptr);
        });
    threads.emplace_back([&] {
        for (int ended = 0; ended < workers;) {
            const Handed transaction = to_log.take();
            if (transaction == nullptr) {
                ended++;
                continue;
            }
            logged += bank.balance(transaction->from) != bank.balance(transaction->to);
        } // What the transaction holds is released with it.
    });

    std::minstd_rand random(1);
    for (int i = 0; i < transfers; i++) {
        auto transaction = std::make_unique<Transaction>();
        transaction->from = random() % Bank::accounts;
        transaction->to = random() % Bank::accounts;
        transaction->amount = static_cast<std::int64_t>(random() % 15);
        bank.acquire(*transaction);
        to_apply.put(std::move(transaction));
        if (i % 100 == 0 && bank.sum() != Bank::accounts * Bank::initial)
            std::abort();
        if (i % 500 == 0)
            bank.set_limit(5 + i / 500);
    }
    for (int i = 0; i < workers; i++)
        to_apply.put(nullptr);
    for (auto& thread : threads)
        thread.join();
    std::cout << "the sum is " << bank.sum() << ", and " << logged << " transfers left two balances apart\n";
}
