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
