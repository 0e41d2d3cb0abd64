/* A thread reads, a writer waits for it, and the thread reads again: the kinds that promise that this ends keep it. */
#include "check.h"

#define ROUNDS 1000

static pthread_rwlock_t lock;
static pthread_barrier_t barrier;
static int writing;

static void *writer(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		CHECK(pthread_rwlock_wrlock(&lock), 0);
		__atomic_store_n(&writing, 0, __ATOMIC_RELAXED);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	for (int kind = 0; kind < 2; kind++) {
		init(&lock, kinds[kind]);
		warm(&lock);
		CHECK(pthread_barrier_init(&barrier, NULL, 2), 0);
		pthread_t thread = start(writer, NULL);
		for (int i = 0; i < ROUNDS; i++) {
			writing = 1;
			CHECK(pthread_rwlock_rdlock(&lock), 0);
			pthread_barrier_wait(&barrier);
			for (int yields = i % 4; yields > 0; yields--)
				sched_yield();
			if (i % 100 == 0)
				usleep(2000); /* Now it sleeps. */
			CHECK(pthread_rwlock_rdlock(&lock), 0);
			CHECK(pthread_rwlock_tryrdlock(&lock), 0);
			if (i % 100 == 0)
				join(start(read_once, &lock)); /* Nor does another reader wait. */
			CHECK(__atomic_load_n(&writing, __ATOMIC_RELAXED), 1);
			for (int depth = 0; depth < 3; depth++)
				CHECK(pthread_rwlock_unlock(&lock), 0);
			pthread_barrier_wait(&barrier);
			CHECK(__atomic_load_n(&writing, __ATOMIC_RELAXED), 0);
			if (i % 10 == 0)
				warm(&lock);
		}
		join(thread);
		CHECK(pthread_rwlock_destroy(&lock), 0);
	}
	return 0;
}
