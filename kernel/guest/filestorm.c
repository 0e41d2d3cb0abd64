// SPDX-License-Identifier: GPL-2.0
/*
 * filestorm FOLDER THREADS PHASES STEPS [direct] [count]: threads read, write, append to and truncate three files.
 *
 *  fixed   Parts of it are written and read whole. A write fills its parts with one stamp, so a read that finds two in
 *          one part has seen a write halfway. After each phase each part has the last stamp of one thread.
 *  log     Threads append records. After each phase each record is there once, and those of a thread are in order. Then
 *          it is emptied.
 *  cut     One thread truncates it while the others write and read: a part has one stamp, and zeros behind it at most.
 *
 * `direct` opens with O_DIRECT. `count` counts the reads that have seen a write halfway, and does not fail for them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 32, MOST = 4, MAX_THREADS = 64, PAGE = 4096 };

struct worker {
	pthread_t thread;
	uint64_t number, random, sequence, appended;
	uint64_t last[PARTS];
	long steps;
	uint64_t *buffer;
};

static struct worker workers[MAX_THREADS];
static char names[3][256];
static int fixed, log_file, cut;
static int threads, counts_only;
/* In words. A part is not aligned to pages unless it has to be. */
static size_t part_words = 1250, record_words = 64;
static long halfway, reads, writes, appends, truncations;

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "filestorm: %s: %ld, %ld (errno %d)\n", what, a, b, errno);
	_exit(1);
}

static uint64_t draw(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random;
}

static uint64_t stamp(struct worker *worker)
{
	return (worker->number + 1) << 48 | ++worker->sequence;
}

static off_t offset_of(size_t part)
{
	return (off_t)(part * part_words * sizeof(uint64_t));
}

