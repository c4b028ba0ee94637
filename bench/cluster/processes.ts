import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Of /proc/<pid>/stat behind the name of the program, counted from 0. */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;
const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Seconds of processor time the process has used so far, all threads. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])) / TICKS_PER_SECOND;
}

/** Bytes of memory the process holds now. */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(match?.[1] ?? Number.NaN) * 1_024;
}
