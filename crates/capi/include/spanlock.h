/* Spanlock: range locks and scalable reader-writer locks.
 *
 * Functions return zero, or an errno value; `errno` itself says nothing. What they have in common:
 *
 *   EINVAL           a null pointer, a reversed range, a token or a number that stands for nothing
 *   EBUSY            a try would have to wait (see below); a lock that is to be destroyed is in use
 *   ETIMEDOUT        the deadline has passed
 *   EDEADLK          the thread or the owner would wait for what it holds itself
 *   EPERM            another thread or an owner holds what is to be released, or nobody does
 *   ECANCELED        the owner in whose name a request waits is cancelled
 *   ENOLCK           the owner holds and asks for as many ranges as it may
 *   EXDEV            the lock belongs to another copy of the library in this process
 *   ENOTRECOVERABLE  a bug of the library, which has written a message to the standard error
 *
 * A try of a range does not wait for a holder, nor for a writer that awaits some of it. For a request that is about to
 * hold some of it or to withdraw it spins, at most 128 us in all, and then answers EBUSY. So EBUSY does not always mean
 * that somebody holds the range: the thread of such a request may not be running. A try for several ranges holds those
 * that it has until it meets one that is taken.
 *
 * After an error nothing has changed, and a token that was to be written is zero. Memory that is exhausted ends the
 * process. Nothing throws. A destroyed or moved lock cannot always be told: the sanitizers find that.
 *
 * This file is made from the library's source: see `crates/capi` there. */


#ifndef SPANLOCK_H
#define SPANLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>
/* The header of this library that the program is compiled with. `spanlock_version()` says what it runs with. Versions
 * whose first two numbers are equal have one ABI. */
#define SPANLOCK_VERSION "0.1.0"
#define SPANLOCK_VERSION_MAJOR 0
#define SPANLOCK_VERSION_MINOR 1
#define SPANLOCK_VERSION_PATCH 0
#define SPANLOCK_VERSION_NUMBER (0 * 1000000 + 1 * 1000 + 0)

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


/**
 * Together with other holders that share.
 */
#define SPANLOCK_SHARED 1

/**
 * Alone.
 */
#define SPANLOCK_EXCLUSIVE 2

/**
 * Requests give way to one that they keep overtaking, for a limited time.
 */
#define SPANLOCK_FAIR 0

/**
 * No request gives way, and one may be overtaken without end.
 */
#define SPANLOCK_UNFAIR 1

/**
 * At an end of a range of keys: it has no key, and reaches as far as there are keys.
 */
#define SPANLOCK_UNBOUNDED 0

/**
 * At an end of a range of keys: the key belongs to the range.
 */
#define SPANLOCK_INCLUDED 1

/**
 * At an end of a range of keys: the key does not belong to the range.
 */
#define SPANLOCK_EXCLUDED 2

/**
 * Readers give way to writers that wait. A thread that reads must not read the same lock again.
 */
#define SPANLOCK_RWLOCK_WRITERS 0

/**
 * Readers do not wait for writers that wait. A thread that reads may read the same lock again, and readers that never
 * pause may keep writers out.
 */
#define SPANLOCK_RWLOCK_READERS 1

/**
 * How a range lock is made. Set `size` to `sizeof(spanlock_range_lock_options)` and the rest to zero, which are the
 * defaults; `SPANLOCK_RANGE_LOCK_OPTIONS` does that. Later versions of the library add fields at the end.
 */
typedef struct spanlock_range_lock_options {
    /**
     * The size of this structure as the program knows it.
     */
    size_t size;
    /**
     * After how many nanoseconds of waiting they begin to give way. Zero: after a millisecond.
     */
    uint64_t patience_ns;
    /**
     * `SPANLOCK_FAIR` or `SPANLOCK_UNFAIR`.
     */
    uint32_t fairness;
    /**
     * Zero.
     */
    uint32_t reserved;
} spanlock_range_lock_options;

/**
 * The positions from `start` to `last`, both included, so that a range can reach to the last position of all. Made by
 * `spanlock_range_of`, whose end is not included, `spanlock_range_from` and `spanlock_range_all`.
 *
 * A range whose `start` is one more than its `last` is empty: it is granted at once and conflicts with nothing. One
 * that starts later than that is reversed, and refused with EINVAL.
 */
typedef struct spanlock_range {
    /**
     * The first position.
     */
    uint64_t start;
    /**
     * The last position, which belongs to the range.
     */
    uint64_t last;
} spanlock_range;

/**
 * What a range is released by. It may be copied and moved: whichever copy is released first counts, and the others are
 * refused from then on. All zero, it stands for nothing.
 */
typedef struct spanlock_token {
    /**
     * The library's own.
     */
    uint64_t opaque[2];
} spanlock_token;

/**
 * A range, and how it is wanted.
 */
typedef struct spanlock_want {
    /**
     * The range.
     */
    struct spanlock_range range;
    /**
     * `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`.
     */
    uint32_t mode;
    /**
     * Zero.
     */
    uint32_t reserved;
} spanlock_want;

/**
 * A range that somebody holds.
 */
typedef struct spanlock_holder {
    /**
     * All of what was acquired together, if that is one range.
     */
    struct spanlock_range range;
    /**
     * `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`; zero: nobody holds anything.
     */
    uint32_t mode;
    /**
     * The thread's number, as `ps -L` and debuggers show it; zero: no thread holds it, but an owner.
     */
    uint32_t thread;
    /**
     * The owner's number, as `spanlock_owner_number` tells it; zero if it is a thread. Submitted requests, and calls
     * of threads for several modes at once, have owners of the library's.
     */
    uint32_t owner;
    /**
     * Zero.
     */
    uint32_t reserved;
} spanlock_holder;

/**
 * How an owner is made. Set `size` to `sizeof(spanlock_owner_options)` and the rest to zero, which are the defaults;
 * `SPANLOCK_OWNER_OPTIONS` does that. Later versions of the library add fields at the end.
 */
typedef struct spanlock_owner_options {
    /**
     * The size of this structure as the program knows it.
     */
    size_t size;
    /**
     * How many ranges it may hold or ask for at a time, in all locks together. Zero: any number.
     */
    uint64_t limit;
} spanlock_owner_options;

/**
 * Which of two keys comes first: negative for the one, positive for the other, zero for keys that are the same. The
 * first argument is what the lock was given with the function.
 *
 * It is a total order, the same at any time and on any thread. Where it is not, ranges that overlap may be held
 * together, and others may exclude each other; nothing else happens. It is called often, also by threads that release
 * what others wait for. So it should be short; it must not throw or jump out, and must not call this library.
 */
