/* A process with two copies of the library: the program's, and one inside a plug-in. A lock of one is told by the other,
 * and each works by itself. Also the end of a plug-in while a thread of the library may still run in it. */
#include "check.h"
#include "spanlock.h"

#include <dlfcn.h>

struct plugin {
    int (*create)(spanlock_range_lock **);
    int (*destroy)(spanlock_range_lock *);
    int (*use_range)(spanlock_range_lock *);
    int (*submit)(spanlock_range_lock *);
    int (*use_rwlock)(spanlock_rwlock *);
    int (*use_owner)(spanlock_owner *, spanlock_range_lock *);
};

#ifdef PLUGIN
static int create(spanlock_range_lock **lock)
{
    return spanlock_range_lock_create(lock, NULL);
}

static int use_range(spanlock_range_lock *lock)
{
    spanlock_token token;
    int error = spanlock_range_lock_write(lock, spanlock_range_of(0, 10), &token);
    return error ? error : spanlock_range_lock_release(lock, &token);
}

static void granted(void *lock, spanlock_token token)
{
    OK(spanlock_range_lock_release(lock, &token));
}

static int submit(spanlock_range_lock *lock)
{
    spanlock_request request;
    return spanlock_range_lock_submit(lock, spanlock_range_of(0, 10), SPANLOCK_EXCLUSIVE, granted, lock, &request);
}

static int use_rwlock(spanlock_rwlock *lock)
{
    int error = spanlock_rwlock_read_lock(lock);
    return error ? error : spanlock_rwlock_read_unlock(lock);
}

static int use_owner(spanlock_owner *owner, spanlock_range_lock *lock)
{
    spanlock_token token;
    return spanlock_owner_lock(owner, lock, spanlock_range_of(0, 10), SPANLOCK_SHARED, &token);
}

const struct plugin plugin = { create, spanlock_range_lock_destroy, use_range, submit, use_rwlock, use_owner };
#else
int main(int count, char **arguments)
{
    static spanlock_rwlock first_here = SPANLOCK_RWLOCK_INITIALIZER, first_there = SPANLOCK_RWLOCK_INITIALIZER;
    spanlock_range_lock *here, *there;
    spanlock_owner *owner;
    spanlock_token token;
    alarm(100);
    CHECK(count == 2);
    void *handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle != NULL);
    const struct plugin *plugin = dlsym(handle, "plugin");
    CHECK(plugin != NULL);
    OK(spanlock_range_lock_create(&here, NULL));
    OK(plugin->create(&there));
    OK(plugin->use_range(there));
    ANSWERS(EXDEV, plugin->use_range(here));
    ANSWERS(EXDEV, plugin->submit(here));
    ANSWERS(EXDEV, plugin->destroy(here));
    ANSWERS(EXDEV, spanlock_range_lock_write(there, spanlock_range_of(0, 10), &token));
    OK(spanlock_rwlock_write_lock(&first_here));
    ANSWERS(EXDEV, plugin->use_rwlock(&first_here));
    OK(spanlock_rwlock_write_unlock(&first_here));
    OK(plugin->use_rwlock(&first_there));
    ANSWERS(EXDEV, spanlock_rwlock_write_lock(&first_there));
    ANSWERS(EXDEV, spanlock_rwlock_destroy(&first_there));
    OK(spanlock_owner_create(&owner, NULL));
    ANSWERS(EXDEV, plugin->use_owner(owner, there));
    ANSWERS(EXDEV, spanlock_owner_lock(owner, there, spanlock_range_of(0, 10), SPANLOCK_SHARED, &token));
    OK(spanlock_owner_destroy(owner));
    OK(plugin->submit(there));
    dlclose(handle); /* While a thread of its copy is about to call back. */
    sleep_ms(3000);
    OK(spanlock_range_lock_destroy(here));
    return 0;
}
#endif
