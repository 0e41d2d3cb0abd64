/* A lock's life ends as soon as somebody gets in who knows that nobody else will: maybe before the release that let it
 * in has returned. */
#include "check.h"

static pthread_rwlock_t *lock;
static long size;

static void *ends(void *unused)
{
	(void)unused;
	CHECK(pthread_rwlock_wrlock(lock), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	CHECK(munmap(lock, size), 0);
	return NULL;
}

static void *releases(void *unused)
{
	(void)unused;
	CHECK(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

int main(void)
{
	size = sysconf(_SC_PAGESIZE);
	for (int round = 0; round < 300; round++) {
		lock = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(lock == MAP_FAILED, 0);
		init(lock, kinds[round % KINDS]);
		warm(lock);
		int by_another = round % 2, written = round % 5 == 0;
		CHECK(written ? pthread_rwlock_wrlock(lock) : pthread_rwlock_rdlock(lock), 0);
		pthread_t writer = start(ends, NULL);
		if (round % 7)
			usleep(100);
		if (by_another && !written)
			join(start(releases, NULL));
		else
			releases(NULL);
		join(writer);
	}
	return 0;
}
