import type { Clock } from '../../lib/clock.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';

type StartPath = 'cold' | 'warm' | 'wake';

/** Measures how long agents without a pod take to become Ready. In memory: a start that began before this process is not measured. */
export class StartTimes {
  readonly #clock: Clock;
  readonly #metrics: OperatorMetrics | undefined;
  /** By UID of the agent. */
  readonly #starts = new Map<string, { readonly at: number; readonly path: StartPath }>();

  constructor(clock: Clock, metrics: OperatorMetrics | undefined) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** Call when the agent is created, when a message wakes it, and before its first pod is created. The earliest call counts. */
  begin(agentUid: string, path: StartPath): void {
    if (!this.#starts.has(agentUid)) this.#starts.set(agentUid, { at: this.#clock.monotonic(), path });
  }

  /** Call when the agent got a warm pod. An agent that a message wakes stays one. */
  claimed(agentUid: string): void {
    const start = this.#starts.get(agentUid);
    if (start?.path === 'cold') this.#starts.set(agentUid, { ...start, path: 'warm' });
  }

  /** Call when the agent is running. Records nothing without a start. */
  ready(agentUid: string): void {
    const start = this.#starts.get(agentUid);
    if (start === undefined) return;
    const seconds = (this.#clock.monotonic() - start.at) / 1_000;
    this.#metrics?.observe('temper_agent_ready_seconds', { path: start.path }, seconds);
    this.#starts.delete(agentUid);
  }

  /** Call when the agent needs no pod any more. */
  cancel(agentUid: string): void {
    this.#starts.delete(agentUid);
  }
}
