/*
 * Runs one program that an agent starts, with everything that it starts itself.
 *
 *   launcher program [--read PATH]... [--write FOLDER]... [--execute PATH]... [--tasks NUMBER] [--memory MIB] PROGRAM NAME [ARGUMENT...]
 *
 * This process stays as the parent of all of them: a process that loses its parent gets this one (subreaper). The program and its children
 * ask it for each new process or thread, so their number has a limit, and at the end no new one appears while it kills the rest. They
 * also ask for a handler of SIGCHLD: the end of a child must not interrupt a question about a new process.
 * File descriptor 3 connects it to its supervisor. It reads `T`: ask all processes to end. When the other side closes, it kills
 * all of them. At the end it writes one line: `exit CODE LEFT`, `signal NUMBER LEFT`, `memory` or `error WHAT: WHY`; LEFT counts the
 * processes that were left when the program had ended.
 *
 * The program reads and writes below the named paths alone (Landlock), has no sockets, changes no modes, owners and times of files by
 * path, and sends no signals to processes outside. Without Landlock of version 2 it does not run.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum { CONTROL = 3, MAX_TASKS = 4096, MAX_MIB = 1 << 20, LEAST_LANDLOCK = 2, INTERVAL_MS = 100, KILL_ROUNDS = 5000 };

/* The largest file that a program may write. */
enum { MAX_PROGRAM_FILE_BYTES = 256 << 20, MAX_OPEN_FILES = 1024 };

struct program_limits {
  long tasks;
  long mebibytes;
};

/* Bits of Landlock: 0 execute, 1 write, 2 read, 3 list, 14 truncate, 15 device. Only these exist for files that are no folders. */
enum { MAY_EXECUTE = 1 << 0, MAY_READ = 1 << 2 | 1 << 3, OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15 };

/* A path that does not exist gives no right. */
static int permit(int ruleset, const char *path, uint64_t rights) {
  struct landlock_folder rule = {rights, open(path, O_PATH | O_CLOEXEC)};
  if (rule.folder < 0) return errno == ENOENT ? 0 : -1;
  struct stat found;
  if (fstat(rule.folder, &found) != 0) return -1;
  if (!S_ISDIR(found.st_mode)) rule.allowed &= OF_FILES;
  const long result = syscall(LANDLOCK_ADD, ruleset, LANDLOCK_BENEATH, &rule, 0);
  close(rule.folder);
  return result == 0 ? 0 : -1;
}

/* The version of Landlock, or -1. The options are pairs; others than these three have been read before. */
static long confine_files(char **options, int count) {
  const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
  if (version < LEAST_LANDLOCK) {
    errno = EOPNOTSUPP;
    return -1;
  }
  struct landlock_rules rules = {0x3fff, 0, 0};
  if (version >= 3) rules.files |= 1 << 14;
  if (version >= 4) rules.network = 3;
  if (version >= 5) rules.files |= 1 << 15;
  if (version >= 6) rules.scopes = 3;
  const int ruleset = (int)syscall(LANDLOCK_CREATE, &rules, version >= 6 ? 24 : version >= 4 ? 16 : 8, 0);
  if (ruleset < 0) return -1;
  int result = 0;
  for (int index = 0; index < count && result == 0; index++) {
    const char *name = options[2 * index];
    const char *path = options[2 * index + 1];
    if (strcmp(name, "--read") == 0) result = permit(ruleset, path, MAY_READ);
    if (strcmp(name, "--execute") == 0) result = permit(ruleset, path, MAY_EXECUTE | MAY_READ);
    if (strcmp(name, "--write") == 0) result = permit(ruleset, path, (MAY_READ | IN_WRITABLE_FOLDER) & rules.files);
  }
  if (result == 0) result = permit(ruleset, "/dev/null", (MAY_READ | 1 << 1 | 1 << 14) & rules.files);
  static const char *const devices[] = {"/dev/zero", "/dev/random", "/dev/urandom"};
  for (int index = 0; index < 3 && result == 0; index++) result = permit(ruleset, devices[index], MAY_READ);
  if (result == 0) result = (int)syscall(LANDLOCK_RESTRICT, ruleset, 0);
  close(ruleset);
  return result == 0 ? version : -1;
}

