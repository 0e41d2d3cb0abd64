// What `clang -Wthread-safety -Werror` says: the program compiles, and with -DWRONG=1 to 4 it does not.
#include "spanlock.hpp"

static spanlock::shared_mutex mutex;
static int guarded SPANLOCK_GUARDED_BY(mutex) = 0;

static void increment() SPANLOCK_REQUIRES(mutex)
{
    guarded++;
}

int main()
{
    {
        const spanlock::exclusive_lock lock(mutex);
        increment();
    }
    int seen = 0;
    {
        const spanlock::shared_lock lock(mutex);
        seen = guarded;
#if WRONG == 1
        guarded++; // Only read.
#endif
    }
    if (mutex.try_lock_shared()) {
        seen += guarded;
        mutex.unlock_shared();
    }
    mutex.lock();
    increment();
    mutex.unlock();
#if WRONG == 2
    increment(); // Not held.
#elif WRONG == 3
    mutex.lock(); // Not released.
#elif WRONG == 4
    mutex.lock();
    mutex.lock(); // Twice.
    mutex.unlock();
#endif
    return seen == 2 ? 0 : 1;
}
