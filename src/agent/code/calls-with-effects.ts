import type { ErrorCode } from '../../lib/error-codes.ts';
import type { SessionAnswer } from '../../sandbox/session-port.ts';

/** Calls that failed with another error are left out. */
interface MadeCall {
  readonly tool: string;
  readonly outcome: 'succeeded' | 'unknown';
}

/** Errors after which it is unknown whether the call had its effect. */
const UNKNOWN: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_CANCELLED',
  'TEMPER_SANDBOX_CRASHED',
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_TIMEOUT',
  'TEMPER_TOOL_OUTCOME_UNKNOWN',
  'TEMPER_TOOL_TIMEOUT',
]);
const MAX_NAMED = 10;

/** The calls with effects of one run of code. When the run fails, they are all that the model learns about them. */
export class CallsWithEffects {
  readonly #calls = new Map<number, MadeCall>();

  started(call: number, tool: string): void {
    this.#calls.set(call, { tool, outcome: 'unknown' });
  }

  ended(call: number, tool: string, answer: SessionAnswer): void {
    if (answer.ok) this.#calls.set(call, { tool, outcome: 'succeeded' });
    else if (UNKNOWN.has(answer.code)) this.started(call, tool);
    else this.#calls.delete(call);
  }

  /** What the model has to know before it calls the tools again; undefined without such calls. */
  describe(): string | undefined {
    const parts = [
      this.#named('succeeded', 'These calls succeeded'),
      this.#named('unknown', 'These calls did not end, and may have had their effects'),
    ].filter((part) => part !== undefined);
    return parts.length === 0 ? undefined : `${parts.join(' ')} Check before you call them again.`;
  }

  #named(outcome: MadeCall['outcome'], words: string): string | undefined {
    const counts = new Map<string, number>();
    for (const call of this.#calls.values())
      if (call.outcome === outcome) counts.set(call.tool, (counts.get(call.tool) ?? 0) + 1);
    if (counts.size === 0) return undefined;
    const names = [...counts].map(([tool, count]) => (count === 1 ? tool : `${tool} (${count} times)`));
    const others = names.length > MAX_NAMED ? [`and ${names.length - MAX_NAMED} other tools`] : [];
    return `${words}: ${[...names.slice(0, MAX_NAMED), ...others].join(', ')}.`;
  }
}
