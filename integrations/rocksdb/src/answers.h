// What libspanlock answers where it cannot refuse.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace spanlock_rocksdb {

/// Ends the process with a sentence unless the answer is zero: a bug of this library, or of the program's that uses a
/// transaction in two threads at once.
inline void Expect(int answer, const char *what) {
    if (answer == 0) return;
    std::fprintf(stderr, "spanlock-rocksdb: cannot %s: error %d\n", what, answer);
    std::abort();
}

} // namespace spanlock_rocksdb
