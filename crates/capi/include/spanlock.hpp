// Spanlock for C++17 and later. Needs `spanlock.h` and the library, and nothing else.
//
//   spanlock::range_lock lock;
//   spanlock::range_guard guard(lock, spanlock::range(0, 4096)); // Released at the end of the scope.
//
//   spanlock::owner transaction;              // Not a thread: what it holds goes from thread to thread.
//   spanlock::owned_guard rows(transaction, lock, spanlock::range(0, 100), spanlock::mode::shared);
//   rows.convert(spanlock::range(40, 60), spanlock::mode::exclusive);
//
//   spanlock::shared_mutex mutex;             // In the place of a std::shared_mutex.
//   std::shared_lock reader(mutex);
//
// A try of a range fails if somebody holds some of it, or a writer awaits it. A request that is about to hold some of
// it or to withdraw counts as a holder if it has not decided after 128 us: its thread may not be running.
//
// Errors are exceptions of the type `std::system_error`, as those of the standard library's locks. Where exceptions are
// off, an error writes a message and aborts.

#ifndef SPANLOCK_HPP
#define SPANLOCK_HPP

#include "spanlock.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define SPANLOCK_EXCEPTIONS 1
#endif

// The attributes by which `clang -Wthread-safety` checks who holds what.
#if defined(__clang__) && !defined(SPANLOCK_NO_THREAD_SAFETY)
#define SPANLOCK_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define SPANLOCK_ATTRIBUTE(attribute)
#endif
#define SPANLOCK_CAPABILITY(name) SPANLOCK_ATTRIBUTE(capability(name))
#define SPANLOCK_SCOPED_CAPABILITY SPANLOCK_ATTRIBUTE(scoped_lockable)
#define SPANLOCK_ACQUIRE(...) SPANLOCK_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SPANLOCK_ACQUIRE_SHARED(...) SPANLOCK_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define SPANLOCK_TRY_ACQUIRE(...) SPANLOCK_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define SPANLOCK_TRY_ACQUIRE_SHARED(...) SPANLOCK_ATTRIBUTE(try_acquire_shared_capability(__VA_ARGS__))
#define SPANLOCK_RELEASE(...) SPANLOCK_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SPANLOCK_RELEASE_SHARED(...) SPANLOCK_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define SPANLOCK_RELEASE_GENERIC(...) SPANLOCK_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define SPANLOCK_GUARDED_BY(lock) SPANLOCK_ATTRIBUTE(guarded_by(lock))
#define SPANLOCK_REQUIRES(...) SPANLOCK_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define SPANLOCK_REQUIRES_SHARED(...) SPANLOCK_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define SPANLOCK_UNCHECKED SPANLOCK_ATTRIBUTE(no_thread_safety_analysis)

