// SPDX-License-Identifier: GPL-2.0
/*
 * vmfaults THREADS ROUNDS: threads of one process map, touch and unmap memory, as will-it-scale's cases mmap1, mmap2
 * and page_fault1 to page_fault3 do, and fault one mapping together.
 *
 * Each thread maps anonymous memory or a file of its own, privately or shared, and unmaps it again: untouched, or after
 * it has written to pages all over. What it finds in a page first is checked, and at the end what it has written. Then
 * all threads count in the same pages of one mapping, and each has to have all counts. Every other round asks for small
 * pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Large enough for a huge page. One page of STEP is touched, since a busy host makes each fault in common slow. */
enum { PAGE = 4096, PAGES = 1024, STEP = 16, MAX_THREADS = 64 };

struct scenario {
	const char *name;
	int flags, is_file, is_touched;
};

static const struct scenario scenarios[] = {
	{ "mmap", MAP_PRIVATE | MAP_ANONYMOUS, 0, 0 },
	{ "mmap-file", MAP_PRIVATE, 1, 0 },
	{ "fault", MAP_PRIVATE | MAP_ANONYMOUS, 0, 1 },
	{ "fault-file", MAP_PRIVATE, 1, 1 },
	{ "fault-shared", MAP_SHARED, 1, 1 },
};

static const struct scenario *scenario;
static int threads, rounds;
/* What all threads count in. */
static unsigned char *common;

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "vmfaults: %s: %ld, %ld (errno %d)\n", what, a, b, errno);
	_exit(1);
}

static uint64_t *word(unsigned char *base, long page)
{
	return (uint64_t *)(base + page * PAGE);
}

static unsigned char *map(int flags, int file, int round)
{
	size_t length = (size_t)PAGES * PAGE;
	unsigned char *base = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, file, 0);

	if (base == MAP_FAILED)
		fail("mmap", flags, round);
	/* The advice is refused where there are no huge pages. */
	if (round % 2)
		madvise(base, length, MADV_NOHUGEPAGE);
	return base;
}

static void unmap(unsigned char *base)
{
	if (munmap(base, (size_t)PAGES * PAGE))
		fail("munmap", (long)base, 0);
}

static int create_file(void)
{
	char name[] = "/tmp/vmfaults.XXXXXX";
	int file = mkstemp(name);

	if (file < 0 || ftruncate(file, (off_t)PAGES * PAGE))
		fail("a file in /tmp", file, 0);
	unlink(name);
	return file;
}

static void *map_and_touch(void *data)
{
	uint64_t number = (uint64_t)(long)data + 1;
	int file = scenario->is_file ? create_file() : -1;

	for (int r = 0; r < rounds; r++) {
		unsigned char *base = map(scenario->flags, file, r);
		/* A shared file keeps what the last round has written. */
		uint64_t old = scenario->flags & MAP_SHARED && r ? number << 32 | (uint64_t)(r - 1) : 0;
		uint64_t new = number << 32 | (uint64_t)r;

		for (long page = 0; scenario->is_touched && page < PAGES; page += STEP) {
			if (*word(base, page) != old)
				fail("a page comes with another content", page, r);
			*word(base, page) = new;
		}
		for (long page = 0; scenario->is_touched && page < PAGES; page += STEP)
			if (*word(base, page) != new)
				fail("a page has lost its content", page, r);
		unmap(base);
	}
	if (file >= 0)
		close(file);
	return NULL;
}

static void *count_in_common(void *data)
{
	/* Each begins elsewhere, and all meet. */
	long first = (long)data * (PAGES / STEP) / threads * STEP;

	for (long i = 0; i < PAGES; i += STEP)
		__atomic_fetch_add(word(common, (first + i) % PAGES), 1, __ATOMIC_RELAXED);
	return NULL;
}

static void in_threads(void *(*function)(void *))
{
	pthread_t ids[MAX_THREADS];

	for (long i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, function, (void *)i))
			fail("pthread_create", i, 0);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

static void fault_together(const char *name, int flags)
{
	for (int r = 0; r < rounds; r++) {
		common = map(flags, -1, r);
		in_threads(count_in_common);
		for (long page = 0; page < PAGES; page += STEP)
			if (*word(common, page) != (uint64_t)threads)
				fail("a page has lost a count", page, (long)*word(common, page));
		unmap(common);
	}
	printf("vmfaults: %s: %d threads, %d rounds\n", name, threads, rounds);
}

int main(int argc, char **argv)
{
	threads = argc > 1 ? atoi(argv[1]) : 4;
	rounds = argc > 2 ? atoi(argv[2]) : 10;
	if (threads < 1 || threads > MAX_THREADS || rounds < 1)
		fail("1 to 64 threads, and at least one round", threads, rounds);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		scenario = &scenarios[i];
		in_threads(map_and_touch);
		printf("vmfaults: %s: %d threads, %d rounds\n", scenario->name, threads, rounds);
	}
	fault_together("fault-together", MAP_PRIVATE | MAP_ANONYMOUS);
	fault_together("fault-together-shared", MAP_SHARED | MAP_ANONYMOUS);
	return 0;
}
