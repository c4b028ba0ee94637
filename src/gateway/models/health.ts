import type { Clock } from '../../lib/clock.ts';
import { ERROR_CODES, type ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ProviderHealth } from '../../nats/model-health.ts';
import type { ModelLayer, PipelineOptions, ResolvedModel } from '../../models/pipeline.ts';
import type { ModelEvent } from '../../models/port.ts';
import { ActiveCallers } from '../../models/resilience/active-callers.ts';

/** The state of model providers, derived from the calls of this gateway. */
export interface ModelHealth {
  /** One entry per provider of the configuration, in its order; a provider that was not called yet is Available. */
  list(): ProviderHealth[];
  /** Calls the listener with each change, and once a minute with an available provider. Returns the unsubscribe function. */
  changes(listener: (health: ProviderHealth) => void): () => void;
  /** Records that `model` answered in place of `failed`, as the fallback of the failed model's provider. */
  recordFallback(failed: ResolvedModel, model: ResolvedModel): void;
}

/** Failures that open circuits. They change the state when the circuit of the provider is open, so not by the failures of one agent of several. */
const CIRCUIT_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_BILLING',
  'TEMPER_MODEL_UNAVAILABLE',
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_TIMEOUT',
] satisfies ErrorCode[]);
/** Their messages contain no text of a provider, which may repeat the request of an agent. */
const OWN_MESSAGES: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_UNAUTHORIZED',
  'TEMPER_MODEL_UNREACHABLE',
] satisfies ErrorCode[]);
/** Interval for publishing an available provider again: a stopped gateway may have stored an outdated failure. */
const REPUBLISH_INTERVAL_MS = 60_000;
const MAX_MESSAGE_CHARACTERS = 400;

export interface HealthSources {
  providers: readonly string[];
  /** From names of manifests to providers. */
  aliases?: Readonly<Record<string, string>>;
  /** Whether the circuit of the provider is open. */
  isOpen: (provider: string) => boolean;
}

export class HealthRecorder implements ModelHealth {
  readonly #clock: Clock;
  readonly #names = new Map<string, readonly string[]>();
  readonly #states = new Map<string, ProviderHealth>();
  readonly #refusals = new Map<string, RefusedCallers>();
  readonly #isOpen: (provider: string) => boolean;
  readonly #publishedAt = new Map<string, number>();
  readonly #listeners = new Set<(health: ProviderHealth) => void>();

  /** Only providers of the configuration are recorded, never names that agents invent. */
  constructor(clock: Clock, { providers, aliases = {}, isOpen }: HealthSources) {
    this.#clock = clock;
    this.#isOpen = isOpen;
    const since = clock.now().toISOString();
    for (const provider of providers) {
      const names = Object.keys(aliases).filter((name) => aliases[name] === provider);
      if (names.length > 0) this.#names.set(provider, names);
      this.#refusals.set(provider, new RefusedCallers());
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

  succeeded(provider: string, caller = ''): void {
    this.#refusals.get(provider)?.accepted(caller, this.#clock.monotonic());
    const known = this.#states.get(provider);
    if (known === undefined) return;
    if (known.state !== 'Available') {
      this.#set({ provider, state: 'Available', since: this.#clock.now().toISOString() });
    } else if (this.#clock.monotonic() - (this.#publishedAt.get(provider) ?? -Infinity) >= REPUBLISH_INTERVAL_MS) {
      this.#set(known);
    }
  }

  failed(provider: string, error: TemperError, caller = ''): void {
    const known = this.#states.get(provider);
    if (known === undefined || !this.#isOfProvider(provider, error, caller)) return;
    const state = error.code === 'TEMPER_MODEL_UNAUTHORIZED' ? 'Unauthorized' : 'Unavailable';
    if (known.state === state) return;
    const since = this.#clock.now().toISOString();
    this.#set({ provider, state, code: error.code, message: publicMessage(provider, error), since });
  }

  /** Whether a failure concerns the provider, and not this caller only. */
  #isOfProvider(provider: string, { code, details }: TemperError, caller: string): boolean {
    if (code !== 'TEMPER_MODEL_UNAUTHORIZED') return CIRCUIT_ERRORS.has(code) && this.#isOpen(provider);
    const { status } = details;
    // A missing key or 401 concerns the key. Other refusals, such as 403, can concern the request: filters refuse texts with it.
    if (status === undefined || status === 401) return true;
    return this.#refusals.get(provider)?.refused(caller, this.#clock.monotonic()) ?? false;
  }

  /** Updates the state of a provider from each call of its models. */
  readonly layer: ModelLayer = (inner) => ({
    stream: (request, op) => this.#observed(inner.stream(request, op), request.model.provider, op),
    embed: (texts, op) => inner.embed(texts, op),
  });

  async *#observed(
    events: AsyncIterable<ModelEvent>,
    provider: string,
    { signal, caller }: PipelineOptions,
  ): AsyncGenerator<ModelEvent> {
    try {
      for await (const event of events) {
        if (event.type === 'end') this.succeeded(provider, caller?.id);
        yield event;
      }
    } catch (error) {
      if (!signal.aborted && isTemperError(error)) this.failed(provider, error, caller?.id);
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

/** The callers that a provider refused since its last success. */
class RefusedCallers {
  readonly #active = new ActiveCallers();
  readonly #refused = new Set<string>();

  accepted(caller: string, now: number): void {
    this.#active.seen(caller, now);
    this.#refused.clear();
  }

  /** Records a refusal. True when enough callers were refused. */
  refused(caller: string, now: number): boolean {
    this.#active.seen(caller, now);
    const needed = this.#active.needed(now);
    if (this.#refused.size < needed) this.#refused.add(caller);
    return this.#refused.size >= needed;
  }
}

/** Every agent of the provider sees this message in its status. */
function publicMessage(provider: string, { code, message, details }: TemperError): string {
  if (OWN_MESSAGES.has(code)) return printable(message, MAX_MESSAGE_CHARACTERS);
  const status = typeof details['status'] === 'number' ? ` (status ${details['status']})` : '';
  return `provider "${provider}"${status}: ${ERROR_CODES[code].meaning}`;
}