namespace spanlock {

namespace detail {

[[noreturn]] inline void fail(int error, const char* what)
{
#ifdef SPANLOCK_EXCEPTIONS
    throw std::system_error(error, std::generic_category(), what);
#else
    std::fprintf(stderr, "spanlock: %s: error %d\n", what, error);
    std::abort();
#endif
}

inline void ensure(int error, const char* what)
{
    if (error != 0)
        fail(error, what);
}

// Whether a request was granted, unless it failed for another reason than that it would have taken too long.
inline bool granted(int error, const char* what)
{
    if (error == EBUSY || error == ETIMEDOUT)
        return false;
    ensure(error, what);
    return true;
}

// A deadline that is so far from now. One that is further away than a clock can say is in thirty years.
template <class Rep, class Period>
timespec deadline_after(const std::chrono::duration<Rep, Period>& timeout)
{
    constexpr double most = 1e9;
    using nanoseconds = std::chrono::nanoseconds;
    const double seconds = std::chrono::duration<double>(timeout).count();
    std::int64_t left = 0;
    if (!(seconds < most)) // Nor is it, if it is no number.
        left = static_cast<std::int64_t>(most) * 1000000000;
    else if (seconds > 0) {
        const auto whole = std::chrono::duration_cast<nanoseconds>(timeout);
        left = whole.count() + (whole < timeout ? 1 : 0);
    }
    timespec deadline{};
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    const std::int64_t sum = deadline.tv_nsec + left;
    deadline.tv_sec += static_cast<std::time_t>(sum / 1000000000);
    deadline.tv_nsec = static_cast<long>(sum % 1000000000);
    return deadline;
}

// Calls `wait` with a deadline, until it succeeds or a time on a clock has come. A clock of the program's may go at
// another pace than that of the library.
template <class Clock, class Duration, class Wait>
bool wait_until(const std::chrono::time_point<Clock, Duration>& time, Wait wait)
{
    for (;;) {
        const auto now = Clock::now();
        const timespec deadline = time > now ? deadline_after(time - now) : deadline_after(Duration::zero());
        if (wait(deadline))
            return true;
        if (Clock::is_steady || Clock::now() >= time)
            return false;
    }
}

// A text, by a function of a buffer, its size, and a place for the bytes that suffice.
template <class Write>
std::string text(Write write, const char* what)
{
    std::size_t needed = 0;
    std::string text;
    do {
        text.resize(needed);
        ensure(write(text.data(), text.size(), &needed), what);
    } while (needed > text.size());
    text.resize(needed - 1);
    return text;
}

// Ends the program, since something is destroyed that is in use.
[[noreturn]] inline void destroyed_in_use(const char* what, int error) noexcept
{
    std::fprintf(stderr, "spanlock: %s is destroyed while it is in use: error %d\n", what, error);
    std::abort();
}

} // namespace detail

// The version of the library that the program runs with.
[[nodiscard]] inline const char* version() noexcept
{
    return spanlock_version();
}

// A set of consecutive positions.
using range_type = spanlock_range;

// The positions from `start` to `end`, without `end`.
[[nodiscard]] inline range_type range(std::uint64_t start, std::uint64_t end) noexcept
{
    return spanlock_range_of(start, end);
}

// The positions from `start` to the last of all.
[[nodiscard]] inline range_type range_from(std::uint64_t start) noexcept
{
    return spanlock_range_from(start);
}

// All positions.
[[nodiscard]] inline range_type range_all() noexcept
{
    return spanlock_range_all();
}

// How a range is held: with others that share, or alone.
enum class mode : std::uint32_t { shared = SPANLOCK_SHARED, exclusive = SPANLOCK_EXCLUSIVE };

// A range, and how it is wanted or held. `want(range, mode)` makes one.
using want_type = spanlock_want;

[[nodiscard]] inline want_type want(range_type range, mode mode) noexcept
{
    return {range, static_cast<std::uint32_t>(mode), 0};
}

// How a range lock is made.
struct range_lock_options {
    // After how long other requests begin to give way to one that they keep overtaking. Zero: after a millisecond.
    std::chrono::nanoseconds patience{0};
    // `SPANLOCK_FAIR`, or `SPANLOCK_UNFAIR`: no request gives way.
    std::uint32_t fairness = SPANLOCK_FAIR;
};

// A lock for ranges of one resource.
class range_lock {
public:
    explicit range_lock(const range_lock_options& options = {})
    {
        spanlock_range_lock_options made = SPANLOCK_RANGE_LOCK_OPTIONS;
        made.patience_ns = static_cast<std::uint64_t>(options.patience.count());
        made.fairness = options.fairness;
        detail::ensure(spanlock_range_lock_create(&lock_, &made), "spanlock::range_lock");
    }

    range_lock(const range_lock&) = delete;
    range_lock& operator=(const range_lock&) = delete;

    // No range may be held or awaited: the program ends with a message otherwise.
    ~range_lock()
    {
        if (const int error = spanlock_range_lock_destroy(lock_))
            detail::destroyed_in_use("a range_lock", error);
    }

    // The lock, as the functions of `spanlock.h` take it.
    using native_handle_type = spanlock_range_lock*;
    [[nodiscard]] native_handle_type native_handle() noexcept { return lock_; }

