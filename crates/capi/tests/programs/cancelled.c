/* No function is a point where a thread may be cancelled. */
#include "check.h"
#include "spanlock.h"

#include <sched.h>
#include <sys/eventfd.h>

static spanlock_rwlock rwlock = SPANLOCK_RWLOCK_INITIALIZER;
static int came_through, counter;

static void granted(void *lock, spanlock_token token)
{
    OK(spanlock_range_lock_release(lock, &token));
}

static void ranges(spanlock_range_lock *lock)
{
    spanlock_want wants[] = { { spanlock_range_of(20, 30), SPANLOCK_SHARED, 0 },
                              { spanlock_range_of(40, 50), SPANLOCK_EXCLUSIVE, 0 } };
    spanlock_token one, several;
    spanlock_request waiting, free;
    char text[1000];
    OK(spanlock_range_lock_write(lock, spanlock_range_of(0, 10), &one));
    OK(spanlock_range_lock_many(lock, wants, 2, &several));
    OK(spanlock_range_lock_submit(lock, spanlock_range_of(0, 10), SPANLOCK_SHARED, granted, lock, &waiting));
    OK(spanlock_range_lock_submit(lock, spanlock_range_of(60, 70), SPANLOCK_SHARED, granted, lock, &free));
    OK(spanlock_range_lock_snapshot(lock, text, sizeof text, NULL));
    OK(spanlock_range_lock_cancel(lock, waiting));
    OK(spanlock_range_lock_downgrade(lock, &one));
    OK(spanlock_range_lock_release(lock, &one));
    OK(spanlock_range_lock_release(lock, &several));
}

/* A debug build writes that a thread would wait for itself. */
static void deadlocks(spanlock_range_lock *lock)
{
    spanlock_token one, other;
    OK(spanlock_range_lock_write(lock, spanlock_range_of(0, 10), &one));
    ANSWERS(EDEADLK, spanlock_range_lock_write(lock, spanlock_range_of(5, 6), &other));
    OK(spanlock_range_lock_release(lock, &one));
    OK(spanlock_rwlock_write_lock(&rwlock));
    ANSWERS(EDEADLK, spanlock_rwlock_write_lock(&rwlock));
    OK(spanlock_rwlock_write_unlock(&rwlock));
}

/* The library's copy of the descriptor is closed by whoever is last: its own thread, or this one. */
static void eventfds(spanlock_range_lock *lock)
{
    for (int round = 0; round < 200; round++) {
        spanlock_request request;
        spanlock_token token;
        int error;
        OK(spanlock_range_lock_submit_fd(lock, spanlock_range_of(0, 10), SPANLOCK_EXCLUSIVE, counter,
                                         &request));
        while ((error = spanlock_range_lock_take(lock, request, &token)) == EINPROGRESS)
            sched_yield();
        OK(error);
        for (int yields = 0; yields < round; yields++)
            sched_yield();
        OK(spanlock_range_lock_release(lock, &token));
    }
}

static void owners(spanlock_range_lock *lock)
{
    spanlock_owner *owner, *other;
    spanlock_token token, rest;
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);
    OK(spanlock_owner_create(&owner, NULL));
    OK(spanlock_owner_create(&other, NULL));
    OK(spanlock_owner_lock(owner, lock, spanlock_range_of(80, 90), SPANLOCK_EXCLUSIVE, &token));
    ANSWERS(ETIMEDOUT, spanlock_owner_timed_lock(other, lock, spanlock_range_of(85, 86), SPANLOCK_SHARED,
                                                 CLOCK_MONOTONIC, &soon, &rest));
    OK(spanlock_owner_split(owner, lock, &token, 85, &rest));
    OK(spanlock_owner_cancel(owner));
    OK(spanlock_owner_release_all(owner));
    OK(spanlock_owner_destroy(owner));
    OK(spanlock_owner_destroy(other));
}

static void *read_until_free(void *unused)
{
    (void)unused;
    for (int round = 0; round < 1000; round++) {
        OK(spanlock_rwlock_read_lock(&rwlock));
        OK(spanlock_rwlock_read_unlock(&rwlock));
    }
    return NULL;
}

static void rwlocks(void)
{
    struct timespec soon;
    for (int round = 0; round < 1000; round++) {
        OK(spanlock_rwlock_read_lock(&rwlock)); /* So often that there is a bias. */
        OK(spanlock_rwlock_read_unlock(&rwlock));
    }
    for (int round = 0; round < 20; round++) {
        OK(spanlock_rwlock_write_lock(&rwlock));
        OK(spanlock_rwlock_write_unlock(&rwlock));
        soon = in_ms(CLOCK_REALTIME, 1000);
        OK(spanlock_rwlock_timed_read_lock(&rwlock, CLOCK_REALTIME, &soon));
        OK(spanlock_rwlock_read_unlock(&rwlock));
    }
}

/* It is cancelled from the start, and does everything all the same. */
static void *cancelled(void *unused)
{
    spanlock_range_lock *lock;
    (void)unused;
    CHECK(pthread_cancel(pthread_self()) == 0);
    OK(spanlock_range_lock_create(&lock, NULL));
    ranges(lock);
    deadlocks(lock);
    eventfds(lock);
    owners(lock);
    while (spanlock_range_lock_destroy(lock) == EBUSY) { /* Until the range that was free has been released. */
    }
    rwlocks();
    came_through = 1;
    pthread_testcancel();
    return NULL;
}

int main(void)
{
    pthread_t reader;
    alarm(100);
    counter = eventfd(0, 0);
    CHECK(counter >= 0);
    CHECK(setenv("SPANLOCK_DEADLOCKS", "often", 1) == 0); /* The library says that it knows no such value. */
    CHECK(pthread_create(&reader, NULL, read_until_free, NULL) == 0);
    CHECK(on_thread(cancelled, NULL) == PTHREAD_CANCELED);
    CHECK(came_through);
    CHECK(pthread_join(reader, NULL) == 0);
    return 0;
}
