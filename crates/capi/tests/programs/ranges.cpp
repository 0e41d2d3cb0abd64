// Guards of ranges: as `std::unique_lock` in every way that applies.
#include "spanlock.hpp"

#include "check.hpp"

#include <numeric>
#include <thread>
#include <type_traits>

using spanlock::range;
using spanlock::range_guard;
using spanlock::shared_range_guard;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<range_guard> && std::is_nothrow_move_constructible_v<range_guard>);
static_assert(!std::is_copy_assignable_v<range_guard> && std::is_nothrow_move_assignable_v<range_guard>);
static_assert(!std::is_copy_constructible_v<spanlock::range_lock>);

static bool is_free(spanlock::range_lock& lock, spanlock_range where)
{
    bool is = false;
    std::thread([&] { is = range_guard(lock, where, std::try_to_lock).owns_lock(); }).join();
    return is;
}

static void guards(spanlock::range_lock& lock)
{
    {
        range_guard one(lock, range(0, 10)), two(lock, range(10, 20));
        CHECK(one && two.owns_lock() && one.mutex() == &lock && one.range().last == 9);
        CHECK(!is_free(lock, range(9, 10)) && is_free(lock, range(20, 21)));
        range_guard moved(std::move(one));
        CHECK(!one && moved && !is_free(lock, range(0, 1)));
        one = std::move(moved);
        swap(one, two);
        CHECK(one.range().start == 10 && one && two);
        one = range_guard(); // Releases.
        CHECK(is_free(lock, range(10, 20)) && !is_free(lock, range(0, 10)));
        two.unlock();
        CHECK(is_free(lock, range(0, 10)));
        two.lock();
    }
    range_guard deferred(lock, range(0, 10), std::defer_lock);
    CHECK(!deferred && deferred.try_lock() && deferred);
    shared_range_guard shared(lock, range(20, 30)), beside(lock, range(25, 40));
    CHECK(shared && beside && !is_free(lock, range(39, 40)));
    shared_range_guard downgraded = std::move(deferred).downgrade();
    CHECK(downgraded && !deferred && downgraded.range().last == 9);
    const spanlock_token token = beside.release();
    CHECK(!beside && !is_free(lock, range(39, 40)));
    const shared_range_guard adopted(lock, range(25, 40), std::adopt_lock, token);
    CHECK(adopted.owns_lock());
}

static void times(spanlock::range_lock& lock)
{
    range_guard held(lock, range(0, 10));
    std::thread([&] {
        CHECK(!range_guard(lock, range(5, 6), 5ms));
        CHECK(!shared_range_guard(lock, range(5, 6), std::chrono::system_clock::now() + 5ms));
        range_guard later(lock, range(5, 6), std::defer_lock);
        CHECK(!later.try_lock_for(-5ms));
        CHECK(!later.try_lock_until(std::chrono::steady_clock::now() + 5ms));
        CHECK(!spanlock::ranges_guard(lock, {range(90, 91), range(5, 6)}, 5ms));
        CHECK(is_free(lock, range(90, 91)));
        CHECK(range_guard(lock, range(10, 20), std::chrono::hours::max()));
    }).join();
}

static void many(spanlock::range_lock& lock)
{
    {
        const spanlock::ranges_guard guard(lock, {range(30, 40), range(0, 10), range(5, 7)});
        CHECK(guard && !is_free(lock, range(6, 7)) && !is_free(lock, range(39, 40)) && is_free(lock, range(10, 30)));
        bool refused = false;
        std::thread([&] { refused = !spanlock::shared_ranges_guard(lock, {range(9, 20)}, std::try_to_lock); }).join();
        CHECK(refused);
    }
    spanlock::shared_ranges_guard readers(lock, {spanlock::range_from(5)});
    readers.unlock();
    CHECK(!readers && is_free(lock, spanlock::range_all()));
}

static void threads(spanlock::range_lock& lock)
{
    std::vector<int> slots(64);
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < 4; thread++)
        all.emplace_back([&, thread] {
            for (unsigned i = 0; i < 5000; i++) {
                const unsigned start = (i * 7 + thread * 13) % 60;
                const range_guard guard(lock, range(start, start + 4));
                for (unsigned at = start; at < start + 4; at++)
                    slots[at]++;
            }
        });
    for (auto& thread : all)
        thread.join();
    CHECK(std::accumulate(slots.begin(), slots.end(), 0) == 4 * 5000 * 4);
}

#ifdef SPANLOCK_EXCEPTIONS
static void errors(spanlock::range_lock& lock)
{
    range_guard guard(lock, range(0, 10)), none;
    THROWS(std::errc::resource_deadlock_would_occur, guard.lock());
    THROWS(std::errc::resource_deadlock_would_occur, (void)range_guard(lock, range(5, 6)));
    THROWS(std::errc::operation_not_permitted, none.lock());
    THROWS(std::errc::operation_not_permitted, none.unlock());
    THROWS(std::errc::invalid_argument, (void)range_guard(lock, range(6, 5)));
    THROWS(std::errc::invalid_argument, (void)spanlock::range_lock({0ns, 77}));
    guard.unlock();
    THROWS(std::errc::operation_not_permitted, guard.unlock());
    try {
        const range_guard released(lock, range(0, 10));
        throw 5;
    } catch (int) {
    }
    CHECK(is_free(lock, range(0, 10)));
}
#endif

int main()
{
    alarm(100);
    spanlock::range_lock lock;
    guards(lock);
    times(lock);
    many(lock);
    threads(lock);
#ifdef SPANLOCK_EXCEPTIONS
    errors(lock);
#endif
    const range_guard guard(lock, range(3, 5));
    CHECK(lock.snapshot().find("3..=4 exclusive") != std::string::npos);
    CHECK(std::string(spanlock::version()) == SPANLOCK_VERSION);
}
