/* An allocator that uses a lock, in a program with so many keys that glibc allocates for the library's. */
#include "check.h"

extern void *__libc_calloc(size_t count, size_t size);

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static __thread int depth;

static void make_keys(void)
{
	pthread_key_t key;
	for (int i = 0; i < 40; i++)
		CHECK(pthread_key_create(&key, NULL), 0);
}
/* Before the library makes its own. */
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = make_keys;

void *calloc(size_t count, size_t size)
{
	CHECK(++depth <= 2, 1);
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	void *memory = __libc_calloc(count, size);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	depth--;
	return memory;
}

static void *allocate(void *unused)
{
	void *volatile memory = calloc(1, 100);
	free(memory);
	CHECK_FREE(&lock);
	return unused;
}

int main(void)
{
	warm(&lock);
	for (int i = 0; i < 100; i++) {
		join(start(allocate, NULL));
		warm(&lock);
	}
	return 0;
}
