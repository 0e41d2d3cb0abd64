/* A library's constructor waits for a lock, while its holder is counted. With -DPLUGIN this is the library. */
#include "check.h"
#include <dlfcn.h>
#include <sched.h>

extern pthread_rwlock_t lock;
extern pthread_barrier_t loading;

#ifdef PLUGIN
__attribute__((constructor)) static void construct(void)
{
	pthread_barrier_wait(&loading);
	/* White box: glibc's lock and ours are zero here until somebody is inside. */
	while (__atomic_load_n((unsigned *)&lock, __ATOMIC_RELAXED) == 0)
		sched_yield();
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
}
#else
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_barrier_t loading;
static int loaded;

static void *write_first(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&loading);
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	usleep(10000); /* Time for the constructor to see that. If it does not, the next one will be seen. */
	CHECK(pthread_rwlock_unlock(&lock), 0);
	while (!__atomic_load_n(&loaded, __ATOMIC_RELAXED)) {
		CHECK(pthread_rwlock_wrlock(&lock), 0);
		sched_yield();
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	CHECK(count, 2);
	CHECK(pthread_barrier_init(&loading, NULL, 2), 0);
	pthread_t writer = start(write_first, NULL);
	CHECK(dlopen(arguments[1], RTLD_NOW) == NULL, 0);
	__atomic_store_n(&loaded, 1, __ATOMIC_RELAXED);
	join(writer);
	return 0;
}
#endif
