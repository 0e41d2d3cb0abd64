/* Locks over keys: ends of ranges, orders, owners, conversions, parts, who is in the way, waits, misuse. */
#include "check.h"
#include "spanlock.h"

#include <strings.h>

#define SHARED SPANLOCK_SHARED
#define ALONE SPANLOCK_EXCLUSIVE
#define WITH SPANLOCK_INCLUDED
#define WITHOUT SPANLOCK_EXCLUDED
#define OPEN SPANLOCK_UNBOUNDED

static spanlock_key_lock *lock;
static spanlock_owner *one, *two;

static spanlock_key_range range(uint32_t start_kind, const char *start, const char *end, uint32_t end_kind)
{
    spanlock_key_range range = { start, strlen(start), end, strlen(end), start_kind, end_kind };
    return range;
}

static spanlock_key_range to(const char *start, const char *last)
{
    return range(WITH, start, last, WITH);
}

/* What an owner is answered that tries. */
static int tries(spanlock_owner *owner, uint32_t mode, spanlock_key_range range)
{
    spanlock_token token;
    int answer = spanlock_key_lock_try_acquire(lock, owner, &range, mode, &token);
    if (answer == 0)
        OK(spanlock_key_lock_release(lock, owner, &token));
    else
        CHECK(token.opaque[0] == 0 && token.opaque[1] == 0);
    return answer;
}

static spanlock_token holds(spanlock_owner *owner, uint32_t mode, spanlock_key_range range)
{
    spanlock_token token;
    OK(spanlock_key_lock_acquire(lock, owner, &range, mode, &token));
    return token;
}

static void ends(void)
{
    spanlock_key_range everything = { NULL, 0, NULL, 0, OPEN, OPEN };
    spanlock_token token = holds(one, ALONE, range(WITH, "b", "d", WITHOUT));
    ANSWERS(EBUSY, tries(two, SHARED, to("b", "b")));
    ANSWERS(EBUSY, tries(two, SHARED, to("czz", "czz")));
    ANSWERS(EBUSY, tries(two, SHARED, everything));
    ANSWERS(0, tries(two, ALONE, to("d", "d")));
    ANSWERS(0, tries(two, ALONE, range(WITHOUT, "d", "", OPEN)));
    ANSWERS(0, tries(two, ALONE, range(OPEN, "", "b", WITHOUT)));
    OK(spanlock_key_lock_release(lock, one, &token));
    ANSWERS(EINVAL, spanlock_key_lock_release(lock, one, &token));

    token = holds(one, ALONE, range(WITHOUT, "b", "", OPEN));
    ANSWERS(0, tries(two, ALONE, to("b", "b")));
    ANSWERS(EBUSY, tries(two, ALONE, to("b", "ba")));
    OK(spanlock_key_lock_release(lock, one, &token));

    /* Empty, and reversed. */
    token = holds(one, ALONE, everything);
    ANSWERS(0, tries(two, ALONE, range(WITH, "b", "b", WITHOUT)));
    ANSWERS(0, tries(two, ALONE, range(WITHOUT, "b", "b", WITH)));
    ANSWERS(EINVAL, tries(two, ALONE, range(WITHOUT, "b", "b", WITHOUT)));
    ANSWERS(EINVAL, tries(two, ALONE, to("c", "b")));
    ANSWERS(EINVAL, tries(two, ALONE, range(3, "b", "c", WITH)));
    OK(spanlock_key_lock_release(lock, one, &token));

    /* Keys have zeros and any length. */
    spanlock_key_range zero = { "a\0b", 3, "a\0b", 3, WITH, WITH };
    token = holds(one, ALONE, zero);
    ANSWERS(0, tries(two, ALONE, to("a", "a")));
    ANSWERS(EBUSY, tries(two, ALONE, to("a", "b")));
    OK(spanlock_key_lock_release(lock, one, &token));
    spanlock_key_range none = { "", 0, NULL, 0, WITH, WITH };
    token = holds(one, ALONE, none);
    ANSWERS(EBUSY, tries(two, ALONE, to("", "a")));
    OK(spanlock_key_lock_release(lock, one, &token));
}

struct seen {
    int count;
    spanlock_key_holder first;
    char start[8], end[8];
};