typedef int (*spanlock_compare_callback)(void *argument,
                                         const void *one,
                                         size_t one_size,
                                         const void *other,
                                         size_t other_size);

/**
 * How a lock over keys is made. Set `size` to `sizeof(spanlock_key_lock_options)` and the rest to zero, which are the
 * defaults; `SPANLOCK_KEY_LOCK_OPTIONS` does that. Later versions of the library add fields at the end.
 */
typedef struct spanlock_key_lock_options {
    /**
     * The size of this structure as the program knows it.
     */
    size_t size;
    /**
     * What compares keys. Null: `memcmp`, and of keys that begin alike the shorter one comes first.
     */
    spanlock_compare_callback compare;
    /**
     * The first argument of that function.
     */
    void *argument;
    /**
     * After how many nanoseconds of waiting requests begin to give way. Zero: after a millisecond.
     */
    uint64_t patience_ns;
    /**
     * `SPANLOCK_FAIR` or `SPANLOCK_UNFAIR`.
     */
    uint32_t fairness;
    /**
     * Zero.
     */
    uint32_t reserved;
} spanlock_key_lock_options;

/**
 * A range of keys: what lies between two ends. All zero, it is all keys. The library copies the keys.
 *
 * A lock does not know which keys exist: between two different keys there may be others. A range of a key that begins
 * or ends without it is empty: it is granted at once and conflicts with nothing. One that starts behind its end is
 * reversed, and refused with EINVAL.
 */
typedef struct spanlock_key_range {
    /**
     * The key at the start. Ignored where the start is open.
     */
    const void *start;
    /**
     * The bytes of that key.
     */
    size_t start_size;
    /**
     * The key at the end. Ignored where the end is open.
     */
    const void *end;
    /**
     * The bytes of that key.
     */
    size_t end_size;
    /**
     * `SPANLOCK_INCLUDED`, `SPANLOCK_EXCLUDED` or `SPANLOCK_UNBOUNDED`.
     */
    uint32_t start_kind;
    /**
     * `SPANLOCK_INCLUDED`, `SPANLOCK_EXCLUDED` or `SPANLOCK_UNBOUNDED`.
     */
    uint32_t end_kind;
} spanlock_key_range;

/**
 * Somebody who holds a range of keys.
 */
typedef struct spanlock_key_holder {
    /**
     * What is held, in one piece. Its keys live until the callback returns.
     */
    struct spanlock_key_range range;
    /**
     * `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`.
     */
    uint32_t mode;
    /**
     * The number of the owner that holds it, as `spanlock_owner_number` tells it.
     */
    uint32_t owner;
} spanlock_key_holder;

/**
 * Called with one who holds keys, and the argument that was given with it. It may call every function of the library,
 * and must not throw or jump out.
 */
typedef void (*spanlock_key_holder_callback)(void *argument, const struct spanlock_key_holder *holder);

/**
 * Called once, when a submitted request is granted: with what was given to `spanlock_range_lock_submit`, and the token
 * by which any thread releases the range.
 *
 * It runs on a thread of the library, on a stack of 256 KiB, and may call every function of the library. It must not
 * throw or jump out.
 */
typedef void (*spanlock_grant_callback)(void *argument, struct spanlock_token token);

/**
 * A submitted request, which is never used for another one. Zero is none.
 */
typedef uint64_t spanlock_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that the program runs with, such as "0.1.0". `SPANLOCK_VERSION` is that of the header
 * that the program was compiled with.
 */
const char *spanlock_version(void);

/**
 * Makes a lock with nothing held, and writes its address to `lock`.
 *
 * `options` may be null. EINVAL: `lock` is null, or the options have an unknown size, fairness or reserved value, or a
 * patience without fairness. ENOTSUP: the program was compiled for a later version of the library, and sets a field
 * that this one does not know.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_create(spanlock_range_lock **lock,
                               const struct spanlock_range_lock_options *options);

/**
 * Ends a lock and frees it. EBUSY: a range of it is held or awaited; nothing is done.
 *
 * No other thread may use the lock at the same time, or later: its memory is gone, so that cannot be told.
 */
int spanlock_range_lock_destroy(spanlock_range_lock *lock);

/**
 * Locks a range with other readers; blocks while a writer holds any of it. The thread that acquires a range is the one
 * to release it.
 *
 * EDEADLK: the thread itself holds some of it exclusively.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_read(spanlock_range_lock *lock,
                             struct spanlock_range range,
                             struct spanlock_token *token);

/**
 * Locks a range alone; blocks while any other request holds any of it. The thread that acquires a range is the one to
 * release it.
 *
 * EDEADLK: the thread itself holds some of it.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_write(spanlock_range_lock *lock,
                              struct spanlock_range range,
                              struct spanlock_token *token);

/**
 * Locks a range with other readers, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_try_read(spanlock_range_lock *lock,
                                 struct spanlock_range range,
                                 struct spanlock_token *token);

/**
 * Locks a range alone, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_try_write(spanlock_range_lock *lock,
                                  struct spanlock_range range,
                                  struct spanlock_token *token);

/**
 * As `spanlock_range_lock_read`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_timed_read(spanlock_range_lock *lock,
                                   struct spanlock_range range,
                                   int clock,
                                   const struct timespec *deadline,
                                   struct spanlock_token *token);

/**
 * As `spanlock_range_lock_write`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_timed_write(spanlock_range_lock *lock,
                                    struct spanlock_range range,
                                    int clock,
                                    const struct timespec *deadline,
                                    struct spanlock_token *token);

/**
 * Releases what a token acquired, and sets the token to zero.
 *
 * EINVAL: it was released before, is of another lock, or was never a token. EPERM: another thread or an owner acquired
 * it. Nothing is released then. A token of a submitted request may be released by any thread; the range is free soon
 * afterwards.
 */
int spanlock_range_lock_release(spanlock_range_lock *lock,
                                struct spanlock_token *token);

/**
 * Keeps what a token acquired, but shares it from now on. No writer gets in between. The token stays the same. A range
 * that is shared already stays so.
 *
 * Errors as `spanlock_range_lock_release`.
 */
int spanlock_range_lock_downgrade(spanlock_range_lock *lock,
                                  struct spanlock_token *token);

/**
 * Writes to `buffer` who holds and who awaits ranges of a lock, as text, to find a hang. The text ends with a zero and
 * is cut off where `size` bytes do not suffice; `size` may be zero. `needed`, unless null, gets the bytes that would
 * have sufficed, with the zero.
 *
 * Threads are named by the numbers that `ps -L` and debuggers show, and owners by
 * those of `spanlock_owner_number`. `spanlock_range_lock_holders` has the holders as data.
 */
int spanlock_range_lock_snapshot(spanlock_range_lock *lock,
                                 char *buffer,
                                 size_t size,
                                 size_t *needed);

