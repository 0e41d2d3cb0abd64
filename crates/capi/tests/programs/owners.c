/* Owners: threads that share one, conversions, parts, many modes, cancellation, limits, listings, misuse. */
#include "check.h"
#include "spanlock.h"

#define SHARED SPANLOCK_SHARED
#define ALONE SPANLOCK_EXCLUSIVE

static spanlock_range_lock *lock, *other;
static spanlock_owner *one, *two;

static spanlock_range to(uint64_t start, uint64_t end)
{
    return spanlock_range_of(start, end);
}

/* What the second owner is answered that tries. */
static int try_two(uint32_t mode, spanlock_range range)
{
    spanlock_token token;
    int answer = spanlock_owner_try_lock(two, lock, range, mode, &token);
    if (answer == 0)
        OK(spanlock_owner_release(two, lock, &token));
    return answer;
}

static size_t count(spanlock_owner *owner)
{
    size_t count;
    OK(spanlock_owner_count(owner, &count));
    return count;
}

static void *release(void *token)
{
    OK(spanlock_owner_release(one, lock, token));
    return NULL;
}

static void between_threads(void)
{
    spanlock_token token, copy;
    OK(spanlock_owner_lock(one, lock, to(0, 10), ALONE, &token));
    copy = token;
    ANSWERS(EBUSY, try_two(SHARED, to(9, 20)));
    ANSWERS(0, try_two(ALONE, to(10, 20)));
    on_thread(release, &token);
    CHECK(token.opaque[0] == 0 && token.opaque[1] == 0 && count(one) == 0);
    ANSWERS(EINVAL, spanlock_owner_release(one, lock, &copy));
    ANSWERS(0, try_two(ALONE, to(0, 10)));
}

/* A token stands for these pieces. */
static void stands_for(spanlock_owner *owner, spanlock_token token, const spanlock_want *expected, size_t n)
{
    spanlock_want pieces[8];
    size_t is;
    OK(spanlock_owner_pieces(owner, lock, &token, NULL, 0, &is));
    CHECK(is == n);
    OK(spanlock_owner_pieces(owner, lock, &token, pieces, 8, &is));
    CHECK(is == n);
    for (size_t i = 0; i < n; i++) {
        CHECK(pieces[i].range.start == expected[i].range.start && pieces[i].range.last == expected[i].range.last);
        CHECK(pieces[i].mode == expected[i].mode && pieces[i].reserved == 0);
    }
}

static void conversions(void)
{
    spanlock_want expected[] = { { to(20, 40), SHARED, 0 }, { to(40, 60), ALONE, 0 }, { to(60, 100), SHARED, 0 } };
    spanlock_want alone = { to(20, 100), ALONE, 0 }, reaching = { to(90, 110), SHARED, 0 };
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    spanlock_token token, reader;
    OK(spanlock_owner_lock(one, lock, to(0, 100), SHARED, &token));
    OK(spanlock_owner_lock(two, lock, to(90, 110), SHARED, &reader));
    /* The old hold stays when the new one is refused. */
    ANSWERS(EBUSY, spanlock_owner_try_convert(one, lock, &token, to(80, 120), ALONE));
    ANSWERS(ETIMEDOUT,
            spanlock_owner_timed_convert(one, lock, &token, to(95, 96), ALONE, CLOCK_MONOTONIC, &soon));
    ANSWERS(EBUSY, spanlock_owner_try_upgrade(one, lock, &token));
    ANSWERS(EBUSY, try_two(ALONE, to(0, 1)));
    ANSWERS(0, try_two(SHARED, to(0, 100)));
    CHECK(count(one) == 1);
    OK(spanlock_owner_convert(one, lock, &token, to(40, 60), ALONE));
    OK(spanlock_owner_convert(one, lock, &token, to(7, 7), ALONE));
    OK(spanlock_owner_release_part(one, lock, &token, to(0, 20)));
    stands_for(one, token, expected, 3);
    CHECK(count(one) == 3);
    ANSWERS(EBUSY, try_two(SHARED, to(59, 60)));
    ANSWERS(0, try_two(ALONE, to(0, 20)));
    OK(spanlock_owner_release(two, lock, &reader));
    OK(spanlock_owner_upgrade(one, lock, &token));
    ANSWERS(EBUSY, try_two(SHARED, to(20, 21)));
    OK(spanlock_owner_downgrade(one, lock, &token));
    OK(spanlock_owner_try_upgrade(one, lock, &token));
    OK(spanlock_owner_shrink(one, lock, &token, to(20, 25)));
    expected[0].range = to(20, 25);
    expected[0].mode = ALONE;
    stands_for(one, token, expected, 1);
    OK(spanlock_owner_convert(one, lock, &token, to(25, 100), ALONE));
    ANSWERS(EBUSY, try_two(SHARED, alone.range));
    OK(spanlock_owner_shrink(one, lock, &token, to(7, 7)));
    stands_for(one, token, NULL, 0);
    OK(spanlock_owner_convert(one, lock, &token, reaching.range, reaching.mode));
    stands_for(one, token, &reaching, 1);
    OK(spanlock_owner_release(one, lock, &token));
}

