// `spanlock::shared_mutex` in the place of a `std::shared_mutex` and a `std::shared_timed_mutex`: what programs do with
// these and the standard library's wrappers. With -DSTANDARD the program uses the standard library's own, to show that
// it expects of them what they do.
#include "spanlock.hpp"

#include "check.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <vector>

#ifdef STANDARD
using Mutex = std::shared_timed_mutex;
#else
using Mutex = spanlock::shared_mutex;
static_assert(std::is_same_v<spanlock::shared_timed_mutex, spanlock::shared_mutex>);
#endif

using namespace std::chrono_literals;

static_assert(std::is_default_constructible_v<Mutex>);
static_assert(!std::is_copy_constructible_v<Mutex> && !std::is_move_constructible_v<Mutex>);
static_assert(!std::is_copy_assignable_v<Mutex> && !std::is_move_assignable_v<Mutex>);
static_assert(std::is_nothrow_destructible_v<Mutex> && std::is_standard_layout_v<Mutex>);

// A static lock is initialised before any code runs.
static Mutex standing;

template <class Function>
static auto elsewhere(Function function)
{
    decltype(function()) result{};
    std::thread([&] { result = function(); }).join();
    return result;
}

static void wrappers()
{
    Mutex mutex;
    {
        std::unique_lock writer(mutex);
        CHECK(writer.owns_lock());
        CHECK(!elsewhere([&] { return std::unique_lock(mutex, std::try_to_lock).owns_lock(); }));
        CHECK(!elsewhere([&] { return std::shared_lock(mutex, std::try_to_lock).owns_lock(); }));
        writer.unlock();
        CHECK(elsewhere([&] { return std::unique_lock(mutex, std::try_to_lock).owns_lock(); }));
        writer.lock();
        std::unique_lock moved(std::move(writer));
        CHECK(moved.owns_lock() && !writer.owns_lock());
    }
    {
        std::shared_lock reader(mutex);
        CHECK(elsewhere([&] { return std::shared_lock(mutex, std::try_to_lock).owns_lock(); }));
        CHECK(!elsewhere([&] { return std::unique_lock(mutex, std::try_to_lock).owns_lock(); }));
        std::shared_lock<Mutex> other;
        swap(reader, other);
        CHECK(!reader.owns_lock() && other.owns_lock());
        reader = std::move(other);
        reader.unlock();
        CHECK(elsewhere([&] { return std::unique_lock(mutex, std::try_to_lock).owns_lock(); }));
    }
    {
        std::unique_lock deferred(mutex, std::defer_lock);
        CHECK(!deferred.owns_lock() && deferred.try_lock());
    }
    {
        mutex.lock();
        const std::lock_guard adopted(mutex, std::adopt_lock);
    }
    {
        mutex.lock_shared();
        const std::shared_lock adopted(mutex, std::adopt_lock);
        CHECK(adopted.owns_lock());
    }
    Mutex* released = std::unique_lock(mutex).release();
    CHECK(released == &mutex);
    released->unlock();
}

static void several_at_once()
{
    Mutex one, two;
    std::mutex three;
    const auto work = [&](auto& first, auto& second) {
        for (int i = 0; i < 2000; i++)
            const std::scoped_lock all(first, second, three);
        return true;
    };
    std::thread other([&] { work(two, one); });
    work(one, two);
    other.join();
    std::unique_lock left(one, std::defer_lock), right(two, std::defer_lock);
    std::lock(left, right);
    CHECK(left.owns_lock() && right.owns_lock());
    left.unlock();
    CHECK(std::try_lock(left, three) == -1);
    three.unlock();
}

template <class Lock, class Time>
static void gives_up(Mutex& mutex, Time time)
{
    CHECK(!elsewhere([&] { return Lock(mutex, time).owns_lock(); }));
}

// A clock of the program's own.
struct Slow {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Slow>;
    static constexpr bool is_steady = false;
    static time_point now()
    {
        const auto real = std::chrono::steady_clock::now().time_since_epoch();
        return time_point(std::chrono::duration_cast<duration>(real) / 2);
    }
};