/**
 * Locks several ranges, each in its mode, all or none, with one token for all. Such calls do not deadlock with each
 * other, in whatever order they name their ranges. Ranges that overlap or touch count as one, and of positions that
 * are wanted more than once the stronger mode counts.
 *
 * The thread holds them, and is the one to release them. Where the modes differ, listings name an owner in its place.
 *
 * EDEADLK: the thread itself holds some of them in the way.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_many(spanlock_range_lock *lock,
                             const struct spanlock_want *wants,
                             size_t count,
                             struct spanlock_token *token);

/**
 * As `spanlock_range_lock_many`, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_try_many(spanlock_range_lock *lock,
                                 const struct spanlock_want *wants,
                                 size_t count,
                                 struct spanlock_token *token);

/**
 * As `spanlock_range_lock_many`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_timed_many(spanlock_range_lock *lock,
                                   const struct spanlock_want *wants,
                                   size_t count,
                                   int clock,
                                   const struct timespec *deadline,
                                   struct spanlock_token *token);

/**
 * Writes to `holder` who is in the way of a request, as `F_GETLK` of `fcntl` does: of those who hold some of `range`
 * and conflict with `mode`, the one whose range begins first. Its `mode` is zero if nobody is in the way.
 *
 * Who asks is `owner`, or the calling thread if `owner` is null. What that one holds itself is not in its way. (What
 * was acquired by a submitted request, or by a thread in several modes at once, an owner of the library's holds, which
 * is in the thread's way, too.)
 *
 * The answer may be out of date at once, and nothing is acquired. It takes as long as listing all holders.
 */
int spanlock_range_lock_blocker(spanlock_range_lock *lock,
                                struct spanlock_range range,
                                uint32_t mode_wanted,
                                const spanlock_owner *owner,
                                struct spanlock_holder *holder);

/**
 * Writes to `holders` who holds some of `range`, in the order in which their ranges begin, as many as `count` says;
 * `count` may be zero. `needed`, unless null, gets how many there are.
 *
 * Who comes or goes meanwhile may be listed or not.
 */
int spanlock_range_lock_holders(spanlock_range_lock *lock,
                                struct spanlock_range range,
                                struct spanlock_holder *holders,
                                size_t count,
                                size_t *needed);

/**
 * Makes an owner that holds nothing, and writes its address to `owner`. An owner stands for somebody who is no thread:
 * a transaction, a client, a request that goes over a pool of threads. What it acquires any thread may use and
 * release. Two owners exclude each other as two threads do.
 *
 * `options` may be null. EINVAL: `owner` is null, or the options have an unknown size. ENOTSUP: the program was
 * compiled for a later version of the library, and sets a field that this one does not know.
 */
SPANLOCK_NODISCARD
int spanlock_owner_create(spanlock_owner **owner,
                          const struct spanlock_owner_options *options);

/**
 * Ends an owner and frees it. EBUSY: it holds a range, or a thread asks for one in its name; nothing is done.
 *
 * No other thread may use the owner at the same time, or later: its memory is gone, so that cannot be told.
 */
int spanlock_owner_destroy(spanlock_owner *owner);

/**
 * Writes to `number` the number by which snapshots name the owner: 7, for `owner 7`.
 */
int spanlock_owner_number(const spanlock_owner *owner, uint32_t *number);

/**
 * Writes to `count` how many ranges the owner holds or asks for, in all locks. Each piece of what was converted or
 * released in parts counts.
 */
int spanlock_owner_count(spanlock_owner *owner,
                         size_t *count);

/**
 * Ends all waits in the owner's name, now and from now on: they answer ECANCELED. What it holds it keeps, and a
 * request that need not wait is granted as before. Any thread may call this.
 */
int spanlock_owner_cancel(spanlock_owner *owner);

/**
 * Locks a range in a mode, `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`, for an owner; blocks while others hold some of
 * it in the way. Any thread may use the token then.
 *
 * ECANCELED: the owner is cancelled. ENOLCK: it holds or asks for as many ranges as it may. EDEADLK: the owner, by
 * another token, or the running thread holds some of the range in the way.
 */
SPANLOCK_NODISCARD
int spanlock_owner_lock(spanlock_owner *owner,
                        spanlock_range_lock *lock,
                        struct spanlock_range range,
                        uint32_t mode,
                        struct spanlock_token *token);

/**
 * As `spanlock_owner_lock`, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_owner_try_lock(spanlock_owner *owner,
                            spanlock_range_lock *lock,
                            struct spanlock_range range,
                            uint32_t mode,
                            struct spanlock_token *token);

/**
 * As `spanlock_owner_lock`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_owner_timed_lock(spanlock_owner *owner,
                              spanlock_range_lock *lock,
                              struct spanlock_range range,
                              uint32_t mode,
                              int clock,
                              const struct timespec *deadline,
                              struct spanlock_token *token);

/**
 * Locks several ranges for an owner, each in its mode, all or none, as `spanlock_range_lock_many` does for a thread.
 * Errors as `spanlock_owner_lock`.
 */
SPANLOCK_NODISCARD
int spanlock_owner_many(spanlock_owner *owner,
                        spanlock_range_lock *lock,
                        const struct spanlock_want *wants,
                        size_t count,
                        struct spanlock_token *token);

/**
 * As `spanlock_owner_many`, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_owner_try_many(spanlock_owner *owner,
                            spanlock_range_lock *lock,
                            const struct spanlock_want *wants,
                            size_t count,
                            struct spanlock_token *token);

/**
 * As `spanlock_owner_many`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_owner_timed_many(spanlock_owner *owner,
                              spanlock_range_lock *lock,
                              const struct spanlock_want *wants,
                              size_t count,
                              int clock,
                              const struct timespec *deadline,
                              struct spanlock_token *token);

/**
 * From now on the owner holds `range` in a mode, by this token: what the token stands for of it is converted, and what
 * it does not is acquired. What it stands for elsewhere stays. Blocks while others hold some of `range` in the way.
 *
 * All or nothing: an error leaves what was held as it was, and it is held meanwhile. Nobody gets between the old hold
 * and the new one.
 *
 * EINVAL: the token was released, or is of another owner or lock; a reversed range; another mode. EBUSY: another
 * thread uses the token. ECANCELED and ENOLCK as in `spanlock_owner_lock`. EDEADLK: as there; or another owner that
 * shares some of it waits to have it alone already, and each would wait for the other. Release what is shared, and ask
 * again.
 */
SPANLOCK_NODISCARD
int spanlock_owner_convert(spanlock_owner *owner,
                           spanlock_range_lock *lock,
                           const struct spanlock_token *token,
                           struct spanlock_range range,
                           uint32_t mode);

