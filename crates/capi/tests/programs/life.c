/* What outlives what: threads that exit, children, and the end of the program. */
#include "check.h"
#include "spanlock.h"

#include <dirent.h>
#include <sys/wait.h>

static spanlock_range_lock *lock;
static spanlock_rwlock rwlock = SPANLOCK_RWLOCK_INITIALIZER;

static spanlock_range to(uint64_t start, uint64_t end)
{
    return spanlock_range_of(start, end);
}

/* A thread releases in a destructor of its thread-specific data, which may run after the library's own. */
static pthread_key_t early, late;
static int released;

static void release_at_exit(void *token)
{
    spanlock_token more;
    OK(spanlock_range_lock_write(lock, to(70, 80), &more));
    OK(spanlock_range_lock_release(lock, token));
    OK(spanlock_range_lock_release(lock, &more));
    OK(spanlock_rwlock_read_lock(&rwlock));
    OK(spanlock_rwlock_read_unlock(&rwlock));
    free(token);
    released++;
}

static void *hold_until_exit(void *key)
{
    spanlock_token *token = malloc(sizeof *token);
    CHECK(token != NULL);
    OK(spanlock_range_lock_write(lock, to(0, 10), token));
    CHECK(pthread_setspecific(*(pthread_key_t *)key, token) == 0);
    return NULL;
}

static void *hold_for_ever(void *token)
{
    OK(spanlock_range_lock_write(lock, to(100, 110), token));
    return NULL;
}

static void *come_and_go(void *unused)
{
    spanlock_token token;
    (void)unused;
    OK(spanlock_range_lock_read(lock, to(0, 10), &token));
    OK(spanlock_range_lock_release(lock, &token));
    return NULL;
}

static void threads_that_exit(void)
{
    spanlock_token leaked;
    for (int round = 0; round < 3; round++) {
        on_thread(hold_until_exit, &early);
        on_thread(hold_until_exit, &late);
    }
    CHECK(released == 6);
    for (int round = 0; round < 200; round++)
        on_thread(come_and_go, NULL);
    on_thread(hold_for_ever, &leaked);
    ANSWERS(EPERM, spanlock_range_lock_release(lock, &leaked));
}

static void granted(void *argument, spanlock_token token)
{
    *(spanlock_token *)argument = token;
}

static spanlock_owner *owner;

static void *hold_for_owner(void *token)
{
    OK(spanlock_owner_lock(owner, lock, to(40, 50), SPANLOCK_EXCLUSIVE, token));
    return NULL;
}

/* How many threads have a processor or wait for one. Where that cannot be told: none. */
static int threads_that_run(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int count = 0;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300], text[300];
        const char *state = NULL;
        FILE *stat;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        stat = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (stat == NULL)
            continue;
        if (fgets(text, sizeof text, stat) != NULL)
            state = strrchr(text, ')'); /* The end of the name. */
        fclose(stat);
        count += state != NULL && state[1] == ' ' && state[2] == 'R';
    }
    if (tasks != NULL)
        closedir(tasks);
    return count;
}

static void children(void)
{
    spanlock_token owned;
    spanlock_token token, submitted = { { 0, 0 } };
    spanlock_request request;
    pid_t child;
    int status;
    OK(spanlock_range_lock_write(lock, to(0, 10), &token));
    OK(spanlock_rwlock_read_lock(&rwlock));
    OK(spanlock_range_lock_submit(lock, to(20, 30), SPANLOCK_EXCLUSIVE, granted, &submitted, &request));
    while (spanlock_range_lock_take(lock, request, &submitted) == EINPROGRESS)
        sleep_ms(1);
    OK(spanlock_owner_create(&owner, NULL));
    on_thread(hold_for_owner, &owned); /* A thread that is gone. */
    do
        sleep_ms(20);
    while (threads_that_run() > 1); /* When the library's thread sleeps, it is in the middle of nothing. */
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        spanlock_token more;
        alarm(20);
        /* The child holds what its thread held, and what owners hold. What requests got nobody can release. */
        ANSWERS(EBUSY, spanlock_range_lock_try_read(lock, to(49, 50), &more));
        OK(spanlock_owner_release(owner, lock, &owned));
        OK(spanlock_range_lock_try_write(lock, to(40, 50), &more));
        OK(spanlock_range_lock_release(lock, &more));
        OK(spanlock_owner_destroy(owner));
        OK(spanlock_range_lock_release(lock, &token));
        OK(spanlock_rwlock_read_unlock(&rwlock));
        OK(spanlock_rwlock_write_lock(&rwlock));
        OK(spanlock_rwlock_write_unlock(&rwlock));
        ANSWERS(EINVAL, spanlock_range_lock_release(lock, &submitted));
        ANSWERS(EINVAL, spanlock_range_lock_cancel(lock, request));
        ANSWERS(EBUSY, spanlock_range_lock_try_write(lock, to(20, 30), &more));
        OK(spanlock_range_lock_submit(lock, to(0, 10), SPANLOCK_EXCLUSIVE, granted, &more, &request));
        while (spanlock_range_lock_take(lock, request, &token) == EINPROGRESS)
            sleep_ms(1);
        OK(spanlock_range_lock_release(lock, &token));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(spanlock_range_lock_release(lock, &token));
    OK(spanlock_range_lock_release(lock, &submitted));
    OK(spanlock_owner_release(owner, lock, &owned));
    OK(spanlock_owner_destroy(owner));
    OK(spanlock_rwlock_read_unlock(&rwlock));
}

static void at_exit(void)
{
    spanlock_token token;
    OK(spanlock_range_lock_write(lock, to(0, 10), &token));
    OK(spanlock_range_lock_release(lock, &token));
    OK(spanlock_rwlock_write_lock(&rwlock));
    OK(spanlock_rwlock_write_unlock(&rwlock));
}

int main(void)
{
    alarm(100);
    atexit(at_exit);
    CHECK(pthread_key_create(&early, release_at_exit) == 0);
    OK(spanlock_range_lock_create(&lock, NULL));
    come_and_go(NULL); /* The library makes its key now, at the latest. */
    CHECK(pthread_key_create(&late, release_at_exit) == 0);
    threads_that_exit();
    children();
    return 0;
}
