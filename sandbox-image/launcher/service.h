/*
 * Runs a program that rests while nothing needs it, so that an idle container holds this small process alone.
 *
 *   launcher service SOCKET UID PROGRAM [ARGUMENT...]
 *
 * PROGRAM has the restrictions of `run`, and the variable LAUNCHER_REST_CODE: with that exit code it says that its peer does not need it
 * for now. The launcher then connects to the Unix socket SOCKET in its place, if a process of user UID listens there, sends one frame
 * that says so, and starts PROGRAM again as soon as the peer sends something or the connection ends. With any other exit code the
 * launcher ends with that code. A signal that asks it to end goes to PROGRAM; while that rests, the launcher ends with 0.
 */
#include <sys/un.h>

enum { REST_CODE = 90, OF_SIGNAL = 128 };

/* A frame of the protocol between the containers: the length in four bytes, and JSON. */
static const char RESTING[] = "\0\0\0\22{\"type\":\"resting\"}";

static int is_end(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP; }

/* Starts the program; it ends with the launcher. Returns its process ID, or -1. */
static pid_t start(char **program, const sigset_t *unblocked) {
  const pid_t launcher = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  sigprocmask(SIG_SETMASK, unblocked, NULL);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != launcher) _exit(CANNOT_BIND);
  execv(program[0], program);
  _exit(fail(CANNOT_RUN, program[0]));
}

/* The next signal, or -1. */
static int next_signal(int signals) {
  struct signalfd_siginfo received;
  return read(signals, &received, sizeof(received)) == sizeof(received) ? (int)received.ssi_signo : -1;
}

/* Returns the exit code of the program, and whether the launcher was asked to end meanwhile. */
static int wait_for_end(pid_t program, int signals, int *is_asked) {
  *is_asked = 0;
  for (;;) {
    const int number = next_signal(signals);
    int status;
    if (is_end(number)) {
      *is_asked = 1;
      kill(program, number);
    }
    if (reap(program, &status)) return WIFEXITED(status) ? WEXITSTATUS(status) : OF_SIGNAL + WTERMSIG(status);
  }
}

/* A connection to the process of this user that listens on the socket, or -1. */
static int connect_to(const char *path, uid_t user) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof(address.sun_path)) return -1;
  memcpy(address.sun_path, path, strlen(path));
  const int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (peer < 0) return -1;
  struct ucred owner;
  socklen_t size = sizeof(owner);
  if (connect(peer, (struct sockaddr *)&address, sizeof(address)) == 0 && getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 &&
      owner.uid == user && send(peer, RESTING, sizeof(RESTING) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(RESTING) - 1)
    return peer;
  close(peer);
  return -1;
}

/* Returns 0 when the program is needed, and the number of the signal when the launcher is asked to end. */
static int rest(const char *path, uid_t user, int signals) {
  struct pollfd sources[] = {{signals, POLLIN, 0}, {connect_to(path, user), POLLIN, 0}};
  int number = 0;
  while (sources[1].fd >= 0 && sources[1].revents == 0 && !is_end(number)) {
    if (poll(sources, 2, -1) < 0 && errno != EINTR) break;
    if ((sources[0].revents & POLLIN) == 0) continue;
    int ignored;
    number = next_signal(signals);
    reap(0, &ignored);
  }
  if (sources[1].fd >= 0) close(sources[1].fd);
  return is_end(number) ? number : 0;
}

static int service(char **arguments) {
  const long user = parse(arguments[1], UINT32_MAX);
  char code[8];
  snprintf(code, sizeof(code), "%d", REST_CODE);
  if (user < 0) return USAGE;
  if (restrict_process() != 0) return CANNOT_BIND;
  if (setenv("LAUNCHER_REST_CODE", code, 1) != 0) return fail(CANNOT_BIND, "environment");
  sigset_t blocked, unblocked;
  sigemptyset(&blocked);
  for (const int *number = (const int[]){SIGTERM, SIGINT, SIGHUP, SIGCHLD, 0}; *number != 0; number++) sigaddset(&blocked, *number);
  if (sigprocmask(SIG_BLOCK, &blocked, &unblocked) != 0) return fail(CANNOT_BIND, "signals");
  const int signals = signalfd(-1, &blocked, SFD_CLOEXEC);
  if (signals < 0) return fail(CANNOT_BIND, "signals");
  for (;;) {
    const pid_t program = start(arguments + 2, &unblocked);
    if (program < 0) return fail(CANNOT_RUN, arguments[2]);
    int is_asked;
    const int exit_code = wait_for_end(program, signals, &is_asked);
    if (exit_code != REST_CODE) return exit_code;
    /* The program had decided to rest before the signal reached it. */
    if (is_asked) return 0;
    if (rest(arguments[0], (uid_t)user, signals) != 0) return 0;
  }
}
