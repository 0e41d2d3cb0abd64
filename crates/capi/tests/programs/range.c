/* Range locks: what conflicts and what does not, every kind of wait, many ranges, downgrades, listings, exclusion. */
#include "check.h"
#include "spanlock.h"

static spanlock_range_lock *lock;

static spanlock_range to(uint64_t start, uint64_t end)
{
    return spanlock_range_of(start, end);
}

/* What another thread is answered that tries. */
struct attempt {
    spanlock_range range;
    int is_write;
};

static void *attempt(void *argument)
{
    struct attempt *it = argument;
    spanlock_token token;
    int answer = it->is_write ? spanlock_range_lock_try_write(lock, it->range, &token)
                              : spanlock_range_lock_try_read(lock, it->range, &token);
    if (answer == 0)
        OK(spanlock_range_lock_release(lock, &token));
    return (void *)(intptr_t)answer;
}

static int try_elsewhere(int is_write, spanlock_range range)
{
    struct attempt it = { range, is_write };
    return (int)(intptr_t)on_thread(attempt, &it);
}

static void conflicts(void)
{
    spanlock_token write, read, more, all;
    OK(spanlock_range_lock_write(lock, to(10, 20), &write));
    OK(spanlock_range_lock_read(lock, to(20, 30), &read));
    ANSWERS(EBUSY, try_elsewhere(0, to(19, 20)));
    ANSWERS(EBUSY, try_elsewhere(1, to(0, 11)));
    ANSWERS(0, try_elsewhere(1, to(0, 10)));
    ANSWERS(0, try_elsewhere(0, to(25, 100)));
    ANSWERS(EBUSY, try_elsewhere(1, to(29, 30)));
    ANSWERS(0, try_elsewhere(1, to(30, 40)));
    OK(spanlock_range_lock_read(lock, to(25, 26), &more));
    OK(spanlock_range_lock_downgrade(lock, &write));
    OK(spanlock_range_lock_downgrade(lock, &write)); /* It is shared already. */
    ANSWERS(0, try_elsewhere(0, to(10, 20)));
    ANSWERS(EBUSY, try_elsewhere(1, to(10, 20)));
    OK(spanlock_range_lock_release(lock, &write));
    OK(spanlock_range_lock_release(lock, &read));
    OK(spanlock_range_lock_release(lock, &more));
    CHECK(more.opaque[0] == 0 && more.opaque[1] == 0);
    OK(spanlock_range_lock_write(lock, spanlock_range_all(), &all));
    ANSWERS(EBUSY, try_elsewhere(0, spanlock_range_from(UINT64_MAX)));
    ANSWERS(EBUSY, try_elsewhere(0, to(0, 1)));
    OK(spanlock_range_lock_release(lock, &all));
}

/* An empty range is granted at once, whatever is held. */
static void empty(void)
{
    spanlock_token all, nothing;
    uint64_t at[] = { 0, 1, 7, UINT64_MAX };
    OK(spanlock_range_lock_write(lock, spanlock_range_all(), &all));
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        OK(spanlock_range_lock_write(lock, to(at[i], at[i]), &nothing));
        OK(spanlock_range_lock_downgrade(lock, &nothing));
        OK(spanlock_range_lock_release(lock, &nothing));
    }
    OK(spanlock_range_lock_release(lock, &all));
}

static void *timed(void *argument)
{
    clockid_t clock = *(clockid_t *)argument;
    struct timespec soon = in_ms(clock, 30), past = in_ms(clock, -1000), now;
    spanlock_token token;
    spanlock_want want = { to(5, 6), SPANLOCK_EXCLUSIVE, 0 };
    ANSWERS(ETIMEDOUT, spanlock_range_lock_timed_write(lock, to(0, 10), clock, &soon, &token));
    clock_gettime(clock, &now);
    CHECK(now.tv_sec > soon.tv_sec || (now.tv_sec == soon.tv_sec && now.tv_nsec >= soon.tv_nsec));
    ANSWERS(ETIMEDOUT, spanlock_range_lock_timed_read(lock, to(0, 10), clock, &past, &token));
    ANSWERS(ETIMEDOUT, spanlock_range_lock_timed_many(lock, &want, 1, clock, &past, &token));
    OK(spanlock_range_lock_timed_read(lock, to(10, 20), clock, &past, &token));
    OK(spanlock_range_lock_release(lock, &token));
    return NULL;
}

static void deadlines(void)
{
    clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
    spanlock_token token;
    OK(spanlock_range_lock_write(lock, to(0, 10), &token));
    for (int i = 0; i < 2; i++)
        on_thread(timed, &clocks[i]);
    OK(spanlock_range_lock_release(lock, &token));
}

