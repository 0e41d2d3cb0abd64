// What the C++ programs share.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#define CHECK(...)                                                                                                    \
    do {                                                                                                              \
        if (!(__VA_ARGS__)) {                                                                                         \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__);                            \
            std::abort();                                                                                             \
        }                                                                                                             \
    } while (0)

#ifdef SPANLOCK_EXCEPTIONS
// Checks that a statement throws a `std::system_error` with a code.
#define THROWS(code_, ...)                                                                                            \
    do {                                                                                                              \
        bool thrown = false;                                                                                          \
        try {                                                                                                         \
            __VA_ARGS__;                                                                                              \
        } catch (const std::system_error& error) {                                                                    \
            thrown = true;                                                                                            \
            CHECK(error.code() == code_);                                                                             \
        }                                                                                                             \
        CHECK(thrown);                                                                                                \
    } while (0)
#endif

#endif
