import { printable } from '../../lib/printable.ts';
import type { ProviderHealth } from '../../nats/model-health.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { StoredAgent } from '../kube/types.ts';

/** Minimum duration of a state. Shorter states would end before all statuses are written. */
const STABLE_MS = 30_000;
const MAX_MESSAGE_LENGTH = 300;

/** The health of providers, debounced: a new state counts only after STABLE_MS. */
export class ProviderHealthTracker {
  readonly #states = new Map<string, ProviderHealth>();
  readonly #providers = new Map<string, string>();

  update(states: readonly ProviderHealth[], now: Date): void {
    for (const health of states) {
      const { provider, names = [] } = health;
      for (const name of names) this.#providers.set(name, provider);
      const known = this.#states.get(provider);
      const isChanged = (known?.state ?? 'Available') !== health.state;
      const age = now.getTime() - Date.parse(health.since);
      if (!isChanged && known !== undefined) continue;
      if (isChanged && !(age >= STABLE_MS)) continue;
      this.#states.set(provider, health);
    }
  }

  /** The failure of the provider of a model; undefined when no failure is known. */
  failureOf(model: string): ProviderHealth | undefined {
    const provider = this.#providers.get(model) ?? model.slice(0, Math.max(0, model.indexOf('/')));
    const health = this.#states.get(provider);
    return health?.state === 'Available' ? undefined : health;
  }
}

/** The ModelAvailable condition when the primary model of the agent fails; undefined when it works. Pure, apart from `providers`. */
export function modelFailure(
  { spec }: StoredAgent,
  providers: ProviderHealthTracker,
): ConditionUpdate<'ModelAvailable'> | undefined {
  const { primary, fallbacks = [] } = spec.model;
  const problem = providers.failureOf(primary);
  if (problem === undefined) return undefined;
  const what = describe(problem);
  const fallback = fallbacks.find((model) => providers.failureOf(model) === undefined);
  if (fallback !== undefined) {
    const message = `${what}; ${fallback} is used instead of ${primary}`;
    return { type: 'ModelAvailable', status: 'True', reason: 'FallbackInUse', message };
  }
  const isKey = problem.state === 'Unauthorized';
  const fix = isKey ? 'rotate the key' : 'retried with each message';
  const also = fallbacks.length === 0 ? '' : ', and the providers of all fallbacks fail too';
  const message = `${what}${also}; ${fix}`;
  return { type: 'ModelAvailable', status: 'False', reason: isKey ? 'ModelUnauthorized' : 'ModelUnavailable', message };
}

export function modelReady({ spec }: StoredAgent): ConditionUpdate<'ModelAvailable'> {
  return {
    type: 'ModelAvailable',
    status: 'True',
    reason: 'ModelReady',
    message: `${spec.model.primary} is available`,
  };
}

function describe({ provider, state, code, message, since }: ProviderHealth): string {
  const words = message === undefined ? '' : ` (${printable(message, MAX_MESSAGE_LENGTH)})`;
  const fails = state === 'Unauthorized' ? 'rejects the key' : 'fails';
  return `provider "${printable(provider, 64)}" ${fails} since ${printable(since.slice(0, 16), 16)}Z: ${code ?? state}${words}`;
}
