/* Each misuse that can be told is told, and changes nothing. */
#include "check.h"
#include "spanlock.h"

#include <fcntl.h>
#include <sys/epoll.h>

static spanlock_range_lock *lock, *other;
static spanlock_rwlock rwlock = SPANLOCK_RWLOCK_INITIALIZER;

static spanlock_range to(uint64_t start, uint64_t end)
{
    return spanlock_range_of(start, end);
}

static void null_pointers(void)
{
    spanlock_token token;
    spanlock_request request;
    spanlock_range range = to(0, 1);
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 10);
    ANSWERS(EINVAL, spanlock_range_lock_create(NULL, NULL));
    ANSWERS(EINVAL, spanlock_range_lock_destroy(NULL));
    ANSWERS(EINVAL, spanlock_range_lock_read(NULL, range, &token));
    ANSWERS(EINVAL, spanlock_range_lock_read(lock, range, NULL));
    ANSWERS(EINVAL, spanlock_range_lock_timed_read(lock, range, CLOCK_MONOTONIC, NULL, &token));
    ANSWERS(EINVAL, spanlock_range_lock_many(lock, NULL, 1, &token));
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, NULL));
    ANSWERS(EINVAL, spanlock_range_lock_release(NULL, &token));
    ANSWERS(EINVAL, spanlock_range_lock_downgrade(lock, NULL));
    ANSWERS(EINVAL, spanlock_range_lock_snapshot(lock, NULL, 10, NULL));
    ANSWERS(EINVAL, spanlock_range_lock_submit(lock, range, SPANLOCK_SHARED, NULL, NULL, &request));
    ANSWERS(EINVAL, spanlock_range_lock_submit_fd(lock, range, SPANLOCK_SHARED, 0, NULL));
    ANSWERS(EINVAL, spanlock_rwlock_init(NULL, SPANLOCK_RWLOCK_WRITERS));
    ANSWERS(EINVAL, spanlock_rwlock_destroy(NULL));
    ANSWERS(EINVAL, spanlock_rwlock_read_lock(NULL));
    ANSWERS(EINVAL, spanlock_rwlock_write_unlock(NULL));
    ANSWERS(EINVAL, spanlock_rwlock_timed_write_lock(&rwlock, CLOCK_MONOTONIC, NULL));
    ANSWERS(EINVAL, spanlock_rwlock_timed_write_lock(NULL, CLOCK_MONOTONIC, &soon));
}

static void arguments(void)
{
    spanlock_token token;
    spanlock_request request;
    int descriptor, pipes[2];
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 10), odd = { 0, 1000000000 }, negative = { 0, -1 };
    spanlock_want wants[] = { { to(0, 1), 7, 0 } };
    spanlock_range reversed[] = { to(5, 3), to(1, 0), to(5, 0), to(UINT64_MAX, 0), { 2, 0 }, { UINT64_MAX, 5 } };
    for (size_t i = 0; i < sizeof reversed / sizeof *reversed; i++) {
        ANSWERS(EINVAL, spanlock_range_lock_write(lock, reversed[i], &token));
        CHECK(token.opaque[0] == 0);
    }
    ANSWERS(EINVAL, spanlock_range_lock_many(lock, wants, 1, &token));
    wants[0] = (spanlock_want){ to(0, 1), SPANLOCK_SHARED, 1 };
    ANSWERS(EINVAL, spanlock_range_lock_many(lock, wants, 1, &token));
    ANSWERS(EINVAL, spanlock_range_lock_timed_read(lock, to(0, 1), 99, &soon, &token));
    ANSWERS(EINVAL, spanlock_range_lock_timed_read(lock, to(0, 1), CLOCK_MONOTONIC, &odd, &token));
    ANSWERS(EINVAL, spanlock_rwlock_timed_read_lock(&rwlock, CLOCK_REALTIME, &negative));
    ANSWERS(EINVAL, spanlock_rwlock_init(&rwlock, 2));
    ANSWERS(EINVAL, spanlock_range_lock_submit_fd(lock, to(0, 1), 0, 0, &request));
    ANSWERS(EBADF, spanlock_range_lock_submit_fd(lock, to(0, 1), SPANLOCK_SHARED, -1, &request));
    descriptor = open("/dev/null", O_WRONLY);
    ANSWERS(EINVAL, spanlock_range_lock_submit_fd(lock, to(0, 1), SPANLOCK_SHARED, descriptor, &request));
    close(descriptor);
    descriptor = epoll_create1(0);
    ANSWERS(EINVAL, spanlock_range_lock_submit_fd(lock, to(0, 1), SPANLOCK_SHARED, descriptor, &request));
    close(descriptor);
    CHECK(pipe(pipes) == 0);
    ANSWERS(EBADF, spanlock_range_lock_submit_fd(lock, to(0, 1), SPANLOCK_SHARED, pipes[0], &request));
    close(pipes[0]);
    close(pipes[1]);
}

