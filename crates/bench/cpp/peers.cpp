// Peers in C++, by calls that C can make.

#include <absl/synchronization/mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>

#define PEER(NAME, TYPE, READ_LOCK, READ_UNLOCK, WRITE_LOCK, WRITE_UNLOCK)                            \
    extern "C" void *spanlock_##NAME##_new() { return new TYPE; }                                     \
    extern "C" void spanlock_##NAME##_free(void *lock) { delete static_cast<TYPE *>(lock); }          \
    extern "C" void spanlock_##NAME##_read_lock(void *lock) { static_cast<TYPE *>(lock)->READ_LOCK(); } \
    extern "C" void spanlock_##NAME##_read_unlock(void *lock) { static_cast<TYPE *>(lock)->READ_UNLOCK(); } \
    extern "C" void spanlock_##NAME##_write_lock(void *lock) { static_cast<TYPE *>(lock)->WRITE_LOCK(); } \
    extern "C" void spanlock_##NAME##_write_unlock(void *lock) { static_cast<TYPE *>(lock)->WRITE_UNLOCK(); }

PEER(tbb, tbb::rw_mutex, lock_shared, unlock_shared, lock, unlock)
PEER(tbb_spin, tbb::spin_rw_mutex, lock_shared, unlock_shared, lock, unlock)
PEER(absl, absl::Mutex, ReaderLock, ReaderUnlock, Lock, Unlock)
