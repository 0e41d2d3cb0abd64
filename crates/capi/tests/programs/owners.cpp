// Owners and what they hold: guards that go from thread to thread, conversions, parts, several modes.
#include "spanlock.hpp"

#include "check.hpp"

#include <numeric>
#include <thread>
#include <type_traits>

using spanlock::mode;
using spanlock::owned_guard;
using spanlock::range;
using spanlock::want;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<owned_guard> && std::is_nothrow_move_constructible_v<owned_guard>);
static_assert(!std::is_copy_assignable_v<owned_guard> && std::is_nothrow_move_assignable_v<owned_guard>);
static_assert(!std::is_copy_constructible_v<spanlock::owner> && !std::is_move_constructible_v<spanlock::owner>);

// Whether another owner could have a range in a mode.
static bool is_free(spanlock::range_lock& lock, spanlock_range where, mode how)
{
    spanlock::owner other;
    return owned_guard(other, lock, where, how, std::try_to_lock).owns_lock();
}

static void guards(spanlock::range_lock& lock)
{
    spanlock::owner one, two;
    CHECK(one.number() != two.number() && one.count() == 0);
    owned_guard held(one, lock, range(0, 10), mode::exclusive), none;
    CHECK(held && !none && held.mutex() == &lock && held.holder() == &one && one.count() == 1);
    CHECK(lock.snapshot().find("owner " + std::to_string(one.number()) + ": 0..=9 exclusive") != std::string::npos);
    const auto holders = lock.holders(range(5, 20));
    CHECK(holders.size() == 1 && holders[0].owner == one.number() && lock.holders(range(10, 20)).empty());
    std::thread([&lock, moved = std::move(held)]() mutable {
        CHECK(moved && !is_free(lock, range(9, 10), mode::shared));
        moved.unlock();
        CHECK(!moved && is_free(lock, range(0, 10), mode::exclusive));
    }).join();
    CHECK(!held && one.count() == 0);
    held = owned_guard(one, lock, range(0, 10), mode::shared);
    none = owned_guard(two, lock, range(5, 20), mode::shared);
    swap(held, none);
    CHECK(held.holder() == &two && none.holder() == &one);
    const spanlock_token token = held.release();
    CHECK(!held && two.count() == 1);
    held = owned_guard(two, lock, std::adopt_lock, token);
    none = owned_guard(); // Releases.
    CHECK(is_free(lock, range(0, 5), mode::exclusive) && !is_free(lock, range(0, 6), mode::exclusive));
    CHECK(!owned_guard(one, lock, range(0, 6), mode::exclusive, std::try_to_lock));
    CHECK(!owned_guard(one, lock, range(0, 6), mode::exclusive, 5ms));
}

static void conversions(spanlock::range_lock& lock)
{
    spanlock::owner one, two;
    owned_guard held(one, lock, range(0, 100), mode::shared);
    {
        const owned_guard reader(two, lock, range(90, 110), mode::shared);
        CHECK(!held.try_upgrade() && !held.try_convert(range(95, 120), mode::exclusive));
        CHECK(!held.try_convert_for(range(95, 96), mode::exclusive, 5ms));
        CHECK(held && one.count() == 1 && !is_free(lock, range(0, 1), mode::exclusive));
    }
    held.convert(range(40, 60), mode::exclusive);
    held.release_part(range(0, 20));
    const auto pieces = held.pieces();
    CHECK(pieces.size() == 3 && pieces[0].range.start == 20 && pieces[0].mode == SPANLOCK_SHARED);
    CHECK(pieces[1].range.last == 59 && pieces[1].mode == SPANLOCK_EXCLUSIVE && pieces[2].range.last == 99);
    held.upgrade();
    CHECK(!is_free(lock, range(99, 100), mode::shared));
    held.downgrade();
    CHECK(is_free(lock, range(0, 100), mode::shared) && held.try_upgrade());
    owned_guard rest = held.split(50);
    held.unlock();
    CHECK(rest && is_free(lock, range(0, 50), mode::shared) && !is_free(lock, range(50, 51), mode::shared));
    rest.shrink(range(60, 70));
    CHECK(is_free(lock, range(50, 60), mode::exclusive) && !is_free(lock, range(60, 61), mode::shared));
}

static void several_modes(spanlock::range_lock& lock)
{
    spanlock::owner one;
    const std::vector<spanlock::want_type> wants = {want(range(40, 60), mode::exclusive),
                                                    want(range(0, 100), mode::shared)};
    {
        const owned_guard held(one, lock, wants);
        CHECK(held && is_free(lock, range(0, 40), mode::shared) && !is_free(lock, range(59, 60), mode::shared));
        spanlock::owner two;
        CHECK(!owned_guard(two, lock, wants, std::try_to_lock) && !owned_guard(two, lock, wants, 5ms));
        std::thread([&] {
            CHECK(!spanlock::wants_guard(lock, wants, std::try_to_lock) && !spanlock::wants_guard(lock, wants, 5ms));
        }).join();
    }
    spanlock::wants_guard mine(lock, wants); // This thread's.
    CHECK(mine && is_free(lock, range(60, 100), mode::shared) && !is_free(lock, range(40, 41), mode::shared));
    mine.unlock();
    CHECK(!mine && is_free(lock, range(0, 100), mode::exclusive));
}

// Guards go round between threads: each adds to the slots of a guard that another has acquired.
static void relay(spanlock::range_lock& lock)
{
    constexpr unsigned rounds = 1000, slots = 8;
    std::vector<int> data(slots);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 3; thread++)
        threads.emplace_back([&, thread] {
            for (unsigned i = 0; i < rounds; i++) {
                const unsigned start = (i * 5 + thread * 3) % (slots - 2);
                spanlock::owner owner;
                owned_guard guard(owner, lock, range(start, start + 3), mode::exclusive);
                if (i % 50 == 0)
                    std::thread([&data, start, moved = std::move(guard)] {
                        for (unsigned at = start; at < start + 3; at++)
                            data[at]++;
                    }).join();
                else
                    for (unsigned at = start; at < start + 3; at++)
                        data[at]++;
            }
        });
    for (auto& thread : threads)
        thread.join();
    CHECK(std::accumulate(data.begin(), data.end(), 0) == 3 * 3 * static_cast<int>(rounds));
}

#ifdef SPANLOCK_EXCEPTIONS
static void errors(spanlock::range_lock& lock)
{
    spanlock::owner one, few(1);
    owned_guard held(one, lock, range(0, 10), mode::shared), none;
    THROWS(std::errc::resource_deadlock_would_occur, (void)owned_guard(one, lock, range(5, 6), mode::exclusive));
    THROWS(std::errc::operation_not_permitted, none.unlock());
    THROWS(std::errc::operation_not_permitted, none.upgrade());
    THROWS(std::errc::invalid_argument, held.release_part(range(6, 5)));
    const owned_guard only(few, lock, range(0, 10), mode::shared);
    THROWS(std::errc::no_lock_available, (void)owned_guard(few, lock, range(20, 30), mode::shared));
    one.cancel();
    THROWS(std::errc::operation_canceled, held.upgrade());
    CHECK(held && one.count() == 1);
}
#endif

int main()
{
    alarm(100);
    spanlock::range_lock lock;
    guards(lock);
    conversions(lock);
    several_modes(lock);
    relay(lock);
#ifdef SPANLOCK_EXCEPTIONS
    errors(lock);
#endif
}