static void splits(void)
{
    spanlock_want first = { to(0, 30), ALONE, 0 }, second = { to(30, 100), ALONE, 0 };
    spanlock_token token, rest, nothing;
    OK(spanlock_owner_lock(one, lock, to(0, 100), ALONE, &token));
    OK(spanlock_owner_split(one, lock, &token, 30, &rest));
    stands_for(one, token, &first, 1);
    stands_for(one, rest, &second, 1);
    OK(spanlock_owner_split(one, lock, &rest, 100, &nothing));
    stands_for(one, nothing, NULL, 0);
    OK(spanlock_owner_release(one, lock, &token));
    ANSWERS(0, try_two(ALONE, to(0, 30)));
    ANSWERS(EBUSY, try_two(SHARED, to(30, 31)));
    OK(spanlock_owner_release(one, lock, &nothing));
    OK(spanlock_owner_release(one, lock, &rest));
}

static void many(void)
{
    spanlock_want wants[] = { { to(50, 60), ALONE, 0 }, { to(0, 100), SHARED, 0 }, { to(200, 300), SHARED, 0 } };
    spanlock_want expected[] = {
        { to(0, 50), SHARED, 0 },
        { to(50, 60), ALONE, 0 },
        { to(60, 100), SHARED, 0 },
        { to(200, 300), SHARED, 0 },
    };
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    spanlock_token token, second;
    OK(spanlock_owner_many(one, lock, wants, 3, &token));
    stands_for(one, token, expected, 4);
    ANSWERS(EBUSY, spanlock_owner_try_many(two, lock, wants, 3, &second));
    ANSWERS(ETIMEDOUT, spanlock_owner_timed_many(two, lock, wants, 3, CLOCK_REALTIME, &soon, &second));
    CHECK(second.opaque[0] == 0 && count(two) == 0);
    OK(spanlock_owner_try_many(two, lock, wants + 2, 1, &second));
    OK(spanlock_owner_release(two, lock, &second));
    OK(spanlock_owner_many(two, lock, NULL, 0, &second));
    OK(spanlock_owner_release_all(two));
    ANSWERS(EINVAL, spanlock_owner_release(two, lock, &second));
    OK(spanlock_owner_release(one, lock, &token));
    /* A thread's own, of several modes. */
    OK(spanlock_range_lock_many(lock, wants, 3, &token));
    ANSWERS(0, try_two(SHARED, to(0, 50)));
    ANSWERS(EBUSY, try_two(SHARED, to(59, 60)));
    ANSWERS(EDEADLK, spanlock_range_lock_write(lock, to(0, 1), &second));
    OK(spanlock_range_lock_downgrade(lock, &token));
    ANSWERS(0, try_two(SHARED, to(0, 300)));
    ANSWERS(EBUSY, try_two(ALONE, to(299, 300)));
    ANSWERS(EBUSY, spanlock_range_lock_try_many(lock, wants, 3, &second));
    ANSWERS(EDEADLK, spanlock_range_lock_timed_many(lock, wants, 3, CLOCK_REALTIME, &soon, &second));
    OK(spanlock_range_lock_release(lock, &token));
}

/* A thread that waits in the name of the second owner. */
struct waiting {
    spanlock_range range;
    int answer;
    spanlock_token token;
};

static void *await(void *argument)
{
    struct waiting *it = argument;
    it->answer = spanlock_owner_lock(two, lock, it->range, ALONE, &it->token);
    return NULL;
}

/* Waits until a listing contains a text. */
static void await_listing(const char *text)
{
    char listing[1000];
    do {
        sleep_ms(1);
        OK(spanlock_range_lock_snapshot(lock, listing, sizeof listing, NULL));
    } while (strstr(listing, text) == NULL);
}

/* As listings have it. */
static void name_of(spanlock_owner *owner, char *name, size_t size)
{
    uint32_t number;
    OK(spanlock_owner_number(owner, &number));
    CHECK(number > 0);
    snprintf(name, size, "owner %u", number);
}

