import { Agent } from 'node:https';
import { createSecureContext, type SecureContext } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { ASSIGNMENT_VERSION_HEADER, POD_API_PATHS } from '../../../../src/gateway-api/pod-api.ts';
import { POLL_SECONDS } from '../../../../src/gateway-client/assignment.ts';
import { callGateway, type HttpAnswer } from '../http-client.ts';
import type { RenewedToken } from '../renewed-token.ts';

/** As in a pod: the pause after a failed request, which doubles. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 10_000;
const TIMEOUT_MS = 20_000;
/** The delivery has ended: answered by an earlier attempt, or delivered again. */
const DELIVERY_ENDED: ReadonlySet<number> = new Set([404, 409, 410]);

/** What the pods of a run share, and what they report. */
export interface PodHost {
  /** The certificates of the CA of the gateways. */
  readonly secureContext: SecureContext;
  readonly serverName: string;
  /** The ports of the gateways. */
  readonly ports: readonly number[];
  readonly onAssignment: (agent: string) => void;
  readonly onDelivery: (message: string) => void;
  /** The gateway confirmed the acknowledgement. */
  readonly onAcked: (message: string) => void;
  readonly onError: (error: string) => void;
}

export interface SimulatedPodSpec {
  /** `namespace/name` of the agent. */
  readonly agent: string;
  readonly token: RenewedToken;
  /** The address of the pod, to which its connections are bound. */
  readonly address: string;
  /** The first gateway that the pod uses. */
  readonly gateway: number;
}

export function trustedAuthority(ca: string): SecureContext {
  return createSecureContext({ ca, minVersion: 'TLSv1.3' });
}

/** A client that speaks the protocol of an agent pod: it polls for its messages and its assignment, and answers each message at once. */
export class SimulatedPod {
  readonly #host: PodHost;
  readonly #spec: SimulatedPodSpec;
  readonly #agent: Agent;
  /** Of this pod alone: with a signal of all pods, each request would search the listeners of all requests. */
  readonly #stopping = new AbortController();
  #gateway: number;
  /** Of the assignment. */
  #version: string | undefined;

  constructor(host: PodHost, spec: SimulatedPodSpec) {
    this.#host = host;
    this.#spec = spec;
    this.#gateway = spec.gateway;
    const { secureContext, serverName: servername } = host;
    const options = { keepAlive: true, secureContext, servername, localAddress: spec.address };
    this.#agent = new Agent(options);
  }

  /** Works until `stop`. */
  async run(): Promise<void> {
    await this.#requestAssignment();
    await this.#pollMessages();
    this.#agent.destroy();
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** As a pod that has just started. */
  async #requestAssignment(): Promise<void> {
    for (let failures = 1; !this.#stopping.signal.aborted; failures += 1) {
      const answer = await this.#attempt('GET', `${POD_API_PATHS.assignment}?wait=0`);
      if (answer?.status === 200) return this.#receive(answer.body);
      await this.#pause(failures);
    }
  }

  async #pollMessages(): Promise<void> {
    let restarted = true;
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      const body = { waitSeconds: POLL_SECONDS, ...(restarted ? { restarted } : {}) };
      const answer = await this.#attempt('POST', POD_API_PATHS.nextMessage, body);
      if (answer === undefined || answer.status >= 300) {
        failures += 1;
        await this.#pause(failures);
        continue;
      }
      failures = 0;
      restarted = false;
      const { message, assignment } = answer.body;
      if (message !== undefined) await this.#answer(answer.body);
      else if (assignment !== undefined) this.#receive(assignment as HttpAnswer['body']);
    }
  }

  #receive(assignment: HttpAnswer['body']): void {
    this.#version = String(assignment['version']);
    this.#host.onAssignment(this.#spec.agent);
  }

  async #answer({ message, deliveryToken }: HttpAnswer['body']): Promise<void> {
    const { id } = message as { id: string };
    this.#host.onDelivery(id);
    const body = { deliveryToken, action: 'ack', reply: 'Done.', finishReason: 'complete' };
    for (let failures = 0; !this.#stopping.signal.aborted; failures += 1) {
      const answer = await this.#attempt('POST', POD_API_PATHS.deliveries, body);
      if (answer?.status === 204) this.#host.onAcked(id);
      if (answer !== undefined && (answer.status === 204 || DELIVERY_ENDED.has(answer.status))) return;
      await this.#pause(failures + 1);
    }
  }

  /** Undefined when the gateway did not answer; the next request then goes to another gateway, as behind a Service. */
  async #attempt(method: 'GET' | 'POST', path: string, body?: object): Promise<HttpAnswer | undefined> {
    const { ports, onError } = this.#host;
    const { signal } = this.#stopping;
    const port = ports[this.#gateway % ports.length] ?? 0;
    const headers = {
      authorization: `Bearer ${await this.#spec.token.current()}`,
      ...(this.#version === undefined ? {} : { [ASSIGNMENT_VERSION_HEADER]: this.#version }),
    };
    const timeoutMs = POLL_SECONDS * 1_000 + TIMEOUT_MS;
    const call = { agent: this.#agent, port, method, path, headers, timeoutMs, signal };
    try {
      const answer = await callGateway({ ...call, ...(body === undefined ? {} : { body }) });
      if (answer.status >= 300) onError(`${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`);
      return answer;
    } catch (error) {
      if (!signal.aborted) onError((error as NodeJS.ErrnoException).code ?? String(error));
      this.#gateway += 1;
      return undefined;
    }
  }

  async #pause(failures: number): Promise<void> {
    const most = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.max(0, failures - 1));
    await sleep(most * (1 - Math.random() / 2), undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}
