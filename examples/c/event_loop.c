/* An event loop, which must not block, moves blocks of a file between owners. A thread beside it holds ranges for a
 * while, as a backup does. The loop submits requests for ranges and sleeps in `poll`; the numbers of those that are
 * granted come by a pipe. A request that has waited too long is cancelled. */
#define _POSIX_C_SOURCE 200809L
#include <spanlock.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, JOBS = 6 };

struct job {
    spanlock_request request; /* Zero, once it is over. */
    spanlock_range range;
};

static spanlock_range_lock *lock;

static void ensure(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        exit(EXIT_FAILURE);
    }
}

/* Holds the first blocks for a short time, and the last one for longer than the loop waits. */
static void *back_up(void *ready)
{
    struct timespec a_while = { 0, 50 * 1000000 }, long_after = { 0, 400 * 1000000 };
    spanlock_token first, last;
    ensure(spanlock_range_lock_read(lock, spanlock_range_of(0, 3 * BLOCK), &first), "read");
    ensure(spanlock_range_lock_read(lock, spanlock_range_from((JOBS - 1) * BLOCK), &last), "read");
    pthread_barrier_wait(ready);
    nanosleep(&a_while, NULL);
    ensure(spanlock_range_lock_release(lock, &first), "release");
    nanosleep(&long_after, NULL);
    ensure(spanlock_range_lock_release(lock, &last), "release");
    return NULL;
}

/* Does what was granted. */
static void finish(struct job *jobs, spanlock_request granted)
{
    for (int i = 0; i < JOBS; i++)
        if (jobs[i].request == granted) {
            spanlock_token token;
            ensure(spanlock_range_lock_take(lock, granted, &token), "take");
            printf("block %d: granted\n", i); /* Here it would be moved. */
            ensure(spanlock_range_lock_release(lock, &token), "release");
            jobs[i].request = 0;
        }
}

int main(void)
{
    int granted[2], left = JOBS;
    struct pollfd polled = { -1, POLLIN, 0 };
    struct job jobs[JOBS];
    pthread_barrier_t ready;
    pthread_t backup;
    if (pipe(granted) != 0) {
        perror("pipe");
        return EXIT_FAILURE;
    }
    polled.fd = granted[0];
    ensure(spanlock_range_lock_create(&lock, NULL), "create");
    pthread_barrier_init(&ready, NULL, 2);
    ensure(pthread_create(&backup, NULL, back_up, &ready), "a thread");
    pthread_barrier_wait(&ready);
    for (int i = 0; i < JOBS; i++) {
        spanlock_token token;
        jobs[i].range = spanlock_range_of((uint64_t)i * BLOCK, (uint64_t)(i + 1) * BLOCK);
        jobs[i].request = 0;
        if (spanlock_range_lock_try_write(lock, jobs[i].range, &token) == 0) { /* The fast way, if it is free. */
            printf("block %d: free\n", i);
            ensure(spanlock_range_lock_release(lock, &token), "release");
            left--;
        } else {
            ensure(spanlock_range_lock_submit_fd(lock, jobs[i].range, SPANLOCK_EXCLUSIVE, granted[1],
                                                 &jobs[i].request),
                   "submit");
        }
    }
    while (left > 0) {
        spanlock_request request;
        if (poll(&polled, 1, 200) == 0) { /* Nothing for so long: the rest gives up. */
            for (int i = 0; i < JOBS; i++)
                if (jobs[i].request != 0 && spanlock_range_lock_cancel(lock, jobs[i].request) == 0) {
                    printf("block %d: cancelled\n", i);
                    jobs[i].request = 0;
                    left--;
                }
            continue;
        }
        if (read(granted[0], &request, sizeof request) != sizeof request)
            continue;
        finish(jobs, request);
        left--;
    }
    pthread_join(backup, NULL);
    pthread_barrier_destroy(&ready);
    close(granted[0]);
    close(granted[1]);
    ensure(spanlock_range_lock_destroy(lock), "destroy");
    return EXIT_SUCCESS;
}