/**
 * As `spanlock_owner_convert`, if that is possible at once. EBUSY: it is not. To try again in a loop is no way to
 * wait: two owners that do so never succeed.
 */
SPANLOCK_NODISCARD
int spanlock_owner_try_convert(spanlock_owner *owner,
                               spanlock_range_lock *lock,
                               const struct spanlock_token *token,
                               struct spanlock_range range,
                               uint32_t mode);

/**
 * As `spanlock_owner_convert`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_owner_timed_convert(spanlock_owner *owner,
                                 spanlock_range_lock *lock,
                                 const struct spanlock_token *token,
                                 struct spanlock_range range,
                                 uint32_t mode,
                                 int clock,
                                 const struct timespec *deadline);

/**
 * Holds alone all that a token stands for: `spanlock_owner_convert` for what is held. Errors as there.
 */
SPANLOCK_NODISCARD
int spanlock_owner_upgrade(spanlock_owner *owner,
                           spanlock_range_lock *lock,
                           const struct spanlock_token *token);

/**
 * As `spanlock_owner_upgrade`, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_owner_try_upgrade(spanlock_owner *owner,
                               spanlock_range_lock *lock,
                               const struct spanlock_token *token);

/**
 * Shares all that a token stands for from now on. No writer gets in between.
 *
 * EINVAL: the token was released, is of another owner or lock, or was never an owner's token. EBUSY: another thread
 * uses it.
 */
int spanlock_owner_downgrade(spanlock_owner *owner,
                             spanlock_range_lock *lock,
                             const struct spanlock_token *token);

/**
 * Releases what a token stands for, and sets the token to zero. Any thread may do it.
 *
 * Errors as `spanlock_owner_downgrade`. Nothing is released then.
 */
int spanlock_owner_release(spanlock_owner *owner, spanlock_range_lock *lock, struct spanlock_token *token);

/**
 * Releases `range`, and keeps the rest of what a token stands for. The token stays, also if nothing is left.
 *
 * EINVAL: a reversed range. Other errors as `spanlock_owner_downgrade`.
 */
int spanlock_owner_release_part(spanlock_owner *owner,
                                spanlock_range_lock *lock,
                                const struct spanlock_token *token,
                                struct spanlock_range range);

/**
 * Releases all but `range` of what a token stands for. The token stays, also if nothing is left.
 *
 * Errors as `spanlock_owner_release_part`.
 */
int spanlock_owner_shrink(spanlock_owner *owner,
                          spanlock_range_lock *lock,
                          const struct spanlock_token *token,
                          struct spanlock_range range);

/**
 * Splits off what a token stands for from position `at` on: from now on `rest` stands for that.
 *
 * Errors as `spanlock_owner_downgrade`; `rest` is zero then.
 */
SPANLOCK_NODISCARD
int spanlock_owner_split(spanlock_owner *owner,
                         spanlock_range_lock *lock,
                         const struct spanlock_token *token,
                         uint64_t at,
                         struct spanlock_token *rest);

/**
 * Writes to `pieces` what a token stands for, piece by piece, in order, as far as there is room for that many
 * elements. Pieces may touch. `count` gets how many pieces there are.
 *
 * Errors as `spanlock_owner_downgrade`.
 */
int spanlock_owner_pieces(spanlock_owner *owner,
                          spanlock_range_lock *lock,
                          const struct spanlock_token *token,
                          struct spanlock_want *pieces,
                          size_t room,
                          size_t *count);

/**
 * Releases all that an owner holds, in all locks: what a transaction does at its end. Its tokens stand for nothing
 * from now on.
 *
 * EBUSY: another thread uses one of its tokens, whose ranges stay held. All others are released.
 */
int spanlock_owner_release_all(spanlock_owner *owner);

/**
 * Makes a lock over keys with nothing held, and writes its address to `lock`. Keys are byte strings of any length, and
 * owners hold ranges of them: see `spanlock_owner_create`.
 *
 * `options` may be null: then keys are ordered by their bytes. Errors as `spanlock_range_lock_create`.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_create(spanlock_key_lock **lock,
                             const struct spanlock_key_lock_options *options);

/**
 * Ends a lock over keys and frees it. EBUSY: a range of it is held or awaited; nothing is done.
 *
 * No other thread may use the lock at the same time, or later: its memory is gone, so that cannot be told. The
 * function that compares its keys is not called any more.
 */
int spanlock_key_lock_destroy(spanlock_key_lock *lock);

/**
 * Calls `callback` with `argument` for each who is in the way of a request: who holds some of `range`, and conflicts
 * with `mode_wanted`, in the order in which their ranges begin.
 *
 * Who asks is `owner`, which is not in its own way; null: nobody in particular. So `SPANLOCK_EXCLUSIVE` and null list
 * all who hold some of the range.
 *
 * The answer may be out of date at once: who comes or goes meanwhile may be listed or not. It takes as long as a walk
 * over all holders.
 */
int spanlock_key_lock_blockers(spanlock_key_lock *lock,
                               const struct spanlock_key_range *range,
                               uint32_t mode_wanted,
                               const spanlock_owner *owner,
                               spanlock_key_holder_callback callback,
                               void *argument);

/**
 * Locks a range of keys in a mode, `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`, for an owner; blocks while others hold
 * some of it in the way. Any thread may use the token then.
 *
 * ECANCELED: the owner is cancelled. ENOLCK: it holds or asks for as many ranges as it may. EDEADLK: the owner, by
 * another token, holds some of the range in the way.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_acquire(spanlock_key_lock *lock,
                              spanlock_owner *owner,
                              const struct spanlock_key_range *range,
                              uint32_t mode,
                              struct spanlock_token *token);

/**
 * As `spanlock_key_lock_acquire`, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_try_acquire(spanlock_key_lock *lock,
                                  spanlock_owner *owner,
                                  const struct spanlock_key_range *range,
                                  uint32_t mode,
                                  struct spanlock_token *token);

/**
 * As `spanlock_key_lock_acquire`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_timed_acquire(spanlock_key_lock *lock,
                                    spanlock_owner *owner,
                                    const struct spanlock_key_range *range,
                                    uint32_t mode,
                                    int clock,
                                    const struct timespec *deadline,
                                    struct spanlock_token *token);

/**
 * From now on the owner holds `range` in a mode, by this token: what the token stands for of it is converted, and what
 * it does not is acquired. What it stands for elsewhere stays. Blocks while others hold some of `range` in the way.
 *
 * All or nothing: an error leaves what was held as it was, and it is held meanwhile. Nobody gets between the old hold
 * and the new one. Errors as `spanlock_owner_convert`.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_convert(spanlock_key_lock *lock,
                              spanlock_owner *owner,
                              const struct spanlock_token *token,
                              const struct spanlock_key_range *range,
                              uint32_t mode);

/**
 * As `spanlock_key_lock_convert`, if that is possible at once. EBUSY: it is not. To try again in a loop is no way to
 * wait: two owners that do so never succeed.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_try_convert(spanlock_key_lock *lock,
                                  spanlock_owner *owner,
                                  const struct spanlock_token *token,
                                  const struct spanlock_key_range *range,
                                  uint32_t mode);

/**
 * As `spanlock_key_lock_convert`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_timed_convert(spanlock_key_lock *lock,
                                    spanlock_owner *owner,
                                    const struct spanlock_token *token,
                                    const struct spanlock_key_range *range,
                                    uint32_t mode,
                                    int clock,
                                    const struct timespec *deadline);

/**
 * Releases what a token stands for, and sets the token to zero. Any thread may do it.
 *
 * EINVAL: the token was released, is of another owner or lock, or was never an owner's token. EBUSY: another thread
 * uses it. Nothing is released then.
 */
