import { setTimeout as sleep } from 'node:timers/promises';
import { pollValue } from '../../../test/support/poll.ts';
import type { BenchCluster } from './bench-cluster.ts';
import type { OperatorProcess } from './operator-process.ts';

const LOOK_MS = 500;
const TIMEOUT_MS = 120_000;

/** Replicas of the operator. One that ends starts again, as a kubelet starts it. */
export class OperatorReplicas implements AsyncDisposable {
  readonly #cluster: BenchCluster;
  readonly #running: OperatorProcess[];
  readonly #stopping = new AbortController();
  readonly #keeping: Promise<void>;
  #restarts = 0;

  private constructor(cluster: BenchCluster, running: OperatorProcess[]) {
    this.#cluster = cluster;
    this.#running = running;
    this.#keeping = this.#keep();
  }

  static async start(cluster: BenchCluster, count: number): Promise<OperatorReplicas> {
    const running: OperatorProcess[] = [];
    for (let replica = 0; replica < count; replica += 1) running.push(await cluster.startOperator());
    return new OperatorReplicas(cluster, running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#keeping;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** The replica that leads, once all replicas are ready. */
  leader(): Promise<OperatorProcess> {
    const find = async (): Promise<OperatorProcess | undefined> => {
      const ready = await Promise.all(this.#running.map((replica) => replica.isReady().catch(() => false)));
      const leads = await Promise.all(this.#running.map((replica) => replica.isLeading()));
      return ready.every(Boolean) ? this.#running[leads.indexOf(true)] : undefined;
    };
    return pollValue('a leader beside ready replicas', find, (leader) => leader !== undefined, {
      timeoutMs: TIMEOUT_MS,
    }) as Promise<OperatorProcess>;
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      for (const [index, replica] of this.#running.entries()) {
        if (!replica.hasEnded || signal.aborted) continue;
        this.#running[index] = await this.#cluster.startOperator();
        this.#restarts += 1;
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
