/* A signal handler that acquires and releases what its thread is about to acquire or release loses nobody's hold. POSIX
 * allows no lock in a handler; with glibc's reader-preferring kind it works. */
#include "check.h"
#include <sched.h>
#include <signal.h>

static pthread_rwlock_t lock;
static int done;
static long handled;

static void handler(int signal)
{
	(void)signal;
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void free_again(void)
{
	CHECK_FREE(&lock);
}

#ifdef __x86_64__
/* Changes the flag by which the processor traps after each instruction, which the kernel signals. The compiler may have
 * something in the 128 bytes below the stack. */
#define SET_TRAP_FLAG(change) \
	__asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; " change "; popfq; leaq 128(%%rsp), %%rsp" ::: "memory", "cc")

/* A handler between each two instructions. */
static void everywhere(int holds)
{
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < holds; i++)
			CHECK(pthread_rwlock_rdlock(&lock), 0);
		SET_TRAP_FLAG("orq $0x100, (%%rsp)");
		pthread_rwlock_rdlock(&lock);
		pthread_rwlock_unlock(&lock);
		SET_TRAP_FLAG("andq $~0x100, (%%rsp)");
		for (int i = 0; i < holds; i++)
			CHECK(pthread_rwlock_unlock(&lock), 0);
		free_again();
		if (round % 2)
			warm(&lock);
	}
}
#else
static void everywhere(int holds)
{
	(void)holds;
}
#endif

static void *reads(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

/* Handlers wherever the thread happens to be. */
static void anywhere(void)
{
	done = 0;
	pthread_t reader = start(reads, NULL);
	for (int sent = 0; sent < 1000; sent++) {
		long before = __atomic_load_n(&handled, __ATOMIC_RELAXED);
		CHECK(pthread_kill(reader, SIGUSR1), 0);
		while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == before)
			sched_yield();
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	join(reader);
	free_again();
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler };
	CHECK(sigaction(SIGTRAP, &action, NULL), 0);
	CHECK(sigaction(SIGUSR1, &action, NULL), 0);
	init(&lock, PTHREAD_RWLOCK_PREFER_READER_NP);
	warm(&lock);
	for (int holds = 0; holds < 3; holds++)
		everywhere(holds);
	warm(&lock);
	anywhere();
	return 0;
}