static void options(void)
{
    struct {
        spanlock_range_lock_options now;
        uint64_t later;
    } longer = { { sizeof longer, 0, SPANLOCK_FAIR, 0 }, 0 };
    spanlock_range_lock_options bad[] = {
        { 0, 0, 0, 0 },
        { 8, 0, 0, 0 },
        { sizeof bad[0], 0, 9, 0 },
        { sizeof bad[0], 1, SPANLOCK_UNFAIR, 0 },
        { sizeof bad[0], 0, 0, 1 },
    };
    spanlock_range_lock *made;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ANSWERS(EINVAL, spanlock_range_lock_create(&made, &bad[i]));
        CHECK(made == NULL);
    }
    OK(spanlock_range_lock_create(&made, &longer.now));
    OK(spanlock_range_lock_destroy(made));
    longer.later = 1; /* A field that this version does not know. */
    ANSWERS(ENOTSUP, spanlock_range_lock_create(&made, &longer.now));
}

/* A token of this thread, released by another. */
static void *release(void *token)
{
    return (void *)(intptr_t)spanlock_range_lock_release(lock, token);
}

static void *downgrade(void *token)
{
    return (void *)(intptr_t)spanlock_range_lock_downgrade(lock, token);
}

static void *acquire(void *token)
{
    return (void *)(intptr_t)spanlock_range_lock_write(lock, to(100, 110), token);
}

static void tokens(void)
{
    spanlock_token token, copy, made_up, zero = { { 0, 0 } }, leaked;
    OK(spanlock_range_lock_write(lock, to(0, 10), &token));
    copy = token;
    ANSWERS(EINVAL, spanlock_range_lock_release(other, &token));
    ANSWERS(EINVAL, spanlock_range_lock_downgrade(other, &token));
    CHECK((intptr_t)on_thread(release, &token) == EPERM);
    CHECK((intptr_t)on_thread(downgrade, &token) == EPERM);
    ANSWERS(EBUSY, spanlock_range_lock_destroy(lock));
    OK(spanlock_range_lock_release(lock, &token));
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &token));
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &copy));
    ANSWERS(EINVAL, spanlock_range_lock_downgrade(lock, &copy));
    /* Its place is used again: the copy does not count for what is there now. */
    OK(spanlock_range_lock_write(lock, to(0, 10), &token));
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &copy));
    for (unsigned bit = 0; bit < 128; bit++) {
        int answer;
        made_up = token;
        made_up.opaque[bit / 64] ^= UINT64_C(1) << bit % 64;
        answer = spanlock_range_lock_release(lock, &made_up);
        CHECK(answer == EINVAL || answer == EPERM);
    }
    for (int byte = 1; byte < 256; byte++) { /* No thread has such a number. */
        memset(&made_up, byte, sizeof made_up);
        ANSWERS(EINVAL, spanlock_range_lock_release(lock, &made_up));
        ANSWERS(EINVAL, spanlock_range_lock_downgrade(lock, &made_up));
    }
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &zero));
    OK(spanlock_range_lock_release(lock, &token));
    /* What a thread holds when it exits stays held, and is nobody else's. */
    CHECK((intptr_t)on_thread(acquire, &leaked) == 0);
    ANSWERS(EPERM, spanlock_range_lock_release(lock, &leaked));
    ANSWERS(EBUSY, spanlock_range_lock_try_read(lock, to(109, 110), &token));
    ANSWERS(EBUSY, spanlock_range_lock_destroy(lock));
}

