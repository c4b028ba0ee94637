import { pollValue } from '../../../../test/support/poll.ts';
import { runConcurrently } from '../../support/agents.ts';
import { PodProcess } from './pod-process.ts';
import type { PodReport } from './protocol.ts';
import { type BoundAgent, GATEWAY_NAME, type ScaleCluster } from '../scale-cluster.ts';
import type { UserMessages } from '../user-messages.ts';

const TOKEN_CONCURRENCY = 16;
const PODS_PER_PROCESS = 2_500;
const TIMEOUT_MS = 60_000;
/** Two TLS handshakes and a first assignment, on the cores that the clients share with all servers. */
const TIMEOUT_PER_POD_MS = 30;

/** A simulated pod per agent, evenly over the gateways. */
export class PodFleet implements AsyncDisposable {
  /** Errors of requests by text, with their number. */
  readonly errors = new Map<string, number>();
  readonly #messages: UserMessages;
  readonly #processes: PodProcess[] = [];
  /** Assignments that each agent has received. */
  readonly #assignments = new Map<string, number>();

  private constructor(messages: UserMessages) {
    this.#messages = messages;
  }

  static async start(cluster: ScaleCluster, messages: UserMessages): Promise<PodFleet> {
    const fleet = new PodFleet(messages);
    const agents = new Map(cluster.boundAgents().map((agent) => [`${agent.namespace}/${agent.name}`, agent]));
    try {
      await fleet.#startPods(cluster, agents);
      await fleet.waitForAssignments(agents.size, 1);
      return fleet;
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #startPods(cluster: ScaleCluster, agents: ReadonlyMap<string, BoundAgent>): Promise<void> {
    const names = [...agents.keys()];
    const tokenOf = (name: string) => {
      const agent = agents.get(name);
      return agent === undefined ? Promise.reject(new Error(`there is no pod of ${name}`)) : cluster.podToken(agent);
    };
    const host = { authority: cluster.authority, serverName: GATEWAY_NAME, ports: cluster.ports };
    for (let first = 0; first < names.length; first += PODS_PER_PROCESS) {
      const listeners = { onReport: (report: PodReport) => this.#received(report), token: tokenOf };
      this.#processes.push(new PodProcess(host, listeners));
    }
    await runConcurrently(names.length, TOKEN_CONCURRENCY, async (index) => {
      const agent = names[index] ?? '';
      const address = agents.get(agent)?.pod.address ?? '';
      const process = this.#processes[Math.floor(index / PODS_PER_PROCESS)];
      process?.start({ agent, address, token: await tokenOf(agent), gateway: index });
      return 0;
    });
  }

  #received({ kind, text }: PodReport): void {
    if (kind === 'assignment') this.#assignments.set(text, (this.#assignments.get(text) ?? 0) + 1);
    else if (kind === 'delivery') this.#messages.onDelivery(text);
    else if (kind === 'acked') this.#messages.onAcked(text);
    else if (kind === 'error') this.errors.set(text, (this.errors.get(text) ?? 0) + 1);
  }

  /** Waits until this many agents have received so many assignments. */
  async waitForAssignments(agents: number, each: number): Promise<void> {
    const progress = () => {
      const received = [...this.#assignments.values()].filter((count) => count >= each).length;
      return { received, errors: this.listErrors() };
    };
    await pollValue(`${agents} assignments`, progress, ({ received }) => received >= agents, {
      timeoutMs: TIMEOUT_MS + agents * TIMEOUT_PER_POD_MS,
    });
  }

  /** The most frequent errors, for a note. */
  listErrors(): string {
    const all = [...this.errors].toSorted(([, one], [, other]) => other - one).slice(0, 5);
    return all.map(([error, count]) => `${count} × ${error}`).join('; ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process[Symbol.asyncDispose]()));
  }
}
