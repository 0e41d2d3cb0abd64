/* A thread that was cancelled loads the library, which has something to say then, and at the end of the process. */
#include "check.h"
#include <dlfcn.h>

int main(int count, char **arguments)
{
	int (*rdlock)(pthread_rwlock_t *), (*unlock)(pthread_rwlock_t *);
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	CHECK(count, 2);
	CHECK(pthread_cancel(pthread_self()), 0);
	void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	CHECK(library == NULL, 0);
	*(void **)&rdlock = dlsym(library, "pthread_rwlock_rdlock");
	*(void **)&unlock = dlsym(library, "pthread_rwlock_unlock");
	CHECK(rdlock(&lock), 0);
	CHECK(unlock(&lock), 0);
	exit(3); /* A main thread that is unwound ends the process with 0. */
}
