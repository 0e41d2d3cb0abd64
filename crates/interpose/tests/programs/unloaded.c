/* Loads the library by itself and unloads it, beside a thread that has used it and has yet to exit. */
#include "check.h"
#include <dlfcn.h>

static int (*rdlock)(pthread_rwlock_t *), (*unlock)(pthread_rwlock_t *);
static pthread_barrier_t barrier;

static void *use(void *unused)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	for (int i = 0; i < 1000; i++) {
		CHECK(rdlock(&lock), 0);
		CHECK(unlock(&lock), 0);
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return unused;
}

int main(int count, char **arguments)
{
	CHECK(count, 2);
	void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	CHECK(library == NULL, 0);
	*(void **)&rdlock = dlsym(library, "pthread_rwlock_rdlock");
	*(void **)&unlock = dlsym(library, "pthread_rwlock_unlock");
	CHECK(pthread_barrier_init(&barrier, NULL, 2), 0);
	pthread_t thread = start(use, NULL);
	pthread_barrier_wait(&barrier);
	CHECK(dlclose(library), 0);
	pid_t pid = fork(); /* For which it has registered. */
	if (pid == 0)
		_exit(0);
	int status;
	CHECK(waitpid(pid, &status, 0), pid);
	CHECK(status, 0);
	pthread_barrier_wait(&barrier);
	join(thread);
	return 0;
}
