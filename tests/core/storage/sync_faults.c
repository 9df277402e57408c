/* Faults of syncfs and rename: at call number N of one of them, kill the process or fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int number_of(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

int syncfs(int file) {
    static int calls;
    calls++;
    if (calls == number_of("KILL_AT_SYNC"))
        kill(getpid(), SIGKILL);
    if (calls == number_of("FAIL_AT_SYNC")) {
        errno = number_of("FAIL_WITH");
        return -1;
    }
    return syscall(SYS_syncfs, file);
}

int rename(const char *from, const char *to) {
    static int calls;
    if (strstr(to, "/sha256/") && ++calls == number_of("KILL_AT_RENAME"))
        kill(getpid(), SIGKILL);
    return syscall(SYS_renameat2, -100, from, -100, to, 0);
}
