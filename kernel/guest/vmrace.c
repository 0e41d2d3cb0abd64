// SPDX-License-Identifier: GPL-2.0
/*
 * vmrace ROUNDS GROWTHS [PART]: what a range lock as mmap_lock has to withstand when it locks parts of memory.
 *
 *  race    One thread makes mappings grow by mprotect(), page by page, while others touch them for the first time.
 *  down    The same, but the mappings grow downward, and have had their first fault.
 *  import  The same, but the mappings are empty, and grow into others that have had their first fault.
 *  limit   Threads grow mappings up to a limit of data, RLIMIT_DATA. Together they get what there is room for.
 *  arena   Each thread grows a mapping as glibc grows the arena of a thread, and protects all of it at times.
 *  malloc  Each thread allocates with malloc(), and glibc grows its arenas.
 *
 * After each round all contents are checked, and the size of data that the kernel has counted is compared with what is
 * mapped. At the end of each part the counters in /proc/vmstat say how many calls of mprotect() locked a part.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096, GROUPS = 32, GROUP = 8, TOUCHERS = 2, THREADS = 4, BLOCK = 3000, ROOM = 40 };

static const char *const counters[] = {
	"mmap_fault_page", "mmap_fault_whole", "mprotect_in_place", "mprotect_retried", "mprotect_whole_for_structure",
	"mprotect_whole_for_range", "mprotect_whole_for_retries",
};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static unsigned char *area;
static int rounds, growths;
/* The one part to run, if not all. */
static const char *only;
static int has_run;
/* By how many pages all threads have grown. */
static long grown;
/* The group that grows in this round. */
static long growing;
static pthread_barrier_t barrier;

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "vmrace: %s: %ld, %ld (errno %d)\n", what, a, b, errno);
	_exit(1);
}

static void protect(void *start, size_t length, int protection)
{
	if (mprotect(start, length, protection))
		fail("mprotect", (long)start, (long)length);
}

static void *reserve(size_t length)
{
	void *start = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED)
		fail("mmap", (long)length, 0);
	return start;
}

static uint64_t *word(unsigned char *base, long page)
{
	return (uint64_t *)(base + page * PAGE);
}

/* The size of data that the kernel has counted, in kB. */
static unsigned long data_counted(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long counted = 0;
	char line[512];

	if (!status)
		fail("/proc/self/status", 0, 0);
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmData:", 7))
			counted = strtoul(line + 7, NULL, 10);
	fclose(status);
	return counted;
}

/* It is to be that of what is mapped as data. */
static void check_account(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, mapped = 0, counted;
	char mode[5], line[512];

	if (!maps)
		fail("/proc/self/maps", 0, 0);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 && mode[1] == 'w' && mode[3] == 'p' &&
		    !strstr(line, "[stack]"))
			mapped += (end - start) / 1024;
	fclose(maps);
	counted = data_counted();
	if (mapped != counted)
		fail("the kernel counts another size of data (kB)", (long)counted, (long)mapped);
}

static void read_counters(long *values)
{
	FILE *file = fopen("/proc/vmstat", "r");
	char line[128], name[64];
	long value;

	memset(values, 0, COUNTERS * sizeof(*values));
	if (!file)
		fail("/proc/vmstat", 0, 0);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %ld", name, &value) == 2)
			for (int i = 0; i < COUNTERS; i++)
				if (!strcmp(name, counters[i]))
					values[i] = value;
	fclose(file);
}

/*
 * Two threads touch pages of a group while another one moves the boundary beside them, by protecting pages of
 * the group. A page is written once by each that touches it.
 */
struct contest {
	const char *name;
	/* How the group is when the round begins; the last page of it has been touched if it is not protected. */
	void (*prepare)(void);
	/* Which pages become writable, one after the other. */
	long first, last, step;
	long touched[TOUCHERS];
};

static const struct contest *contest;

static void protect_groups(long first, long last, int protection)
{
	for (long g = 0; g < GROUPS; g++)
		protect(word(area, g * GROUP + first), (size_t)(last - first + 1) * PAGE, protection);
}

static void touch_last(void)
{
	for (long g = 0; g < GROUPS; g++)
		*word(area, g * GROUP + GROUP - 1) = (uint64_t)g;
}