#define LOAD_HIGH(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(index) + 4)
#define DENY_NUMBER(number) WHEN(number), RETURN(REFUSE(EPERM))
#define ASK(name) WHEN(__NR_##name), RETURN(SECCOMP_RET_USER_NOTIF)

/* The filter of a program. Returns the descriptor on which the kernel asks about new processes, or -1. */
static int filter_calls(int has_signal_scope) {
  const int is_root = geteuid() == 0;
  struct sock_filter filter[] = {
      LOAD_CALL,
      ASK(clone),
#ifdef __NR_fork
      ASK(fork),
      ASK(vfork),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigaction, 0, 4),
      LOAD_ARGUMENT(0),
      WHEN(SIGCHLD), RETURN(SECCOMP_RET_USER_NOTIF),
      RETURN(SECCOMP_RET_ALLOW),
      DENY(socket),
      DENY(connect),
      DENY(bind),
      DENY(listen),
      /* Pairs without an address, with which programs connect their children. A datagram could name another receiver. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socketpair, 0, 5),
      LOAD_ARGUMENT(1),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0),
      RETURN(REFUSE(EPERM)),
      RETURN(SECCOMP_RET_ALLOW),

      /* Landlock knows none of these. */
#ifdef __NR_chmod
      DENY(chmod),
      DENY(chown),
      DENY(lchown),
      DENY(utime),
      DENY(utimes),
      DENY(futimesat),
#endif
      DENY(truncate),
      DENY(fchmodat),
      DENY_NUMBER(452), /* fchmodat2 */
      DENY(fchownat),
      DENY(fchown),
      DENY(setxattr),
      DENY(lsetxattr),
      DENY(fsetxattr),
      DENY(removexattr),
      DENY(lremovexattr),
      DENY(fremovexattr),
      DENY_NUMBER(463), /* setxattrat */
      DENY_NUMBER(466), /* removexattrat */
      DENY_NUMBER(469), /* file_setattr */
      DENY(inotify_add_watch),
      DENY(fanotify_init),
      /* Without a path it is about an open file. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_utimensat, 0, 6),
      LOAD_ARGUMENT(1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
      LOAD_HIGH(1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
      RETURN(REFUSE(EPERM)),
      RETURN(SECCOMP_RET_ALLOW),

      /* What processes of one user share or set for each other. */
      DENY(shmget),
      DENY(msgget),
      DENY(semget),
      DENY(mq_open),
      DENY(memfd_create),
      ONLY_OWN_SCHEDULING,

      /* Root could change the modes of files that it may only read. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fchmod, 0, 1),
      RETURN(is_root ? REFUSE(EPERM) : SECCOMP_RET_ALLOW),

      /* An older kernel does not keep signals within the domain. */
      BPF_STMT(BPF_JMP | BPF_JA, (has_signal_scope ? 14 : 0)),
      DENY(kill),
      DENY(tkill),
      DENY(tgkill),
      DENY(rt_sigqueueinfo),
      DENY(rt_tgsigqueueinfo),
      DENY(pidfd_send_signal),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 1),
      BPF_STMT(BPF_JMP | BPF_JA, 1),
      RETURN(SECCOMP_RET_ALLOW),
      LOAD_ARGUMENT(1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 8, 1, 0), /* F_SETOWN */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 15, 0, 1), /* F_SETOWN_EX */
      RETURN(REFUSE(EPERM)),
      RETURN(SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog base = {sizeof(rules) / sizeof(rules[0]), rules};
  const struct sock_fprog own = {sizeof(filter) / sizeof(filter[0]), filter};
  if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &base) != 0) return -1;
  return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &own);
}

static void report(const char *line) {
  if (write(CONTROL, line, strlen(line)) < 0) errno = 0;
}

static void report_error(const char *what) {
  char line[256];
  snprintf(line, sizeof(line), "error %s: %s\n", what, strerror(errno));
  report(line);
}

