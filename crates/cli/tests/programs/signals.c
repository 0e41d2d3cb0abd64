/* Says which signals it gets, and whether the kernel or a process has sent them. SIGPWR ends it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	sigset_t told;
	sigfillset(&told);
	sigdelset(&told, SIGTSTP); /* Stops it. */
	sigprocmask(SIG_BLOCK, &told, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", getpid());
	for (;;) {
		siginfo_t info;
		int signal = sigwaitinfo(&told, &info);
		if (signal < 0)
			continue;
		if (signal == SIGPWR)
			return 7;
		printf("%d %s\n", signal, info.si_code == SI_KERNEL ? "kernel" : "process");
	}
}
