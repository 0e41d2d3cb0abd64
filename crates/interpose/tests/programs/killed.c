/* A sandbox that kills for system calls that glibc's locks do not make, set up when the library is loaded and locks are
 * in use. */
#include "check.h"
#include "filter.h"

static pthread_rwlock_t lock;
static long first, second;

/* From now on for this thread and those it starts. */
static int forbid(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	return install(steps, sizeof steps / sizeof *steps);
}

static void *works(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20000; i++) {
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(first == second, 1);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		if (i % 100 == 0) {
			CHECK(pthread_rwlock_wrlock(&lock), 0);
			CHECK(pthread_rwlock_wrlock(&lock), EDEADLK);
			first++;
			second++;
			CHECK(pthread_rwlock_unlock(&lock), 0);
		}
	}
	return NULL;
}

int main(void)
{
	init(&lock, PTHREAD_RWLOCK_PREFER_READER_NP);
	warm(&lock);
	if (!forbid())
		return 77;
	/* A bias that has lived for long is revoked by a fence for all threads. */
	for (int i = 0; i < 200000; i++) {
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	pthread_t threads[] = { start(works, NULL), start(works, NULL), start(works, NULL) };
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	CHECK(first == 600 && second == 600, 1);
	return 0;
}