    // Who holds and who awaits ranges, as text, to find a hang.
    [[nodiscard]] std::string snapshot() const
    {
        return detail::text([this](auto... to) { return spanlock_range_lock_snapshot(lock_, to...); }, "snapshot");
    }

    // Who holds some of a range, in the order in which their ranges begin.
    [[nodiscard]] std::vector<spanlock_holder> holders(range_type range) const
    {
        std::vector<spanlock_holder> holders;
        std::size_t needed = 0;
        do {
            holders.resize(needed);
            detail::ensure(spanlock_range_lock_holders(lock_, range, holders.data(), holders.size(), &needed),
                           "range_lock::holders");
        } while (needed > holders.size());
        holders.resize(needed);
        return holders;
    }

private:
    spanlock_range_lock* lock_ = nullptr;
};

namespace detail {

// The functions by which guards of one mode acquire.
struct exclusive {
    static constexpr std::uint32_t mode = SPANLOCK_EXCLUSIVE;
    static int lock(spanlock_range_lock* lock, range_type range, spanlock_token* token)
    {
        return spanlock_range_lock_write(lock, range, token);
    }
    static int try_lock(spanlock_range_lock* lock, range_type range, spanlock_token* token)
    {
        return spanlock_range_lock_try_write(lock, range, token);
    }
    static int timed_lock(spanlock_range_lock* lock, range_type range, const timespec* until, spanlock_token* token)
    {
        return spanlock_range_lock_timed_write(lock, range, CLOCK_MONOTONIC, until, token);
    }
};

struct shared {
    static constexpr std::uint32_t mode = SPANLOCK_SHARED;
    static int lock(spanlock_range_lock* lock, range_type range, spanlock_token* token)
    {
        return spanlock_range_lock_read(lock, range, token);
    }
    static int try_lock(spanlock_range_lock* lock, range_type range, spanlock_token* token)
    {
        return spanlock_range_lock_try_read(lock, range, token);
    }
    static int timed_lock(spanlock_range_lock* lock, range_type range, const timespec* until, spanlock_token* token)
    {
        return spanlock_range_lock_timed_read(lock, range, CLOCK_MONOTONIC, until, token);
    }
};

// What a guard holds: a token of a lock. It releases when it is destroyed.
class held {
public:
    held() noexcept = default;
    explicit held(range_lock& lock) noexcept : lock_(&lock) {}
    held(range_lock& lock, spanlock_token token) noexcept : lock_(&lock), token_(token), owns_(true) {}
    held(held&& other) noexcept { swap(other); }
    held& operator=(held&& other) noexcept
    {
        held(std::move(other)).swap(*this);
        return *this;
    }
    ~held()
    {
        if (owns_)
            unlock();
    }

    void swap(held& other) noexcept
    {
        std::swap(lock_, other.lock_);
        std::swap(token_, other.token_);
        std::swap(owns_, other.owns_);
    }

    // Acquires by a function of the lock and the token, which answers with an error.
    template <class Acquire>
    bool acquire(Acquire acquire)
    {
        if (lock_ == nullptr)
            fail(EPERM, "a guard without a lock");
        if (owns_)
            fail(EDEADLK, "a guard that holds its range already");
        const int error = acquire(lock_->native_handle(), &token_);
        owns_ = granted(error, error == EINVAL ? "a reversed range, or a lock that is none" : "a range lock");
        return owns_;
    }

    void unlock()
    {
        if (!owns_)
            fail(EPERM, "a guard that holds nothing");
        ensure(spanlock_range_lock_release(lock_->native_handle(), &token_), "the release of a range");
        owns_ = false;
    }

    spanlock_token release() noexcept
    {
        owns_ = false;
        lock_ = nullptr;
        return std::exchange(token_, spanlock_token{});
    }

    void downgrade() { ensure(spanlock_range_lock_downgrade(lock_->native_handle(), &token_), "a downgrade"); }

