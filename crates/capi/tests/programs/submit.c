/* Submitted requests: callbacks, eventfds, pipes, cancellation before, beside and after the grant, and the end of a lock. */
#define _GNU_SOURCE
#include "check.h"
#include "spanlock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

static spanlock_range_lock *lock;

static spanlock_range to(uint64_t start, uint64_t end)
{
    return spanlock_range_of(start, end);
}

/* What a callback was told, and a way to wait for that. */
struct told {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int times;
    spanlock_token token;
};

#define UNTOLD { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, { { 0, 0 } } }

static void tell(void *argument, spanlock_token token)
{
    struct told *told = argument;
    pthread_mutex_lock(&told->mutex);
    told->times++;
    told->token = token;
    pthread_cond_broadcast(&told->changed);
    pthread_mutex_unlock(&told->mutex);
}

static void await(struct told *told, int times)
{
    pthread_mutex_lock(&told->mutex);
    while (told->times < times)
        pthread_cond_wait(&told->changed, &told->mutex);
    CHECK(told->times == times);
    pthread_mutex_unlock(&told->mutex);
}

static int times(struct told *told)
{
    int is;
    pthread_mutex_lock(&told->mutex);
    is = told->times;
    pthread_mutex_unlock(&told->mutex);
    return is;
}

static void *release(void *token)
{
    return (void *)(intptr_t)spanlock_range_lock_release(lock, token);
}

/* Waits until a range is free, which is soon. */
static void await_free(spanlock_range range)
{
    struct timespec late = in_ms(CLOCK_MONOTONIC, 20000);
    spanlock_token token;
    OK(spanlock_range_lock_timed_write(lock, range, CLOCK_MONOTONIC, &late, &token));
    OK(spanlock_range_lock_release(lock, &token));
}

static void granted_and_released(void)
{
    struct told told = UNTOLD;
    spanlock_token held, copy;
    spanlock_request request;
    OK(spanlock_range_lock_write(lock, to(0, 10), &held));
    OK(spanlock_range_lock_submit(lock, to(5, 15), SPANLOCK_EXCLUSIVE, tell, &told, &request));
    sleep_ms(20);
    CHECK(times(&told) == 0);
    ANSWERS(EINPROGRESS, spanlock_range_lock_take(lock, request, &copy));
    ANSWERS(EBUSY, spanlock_range_lock_destroy(lock));
    OK(spanlock_range_lock_release(lock, &held));
    await(&told, 1);
    ANSWERS(EBUSY, spanlock_range_lock_try_read(lock, to(14, 15), &held));
    ANSWERS(EALREADY, spanlock_range_lock_cancel(lock, request));
    OK(spanlock_range_lock_downgrade(lock, &told.token));
    for (int tries = 0; spanlock_range_lock_try_read(lock, to(14, 15), &held) != 0; tries++) {
        CHECK(tries < 5000);
        sleep_ms(1);
    }
    OK(spanlock_range_lock_release(lock, &held));
    ANSWERS(EBUSY, spanlock_range_lock_try_write(lock, to(14, 15), &held));
    copy = told.token;
    CHECK((intptr_t)on_thread(release, &told.token) == 0); /* Any thread may. */
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &told.token));
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &copy));
    ANSWERS(EINVAL, spanlock_range_lock_downgrade(lock, &copy));
    await_free(to(0, 20));
    ANSWERS(EALREADY, spanlock_range_lock_take(lock, request, &copy));
}

static void cancelled(void)
{
    struct told told = UNTOLD;
    spanlock_token held;
    spanlock_request request;
    OK(spanlock_range_lock_write(lock, to(0, 10), &held));
    OK(spanlock_range_lock_submit(lock, to(0, 10), SPANLOCK_SHARED, tell, &told, &request));
    sleep_ms(10);
    OK(spanlock_range_lock_cancel(lock, request));
    ANSWERS(EALREADY, spanlock_range_lock_cancel(lock, request));
    ANSWERS(EINVAL, spanlock_range_lock_cancel(lock, request + 1000));
    ANSWERS(EINVAL, spanlock_range_lock_cancel(lock, 0));
    OK(spanlock_range_lock_release(lock, &held));
    await_free(to(0, 10));
    CHECK(times(&told) == 0);
}

