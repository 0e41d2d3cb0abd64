// SPDX-License-Identifier: GPL-2.0
/*
 * vmstress THREADS PHASES STEPS: threads of one process change the address space, and compare it with a model.
 *
 * Each thread has a part of one reserved area to itself, so it knows what each page there has to be. It maps, unmaps,
 * protects, moves, discards and touches random pages; all threads do so in one address space. After each phase the
 * whole area is compared with the model: what is mapped and how by /proc/self/maps, and what the pages contain. In
 * between, children are forked, which check their copies, and killed, while their threads do the same.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 128, PAGE = 4096, MAX_THREADS = 64 };
enum state { UNMAPPED, NONE, READ, WRITE };

static const int protection[] = { 0, PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

struct page {
	enum state state;
	uint64_t content;
};

struct part {
	unsigned char *base;
	uint64_t random;
	long steps;
	struct page pages[PAGES];
	pthread_t thread;
};

static struct part parts[MAX_THREADS];
static long counts[8];
static const char *const names[8] = { "mmap", "munmap", "mprotect", "mremap", "discard", "write", "read", "fork" };

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "vmstress: %s: %ld, %ld (errno %d)\n", what, a, b, errno);
	_exit(1);
}

static uint64_t draw(struct part *part)
{
	part->random ^= part->random << 13;
	part->random ^= part->random >> 7;
	part->random ^= part->random << 17;
	return part->random;
}

static uint64_t *word(struct part *part, int page)
{
	return (uint64_t *)(part->base + (size_t)page * PAGE);
}

static void set(struct part *part, int first, int count, enum state state, int is_fresh)
{
	for (int i = first; i < first + count; i++) {
		part->pages[i].state = state;
		if (is_fresh)
			part->pages[i].content = 0;
	}
}

static int is_mapped(struct part *part, int first, int count)
{
	for (int i = first; i < first + count; i++)
		if (part->pages[i].state == UNMAPPED)
			return 0;
	return 1;
}

static void read_pages(struct part *part, int first, int count)
{
	for (int i = first; i < first + count; i++)
		if (part->pages[i].state >= READ && *(volatile uint64_t *)word(part, i) != part->pages[i].content)
			fail("a page has another content", i, (long)*word(part, i));
}

static void move(struct part *part, int from, int count, uint64_t dice)
{
	int to = (int)(dice % (PAGES - count));

	/* One mapping is moved at a time: pages of one protection, next to one another. */
	for (int i = from; i < from + count; i++)
		if (part->pages[i].state != part->pages[from].state)
			return;
	if (part->pages[from].state == UNMAPPED || (to < from + count && from < to + count))
		return;
	/* Whether a call that fails has unmapped the place depends on the kernel: so nothing is there. */
	if (munmap(word(part, to), (size_t)count * PAGE))
		fail("munmap", to, count);
	set(part, to, count, UNMAPPED, 1);
	void *moved = mremap(word(part, from), (size_t)count * PAGE, (size_t)count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			     word(part, to));
	/* Neighbours of one protection may be different mappings. */
	if (moved == MAP_FAILED && errno == EFAULT)
		return;
	if (moved == MAP_FAILED)
		fail("mremap", from, to);
	memcpy(&part->pages[to], &part->pages[from], sizeof(struct page) * (size_t)count);
	set(part, from, count, UNMAPPED, 1);
}