    [[nodiscard]] bool owns() const noexcept { return owns_; }
    [[nodiscard]] range_lock* lock() const noexcept { return lock_; }

private:
    range_lock* lock_ = nullptr;
    spanlock_token token_{};
    bool owns_ = false;
};

} // namespace detail

// Holds a range, as `std::unique_lock` holds a mutex: `range_guard` alone, `shared_range_guard` with other readers. The
// thread that acquires is the one to release.
template <class Mode>
class [[nodiscard]] basic_range_guard {
public:
    basic_range_guard() noexcept = default;

    // Acquires the range.
    basic_range_guard(range_lock& lock, range_type range) : held_(lock), range_(range) { this->lock(); }

    // Acquires it later, by `lock` and its kin.
    basic_range_guard(range_lock& lock, range_type range, std::defer_lock_t) noexcept : held_(lock), range_(range) {}

    // Acquires it if that is possible at once.
    basic_range_guard(range_lock& lock, range_type range, std::try_to_lock_t) : held_(lock), range_(range)
    {
        (void)try_lock();
    }

    // Takes over what a token holds.
    basic_range_guard(range_lock& lock, range_type range, std::adopt_lock_t, spanlock_token token) noexcept
        : held_(lock, token), range_(range)
    {
    }

    // Acquires it within a time.
    template <class Rep, class Period>
    basic_range_guard(range_lock& lock, range_type range, const std::chrono::duration<Rep, Period>& timeout)
        : held_(lock), range_(range)
    {
        (void)try_lock_for(timeout);
    }

    // Acquires it before a time.
    template <class Clock, class Duration>
    basic_range_guard(range_lock& lock, range_type range, const std::chrono::time_point<Clock, Duration>& time)
        : held_(lock), range_(range)
    {
        (void)try_lock_until(time);
    }

    void lock()
    {
        held_.acquire([&](auto* lock, auto* token) { return Mode::lock(lock, range_, token); });
    }

    [[nodiscard]] bool try_lock()
    {
        return held_.acquire([&](auto* lock, auto* token) { return Mode::try_lock(lock, range_, token); });
    }

    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& timeout)
    {
        return lock_before(detail::deadline_after(timeout));
    }

    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time)
    {
        return detail::wait_until(time, [&](const timespec& deadline) { return lock_before(deadline); });
    }

    void unlock() { held_.unlock(); }

    void swap(basic_range_guard& other) noexcept
    {
        held_.swap(other.held_);
        std::swap(range_, other.range_);
    }

    // Gives the token away, which is to be released.
    [[nodiscard]] spanlock_token release() noexcept { return held_.release(); }

    // Keeps the range, but shares it from now on. No writer gets in between.
    [[nodiscard]] basic_range_guard<detail::shared> downgrade() &&
    {
        static_assert(std::is_same_v<Mode, detail::exclusive>, "it is shared already");
        if (!owns_lock())
            detail::fail(EPERM, "a guard that holds nothing");
        held_.downgrade();
        range_lock& lock = *held_.lock();
        return {lock, range_, std::adopt_lock, held_.release()};
    }

    [[nodiscard]] bool owns_lock() const noexcept { return held_.owns(); }
    explicit operator bool() const noexcept { return owns_lock(); }
    [[nodiscard]] range_lock* mutex() const noexcept { return held_.lock(); }
    [[nodiscard]] range_type range() const noexcept { return range_; }

private:
    bool lock_before(const timespec& deadline)
    {
        return held_.acquire([&](auto* lock, auto* token) { return Mode::timed_lock(lock, range_, &deadline, token); });
    }

    detail::held held_;
    range_type range_{};
};

template <class Mode>
void swap(basic_range_guard<Mode>& one, basic_range_guard<Mode>& other) noexcept
{
    one.swap(other);
}

// Holds a range alone.
using range_guard = basic_range_guard<detail::exclusive>;

// Holds a range with other readers.
using shared_range_guard = basic_range_guard<detail::shared>;

// Holds several ranges, each in its mode, all or none. Such guards do not deadlock with each other, in whatever order
// they name their ranges. Of positions that are wanted more than once the stronger mode counts.
class [[nodiscard]] wants_guard {
public:
    wants_guard(range_lock& lock, const std::vector<want_type>& wants) : held_(lock)
    {
        held_.acquire([&](auto* handle, auto* token) {
            return spanlock_range_lock_many(handle, wants.data(), wants.size(), token);
        });
    }