static void add(long *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void fill(struct worker *worker, size_t words, uint64_t value)
{
	for (size_t i = 0; i < words; i++)
		worker->buffer[i] = value;
}

/* Checks one part that was read whole: its stamp is the same all over, with zeros behind it if it may be cut. */
static void check_part(const uint64_t *part, int may_be_cut)
{
	size_t i = 0;

	if (part[0] >> 48 > (uint64_t)threads)
		fail("no thread has written that", (long)part[0], 0);
	while (i < part_words && part[i] == part[0])
		i++;
	while (may_be_cut && i < part_words && !part[i])
		i++;
	if (i == part_words)
		return;
	if (!counts_only)
		fail("a read has seen a write halfway", (long)part[i], (long)part[0]);
	add(&halfway);
}

static void write_parts(struct worker *worker, int file, size_t first, size_t count)
{
	size_t length = count * part_words * sizeof(uint64_t);
	uint64_t value = stamp(worker);

	fill(worker, count * part_words, value);
	if (pwrite(file, worker->buffer, length, offset_of(first)) != (ssize_t)length)
		fail("pwrite", (long)first, (long)count);
	add(&writes);
	if (file == fixed)
		for (size_t i = first; i < first + count; i++)
			worker->last[i] = value;
}

static void read_parts(struct worker *worker, int file, size_t first, size_t count)
{
	size_t length = count * part_words * sizeof(uint64_t);
	ssize_t got = pread(file, worker->buffer, length, offset_of(first));

	if (got < 0 || (file == fixed && got != (ssize_t)length))
		fail("pread", (long)first, got);
	add(&reads);
	for (size_t i = 0; (i + 1) * part_words * sizeof(uint64_t) <= (size_t)got; i++)
		check_part(worker->buffer + i * part_words, file == cut);
}

static void append(struct worker *worker)
{
	size_t length = record_words * sizeof(uint64_t);

	fill(worker, record_words, (worker->number + 1) << 48 | ++worker->appended);
	if (write(log_file, worker->buffer, length) != (ssize_t)length)
		fail("append", (long)worker->number, (long)worker->appended);
	add(&appends);
}

static void *storm(void *data)
{
	struct worker *worker = data;

	for (long step = 0; step < worker->steps; step++) {
		uint64_t dice = draw(worker);
		size_t first = (dice >> 8) % PARTS;
		size_t most = PARTS - first < MOST ? PARTS - first : MOST;
		size_t count = 1 + (dice >> 24) % most;
		int file = dice & 16 ? fixed : cut;

		switch (dice % 8) {
		case 0:
			append(worker);
			break;
		case 1:
			if (worker->number == 0) {
				off_t to = (off_t)((dice >> 32) % (PARTS * part_words * sizeof(uint64_t)));

				if (ftruncate(cut, to & ~(off_t)7))
					fail("ftruncate", (long)to, 0);
				add(&truncations);
				break;
			}
			/* fallthrough */
		case 2:
		case 3:
		case 4:
			write_parts(worker, file, first, count);
			break;
		default:
			read_parts(worker, file, first, count);
		}
	}
	return NULL;
}

static void check_fixed(struct worker *worker)
{
	for (size_t part = 0; part < PARTS; part++) {
		uint64_t value, writer;

		read_parts(worker, fixed, part, 1);
		value = worker->buffer[0];
		writer = value >> 48;
		if (writer ? workers[writer - 1].last[part] != value : value)
			fail("a part has lost a write", (long)part, (long)value);
		for (int t = 0; !writer && t < threads; t++)
			if (workers[t].last[part])
				fail("a part was never written", (long)part, t);
	}
}

static void check_log(struct worker *worker)
{
	uint64_t next[MAX_THREADS] = { 0 };
	size_t length = record_words * sizeof(uint64_t);
	off_t at = 0;
	ssize_t got;

	while ((got = pread(log_file, worker->buffer, length, at)) > 0) {
		uint64_t value = worker->buffer[0];

		if ((size_t)got != length || value >> 48 < 1 || value >> 48 > (uint64_t)threads)
			fail("a record is none", (long)at, (long)value);
		for (size_t i = 0; i < record_words; i++)
			if (worker->buffer[i] != value)
				fail("a record is mixed with another", (long)at, (long)value);
		if ((value & 0xFFFFFFFFFFFF) != ++next[(value >> 48) - 1])
			fail("a record is out of order", (long)at, (long)value);
		at += got;
	}
	for (int t = 0; t < threads; t++) {
		if (next[t] != workers[t].appended)
			fail("records are missing", t, (long)next[t]);
		workers[t].appended = 0;
	}
	if (ftruncate(log_file, 0))
		fail("ftruncate", 0, 0);
}

static int create(int which, const char *folder, const char *name, int flags)
{
	int file;

	snprintf(names[which], sizeof(names[which]), "%s/%s", folder, name);
	file = open(names[which], O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
	if (file < 0)
		fail(names[which], 0, 0);
	return file;
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : "/tmp";
	int phases = argc > 3 ? atoi(argv[3]) : 3;
	long steps = argc > 4 ? atol(argv[4]) : 500;
	int flags = 0;

	threads = argc > 2 ? atoi(argv[2]) : 4;
	if (threads < 1 || threads > MAX_THREADS)
		fail("1 to 64 threads", threads, 0);
	for (int i = 5; i < argc; i++) {
		if (!strcmp(argv[i], "direct")) {
			flags = O_DIRECT;
			part_words = 3 * PAGE / sizeof(uint64_t);
			record_words = PAGE / sizeof(uint64_t);
		} else if (!strcmp(argv[i], "count")) {
			counts_only = 1;
		} else {
			fail(argv[i], i, 0);
		}
	}
	fixed = create(0, folder, "fixed", flags);
	log_file = create(1, folder, "log", flags | O_APPEND);
	cut = create(2, folder, "cut", flags);
	for (int t = 0; t < threads; t++) {
		workers[t].number = (uint64_t)t;
		workers[t].random = 0x9E3779B97F4A7C15u * (uint64_t)(t + 1);
		workers[t].steps = steps;
		if (posix_memalign((void **)&workers[t].buffer, PAGE, MOST * part_words * sizeof(uint64_t)))
			fail("memory", t, 0);
	}
	/* Blocks that exist, so that writes of them need not be made alone. */
	for (size_t part = 0; part < PARTS; part++)
		write_parts(&workers[0], fixed, part, 1);
	if (fsync(fixed))
		fail("fsync", 0, 0);
	for (int phase = 0; phase < phases; phase++) {
		for (int t = 0; t < threads; t++)
			if (pthread_create(&workers[t].thread, NULL, storm, &workers[t]))
				fail("pthread_create", t, 0);
		for (int t = 0; t < threads; t++)
			pthread_join(workers[t].thread, NULL);
		check_fixed(&workers[0]);
		check_log(&workers[0]);
	}
	printf("filestorm: %s%s, %d threads, %d phases: %ld reads, %ld writes, %ld appends, %ld truncations, "
	       "%ld reads saw a write halfway; nothing is lost\n", folder, flags ? " direct" : "", threads, phases, reads,
	       writes, appends, truncations, halfway);
	for (int i = 0; i < 3; i++)
		unlink(names[i]);
	return 0;
}
