import assert from 'node:assert/strict';
import type { ErrorBody, PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import { pollValue } from '../poll.ts';
import type { GatewayFixture, GatewayReplica, HttpResponse } from './gateway-fixture.ts';

export const NEXT = '/v1/messages/next';
export const DELIVERIES = '/v1/deliveries';
export const AGENTS = '/v1/users/namespaces/team-a/agents';

export type RunningAgent = Awaited<ReturnType<GatewayFixture['createRunningAgent']>>;

export interface MessageSetup {
  readonly fixture: GatewayFixture;
  readonly one: GatewayReplica;
  readonly other: GatewayReplica;
  readonly userToken: string;
}

/** What users and pods send to two replicas about messages. Requests go to `one` unless a test names the other. */
export class MessageClient implements MessageSetup {
  readonly fixture: GatewayFixture;
  readonly one: GatewayReplica;
  readonly other: GatewayReplica;
  readonly userToken: string;
  #keys = 0;

  constructor({ fixture, one, other, userToken }: MessageSetup) {
    this.fixture = fixture;
    this.one = one;
    this.other = other;
    this.userToken = userToken;
  }

  /** Creates an agent with a bound pod and waits until both replicas have it in their index. */
  async createReadyAgent(name: string, spec: object = {}): Promise<RunningAgent> {
    const found = await this.fixture.createRunningAgent('team-a', name, spec);
    for (const gateway of [this.one, this.other]) {
      await pollValue(
        `the gateway to know agent ${name}`,
        async () => (await gateway.call('GET', '/v1/assignment', { token: found.token })).status,
        (value) => value === 200,
      );
    }
    return found;
  }

  sendMessage(agent: string, text: string, session?: string, gateway = this.one): Promise<HttpResponse> {
    this.#keys += 1;
    const body = { text, ...(session === undefined ? {} : { session }) };
    const { userToken } = this;
    return gateway.call('POST', `${AGENTS}/${agent}/messages`, { userToken, key: `key-${this.#keys}`, body });
  }

  async next({ token }: RunningAgent, gateway = this.one, waitSeconds = 20): Promise<PodDelivery> {
    return deliveryOf(await gateway.call('POST', NEXT, { token, body: { waitSeconds } }));
  }

  postDelivery({ token }: RunningAgent, answer: object, gateway = this.one): Promise<HttpResponse> {
    return gateway.call('POST', DELIVERIES, { token, body: answer });
  }

  async follow(agent: string, receipt: UserMessageReceipt, gateway = this.one): Promise<SessionStreamLine[]> {
    const path = `${AGENTS}/${agent}/sessions/${receipt.session}/events?follow=true&message=${receipt.id}`;
    const { text } = await gateway.call('GET', path, { userToken: this.userToken });
    return text.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as SessionStreamLine)));
  }
}

export function parsed({ text, status }: HttpResponse, expected = 200): unknown {
  assert.equal(status, expected, text);
  return text === '' ? undefined : JSON.parse(text);
}

export const receiptOf = (answer: HttpResponse) => parsed(answer) as UserMessageReceipt;
export const deliveryOf = (answer: HttpResponse) => parsed(answer) as PodDelivery;

export function assertError({ text, status }: HttpResponse, expected: number, code: string): void {
  const { error } = JSON.parse(text) as ErrorBody;
  assert.deepEqual([status, error.code], [expected, code], text);
}
