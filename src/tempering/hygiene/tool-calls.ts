import type { Digest } from '../../lib/canonical.ts';
import { MAX_TASK_TOOLS } from './tool-task.ts';

/** The calls of one forged tool that the agent itself made, not those that steps of other tools made. */
export interface ToolCalls {
  readonly digest: Digest;
  readonly calls: number;
  readonly failures: number;
}

/** The calls of one delivery of a message. */
export interface MessageToolCalls {
  readonly message: string;
  /** Epoch milliseconds. */
  readonly endedAt: number;
  readonly tools: readonly ToolCalls[];
}

/** Calls of one tool for one message that count. */
export const MAX_COUNTED_CALLS = 1_000;

/** Counts the calls of one message, of at most twenty tools. */
export class ToolCallCounter {
  readonly #counts = new Map<Digest, { calls: number; failures: number }>();

  add(digest: Digest, succeeded: boolean): void {
    const known = this.#counts.get(digest);
    if (known === undefined && this.#counts.size >= MAX_TASK_TOOLS) return;
    const { calls, failures } = known ?? { calls: 0, failures: 0 };
    if (calls >= MAX_COUNTED_CALLS) return;
    this.#counts.set(digest, { calls: calls + 1, failures: failures + (succeeded ? 0 : 1) });
  }

  counts(): ToolCalls[] {
    return [...this.#counts].map(([digest, count]) => ({ digest, ...count }));
  }

  clear(): void {
    this.#counts.clear();
  }
}
