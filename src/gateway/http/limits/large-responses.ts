import type { FastifyReply } from 'fastify';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { RequestContext } from '../request-context.ts';
import { callerOf } from './caller.ts';

export interface LargeResponseOptions {
  /** Requests of one caller in progress whose responses may be large. */
  requestsPerCaller?: number;
  /** A response of at least this size is large. */
  largeBytes?: number;
  /** Bytes of the large responses that are held at a time: of this process, and of all callers of one namespace. One is always held. */
  processBytes?: number;
  namespaceBytes?: number;
  /** A client that has not read its large response by then is disconnected. */
  timeoutMs?: number;
}

const MIB = 1_048_576;
/** The process has each response as a text and as bytes until its client has read it. The largest history has 16 MiB. */
const DEFAULTS: Required<LargeResponseOptions> = {
  requestsPerCaller: 2,
  largeBytes: MIB,
  processBytes: 32 * MIB,
  namespaceBytes: 16 * MIB,
  timeoutMs: 60_000,
};
const RETRY_MS = 1_000;

interface HeldResponse {
  namespace: string;
  bytes: number;
}

/**
 * Limits the large responses that this process holds until their clients have read them: each caller makes few at a time and holds one, and
 * the callers of a namespace never hold all.
 */
export class LargeResponses {
  readonly #clock: Clock;
  readonly #options: Required<LargeResponseOptions>;
  /** Requests in progress by caller. */
  readonly #requests = new Map<string, number>();
  /** Held responses by caller. */
  readonly #held = new Map<string, HeldResponse>();

  constructor(clock: Clock, options: LargeResponseOptions = {}) {
    this.#clock = clock;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Counts a request of a route with large responses until its response ends. Throws TEMPER_RATE_LIMITED. */
  acquire(context: RequestContext, { raw }: Pick<FastifyReply, 'raw'>): void {
    const caller = callerOf(context);
    if (caller === undefined) return;
    const { id, namespace } = caller;
    const count = this.#requests.get(id) ?? 0;
    if (count >= this.#options.requestsPerCaller) {
      throw new TemperError('TEMPER_RATE_LIMITED', 'too many concurrent requests with large responses', {
        retry: RETRY_MS,
      });
    }
    this.#requests.set(id, count + 1);
    raw.once('close', () => {
      const left = (this.#requests.get(id) ?? 1) - 1;
      if (left > 0) this.#requests.set(id, left);
      else this.#requests.delete(id);
    });
    context.holdResponse = (bytes) => this.#hold({ id, namespace }, bytes, raw);
  }

  /** Throws TEMPER_RATE_LIMITED when the caller or its namespace holds as many as it may, TEMPER_OVERLOADED when the process does. */
  #hold({ id, namespace }: { id: string; namespace: string }, bytes: number, raw: FastifyReply['raw']): void {
    const { largeBytes, processBytes, namespaceBytes, timeoutMs } = this.#options;
    // The event that gives the place back has happened.
    if (bytes < largeBytes || raw.closed) return;
    const held = [...this.#held.values()];
    const ofNamespace = held.filter((response) => response.namespace === namespace);
    if (this.#held.has(id) || !fits(bytes, ofNamespace, namespaceBytes)) {
      throw new TemperError(
        'TEMPER_RATE_LIMITED',
        'too many large responses are being read; read them, then try again',
        { retry: RETRY_MS },
      );
    }
    if (!fits(bytes, held, processBytes)) {
      throw new TemperError('TEMPER_OVERLOADED', 'the gateway holds as many large responses as it may; try again', {
        retry: RETRY_MS,
      });
    }
    this.#held.set(id, { namespace, bytes });
    const done = new AbortController();
    raw.once('close', () => {
      this.#held.delete(id);
      done.abort();
    });
    this.#clock.sleep(timeoutMs, done.signal).then(
      () => raw.destroy(),
      () => undefined,
    );
  }
}

function fits(bytes: number, held: readonly HeldResponse[], limit: number): boolean {
  return held.length === 0 || held.reduce((sum, response) => sum + response.bytes, bytes) <= limit;
}