static int send_descriptor(int channel, int descriptor) {
  char byte = 'd';
  struct iovec data = {&byte, 1};
  char space[CMSG_SPACE(sizeof(int))];
  memset(space, 0, sizeof(space));
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  return sendmsg(channel, &message, 0) == 1 ? 0 : -1;
}

/* -1 when the other side ended without one. */
static int receive_descriptor(int channel) {
  char byte;
  struct iovec data = {&byte, 1};
  char space[CMSG_SPACE(sizeof(int))];
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
  if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_type != SCM_RIGHTS) return -1;
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return descriptor;
}

/* Becomes the program. Returns only what failed, and `errno`. */
static const char *become_program(char **options, int count, char **program, int channel) {
  const struct rlimit none = {0, 0};
  const struct rlimit files = {MAX_PROGRAM_FILE_BYTES, MAX_PROGRAM_FILE_BYTES};
  const struct rlimit open_files = {MAX_OPEN_FILES, MAX_OPEN_FILES};
  const struct rlimit processor = {MAX_PROCESSOR_SECONDS, MAX_PROCESSOR_SECONDS};
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  signal(SIGPIPE, SIG_DFL);
  umask(022);
  die_first_without_memory();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return "parent death signal";
  if (setpgid(0, 0) != 0) return "process group";
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_FSIZE, &files) != 0) return "limits";
  if (setrlimit(RLIMIT_NOFILE, &open_files) != 0 || setrlimit(RLIMIT_CPU, &processor) != 0) return "limits";
  const long version = confine_files(options, count);
  if (version < 0) return "landlock";
  const int listener = filter_calls(version >= 6);
  if (listener < 0) return "seccomp filter";
  if (send_descriptor(channel, listener) != 0) return "listener";
  /* Every descriptor but the standard ones closes when the program starts. */
  if (syscall(436 /* close_range */, CONTROL, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) != 0) return "open files";
  execv(program[0], program + 1);
  return "program";
}

struct task {
  long pid;
  long parent;
  long threads;
  int is_descendant;
};

struct tasks {
  struct task *list;
  size_t length;
  size_t capacity;
  long threads;
  long kibibytes;
  long processes;
};

/* The beginning of a file of a process in /proc, with a zero at its end; 0 for a process that is gone. */
static int read_process_file(long pid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, size - 1);
  close(file);
  text[length < 0 ? 0 : length] = '\0';
  return length > 0;
}

/* The fields of /proc/PID/stat after the name, which may contain anything: 4 parent, 20 threads. */
static int read_task(long pid, struct task *task) {
  char text[1024];
  if (!read_process_file(pid, "stat", text, sizeof(text))) return 0;
  char *rest = strrchr(text, ')');
  if (rest == NULL || rest[1] == '\0') return 0;
  *task = (struct task){.pid = pid};
  int field = 3;
  for (char *word = strtok(rest + 2, " "); word != NULL; word = strtok(NULL, " "), field++) {
    if (field == 4) task->parent = strtol(word, NULL, 10);
    if (field == 20) {
      task->threads = strtol(word, NULL, 10);
      return 1;
    }
  }
  return 0;
}

static long kibibytes_of(const char *status, const char *name) {
  const char *found = strstr(status, name);
  return found == NULL ? 0 : strtol(found + strlen(name), NULL, 10);
}

/* The memory of a process without that of its files, which processes share. */
static long read_memory(long pid) {
  char text[4096];
  if (!read_process_file(pid, "status", text, sizeof(text))) return 0;
  return kibibytes_of(text, "\nRssAnon:") + kibibytes_of(text, "\nRssShmem:");
}

