// SPDX-License-Identifier: GPL-2.0
/*
 * vmrace ROUNDS GROWTHS: what a range lock as mmap_lock has to withstand when it locks parts of an address space.
 *
 *  race    One thread makes mappings grow by mprotect(), page by page, while others touch them for the first time.
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
#include <unistd.h>

enum { PAGE = 4096, GROUPS = 32, GROUP = 8, TOUCHERS = 2, THREADS = 4, BLOCK = 3000 };

static const char *const counters[] = {
	"mmap_fault_page", "mmap_fault_whole", "mprotect_in_place", "mprotect_retried", "mprotect_whole_for_structure",
	"mprotect_whole_for_range", "mprotect_whole_for_retries",
};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static unsigned char *area;
static int rounds, growths;
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

/* The pages of data that the kernel has counted, and those that are mapped as such. */
static void check_account(void)
{
	FILE *maps = fopen("/proc/self/maps", "r"), *status = fopen("/proc/self/status", "r");
	unsigned long start, end, mapped = 0, counted = 0;
	char mode[5], line[512];

	if (!maps || !status)
		fail("/proc/self", 0, 0);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 && mode[1] == 'w' && mode[3] == 'p' &&
		    !strstr(line, "[stack]"))
			mapped += (end - start) / 1024;
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmData:", 7))
			counted = strtoul(line + 7, NULL, 10);
	fclose(maps);
	fclose(status);
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

static void *grow_groups(void *unused)
{
	(void)unused;
	for (int r = 0; r < rounds; r++) {
		pthread_barrier_wait(&barrier);
		for (long g = 0; g < GROUPS; g++) {
			__atomic_store_n(&growing, g, __ATOMIC_RELEASE);
			for (long page = 1; page < GROUP - 1; page++)
				protect(word(area, g * GROUP + page), PAGE, PROT_READ | PROT_WRITE);
			for (long page = 1; page < GROUP - 1; page++)
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
			word(area, g * GROUP)[which] = (uint64_t)(r + g);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void race(void)
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
		for (long g = 0; g < GROUPS; g++)
			protect(word(area, g * GROUP), PAGE, PROT_READ | PROT_WRITE);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (long g = 0; g < GROUPS; g++) {
			for (long t = 0; t < TOUCHERS; t++)
				if (word(area, g * GROUP)[t] != (uint64_t)(r + g))
					fail("a page that was touched has another content", g, t);
			for (long page = 1; page < GROUP - 1; page++)
				if (*word(area, g * GROUP + page) != (uint64_t)(r + page))
					fail("a page that came has another content", g, page);
		}
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

static void run(const char *name, void (*function)(void))
{
	long before[COUNTERS], after[COUNTERS];

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
	if (rounds < 1 || growths < 1)
		fail("rounds and growths are at least 1", rounds, growths);
	run("race", race);
	run("arena", grow_arenas);
	run("malloc", allocate_all);
	return 0;
}
