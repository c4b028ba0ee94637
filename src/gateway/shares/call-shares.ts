import { TemperError } from '../../lib/errors.ts';

export interface Shares {
  agent: number;
  namespace: number;
  all: number;
}

/** Calls at the same time at one replica. A call holds at most the bytes of one answer. */
export const SHARES: Shares = { agent: 4, namespace: 16, all: 64 };

interface CallShareOptions {
  /** The plural noun of what is shared, for error messages. */
  noun: string;
  /** After which a refused caller may try again. */
  retryMs: number;
}

/**
 * One agent, or a few namespaces, cannot take all calls that a gateway executes at the same time: a namespace has no more calls in work than
 * are still free, so however many namespaces take what they may, a place is left for the next one.
 */
export class CallShares {
  readonly #shares: Shares;
  readonly #options: CallShareOptions;
  readonly #agents = new Map<string, number>();
  readonly #namespaces = new Map<string, number>();
  #all = 0;

  constructor(shares: Shares = SHARES, options: CallShareOptions = { noun: 'calls', retryMs: 250 }) {
    this.#shares = shares;
    this.#options = options;
  }

  /** Holds a share until it is disposed. Throws TEMPER_RATE_LIMITED with the time after which to try again. */
  take({ agentUid, namespace }: { agentUid: string; namespace: string }): Disposable {
    const ofAgent = this.#agents.get(agentUid) ?? 0;
    const ofNamespace = this.#namespaces.get(namespace) ?? 0;
    const { agent, namespace: ofOne, all } = this.#shares;
    const { noun } = this.#options;
    if (ofAgent >= agent) throw this.#limited(`${agent} ${noun} of the agent are in work`);
    if (ofNamespace >= ofOne) throw this.#limited(`${ofOne} ${noun} of the namespace are in work`);
    const free = all - this.#all;
    if (ofNamespace >= free)
      throw this.#limited(`${this.#all} of ${all} ${noun} are in work, ${ofNamespace} of the namespace`);
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

  #limited(reason: string): TemperError {
    return new TemperError('TEMPER_RATE_LIMITED', `${reason} at this gateway`, { retry: this.#options.retryMs });
  }
}

function giveBack(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 1) - 1;
  if (left === 0) counts.delete(key);
  else counts.set(key, left);
}