static void listings_and_cancellation(void)
{
    char first[40], second[40], text[200];
    struct waiting waiting = { to(5, 6), 0, { { 0, 0 } } };
    spanlock_token token, more;
    pthread_t thread;
    name_of(one, first, sizeof first);
    name_of(two, second, sizeof second);
    CHECK(strcmp(first, second) != 0);
    OK(spanlock_owner_lock(one, lock, to(0, 10), SHARED, &token));
    CHECK(pthread_create(&thread, NULL, await, &waiting) == 0);
    snprintf(text, sizeof text, "%s: 5..=5 exclusive, behind %s: 0..=9 shared", second, first);
    await_listing(text);
    ANSWERS(EBUSY, spanlock_owner_destroy(two)); /* A thread waits in its name. */
    OK(spanlock_owner_cancel(two));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(waiting.answer == ECANCELED && waiting.token.opaque[0] == 0);
    ANSWERS(ECANCELED, spanlock_owner_lock(two, lock, to(5, 6), ALONE, &more));
    OK(spanlock_owner_lock(two, lock, to(5, 6), SHARED, &more)); /* It need not wait. */
    ANSWERS(ECANCELED, spanlock_owner_convert(two, lock, &more, to(5, 6), ALONE));
    ANSWERS(EBUSY, spanlock_owner_destroy(two));
    OK(spanlock_owner_release_all(two));
    OK(spanlock_owner_destroy(two));
    OK(spanlock_owner_create(&two, NULL));
    OK(spanlock_owner_release(one, lock, &token));
}

static void *upgrade(void *token)
{
    return (void *)(intptr_t)spanlock_owner_upgrade(two, lock, token);
}

/* Of two that share and want to be alone, the second is refused. */
static void two_upgrades(void)
{
    spanlock_token token, second;
    pthread_t thread;
    void *answer;
    OK(spanlock_owner_lock(one, lock, to(0, 10), SHARED, &token));
    OK(spanlock_owner_lock(two, lock, to(0, 10), SHARED, &second));
    CHECK(pthread_create(&thread, NULL, upgrade, &second) == 0);
    await_listing("0..=9 exclusive, behind");
    ANSWERS(EDEADLK, spanlock_owner_upgrade(one, lock, &token));
    /* The thread that waits has the other token meanwhile. */
    ANSWERS(EBUSY, spanlock_owner_release(two, lock, &second));
    ANSWERS(EBUSY, spanlock_owner_downgrade(two, lock, &second));
    ANSWERS(EBUSY, spanlock_owner_release_all(two));
    ANSWERS(EBUSY, spanlock_owner_destroy(two));
    OK(spanlock_owner_release(one, lock, &token));
    CHECK(pthread_join(thread, &answer) == 0);
    CHECK((intptr_t)answer == 0);
    ANSWERS(EBUSY, spanlock_range_lock_try_read(lock, to(0, 1), &token));
    OK(spanlock_owner_release(two, lock, &second));
}

static void limits(void)
{
    spanlock_owner_options options = SPANLOCK_OWNER_OPTIONS;
    spanlock_want wants[] = { { to(20, 21), SHARED, 0 }, { to(30, 31), SHARED, 0 } };
    spanlock_owner *few;
    spanlock_token token, more;
    options.limit = 2;
    OK(spanlock_owner_create(&few, &options));
    OK(spanlock_owner_lock(few, lock, to(0, 10), ALONE, &token));
    ANSWERS(ENOLCK, spanlock_owner_many(few, lock, wants, 2, &more));
    OK(spanlock_owner_lock(few, lock, to(10, 20), ALONE, &more));
    ANSWERS(ENOLCK, spanlock_owner_try_lock(few, lock, to(30, 31), SHARED, &more));
    ANSWERS(ENOLCK, spanlock_owner_convert(few, lock, &token, to(0, 40), ALONE));
    OK(spanlock_owner_convert(few, lock, &token, to(4, 5), SHARED)); /* What it has is never refused. */
    CHECK(count(few) == 4);
    OK(spanlock_owner_release_all(few));
    OK(spanlock_owner_destroy(few));
}

