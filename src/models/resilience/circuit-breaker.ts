import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelLayer } from '../pipeline.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface CircuitBreakerOptions {
  clock: Clock;
  /** Consecutive failed calls that open the circuit. A billing error opens it at once. */
  failuresToOpen?: number;
  /** Initial and maximum cool-down; it doubles each time the provider fails again. */
  coolDownMs?: readonly [first: number, longest: number];
  billingCoolDownMs?: readonly [first: number, longest: number];
  /** Interval of probes: while the circuit is open, one call per interval is sent to the provider. */
  probeIntervalMs?: number;
}

const DEFAULTS: Required<Omit<CircuitBreakerOptions, 'clock'>> = {
  failuresToOpen: 3,
  coolDownMs: [MINUTE_MS, HOUR_MS],
  billingCoolDownMs: [5 * HOUR_MS, 24 * HOUR_MS],
  probeIntervalMs: 30_000,
};

/** Failures caused by the provider, not by the request. */
const COUNTED_CODES: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_MODEL_BILLING',
] satisfies ErrorCode[]);

/**
 * Circuit breaker: rejects calls at once while a failing provider cools down, so that callers do not wait for it.
 *
 *     closed ──failures──▶ open ──every 30 s──▶ one probe ──success──▶ closed
 *                            ▲                      │
 *                            └──failure, doubled────┘     open ──cool-down ended──▶ closed
 */
export function circuitBreaker(provider: string, options: CircuitBreakerOptions): ModelLayer {
  const circuit = new Circuit(provider, { ...DEFAULTS, ...options });
  return (inner) => ({
    async *stream(request, op) {
      const call = circuit.admit();
      try {
        for await (const event of inner.stream(request, op)) {
          if (event.type === 'end') call.succeeded();
          yield event;
        }
      } catch (error) {
        call.failed(error, op);
        throw error;
      } finally {
        call.release();
      }
    },
    async embed(texts, op) {
      const call = circuit.admit();
      try {
        const vectors = await inner.embed(texts, op);
        call.succeeded();
        return vectors;
      } catch (error) {
        call.failed(error, op);
        throw error;
      } finally {
        call.release();
      }
    },
  });
}

interface AdmittedCall {
  succeeded(): void;
  failed(error: unknown, op: CallOptions): void;
  /** Must be called at the end of every call, also when the consumer stops reading in the middle of an answer. */
  release(): void;
}

class Circuit {
  readonly #provider: string;
  readonly #settings: Required<CircuitBreakerOptions>;
  #failures = 0;
  /** How often the circuit opened since the last success. */
  #openings = 0;
  #openUntil = Number.NEGATIVE_INFINITY;
  #nextProbe = Number.NEGATIVE_INFINITY;
  #probing = false;

  constructor(provider: string, settings: Required<CircuitBreakerOptions>) {
    this.#provider = provider;
    this.#settings = settings;
  }

  admit(): AdmittedCall {
    const now = this.#settings.clock.monotonic();
    const open = now < this.#openUntil;
    if (open && (this.#probing || now < this.#nextProbe)) throw this.#openError(now);
    if (open) this.#probing = true;
    return {
      succeeded: () => this.#close(),
      failed: (error, op) => {
        if (op.signal.aborted || !isTemperError(error) || !COUNTED_CODES.has(error.code)) return;
        this.#count(error, open);
      },
      release: () => {
        if (open) this.#probing = false;
      },
    };
  }

  #close(): void {
    this.#failures = 0;
    this.#openings = 0;
    this.#openUntil = Number.NEGATIVE_INFINITY;
  }

  #count(error: TemperError, probe: boolean): void {
    this.#failures += 1;
    const billing = error.code === 'TEMPER_MODEL_BILLING';
    const { failuresToOpen, coolDownMs, billingCoolDownMs, probeIntervalMs, clock } = this.#settings;
    const now = clock.monotonic();
    // Calls that were in flight when the circuit opened fail later; they belong to the same outage.
    if (!probe && (now < this.#openUntil || (!billing && this.#failures < failuresToOpen))) return;
    const [first, max] = billing ? billingCoolDownMs : coolDownMs;
    const requestedMs = typeof error.retry === 'number' ? error.retry : 0;
    this.#openUntil = now + Math.min(max, Math.max(requestedMs, first * 2 ** this.#openings));
    this.#nextProbe = now + Math.max(probeIntervalMs, requestedMs);
    this.#openings += 1;
    this.#failures = 0;
  }

  #openError(now: number): TemperError {
    const waitMs = Math.ceil(Math.max(0, Math.min(this.#nextProbe, this.#openUntil) - now));
    return new TemperError(
      'TEMPER_MODEL_UNAVAILABLE',
      `the circuit of provider "${this.#provider}" is open after repeated failures; next probe in ${Math.ceil(waitMs / 1_000)} s`,
      { retry: waitMs, details: { provider: this.#provider } },
    );
  }
}
