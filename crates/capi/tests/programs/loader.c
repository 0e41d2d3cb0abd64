/* An owner releases, and a request is submitted and waits, without asking the loader for anything. Another thread may
 * have the loader's lock, since it is in dlopen, and wait for a range of the owner's, in a constructor. */
#include "check.h"
#include "spanlock.h"

static int holds;

/* More than the stack of the library's threads has room for. */
static __thread volatile char large[1 << 20];

static void granted(void *lock, spanlock_token token)
{
    large[0] = 1;
    OK(spanlock_range_lock_release(lock, &token));
}

/* Waits in vain for what another thread holds: the library looks for deadlocks meanwhile. */
static void *wait_in_vain(void *lock)
{
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    spanlock_token token;
    ANSWERS(ETIMEDOUT, spanlock_range_lock_timed_write(lock, spanlock_range_of(0, 10), CLOCK_MONOTONIC, &soon, &token));
    return NULL;
}

/* In the place of the C library's. */
void *dlsym(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    CHECK(!holds);
    return NULL;
}

int main(void)
{
    spanlock_range_lock *lock;
    spanlock_owner *owner;
    spanlock_token token, owned;
    spanlock_request request;
    alarm(100);
    CHECK(setenv("SPANLOCK_DEADLOCKS", "report:1", 1) == 0);
    OK(spanlock_range_lock_create(&lock, NULL));
    OK(spanlock_range_lock_write(lock, spanlock_range_of(0, 10), &token));
    holds = 1;
    OK(spanlock_owner_create(&owner, NULL));
    OK(spanlock_owner_lock(owner, lock, spanlock_range_of(10, 20), SPANLOCK_EXCLUSIVE, &owned));
    OK(spanlock_owner_release_all(owner));
    OK(spanlock_owner_destroy(owner));
    OK(spanlock_range_lock_submit(lock, spanlock_range_of(0, 10), SPANLOCK_SHARED, granted, lock, &request));
    on_thread(wait_in_vain, lock);
    OK(spanlock_range_lock_release(lock, &token));
    while (spanlock_range_lock_destroy(lock) == EBUSY) { /* Until the request has been granted and released. */
    }
    return 0;
}
