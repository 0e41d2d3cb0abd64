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
