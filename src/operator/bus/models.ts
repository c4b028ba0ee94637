import { printable } from '../../lib/escape.ts';
import type { ProviderHealth } from '../../nats/model-health.ts';
import type { Finding } from '../conditions.ts';
import type { StoredAgent } from '../kube-types.ts';

/** A state that is younger may be gone before a thousand statuses are written. */
const HELD_FOR = 30_000;
const LONGEST_WORDS = 300;

/** How providers do, without what comes and goes: another state counts once it has lasted. */
export class Providers {
  readonly #states = new Map<string, ProviderHealth>();
  readonly #providers = new Map<string, string>();

  learn(states: readonly ProviderHealth[], now: Date): void {
    for (const health of states) {
      const { provider, names = [] } = health;
      for (const name of names) this.#providers.set(name, provider);
      const known = this.#states.get(provider);
      const isOther = (known?.state ?? 'Available') !== health.state;
      const age = now.getTime() - Date.parse(health.since);
      if (!isOther && known !== undefined) continue;
      if (isOther && !(age >= HELD_FOR)) continue;
      this.#states.set(provider, health);
    }
  }

  /** What is wrong with the provider of a model; nothing when nothing is known to be. */
  problemOf(model: string): ProviderHealth | undefined {
    const provider = this.#providers.get(model) ?? model.slice(0, Math.max(0, model.indexOf('/')));
    const health = this.#states.get(provider);
    return health?.state === 'Available' ? undefined : health;
  }
}

/** What is not well with the models of an agent. Pure but for what `providers` know. */
export function modelProblem(
  { spec }: StoredAgent,
  providers: Pick<Providers, 'problemOf'>,
): Finding<'ModelAvailable'> | undefined {
  const { primary, fallbacks = [] } = spec.model;
  const problem = providers.problemOf(primary);
  if (problem === undefined) return undefined;
  const what = wordsOf(problem);
  const standIn = fallbacks.find((model) => providers.problemOf(model) === undefined);
  if (standIn !== undefined) {
    const message = `${what}; ${standIn} stands in for ${primary}`;
    return { type: 'ModelAvailable', status: 'True', reason: 'FallbackInUse', message };
  }
  const isKey = problem.state === 'Unauthorized';
  const fix = isKey ? 'rotate its key' : 'it is asked again with each message';
  const also = fallbacks.length === 0 ? '' : ', and so do those of all fallbacks';
  const message = `${what}${also}; ${fix}`;
  return { type: 'ModelAvailable', status: 'False', reason: isKey ? 'ModelUnauthorized' : 'ModelUnavailable', message };
}

export function modelFine({ spec }: StoredAgent): Finding<'ModelAvailable'> {
  return { type: 'ModelAvailable', status: 'True', reason: 'ModelReady', message: `${spec.model.primary} answers` };
}

function wordsOf({ provider, state, code, message, since }: ProviderHealth): string {
  const words = message === undefined ? '' : ` (${printable(message, LONGEST_WORDS)})`;
  const fails = state === 'Unauthorized' ? 'refuses the key' : 'fails';
  return `provider "${printable(provider, 64)}" ${fails} since ${printable(since.slice(0, 16), 16)}Z: ${code ?? state}${words}`;
}
