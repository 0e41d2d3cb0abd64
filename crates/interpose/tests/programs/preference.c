/* While a writer waits, the kind that asks for it keeps readers out, and the others let them in. */
#include "check.h"

static pthread_rwlock_t lock;

static void *timed_writer(void *until)
{
	CHECK(pthread_rwlock_timedwrlock(&lock, until), ETIMEDOUT);
	return NULL;
}

int main(void)
{
	for (int round = 0; round < 20; round++) {
		init(&lock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
		warm(&lock);
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		pthread_t waits = start(write_once, &lock);
		int answer;
		while ((answer = pthread_rwlock_tryrdlock(&lock)) == 0) { /* Until it waits. */
			CHECK(pthread_rwlock_unlock(&lock), 0);
			sched_yield();
		}
		CHECK(answer, EBUSY);
		struct timespec soon = from_now(CLOCK_REALTIME, 2);
		CHECK(pthread_rwlock_timedrdlock(&lock, &soon), ETIMEDOUT);
		pthread_t late = start(read_once, &lock);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		join(waits);
		join(late);

		/* A writer that gave up keeps nobody out. */
		warm(&lock);
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		soon = from_now(CLOCK_REALTIME, 2);
		join(start(timed_writer, &soon));
		CHECK(pthread_rwlock_tryrdlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		CHECK_FREE(&lock);
		CHECK(pthread_rwlock_destroy(&lock), 0);
	}
	return 0;
}