int spanlock_key_lock_release(spanlock_key_lock *lock,
                              spanlock_owner *owner,
                              struct spanlock_token *token);

/**
 * Releases `range`, and keeps the rest of what a token stands for. The token stays, also if nothing is left.
 *
 * EINVAL: a reversed range. Other errors as `spanlock_key_lock_release`.
 */
int spanlock_key_lock_release_part(spanlock_key_lock *lock,
                                   spanlock_owner *owner,
                                   const struct spanlock_token *token,
                                   const struct spanlock_key_range *range);

/**
 * Splits off what a token stands for of a range that is open at its end: from now on `rest` stands for that.
 *
 * EINVAL: the range has an end. Other errors as `spanlock_key_lock_release`; `rest` is zero then.
 */
SPANLOCK_NODISCARD
int spanlock_key_lock_split(spanlock_key_lock *lock,
                            spanlock_owner *owner,
                            const struct spanlock_token *token,
                            const struct spanlock_key_range *range,
                            struct spanlock_token *rest);

/**
 * Asks for a range without waiting for it. When the request is granted, a thread of the library calls `callback` with
 * `argument` and the token. `request` gets the request's number, by which it can be cancelled, before that.
 *
 * Each request that waits has a thread of the library, which sleeps. For a range that may be free, first use
 * `spanlock_range_lock_try_write` and its kin, which are faster by far.
 *
 * EINVAL: a null pointer, other than `argument`; an unknown mode; a reversed range. EAGAIN: the system gives no more
 * threads.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_submit(spanlock_range_lock *lock,
                               struct spanlock_range range,
                               uint32_t mode,
                               spanlock_grant_callback callback,
                               void *argument,
                               spanlock_request *request);

/**
 * As `spanlock_range_lock_submit`, but writes eight bytes to `descriptor` when the request is granted: the request's
 * number to a pipe or a local socket, so that who reads it learns which request that was, or the number one to an
 * eventfd, which adds up. The token is then to be had by `spanlock_range_lock_take`. The descriptor may be closed at
 * any time, and may serve many requests. Where a pipe is full, a thread of the library waits until it is read. A
 * number may still come of a request that was taken and released before that: then `spanlock_range_lock_take` answers
 * EALREADY.
 *
 * EBADF: the descriptor is not open for writing. EINVAL: it is of a file of another kind. EMFILE: the process has as
 * many descriptors as it may; each request that waits has one of its own.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_submit_fd(spanlock_range_lock *lock,
                                  struct spanlock_range range,
                                  uint32_t mode,
                                  int descriptor,
                                  spanlock_request *request);

/**
 * Cancels a request that still waits: its callback has not run and will not run, its descriptor is not written to, and
 * it is over.
 *
 * EALREADY: it was granted before, or has ended; then its callback has run, runs or is about to, and the range is to
 * be released by the token. EINVAL: there is no such request of this lock.
 */
int spanlock_range_lock_cancel(spanlock_range_lock *lock,
                               spanlock_request request);

/**
 * The token of a request that was granted. EINPROGRESS: it still waits. EALREADY: it has ended. EINVAL: there is no
 * such request of this lock.
 */
SPANLOCK_NODISCARD
int spanlock_range_lock_take(spanlock_range_lock *lock,
                             spanlock_request request,
                             struct spanlock_token *token);

/**
 * Makes memory a free lock of a kind, `SPANLOCK_RWLOCK_WRITERS` or `SPANLOCK_RWLOCK_READERS`. Memory that is all zero
 * is a free lock of the first kind without this.
 *
 * EINVAL: null, memory that is not aligned, or another kind.
 */
int spanlock_rwlock_init(spanlock_rwlock *lock,
                         uint32_t kind);

/**
 * Ends a lock. It is not a lock any more, until `spanlock_rwlock_init` makes it one again. EBUSY: it is held; nothing
 * is done.
 */
int spanlock_rwlock_destroy(spanlock_rwlock *lock);

/**
 * Locks with other readers; blocks while a writer holds the lock.
 *
 * EDEADLK: the thread writes it.
 */
SPANLOCK_NODISCARD int spanlock_rwlock_read_lock(spanlock_rwlock *lock);

/**
 * Locks with other readers, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD int spanlock_rwlock_try_read_lock(spanlock_rwlock *lock);

/**
 * As `spanlock_rwlock_read_lock`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_rwlock_timed_read_lock(spanlock_rwlock *lock,
                                    int clock,
                                    const struct timespec *deadline);

/**
 * A reader leaves. EPERM: the running thread does not read the lock. The thread that locked is the one to unlock.
 */
int spanlock_rwlock_read_unlock(spanlock_rwlock *lock);

/**
 * Locks alone; blocks while others hold the lock.
 *
 * EDEADLK: the thread holds it already.
 */
SPANLOCK_NODISCARD int spanlock_rwlock_write_lock(spanlock_rwlock *lock);

/**
 * Locks alone, if that is possible at once. EBUSY: it is not.
 */
SPANLOCK_NODISCARD int spanlock_rwlock_try_write_lock(spanlock_rwlock *lock);

/**
 * As `spanlock_rwlock_write_lock`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
 */
SPANLOCK_NODISCARD
int spanlock_rwlock_timed_write_lock(spanlock_rwlock *lock,
                                     int clock,
                                     const struct timespec *deadline);

/**
 * The writer leaves. EPERM: it is not the running thread.
 */
int spanlock_rwlock_write_unlock(spanlock_rwlock *lock);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SPANLOCK_H */

/* The positions from `start` to `end`, without `end`. If the two are equal the range is empty. A length that reaches to
 * the last position of all has no end that could be given: write `{ start, start + (length - 1) }` then. */