/* All processes below this one. */
static void find_descendants(struct tasks *tasks) {
  tasks->length = 0;
  tasks->threads = tasks->kibibytes = tasks->processes = 0;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return;
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    const long pid = parse(entry->d_name, INT32_MAX);
    if (pid <= 0) continue;
    if (tasks->length == tasks->capacity) {
      const size_t capacity = tasks->capacity * 2 + 256;
      struct task *list = realloc(tasks->list, capacity * sizeof(struct task));
      if (list == NULL) break;
      tasks->list = list;
      tasks->capacity = capacity;
    }
    if (read_task(pid, &tasks->list[tasks->length])) tasks->length++;
  }
  closedir(folder);
  const long own = getpid();
  for (int found = 1; found;) {
    found = 0;
    for (size_t index = 0; index < tasks->length; index++) {
      struct task *task = &tasks->list[index];
      if (task->is_descendant) continue;
      int below = task->parent == own;
      for (size_t other = 0; other < tasks->length && !below; other++)
        below = tasks->list[other].is_descendant && tasks->list[other].pid == task->parent;
      if (!below) continue;
      task->is_descendant = found = 1;
      tasks->processes++;
      tasks->threads += task->threads;
      tasks->kibibytes += read_memory(task->pid);
    }
  }
}

static void signal_descendants(struct tasks *tasks, int number) {
  find_descendants(tasks);
  for (size_t index = 0; index < tasks->length; index++)
    if (tasks->list[index].is_descendant) kill((pid_t)tasks->list[index].pid, number);
}

/* Kills what is left. No new process appears, because this one answers the kernel no more. */
static long kill_descendants(struct tasks *tasks) {
  const struct timespec pause = {0, 1000000};
  long left = -1;
  for (int round = 0; round < KILL_ROUNDS; round++) {
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    signal_descendants(tasks, SIGKILL);
    if (left < 0) left = tasks->processes;
    if (tasks->processes == 0) break;
    nanosleep(&pause, NULL);
  }
  return left;
}

struct gate {
  int listener;
  long limit;
  /* At least as many tasks as exist. */
  long estimate;
};

/* A new process or thread within the limit is permitted: 0, or the error for the caller. */
static int permit_task(struct gate *gate, struct tasks *tasks) {
  if (gate->estimate >= gate->limit) {
    find_descendants(tasks);
    gate->estimate = tasks->threads;
  }
  if (gate->estimate >= gate->limit) return -EAGAIN;
  gate->estimate++;
  return 0;
}

/*
 * Sets SA_RESTART in the handler of SIGCHLD that a process installs. While the kernel asks about a new process, the end of a child would
 * fail the call with EINTR, which fork never does without a filter; dash gives up then. Where the memory cannot be written, the call
 * stays as it is. The descriptor belongs to the process that asked, also when another one has got its number since.
 */
static void restart_calls(const struct gate *gate, const struct seccomp_notif *request) {
  unsigned long handler_and_flags[2];
  char path[32];
  const off_t action = (off_t)request->data.args[1];
  if (action == 0) return;
  snprintf(path, sizeof(path), "/proc/%u/mem", request->pid);
  const int memory = open(path, O_RDWR | O_CLOEXEC);
  if (memory < 0) return;
  const int is_asking = ioctl(gate->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &request->id) == 0;
  if (is_asking && pread(memory, handler_and_flags, sizeof(handler_and_flags), action) == sizeof(handler_and_flags)) {
    handler_and_flags[1] |= SA_RESTART;
    if (pwrite(memory, handler_and_flags, sizeof(handler_and_flags), action) < 0) errno = 0;
  }
  close(memory);
}

