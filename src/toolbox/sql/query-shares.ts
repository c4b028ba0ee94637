import { onAbort } from '../../lib/async/abort.ts';
import { TemperError } from '../../lib/errors.ts';
import { queryFailed } from './errors.ts';

const MAX_WAITING_PER_AGENT = 8;
const RETRY_MS = 1_000;

interface Waiting {
  agent: string;
  start: () => void;
}

/**
 * The queries that one database answers at the same time. One agent has half of them, and its further queries wait; of those that wait, a query
 * of the namespace with the fewest running ones starts first. Agents are named `namespace/agent`.
 */
export class QueryShares {
  readonly #max: number;
  readonly #running: string[] = [];
  readonly #waiting: Waiting[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Holds a share until it is disposed. Throws TEMPER_RATE_LIMITED, and TEMPER_DATABASE_QUERY_FAILED when the signal aborts before. */
  async take(agent: string, signal: AbortSignal): Promise<Disposable> {
    if (this.#waiting.filter((other) => other.agent === agent).length >= MAX_WAITING_PER_AGENT) {
      const message = `${MAX_WAITING_PER_AGENT} queries of the agent wait for this database already; retry after one of them has ended`;
      throw new TemperError('TEMPER_RATE_LIMITED', message, { retry: RETRY_MS });
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { agent, start: resolve };
    this.#waiting.push(waiting);
    using _cancellation = onAbort(signal, () => {
      const index = this.#waiting.indexOf(waiting);
      if (index < 0) return;
      this.#waiting.splice(index, 1);
      reject(queryFailed('the database was busy until the call ended'));
    });
    this.#startNext();
    await promise;
    return {
      [Symbol.dispose]: () => {
        this.#running.splice(this.#running.indexOf(agent), 1);
        this.#startNext();
      },
    };
  }

  #startNext(): void {
    const ofAgent = Math.max(1, Math.floor(this.#max / 2));
    const runs = (isOwn: (agent: string) => boolean): number => this.#running.filter(isOwn).length;
    while (this.#running.length < this.#max) {
      const startable = this.#waiting.filter(({ agent }) => runs((other) => other === agent) < ofAgent);
      const fewest = startable.map((waiting) => ({
        waiting,
        running: runs((other) => namespaceOf(other) === namespaceOf(waiting.agent)),
      }));
      // A stable sort: queries of one namespace start in their order.
      const [next] = fewest.sort((one, other) => one.running - other.running);
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next.waiting), 1);
      this.#running.push(next.waiting.agent);
      next.waiting.start();
    }
  }
}

function namespaceOf(agent: string): string {
  return agent.split('/')[0] ?? agent;
}