    wants_guard(range_lock& lock, const std::vector<want_type>& wants, std::try_to_lock_t) : held_(lock)
    {
        held_.acquire([&](auto* handle, auto* token) {
            return spanlock_range_lock_try_many(handle, wants.data(), wants.size(), token);
        });
    }

    template <class Rep, class Period>
    wants_guard(range_lock& lock, const std::vector<want_type>& wants,
                const std::chrono::duration<Rep, Period>& timeout)
        : held_(lock)
    {
        const timespec deadline = detail::deadline_after(timeout);
        held_.acquire([&](auto* handle, auto* token) {
            return spanlock_range_lock_timed_many(handle, wants.data(), wants.size(), CLOCK_MONOTONIC, &deadline,
                                                  token);
        });
    }

    void unlock() { held_.unlock(); }
    [[nodiscard]] bool owns_lock() const noexcept { return held_.owns(); }
    explicit operator bool() const noexcept { return owns_lock(); }

private:
    detail::held held_;
};

// The same of ranges that are all wanted in one mode.
template <class Mode>
class [[nodiscard]] basic_ranges_guard : public wants_guard {
public:
    template <class... How>
    basic_ranges_guard(range_lock& lock, const std::vector<range_type>& ranges, const How&... how)
        : wants_guard(lock, wants(ranges), how...)
    {
    }

private:
    static std::vector<want_type> wants(const std::vector<range_type>& ranges)
    {
        std::vector<want_type> wants;
        wants.reserve(ranges.size());
        for (const range_type range : ranges)
            wants.push_back({range, Mode::mode, 0});
        return wants;
    }
};

using ranges_guard = basic_ranges_guard<detail::exclusive>;
using shared_ranges_guard = basic_ranges_guard<detail::shared>;

// Somebody who holds ranges and is no thread: a transaction, a client, a request that goes over a pool of threads. Two
// owners exclude each other as two threads do.
class owner {
public:
    owner() : owner(0) {}

    // An owner that may hold or ask for so many ranges at a time, in all locks together. Zero: any number.
    explicit owner(std::uint64_t limit)
    {
        spanlock_owner_options options = SPANLOCK_OWNER_OPTIONS;
        options.limit = limit;
        detail::ensure(spanlock_owner_create(&owner_, &options), "spanlock::owner");
    }

    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;

    // It may not hold anything, nor may a thread ask in its name: the program ends with a message otherwise.
    ~owner()
    {
        if (const int error = spanlock_owner_destroy(owner_))
            detail::destroyed_in_use("an owner", error);
    }

    // Ends all waits in its name, now and from now on: they throw `std::errc::operation_canceled`. What it holds it
    // keeps. Any thread may call this.
    void cancel() { detail::ensure(spanlock_owner_cancel(owner_), "owner::cancel"); }

    // How many ranges it holds or asks for, in all locks.
    [[nodiscard]] std::size_t count() const
    {
        std::size_t count = 0;
        detail::ensure(spanlock_owner_count(owner_, &count), "owner::count");
        return count;
    }

    // Snapshots name it by this: 7, for "owner 7".
    [[nodiscard]] std::uint32_t number() const
    {
        std::uint32_t number = 0;
        detail::ensure(spanlock_owner_number(owner_, &number), "owner::number");
        return number;
    }

    // The owner, as the functions of `spanlock.h` take it.
    using native_handle_type = spanlock_owner*;
    [[nodiscard]] native_handle_type native_handle() noexcept { return owner_; }

private:
    spanlock_owner* owner_ = nullptr;
};

// What an owner holds of a lock, in pieces that can be converted, cut and released. A guard may be moved to another
// thread, used there, and destroyed there. The owner and the lock outlive it.
class [[nodiscard]] owned_guard {
public:
    owned_guard() noexcept = default;

