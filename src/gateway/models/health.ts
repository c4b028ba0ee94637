import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ProviderHealth } from '../../nats/model-health.ts';
import type { ModelLayer, ResolvedModel } from '../../models/pipeline.ts';
import type { ModelEvent } from '../../models/port.ts';

/** The state of model providers, derived from the calls of this gateway. */
export interface ModelHealth {
  /** One entry per provider of the configuration, in its order; a provider that was not called yet is Available. */
  list(): ProviderHealth[];
  /** Calls the listener with each change, and once a minute with an available provider. Returns the unsubscribe function. */
  changes(listener: (health: ProviderHealth) => void): () => void;
  /** Records that `model` answered in place of `failed`, as the fallback of the failed model's provider. */
  recordFallback(failed: ResolvedModel, model: ResolvedModel): void;
}

/** Errors that change the state at once, because later calls will fail too. */
const IMMEDIATE_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_UNAUTHORIZED',
  'TEMPER_MODEL_BILLING',
  'TEMPER_MODEL_UNAVAILABLE',
] satisfies ErrorCode[]);
/** Errors that change the state after several in a row. */
const TRANSIENT_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_TIMEOUT',
] satisfies ErrorCode[]);
const FAILURE_THRESHOLD = 3;
/** Interval for publishing an available provider again: a stopped gateway may have stored an outdated failure. */
const REPUBLISH_INTERVAL_MS = 60_000;
const MAX_MESSAGE_CHARACTERS = 400;

export class HealthRecorder implements ModelHealth {
  readonly #clock: Clock;
  readonly #names = new Map<string, readonly string[]>();
  readonly #states = new Map<string, ProviderHealth>();
  readonly #failures = new Map<string, number>();
  readonly #publishedAt = new Map<string, number>();
  readonly #listeners = new Set<(health: ProviderHealth) => void>();

  /** Only providers of the configuration are recorded, never names that agents invent. `aliases` maps names of manifests to providers. */
  constructor(clock: Clock, providers: readonly string[], aliases: Readonly<Record<string, string>> = {}) {
    this.#clock = clock;
    const since = clock.now().toISOString();
    for (const provider of providers) {
      const names = Object.keys(aliases).filter((name) => aliases[name] === provider);
      if (names.length > 0) this.#names.set(provider, names);
      this.#states.set(provider, this.#named({ provider, state: 'Available', since }));
    }
  }

  list(): ProviderHealth[] {
    return [...this.#states.values()];
  }

  changes(listener: (health: ProviderHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  recordFallback({ provider }: ResolvedModel, { id }: ResolvedModel): void {
    const known = this.#states.get(provider);
    const fallback = printable(id, 128);
    if (known === undefined || known.state === 'Available' || known.fallback === fallback) return;
    this.#set({ ...known, fallback });
  }

  succeeded(provider: string): void {
    this.#failures.delete(provider);
    const known = this.#states.get(provider);
    if (known === undefined) return;
    if (known.state !== 'Available') {
      this.#set({ provider, state: 'Available', since: this.#clock.now().toISOString() });
    } else if (this.#clock.monotonic() - (this.#publishedAt.get(provider) ?? -Infinity) >= REPUBLISH_INTERVAL_MS) {
      this.#set(known);
    }
  }

  failed(provider: string, error: TemperError): void {
    const known = this.#states.get(provider);
    if (known === undefined || !(IMMEDIATE_ERRORS.has(error.code) || TRANSIENT_ERRORS.has(error.code))) return;
    const failures = (this.#failures.get(provider) ?? 0) + 1;
    this.#failures.set(provider, failures);
    if (!IMMEDIATE_ERRORS.has(error.code) && failures < FAILURE_THRESHOLD) return;
    const state = error.code === 'TEMPER_MODEL_UNAUTHORIZED' ? 'Unauthorized' : 'Unavailable';
    if (known.state === state) return;
    const since = this.#clock.now().toISOString();
    const message = printable(error.message, MAX_MESSAGE_CHARACTERS);
    this.#set({ provider, state, code: error.code, message, since });
  }

  /** Updates the state of a provider from each call of its models. */
  readonly layer: ModelLayer = (inner) => ({
    stream: (request, op) => this.#observed(inner.stream(request, op), request.model.provider, op.signal),
    embed: (texts, op) => inner.embed(texts, op),
  });

  async *#observed(
    events: AsyncIterable<ModelEvent>,
    provider: string,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent> {
    try {
      for await (const event of events) {
        if (event.type === 'end') this.succeeded(provider);
        yield event;
      }
    } catch (error) {
      if (!signal.aborted && isTemperError(error)) this.failed(provider, error);
      throw error;
    }
  }

  #named(health: ProviderHealth): ProviderHealth {
    const names = this.#names.get(health.provider);
    return names === undefined ? health : { ...health, names };
  }

  #set(state: ProviderHealth): void {
    const health = this.#named(state);
    this.#states.set(health.provider, health);
    this.#publishedAt.set(health.provider, this.#clock.monotonic());
    for (const listener of this.#listeners) listener(health);
  }
}
