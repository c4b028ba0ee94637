import type { FastifyReply } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';

const DEFAULTS = { largeBytes: 1_024 * 1_024, perProcess: 4, timeoutMs: 60_000 };
const RETRY_MS = 1_000;

/** Limits the large histories that this process holds until their client has read them: one per agent, a few in all. */
export class HistoryResponses {
  readonly #clock: Clock;
  readonly #options: typeof DEFAULTS;
  readonly #agents = new Set<string>();

  constructor(clock: Clock, options: Partial<typeof DEFAULTS> = {}) {
    this.#clock = clock;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Throws TEMPER_OVERLOADED when too many are held. A client that does not read its history is disconnected. */
  hold(agentUid: string, bytes: number, { raw }: Pick<FastifyReply, 'raw'>): void {
    const { largeBytes, perProcess, timeoutMs } = this.#options;
    if (bytes < largeBytes) return;
    if (this.#agents.has(agentUid) || this.#agents.size >= perProcess) {
      throw new TemperError('TEMPER_OVERLOADED', 'too many large histories are being read; try again', {
        retry: RETRY_MS,
      });
    }
    this.#agents.add(agentUid);
    const done = new AbortController();
    raw.once('close', () => {
      this.#agents.delete(agentUid);
      done.abort();
    });
    this.#clock.sleep(timeoutMs, done.signal).then(
      () => raw.destroy(),
      () => undefined,
    );
  }
}
