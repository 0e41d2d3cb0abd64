/* Read locks are released by threads that did not acquire them. */
#include "check.h"
#include <sched.h>

#define HOLDS 12 /* More than a thread's row in the table has slots. */

static pthread_rwlock_t lock;

static void *release_all(void *count)
{
	for (long i = 0; i < (long)count; i++)
		CHECK(pthread_rwlock_unlock(&lock), 0);
	return NULL;
}

static void *acquire_all(void *count)
{
	for (long i = 0; i < (long)count; i++)
		CHECK(pthread_rwlock_rdlock(&lock), 0);
	return NULL;
}

/* Holds that nobody in particular has: some threads acquire only, some release only. */
static int held, done;

static void *acquires(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&held, __ATOMIC_RELAXED) < HOLDS) {
			CHECK(pthread_rwlock_rdlock(&lock), 0);
			__atomic_fetch_add(&held, 1, __ATOMIC_RELEASE);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void *releases(void *unused)
{
	(void)unused;
	for (;;) {
		int count = __atomic_load_n(&held, __ATOMIC_RELAXED);
		if (count > 0) {
			if (__atomic_compare_exchange_n(&held, &count, count - 1, 0, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
				CHECK(pthread_rwlock_unlock(&lock), 0);
		} else if (__atomic_load_n(&done, __ATOMIC_RELAXED)) {
			return NULL;
		} else {
			sched_yield();
		}
	}
}

static void free_again(void)
{
	CHECK_FREE(&lock);
}

int main(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		init(&lock, kinds[kind]);
		for (long count = 1; count <= HOLDS; count++) {
			warm(&lock);
			acquire_all((void *)count);
			CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
			join(start(release_all, (void *)count));
			free_again();

			/* By a thread that is gone. */
			warm(&lock);
			join(start(acquire_all, (void *)count));
			CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
			release_all((void *)count);
			free_again();

			/* While a writer waits. */
			warm(&lock);
			acquire_all((void *)count);
			pthread_t waits = start(write_once, &lock);
			usleep(1000);
			join(start(release_all, (void *)count));
			join(waits);
			free_again();
		}
		/* Many at once, each of another's. */
		for (int round = 0; round < 200; round++) {
			warm(&lock);
			acquire_all((void *)6L);
			pthread_t threads[4];
			for (int i = 0; i < 2; i++)
				threads[i] = start(release_all, (void *)3L);
			for (int i = 2; i < 4; i++)
				threads[i] = start(write_once, &lock);
			for (int i = 0; i < 4; i++)
				join(threads[i]);
			free_again();
		}
		warm(&lock);
		pthread_t threads[6];
		done = 0;
		for (int i = 0; i < 6; i++)
			threads[i] = start(i % 2 ? releases : acquires, NULL);
		usleep(200000);
		__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
		for (int i = 0; i < 6; i += 2)
			join(threads[i]);
		for (int i = 1; i < 6; i += 2)
			join(threads[i]);
		releases(NULL);
		free_again();
		CHECK(pthread_rwlock_destroy(&lock), 0);
	}
	return 0;
}