    // Acquires a range.
    owned_guard(owner& owner, range_lock& lock, range_type range, mode mode) : owned_guard(owner, lock)
    {
        acquire(&spanlock_owner_lock, range, number(mode), &token_);
    }

    // Acquires it if that is possible at once.
    owned_guard(owner& owner, range_lock& lock, range_type range, mode mode, std::try_to_lock_t)
        : owned_guard(owner, lock)
    {
        acquire(&spanlock_owner_try_lock, range, number(mode), &token_);
    }

    // Acquires it within a time.
    template <class Rep, class Period>
    owned_guard(owner& owner, range_lock& lock, range_type range, mode mode,
                const std::chrono::duration<Rep, Period>& timeout)
        : owned_guard(owner, lock)
    {
        const timespec deadline = detail::deadline_after(timeout);
        acquire(&spanlock_owner_timed_lock, range, number(mode), CLOCK_MONOTONIC, &deadline, &token_);
    }

    // Acquires several ranges, each in its mode, all or none. As `wants_guard`.
    owned_guard(owner& owner, range_lock& lock, const std::vector<want_type>& wants) : owned_guard(owner, lock)
    {
        acquire(&spanlock_owner_many, wants.data(), wants.size(), &token_);
    }

    // The same if that is possible at once.
    owned_guard(owner& owner, range_lock& lock, const std::vector<want_type>& wants, std::try_to_lock_t)
        : owned_guard(owner, lock)
    {
        acquire(&spanlock_owner_try_many, wants.data(), wants.size(), &token_);
    }

    // The same within a time.
    template <class Rep, class Period>
    owned_guard(owner& owner, range_lock& lock, const std::vector<want_type>& wants,
                const std::chrono::duration<Rep, Period>& timeout)
        : owned_guard(owner, lock)
    {
        const timespec deadline = detail::deadline_after(timeout);
        acquire(&spanlock_owner_timed_many, wants.data(), wants.size(), CLOCK_MONOTONIC, &deadline, &token_);
    }

    // Takes over what a token of the owner's stands for.
    owned_guard(owner& owner, range_lock& lock, std::adopt_lock_t, spanlock_token token) noexcept
        : owned_guard(owner, lock)
    {
        token_ = token;
        owns_ = true;
    }

    owned_guard(owned_guard&& other) noexcept : owned_guard() { swap(other); }
    owned_guard& operator=(owned_guard&& other) noexcept
    {
        owned_guard(std::move(other)).swap(*this);
        return *this;
    }

    ~owned_guard()
    {
        if (owns_)
            unlock();
    }

    void swap(owned_guard& other) noexcept
    {
        std::swap(owner_, other.owner_);
        std::swap(lock_, other.lock_);
        std::swap(token_, other.token_);
        std::swap(owns_, other.owns_);
    }

    // From now on holds `range` in a mode: what is held of it is converted, and the rest is acquired. All or nothing:
    // an exception leaves what was held as it was, and it is held meanwhile.
    void convert(range_type range, mode mode) { call(&spanlock_owner_convert, range, number(mode)); }

    // The same if that is possible at once. To try again in a loop is no way to wait.
    [[nodiscard]] bool try_convert(range_type range, mode mode)
    {
        return try_call(&spanlock_owner_try_convert, range, number(mode));
    }

    // The same within a time.
    template <class Rep, class Period>
    [[nodiscard]] bool try_convert_for(range_type range, mode mode, const std::chrono::duration<Rep, Period>& timeout)
    {
        const timespec deadline = detail::deadline_after(timeout);
        return try_call(&spanlock_owner_timed_convert, range, number(mode), CLOCK_MONOTONIC, &deadline);
    }

    // Holds all alone, or shares all. No writer gets in between.
    void upgrade() { call(&spanlock_owner_upgrade); }
    [[nodiscard]] bool try_upgrade() { return try_call(&spanlock_owner_try_upgrade); }
    void downgrade() { call(&spanlock_owner_downgrade); }

    // Releases a part, or all but a part.
    void release_part(range_type range) { call(&spanlock_owner_release_part, range); }
    void shrink(range_type range) { call(&spanlock_owner_shrink, range); }

