/* Readers and writers of every sort over one value. */
#include "check.h"

#define THREADS 6
#define ROUNDS 3000

static pthread_rwlock_t lock;
static volatile long first, second; /* Equal, but while written. */
static long written;

/* One of three calls, by turns. */
#define BY_TURNS(sort, a, b, c) ((sort) % 3 == 0 ? (a) : (sort) % 3 == 1 ? (b) : (c))

static int reads(unsigned sort)
{
	struct timespec until = from_now(CLOCK_MONOTONIC, 1);
	return BY_TURNS(sort, pthread_rwlock_rdlock(&lock), pthread_rwlock_tryrdlock(&lock),
			pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &until));
}

static int writes(unsigned sort)
{
	struct timespec until = from_now(CLOCK_REALTIME, 1);
	return BY_TURNS(sort, pthread_rwlock_wrlock(&lock), pthread_rwlock_trywrlock(&lock),
			pthread_rwlock_timedwrlock(&lock, &until));
}

static void *body(void *number)
{
	unsigned random = (unsigned)(long)number * 2654435761u + 1;
	for (int i = 0; i < ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		unsigned sort = random >> 16;
		if (sort % 16 == 0) {
			if (writes(sort / 16) != 0)
				continue;
			first = first + 1;
			if (sort % 64 == 0)
				sched_yield();
			second = second + 1;
			written++;
		} else {
			if (reads(sort / 16) != 0)
				continue;
			long seen = second;
			if (sort % 64 == 1)
				sched_yield();
			CHECK(first == seen, 1);
		}
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

int main(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		init(&lock, kinds[kind]);
		first = second = written = 0;
		pthread_t threads[THREADS];
		for (long i = 0; i < THREADS; i++)
			threads[i] = start(body, (void *)(i + 1));
		for (int i = 0; i < THREADS; i++)
			join(threads[i]);
		CHECK(first == written && second == written && written > 0, 1);
		CHECK_FREE(&lock);
		CHECK(pthread_rwlock_destroy(&lock), 0);
	}
	return 0;
}
