/** The resident memory of a process, as reported by the kernel. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** Returns resident bytes; undefined when the process has ended or the platform does not report them. */
export type MemoryReader = (pid: number) => Promise<number | undefined> | number | undefined;

export function createMemoryReader(platform: NodeJS.Platform): MemoryReader {
  return platform === 'linux' ? residentOnLinux : residentByPs;
}

function residentOnLinux(pid: number): number | undefined {
  try {
    const match = /^VmRSS:\s{0,20}(\d{1,15}) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
    return match === null ? undefined : Number(match[1]) * 1_024;
  } catch {
    return undefined;
  }
}

function residentByPs(pid: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    execFile('/bin/ps', ['-o', 'rss=', '-p', String(pid)], { timeout: 1_000 }, (error, stdout) => {
      const kibibytes = Number(stdout.trim());
      resolve(error === null && Number.isFinite(kibibytes) && kibibytes > 0 ? kibibytes * 1_024 : undefined);
    });
  });
}

/** Memory that a runner may use beyond the limit of its guest, in bytes. */
const PROCESS_OVERHEAD_BYTES = 134_217_728;
const MEMORY_POLL_MS = 25;

/** Calls `onExceeded` when the process uses more than the limit of its guest and a fixed overhead, until it is disposed. */
export function watchMemory(
  { readMemory, pid, memoryBytes }: { readMemory: MemoryReader; pid: number | undefined; memoryBytes: number },
  onExceeded: () => void,
): Disposable {
  let isDisposed = false;
  const check = async (): Promise<void> => {
    const held = pid === undefined ? undefined : await readMemory(pid);
    if (!isDisposed && held !== undefined && held > memoryBytes + PROCESS_OVERHEAD_BYTES) onExceeded();
  };
  const poll = setInterval(() => void check(), MEMORY_POLL_MS);
  return {
    [Symbol.dispose]() {
      isDisposed = true;
      clearInterval(poll);
    },
  };
}

/** Makes the kernel kill this process first when memory runs out. Best effort: some systems do not allow it. */
export function raiseOomScore(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch {
    // The file is missing or not writable. The supervisor's own memory limit does not depend on it.
  }
}
