import type { Clock } from '../../lib/clock.ts';
import type { Amounts, Ledger } from '../../ledger/port.ts';

const MINUTE = 60_000;
const NOTHING: Required<Amounts> = { inputTokens: 0, outputTokens: 0, costMicros: 0, toolCalls: 0, networkBytes: 0 };

/**
 * Tool calls in the current minute: the one quota the pod counts by itself, since most calls never leave it. Tokens and cost are
 * the gateway's, which refuses the call that would exceed them.
 */
export class MinuteLedger implements Ledger {
  readonly #clock: Clock;
  readonly #limit: number;
  #minute = 0;
  #calls = 0;

  /** No limit when absent. */
  constructor(clock: Clock, toolCallsPerMinute = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#limit = toolCallsPerMinute;
  }

  async reserve(maximum: Amounts): ReturnType<Ledger['reserve']> {
    const calls = maximum.toolCalls ?? 0;
    this.#roll();
    if (calls > 0 && this.#calls + calls > this.#limit) {
      const resumesAt = new Date((this.#minute + 1) * MINUTE).toISOString();
      const quota = 'spec.quotas.toolCallsPerMinute';
      return { granted: false, quota, limit: this.#limit, used: this.#calls, resumesAt };
    }
    this.#calls += calls;
    return { granted: true, id: 'minute' };
  }

  async settle(): Promise<void> {}

  async usage(): ReturnType<Ledger['usage']> {
    this.#roll();
    return { hour: NOTHING, day: NOTHING, month: NOTHING, minuteToolCalls: this.#calls };
  }

  #roll(): void {
    const minute = Math.floor(this.#clock.now().getTime() / MINUTE);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#calls = 0;
  }
}