static void waiting_for_itself(void)
{
    spanlock_token token, second, mine;
    struct timespec late = in_ms(CLOCK_MONOTONIC, 1000000);
    OK(spanlock_owner_lock(one, lock, to(0, 10), SHARED, &token));
    ANSWERS(EDEADLK, spanlock_owner_lock(one, lock, to(9, 12), ALONE, &second));
    ANSWERS(EDEADLK,
            spanlock_owner_timed_lock(one, lock, to(9, 12), ALONE, CLOCK_MONOTONIC, &late, &second));
    OK(spanlock_owner_lock(one, lock, to(5, 15), SHARED, &second));
    ANSWERS(EDEADLK, spanlock_owner_upgrade(one, lock, &second));
    ANSWERS(EDEADLK, spanlock_owner_convert(one, lock, &token, to(9, 20), ALONE));
    OK(spanlock_owner_convert(one, lock, &token, to(0, 5), ALONE));
    OK(spanlock_range_lock_write(lock, to(50, 60), &mine)); /* This thread's. */
    ANSWERS(EDEADLK, spanlock_owner_lock(two, lock, to(59, 61), SHARED, &second));
    OK(spanlock_range_lock_release(lock, &mine));
    OK(spanlock_owner_release_all(one));
}

static void *release_plain(void *token)
{
    return (void *)(intptr_t)spanlock_range_lock_release(lock, token);
}

static void misuse(void)
{
    spanlock_owner_options bad = { 4, 0 };
    struct {
        spanlock_owner_options now;
        uint64_t later;
    } longer = { { sizeof longer, 0 }, 0 };
    struct timespec odd = { 0, 1000000000 };
    uint64_t rubbish[50];
    spanlock_owner *made;
    spanlock_token token, copy, threads, rest, zero = { { 0, 0 } };
    spanlock_want want = { to(0, 1), 7, 0 };
    size_t n;
    ANSWERS(EINVAL, spanlock_owner_create(NULL, NULL));
    ANSWERS(EINVAL, spanlock_owner_create(&made, &bad));
    CHECK(made == NULL);
    OK(spanlock_owner_create(&made, &longer.now));
    OK(spanlock_owner_destroy(made));
    longer.later = 1;
    ANSWERS(ENOTSUP, spanlock_owner_create(&made, &longer.now));
    ANSWERS(EINVAL, spanlock_owner_destroy(NULL));
    ANSWERS(EINVAL, spanlock_owner_cancel(NULL));
    ANSWERS(EINVAL, spanlock_owner_count(one, NULL));
    ANSWERS(EINVAL, spanlock_owner_number(one, NULL));
    ANSWERS(EINVAL, spanlock_owner_release_all(NULL));
    memset(rubbish, 0x5a, sizeof rubbish);
    ANSWERS(EINVAL, spanlock_owner_cancel((spanlock_owner *)rubbish));
    ANSWERS(EINVAL, spanlock_owner_lock(NULL, lock, to(0, 1), SHARED, &token));
    ANSWERS(EINVAL, spanlock_owner_lock(one, NULL, to(0, 1), SHARED, &token));
    ANSWERS(EINVAL, spanlock_owner_lock(one, lock, to(0, 1), SHARED, NULL));
    ANSWERS(EINVAL, spanlock_owner_lock(one, lock, to(0, 1), 3, &token));
    ANSWERS(EINVAL, spanlock_owner_lock(one, lock, to(2, 1), SHARED, &token));
    CHECK(token.opaque[0] == 0);
    ANSWERS(EINVAL, spanlock_owner_timed_lock(one, lock, to(0, 1), SHARED, CLOCK_MONOTONIC, &odd, &token));
    ANSWERS(EINVAL, spanlock_owner_timed_lock(one, lock, to(0, 1), SHARED, CLOCK_MONOTONIC, NULL, &token));
    ANSWERS(EINVAL, spanlock_owner_many(one, lock, NULL, 1, &token));
    ANSWERS(EINVAL, spanlock_owner_many(one, lock, &want, 1, &token));

    OK(spanlock_owner_lock(one, lock, to(0, 10), ALONE, &token));
    OK(spanlock_range_lock_write(lock, to(20, 30), &threads));
    copy = token;
    ANSWERS(EINVAL, spanlock_owner_release(two, lock, &copy)); /* Another owner's. */
    ANSWERS(EINVAL, spanlock_owner_release(one, other, &copy)); /* Of another lock. */
    ANSWERS(EPERM, spanlock_range_lock_release(lock, &copy)); /* Not this thread's. */
    ANSWERS(EPERM, spanlock_range_lock_downgrade(lock, &copy));
    CHECK((intptr_t)on_thread(release_plain, &copy) == EPERM);
    ANSWERS(EINVAL, spanlock_owner_release(one, lock, &threads)); /* A thread's. */
    ANSWERS(EINVAL, spanlock_owner_release(one, lock, &zero));
    ANSWERS(EINVAL, spanlock_owner_release(one, lock, NULL));
    ANSWERS(EINVAL, spanlock_owner_convert(one, lock, NULL, to(0, 1), SHARED));
    ANSWERS(EINVAL, spanlock_owner_convert(one, lock, &token, to(2, 1), SHARED));
    ANSWERS(EINVAL, spanlock_owner_convert(one, lock, &token, to(0, 1), 0));
    ANSWERS(EINVAL, spanlock_owner_release_part(one, lock, &token, to(2, 1)));
    ANSWERS(EINVAL, spanlock_owner_shrink(one, lock, &token, to(2, 1)));
    ANSWERS(EINVAL, spanlock_owner_split(one, lock, &token, 5, NULL));
    ANSWERS(EINVAL, spanlock_owner_split(two, lock, &token, 5, &rest));
    CHECK(rest.opaque[0] == 0 && rest.opaque[1] == 0);
    ANSWERS(EINVAL, spanlock_owner_pieces(one, lock, &token, NULL, 1, &n));
    ANSWERS(EINVAL, spanlock_owner_pieces(one, lock, &token, NULL, 0, NULL));
    for (unsigned bit = 0; bit < 128; bit++) {
        copy = token;
        copy.opaque[bit / 64] ^= UINT64_C(1) << bit % 64;
        ANSWERS(EINVAL, spanlock_owner_release(one, lock, &copy));
    }
    ANSWERS(EBUSY, spanlock_range_lock_destroy(lock));
    ANSWERS(EBUSY, spanlock_owner_destroy(one));
    copy = token;
    OK(spanlock_owner_release(one, lock, &token));
    ANSWERS(EINVAL, spanlock_owner_release(one, lock, &copy)); /* Twice. */
    OK(spanlock_owner_lock(one, lock, to(0, 10), ALONE, &token)); /* In the same place. */
    ANSWERS(EINVAL, spanlock_owner_downgrade(one, lock, &copy));
    OK(spanlock_owner_release(one, lock, &token));
    OK(spanlock_range_lock_release(lock, &threads));
}