/* Cancels while the range is released: either is first, never both and never neither. */
static void cancelled_beside_the_grant(void)
{
    int grants = 0;
    for (int round = 0; round < 300; round++) {
        struct told told = UNTOLD;
        spanlock_token held;
        spanlock_request request;
        int answer;
        OK(spanlock_range_lock_write(lock, to(0, 10), &held));
        OK(spanlock_range_lock_submit(lock, to(0, 10), SPANLOCK_EXCLUSIVE, tell, &told, &request));
        OK(spanlock_range_lock_release(lock, &held));
        for (int i = 0; i < round % 100 * 1000; i++)
            __asm__ volatile("");
        answer = spanlock_range_lock_cancel(lock, request);
        CHECK(answer == 0 || answer == EALREADY);
        if (answer == EALREADY) {
            await(&told, 1);
            OK(spanlock_range_lock_release(lock, &told.token));
            grants++;
        }
        await_free(to(0, 10));
        CHECK(times(&told) == (answer == EALREADY));
    }
    printf("%d of 300 were granted before they were cancelled\n", grants);
}

static void by_eventfd(void)
{
    int descriptor = eventfd(0, EFD_NONBLOCK);
    struct pollfd polled = { descriptor, POLLIN, 0 };
    uint64_t count;
    spanlock_request requests[3];
    spanlock_token held, tokens[3];
    CHECK(descriptor >= 0);
    OK(spanlock_range_lock_write(lock, to(0, 3), &held));
    for (uint64_t i = 0; i < 3; i++)
        OK(spanlock_range_lock_submit_fd(lock, to(i, i + 1), SPANLOCK_EXCLUSIVE, descriptor, &requests[i]));
    CHECK(poll(&polled, 1, 20) == 0);
    OK(spanlock_range_lock_cancel(lock, requests[1]));
    OK(spanlock_range_lock_release(lock, &held));
    for (uint64_t got = 0; got < 2; got += count) {
        CHECK(poll(&polled, 1, 20000) == 1);
        CHECK(read(descriptor, &count, sizeof count) == sizeof count);
    }
    OK(spanlock_range_lock_take(lock, requests[0], &tokens[0]));
    ANSWERS(EALREADY, spanlock_range_lock_take(lock, requests[1], &tokens[1]));
    OK(spanlock_range_lock_take(lock, requests[2], &tokens[2]));
    OK(spanlock_range_lock_release(lock, &tokens[0]));
    OK(spanlock_range_lock_release(lock, &tokens[2]));
    /* Closed before the grant. */
    OK(spanlock_range_lock_write(lock, to(0, 3), &held));
    OK(spanlock_range_lock_submit_fd(lock, to(0, 1), SPANLOCK_SHARED, descriptor, &requests[0]));
    close(descriptor);
    OK(spanlock_range_lock_release(lock, &held));
    while (spanlock_range_lock_take(lock, requests[0], &tokens[0]) == EINPROGRESS)
        sleep_ms(1);
    OK(spanlock_range_lock_release(lock, &tokens[0]));
    await_free(to(0, 10));
}

/* Each number says which request was granted, also where the pipe is full at first. */
static void by_pipe(void)
{
    enum { MANY = 3, FULL = 4096 / sizeof(spanlock_request) };
    int pipes[2], seen[MANY] = { 0 };
    spanlock_request requests[MANY], granted = 0;
    spanlock_token held, token;
    CHECK(pipe2(pipes, O_NONBLOCK) == 0);
    CHECK(fcntl(pipes[1], F_SETPIPE_SZ, 4096) == 4096);
    for (size_t i = 0; i < FULL; i++)
        CHECK(write(pipes[1], &granted, sizeof granted) == sizeof granted);
    OK(spanlock_range_lock_write(lock, spanlock_range_all(), &held));
    for (uint64_t i = 0; i < MANY; i++)
        OK(spanlock_range_lock_submit_fd(lock, to(i, i + 1), SPANLOCK_SHARED, pipes[1], &requests[i]));
    OK(spanlock_range_lock_release(lock, &held));
    for (int i = 0; i < MANY; i++) /* All are granted, and wait for room. */
        while (spanlock_range_lock_take(lock, requests[i], &token) == EINPROGRESS)
            sleep_ms(1);
    sleep_ms(5);
    for (size_t got = 0; got < FULL + MANY; got++) {
        struct pollfd polled = { pipes[0], POLLIN, 0 };
        int which = 0;
        CHECK(poll(&polled, 1, 20000) == 1);
        CHECK(read(pipes[0], &granted, sizeof granted) == sizeof granted);
        if (got < FULL)
            continue;
        while (which < MANY && requests[which] != granted)
            which++;
        CHECK(which < MANY && !seen[which]++);
        OK(spanlock_range_lock_take(lock, granted, &token));
        OK(spanlock_range_lock_release(lock, &token));
    }
    /* Nobody reads any more. */
    close(pipes[0]);
    OK(spanlock_range_lock_submit_fd(lock, to(0, 1), SPANLOCK_SHARED, pipes[1], &granted));
    while (spanlock_range_lock_take(lock, granted, &token) == EINPROGRESS)
        sleep_ms(1);
    OK(spanlock_range_lock_release(lock, &token));
    close(pipes[1]);
    await_free(to(0, MANY));
}