static void waiting_for_oneself(void)
{
    spanlock_token write, read, token;
    struct timespec late = in_ms(CLOCK_MONOTONIC, 1000000);
    OK(spanlock_range_lock_write(other, to(0, 10), &write));
    OK(spanlock_range_lock_read(other, to(10, 20), &read));
    ANSWERS(EDEADLK, spanlock_range_lock_write(other, to(5, 6), &token));
    ANSWERS(EDEADLK, spanlock_range_lock_read(other, to(9, 11), &token));
    ANSWERS(EDEADLK, spanlock_range_lock_timed_write(other, to(15, 30), CLOCK_MONOTONIC, &late, &token));
    OK(spanlock_range_lock_read(other, to(15, 30), &token));
    OK(spanlock_range_lock_release(other, &token));
    OK(spanlock_range_lock_release(other, &write));
    OK(spanlock_range_lock_release(other, &read));
}

static void *read_unlock(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)spanlock_rwlock_read_unlock(&rwlock);
}

static void *write_unlock(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)spanlock_rwlock_write_unlock(&rwlock);
}

static void rwlocks(void)
{
    struct timespec late = in_ms(CLOCK_MONOTONIC, 1000000);
    spanlock_rwlock rubbish;
    ANSWERS(EPERM, spanlock_rwlock_read_unlock(&rwlock));
    ANSWERS(EPERM, spanlock_rwlock_write_unlock(&rwlock));
    OK(spanlock_rwlock_write_lock(&rwlock));
    ANSWERS(EDEADLK, spanlock_rwlock_write_lock(&rwlock));
    ANSWERS(EDEADLK, spanlock_rwlock_read_lock(&rwlock));
    ANSWERS(EDEADLK, spanlock_rwlock_timed_read_lock(&rwlock, CLOCK_MONOTONIC, &late));
    ANSWERS(EBUSY, spanlock_rwlock_try_read_lock(&rwlock));
    ANSWERS(EBUSY, spanlock_rwlock_destroy(&rwlock));
    ANSWERS(EPERM, spanlock_rwlock_read_unlock(&rwlock));
    CHECK((intptr_t)on_thread(read_unlock, NULL) == EPERM);
    CHECK((intptr_t)on_thread(write_unlock, NULL) == EPERM);
    OK(spanlock_rwlock_write_unlock(&rwlock));
    ANSWERS(EPERM, spanlock_rwlock_write_unlock(&rwlock));
    OK(spanlock_rwlock_read_lock(&rwlock));
    ANSWERS(EBUSY, spanlock_rwlock_destroy(&rwlock));
    ANSWERS(EPERM, spanlock_rwlock_write_unlock(&rwlock));
    CHECK((intptr_t)on_thread(read_unlock, NULL) == EPERM);
    OK(spanlock_rwlock_read_unlock(&rwlock));
    ANSWERS(EPERM, spanlock_rwlock_read_unlock(&rwlock));
    OK(spanlock_rwlock_destroy(&rwlock));
    ANSWERS(EINVAL, spanlock_rwlock_read_lock(&rwlock));
    ANSWERS(EINVAL, spanlock_rwlock_try_write_lock(&rwlock));
    ANSWERS(EINVAL, spanlock_rwlock_destroy(&rwlock));
    memset(&rubbish, 0x5a, sizeof rubbish);
    ANSWERS(EINVAL, spanlock_rwlock_write_lock(&rubbish));
    ANSWERS(EINVAL, spanlock_rwlock_init((spanlock_rwlock *)((char *)&rubbish + 1), SPANLOCK_RWLOCK_WRITERS));
    ANSWERS(EINVAL, spanlock_range_lock_destroy((spanlock_range_lock *)&rubbish));
}