static inline spanlock_range spanlock_range_of(uint64_t start, uint64_t end)
{
    spanlock_range range = { start, end - 1 };
    if (end == 0) { /* There is no position before it. */
        range.start = start < UINT64_MAX ? start + 1 : start;
        range.last = 0;
    }
    return range;
}

/* The positions from `start` to the last of all. */
static inline spanlock_range spanlock_range_from(uint64_t start)
{
    spanlock_range range = { start, UINT64_MAX };
    return range;
}

/* All positions. */
static inline spanlock_range spanlock_range_all(void)
{
    return spanlock_range_from(0);
}

#ifdef SPANLOCK_TSAN
/* The thread sanitizer does not see what the library's locks order, since the library is not compiled for it. So these
 * functions tell it, and have it ignore what the library itself does by functions that it intercepts. For ranges they
 * tell more than is true: that a release is before every later acquisition in the same lock. So a race between two
 * threads that locked the wrong ranges is found only while both hold theirs. */
#ifdef __cplusplus
extern "C" {
#endif
void AnnotateIgnoreReadsBegin(char *file, int line);
void AnnotateIgnoreReadsEnd(char *file, int line);
void AnnotateIgnoreWritesBegin(char *file, int line);
void AnnotateIgnoreWritesEnd(char *file, int line);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_mutex_create(void *address, unsigned flags);
void __tsan_mutex_destroy(void *address, unsigned flags);
void __tsan_mutex_pre_lock(void *address, unsigned flags);
void __tsan_mutex_post_lock(void *address, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *address, unsigned flags);
void __tsan_mutex_post_unlock(void *address, unsigned flags);
#ifdef __cplusplus
}
#endif

/* Flags of those functions. */
#define SPANLOCK_TSAN_WRITE 0u
#define SPANLOCK_TSAN_READ (1u << 3)
#define SPANLOCK_TSAN_TRY (1u << 4)
#define SPANLOCK_TSAN_FAILED (1u << 5)

static inline void spanlock_tsan_enter(void)
{
    AnnotateIgnoreReadsBegin(NULL, 0);
    AnnotateIgnoreWritesBegin(NULL, 0);
}

static inline void spanlock_tsan_leave(void)
{
    AnnotateIgnoreWritesEnd(NULL, 0);
    AnnotateIgnoreReadsEnd(NULL, 0);
}

static inline int spanlock_tsan_locked(spanlock_rwlock *lock, unsigned flags, int error)
{
    __tsan_mutex_post_lock(lock, error == 0 ? flags : flags | SPANLOCK_TSAN_FAILED, 0);
    return error;
}

/* Defines a function that tells the sanitizer, in the place of one of range locks or owners: `before` and, if it has
 * succeeded, `after`. */
#define SPANLOCK_TSAN_OTHER(name, parameters, arguments, before, after)                                       \
    static inline int spanlock_tsan_##name parameters                                                         \
    {                                                                                                         \
        int error;                                                                                            \
        before;                                                                                               \
        spanlock_tsan_enter();                                                                                \
        error = spanlock_##name arguments;                                                                    \
        spanlock_tsan_leave();                                                                                \
        if (error == 0)                                                                                       \
            after;                                                                                            \
        return error;                                                                                         \
    }

/* The same in the place of one that acquires ranges. */
#define SPANLOCK_TSAN_ACQUIRE(name, parameters, arguments)                                                    \
    SPANLOCK_NODISCARD SPANLOCK_TSAN_OTHER(name, parameters, arguments, (void)0, __tsan_acquire(lock))

/* The same in the place of one that releases some of what it names. */
#define SPANLOCK_TSAN_RELEASE(name, parameters, arguments)                                                    \
    SPANLOCK_TSAN_OTHER(name, parameters, arguments, __tsan_release(lock), (void)0)

/* The same in the place of one that may do both. */
#define SPANLOCK_TSAN_CONVERT(name, parameters, arguments)                                                    \
    SPANLOCK_NODISCARD SPANLOCK_TSAN_OTHER(name, parameters, arguments, __tsan_release(lock), __tsan_acquire(lock))

SPANLOCK_TSAN_ACQUIRE(range_lock_read,
                      (spanlock_range_lock *lock, spanlock_range range, spanlock_token *token),
                      (lock, range, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_write,
                      (spanlock_range_lock *lock, spanlock_range range, spanlock_token *token),
                      (lock, range, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_try_read,
                      (spanlock_range_lock *lock, spanlock_range range, spanlock_token *token),
                      (lock, range, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_try_write,
                      (spanlock_range_lock *lock, spanlock_range range, spanlock_token *token),
                      (lock, range, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_timed_read,
                      (spanlock_range_lock *lock, spanlock_range range, int clock,
                       const struct timespec *deadline, spanlock_token *token),
                      (lock, range, clock, deadline, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_timed_write,
                      (spanlock_range_lock *lock, spanlock_range range, int clock,
                       const struct timespec *deadline, spanlock_token *token),
                      (lock, range, clock, deadline, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_many,
                      (spanlock_range_lock *lock, const spanlock_want *wants, size_t count,
                       spanlock_token *token),
                      (lock, wants, count, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_try_many,
                      (spanlock_range_lock *lock, const spanlock_want *wants, size_t count,
                       spanlock_token *token),
                      (lock, wants, count, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_timed_many,
                      (spanlock_range_lock *lock, const spanlock_want *wants, size_t count, int clock,
                       const struct timespec *deadline, spanlock_token *token),
                      (lock, wants, count, clock, deadline, token))
SPANLOCK_TSAN_ACQUIRE(range_lock_take,
                      (spanlock_range_lock *lock, spanlock_request request, spanlock_token *token),
                      (lock, request, token))

SPANLOCK_TSAN_RELEASE(range_lock_release, (spanlock_range_lock *lock, spanlock_token *token), (lock, token))
SPANLOCK_TSAN_RELEASE(range_lock_downgrade, (spanlock_range_lock *lock, spanlock_token *token), (lock, token))
SPANLOCK_TSAN_OTHER(range_lock_destroy, (spanlock_range_lock *lock), (lock), __tsan_acquire(lock), (void)0)
SPANLOCK_TSAN_OTHER(range_lock_cancel, (spanlock_range_lock *lock, spanlock_request request), (lock, request),
                    (void)0, __tsan_acquire(lock))
/* The library acquires before it calls back. */
SPANLOCK_NODISCARD
SPANLOCK_TSAN_RELEASE(range_lock_submit,
                      (spanlock_range_lock *lock, spanlock_range range, uint32_t mode,
                       spanlock_grant_callback callback, void *argument, spanlock_request *request),
                      (lock, range, mode, callback, argument, request))
SPANLOCK_NODISCARD
SPANLOCK_TSAN_RELEASE(range_lock_submit_fd,
                      (spanlock_range_lock *lock, spanlock_range range, uint32_t mode, int descriptor,
                       spanlock_request *request),
                      (lock, range, mode, descriptor, request))

SPANLOCK_TSAN_ACQUIRE(owner_lock,
                      (spanlock_owner *owner, spanlock_range_lock *lock, spanlock_range range, uint32_t mode,
                       spanlock_token *token),
                      (owner, lock, range, mode, token))
SPANLOCK_TSAN_ACQUIRE(owner_try_lock,
                      (spanlock_owner *owner, spanlock_range_lock *lock, spanlock_range range, uint32_t mode,
                       spanlock_token *token),
                      (owner, lock, range, mode, token))
SPANLOCK_TSAN_ACQUIRE(owner_timed_lock,
                      (spanlock_owner *owner, spanlock_range_lock *lock, spanlock_range range, uint32_t mode,
                       int clock, const struct timespec *deadline, spanlock_token *token),
                      (owner, lock, range, mode, clock, deadline, token))
SPANLOCK_TSAN_ACQUIRE(owner_many,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_want *wants,
                       size_t count, spanlock_token *token),
                      (owner, lock, wants, count, token))
SPANLOCK_TSAN_ACQUIRE(owner_try_many,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_want *wants,
                       size_t count, spanlock_token *token),
                      (owner, lock, wants, count, token))
SPANLOCK_TSAN_ACQUIRE(owner_timed_many,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_want *wants,
                       size_t count, int clock, const struct timespec *deadline, spanlock_token *token),
                      (owner, lock, wants, count, clock, deadline, token))
SPANLOCK_TSAN_CONVERT(owner_convert,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token,
                       spanlock_range range, uint32_t mode),
                      (owner, lock, token, range, mode))
SPANLOCK_TSAN_CONVERT(owner_try_convert,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token,
                       spanlock_range range, uint32_t mode),
                      (owner, lock, token, range, mode))
SPANLOCK_TSAN_CONVERT(owner_timed_convert,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token,
                       spanlock_range range, uint32_t mode, int clock, const struct timespec *deadline),
                      (owner, lock, token, range, mode, clock, deadline))
SPANLOCK_TSAN_CONVERT(owner_upgrade,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token),
                      (owner, lock, token))
SPANLOCK_TSAN_CONVERT(owner_try_upgrade,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token),
                      (owner, lock, token))
