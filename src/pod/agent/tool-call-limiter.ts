import type { Clock } from '../../lib/clock.ts';
import type { Amounts, Ledger } from '../../ledger/port.ts';

const MINUTE_MS = 60_000;
const NO_USAGE: Required<Amounts> = { inputTokens: 0, outputTokens: 0, costMicros: 0, toolCalls: 0, networkBytes: 0 };

/**
 * Limits tool calls per minute, those of all messages of the pod together: the only quota counted in the pod, because most tool calls
 * never leave it. The gateway counts tokens and cost, and refuses a call that would exceed them.
 */
export class ToolCallLimiter {
  readonly #clock: Clock;
  #minute = 0;
  #calls = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Without `toolCallsPerMinute` there is no limit. */
  ledger(toolCallsPerMinute = Number.POSITIVE_INFINITY): Ledger {
    return {
      reserve: async (maximum) => this.#reserve(maximum, toolCallsPerMinute),
      commit: async () => undefined,
      usage: async () => ({ hour: NO_USAGE, day: NO_USAGE, month: NO_USAGE }),
    };
  }

  #reserve(maximum: Amounts, limit: number): Awaited<ReturnType<Ledger['reserve']>> {
    const calls = maximum.toolCalls ?? 0;
    this.#roll();
    if (calls > 0 && this.#calls + calls > limit) {
      const resumesAt = new Date((this.#minute + 1) * MINUTE_MS).toISOString();
      const quota = 'spec.quotas.toolCallsPerMinute';
      return { granted: false, quota, limit, used: this.#calls, resumesAt };
    }
    this.#calls += calls;
    return { granted: true, id: 'minute' };
  }

  #roll(): void {
    const minute = Math.floor(this.#clock.now().getTime() / MINUTE_MS);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#calls = 0;
  }
}
