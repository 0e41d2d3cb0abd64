/* What the programs share: checks that say where they fail, threads, and an end to programs that hang. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                      \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                           \
            abort();                                                                                          \
        }                                                                                                     \
    } while (0)

/* Checks what a function of the library answers. */
#define ANSWERS(answer, call)                                                                                 \
    do {                                                                                                      \
        int answered = (call);                                                                                \
        if (answered != (answer)) {                                                                           \
            fprintf(stderr, "%s:%d: %s answers %d and not %s\n", __FILE__, __LINE__, #call, answered,         \
                    #answer);                                                                                 \
            abort();                                                                                          \
        }                                                                                                     \
    } while (0)
#define OK(call) ANSWERS(0, call)

/* A time so many milliseconds from now. */
static inline struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

static inline void sleep_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

/* Runs a function on a thread of its own, to its end. */
static inline void *on_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

#endif
