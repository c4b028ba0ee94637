import type { SecureContext } from 'node:tls';
import { pollValue } from '../../../test/support/poll.ts';
import { runConcurrently } from '../support/agents.ts';
import { GATEWAY_NAME, type ScaleCluster } from './scale-cluster.ts';
import { RenewedToken } from './renewed-token.ts';
import { SimulatedPod } from './simulated-pod.ts';
import type { UserMessages } from './user-messages.ts';

const TOKEN_CONCURRENCY = 16;
const TIMEOUT_MS = 60_000;

/** A simulated pod per agent, evenly over the gateways. */
export class PodFleet implements AsyncDisposable {
  /** Errors of requests by text, with their number. */
  readonly errors = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>[] = [];
  /** Assignments that each agent has received. */
  readonly #assignments = new Map<string, number>();

  static async start(cluster: ScaleCluster, messages: UserMessages, secureContext: SecureContext): Promise<PodFleet> {
    const fleet = new PodFleet();
    const agents = cluster.boundAgents();
    const host = {
      secureContext,
      serverName: GATEWAY_NAME,
      ports: cluster.ports,
      signal: fleet.#stopping.signal,
      onAssignment: (agent: string) => void fleet.#assignments.set(agent, (fleet.#assignments.get(agent) ?? 0) + 1),
      onDelivery: (id: string) => messages.onDelivery(id),
      onAcked: (id: string) => messages.onAcked(id),
      onError: (error: string) => void fleet.errors.set(error, (fleet.errors.get(error) ?? 0) + 1),
    };
    await runConcurrently(agents.length, TOKEN_CONCURRENCY, async (index) => {
      const agent = agents[index];
      if (agent === undefined) return 0;
      const token = await RenewedToken.open(() => cluster.podToken(agent));
      const name = `${agent.namespace}/${agent.name}`;
      const pod = new SimulatedPod(host, { agent: name, token, address: agent.pod.address, gateway: index });
      fleet.#running.push(pod.run());
      return 0;
    });
    try {
      await fleet.waitForAssignments(agents.length, 1);
      return fleet;
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Waits until this many agents have received so many assignments. */
  async waitForAssignments(agents: number, each: number): Promise<void> {
    const progress = () => {
      const received = [...this.#assignments.values()].filter((count) => count >= each).length;
      return { received, errors: this.listErrors() };
    };
    await pollValue(`${agents} assignments`, progress, ({ received }) => received >= agents, { timeoutMs: TIMEOUT_MS });
  }

  /** The most frequent errors, for a note. */
  listErrors(): string {
    const all = [...this.errors].toSorted(([, one], [, other]) => other - one).slice(0, 5);
    return all.map(([error, count]) => `${count} × ${error}`).join('; ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }
}