/* A mapping of one page, which grows upward, and is touched for the first time. */
static void prepare_race(void)
{
	protect_groups(0, 0, PROT_READ | PROT_WRITE);
}

/* A mapping which grows downward, and has had its first fault. */
static void prepare_down(void)
{
	protect_groups(GROUP / 2, GROUP - 1, PROT_READ | PROT_WRITE);
	touch_last();
}

/* A mapping without a page, which grows into one that has had its first fault. */
static void prepare_import(void)
{
	protect_groups(0, GROUP / 2 - 1, PROT_READ);
	protect_groups(GROUP / 2, GROUP - 1, PROT_READ | PROT_WRITE);
	touch_last();
	protect_groups(GROUP / 2, GROUP - 1, PROT_NONE);
	protect_groups(0, GROUP / 2 - 1, PROT_READ | PROT_WRITE);
}

static const struct contest contests[] = {
	{ "race", prepare_race, 1, GROUP - 2, 1, { 0, 0 } },
	{ "down", prepare_down, GROUP / 2 - 1, 1, -1, { GROUP / 2 + 1, GROUP / 2 + 2 } },
	{ "import", prepare_import, GROUP / 2, GROUP - 2, 1, { 0, 1 } },
};

static void *grow_groups(void *unused)
{
	(void)unused;
	for (int r = 0; r < rounds; r++) {
		pthread_barrier_wait(&barrier);
		for (long g = 0; g < GROUPS; g++) {
			__atomic_store_n(&growing, g, __ATOMIC_RELEASE);
			for (long page = contest->first; page != contest->last + contest->step; page += contest->step)
				protect(word(area, g * GROUP + page), PAGE, PROT_READ | PROT_WRITE);
			for (long page = contest->first; page != contest->last + contest->step; page += contest->step)
				*word(area, g * GROUP + page) = (uint64_t)(r + page);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void *touch_groups(void *data)
{
	long which = (long)data;

	for (int r = 0; r < rounds; r++) {
		pthread_barrier_wait(&barrier);
		for (long g = 0; g < GROUPS; g++) {
			/* At the time when it grows. */
			while (__atomic_load_n(&growing, __ATOMIC_ACQUIRE) < g)
				sched_yield();
			word(area, g * GROUP + contest->touched[which])[which] = (uint64_t)(r + g);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void check_groups(int round)
{
	for (long g = 0; g < GROUPS; g++) {
		for (long t = 0; t < TOUCHERS; t++)
			if (word(area, g * GROUP + contest->touched[t])[t] != (uint64_t)(round + g))
				fail("a page that was touched has another content", g, t);
		for (long page = contest->first; page != contest->last + contest->step; page += contest->step)
			if (*word(area, g * GROUP + page) != (uint64_t)(round + page))
				fail("a page that came has another content", g, page);
	}
}

static void hold_contest(void)
{
	size_t length = (size_t)GROUPS * GROUP * PAGE;
	pthread_t threads[TOUCHERS + 1];

	pthread_barrier_init(&barrier, NULL, TOUCHERS + 2);
	for (long i = 0; i <= TOUCHERS; i++)
		if (pthread_create(&threads[i], NULL, i ? touch_groups : grow_groups, (void *)(i - 1)))
			fail("pthread_create", i, 0);
	for (int r = 0; r < rounds; r++) {
		area = reserve(length);
		growing = -1;
		contest->prepare();
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		check_groups(r);
		check_account();
		if (munmap(area, length))
			fail("munmap", r, 0);
	}
	for (int i = 0; i <= TOUCHERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void *grow_arena(void *data)
{
	size_t length = (size_t)(growths + 1) * PAGE;
	unsigned char *base = reserve(length);

	for (long page = 0; page < growths; page++) {
		protect(word(base, page), PAGE, PROT_READ | PROT_WRITE);
		*word(base, page) = (uint64_t)page ^ (uint64_t)(long)data;
		if (page % 64 == 63) {
			protect(base, (size_t)(page + 1) * PAGE, PROT_READ);
			protect(base, (size_t)(page + 1) * PAGE, PROT_READ | PROT_WRITE);
		}
	}
	for (long page = 0; page < growths; page++)
		if (*word(base, page) != ((uint64_t)page ^ (uint64_t)(long)data))
			fail("a page of an arena has another content", page, (long)data);
	if (munmap(base, length))
		fail("munmap", (long)data, 0);
	return NULL;
}

static void *allocate(void *data)
{
	unsigned char **blocks = calloc((size_t)growths, sizeof(*blocks));

	if (!blocks)
		fail("calloc", growths, 0);
	for (int i = 0; i < growths; i++) {
		blocks[i] = malloc(BLOCK);
		if (!blocks[i])
			fail("malloc", i, 0);
		memset(blocks[i], i + (int)(long)data, BLOCK);
	}
	for (int i = 0; i < growths; i++) {
		if (blocks[i][0] != (unsigned char)(i + (int)(long)data) || blocks[i][BLOCK - 1] != blocks[i][0])
			fail("a block has another content", i, (long)data);
		free(blocks[i]);
	}
	free(blocks);
	return NULL;
}

static void in_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, function, (void *)i))
			fail("pthread_create", i, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_account();
}

static void grow_arenas(void)
{
	in_threads(grow_arena);
}

static void allocate_all(void)
{
	in_threads(allocate);
}

/* Grows until the limit of data is reached, and says by how many pages. */
static void *grow_to_limit(void *data)
{
	unsigned char *base = data;
	long page = 0;

	pthread_barrier_wait(&barrier);
	while (page < ROOM && !mprotect(word(base, page), PAGE, PROT_READ | PROT_WRITE))
		page++;
	if (page < ROOM && errno != ENOMEM)
		fail("mprotect at the limit", page, 0);
	__atomic_fetch_add(&grown, page, __ATOMIC_RELAXED);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Threads that grow together get as many pages as there is room for, and no more. */
static void reach_limit(void)
{
	size_t length = (size_t)(ROOM + 1) * PAGE;
	pthread_t threads[THREADS];
	unsigned char *bases[THREADS];
	struct rlimit all, limit;

	if (getrlimit(RLIMIT_DATA, &all))
		fail("getrlimit", 0, 0);
	for (int r = 0; r < rounds; r++) {
		grown = 0;
		pthread_barrier_init(&barrier, NULL, THREADS + 1);
		for (int i = 0; i < THREADS; i++) {
			bases[i] = reserve(length);
			if (pthread_create(&threads[i], NULL, grow_to_limit, bases[i]))
				fail("pthread_create", i, 0);
		}
		limit = all;
		limit.rlim_cur = (rlim_t)data_counted() * 1024 + (rlim_t)ROOM * PAGE;
		if (setrlimit(RLIMIT_DATA, &limit))
			fail("setrlimit", r, 0);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		if (setrlimit(RLIMIT_DATA, &all))
			fail("setrlimit", r, 0);
		if (grown != ROOM)
			fail(grown > ROOM ? "threads have passed a limit" : "threads have not reached a limit", grown, ROOM);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			if (munmap(bases[i], length))
				fail("munmap", r, i);
		}
		pthread_barrier_destroy(&barrier);
	}
}

static void run(const char *name, void (*function)(void))
{
	long before[COUNTERS], after[COUNTERS];

	if (only && strcmp(only, name))
		return;
	has_run = 1;
	read_counters(before);
	function();
	read_counters(after);
	printf("vmrace: %s:", name);
	for (int i = 0; i < COUNTERS; i++)
		printf(" %s %ld", counters[i], after[i] - before[i]);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? atoi(argv[1]) : 20;
	growths = argc > 2 ? atoi(argv[2]) : 500;
	only = argc > 3 ? argv[3] : NULL;
	if (rounds < 1 || growths < 1)
		fail("rounds and growths are at least 1", rounds, growths);
	for (size_t i = 0; i < sizeof(contests) / sizeof(contests[0]); i++) {
		contest = &contests[i];
		run(contest->name, hold_contest);
	}
	run("limit", reach_limit);
	run("arena", grow_arenas);
	run("malloc", allocate_all);
	if (!has_run)
		fail("there is no such part", 0, 0);
	return 0;
}
