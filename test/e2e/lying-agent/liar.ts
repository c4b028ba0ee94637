import { DELIVERY_TOKEN_HEADER, POD_API_PATHS } from '../../../src/gateway-api/pod-api.ts';
import type { RemoteDelivery } from '../../../src/gateway-client/bus.ts';
import type { GatewayClient, GatewayRequest } from '../../../src/gateway-client/gateway-client.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { ulids as ids } from '../../../src/lib/ids.ts';
import type { Json } from '../../../src/lib/json.ts';
import { callOptions } from '../../support/call-options.ts';
import { type Carried, honestReport, LIES, LIES_OF_A_POD, type Report } from '../../support/promotion/lies.ts';
import { lyingCandidates, TOOL_OF_ORIGINS, toolOfLie, VERIFIED_LIES } from './lying-tools.ts';

/** What the gateway answered: `ok`, the status of an error, or the gate that refused a tool; by what the pod asked. */
export type Answers = Record<string, string>;

/** What another agent of the namespace has. */
export interface Neighbour {
  readonly agent: string;
  readonly session: string;
  readonly digest: string;
}

/** The text that the pod puts into the mouth of a neighbour. */
export const INVENTED = 'invented by a neighbour';
const REVIEW_TIMEOUT_MS = 60_000;
const ORIGINS = [1, 2, 3, 4, 5];

/** Claims in the place and with the token of an agent what did not happen. It runs no tool and asks no model. */
export class Liar {
  readonly #client: Pick<GatewayClient, 'call'>;
  readonly #agent: { name: string; namespace: string };
  readonly #digests = new Map<string, string>();
  #signature = '';
  /** Of the previous message. */
  #earlier: Report | undefined;

  constructor(client: Pick<GatewayClient, 'call'>, agent: { name: string; namespace: string }) {
    this.#client = client;
    this.#agent = agent;
  }

  signed(signature: string): void {
    this.#signature = signature;
  }

  /** Submits the tools with test results that it made up. */
  async prepare(delivery: RemoteDelivery): Promise<Answers> {
    const answers: Answers = {};
    for (const candidate of lyingCandidates()) {
      const { name } = candidate.artifact;
      this.#digests.set(name, candidate.digest);
      const body = { deliveryToken: delivery.token, candidate };
      answers[name] = await this.#post(POD_API_PATHS.forgeReview, body, reviewed);
    }
    this.#earlier = this.#report(LIES_OF_A_POD[0] ?? '', delivery, 0, await this.#search(delivery, 0));
    return answers;
  }

  /** Sends every false report about one use for the message of the delivery. */
  async lie(delivery: RemoteDelivery, value: number): Promise<Answers> {
    const answers: Answers = {};
    const carried = await this.#search(delivery, value);
    for (const [lie, change] of LIES) {
      if (!LIES_OF_A_POD.includes(lie)) continue;
      const honest = this.#report(lie, delivery, value, carried);
      const earlier = this.#earlier ?? honest;
      answers[lie] = await this.#send(change(honest, earlier, earlier));
    }
    this.#earlier = this.#report(LIES_OF_A_POD[0] ?? '', delivery, value, carried);
    for (const [tool, { use }] of Object.entries(VERIFIED_LIES)) {
      answers[tool] = await this.#send(this.#plainReport(tool, delivery, use(value)));
    }
    return answers;
  }

