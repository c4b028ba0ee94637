import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { ModelLayer, PipelineOptions } from '../pipeline.ts';
import { ActiveCallers } from './active-callers.ts';
import { CallerCircuit, type CircuitSettings } from './caller-circuit.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface CircuitBreakerOptions extends Partial<CircuitSettings> {
  clock: Clock;
}

const DEFAULTS: CircuitSettings = {
  failuresToOpen: 3,
  coolDownMs: [MINUTE_MS, HOUR_MS],
  billingCoolDownMs: [5 * HOUR_MS, 24 * HOUR_MS],
  probeIntervalMs: 30_000,
};

/** Circuits of more callers are not kept; the oldest one is dropped. */
const MAX_CALLERS = 1_000;

/** Failures that may be the provider's, and not errors of the request. */
const COUNTED_CODES: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_MODEL_BILLING',
] satisfies ErrorCode[]);

export interface CircuitState {
  provider: string;
  /** The provider fails for all its callers of the last hour, or for three. */
  isOpen: boolean;
  /** Callers whose own circuit is open. */
  openCallers: number;
}

/** The circuit of a caller, and the number of successes of any caller before it opened. */
interface OpenedCircuit {
  circuit: CallerCircuit;
  openedAfter: number;
}

interface AdmittedCall {
  succeeded(): void;
  failed(error: unknown, op: PipelineOptions): void;
  /** Must be called at the end of every call, also when the consumer stops reading in the middle of an answer. */
  release(): void;
}

/**
 * Circuit breaker: rejects calls at once while a provider fails for their caller, so that the caller does not wait for it.
 *
 * Each caller has its own circuit, and only its own failures open it: a request can be made to time out, to exceed a rate limit, or to be
 * refused with any status. The circuit of the provider is open while enough callers fail and none succeeds; see `ActiveCallers`. It stops no
 * caller that has not failed, since only a call can show whether the provider works; it lets one failure instead of three open the circuit of a
 * caller. The first success of any caller closes all circuits of the outage.
 */
export class CircuitBreaker {
  readonly #provider: string;
  readonly #clock: Clock;
  readonly #settings: CircuitSettings;
  /** Of callers that failed since their last success, the oldest failure first. */
  readonly #circuits = new Map<string, OpenedCircuit>();
  readonly #active = new ActiveCallers();
  #successes = 0;
  /** Enough callers failed since the last success of any caller. */
  #isOutage = false;

  constructor(provider: string, { clock, ...settings }: CircuitBreakerOptions) {
    this.#provider = provider;
    this.#clock = clock;
    this.#settings = { ...DEFAULTS, ...settings };
  }

  get state(): CircuitState {
    const now = this.#clock.monotonic();
    const open = [...this.#circuits.values()].filter(({ circuit }) => circuit.isOpen(now));
    return { provider: this.#provider, isOpen: this.#isOutage && open.length > 0, openCallers: open.length };
  }

  readonly layer: ModelLayer = (inner) => {
    // A function: the generator below has another `this`.
    const admit = (op: PipelineOptions) => this.#admit(op);
    return {
      async *stream(request, op) {
        const call = admit(op);
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
        const call = admit(op);
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
    };
  };

  #admit({ caller }: PipelineOptions): AdmittedCall {
    const now = this.#clock.monotonic();
    const id = caller?.id ?? '';
    this.#active.seen(id, now);
    const own = this.#circuits.get(id)?.circuit;
    const admission = own?.admit(now) ?? 'call';
    if (admission === 'refused' && own !== undefined) throw this.#openError(own.waitMs(now), caller !== undefined);
    return {
      succeeded: () => this.#succeeded(id),
      failed: (error, op) => {
        if (op.signal.aborted || !isTemperError(error) || !COUNTED_CODES.has(error.code)) return;
        this.#failed(id, error, admission === 'probe');
      },
      release: () => {
        if (admission === 'probe') own?.releaseProbe();
      },
    };
  }

  #succeeded(id: string): void {
    if (this.#isOutage) this.#circuits.clear();
    this.#circuits.delete(id);
    this.#isOutage = false;
    this.#successes += 1;
  }

  #failed(id: string, error: TemperError, isProbe: boolean): void {
    // An outage whose cool-downs have all ended is over until calls fail again.
    this.#isOutage = this.state.isOpen;
    const failuresToOpen = this.#isOutage ? 1 : this.#settings.failuresToOpen;
    const found = this.#circuits.get(id) ?? this.#addCaller(id);
    const now = this.#clock.monotonic();
    if (!found.circuit.failed(error, now, { isProbe, failuresToOpen })) return;
    found.openedAfter = this.#successes;
    const failing = [...this.#circuits.values()].filter(
      ({ circuit, openedAfter }) => openedAfter === this.#successes && circuit.isOpen(now),
    );
    this.#isOutage ||= failing.length >= this.#active.needed(now);
  }

  #addCaller(id: string): OpenedCircuit {
    const [oldest] = this.#circuits.keys();
    if (this.#circuits.size >= MAX_CALLERS && oldest !== undefined) this.#circuits.delete(oldest);
    const added = { circuit: new CallerCircuit(this.#settings), openedAfter: this.#successes };
    this.#circuits.set(id, added);
    return added;
  }

  #openError(waitMs: number, hasCaller: boolean): TemperError {
    const whose = hasCaller ? 'for this agent ' : '';
    return new TemperError(
      'TEMPER_MODEL_UNAVAILABLE',
      `the circuit of provider "${this.#provider}" is open ${whose}after repeated failures; next probe in ${Math.ceil(waitMs / 1_000)} s`,
      { retry: waitMs, details: { provider: this.#provider } },
    );
  }
}
