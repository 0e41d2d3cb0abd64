/* Locks that no function has made, locks used before constructors have run, and locks that processes share. */
#include "check.h"

static pthread_rwlock_t zero;
static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t nonrecursive = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t early;

/* Runs before any constructor of the program. */
static void before_all(void)
{
	warm(&early);
	CHECK(pthread_rwlock_rdlock(&early), 0);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = before_all;

static void use(pthread_rwlock_t *lock)
{
	warm(lock);
	CHECK(pthread_rwlock_rdlock(lock), 0);
	CHECK(pthread_rwlock_trywrlock(lock), EBUSY);
	CHECK(pthread_rwlock_unlock(lock), 0);
	CHECK(pthread_rwlock_wrlock(lock), 0);
	CHECK(pthread_rwlock_tryrdlock(lock), EBUSY);
	CHECK(pthread_rwlock_unlock(lock), 0);
}

static void between_processes(int kind)
{
	pthread_rwlock_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_rwlockattr_t attributes;
	CHECK(pthread_rwlockattr_init(&attributes), 0);
	CHECK(pthread_rwlockattr_setkind_np(&attributes, kind), 0);
	CHECK(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	CHECK(pthread_rwlock_init(lock, &attributes), 0);
	warm(lock);
	CHECK(pthread_rwlock_rdlock(lock), 0);
	pthread_rwlock_t before = *lock;
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(pthread_rwlock_trywrlock(lock), EBUSY); /* It sees the parent read, */
		CHECK(pthread_rwlock_unlock(lock), 0); /* and releases what that holds. */
		use(lock);
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0), pid);
	CHECK(status, 0);
	CHECK(pthread_rwlock_trywrlock(lock), 0);
	CHECK(pthread_rwlock_unlock(lock), 0);
	/* What glibc leaves alone was left alone. */
	CHECK(memcmp((char *)&before + 16, (char *)lock + 16, 8), 0);
	CHECK(pthread_rwlock_destroy(lock), 0);
}

int main(void)
{
	CHECK(pthread_rwlock_unlock(&early), 0);
	use(&early);
	use(&zero);
	use(&plain);
	use(&nonrecursive);
	pthread_rwlock_t *heap = calloc(1, sizeof *heap);
	use(heap);
	/* Any memory will do for one that is made by a function. */
	memset(heap, 0xa5, sizeof *heap);
	CHECK(pthread_rwlock_init(heap, NULL), 0);
	use(heap);
	CHECK(pthread_rwlock_destroy(heap), 0);
	free(heap);
	for (int kind = 0; kind < KINDS; kind++)
		between_processes(kinds[kind]);
	return 0;
}