    // Splits off what is held from a position on.
    [[nodiscard]] owned_guard split(std::uint64_t at)
    {
        spanlock_token rest{};
        call(&spanlock_owner_split, at, &rest);
        return {*owner_, *lock_, std::adopt_lock, rest};
    }

    // What is held, piece by piece, in order. Pieces may touch.
    [[nodiscard]] std::vector<want_type> pieces()
    {
        std::vector<want_type> pieces;
        std::size_t count = 0;
        do {
            pieces.resize(count);
            call(&spanlock_owner_pieces, pieces.data(), pieces.size(), &count);
        } while (count > pieces.size());
        pieces.resize(count);
        return pieces;
    }

    void unlock()
    {
        call(&spanlock_owner_release);
        owns_ = false;
    }

    // Gives the token away, which is to be released.
    [[nodiscard]] spanlock_token release() noexcept
    {
        owns_ = false;
        return std::exchange(token_, spanlock_token{});
    }

    [[nodiscard]] bool owns_lock() const noexcept { return owns_; }
    explicit operator bool() const noexcept { return owns_lock(); }
    [[nodiscard]] range_lock* mutex() const noexcept { return lock_; }
    [[nodiscard]] owner* holder() const noexcept { return owner_; }

private:
    owned_guard(owner& owner, range_lock& lock) noexcept : owner_(&owner), lock_(&lock) {}

    static std::uint32_t number(mode mode) noexcept { return static_cast<std::uint32_t>(mode); }

    template <class Function, class... Arguments>
    void acquire(Function function, Arguments... arguments)
    {
        owns_ = detail::granted(function(owner_->native_handle(), lock_->native_handle(), arguments...), "an owner");
    }

    // Calls a function for what is held.
    template <class Function, class... Arguments>
    void call(Function function, Arguments... arguments)
    {
        ensure_owns();
        detail::ensure(function(owner_->native_handle(), lock_->native_handle(), &token_, arguments...), what);
    }

    // The same, and says whether it was granted.
    template <class Function, class... Arguments>
    bool try_call(Function function, Arguments... arguments)
    {
        ensure_owns();
        return detail::granted(function(owner_->native_handle(), lock_->native_handle(), &token_, arguments...), what);
    }

    static constexpr const char* what = "what an owner holds";

    void ensure_owns() const
    {
        if (!owns_)
            detail::fail(EPERM, "a guard that holds nothing");
    }

    owner* owner_ = nullptr;
    range_lock* lock_ = nullptr;
    spanlock_token token_{};
    bool owns_ = false;
};

inline void swap(owned_guard& one, owned_guard& other) noexcept
{
    one.swap(other);
}

// Whom a `shared_mutex` lets in first.
enum class preference : std::uint32_t {
    // Readers give way to writers that wait. A thread that reads must not read the same lock again.
    writers = SPANLOCK_RWLOCK_WRITERS,
    // Readers do not. A thread that reads may read again, and readers that never pause may keep writers out.
    readers = SPANLOCK_RWLOCK_READERS,
};

// A reader-writer lock that scales with its readers: a `std::shared_mutex` and a `std::shared_timed_mutex`, with their
// rules.
class SPANLOCK_CAPABILITY("shared_mutex") shared_mutex {
public:
    constexpr shared_mutex() noexcept = default;
    explicit constexpr shared_mutex(preference first) noexcept
        : lock_{{0, 0, 0, static_cast<std::uint64_t>(first), 0, 0, 0, 0}}
    {
    }
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;

    // Nobody may hold it: the program ends with a message otherwise.
    ~shared_mutex()
    {
        if (const int error = spanlock_rwlock_destroy(&lock_))
            detail::destroyed_in_use("a shared_mutex", error);
    }

