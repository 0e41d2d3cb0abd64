/* Memory of a lock that was left read, not destroyed, becomes another lock. Its writers wait for no earlier reader. */
#include "check.h"

static pthread_rwlock_t lock;
static int by_init;

static void another(int kind)
{
	if (by_init) {
		memset(&lock, 0x5a, sizeof lock);
		init(&lock, kind);
	} else {
		memset(&lock, 0, sizeof lock);
	}
}

static void *leaves_it_read(void *count)
{
	warm(&lock);
	for (long i = 0; i < (long)count; i++)
		CHECK(pthread_rwlock_rdlock(&lock), 0);
	return NULL;
}

int main(void)
{
	for (int round = 0; round < 2 * KINDS; round++) {
		by_init = round / KINDS;
		for (long count = 1; count < 4; count++) {
			another(kinds[round % KINDS]);
			if (count % 2)
				leaves_it_read((void *)count);
			else
				join(start(leaves_it_read, (void *)count));
			CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
			another(kinds[round % KINDS]);
			warm(&lock);
			CHECK_FREE(&lock);
			warm(&lock);
			CHECK_EXCLUDES(&lock, pthread_rwlock_trywrlock);
			CHECK(pthread_rwlock_wrlock(&lock), 0);
			CHECK(pthread_rwlock_unlock(&lock), 0);
		}
	}
	return 0;
}
