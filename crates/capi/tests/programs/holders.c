/* Who holds ranges, and who is in the way: as fcntl's F_GETLK tells. Threads with the smallest stacks there are. */
#define _GNU_SOURCE
#include "check.h"
#include "spanlock.h"

#include <limits.h>
#include <sys/syscall.h>

static spanlock_range_lock *lock;

static spanlock_range to(uint64_t start, uint64_t end)
{
    return spanlock_range_of(start, end);
}

static int is(spanlock_holder it, uint64_t start, uint64_t end, uint32_t mode, uint32_t thread, uint32_t owner)
{
    return it.range.start == start && it.range.last == end - 1 && it.mode == mode && it.thread == thread &&
           it.owner == owner && it.reserved == 0;
}

static uint32_t this_thread(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/* What another thread is told is in its way. */
static void *blocker_of_all(void *holder)
{
    OK(spanlock_range_lock_blocker(lock, spanlock_range_all(), SPANLOCK_SHARED, NULL, holder));
    return NULL;
}

static void blockers(spanlock_owner *owner, spanlock_owner *other)
{
    spanlock_token by_thread, by_owner;
    spanlock_holder holder;
    uint32_t number;
    OK(spanlock_owner_number(owner, &number));
    OK(spanlock_range_lock_blocker(lock, spanlock_range_all(), SPANLOCK_EXCLUSIVE, NULL, &holder));
    CHECK(holder.mode == 0);
    OK(spanlock_range_lock_write(lock, to(50, 60), &by_thread));
    OK(spanlock_owner_lock(owner, lock, to(10, 20), SPANLOCK_SHARED, &by_owner));
    /* The first of those that conflict. */
    OK(spanlock_range_lock_blocker(lock, to(15, 55), SPANLOCK_EXCLUSIVE, other, &holder));
    CHECK(is(holder, 10, 20, SPANLOCK_SHARED, 0, number));
    OK(spanlock_range_lock_blocker(lock, to(15, 55), SPANLOCK_SHARED, other, &holder));
    CHECK(is(holder, 50, 60, SPANLOCK_EXCLUSIVE, this_thread(), 0));
    /* Nobody is in his own way. */
    OK(spanlock_range_lock_blocker(lock, to(0, 50), SPANLOCK_EXCLUSIVE, owner, &holder));
    CHECK(holder.mode == 0);
    OK(spanlock_range_lock_blocker(lock, spanlock_range_all(), SPANLOCK_SHARED, NULL, &holder));
    CHECK(holder.mode == 0);
    on_thread(blocker_of_all, &holder);
    CHECK(is(holder, 50, 60, SPANLOCK_EXCLUSIVE, this_thread(), 0));
    OK(spanlock_range_lock_blocker(lock, to(50, 50), SPANLOCK_EXCLUSIVE, other, &holder));
    CHECK(holder.mode == 0);
    OK(spanlock_range_lock_release(lock, &by_thread));
    OK(spanlock_owner_release(owner, lock, &by_owner));
}

static void lists(void)
{
    spanlock_token tokens[3];
    spanlock_holder holders[4] = { 0 };
    size_t needed;
    OK(spanlock_range_lock_holders(lock, spanlock_range_all(), NULL, 0, &needed));
    CHECK(needed == 0);
    OK(spanlock_range_lock_read(lock, to(40, 50), &tokens[0]));
    OK(spanlock_range_lock_write(lock, to(20, 30), &tokens[1]));
    OK(spanlock_range_lock_write(lock, spanlock_range_from(100), &tokens[2]));
    OK(spanlock_range_lock_holders(lock, spanlock_range_all(), holders, 4, &needed));
    CHECK(needed == 3 && holders[3].mode == 0);
    CHECK(is(holders[0], 20, 30, SPANLOCK_EXCLUSIVE, this_thread(), 0));
    CHECK(is(holders[1], 40, 50, SPANLOCK_SHARED, this_thread(), 0));
    CHECK(is(holders[2], 100, 0, SPANLOCK_EXCLUSIVE, this_thread(), 0));
    OK(spanlock_range_lock_holders(lock, to(45, 101), holders, 1, &needed));
    CHECK(needed == 2 && holders[0].range.start == 40);
    OK(spanlock_range_lock_holders(lock, to(30, 40), NULL, 0, NULL));
    for (int i = 0; i < 3; i++)
        OK(spanlock_range_lock_release(lock, &tokens[i]));
}

static void misuse(spanlock_owner *owner)
{
    spanlock_range reversed = { 5, 3 };
    spanlock_holder holder;
    size_t needed;
    ANSWERS(EINVAL, spanlock_range_lock_blocker(NULL, to(0, 1), SPANLOCK_SHARED, owner, &holder));
    ANSWERS(EINVAL, spanlock_range_lock_blocker(lock, to(0, 1), SPANLOCK_SHARED, owner, NULL));
    ANSWERS(EINVAL, spanlock_range_lock_blocker(lock, to(0, 1), 3, owner, &holder));
    ANSWERS(EINVAL, spanlock_range_lock_blocker(lock, reversed, SPANLOCK_SHARED, owner, &holder));
    CHECK(holder.mode == 0);
    ANSWERS(EINVAL, spanlock_range_lock_holders(NULL, to(0, 1), &holder, 1, &needed));
    ANSWERS(EINVAL, spanlock_range_lock_holders(lock, to(0, 1), NULL, 1, &needed));
    ANSWERS(EINVAL, spanlock_range_lock_holders(lock, reversed, &holder, 1, &needed));
}

static void *uses(void *owner)
{
    spanlock_token token;
    spanlock_holder holder;
    for (int i = 0; i < 20; i++) {
        OK(spanlock_range_lock_write(lock, to(0, 10), &token));
        OK(spanlock_range_lock_release(lock, &token));
        OK(spanlock_owner_lock(owner, lock, to(20, 30), SPANLOCK_SHARED, &token));
        OK(spanlock_owner_release(owner, lock, &token));
    }
    OK(spanlock_range_lock_blocker(lock, to(0, 10), SPANLOCK_SHARED, NULL, &holder));
    return NULL;
}

/* They find out what the first use by a thread costs, and wait. */
static void small_stacks(spanlock_owner *owner)
{
    enum { THREADS = 100 };
    pthread_t threads[THREADS];
    pthread_attr_t small;
    spanlock_token token;
    CHECK(pthread_attr_init(&small) == 0);
    CHECK(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN + (16 << 10)) == 0);
    OK(spanlock_range_lock_write(lock, spanlock_range_all(), &token));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &small, uses, owner) == 0);
    sleep_ms(5);
    OK(spanlock_range_lock_release(lock, &token));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    spanlock_owner *owner, *other;
    alarm(60);
    OK(spanlock_range_lock_create(&lock, NULL));
    OK(spanlock_owner_create(&owner, NULL));
    OK(spanlock_owner_create(&other, NULL));
    blockers(owner, other);
    lists();
    misuse(owner);
    small_stacks(owner);
    OK(spanlock_owner_destroy(owner));
    OK(spanlock_owner_destroy(other));
    OK(spanlock_range_lock_destroy(lock));
    return 0;
}