SPANLOCK_TSAN_RELEASE(owner_downgrade,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token),
                      (owner, lock, token))
SPANLOCK_TSAN_RELEASE(owner_release,
                      (spanlock_owner *owner, spanlock_range_lock *lock, spanlock_token *token),
                      (owner, lock, token))
SPANLOCK_TSAN_RELEASE(owner_release_part,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token,
                       spanlock_range range),
                      (owner, lock, token, range))
SPANLOCK_TSAN_RELEASE(owner_shrink,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token,
                       spanlock_range range),
                      (owner, lock, token, range))
SPANLOCK_TSAN_CONVERT(owner_split,
                      (spanlock_owner *owner, spanlock_range_lock *lock, const spanlock_token *token,
                       uint64_t at, spanlock_token *rest),
                      (owner, lock, token, at, rest))
SPANLOCK_TSAN_ACQUIRE(key_lock_acquire,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_key_range *range,
                       uint32_t mode, spanlock_token *token),
                      (lock, owner, range, mode, token))
SPANLOCK_TSAN_ACQUIRE(key_lock_try_acquire,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_key_range *range,
                       uint32_t mode, spanlock_token *token),
                      (lock, owner, range, mode, token))
SPANLOCK_TSAN_ACQUIRE(key_lock_timed_acquire,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_key_range *range,
                       uint32_t mode, int clock, const struct timespec *deadline, spanlock_token *token),
                      (lock, owner, range, mode, clock, deadline, token))
SPANLOCK_TSAN_CONVERT(key_lock_convert,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_token *token,
                       const spanlock_key_range *range, uint32_t mode),
                      (lock, owner, token, range, mode))
SPANLOCK_TSAN_CONVERT(key_lock_try_convert,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_token *token,
                       const spanlock_key_range *range, uint32_t mode),
                      (lock, owner, token, range, mode))
SPANLOCK_TSAN_CONVERT(key_lock_timed_convert,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_token *token,
                       const spanlock_key_range *range, uint32_t mode, int clock,
                       const struct timespec *deadline),
                      (lock, owner, token, range, mode, clock, deadline))
SPANLOCK_TSAN_RELEASE(key_lock_release, (spanlock_key_lock *lock, spanlock_owner *owner, spanlock_token *token),
                      (lock, owner, token))
SPANLOCK_TSAN_RELEASE(key_lock_release_part,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_token *token,
                       const spanlock_key_range *range),
                      (lock, owner, token, range))
SPANLOCK_TSAN_CONVERT(key_lock_split,
                      (spanlock_key_lock *lock, spanlock_owner *owner, const spanlock_token *token,
                       const spanlock_key_range *range, spanlock_token *rest),
                      (lock, owner, token, range, rest))
/* It compares keys which others release meanwhile. */
SPANLOCK_TSAN_OTHER(key_lock_blockers,
                    (spanlock_key_lock *lock, const spanlock_key_range *range, uint32_t mode_wanted,
                     const spanlock_owner *owner, spanlock_key_holder_callback callback, void *argument),
                    (lock, range, mode_wanted, owner, callback, argument), (void)0, (void)0)
SPANLOCK_TSAN_OTHER(key_lock_destroy, (spanlock_key_lock *lock), (lock), __tsan_acquire(lock), (void)0)
/* The library tells of the locks, which the caller does not name. */
SPANLOCK_TSAN_OTHER(owner_release_all, (spanlock_owner *owner), (owner), (void)0, (void)0)
SPANLOCK_TSAN_OTHER(owner_cancel, (spanlock_owner *owner), (owner), (void)0, (void)0)
SPANLOCK_TSAN_OTHER(owner_destroy, (spanlock_owner *owner), (owner), (void)0, (void)0)

