/* Writes its title over its arguments and its environment, as servers do, and moves the environment before. */
#include "check.h"

extern char **environ;

/* The end of the strings there, which lie side by side. */
static char *end_of(char **strings, char *end)
{
	for (; *strings; strings++)
		end = *strings + strlen(*strings) + 1;
	return end;
}

int main(int count, char **arguments)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	(void)count;
	warm(&lock);
	char *start = arguments[0], *end = end_of(environ, end_of(arguments, start));
	for (char **variable = environ; *variable; variable++)
		*variable = strdup(*variable);
	memset(start, 't', end - start - 1);
	CHECK_FREE(&lock);
	return 0;
}