    void lock() SPANLOCK_ACQUIRE() SPANLOCK_UNCHECKED
    {
        detail::ensure(spanlock_rwlock_write_lock(&lock_), "shared_mutex::lock");
    }
    [[nodiscard]] bool try_lock() SPANLOCK_TRY_ACQUIRE(true) SPANLOCK_UNCHECKED
    {
        return detail::granted(spanlock_rwlock_try_write_lock(&lock_), "shared_mutex::try_lock");
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& timeout)
        SPANLOCK_TRY_ACQUIRE(true) SPANLOCK_UNCHECKED
    {
        return lock_before(detail::deadline_after(timeout));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time)
        SPANLOCK_TRY_ACQUIRE(true) SPANLOCK_UNCHECKED
    {
        return detail::wait_until(time, [this](const timespec& deadline) { return lock_before(deadline); });
    }
    void unlock() SPANLOCK_RELEASE() SPANLOCK_UNCHECKED
    {
        detail::ensure(spanlock_rwlock_write_unlock(&lock_), "shared_mutex::unlock");
    }

    void lock_shared() SPANLOCK_ACQUIRE_SHARED() SPANLOCK_UNCHECKED
    {
        detail::ensure(spanlock_rwlock_read_lock(&lock_), "shared_mutex::lock_shared");
    }
    [[nodiscard]] bool try_lock_shared() SPANLOCK_TRY_ACQUIRE_SHARED(true) SPANLOCK_UNCHECKED
    {
        return detail::granted(spanlock_rwlock_try_read_lock(&lock_), "shared_mutex::try_lock_shared");
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& timeout)
        SPANLOCK_TRY_ACQUIRE_SHARED(true) SPANLOCK_UNCHECKED
    {
        return lock_shared_before(detail::deadline_after(timeout));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& time)
        SPANLOCK_TRY_ACQUIRE_SHARED(true) SPANLOCK_UNCHECKED
    {
        return detail::wait_until(time, [this](const timespec& deadline) { return lock_shared_before(deadline); });
    }
    void unlock_shared() SPANLOCK_RELEASE_SHARED() SPANLOCK_UNCHECKED
    {
        detail::ensure(spanlock_rwlock_read_unlock(&lock_), "shared_mutex::unlock_shared");
    }

    // The lock, as the functions of `spanlock.h` take it.
    using native_handle_type = spanlock_rwlock*;
    [[nodiscard]] native_handle_type native_handle() noexcept { return &lock_; }

private:
    bool lock_before(const timespec& deadline) SPANLOCK_UNCHECKED
    {
        return detail::granted(spanlock_rwlock_timed_write_lock(&lock_, CLOCK_MONOTONIC, &deadline), "shared_mutex");
    }
    bool lock_shared_before(const timespec& deadline) SPANLOCK_UNCHECKED
    {
        return detail::granted(spanlock_rwlock_timed_read_lock(&lock_, CLOCK_MONOTONIC, &deadline), "shared_mutex");
    }

    spanlock_rwlock lock_ = SPANLOCK_RWLOCK_INITIALIZER;
};

using shared_timed_mutex = shared_mutex;

// Writes for the length of a scope. As `std::lock_guard`, and known to `clang -Wthread-safety`.
class [[nodiscard]] SPANLOCK_SCOPED_CAPABILITY exclusive_lock {
public:
    explicit exclusive_lock(shared_mutex& mutex) SPANLOCK_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
    exclusive_lock(const exclusive_lock&) = delete;
    exclusive_lock& operator=(const exclusive_lock&) = delete;
    ~exclusive_lock() SPANLOCK_RELEASE() { mutex_.unlock(); }

private:
    shared_mutex& mutex_;
};

// Reads for the length of a scope. As `std::shared_lock`, and known to `clang -Wthread-safety`.
class [[nodiscard]] SPANLOCK_SCOPED_CAPABILITY shared_lock {
public:
    explicit shared_lock(shared_mutex& mutex) SPANLOCK_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex.lock_shared(); }
    shared_lock(const shared_lock&) = delete;
    shared_lock& operator=(const shared_lock&) = delete;
    ~shared_lock() SPANLOCK_RELEASE_GENERIC() { mutex_.unlock_shared(); }

private:
    shared_mutex& mutex_;
};

} // namespace spanlock

#endif // SPANLOCK_HPP
