/* An owner releases without asking the loader for anything. Another thread may have the loader's lock, since it is in
 * dlopen, and wait for a range of the owner's, in a constructor. */
#include "check.h"
#include "spanlock.h"

static int holds;

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
    OK(spanlock_range_lock_create(&lock, NULL));
    OK(spanlock_range_lock_write(lock, spanlock_range_of(0, 10), &token));
    holds = 1;
    OK(spanlock_owner_create(&owner, NULL));
    OK(spanlock_owner_lock(owner, lock, spanlock_range_of(10, 20), SPANLOCK_EXCLUSIVE, &owned));
    OK(spanlock_owner_release_all(owner));
    OK(spanlock_owner_destroy(owner));
    OK(spanlock_range_lock_release(lock, &token));
    OK(spanlock_range_lock_destroy(lock));
    return 0;
}
