/* Uses one lock, in a function that has a C++ name, and ends as the argument says. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void hot(void) __asm__("_ZN5store3getEv");

__attribute__((noinline)) void hot(void)
{
	pthread_rwlock_rdlock(&lock);
	pthread_rwlock_unlock(&lock); /* Line 16. */
}

int main(int arguments, char **argument)
{
	const char *end = arguments > 1 ? argument[1] : "";
	if (strcmp(end, "unused") == 0)
		return 0;
	for (int i = 0; i < 1000; i++)
		hot();
	if (strcmp(end, "_exit") == 0)
		_exit(0);
	if (strcmp(end, "killed") == 0)
		raise(SIGKILL);
	return 0;
}