static void many(void)
{
    spanlock_want wants[] = {
        { to(40, 50), SPANLOCK_EXCLUSIVE, 0 },
        { to(0, 10), SPANLOCK_EXCLUSIVE, 0 },
        { to(5, 20), SPANLOCK_EXCLUSIVE, 0 },
        { to(30, 30), SPANLOCK_EXCLUSIVE, 0 },
    };
    spanlock_token token, one;
    OK(spanlock_range_lock_many(lock, wants, 4, &token));
    ANSWERS(EBUSY, try_elsewhere(0, to(15, 16)));
    ANSWERS(EBUSY, try_elsewhere(0, to(49, 100)));
    ANSWERS(0, try_elsewhere(1, to(20, 40)));
    OK(spanlock_range_lock_downgrade(lock, &token));
    OK(spanlock_range_lock_downgrade(lock, &token));
    ANSWERS(0, try_elsewhere(0, to(0, 100)));
    ANSWERS(EBUSY, try_elsewhere(1, to(45, 46)));
    OK(spanlock_range_lock_release(lock, &token));
    OK(spanlock_range_lock_try_many(lock, NULL, 0, &token));
    OK(spanlock_range_lock_release(lock, &token));
    OK(spanlock_range_lock_write(lock, to(45, 46), &one));
    ANSWERS(EBUSY, spanlock_range_lock_try_many(lock, wants, 4, &token));
    ANSWERS(EDEADLK, spanlock_range_lock_many(lock, wants, 4, &token));
    OK(spanlock_range_lock_release(lock, &one));
}

static void listing(void)
{
    char text[200], cut[10];
    size_t needed;
    spanlock_token token;
    OK(spanlock_range_lock_write(lock, to(3, 5), &token));
    OK(spanlock_range_lock_snapshot(lock, text, sizeof text, &needed));
    CHECK(strstr(text, "3..=4 exclusive") != NULL);
    CHECK(needed == strlen(text) + 1);
    OK(spanlock_range_lock_snapshot(lock, cut, sizeof cut, NULL));
    CHECK(strlen(cut) == 9 && strncmp(cut, text, 9) == 0);
    OK(spanlock_range_lock_snapshot(lock, NULL, 0, &needed));
    CHECK(needed == strlen(text) + 1);
    OK(spanlock_range_lock_release(lock, &token));
}

/* Many holds at a time, released in another order. */
static void transaction(void)
{
    enum { HELD = 300 };
    spanlock_token tokens[HELD];
    for (int i = 0; i < HELD; i++)
        OK(spanlock_range_lock_write(lock, to(2 * (uint64_t)i, 2 * (uint64_t)i + 1), &tokens[i]));
    for (int i = 0; i < HELD; i += 2)
        OK(spanlock_range_lock_release(lock, &tokens[i]));
    for (int i = 0; i < HELD; i += 2)
        OK(spanlock_range_lock_read(lock, to(2 * (uint64_t)i, 2 * (uint64_t)i + 1), &tokens[i]));
    for (int i = HELD - 1; i >= 0; i--)
        OK(spanlock_range_lock_release(lock, &tokens[i]));
}

/* Each thread adds to some slots of an array, under a lock of their range, and sums others. */
enum { THREADS = 4, SLOTS = 16 };

static uint64_t slots[SLOTS], added[THREADS];

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1103515245 + 12345;
    return (*state >> 16) % below;
}

static void *work(void *argument)
{
    size_t me = (size_t)argument;
    unsigned state = (unsigned)me + 1, rounds = 4000;
    for (unsigned round = 0; round < rounds; round++) {
        unsigned start = draw(&state, SLOTS), end = start + 1 + draw(&state, SLOTS - start);
        spanlock_token token;
        if (draw(&state, 3) == 0) {
            uint64_t first = 0, second = 0;
            OK(spanlock_range_lock_read(lock, to(start, end), &token));
            for (unsigned i = start; i < end; i++)
                first += slots[i];
            for (unsigned i = start; i < end; i++)
                second += slots[i];
            CHECK(first == second);
        } else {
            OK(spanlock_range_lock_write(lock, to(start, end), &token));
            for (unsigned i = start; i < end; i++)
                slots[i]++;
            added[me] += end - start;
        }
        OK(spanlock_range_lock_release(lock, &token));
    }
    return NULL;
}

static void exclusion(void)
{
    pthread_t threads[THREADS];
    uint64_t sum = 0, expected = 0;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < SLOTS; i++)
        sum += slots[i];
    for (size_t i = 0; i < THREADS; i++)
        expected += added[i];
    CHECK(sum == expected);
}

int main(void)
{
    spanlock_range_lock_options options[] = {
        SPANLOCK_RANGE_LOCK_OPTIONS,
        { sizeof options[0], 5000000, SPANLOCK_FAIR, 0 },
        { sizeof options[0], 0, SPANLOCK_UNFAIR, 0 },
    };
    alarm(100);
    CHECK(strcmp(spanlock_version(), SPANLOCK_VERSION) == 0);
    for (int i = -1; i < 3; i++) {
        OK(spanlock_range_lock_create(&lock, i < 0 ? NULL : &options[i]));
        conflicts();
        empty();
        deadlines();
        many();
        listing();
        transaction();
        memset(slots, 0, sizeof slots);
        memset(added, 0, sizeof added);
        exclusion();
        OK(spanlock_range_lock_destroy(lock));
    }
    return 0;
}
