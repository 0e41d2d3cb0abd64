/* Reader-writer locks: both kinds, every kind of wait, exclusion, and the life of a lock. */
#include "check.h"
#include "spanlock.h"

static spanlock_rwlock standing = SPANLOCK_RWLOCK_INITIALIZER;
static spanlock_rwlock lenient = SPANLOCK_RWLOCK_INITIALIZER_READERS;
static spanlock_rwlock *lock;

static void *try_read(void *unused)
{
    int answer = spanlock_rwlock_try_read_lock(lock);
    (void)unused;
    if (answer == 0)
        OK(spanlock_rwlock_read_unlock(lock));
    return (void *)(intptr_t)answer;
}

static void *try_write(void *unused)
{
    int answer = spanlock_rwlock_try_write_lock(lock);
    (void)unused;
    if (answer == 0)
        OK(spanlock_rwlock_write_unlock(lock));
    return (void *)(intptr_t)answer;
}

#define ELSEWHERE(function) ((int)(intptr_t)on_thread(function, NULL))

static void *timed(void *unused)
{
    clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
    (void)unused;
    for (int i = 0; i < 2; i++) {
        struct timespec soon = in_ms(clocks[i], 20), past = in_ms(clocks[i], -1000);
        ANSWERS(ETIMEDOUT, spanlock_rwlock_timed_write_lock(lock, clocks[i], &soon));
        ANSWERS(ETIMEDOUT, spanlock_rwlock_timed_read_lock(lock, clocks[i], &past));
    }
    return NULL;
}

static void conflicts(void)
{
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 1000);
    OK(spanlock_rwlock_read_lock(lock));
    ANSWERS(0, ELSEWHERE(try_read));
    ANSWERS(EBUSY, ELSEWHERE(try_write));
    OK(spanlock_rwlock_read_unlock(lock));
    OK(spanlock_rwlock_write_lock(lock));
    ANSWERS(EBUSY, ELSEWHERE(try_read));
    ANSWERS(EBUSY, ELSEWHERE(try_write));
    on_thread(timed, NULL);
    OK(spanlock_rwlock_write_unlock(lock));
    OK(spanlock_rwlock_timed_read_lock(lock, CLOCK_MONOTONIC, &soon));
    OK(spanlock_rwlock_try_read_lock(lock)); /* Nobody waits, so a thread may read twice. */
    OK(spanlock_rwlock_read_unlock(lock));
    OK(spanlock_rwlock_read_unlock(lock));
    OK(spanlock_rwlock_timed_write_lock(lock, CLOCK_MONOTONIC, &soon));
    OK(spanlock_rwlock_write_unlock(lock));
}

enum { THREADS = 4, ROUNDS = 20000 };

static uint64_t first, second;

static void *work(void *argument)
{
    unsigned state = (unsigned)(size_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        state = state * 1103515245 + 12345;
        if ((state >> 16) % 50 == 0) {
            OK(spanlock_rwlock_write_lock(lock));
            first++;
            second++;
            OK(spanlock_rwlock_write_unlock(lock));
        } else {
            OK(spanlock_rwlock_read_lock(lock));
            CHECK(first == second);
            OK(spanlock_rwlock_read_unlock(lock));
        }
    }
    return NULL;
}

static void exclusion(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(first == second);
}

/* A thread reads again while a writer waits. */
static void *write_once(void *unused)
{
    (void)unused;
    OK(spanlock_rwlock_write_lock(lock));
    OK(spanlock_rwlock_write_unlock(lock));
    return NULL;
}

static void recursion(void)
{
    pthread_t writer;
    OK(spanlock_rwlock_read_lock(lock));
    CHECK(pthread_create(&writer, NULL, write_once, NULL) == 0);
    sleep_ms(30);
    OK(spanlock_rwlock_read_lock(lock));
    OK(spanlock_rwlock_read_unlock(lock));
    OK(spanlock_rwlock_read_unlock(lock));
    CHECK(pthread_join(writer, NULL) == 0);
}

int main(void)
{
    spanlock_rwlock *made = malloc(sizeof *made);
    alarm(100);
    CHECK(made != NULL);
    memset(made, 0x5a, sizeof *made);
    OK(spanlock_rwlock_init(made, SPANLOCK_RWLOCK_WRITERS));
    lock = &standing;
    conflicts();
    exclusion();
    lock = &lenient;
    conflicts();
    recursion();
    exclusion();
    for (int life = 0; life < 3; life++) {
        lock = made;
        conflicts();
        exclusion();
        OK(spanlock_rwlock_destroy(made));
        OK(spanlock_rwlock_init(made, life == 0 ? SPANLOCK_RWLOCK_READERS : SPANLOCK_RWLOCK_WRITERS));
    }
    free(made); /* A lock that nobody holds needs no end. */
    return 0;
}
