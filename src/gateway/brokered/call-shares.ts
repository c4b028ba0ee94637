import { TemperError } from '../../lib/errors.ts';

export interface Shares {
  agent: number;
  namespace: number;
  all: number;
}

/** Calls at the same time at one replica. A call holds at most the bytes of one answer. */
const SHARES: Shares = { agent: 4, namespace: 16, all: 64 };
const RETRY_MS = 250;

/**
 * One agent, or a few namespaces, cannot take all calls that a gateway executes at the same time: a namespace has no more calls in work than
 * are still free, so however many namespaces take what they may, a place is left for the next one.
 */
export class CallShares {
  readonly #shares: Shares;
  readonly #agents = new Map<string, number>();
  readonly #namespaces = new Map<string, number>();
  #all = 0;

  constructor(shares: Shares = SHARES) {
    this.#shares = shares;
  }

  /** Holds a share until it is disposed. Throws TEMPER_RATE_LIMITED with the time after which to try again. */
  take({ agentUid, namespace }: { agentUid: string; namespace: string }): Disposable {
    const ofAgent = this.#agents.get(agentUid) ?? 0;
    const ofNamespace = this.#namespaces.get(namespace) ?? 0;
    const { agent, namespace: ofOne, all } = this.#shares;
    if (ofAgent >= agent) throw limited(`${agent} calls of the agent are in work`);
    if (ofNamespace >= ofOne) throw limited(`${ofOne} calls of the namespace are in work`);
    const free = all - this.#all;
    if (ofNamespace >= free) throw limited(`${this.#all} of ${all} calls are in work, ${ofNamespace} of the namespace`);
    this.#agents.set(agentUid, ofAgent + 1);
    this.#namespaces.set(namespace, ofNamespace + 1);
    this.#all += 1;
    return {
      [Symbol.dispose]: () => {
        giveBack(this.#agents, agentUid);
        giveBack(this.#namespaces, namespace);
        this.#all -= 1;
      },
    };
  }
}

function limited(reason: string): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `${reason} at this gateway`, { retry: RETRY_MS });
}

function giveBack(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 1) - 1;
  if (left === 0) counts.delete(key);
  else counts.set(key, left);
}
