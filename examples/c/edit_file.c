/* Threads edit records of one file, each under a lock of the record's bytes, while another thread copies the whole file
 * now and then. Each record always has the same byte in all its places, and so has each record of a copy. */
#define _POSIX_C_SOURCE 200809L
#include <spanlock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 256, RECORDS = 64, EDITORS = 4, EDITS = 2000, COPIES = 50 };

static spanlock_range_lock *file_lock;
static int file;

/* Ends the program, if a function of the library has failed. */
static void ensure(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        exit(EXIT_FAILURE);
    }
}

static void *edit(void *argument)
{
    unsigned state = *(unsigned *)argument;
    for (int i = 0; i < EDITS; i++) {
        char record[RECORD];
        uint64_t start;
        spanlock_token token;
        state = state * 1103515245 + 12345;
        start = (uint64_t)(state >> 16) % RECORDS * RECORD;
        ensure(spanlock_range_lock_write(file_lock, spanlock_range_of(start, start + RECORD), &token), "write");
        if (pread(file, record, RECORD, (off_t)start) != RECORD)
            ensure(5, "pread");
        memset(record, record[0] + 1, RECORD);
        if (pwrite(file, record, RECORD, (off_t)start) != RECORD)
            ensure(5, "pwrite");
        ensure(spanlock_range_lock_release(file_lock, &token), "release");
    }
    return NULL;
}

static void *copy(void *unused)
{
    static char all[RECORDS * RECORD];
    (void)unused;
    for (int i = 0; i < COPIES; i++) {
        spanlock_token token;
        ensure(spanlock_range_lock_read(file_lock, spanlock_range_all(), &token), "read");
        if (pread(file, all, sizeof all, 0) != (ssize_t)sizeof all)
            ensure(5, "pread");
        ensure(spanlock_range_lock_release(file_lock, &token), "release");
        for (size_t at = 0; at < sizeof all; at++)
            if (all[at] != all[at / RECORD * RECORD]) {
                fprintf(stderr, "a torn record in copy %d\n", i);
                exit(EXIT_FAILURE);
            }
    }
    return NULL;
}

int main(void)
{
    FILE *temporary = tmpfile();
    pthread_t editors[EDITORS], copier;
    unsigned seeds[EDITORS];
    if (temporary == NULL || ftruncate(fileno(temporary), RECORDS * RECORD) != 0) {
        perror("a temporary file");
        return EXIT_FAILURE;
    }
    file = fileno(temporary);
    ensure(spanlock_range_lock_create(&file_lock, NULL), "create");
    for (unsigned i = 0; i < EDITORS; i++) {
        seeds[i] = i;
        ensure(pthread_create(&editors[i], NULL, edit, &seeds[i]), "a thread");
    }
    ensure(pthread_create(&copier, NULL, copy, NULL), "a thread");
    for (unsigned i = 0; i < EDITORS; i++)
        pthread_join(editors[i], NULL);
    pthread_join(copier, NULL);
    ensure(spanlock_range_lock_destroy(file_lock), "destroy");
    fclose(temporary);
    printf("%d edits and %d copies, and no torn record\n", EDITORS * EDITS, COPIES);
    return EXIT_SUCCESS;
}
