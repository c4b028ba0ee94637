import type { Sandbox } from '../../sandbox/port.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';

/** The sandbox that the agents of a process share, for one agent: its jobs wait with the rank of its priority. */
export function rankedSandbox(shared: Sandbox & SessionSandbox, rank: number): Sandbox & SessionSandbox {
  return {
    run: (job, host, op) => shared.run({ ...job, rank }, host, op),
    openSession: (options, op) => shared.openSession(options, op),
  };
}
