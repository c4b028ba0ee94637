/** How much memory a process holds, as its kernel counts it. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** Resident bytes; undefined when the process is gone or the platform does not say. */
export type ResidentReader = (pid: number) => Promise<number | undefined> | number | undefined;

export function residentReader(platform: NodeJS.Platform): ResidentReader {
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

/** Asks the kernel to end this process first when memory runs out. Best effort: not every system lets us. */
export function volunteerForOutOfMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch {
    // No such file, or not allowed: our own memory limit does not depend on it.
  }
}
