/* Every answer that glibc gives, for every kind of lock, with and without a bias. */
#include "check.h"

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };

static int times_out(int (*lock)(pthread_rwlock_t *, clockid_t, const struct timespec *),
		     pthread_rwlock_t *rwlock, clockid_t clock, long milliseconds)
{
	struct timespec until = from_now(clock, milliseconds);
	errno = EDOM; /* It is nobody's but the caller's. */
	int answer = lock(rwlock, clock, &until);
	CHECK(errno, EDOM);
	return answer;
}

static void *other_thread_finds_it_read(void *lock)
{
	struct timespec past = from_now(CLOCK_REALTIME, -1000), soon = from_now(CLOCK_REALTIME, 5);
	CHECK(pthread_rwlock_trywrlock(lock), EBUSY);
	CHECK(pthread_rwlock_timedwrlock(lock, &past), ETIMEDOUT);
	CHECK(pthread_rwlock_timedwrlock(lock, &soon), ETIMEDOUT);
	for (int i = 0; i < 2; i++) {
		CHECK(times_out(pthread_rwlock_clockwrlock, lock, clocks[i], -1000), ETIMEDOUT);
		CHECK(times_out(pthread_rwlock_clockwrlock, lock, clocks[i], 5), ETIMEDOUT);
	}
	CHECK(pthread_rwlock_rdlock(lock), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	CHECK(pthread_rwlock_tryrdlock(lock), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

static void *other_thread_finds_it_written(void *lock)
{
	CHECK(pthread_rwlock_tryrdlock(lock), EBUSY);
	CHECK(pthread_rwlock_trywrlock(lock), EBUSY);
	for (int i = 0; i < 2; i++) {
		CHECK(times_out(pthread_rwlock_clockrdlock, lock, clocks[i], 5), ETIMEDOUT);
		CHECK(times_out(pthread_rwlock_clockrdlock, lock, clocks[i], -1000), ETIMEDOUT);
		CHECK(times_out(pthread_rwlock_clockwrlock, lock, clocks[i], 5), ETIMEDOUT);
		CHECK(times_out(pthread_rwlock_clockwrlock, lock, clocks[i], -1000), ETIMEDOUT);
	}
	return NULL;
}

static void rejected(pthread_rwlock_t *lock)
{
	long wrong[] = { -1, 1000000000, 0x100000000 };
	for (int i = 0; i < 3; i++) {
		struct timespec until = from_now(CLOCK_REALTIME, 0);
		until.tv_nsec = wrong[i];
		CHECK(pthread_rwlock_timedrdlock(lock, &until), EINVAL);
		CHECK(pthread_rwlock_timedwrlock(lock, &until), EINVAL);
		CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &until), EINVAL);
		CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until), EINVAL);
	}
	struct timespec until = from_now(CLOCK_REALTIME, 1000);
	CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_PROCESS_CPUTIME_ID, &until), EINVAL);
	CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_THREAD_CPUTIME_ID, &until), EINVAL);
}

static void one_lock(int kind)
{
	pthread_rwlock_t lock;
	init(&lock, kind);
	rejected(&lock);
	warm(&lock);
	rejected(&lock);

	struct timespec past = from_now(CLOCK_REALTIME, -1000);
	CHECK(pthread_rwlock_timedwrlock(&lock, &past), 0); /* Free, so the time does not matter. */
	CHECK(pthread_rwlock_rdlock(&lock), EDEADLK);
	CHECK(pthread_rwlock_wrlock(&lock), EDEADLK);
	CHECK(pthread_rwlock_timedrdlock(&lock, &past), EDEADLK);
	CHECK(pthread_rwlock_timedwrlock(&lock, &past), EDEADLK);
	CHECK(pthread_rwlock_tryrdlock(&lock), EBUSY);
	CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
	rejected(&lock);
	join(start(other_thread_finds_it_written, &lock));
	CHECK(pthread_rwlock_unlock(&lock), 0);

	warm(&lock);
	CHECK(pthread_rwlock_timedrdlock(&lock, &past), 0);
	rejected(&lock);
	join(start(other_thread_finds_it_read, &lock));
	CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
	CHECK(pthread_rwlock_timedwrlock(&lock, &past), ETIMEDOUT);
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);

	/* Whoever gave up has left nothing behind. */
	CHECK_FREE(&lock);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

static void *write_and_exit(void *lock)
{
	CHECK(pthread_rwlock_wrlock(lock), 0);
	return NULL;
}

/* The next thread may have the memory of one that has exited, and holds nothing itself. */
static void written_by_a_thread_that_is_gone(int kind)
{
	pthread_rwlock_t lock;
	init(&lock, kind);
	join(start(write_and_exit, &lock));
	join(start(other_thread_finds_it_written, &lock));
}

static void *write_without_a_time(void *lock)
{
	const struct timespec *volatile none = NULL;
	CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, none), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

/* POSIX wants a time. glibc waits without end where there is none. */
static void without_a_time(int kind)
{
	const struct timespec *volatile none = NULL;
	pthread_rwlock_t lock;
	init(&lock, kind);
	warm(&lock);
	CHECK(pthread_rwlock_timedrdlock(&lock, none), 0);
	CHECK(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, none), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_timedwrlock(&lock, none), 0);
	CHECK(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, none), EDEADLK);
	pthread_t waits = start(write_without_a_time, &lock);
	usleep(2000); /* Time to wait. */
	CHECK(pthread_rwlock_unlock(&lock), 0);
	join(waits);
	CHECK_FREE(&lock);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

/* Some put a lock away that is held. */
static void destroyed_while_held(int kind)
{
	pthread_rwlock_t lock;
	init(&lock, kind);
	warm(&lock);
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
	init(&lock, kind);
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

static void too_many_readers(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	/* White box: as many readers as come in, in glibc's lock or ours. */
	const char *ours = getenv("SPANLOCK_LOCK");
	*(unsigned *)&lock = ours && strcmp(ours, "glibc") ? 1u << 27 : 0x80000000u - 8;
	CHECK(pthread_rwlock_rdlock(&lock), EAGAIN);
	CHECK(pthread_rwlock_tryrdlock(&lock), EAGAIN);
}

int main(void)
{
	for (int i = 0; i < KINDS; i++) {
		one_lock(kinds[i]);
		written_by_a_thread_that_is_gone(kinds[i]);
		destroyed_while_held(kinds[i]);
		without_a_time(kinds[i]);
	}
	too_many_readers();
	return 0;
}