/* Threads that work for owners of their own and for one that they share. What each adds is added under a lock. */
enum { THREADS = 4, ROUNDS = 1500, SLOTS = 16 };

static uint64_t slots[SLOTS];

static void *work(void *argument)
{
    unsigned state = 17 * (unsigned)(size_t)argument + 1, added = 0;
    spanlock_owner *mine;
    OK(spanlock_owner_create(&mine, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start, end;
        spanlock_owner *owner = round % 3 == 0 ? one : mine;
        spanlock_token token;
        state = state * 1103515245 + 12345;
        start = (state >> 16) % (SLOTS - 2);
        end = start + 3;
        if (owner == one) {
            /* Another thread may hold some of it in the same name: then the answer is EDEADLK, or EBUSY. */
            if (spanlock_owner_try_lock(one, lock, to(start, end), ALONE, &token) != 0)
                continue;
        } else {
            int answer;
            OK(spanlock_owner_lock(owner, lock, to(start, end), SHARED, &token));
            answer = spanlock_owner_upgrade(owner, lock, &token);
            if (answer == EDEADLK) {
                OK(spanlock_owner_release(owner, lock, &token));
                OK(spanlock_owner_lock(owner, lock, to(start, end), ALONE, &token));
            } else {
                OK(answer);
            }
        }
        for (uint64_t i = start; i < end; i++)
            slots[i]++;
        OK(spanlock_owner_release_part(owner, lock, &token, to(start, start + 1)));
        for (uint64_t i = start + 1; i < end; i++)
            slots[i]--;
        OK(spanlock_owner_release(owner, lock, &token));
        added++;
    }
    OK(spanlock_owner_destroy(mine));
    return (void *)(size_t)added;
}

static void threads(void)
{
    pthread_t all[THREADS];
    uint64_t sum = 0, expected = 0;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&all[i], NULL, work, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *added;
        CHECK(pthread_join(all[i], &added) == 0);
        expected += (size_t)added;
    }
    for (size_t i = 0; i < SLOTS; i++)
        sum += slots[i];
    CHECK(sum == expected);
    CHECK(count(one) == 0);
}

int main(void)
{
    alarm(100);
    OK(spanlock_range_lock_create(&lock, NULL));
    OK(spanlock_range_lock_create(&other, NULL));
    OK(spanlock_owner_create(&one, NULL));
    OK(spanlock_owner_create(&two, NULL));
    between_threads();
    conversions();
    splits();
    many();
    listings_and_cancellation();
    two_upgrades();
    limits();
    waiting_for_itself();
    misuse();
    threads();
    OK(spanlock_owner_destroy(one));
    OK(spanlock_owner_destroy(two));
    OK(spanlock_range_lock_destroy(other));
    OK(spanlock_range_lock_destroy(lock));
    return 0;
}
