/* Shared by all programs here. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call, expected)                                                  \
	do {                                                                   \
		int got_ = (call);                                             \
		if (got_ != (expected)) {                                      \
			fprintf(stderr, "%s:%d: %s is %d, not %d\n", __FILE__, \
				__LINE__, #call, got_, (expected));            \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* Nobody holds the lock. */
#define CHECK_FREE(lock)                                     \
	do {                                                 \
		CHECK(pthread_rwlock_trywrlock(lock), 0);    \
		CHECK(pthread_rwlock_unlock(lock), 0);       \
	} while (0)

/* A reader keeps a writer out, and a writer keeps a reader out. */
#define CHECK_EXCLUDES(lock, trywrlock)                      \
	do {                                                 \
		CHECK(pthread_rwlock_rdlock(lock), 0);       \
		CHECK(trywrlock(lock), EBUSY);               \
		CHECK(pthread_rwlock_unlock(lock), 0);       \
		CHECK(trywrlock(lock), 0);                   \
		CHECK(pthread_rwlock_tryrdlock(lock), EBUSY); \
		CHECK(pthread_rwlock_unlock(lock), 0);       \
	} while (0)

static const int kinds[] = { PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
			     PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP };
#define KINDS 3

static inline void init(pthread_rwlock_t *lock, int kind)
{
	pthread_rwlockattr_t attributes;
	CHECK(pthread_rwlockattr_init(&attributes), 0);
	CHECK(pthread_rwlockattr_setkind_np(&attributes, kind), 0);
	CHECK(pthread_rwlock_init(lock, &attributes), 0);
	CHECK(pthread_rwlockattr_destroy(&attributes), 0);
}

static inline pthread_t start(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, body, argument), 0);
	return thread;
}

static inline void join(pthread_t thread)
{
	CHECK(pthread_join(thread, NULL), 0);
}

/* Bodies of threads that hold the lock once. */
static inline void *read_once(void *lock)
{
	CHECK(pthread_rwlock_rdlock(lock), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

static inline void *write_once(void *lock)
{
	CHECK(pthread_rwlock_wrlock(lock), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

/* A time that many milliseconds from now, which may be negative. */
static inline struct timespec from_now(clockid_t clock, long milliseconds)
{
	struct timespec time;
	clock_gettime(clock, &time);
	long nanoseconds = time.tv_nsec + milliseconds % 1000 * 1000000;
	time.tv_sec += milliseconds / 1000;
	if (nanoseconds < 0) {
		nanoseconds += 1000000000;
		time.tv_sec--;
	} else if (nanoseconds >= 1000000000) {
		nanoseconds -= 1000000000;
		time.tv_sec++;
	}
	time.tv_nsec = nanoseconds;
	return time;
}

/* Reads until the bias is on, if there is one. */
static inline void warm(pthread_rwlock_t *lock)
{
	for (int i = 0; i < 1000; i++) {
		CHECK(pthread_rwlock_rdlock(lock), 0);
		CHECK(pthread_rwlock_unlock(lock), 0);
	}
}
