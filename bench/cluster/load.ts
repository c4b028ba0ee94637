import { cpuSeconds } from './processes.ts';

/** Processor seconds of each part since the measurement began. */
export interface Spent {
  /** Of wall clock. */
  readonly seconds: number;
  readonly cpu: Readonly<Record<string, number>>;
  /** All of it, for the table. */
  readonly text: string;
}

/** Begins to measure what processes use; the answer says what they have used since. All must run until it is called. */
export function measureLoad(pids: Readonly<Record<string, number>>): () => Spent {
  const begun = performance.now();
  const before = Object.entries(pids).map(([name, pid]) => ({ name, pid, used: cpuSeconds(pid) }));
  return () => {
    const seconds = (performance.now() - begun) / 1_000;
    const cpu = Object.fromEntries(before.map(({ name, pid, used }) => [name, cpuSeconds(pid) - used]));
    const parts = Object.entries(cpu).map(([name, used]) => `${name} ${used.toFixed(1)}`);
    return { seconds, cpu, text: `CPU seconds in ${seconds.toFixed(1)} s: ${parts.join(', ')}` };
  };
}