static void times()
{
    Mutex mutex;
    mutex.lock();
    gives_up<std::unique_lock<Mutex>>(mutex, 5ms);
    gives_up<std::shared_lock<Mutex>>(mutex, 5ms);
    gives_up<std::unique_lock<Mutex>>(mutex, 0ns);
    gives_up<std::unique_lock<Mutex>>(mutex, -5ms);
    gives_up<std::unique_lock<Mutex>>(mutex, std::chrono::duration<double>(0.001));
    gives_up<std::unique_lock<Mutex>>(mutex, std::chrono::duration<int, std::ratio<1, 60>>(1));
    gives_up<std::unique_lock<Mutex>>(mutex, std::chrono::steady_clock::now() + 5ms);
    gives_up<std::shared_lock<Mutex>>(mutex, std::chrono::system_clock::now() + 5ms);
    gives_up<std::shared_lock<Mutex>>(mutex, std::chrono::system_clock::time_point());
    const auto slow = Slow::now() + 5ms;
    gives_up<std::unique_lock<Mutex>>(mutex, slow);
    CHECK(Slow::now() >= slow);
    mutex.unlock();
    CHECK(mutex.try_lock_for(std::chrono::hours(24)));
    mutex.unlock();
    CHECK(mutex.try_lock_shared_until(std::chrono::steady_clock::now() + 1h));
    mutex.unlock_shared();
#ifndef STANDARD // Where this overflows.
    CHECK(mutex.try_lock_for(std::chrono::hours::max()));
    mutex.unlock();
    CHECK(mutex.try_lock_shared_for(std::chrono::duration<double>(1e300)));
    mutex.unlock_shared();
    mutex.lock();
    std::thread late([&] { CHECK(mutex.try_lock_for(std::chrono::nanoseconds::max())); mutex.unlock(); });
    std::this_thread::sleep_for(5ms);
    mutex.unlock();
    late.join();
#endif
}

// A queue of one place, with a condition variable that takes any lock.
static void conditions()
{
    Mutex mutex;
    std::condition_variable_any changed;
    int place = 0, sum = 0;
    std::thread consumer([&] {
        for (int i = 1; i <= 200; i++) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return place != 0; });
            sum += place;
            place = 0;
            changed.notify_all();
        }
    });
    std::thread watcher([&] {
        std::shared_lock lock(mutex);
        changed.wait(lock, [&] { return sum >= 100; });
        CHECK(lock.owns_lock());
    });
    for (int i = 1; i <= 200; i++) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return place == 0; });
        place = i;
        changed.notify_all();
    }
    consumer.join();
    watcher.join();
    CHECK(sum == 200 * 201 / 2);
    std::shared_lock lock(mutex);
    CHECK(changed.wait_for(lock, 2ms) == std::cv_status::timeout);
}

// A cache that is mostly read.
static void cache()
{
    std::map<int, int> squares;
    std::atomic<int> hits{0};
    const auto square = [&](int number) {
        {
            std::shared_lock reader(standing);
            if (const auto found = squares.find(number); found != squares.end()) {
                hits++;
                return found->second;
            }
        }
        const std::lock_guard writer(standing);
        return squares.emplace(number, number * number).first->second;
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++)
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; i++)
                CHECK(square(i % 97) == (i % 97) * (i % 97));
        });
    for (auto& thread : threads)
        thread.join();
    CHECK(squares.size() == 97 && hits >= 4 * (20000 - 97));
}

// Locks in other objects, which come and go.
static void members()
{
    struct Account {
        mutable Mutex mutex;
        int balance = 100;
        int read() const
        {
            std::shared_lock lock(mutex);
            return balance;
        }
    };
    const auto accounts = std::make_unique<std::array<Account, 50>>();
    std::thread other([&] {
        for (auto& account : *accounts)
            CHECK(account.read() >= 0);
    });
    for (std::size_t i = 1; i < accounts->size(); i++) {
        auto &from = (*accounts)[i - 1], &to = (*accounts)[i];
        const std::scoped_lock both(from.mutex, to.mutex);
        from.balance -= 50;
        to.balance += 50;
    }
    other.join();
    CHECK(accounts->back().read() == 150);
}

#ifndef STANDARD
static void ours()
{
    spanlock::shared_mutex mutex(spanlock::preference::readers);
    std::shared_lock reader(mutex);
    std::thread writer([&] { const std::lock_guard lock(mutex); });
    std::this_thread::sleep_for(20ms);
    mutex.lock_shared(); // Though a writer waits.
    mutex.unlock_shared();
    reader.unlock();
    writer.join();
    {
        const spanlock::exclusive_lock lock(mutex);
        CHECK(!elsewhere([&] { return mutex.try_lock_shared(); }));
    }
    {
        const spanlock::shared_lock lock(mutex);
        CHECK(!elsewhere([&] { return mutex.try_lock(); }));
    }
    CHECK(spanlock_rwlock_try_read_lock(mutex.native_handle()) == 0);
    mutex.unlock_shared();
#if defined(SPANLOCK_EXCEPTIONS) && !defined(SPANLOCK_TSAN) // The thread sanitizer reports such misuse.
    THROWS(std::errc::operation_not_permitted, mutex.unlock());
    THROWS(std::errc::operation_not_permitted, mutex.unlock_shared());
    mutex.lock();
    THROWS(std::errc::resource_deadlock_would_occur, mutex.lock());
    THROWS(std::errc::resource_deadlock_would_occur, mutex.lock_shared());
    mutex.unlock();
#endif
}
#endif

int main()
{
    alarm(100);
    wrappers();
    several_at_once();
    times();
    conditions();
    cache();
    members();
#ifndef STANDARD
    ours();
#endif
}
