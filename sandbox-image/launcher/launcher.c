/*
 * Runs a program without access to network sockets, other processes and kernel interfaces that it does not need.
 *
 *   launcher run PROGRAM [ARGUMENT...]   the restrictions also apply to all child processes
 *   launcher service SOCKET UID PROGRAM [ARGUMENT...]   the same for a program that rests while nothing needs it; see service.h
 *   launcher runner [--writable FOLDER]... PROGRAM [ARGUMENT...]   for a process that runs guest code: kernel limits, killed first
 *                                        when memory runs out, no sockets, no signals to others, and with Landlock no writes
 *                                        outside of each FOLDER and no access to processes outside
 *   launcher program [OPTION]... PROGRAM NAME [ARGUMENT...]   for a program that an agent starts; see program.h
 *   launcher ready FILE UID [SECONDS]    exit code 0 when FILE exists and belongs to UID, waiting for it up to SECONDS; for probes
 *
 * The container shares its network namespace with a container that has a token, so no child process, not even one of a shell,
 * may open network sockets: a seccomp filter is inherited and cannot be removed. It needs no privileges, because
 * no_new_privs is set first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "only x86_64 and aarch64 are supported"
#endif

/* Exit codes of the launcher itself; otherwise the exit code is the program's. */
enum { NOT_READY = 1, USAGE = 2, CANNOT_BIND = 125, CANNOT_RUN = 126 };

/* The longest wait of a probe, and the time between two looks at its file. */
enum { MAX_WAIT_SECONDS = 3600, INTERVAL_NS = 10000000 };

/* A runner whose supervisor died without killing it ends after this processor time. */
enum { MAX_PROCESSOR_SECONDS = 900 };

/* The largest file in the folder of a runner that has one. */
enum { MAX_FILE_BYTES = 64 << 20 };

#define REFUSE(code) (SECCOMP_RET_ERRNO | ((code) & SECCOMP_RET_DATA))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
/* Skips the next instruction unless the loaded value equals `value`. */
#define WHEN(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1)
#define DENY(name) WHEN(__NR_##name), RETURN(REFUSE(EPERM))

/* The low half of an argument: both architectures are little-endian, and the kernel reads these arguments as 32 bits. */
#define ARGUMENT(index) (offsetof(struct seccomp_data, args) + 8 * (index))
#define LOAD_ARGUMENT(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(index))
/* Permits a call only when this argument is 0: the process itself. */
#define ONLY_SELF(name, index) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 4), LOAD_ARGUMENT(index), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), \
      RETURN(REFUSE(EPERM)), RETURN(SECCOMP_RET_ALLOW)
/* What a process may set for every other process of its user. */
#define ONLY_OWN_SCHEDULING \
  DENY(ioprio_set), DENY(setpriority), ONLY_SELF(prlimit64, 0), ONLY_SELF(sched_setaffinity, 0), \
      ONLY_SELF(sched_setscheduler, 0), ONLY_SELF(sched_setparam, 0), ONLY_SELF(sched_setattr, 0)

