/* Read locks are released by threads that did not acquire them. */
#include "check.h"

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

static void *writer(void *unused)
{
	(void)unused;
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	return NULL;
}

static void free_again(void)
{
	CHECK(pthread_rwlock_trywrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
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
			pthread_t waits = start(writer, NULL);
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
				threads[i] = start(writer, NULL);
			for (int i = 0; i < 4; i++)
				join(threads[i]);
			free_again();
		}
		CHECK(pthread_rwlock_destroy(&lock), 0);
	}
	return 0;
}
