/* A library that is loaded with RTLD_DEEPBIND, and finds glibc's functions first, tries a lock of the program's.
 *
 * Compiled twice: as that library with -DPLUGIN, and as the program, in whose RUNPATH the library is. */
#include "check.h"
#include <dlfcn.h>

#ifdef PLUGIN

int plugin_trywrlock(pthread_rwlock_t *lock)
{
	return pthread_rwlock_trywrlock(lock);
}

#else

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

int main(void)
{
	/* By its name alone: it is looked for where the caller of dlopen says. */
	void *plugin = dlopen("libspanlock-deepbind.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (plugin == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int (*trywrlock)(pthread_rwlock_t *);
	*(void **)&trywrlock = dlsym(plugin, "plugin_trywrlock");
	CHECK(trywrlock != NULL, 1);

	warm(&lock);
	CHECK_EXCLUDES(&lock, trywrlock);

	/* Errors are those of dlopen. */
	CHECK(dlopen("no-such-library.so", RTLD_NOW) == NULL, 1);
	CHECK(strstr(dlerror(), "no-such-library.so") != NULL, 1);
	return 0;
}

#endif