static void see(void *argument, const spanlock_key_holder *holder)
{
    struct seen *seen = argument;
    if (seen->count++ == 0) {
        seen->first = *holder;
        memcpy(seen->start, holder->range.start, holder->range.start_size);
        memcpy(seen->end, holder->range.end, holder->range.end_size);
    }
    ANSWERS(EBUSY, tries(two, ALONE, to("b", "k"))); /* It may use the lock. */
}

static struct seen in_the_way(spanlock_owner *owner, uint32_t mode, spanlock_key_range range)
{
    struct seen seen;
    memset(&seen, 0, sizeof seen);
    OK(spanlock_key_lock_blockers(lock, &range, mode, owner, see, &seen));
    return seen;
}

static void conversions(void)
{
    uint32_t number;
    spanlock_key_range part = range(WITH, "d", "f", WITHOUT);
    spanlock_token rest, token = holds(one, SHARED, to("b", "k"));
    ANSWERS(0, tries(two, SHARED, to("a", "z")));
    OK(spanlock_key_lock_convert(lock, one, &token, &part, ALONE));
    ANSWERS(0, tries(two, SHARED, to("f", "z")));
    ANSWERS(EBUSY, tries(two, SHARED, to("d", "d")));

    struct seen seen = in_the_way(two, SHARED, to("a", "z"));
    OK(spanlock_owner_number(one, &number));
    CHECK(seen.count == 1 && seen.first.owner == number && seen.first.mode == ALONE);
    CHECK(strcmp(seen.start, "d") == 0 && strcmp(seen.end, "f") == 0);
    CHECK(seen.first.range.start_kind == WITH && seen.first.range.end_kind == WITHOUT);
    CHECK(in_the_way(one, ALONE, to("a", "z")).count == 0);
    CHECK(in_the_way(NULL, ALONE, to("a", "z")).count == 3);
    CHECK(in_the_way(NULL, ALONE, to("l", "z")).count == 0);

    OK(spanlock_key_lock_try_convert(lock, one, &token, &part, SHARED));
    ANSWERS(0, tries(two, SHARED, to("a", "z")));
    OK(spanlock_key_lock_release_part(lock, one, &token, &part));
    ANSWERS(0, tries(two, ALONE, to("d", "e")));
    ANSWERS(EBUSY, tries(two, ALONE, to("f", "f")));

    spanlock_key_range behind = range(WITHOUT, "g", "", OPEN);
    ANSWERS(EINVAL, spanlock_key_lock_split(lock, one, &token, &part, &rest));
    CHECK(rest.opaque[1] == 0);
    OK(spanlock_key_lock_split(lock, one, &token, &behind, &rest));
    OK(spanlock_key_lock_release(lock, one, &token));
    ANSWERS(0, tries(two, ALONE, to("a", "g")));
    ANSWERS(EBUSY, tries(two, ALONE, to("g", "h")));
    OK(spanlock_key_lock_release(lock, one, &rest));
}

static int backwards(void *argument, const void *left, size_t left_size, const void *right, size_t right_size)
{
    int order = memcmp(left, right, left_size < right_size ? left_size : right_size);
    ++*(int *)argument;
    return order != 0 ? -order : (left_size < right_size) - (left_size > right_size);
}