  /** Five uses in one message, each with another origin; then events and records of a promotion. */
  async invent(delivery: RemoteDelivery): Promise<Answers> {
    const { token: deliveryToken, message } = delivery;
    const uses = ORIGINS.flatMap((value) => {
      const use = { input: { value }, output: { result: value * 2 } };
      const report = this.#plainReport(TOOL_OF_ORIGINS, delivery, use);
      return report.uses.map((one) => ({ ...one, rootMessage: `invented-${value}` }));
    });
    const digest = this.#digests.get(TOOL_OF_ORIGINS);
    const stamp = { session: message.session, rootMessage: message.root, agent: this.#agent.name, time: message.time };
    const promoted = { tool: TOOL_OF_ORIGINS, digest, from: 'Session', to: 'Agent', state: 'Promoted', note: '' };
    const record = { action: 'tool.promoted', actor: 'system', evidence: 'observed', subject: digest, facts: {} };
    return {
      origins: await this.#send({ deliveryToken, uses }),
      events: await this.#send({ deliveryToken, events: [{ type: 'promotion', ...promoted, ...stamp }] }),
      audit: await this.#send({ deliveryToken, audit: [record] }),
    };
  }

  /** Claims about the session and the tool of a neighbour in its namespace, under its name. */
  async accuse(delivery: RemoteDelivery, { agent, session, digest }: Neighbour): Promise<Answers> {
    const { token: deliveryToken, message } = delivery;
    const items = [{ role: 'assistant', text: INVENTED, toolCalls: [] }];
    const failing = Array.from({ length: 20 }, (_, value) => ({
      ...this.#plainReport(TOOL_OF_ORIGINS, delivery, { input: { value }, output: { result: 0 } }).uses[0],
      agent,
      session,
      digest,
      succeeded: false,
    }));
    const stamp = { agent, session, rootMessage: message.root, time: message.time };
    const event = { type: 'message', text: INVENTED, delta: false, ...stamp };
    const record = {
      action: 'tool.demoted',
      actor: `agent/${agent}`,
      evidence: 'observed',
      subject: digest,
      facts: {},
    };
    const ofSession = `${POD_API_PATHS.sessions}/${session}`;
    const read = (path: string) => this.#request({ method: 'GET', path });
    return {
      history: String((await read(ofSession)).includes('"items":[]')),
      tools: String(!(await read(`${ofSession}/tools`)).includes(digest)),
      items: await this.#post(`${ofSession}/items`, { deliveryToken, afterSeq: 0, items, tainted: true }, () => 'ok'),
      uses: await this.#send({ deliveryToken, uses: failing }),
      calls: await this.#send({ deliveryToken, toolCalls: [{ digest, calls: 20, failures: 20 }] }),
      events: await this.#send({ deliveryToken, events: [event] }),
      audit: await this.#send({ deliveryToken, audit: [record] }),
      drop: await this.#post(POD_API_PATHS.forgeDrop, { deliveryToken, digest }, () => 'ok'),
      close: await this.#request({ method: 'DELETE', path: ofSession }),
    };
  }

  async #request({ method, path }: Pick<GatewayRequest, 'method' | 'path'>): Promise<string> {
    try {
      const answer = await this.#client.call({ method, path, op: { ...callOptions(), key: ids.next('lie') } });
      return answer === undefined ? 'ok' : JSON.stringify(answer);
    } catch (error) {
      return statusOf(error);
    }
  }

  async #search({ token }: RemoteDelivery, value: number): Promise<Carried> {
    const query = `topic ${value}`;
    const request = { method: 'GET', path: POD_API_PATHS.memory, query: { query, limit: '5' } } as const;
    await this.#client.call({ ...request, headers: { [DELIVERY_TOKEN_HEADER]: token }, op: callOptions() });
    const answer = { ok: true as const, value: { hits: [] } };
    return {
      signature: this.#signature,
      call: { name: 'memory_search', input: { query }, answer, evidence: 'reported' },
    };
  }

  #report(lie: string, delivery: RemoteDelivery, value: number, carried: Carried): Report {
    const use = { input: { topic: `topic ${value}` }, output: { hits: [] }, carried: [carried] };
    return this.#honest(toolOfLie(lie), delivery, use);
  }

  /** Of a tool whose output depends on its input alone. */
  #plainReport(tool: string, delivery: RemoteDelivery, use: { input: Json; output: Json }): Report {
    const report = this.#honest(tool, delivery, { ...use, carried: [] });
    const uses = report.uses.map(({ recording: _recording, ...one }) => one);
    return { deliveryToken: report.deliveryToken, uses: uses as unknown as Report['uses'] };
  }

  #honest(tool: string, { token, message }: RemoteDelivery, use: Parameters<typeof honestReport>[2]): Report {
    const { name: agent, namespace } = this.#agent;
    const digest = this.#digests.get(tool) ?? '';
    const delivery = { deliveryToken: token, rootMessage: message.root };
    return honestReport({ agent, namespace, session: message.session, digest }, delivery, use);
  }

  #send(report: object): Promise<string> {
    return this.#post(POD_API_PATHS.reports, report, () => 'ok');
  }

  async #post(path: string, body: object, read: (answer: Json | undefined) => string): Promise<string> {
    const op = { ...callOptions(REVIEW_TIMEOUT_MS), key: ids.next('lie') };
    const request: GatewayRequest = { method: 'POST', path, body, op, timeoutMs: REVIEW_TIMEOUT_MS };
    try {
      return read(await this.#client.call(request));
    } catch (error) {
      return statusOf(error);
    }
  }
}

function statusOf(error: unknown): string {
  if (!isTemperError(error)) throw error;
  const { status } = error.details;
  return typeof status === 'number' ? String(status) : error.code;
}

function reviewed(answer: Json | undefined): string {
  const { accepted, gate, message } = answer as { accepted?: boolean; gate?: string; message?: string };
  return accepted === true ? 'ok' : `${gate}: ${message}`;
}
