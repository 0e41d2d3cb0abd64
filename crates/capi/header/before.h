/* The header of this library that the program is compiled with. `spanlock_version()` says what it runs with. Versions
 * whose first two numbers are equal have one ABI. */
#define SPANLOCK_VERSION "@MAJOR@.@MINOR@.@PATCH@"
#define SPANLOCK_VERSION_MAJOR @MAJOR@
#define SPANLOCK_VERSION_MINOR @MINOR@
#define SPANLOCK_VERSION_PATCH @PATCH@
#define SPANLOCK_VERSION_NUMBER (@MAJOR@ * 1000000 + @MINOR@ * 1000 + @PATCH@)

/* Before functions whose result says whether a lock is held. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define SPANLOCK_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define SPANLOCK_NODISCARD __attribute__((warn_unused_result))
#else
#define SPANLOCK_NODISCARD
#endif

/* Whether the program is compiled for the thread sanitizer. */
#if defined(__SANITIZE_THREAD__)
#define SPANLOCK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPANLOCK_TSAN 1
#endif
#endif

/* <time.h> does not declare it to programs that ask for C99 and nothing else. */
struct timespec;

/* A lock for ranges of one resource: a file, a buffer, a key space. `spanlock_range_lock_create` makes one. */
typedef struct spanlock_range_lock spanlock_range_lock;

/* Somebody who holds ranges and is no thread: a transaction, a client. `spanlock_owner_create` makes one. */
typedef struct spanlock_owner spanlock_owner;

/* A lock for ranges of keys, which are byte strings. `spanlock_key_lock_create` makes one. */
typedef struct spanlock_key_lock spanlock_key_lock;

/* The bytes and the alignment of a reader-writer lock. */
#define SPANLOCK_RWLOCK_SIZE 64
#define SPANLOCK_RWLOCK_ALIGN 8

/* A reader-writer lock, in place: in a structure of the program's, or a static. It must not be moved or copied. Memory
 * that is all zero is a free lock. Not for memory that processes share. */
typedef struct spanlock_rwlock {
    /* The library's own. */
    uint64_t opaque[SPANLOCK_RWLOCK_SIZE / 8];
} spanlock_rwlock;

/* Initialise a static lock of either kind: see `spanlock_rwlock_init`. */
#define SPANLOCK_RWLOCK_INITIALIZER { { 0, 0, 0, 0 /* SPANLOCK_RWLOCK_WRITERS */, 0, 0, 0, 0 } }
#define SPANLOCK_RWLOCK_INITIALIZER_READERS { { 0, 0, 0, 1 /* SPANLOCK_RWLOCK_READERS */, 0, 0, 0, 0 } }

/* Initialise the options of a range lock: the defaults. */
#define SPANLOCK_RANGE_LOCK_OPTIONS { sizeof(spanlock_range_lock_options), 0, 0, 0 }

/* Initialise the options of an owner: the defaults. */
#define SPANLOCK_OWNER_OPTIONS { sizeof(spanlock_owner_options), 0 }

/* Initialise the options of a lock over keys: the defaults. */
#define SPANLOCK_KEY_LOCK_OPTIONS { sizeof(spanlock_key_lock_options), NULL, NULL, 0, 0, 0 }