/* A callback that uses the library: releases, acquires, submits. */
static struct told last = UNTOLD;

static void reenter(void *argument, spanlock_token token)
{
    spanlock_token mine;
    spanlock_request request;
    (void)argument;
    OK(spanlock_range_lock_write(lock, to(50, 60), &mine));
    OK(spanlock_range_lock_release(lock, &mine));
    ANSWERS(EBUSY, spanlock_range_lock_destroy(lock));
    OK(spanlock_range_lock_submit(lock, to(0, 10), SPANLOCK_EXCLUSIVE, tell, &last, &request));
    OK(spanlock_range_lock_release(lock, &token));
    ANSWERS(EINVAL, spanlock_range_lock_release(lock, &token));
}

static void callbacks_that_use_the_library(void)
{
    spanlock_request request;
    OK(spanlock_range_lock_submit(lock, to(0, 10), SPANLOCK_EXCLUSIVE, reenter, NULL, &request));
    await(&last, 1);
    OK(spanlock_range_lock_release(lock, &last.token));
    await_free(to(0, 10));
}

/* Many at a time, each for what others have. */
static void crowd(void)
{
    enum { REQUESTS = 50 };
    static struct told told[REQUESTS];
    spanlock_token held;
    spanlock_request requests[REQUESTS];
    OK(spanlock_range_lock_write(lock, spanlock_range_all(), &held));
    for (int i = 0; i < REQUESTS; i++) {
        told[i] = (struct told)UNTOLD;
        OK(spanlock_range_lock_submit(lock, to(i / 2, i / 2 + 2), i % 3 ? SPANLOCK_SHARED : SPANLOCK_EXCLUSIVE,
                                      tell, &told[i], &requests[i]));
        CHECK(i == 0 || requests[i] > requests[i - 1]);
    }
    OK(spanlock_range_lock_release(lock, &held));
    for (int left = REQUESTS; left > 0;)
        for (int i = 0; i < REQUESTS; i++)
            if (times(&told[i]) == 1) {
                OK(spanlock_range_lock_release(lock, &told[i].token));
                told[i].times = 2;
                left--;
            }
    await_free(spanlock_range_all());
}

/* Nothing waits for an empty range. */
static void empty(void)
{
    struct told told = UNTOLD;
    spanlock_token held;
    spanlock_request request;
    OK(spanlock_range_lock_write(lock, spanlock_range_all(), &held));
    OK(spanlock_range_lock_submit(lock, to(3, 3), SPANLOCK_EXCLUSIVE, tell, &told, &request));
    await(&told, 1);
    OK(spanlock_range_lock_release(lock, &told.token));
    OK(spanlock_range_lock_release(lock, &held));
}

/* A lock may go while a request that was cancelled is still about to give up. */
static void destroyed_after_a_cancellation(void)
{
    spanlock_range_lock *brief;
    struct told told = UNTOLD;
    spanlock_token held;
    spanlock_request request;
    OK(spanlock_range_lock_create(&brief, NULL));
    OK(spanlock_range_lock_write(brief, to(0, 10), &held));
    OK(spanlock_range_lock_submit(brief, to(0, 10), SPANLOCK_EXCLUSIVE, tell, &told, &request));
    ANSWERS(EINVAL, spanlock_range_lock_cancel(lock, request));
    sleep_ms(10);
    OK(spanlock_range_lock_cancel(brief, request));
    ANSWERS(EBUSY, spanlock_range_lock_destroy(brief));
    OK(spanlock_range_lock_release(brief, &held));
    OK(spanlock_range_lock_destroy(brief));
    CHECK(times(&told) == 0);
}

/* A callback that releases and ends its lock: the library's thread still has it for a moment. */
static void end(void *argument, spanlock_token token)
{
    spanlock_range_lock *brief = argument;
    OK(spanlock_range_lock_release(brief, &token));
    OK(spanlock_range_lock_destroy(brief));
    tell(&last, token);
}

static void destroyed_by_a_callback(void)
{
    spanlock_range_lock *brief;
    spanlock_request request;
    int before = times(&last);
    OK(spanlock_range_lock_create(&brief, NULL));
    OK(spanlock_range_lock_submit(brief, to(0, 10), SPANLOCK_EXCLUSIVE, end, brief, &request));
    await(&last, before + 1);
}

int main(void)
{
    alarm(200);
    OK(spanlock_range_lock_create(&lock, NULL));
    granted_and_released();
    cancelled();
    cancelled_beside_the_grant();
    by_eventfd();
    by_pipe();
    callbacks_that_use_the_library();
    crowd();
    empty();
    destroyed_after_a_cancellation();
    destroyed_by_a_callback();
    OK(spanlock_range_lock_destroy(lock));
    return 0;
}
