// Peers of ConcurrencyKit, which is all in headers.

#include <ck_brlock.h>
#include <ck_pflock.h>
#include <stdlib.h>

#define LOCK(NAME, TYPE)                                                            \
    void *spanlock_##NAME##_new(void) {                                             \
        TYPE *lock = malloc(sizeof *lock);                                          \
        if (lock == NULL) abort();                                                  \
        NAME##_init(lock);                                                          \
        return lock;                                                                \
    }                                                                               \
    void spanlock_##NAME##_free(void *lock) { free(lock); }                         \
    void spanlock_##NAME##_write_lock(void *lock) { NAME##_write_lock(lock); }      \
    void spanlock_##NAME##_write_unlock(void *lock) { NAME##_write_unlock(lock); }

LOCK(ck_pflock, ck_pflock_t)
LOCK(ck_brlock, ck_brlock_t)

void spanlock_ck_pflock_read_lock(void *lock) { ck_pflock_read_lock(lock); }
void spanlock_ck_pflock_read_unlock(void *lock) { ck_pflock_read_unlock(lock); }

// A reader registers once per thread and lock, and is then known by its place.
void *spanlock_ck_brlock_register(void *lock) {
    ck_brlock_reader_t *reader = aligned_alloc(128, 128);
    if (reader == NULL) abort();
    ck_brlock_read_register(lock, reader);
    return reader;
}
void spanlock_ck_brlock_unregister(void *lock, void *reader) {
    ck_brlock_read_unregister(lock, reader);
    free(reader);
}
void spanlock_ck_brlock_read_lock(void *lock, void *reader) { ck_brlock_read_lock(lock, reader); }
void spanlock_ck_brlock_read_unlock(void *reader) { ck_brlock_read_unlock(reader); }
