/* The kernel refuses what it granted before, as in a sandbox that is set up late: locks exclude as they did, and are
 * no place where a thread is cancelled. */
#include "check.h"
#include "filter.h"

static pthread_rwlock_t lock;
static volatile long first, second;
static int done, reached;

/* From now on for this thread; 0 if that is not to be had. */
static int refuse_membarrier(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	return install(steps, sizeof steps / sizeof *steps);
}

static void *reads(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(first == second, 1);
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

/* It is to be cancelled, and has bias and sandbox to deal with before it says where. */
static void *writes(void *unused)
{
	(void)unused;
	CHECK(pthread_cancel(pthread_self()), 0);
	if (!refuse_membarrier())
		printf("no sandbox is to be had: written without\n");
	for (int i = 0; i < 1000; i++) {
		CHECK(pthread_rwlock_wrlock(&lock), 0);
		first++;
		second++;
		CHECK(pthread_rwlock_unlock(&lock), 0);
		if (i % 100 == 0)
			warm(&lock);
	}
	reached = 1;
	pthread_testcancel();
	return NULL;
}

int main(void)
{
	init(&lock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	warm(&lock);
	pthread_t readers[] = { start(reads, NULL), start(reads, NULL) };
	pthread_t writer = start(writes, NULL);
	void *ended;
	CHECK(pthread_join(writer, &ended), 0);
	CHECK(ended == PTHREAD_CANCELED, 1);
	CHECK(reached, 1);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		join(readers[i]);
	CHECK(first == 1000 && second == 1000, 1);
	CHECK(pthread_rwlock_destroy(&lock), 0);
	return 0;
}
