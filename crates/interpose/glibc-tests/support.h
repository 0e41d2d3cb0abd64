/* What glibc's rwlock tests use of glibc's own test support. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT = 20, EXIT_UNSUPPORTED = 77 };

#define FAIL_EXIT1(...) \
	(fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

#define TEST_COMPARE(left, right)                                                         \
	do {                                                                              \
		long long left_ = (left), right_ = (right);                               \
		if (left_ != right_)                                                      \
			FAIL_EXIT1("%s is %lld, %s is %lld", #left, left_, #right, right_); \
	} while (0)

/* Of functions that return an error. */
#define DEMAND(call)                                                          \
	do {                                                                  \
		int error_ = (call);                                          \
		if (error_ != 0)                                              \
			FAIL_EXIT1("%s: %s", #call, strerror(error_));        \
	} while (0)

static inline pthread_t xpthread_create(pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
	pthread_t thread;
	DEMAND(pthread_create(&thread, attributes, body, argument));
	return thread;
}

static inline void *xpthread_join(pthread_t thread)
{
	void *result;
	DEMAND(pthread_join(thread, &result));
	return result;
}

static void *exit_later(void *seconds)
{
	sleep((unsigned)(uintptr_t)seconds);
	exit(0);
}

/* Ends the process well after so long: the test shows that something does not end. */
static inline void delayed_exit(int seconds)
{
	xpthread_create(NULL, exit_later, (void *)(uintptr_t)seconds);
}

static inline void xpthread_barrier_wait(pthread_barrier_t *barrier)
{
	int answer = pthread_barrier_wait(barrier);
	if (answer != 0 && answer != PTHREAD_BARRIER_SERIAL_THREAD)
		FAIL_EXIT1("pthread_barrier_wait: %s", strerror(answer));
}

#define xpthread_barrier_init(...) DEMAND(pthread_barrier_init(__VA_ARGS__))
#define xpthread_mutex_lock(...) DEMAND(pthread_mutex_lock(__VA_ARGS__))
#define xpthread_mutex_unlock(...) DEMAND(pthread_mutex_unlock(__VA_ARGS__))
#define xpthread_rwlock_init(...) DEMAND(pthread_rwlock_init(__VA_ARGS__))
#define xpthread_rwlock_destroy(...) DEMAND(pthread_rwlock_destroy(__VA_ARGS__))
#define xpthread_rwlock_rdlock(...) DEMAND(pthread_rwlock_rdlock(__VA_ARGS__))
#define xpthread_rwlock_wrlock(...) DEMAND(pthread_rwlock_wrlock(__VA_ARGS__))
#define xpthread_rwlock_unlock(...) DEMAND(pthread_rwlock_unlock(__VA_ARGS__))
#define xpthread_rwlockattr_init(...) DEMAND(pthread_rwlockattr_init(__VA_ARGS__))
#define xpthread_rwlockattr_setkind_np(...) DEMAND(pthread_rwlockattr_setkind_np(__VA_ARGS__))
#define xclock_gettime(...) DEMAND(clock_gettime(__VA_ARGS__) == 0 ? 0 : errno)

static inline struct timespec make_timespec(time_t seconds, long nanoseconds)
{
	return (struct timespec){ .tv_sec = seconds, .tv_nsec = nanoseconds };
}

static inline struct timespec timespec_add(struct timespec left, struct timespec right)
{
	long nanoseconds = left.tv_nsec + right.tv_nsec;
	return make_timespec(left.tv_sec + right.tv_sec + nanoseconds / 1000000000, nanoseconds % 1000000000);
}

#define verbose_printf(...) ((void)0)

/* That the time has come. */
#define TEST_TIMESPEC_NOW_OR_AFTER(clock, time)                                                      \
	do {                                                                                         \
		struct timespec now_, time_ = (time);                                                \
		xclock_gettime((clock), &now_);                                                      \
		if (now_.tv_sec < time_.tv_sec ||                                                    \
		    (now_.tv_sec == time_.tv_sec && now_.tv_nsec < time_.tv_nsec))                   \
			FAIL_EXIT1("%s has not come", #time);                                        \
	} while (0)

#define atomic_load_relaxed(from) __atomic_load_n((from), __ATOMIC_RELAXED)
#define atomic_store_relaxed(to, value) __atomic_store_n((to), (value), __ATOMIC_RELAXED)

#endif
