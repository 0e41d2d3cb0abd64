/* A child inherits what its thread holds, and nothing that would make it wait for threads that it does not have. */
#include "check.h"

static pthread_rwlock_t lock, other;
static pthread_barrier_t barrier;

static void *reader_of_other(void *unused)
{
	(void)unused;
	warm(&other);
	CHECK(pthread_rwlock_rdlock(&other), 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	CHECK(pthread_rwlock_unlock(&other), 0);
	return NULL;
}

static void child(int holds_read)
{
	if (holds_read) {
		CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	warm(&lock);
	CHECK_FREE(&lock);
	_exit(0);
}

static void fork_and_wait(int holds_read)
{
	pid_t pid = fork();
	if (pid == 0)
		child(holds_read);
	int status;
	CHECK(waitpid(pid, &status, 0), pid);
	CHECK(status, 0);
}

int main(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		init(&lock, kinds[kind]);
		init(&other, kinds[kind]);
		warm(&lock);
		fork_and_wait(0);
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(pthread_barrier_init(&barrier, NULL, 2), 0);
		pthread_t thread = start(reader_of_other, NULL);
		pthread_barrier_wait(&barrier);
		fork_and_wait(1);
		pthread_barrier_wait(&barrier);
		join(thread);
		/* The parent's are as they were. */
		CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		CHECK_FREE(&lock);
		CHECK_FREE(&other);
	}
	return 0;
}
