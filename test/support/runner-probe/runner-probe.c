/*
 * Attempts everything that guest code must not reach once it controls a runner, and prints a line `NAME RESULT` per attempt:
 * `done`, or the name of the error. No attempt changes another process, and each removes what it creates.
 *
 *   runner-probe attempt PID FOLDER NODE SOCKET ADDRESS PORT
 *     PID      the supervisor
 *     FOLDER   a folder that the user may write to, with the files `existing` and `removable`
 *     NODE     the program of the supervisor
 *     SOCKET   the Unix socket of the agent container
 *     ADDRESS  the IPv4 address and PORT of the gateway
 *   runner-probe without-landlock PROGRAM [ARGUMENT...]   runs a program as on a kernel without Landlock
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static const char *result(long returned) { return returned >= 0 ? "done" : strerrorname_np(errno); }

#define TRY(name, call) (errno = 0, printf("%s %s\n", (name), result((long)(call))))

static char path[4096];

static const char *below(const char *folder, const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int open_and_close(const char *file, int flags) {
  const int opened = open(file, flags | O_CLOEXEC, 0600);
  if (opened >= 0) close(opened);
  return opened;
}

static int list(const char *folder) {
  DIR *opened = opendir(folder);
  if (opened == NULL) return -1;
  closedir(opened);
  return 0;
}

/* Sets the processors that the process has already. */
static int set_same_processors(pid_t pid) {
  cpu_set_t processors;
  if (sched_getaffinity(pid, sizeof processors, &processors) != 0) return -1;
  return sched_setaffinity(pid, sizeof processors, &processors);
}

static void try_files(const char *folder) {
  char moved[4096];
  snprintf(moved, sizeof moved, "%s/moved", folder);
  TRY("create", open_and_close(below(folder, "created"), O_CREAT | O_WRONLY));
  TRY("append", open_and_close(below(folder, "existing"), O_WRONLY | O_APPEND));
  TRY("truncate", truncate(below(folder, "existing"), 0));
  TRY("rename", rename(below(folder, "existing"), moved));
  rename(moved, below(folder, "existing"));
  TRY("link", link(below(folder, "existing"), moved));
  unlink(moved);
  TRY("symlink", symlink("/", moved));
  unlink(moved);
  TRY("mkdir", mkdir(moved, 0700));
  rmdir(moved);
  TRY("mkfifo", mkfifo(moved, 0600));
  unlink(moved);
  unlink(below(folder, "created"));
  TRY("unlink", unlink(below(folder, "removable")));
  open_and_close(below(folder, "removable"), O_CREAT | O_WRONLY);
  TRY("create-in-tmp", open_and_close("/tmp/runner-probe", O_CREAT | O_WRONLY));
  unlink("/tmp/runner-probe");
}

static void try_processes(pid_t pid) {
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {&byte, 1};
  char of_process[64];
  snprintf(of_process, sizeof of_process, "/proc/%d", (int)pid);
  TRY("memory-write", open_and_close(below(of_process, "mem"), O_RDWR));
  TRY("memory-read", open_and_close(below(of_process, "mem"), O_RDONLY));
  TRY("memory-map", open_and_close(below(of_process, "maps"), O_RDONLY));
  TRY("environment", open_and_close(below(of_process, "environ"), O_RDONLY));
  TRY("open-files", list(below(of_process, "fd")));
  TRY("program-of-process", open_and_close(below(of_process, "exe"), O_RDONLY));
  TRY("ptrace", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
  TRY("process-vm-read", process_vm_readv(pid, &here, 1, &there, 1, 0));
  const int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
  TRY("pidfd-getfd", syscall(SYS_pidfd_getfd, descriptor, 0, 0));
  /* Signal 0 checks the permission and sends nothing. */
  TRY("signal", kill(pid, 0));
  TRY("signal-group", kill(0, 0));
  TRY("signal-all", kill(-1, 0));
  TRY("signal-thread", syscall(SYS_tgkill, pid, pid, 0));
  TRY("signal-by-descriptor", syscall(SYS_pidfd_send_signal, descriptor, 0, NULL, 0));
  TRY("limit-of-process", syscall(SYS_prlimit64, pid, RLIMIT_CORE, NULL, NULL));
  TRY("priority-of-process", setpriority(PRIO_PROCESS, (id_t)pid, getpriority(PRIO_PROCESS, (id_t)pid)));
  TRY("processors-of-process", set_same_processors(pid));
  TRY("limit-of-itself", syscall(SYS_prlimit64, 0, RLIMIT_DATA, NULL, NULL));
  TRY("signal-self", kill(getpid(), 0));
}

static int exchange(int kind, const struct sockaddr *address, socklen_t size) {
  const int opened = socket(address->sa_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (opened < 0) return -1;
  const int connected = connect(opened, address, size);
  const int failed = connected < 0 && errno != EINPROGRESS;
  const int reason = errno;
  close(opened);
  errno = reason;
  return failed ? -1 : 0;
}

static void try_network(const char *unix_path, const char *address, const char *port) {
  struct sockaddr_in remote = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  int pair[2];
  inet_pton(AF_INET, address, &remote.sin_addr);
  TRY("gateway", exchange(SOCK_STREAM, (struct sockaddr *)&remote, sizeof remote));
  remote.sin_port = htons(53);
  TRY("dns", exchange(SOCK_DGRAM, (struct sockaddr *)&remote, sizeof remote));
  snprintf(local.sun_path, sizeof local.sun_path, "%s", unix_path);
  TRY("agent-socket", exchange(SOCK_STREAM, (struct sockaddr *)&local, sizeof local));
  TRY("socketpair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
}

enum { LANDLOCK_CREATE = 444, LANDLOCK_VERSION = 1 };

static int without_landlock(char **program) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LANDLOCK_CREATE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0)
    execv(program[0], program);
  perror(program[0]);
  return 1;
}

int main(int count, char **arguments) {
  if (count >= 3 && strcmp(arguments[1], "without-landlock") == 0) return without_landlock(arguments + 2);
  if (count != 8 || strcmp(arguments[1], "attempt") != 0) return 2;
  const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
  printf("landlock %ld\n", version < 0 ? 0 : version);
  try_files(arguments[3]);
  try_processes((pid_t)atoi(arguments[2]));
  TRY("read-node", open_and_close(arguments[4], O_RDONLY));
  try_network(arguments[5], arguments[6], arguments[7]);
  return 0;
}
