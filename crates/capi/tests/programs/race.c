/* Races of a program's own, which the thread sanitizer must find: under a range lock, whose ranges are wrong, of
 * threads and of owners, and under a reader-writer lock. The argument says which; without one the program is correct. */
#include "check.h"
#include "spanlock.h"

#include <stdatomic.h>

static spanlock_range_lock *lock;
static spanlock_rwlock rwlock = SPANLOCK_RWLOCK_INITIALIZER;
static atomic_int inside;
static volatile int shared; /* Each change is an access of its own. */
static const char *wrong;

/* Waits for the other thread, in a way that orders nothing. */
static void meet(int threads)
{
    atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed);
    while (atomic_load_explicit(&inside, memory_order_relaxed) < threads)
        ;
}

/* More than once: the sanitizer may miss two accesses at the very same time. */
static void change(void)
{
    for (int i = 0; i < 1000; i++)
        shared++;
}

static void *by_range(void *argument)
{
    uint64_t start = *wrong == 'r' ? 10 * (uint64_t)(size_t)argument : 0;
    spanlock_token token;
    OK(spanlock_range_lock_write(lock, spanlock_range_of(start, start + 10), &token));
    if (*wrong == 'r')
        meet(2); /* Both hold their ranges, which do not overlap, though the data is the same. */
    change();
    OK(spanlock_range_lock_release(lock, &token));
    return NULL;
}

static void *by_owner(void *argument)
{
    uint64_t start = *wrong == 'o' ? 10 * (uint64_t)(size_t)argument : 0;
    spanlock_owner *owner;
    spanlock_token token;
    OK(spanlock_owner_create(&owner, NULL));
    OK(spanlock_owner_lock(owner, lock, spanlock_range_of(start, start + 10), SPANLOCK_EXCLUSIVE, &token));
    if (*wrong == 'o')
        meet(2); /* As above. */
    change();
    if (argument == NULL) {
        OK(spanlock_owner_release(owner, lock, &token));
    } else {
        OK(spanlock_owner_release_all(owner));
    }
    OK(spanlock_owner_destroy(owner));
    return NULL;
}

static void *by_rwlock(void *unused)
{
    (void)unused;
    if (*wrong == 'w') {
        OK(spanlock_rwlock_read_lock(&rwlock));
        meet(2); /* Both read, and write. */
        change();
        OK(spanlock_rwlock_read_unlock(&rwlock));
    } else {
        OK(spanlock_rwlock_write_lock(&rwlock));
        change();
        OK(spanlock_rwlock_write_unlock(&rwlock));
    }
    return NULL;
}

static void two(void *(*function)(void *))
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, function, (void *)i) == 0);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int count, char **arguments)
{
    alarm(100);
    wrong = count > 1 ? arguments[1] : "-";
    OK(spanlock_range_lock_create(&lock, NULL));
    if (*wrong == 'r' || *wrong == '-')
        two(by_range);
    if (*wrong == 'o' || *wrong == '-')
        two(by_owner);
    if (*wrong == 'w' || *wrong == '-')
        two(by_rwlock);
    OK(spanlock_range_lock_destroy(lock));
    return shared > 0 ? 0 : 1;
}
