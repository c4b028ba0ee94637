import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import type { Op } from '../lib/operation.ts';
import type { Model } from './port.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export interface CircuitOptions {
  clock: Clock;
  /** Failed calls in a row that open the circuit. A spent account opens it at once. */
  failuresToOpen?: number;
  /** First and longest cool-down; it doubles every time the provider fails again. */
  coolDownMilliseconds?: readonly [first: number, longest: number];
  billingCoolDownMilliseconds?: readonly [first: number, longest: number];
  /** While the circuit is open one call is let through this often, to see. */
  probeMilliseconds?: number;
}

const DEFAULTS: Required<Omit<CircuitOptions, 'clock'>> = {
  failuresToOpen: 3,
  coolDownMilliseconds: [MINUTE, HOUR],
  billingCoolDownMilliseconds: [5 * HOUR, 24 * HOUR],
  probeMilliseconds: 30_000,
};

/** Failures that say something about the provider, and nothing about the request. */
const COUNTED: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_MODEL_BILLING',
] satisfies ErrorCode[]);

/**
 * Spares a provider that fails, and callers the wait for it: refuses calls at once while the provider cools down.
 *
 *     closed ──failures──▶ open ──every 30 s──▶ one probe ──success──▶ closed
 *                            ▲                      │
 *                            └──failure, doubled────┘     open ──cool-down over──▶ closed
 */
export function withCircuit(model: Model, provider: string, options: CircuitOptions): Model {
  const circuit = new Circuit(provider, { ...DEFAULTS, ...options });
  return {
    async *stream(request, op) {
      const call = circuit.admit();
      try {
        for await (const event of model.stream(request, op)) {
          if (event.type === 'end') call.succeeded();
          yield event;
        }
      } catch (error) {
        call.failed(error, op);
        throw error;
      } finally {
        call.over();
      }
    },
    async embed(texts, op) {
      const call = circuit.admit();
      try {
        const vectors = await model.embed(texts, op);
        call.succeeded();
        return vectors;
      } catch (error) {
        call.failed(error, op);
        throw error;
      } finally {
        call.over();
      }
    },
  };
}

interface AdmittedCall {
  succeeded(): void;
  failed(error: unknown, op: Op): void;
  /** Ends the call in every case; a reader may leave in the middle of an answer. */
  over(): void;
}

class Circuit {
  readonly #provider: string;
  readonly #settings: Required<CircuitOptions>;
  #failures = 0;
  /** How often it opened without a success in between. */
  #openings = 0;
  #openUntil = Number.NEGATIVE_INFINITY;
  #nextProbe = Number.NEGATIVE_INFINITY;
  #probing = false;

  constructor(provider: string, settings: Required<CircuitOptions>) {
    this.#provider = provider;
    this.#settings = settings;
  }

  admit(): AdmittedCall {
    const now = this.#settings.clock.monotonic();
    const open = now < this.#openUntil;
    if (open && (this.#probing || now < this.#nextProbe)) throw this.#refusal(now);
    if (open) this.#probing = true;
    return {
      succeeded: () => this.#close(),
      failed: (error, op) => {
        if (op.signal.aborted || !isTemperError(error) || !COUNTED.has(error.code)) return;
        this.#count(error, open);
      },
      over: () => {
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
    const { failuresToOpen, coolDownMilliseconds, billingCoolDownMilliseconds, probeMilliseconds, clock } =
      this.#settings;
    const now = clock.monotonic();
    // Calls that were under way when it opened end one after the other; they are the same bad hour.
    if (!probe && (now < this.#openUntil || (!billing && this.#failures < failuresToOpen))) return;
    const [first, longest] = billing ? billingCoolDownMilliseconds : coolDownMilliseconds;
    const asked = typeof error.retry === 'number' ? error.retry : 0;
    this.#openUntil = now + Math.min(longest, Math.max(asked, first * 2 ** this.#openings));
    this.#nextProbe = now + Math.max(probeMilliseconds, asked);
    this.#openings += 1;
    this.#failures = 0;
  }

  #refusal(now: number): TemperError {
    const wait = Math.ceil(Math.max(0, Math.min(this.#nextProbe, this.#openUntil) - now));
    return new TemperError(
      'TEMPER_MODEL_UNAVAILABLE',
      `the circuit of provider "${this.#provider}" is open after repeated failures; next probe in ${Math.ceil(wait / 1_000)} s`,
      { retry: wait, details: { provider: this.#provider } },
    );
  }
}
