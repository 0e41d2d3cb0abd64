/* What a server does between its start and its end: it changes its user ("user", and no other user may open the file of
 * counts), or it closes all descriptors and opens files of its own by their numbers ("closed", a file of its own). */
#include "check.h"
#include <fcntl.h>
#include <sys/stat.h>

#define DESCRIPTORS 1024

int main(int count, char **arguments)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	CHECK(count, 3);
	const char *how = arguments[1], *file = arguments[2];
	if (strcmp(how, "user") == 0) {
		CHECK(chmod(file, 0), 0);
		if (geteuid() == 0) {
			CHECK(setgid(65534), 0);
			CHECK(setuid(65534), 0);
		}
		CHECK(open(file, O_WRONLY), -1);
	} else {
		for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
			close(descriptor);
		int own = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		CHECK(own, 3);
		for (int descriptor = 4; descriptor < DESCRIPTORS; descriptor++)
			CHECK(dup2(own, descriptor), descriptor);
	}
	warm(&lock);
	CHECK_FREE(&lock);
	return 0;
}