/* Answers one question of the kernel about a call of a program. */
static void answer(struct gate *gate, struct tasks *tasks) {
  struct seccomp_notif request;
  struct seccomp_notif_resp response;
  memset(&request, 0, sizeof(request));
  memset(&response, 0, sizeof(response));
  if (ioctl(gate->listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return;
  if (request.data.nr == __NR_rt_sigaction) restart_calls(gate, &request);
  else response.error = permit_task(gate, tasks);
  if (response.error == 0) response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  response.id = request.id;
  if (ioctl(gate->listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0) errno = 0;
}

/* The status of the program when it has ended. */
static int reap(pid_t program, int *status) {
  int is_ended = 0;
  int found;
  for (pid_t pid = waitpid(-1, &found, WNOHANG); pid > 0; pid = waitpid(-1, &found, WNOHANG)) {
    if (pid != program) continue;
    *status = found;
    is_ended = 1;
  }
  return is_ended;
}

enum outcome { ENDED, KILLED, OUT_OF_MEMORY };

static enum outcome supervise(pid_t program, struct gate *gate, int signals, long mebibytes, struct tasks *tasks, int *status) {
  struct pollfd sources[] = {{CONTROL, POLLIN, 0}, {signals, POLLIN, 0}, {gate->listener, POLLIN, 0}};
  struct timespec checked = {0, 0};
  for (;;) {
    if (poll(sources, 3, INTERVAL_MS) < 0 && errno != EINTR) return KILLED;
    if (sources[0].revents != 0) {
      char command;
      if (read(CONTROL, &command, 1) != 1) return KILLED;
      if (command == 'T') signal_descendants(tasks, SIGTERM);
    }
    if (sources[1].revents != 0) {
      struct signalfd_siginfo ignored;
      if (read(signals, &ignored, sizeof(ignored)) < 0) errno = 0;
    }
    if (reap(program, status)) return ENDED;
    if (sources[2].revents & POLLIN) answer(gate, tasks);
    else if (sources[2].revents != 0) sources[2].fd = -1;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long since_ms = (now.tv_sec - checked.tv_sec) * 1000 + (now.tv_nsec - checked.tv_nsec) / 1000000;
    if (since_ms < INTERVAL_MS) continue;
    checked = now;
    find_descendants(tasks);
    gate->estimate = tasks->threads;
    if (tasks->kibibytes > mebibytes * 1024) return OUT_OF_MEMORY;
  }
}

/* How many pairs of options the arguments begin with. */
static int program_options(char **arguments, struct program_limits *limits) {
  int found = 0;
  for (; arguments[2 * found] != NULL && arguments[2 * found + 1] != NULL; found++) {
    const char *name = arguments[2 * found];
    const char *value = arguments[2 * found + 1];
    if (strcmp(name, "--tasks") == 0) limits->tasks = parse(value, MAX_TASKS);
    else if (strcmp(name, "--memory") == 0) limits->mebibytes = parse(value, MAX_MIB);
    else if (strcmp(name, "--read") != 0 && strcmp(name, "--write") != 0 && strcmp(name, "--execute") != 0) break;
  }
  return found;
}

static int program(char **arguments) {
  struct program_limits limits = {256, 1024};
  const int count = program_options(arguments, &limits);
  char **words = arguments + 2 * count;
  if (words[0] == NULL || words[1] == NULL || limits.tasks < 1 || limits.mebibytes < 1) return usage();
  int channel[2];
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signal(SIGPIPE, SIG_IGN);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    report_error("supervision");
    return CANNOT_BIND;
  }
  sigprocmask(SIG_BLOCK, &child, NULL);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0) {
    report_error("supervision");
    return CANNOT_BIND;
  }
  const pid_t pid = fork();
  if (pid < 0) {
    report_error("process");
    return CANNOT_RUN;
  }
  if (pid == 0) {
    report_error(become_program(arguments, count, words, channel[1]));
    _exit(CANNOT_RUN);
  }
  close(channel[1]);
  /* The program has them; an end of its output must be one for the reader. */
  for (int stream = 0; stream < 3; stream++) close(stream);
  struct gate gate = {receive_descriptor(channel[0]), limits.tasks, 1};
  struct tasks tasks = {0};
  int status = 0;
  if (gate.listener < 0) {
    waitpid(pid, &status, 0);
    return CANNOT_BIND;
  }
  const enum outcome outcome = supervise(pid, &gate, signals, limits.mebibytes, &tasks, &status);
  const long left = kill_descendants(&tasks);
  char line[64] = "memory\n";
  if (outcome == KILLED) snprintf(line, sizeof(line), "signal %d 0\n", SIGKILL);
  if (outcome == ENDED && WIFEXITED(status)) snprintf(line, sizeof(line), "exit %d %ld\n", WEXITSTATUS(status), left);
  if (outcome == ENDED && WIFSIGNALED(status)) snprintf(line, sizeof(line), "signal %d %ld\n", WTERMSIG(status), left);
  report(line);
  return 0;
}