#define NAMESPACES \
  (CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* Loads the number of a system call. Another architecture has other numbers: kills a process that uses them. */
#define LOAD_NATIVE_CALL \
  LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(nr)
#if defined(__x86_64__)
/* Also denies the 32-bit-pointer variants of all calls. */
#define LOAD_CALL LOAD_NATIVE_CALL, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), RETURN(REFUSE(EPERM))
#else
#define LOAD_CALL LOAD_NATIVE_CALL
#endif

static struct sock_filter rules[] = {
    LOAD_CALL,

    /* Access to other processes. */
    DENY(ptrace),
    DENY(process_vm_readv),
    DENY(process_vm_writev),
    DENY(kcmp),
    DENY(pidfd_getfd),
    DENY(process_madvise),

    /* Kernel interfaces with a history of vulnerabilities that no tool needs. */
    DENY(userfaultfd),
    DENY(io_uring_setup),
    DENY(io_uring_enter),
    DENY(io_uring_register),
    DENY(bpf),
    DENY(perf_event_open),
    DENY(keyctl),
    DENY(add_key),
    DENY(request_key),
    DENY(init_module),
    DENY(finit_module),
    DENY(delete_module),
    DENY(kexec_load),
    DENY(open_by_handle_at),
    DENY(name_to_handle_at),
    DENY(acct),
    DENY(swapon),
    DENY(swapoff),
    DENY(reboot),
    DENY(syslog),
    DENY(quotactl),
    DENY(vhangup),

    /* Mounts and namespaces. */
    DENY(mount),
    DENY(umount2),
    DENY(pivot_root),
    DENY(chroot),
    DENY(setns),
    DENY(unshare),
    DENY(fsopen),
    DENY(fsconfig),
    DENY(fsmount),
    DENY(fspick),
    DENY(open_tree),
    DENY(move_mount),
#ifdef __NR_mount_setattr
    DENY(mount_setattr),
#endif

    /* A filter cannot read the flags of clone3. With ENOSYS the C library falls back to clone. */
    WHEN(__NR_clone3),
    RETURN(REFUSE(ENOSYS)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4),
    LOAD_ARGUMENT(0),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1),
    RETURN(REFUSE(EPERM)),
    RETURN(SECCOMP_RET_ALLOW),

    /* Unix sockets only. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socketpair, 1, 0),
    RETURN(SECCOMP_RET_ALLOW),
    LOAD_ARGUMENT(0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1),
    RETURN(SECCOMP_RET_ALLOW),
    RETURN(REFUSE(EPERM)),
};

static int fail(int code, const char *what) {
  fprintf(stderr, "launcher: %s: %s\n", what, strerror(errno));
  return code;
}

/* Prints the reason when it fails. */
static int restrict_process(void) {
  const struct rlimit none = {0, 0};
  const struct sock_fprog filter = {sizeof(rules) / sizeof(rules[0]), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail(CANNOT_BIND, "no_new_privs");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail(CANNOT_BIND, "dumpable");
  if (setrlimit(RLIMIT_CORE, &none) != 0) return fail(CANNOT_BIND, "core files");
  if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
    return fail(CANNOT_BIND, "seccomp filter");
  return 0;
}

static int run(char **program) {
  if (restrict_process() != 0) return CANNOT_BIND;
  execv(program[0], program);
  return fail(CANNOT_RUN, program[0]);
}

/* The Landlock interface by its stable numbers, because the headers of a build machine may be older than the kernel of a node. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446, LANDLOCK_VERSION = 1, LANDLOCK_BENEATH = 1 };
struct landlock_rules {
  uint64_t files;
  uint64_t network;
  uint64_t scopes;
};
struct landlock_folder {
  uint64_t allowed;
  int32_t folder;
} __attribute__((packed));

/* Bits of `landlock_rules.files`: 1 write, 4 and 5 remove, 7 and 8 create folders and files, 13 move, 14 truncate. */
enum { IN_WRITABLE_FOLDER = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 13 | 1 << 14 };

/* Files and folders only: no links, devices, sockets or pipes. */
static int permit_writes(int ruleset, const char *folder, uint64_t denied) {
  struct landlock_folder rule = {denied & IN_WRITABLE_FOLDER, open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (rule.folder < 0) return -1;
  const long result = syscall(LANDLOCK_ADD, ruleset, LANDLOCK_BENEATH, &rule, 0);
  close(rule.folder);
  return result == 0 ? 0 : -1;
}

/*
 * A process in a Landlock domain cannot trace processes outside it or open their memory, whatever else the domain denies. This
 * one also denies what its kernel knows of: writing, creating and removing files outside of these folders (1), moving (2),
 * truncating (3), TCP (4), devices (5), signals to processes outside and abstract sockets (6).
 */
static int enter_landlock(char **options, int folders) {
  const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
  /* The kernel has no Landlock: the other restrictions hold alone. */
  if (version < 1) return 0;
  /* Bits: 0 execute, 1 write, 2 read, 3 list, 4-12 create and remove, 13 move, 14 truncate, 15 devices. */
  struct landlock_rules rules = {0x1ff2, 0, 0};
  if (version >= 2) rules.files |= 1 << 13;
  if (version >= 3) rules.files |= 1 << 14;
  if (version >= 4) rules.network = 3;
  if (version >= 5) rules.files |= 1 << 15;
  if (version >= 6) rules.scopes = 3;
  const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const int ruleset = (int)syscall(LANDLOCK_CREATE, &rules, size, 0);
  if (ruleset < 0) return -1;
  long result = 0;
  for (int folder = 0; folder < folders && result == 0; folder++) result = permit_writes(ruleset, options[2 * folder + 1], rules.files);
  if (result == 0) result = syscall(LANDLOCK_RESTRICT, ruleset, 0);
  close(ruleset);
  return result == 0 ? 0 : -1;
}

/*
 * A runner talks to its supervisor through pipes that it already has. It needs no socket, not even the Unix socket of the agent
 * container, on which it could take the place of the sandbox, it signals only itself, and it changes limits and priorities of no
 * other process. Unlike Landlock, every kernel enforces this.
 */
static int forbid_sockets_and_other_processes(void) {
  const uint32_t own = (uint32_t)getpid();
  struct sock_filter runner_rules[] = {
      LOAD_CALL,
      DENY(socket),
      DENY(socketpair),
      DENY(connect),
      DENY(bind),
      DENY(listen),
      DENY(tkill),
      DENY(rt_sigqueueinfo),
      DENY(rt_tgsigqueueinfo),
      DENY(pidfd_send_signal),
      ONLY_OWN_SCHEDULING,
      /* Both have the process as their first argument; a group of processes is 0 or negative. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_kill, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_tgkill, 1, 0),
      RETURN(SECCOMP_RET_ALLOW),
      LOAD_ARGUMENT(0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own, 0, 1),
      RETURN(SECCOMP_RET_ALLOW),
      RETURN(REFUSE(EPERM)),
  };
  const struct sock_fprog filter = {sizeof(runner_rules) / sizeof(runner_rules[0]), runner_rules};
  return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

/* Best effort: some systems do not allow it, and the supervisor's own limit does not depend on it. */
static void die_first_without_memory(void) {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, "1000", 4) != 4) errno = 0;
  close(file);
}

static int usage(void) {
  fprintf(stderr, "usage: launcher run PROGRAM [ARGUMENT...] | launcher service SOCKET UID PROGRAM [ARGUMENT...] | launcher runner [--writable FOLDER]... PROGRAM [ARGUMENT...] | launcher program [OPTION]... PROGRAM NAME [ARGUMENT...] | launcher ready FILE UID [SECONDS]\n");
  return USAGE;
}

/* How many options `--writable FOLDER` the arguments begin with. */
static int writable_folders(char **arguments) {
  int found = 0;
  while (arguments[2 * found] != NULL && strcmp(arguments[2 * found], "--writable") == 0 && arguments[2 * found + 1] != NULL) found++;
  return found;
}

/* The program inherits all of it. Without a writable folder no file may grow, so a log or a dump cannot fill a disk either. */
static int runner(char **arguments) {
  const int folders = writable_folders(arguments);
  char **program = arguments + 2 * folders;
  if (program[0] == NULL) return usage();
  const struct rlimit none = {0, 0};
  const rlim_t file_bytes = folders == 0 ? 0 : MAX_FILE_BYTES;
  const struct rlimit files = {file_bytes, file_bytes};
  const struct rlimit processor = {MAX_PROCESSOR_SECONDS, MAX_PROCESSOR_SECONDS};
  die_first_without_memory();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail(CANNOT_BIND, "no_new_privs");
  if (setrlimit(RLIMIT_CORE, &none) != 0) return fail(CANNOT_BIND, "core files");
  if (setrlimit(RLIMIT_FSIZE, &files) != 0) return fail(CANNOT_BIND, "file size");
  if (setrlimit(RLIMIT_CPU, &processor) != 0) return fail(CANNOT_BIND, "processor time");
  if (enter_landlock(arguments, folders) != 0) return fail(CANNOT_BIND, "landlock");
  if (forbid_sockets_and_other_processes() != 0) return fail(CANNOT_BIND, "seccomp filter");
  execv(program[0], program);
  return fail(CANNOT_RUN, program[0]);
}

static int belongs_to(const char *file, unsigned long uid) {
  struct stat found;
  return lstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == uid;
}

/* Parses digits up to `largest`; -1 for anything else. */
static long parse(const char *text, long largest) {
  char *end = NULL;
  errno = 0;
  const long value = strtol(text, &end, 10);
  return *text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > largest ? -1 : value;
}

/* A probe that waits reports readiness within milliseconds; the kubelet repeats a probe that fails at most once per second. */
static int ready(const char *file, const char *owner, const char *wait) {
  const struct timespec interval = {0, INTERVAL_NS};
  const long uid = parse(owner, UINT32_MAX);
  const long seconds = parse(wait, MAX_WAIT_SECONDS);
  if (uid < 0 || seconds < 0) return USAGE;
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += seconds;
  while (!belongs_to(file, (unsigned long)uid)) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec)) return NOT_READY;
    nanosleep(&interval, NULL);
  }
  return 0;
}

#include "program.h"
#include "service.h"

int main(int count, char **arguments) {
  if (count >= 3 && strcmp(arguments[1], "run") == 0) return run(arguments + 2);
  if (count >= 5 && strcmp(arguments[1], "service") == 0) return service(arguments + 2);
  if (count >= 3 && strcmp(arguments[1], "runner") == 0) return runner(arguments + 2);
  if (count >= 4 && strcmp(arguments[1], "program") == 0) return program(arguments + 2);
  if ((count == 4 || count == 5) && strcmp(arguments[1], "ready") == 0)
    return ready(arguments[2], arguments[3], count == 5 ? arguments[4] : "0");
  return usage();
}
