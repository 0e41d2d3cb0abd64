/* The library's own threads handle no signals of the program's. */
#include "check.h"
#include "spanlock.h"

#include <signal.h>

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled = 1;
}

static void granted(void *lock, spanlock_token token)
{
    OK(spanlock_range_lock_release(lock, &token));
}

/* Waits in vain for what another thread holds: the library looks for deadlocks meanwhile. */
static void *wait(void *lock)
{
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    spanlock_token token;
    ANSWERS(ETIMEDOUT, spanlock_range_lock_timed_write(lock, spanlock_range_of(0, 10), CLOCK_MONOTONIC, &soon, &token));
    return NULL;
}

int main(void)
{
    spanlock_range_lock *lock;
    spanlock_token token;
    spanlock_request request;
    sigset_t all, pending;
    alarm(100);
    CHECK(setenv("SPANLOCK_DEADLOCKS", "report:1", 1) == 0);
    CHECK(signal(SIGUSR1, handle) != SIG_ERR);
    OK(spanlock_range_lock_create(&lock, NULL));
    OK(spanlock_range_lock_write(lock, spanlock_range_of(0, 10), &token));
    on_thread(wait, lock);
    OK(spanlock_range_lock_submit(lock, spanlock_range_of(0, 10), SPANLOCK_SHARED, granted, lock, &request));
    /* Now this is the program's only thread, and takes none: a signal stays pending, unless the library takes it. */
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    sleep_ms(100);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) && !handled);
    OK(spanlock_range_lock_release(lock, &token));
    return 0;
}