/* Defines a function that tells the sanitizer, in the place of one that acquires a reader-writer lock. */
#define SPANLOCK_TSAN_RWLOCK(name, flags, parameters, arguments)                                              \
    SPANLOCK_NODISCARD static inline int spanlock_tsan_rwlock_##name parameters                               \
    {                                                                                                         \
        __tsan_mutex_pre_lock(lock, flags);                                                                   \
        return spanlock_tsan_locked(lock, flags, spanlock_rwlock_##name arguments);                           \
    }

SPANLOCK_TSAN_RWLOCK(read_lock, SPANLOCK_TSAN_READ, (spanlock_rwlock *lock), (lock))
SPANLOCK_TSAN_RWLOCK(write_lock, SPANLOCK_TSAN_WRITE, (spanlock_rwlock *lock), (lock))
SPANLOCK_TSAN_RWLOCK(try_read_lock, SPANLOCK_TSAN_READ | SPANLOCK_TSAN_TRY, (spanlock_rwlock *lock), (lock))
SPANLOCK_TSAN_RWLOCK(try_write_lock, SPANLOCK_TSAN_WRITE | SPANLOCK_TSAN_TRY, (spanlock_rwlock *lock), (lock))
SPANLOCK_TSAN_RWLOCK(timed_read_lock, SPANLOCK_TSAN_READ | SPANLOCK_TSAN_TRY,
                     (spanlock_rwlock *lock, int clock, const struct timespec *deadline),
                     (lock, clock, deadline))
SPANLOCK_TSAN_RWLOCK(timed_write_lock, SPANLOCK_TSAN_WRITE | SPANLOCK_TSAN_TRY,
                     (spanlock_rwlock *lock, int clock, const struct timespec *deadline),
                     (lock, clock, deadline))

static inline int spanlock_tsan_rwlock_read_unlock(spanlock_rwlock *lock)
{
    int error;
    __tsan_mutex_pre_unlock(lock, SPANLOCK_TSAN_READ);
    error = spanlock_rwlock_read_unlock(lock);
    __tsan_mutex_post_unlock(lock, SPANLOCK_TSAN_READ);
    return error;
}

static inline int spanlock_tsan_rwlock_write_unlock(spanlock_rwlock *lock)
{
    int error;
    __tsan_mutex_pre_unlock(lock, SPANLOCK_TSAN_WRITE);
    error = spanlock_rwlock_write_unlock(lock);
    __tsan_mutex_post_unlock(lock, SPANLOCK_TSAN_WRITE);
    return error;
}

static inline int spanlock_tsan_rwlock_destroy(spanlock_rwlock *lock)
{
    int error = spanlock_rwlock_destroy(lock);
    if (error == 0)
        __tsan_mutex_destroy(lock, 0);
    return error;
}

#define spanlock_range_lock_read spanlock_tsan_range_lock_read
#define spanlock_range_lock_write spanlock_tsan_range_lock_write
#define spanlock_range_lock_try_read spanlock_tsan_range_lock_try_read
#define spanlock_range_lock_try_write spanlock_tsan_range_lock_try_write
#define spanlock_range_lock_timed_read spanlock_tsan_range_lock_timed_read
#define spanlock_range_lock_timed_write spanlock_tsan_range_lock_timed_write
#define spanlock_range_lock_many spanlock_tsan_range_lock_many
#define spanlock_range_lock_try_many spanlock_tsan_range_lock_try_many
#define spanlock_range_lock_timed_many spanlock_tsan_range_lock_timed_many
#define spanlock_range_lock_take spanlock_tsan_range_lock_take
#define spanlock_range_lock_release spanlock_tsan_range_lock_release
#define spanlock_range_lock_downgrade spanlock_tsan_range_lock_downgrade
#define spanlock_range_lock_destroy spanlock_tsan_range_lock_destroy
#define spanlock_range_lock_cancel spanlock_tsan_range_lock_cancel
#define spanlock_range_lock_submit spanlock_tsan_range_lock_submit
#define spanlock_range_lock_submit_fd spanlock_tsan_range_lock_submit_fd
#define spanlock_owner_lock spanlock_tsan_owner_lock
#define spanlock_owner_try_lock spanlock_tsan_owner_try_lock
#define spanlock_owner_timed_lock spanlock_tsan_owner_timed_lock
#define spanlock_owner_many spanlock_tsan_owner_many
#define spanlock_owner_try_many spanlock_tsan_owner_try_many
#define spanlock_owner_timed_many spanlock_tsan_owner_timed_many
#define spanlock_owner_convert spanlock_tsan_owner_convert
#define spanlock_owner_try_convert spanlock_tsan_owner_try_convert
#define spanlock_owner_timed_convert spanlock_tsan_owner_timed_convert
#define spanlock_owner_upgrade spanlock_tsan_owner_upgrade
#define spanlock_owner_try_upgrade spanlock_tsan_owner_try_upgrade
#define spanlock_owner_downgrade spanlock_tsan_owner_downgrade
#define spanlock_owner_release spanlock_tsan_owner_release
#define spanlock_owner_release_part spanlock_tsan_owner_release_part
#define spanlock_owner_shrink spanlock_tsan_owner_shrink
#define spanlock_owner_split spanlock_tsan_owner_split
#define spanlock_owner_release_all spanlock_tsan_owner_release_all
#define spanlock_owner_cancel spanlock_tsan_owner_cancel
#define spanlock_owner_destroy spanlock_tsan_owner_destroy
#define spanlock_key_lock_acquire spanlock_tsan_key_lock_acquire
#define spanlock_key_lock_try_acquire spanlock_tsan_key_lock_try_acquire
#define spanlock_key_lock_timed_acquire spanlock_tsan_key_lock_timed_acquire
#define spanlock_key_lock_convert spanlock_tsan_key_lock_convert
#define spanlock_key_lock_try_convert spanlock_tsan_key_lock_try_convert
#define spanlock_key_lock_timed_convert spanlock_tsan_key_lock_timed_convert
#define spanlock_key_lock_release spanlock_tsan_key_lock_release
#define spanlock_key_lock_release_part spanlock_tsan_key_lock_release_part
#define spanlock_key_lock_split spanlock_tsan_key_lock_split
#define spanlock_key_lock_blockers spanlock_tsan_key_lock_blockers
#define spanlock_key_lock_destroy spanlock_tsan_key_lock_destroy
#define spanlock_rwlock_read_lock spanlock_tsan_rwlock_read_lock
#define spanlock_rwlock_write_lock spanlock_tsan_rwlock_write_lock
#define spanlock_rwlock_try_read_lock spanlock_tsan_rwlock_try_read_lock
#define spanlock_rwlock_try_write_lock spanlock_tsan_rwlock_try_write_lock
#define spanlock_rwlock_timed_read_lock spanlock_tsan_rwlock_timed_read_lock
#define spanlock_rwlock_timed_write_lock spanlock_tsan_rwlock_timed_write_lock
#define spanlock_rwlock_read_unlock spanlock_tsan_rwlock_read_unlock
#define spanlock_rwlock_write_unlock spanlock_tsan_rwlock_write_unlock
#define spanlock_rwlock_destroy spanlock_tsan_rwlock_destroy
#endif