static int case_blind(void *argument, const void *left, size_t left_size, const void *right, size_t right_size)
{
    int order = strncasecmp(left, right, left_size < right_size ? left_size : right_size);
    (void)argument;
    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

static void orders(void)
{
    int calls = 0;
    spanlock_key_lock_options options = SPANLOCK_KEY_LOCK_OPTIONS;
    spanlock_key_lock *natural = lock;
    options.compare = backwards;
    options.argument = &calls;
    OK(spanlock_key_lock_create(&lock, &options));
    spanlock_token token = holds(one, ALONE, to("m", "c"));
    ANSWERS(EBUSY, tries(two, SHARED, to("d", "d")));
    ANSWERS(0, tries(two, ALONE, to("b", "a")));
    ANSWERS(EINVAL, tries(two, ALONE, to("a", "b")));
    CHECK(calls > 0);
    ANSWERS(EBUSY, spanlock_key_lock_destroy(lock));
    OK(spanlock_owner_release_all(one));
    ANSWERS(EINVAL, spanlock_key_lock_release(lock, one, &token));
    OK(spanlock_key_lock_destroy(lock));

    options.compare = case_blind;
    options.fairness = SPANLOCK_UNFAIR;
    OK(spanlock_key_lock_create(&lock, &options));
    token = holds(one, ALONE, to("key", "key"));
    ANSWERS(EBUSY, tries(two, SHARED, to("KEY", "KEY")));
    OK(spanlock_key_lock_release(lock, one, &token));
    OK(spanlock_key_lock_destroy(lock));
    lock = natural;
}

static void *waits(void *argument)
{
    spanlock_key_range point = to("w", "w");
    spanlock_token token;
    (void)argument;
    OK(spanlock_key_lock_acquire(lock, two, &point, ALONE, &token));
    OK(spanlock_key_lock_release(lock, two, &token));
    return NULL;
}

static void *is_cancelled(void *owner)
{
    spanlock_key_range point = to("w", "w");
    spanlock_token token;
    ANSWERS(ECANCELED, spanlock_key_lock_acquire(lock, owner, &point, ALONE, &token));
    return NULL;
}

static int upgrade_answer;

static void *upgrades(void *token)
{
    spanlock_key_range point = to("w", "w");
    upgrade_answer = spanlock_key_lock_convert(lock, two, token, &point, ALONE);
    if (upgrade_answer != 0)
        OK(spanlock_key_lock_release(lock, two, token));
    return NULL;
}

static void waiting(void)
{
    pthread_t thread;
    spanlock_key_range point = to("w", "w");
    spanlock_token beside, token = holds(one, ALONE, to("v", "x"));
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    ANSWERS(ETIMEDOUT, spanlock_key_lock_timed_acquire(lock, two, &point, SHARED, CLOCK_MONOTONIC, &soon, &beside));
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    sleep_ms(20);
    ANSWERS(EBUSY, spanlock_key_lock_destroy(lock));
    OK(spanlock_key_lock_release(lock, one, &token));
    CHECK(pthread_join(thread, NULL) == 0);

    /* An owner that would wait for itself; one that is cancelled; two that share and want to be alone. */
    token = holds(one, ALONE, to("v", "x"));
    ANSWERS(EDEADLK, spanlock_key_lock_acquire(lock, one, &point, SHARED, &beside));
    spanlock_owner *third;
    OK(spanlock_owner_create(&third, NULL));
    CHECK(pthread_create(&thread, NULL, is_cancelled, third) == 0);
    sleep_ms(20);
    OK(spanlock_owner_cancel(third));
    CHECK(pthread_join(thread, NULL) == 0);
    OK(spanlock_owner_destroy(third));
    OK(spanlock_key_lock_release(lock, one, &token));

    token = holds(one, SHARED, point);
    beside = holds(two, SHARED, point);
    soon = in_ms(CLOCK_MONOTONIC, 20);
    ANSWERS(ETIMEDOUT, spanlock_key_lock_timed_convert(lock, one, &token, &point, ALONE, CLOCK_MONOTONIC, &soon));
    CHECK(pthread_create(&thread, NULL, upgrades, &beside) == 0);
    sleep_ms(50);
    soon = in_ms(CLOCK_MONOTONIC, 5000);
    int answer = spanlock_key_lock_timed_convert(lock, one, &token, &point, ALONE, CLOCK_MONOTONIC, &soon);
    OK(spanlock_key_lock_release(lock, one, &token));
    CHECK(pthread_join(thread, NULL) == 0);
    /* Who asks last is refused: usually this thread. */
    CHECK((answer == EDEADLK && upgrade_answer == 0) || (answer == 0 && upgrade_answer == EDEADLK));
    if (upgrade_answer == 0)
        OK(spanlock_key_lock_release(lock, two, &beside));
}

static void misuse(void)
{
    spanlock_key_range point = to("k", "k"), strange = point;
    spanlock_token token, beside;
    spanlock_key_lock_options options = SPANLOCK_KEY_LOCK_OPTIONS;
    spanlock_key_lock *made;
    spanlock_range_lock *positions;
    spanlock_owner *limited;
    spanlock_owner_options owner_options = SPANLOCK_OWNER_OPTIONS;
    options.reserved = 1;
    ANSWERS(EINVAL, spanlock_key_lock_create(&made, &options));
    options.reserved = 0;
    options.fairness = 7;
    ANSWERS(EINVAL, spanlock_key_lock_create(&made, &options));
    CHECK(made == NULL);
    ANSWERS(EINVAL, spanlock_key_lock_create(NULL, NULL));
    ANSWERS(EINVAL, spanlock_key_lock_acquire(NULL, one, &point, ALONE, &token));
    ANSWERS(EINVAL, spanlock_key_lock_acquire(lock, NULL, &point, ALONE, &token));
    ANSWERS(EINVAL, spanlock_key_lock_acquire(lock, one, NULL, ALONE, &token));
    ANSWERS(EINVAL, spanlock_key_lock_acquire(lock, one, &point, 3, &token));
    ANSWERS(EINVAL, spanlock_key_lock_acquire(lock, one, &point, ALONE, NULL));
    strange.start = NULL;
    ANSWERS(EINVAL, tries(one, ALONE, strange));
    ANSWERS(EINVAL, spanlock_key_lock_blockers(lock, &point, ALONE, one, NULL, NULL));
    ANSWERS(EINVAL, spanlock_key_lock_destroy(NULL));

    token = holds(one, ALONE, point);
    beside = token;
    ANSWERS(EINVAL, spanlock_key_lock_release(lock, two, &beside));
    OK(spanlock_range_lock_create(&positions, NULL));
    ANSWERS(EINVAL, spanlock_owner_release(one, positions, &beside));
    ANSWERS(EPERM, spanlock_range_lock_release(positions, &beside));
    OK(spanlock_range_lock_destroy(positions));
    ANSWERS(EBUSY, spanlock_owner_destroy(one));
    OK(spanlock_key_lock_release(lock, one, &token));
    ANSWERS(EINVAL, spanlock_key_lock_convert(lock, one, &beside, &point, SHARED));

    owner_options.limit = 1;
    OK(spanlock_owner_create(&limited, &owner_options));
    token = holds(limited, ALONE, point);
    ANSWERS(ENOLCK, tries(limited, ALONE, to("l", "l")));
    OK(spanlock_key_lock_release(lock, limited, &token));
    OK(spanlock_owner_destroy(limited));
}

/* Threads with owners of their own count under points and ranges. */
#define THREADS 4
#define KEYS 8
#define ROUNDS 2000

static long counts[KEYS];

static void *counts_up(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    spanlock_owner *owner;
    OK(spanlock_owner_create(&owner, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        int first = rand_r(&seed) % KEYS, last = first + rand_r(&seed) % (KEYS - first);
        char start[2] = { (char)('a' + first), 0 }, end[2] = { (char)('a' + last), 0 };
        spanlock_key_range range = to(start, end);
        spanlock_token token;
        OK(spanlock_key_lock_acquire(lock, owner, &range, round % 4 == 0 ? SHARED : ALONE, &token));
        for (int key = first; key <= last; key++) {
            if (round % 4 == 0)
                CHECK(counts[key] >= 0);
            else
                counts[key]++;
        }
        OK(spanlock_key_lock_release(lock, owner, &token));
    }
    OK(spanlock_owner_destroy(owner));
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    long sum = 0, expected = 0;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&all[i], NULL, counts_up, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        unsigned seed = i + 1;
        for (int round = 0; round < ROUNDS; round++) {
            int first = rand_r(&seed) % KEYS, last = first + rand_r(&seed) % (KEYS - first);
            expected += round % 4 == 0 ? 0 : last - first + 1;
        }
    }
    for (int key = 0; key < KEYS; key++)
        sum += counts[key];
    CHECK(sum == expected);
}

int main(void)
{
    alarm(120);
    OK(spanlock_key_lock_create(&lock, NULL));
    OK(spanlock_owner_create(&one, NULL));
    OK(spanlock_owner_create(&two, NULL));
    ends();
    conversions();
    orders();
    waiting();
    misuse();
    threads();
    OK(spanlock_owner_destroy(one));
    OK(spanlock_owner_destroy(two));
    OK(spanlock_key_lock_destroy(lock));
    return 0;
}
