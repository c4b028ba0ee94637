import { cpuSeconds } from './processes.ts';

/** Processor seconds per process since the start of the measurement. */
export interface LoadReport {
  /** Wall-clock time. */
  readonly seconds: number;
  readonly cpu: Readonly<Record<string, number>>;
  /** The whole report as text. */
  readonly text: string;
}

/** Starts to measure the processor time of processes; call the result to get the report. All processes must run until then. */
export function measureLoad(pids: Readonly<Record<string, number>>): () => LoadReport {
  const start = performance.now();
  const before = Object.entries(pids).map(([name, pid]) => ({ name, pid, used: cpuSeconds(pid) }));
  return () => {
    const seconds = (performance.now() - start) / 1_000;
    const cpu = Object.fromEntries(before.map(({ name, pid, used }) => [name, cpuSeconds(pid) - used]));
    const parts = Object.entries(cpu).map(([name, used]) => `${name} ${used.toFixed(1)}`);
    return { seconds, cpu, text: `CPU seconds in ${seconds.toFixed(1)} s: ${parts.join(', ')}` };
  };
}
