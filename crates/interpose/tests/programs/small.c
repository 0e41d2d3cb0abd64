/* Threads with the smallest stacks there are use locks, and wait for them. */
#include "check.h"
#include <limits.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *uses(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++) {
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		CHECK(pthread_rwlock_wrlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[100];
	pthread_attr_t small;
	CHECK(pthread_attr_init(&small), 0);
	CHECK(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN), 0);
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	for (int i = 0; i < 100; i++)
		CHECK(pthread_create(&threads[i], &small, uses, NULL), 0);
	usleep(2000);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	for (int i = 0; i < 100; i++)
		join(threads[i]);
	CHECK_FREE(&lock);
	return 0;
}