/* Tokens of one range, of none and of several, released in every order. Each is told when it comes again. */
static void every_order(void)
{
    enum { HELD = 4, ORDERS = 24 };
    spanlock_want wants[] = { { to(10, 20), SPANLOCK_SHARED, 0 }, { to(30, 40), SPANLOCK_EXCLUSIVE, 0 } };
    for (unsigned first = 0; first < HELD; first++)
        for (unsigned order = 0; order < ORDERS; order++) {
            unsigned left = order, held[HELD] = { 0, 1, 2, 3 };
            spanlock_token tokens[HELD], copies[HELD];
            for (unsigned i = 0; i < HELD; i++) {
                unsigned which = (first + i) % HELD;
                if (which == 0)
                    OK(spanlock_range_lock_write(other, to(0, 10), &tokens[i]));
                else if (which == 1)
                    OK(spanlock_range_lock_read(other, to(5, 5), &tokens[i]));
                else if (which == 2)
                    OK(spanlock_range_lock_many(other, wants, 2, &tokens[i]));
                else
                    OK(spanlock_range_lock_read(other, to(50, 60), &tokens[i]));
                copies[i] = tokens[i];
            }
            for (unsigned count = HELD; count > 0; count--) {
                unsigned at = left % count, i = held[at];
                left /= count;
                held[at] = held[count - 1];
                OK(spanlock_range_lock_release(other, &tokens[i]));
                for (unsigned twice = 0; twice < 2; twice++)
                    ANSWERS(EINVAL, spanlock_range_lock_release(other, twice ? &copies[i] : &tokens[i]));
                ANSWERS(EINVAL, spanlock_range_lock_release(NULL, &copies[i]));
            }
            OK(spanlock_range_lock_try_write(other, spanlock_range_all(), &tokens[0]));
            OK(spanlock_range_lock_release(other, &tokens[0]));
        }
}

/* A thread holds locks of both kinds, in both modes, and releases them in every order. */
static void several(void)
{
    enum { LOCKS = 4, ORDERS = 24 };
    spanlock_rwlock locks[LOCKS];
    for (unsigned kinds = 0; kinds < 1u << LOCKS; kinds++)
        for (unsigned writes = 0; writes < 1u << LOCKS; writes++)
            for (unsigned order = 0; order < ORDERS; order++) {
                unsigned left = order, held[LOCKS] = { 0, 1, 2, 3 };
                for (unsigned i = 0; i < LOCKS; i++) {
                    OK(spanlock_rwlock_init(&locks[i], kinds >> i & 1));
                    OK(writes >> i & 1 ? spanlock_rwlock_write_lock(&locks[i])
                                       : spanlock_rwlock_read_lock(&locks[i]));
                }
                for (unsigned count = LOCKS; count > 0; count--) {
                    unsigned at = left % count, i = held[at];
                    left /= count;
                    held[at] = held[count - 1];
                    ANSWERS(EPERM, writes >> i & 1 ? spanlock_rwlock_read_unlock(&locks[i])
                                                   : spanlock_rwlock_write_unlock(&locks[i]));
                    ANSWERS(EDEADLK, spanlock_rwlock_write_lock(&locks[i]));
                    ANSWERS(EBUSY, spanlock_rwlock_destroy(&locks[i]));
                    OK(writes >> i & 1 ? spanlock_rwlock_write_unlock(&locks[i])
                                       : spanlock_rwlock_read_unlock(&locks[i]));
                    ANSWERS(EPERM, spanlock_rwlock_read_unlock(&locks[i]));
                    ANSWERS(EPERM, spanlock_rwlock_write_unlock(&locks[i]));
                    OK(spanlock_rwlock_destroy(&locks[i]));
                }
            }
}

int main(void)
{
    alarm(100);
    OK(spanlock_range_lock_create(&lock, NULL));
    OK(spanlock_range_lock_create(&other, NULL));
    null_pointers();
    arguments();
    options();
    waiting_for_oneself();
    tokens();
    every_order();
    rwlocks();
    several();
    OK(spanlock_range_lock_destroy(other));
    return 0;
}