static void step(struct part *part, int may_fork)
{
	uint64_t dice = draw(part);
	int first = (int)((dice >> 8) % PAGES);
	int most = PAGES - first < 16 ? PAGES - first : 16;
	int count = 1 + (int)((dice >> 24) % (uint64_t)most);
	enum state state = (enum state)(1 + (dice >> 32) % 3);
	unsigned char *start = (unsigned char *)word(part, first);
	size_t length = (size_t)count * PAGE;
	int which = (int)(dice % 32);

	which = which < 4 ? 0 : which < 6 ? 1 : which < 14 ? 2 : which < 16 ? 3 : which < 18 ? 4 : which < 25 ? 5 : 6;
	if (may_fork && dice % 2048 == 77)
		which = 7;
	__atomic_fetch_add(&counts[which], 1, __ATOMIC_RELAXED);
	switch (which) {
	case 0:
		if (mmap(start, length, protection[state], MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != start)
			fail("mmap", first, count);
		set(part, first, count, state, 1);
		break;
	case 1:
		if (munmap(start, length))
			fail("munmap", first, count);
		set(part, first, count, UNMAPPED, 1);
		break;
	case 2:
		if (!is_mapped(part, first, count))
			break;
		if (mprotect(start, length, protection[state]))
			fail("mprotect", first, count);
		set(part, first, count, state, 0);
		break;
	case 3:
		move(part, first, count, dice >> 40);
		break;
	case 4:
		if (!is_mapped(part, first, count))
			break;
		if (madvise(start, length, MADV_DONTNEED))
			fail("madvise", first, count);
		for (int i = first; i < first + count; i++)
			part->pages[i].content = 0;
		break;
	case 5:
		for (int i = first; i < first + count; i++) {
			if (part->pages[i].state == WRITE) {
				part->pages[i].content = dice + (uint64_t)i;
				*word(part, i) = part->pages[i].content;
			}
		}
		break;
	case 6:
		read_pages(part, first, count);
		break;
	case 7: {
		pid_t child = fork();
		int status;

		if (child < 0)
			fail("fork", 0, 0);
		if (child == 0) {
			read_pages(part, 0, PAGES);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			fail("a child failed", child, status);
		break;
	}
	}
}

static void *storm(void *data)
{
	struct part *part = data;

	for (long i = 0; i < part->steps; i++)
		step(part, 1);
	return NULL;
}

/* Compares the model with what the kernel says about each page. */
static void compare(int threads)
{
	static unsigned char seen[MAX_THREADS][PAGES];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char mode[5], line[512];

	if (!maps)
		fail("/proc/self/maps", 0, 0);
	memset(seen, 0, sizeof(seen));
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) != 3)
			fail("a line of /proc/self/maps", 0, 0);
		for (int t = 0; t < threads; t++) {
			for (int i = 0; i < PAGES; i++) {
				unsigned long at = (unsigned long)word(&parts[t], i);

				if (start <= at && at < end)
					seen[t][i] = mode[1] == 'w' ? WRITE : mode[0] == 'r' ? READ : NONE;
			}
		}
	}
	fclose(maps);
	for (int t = 0; t < threads; t++) {
		for (int i = 0; i < PAGES; i++)
			if (seen[t][i] != parts[t].pages[i].state)
				fail("a page is mapped otherwise", seen[t][i], parts[t].pages[i].state);
		read_pages(&parts[t], 0, PAGES);
	}
}

static void *storm_for_good(void *data)
{
	for (;;)
		step(data, 0);
	return NULL;
}

/* A process is killed while its threads wait for one another in the kernel. */
static void kill_one(int threads)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail("fork", 0, 0);
	if (child == 0) {
		for (int t = 0; t < threads; t++)
			if (pthread_create(&parts[t].thread, NULL, storm_for_good, &parts[t]))
				fail("pthread_create", t, 0);
		pause();
	}
	usleep(20000);
	kill(child, SIGKILL);
	if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail("a child did not end as it was to", child, status);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	int phases = argc > 2 ? atoi(argv[2]) : 5;
	long steps = argc > 3 ? atol(argv[3]) : 2000;
	/*
	 * A page stays reserved on both sides of each part. So no mapping is part of two, and a thread's stack is not put
	 * where the first part has just unmapped its first pages.
	 */
	size_t stride = (size_t)(PAGES + 1) * PAGE;
	unsigned char *area;

	if (threads < 1 || threads > MAX_THREADS)
		fail("1 to 64 threads", threads, 0);
	area = mmap(NULL, stride * (size_t)threads + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		fail("mmap", 0, 0);
	for (int t = 0; t < threads; t++) {
		parts[t].base = area + PAGE + stride * (size_t)t;
		parts[t].random = 0x9E3779B97F4A7C15u * (uint64_t)(t + 1);
		parts[t].steps = steps;
		set(&parts[t], 0, PAGES, NONE, 1);
	}
	for (int phase = 0; phase < phases; phase++) {
		for (int t = 0; t < threads; t++)
			if (pthread_create(&parts[t].thread, NULL, storm, &parts[t]))
				fail("pthread_create", t, 0);
		for (int t = 0; t < threads; t++)
			pthread_join(parts[t].thread, NULL);
		compare(threads);
		kill_one(threads);
		compare(threads);
	}
	printf("vmstress: %d threads, %d phases:", threads, phases);
	for (int i = 0; i < 8; i++)
		printf(" %s %ld", names[i], counts[i]);
	printf("; the model agrees\n");
	return 0;
}
