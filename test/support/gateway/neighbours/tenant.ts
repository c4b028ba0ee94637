import assert from 'node:assert/strict';
import type { PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import type { UserMessageReceipt } from '../../../../src/gateway-api/user-api.ts';
import { pollValue } from '../../poll.ts';
import type { GatewayFixture, HttpRequestOptions, HttpResponse } from '../gateway-fixture.ts';
import { ConnectionPool } from './connection-pool.ts';

export interface TenantOptions {
  fixture: GatewayFixture;
  port: number;
  namespace: string;
  name: string;
  /** The address of the pod; the gateway limits connections per address. */
  address: string;
  /** The address of the users of the namespace. */
  usersAddress: string;
  /** Members of the spec of the Agent. */
  spec?: object;
}

/** What the requests of a tenant need. */
export interface TenantIdentity
  extends Pick<TenantOptions, 'port' | 'namespace' | 'name' | 'address' | 'usersAddress'> {
  uid: string;
  token: string;
  userToken: string;
}

/** An agent with a pod that has a valid token, and the users of its namespace. */
export class Tenant implements Disposable {
  readonly identity: TenantIdentity;
  /** Connections of the pod. */
  readonly pod: ConnectionPool;
  /** Connections of the users. */
  readonly users: ConnectionPool;
  /** The bodies of the responses 503 that `patiently` got. */
  readonly unserved: string[] = [];

  private constructor(identity: TenantIdentity) {
    this.identity = identity;
    const { port, address, usersAddress } = identity;
    this.pod = new ConnectionPool({ port, address });
    this.users = new ConnectionPool({ port, address: usersAddress });
  }

  /** An existing tenant, in another thread. */
  static of(identity: TenantIdentity): Tenant {
    return new Tenant(identity);
  }

  get namespace(): string {
    return this.identity.namespace;
  }

  get name(): string {
    return this.identity.name;
  }

  get uid(): string {
    return this.identity.uid;
  }

  get token(): string {
    return this.identity.token;
  }

  get userToken(): string {
    return this.identity.userToken;
  }

  static async create(options: TenantOptions): Promise<Tenant> {
    const { fixture, port, namespace, name, address, usersAddress, spec = {} } = options;
    const uid = await fixture.createAgent(namespace, name, spec);
    const pod = await fixture.createPod(namespace, `${name}-1`, address);
    await fixture.bindPod(namespace, name, pod);
    const token = await fixture.createPodToken(namespace, pod);
    const userToken = await fixture.createUserToken(namespace);
    const tenant = new Tenant({ port, namespace, name, address, usersAddress, uid, token, userToken });
    await pollValue(
      `the gateway to know agent ${name}`,
      async () => (await tenant.call('GET', '/v1/assignment')).status,
      (status) => status === 200,
    );
    return tenant;
  }

  [Symbol.dispose](): void {
    this.pod[Symbol.dispose]();
    this.users[Symbol.dispose]();
  }

  /** A call of the pod. */
  call(method: string, path: string, options: HttpRequestOptions = {}): Promise<HttpResponse> {
    return this.pod.call(method, path, { token: this.token, ...options });
  }

  /** A call of a user, below the path of the namespace. */
  userCall(method: string, path: string, options: HttpRequestOptions = {}): Promise<HttpResponse> {
    return this.users.call(method, `/v1/users/namespaces/${this.namespace}${path}`, {
      userToken: this.userToken,
      ...options,
    });
  }

  /** A message of a user to the agent, received by its pod. */
  async deliver(session: string): Promise<PodDelivery> {
    const sent = await this.patiently(() => this.send(session));
    assert.equal(sent.status, 200, sent.text);
    const { id } = JSON.parse(sent.text) as UserMessageReceipt;
    const next = await pollValue(
      `the delivery of ${session}`,
      () => this.patiently(() => this.call('POST', '/v1/messages/next', { body: { waitSeconds: 20 } })),
      ({ status }) => status !== 204,
    );
    assert.equal(next.status, 200, next.text);
    const delivery = JSON.parse(next.text) as PodDelivery;
    assert.equal(delivery.message.id, id);
    return delivery;
  }

  /** Repeats a call while the gateway is too busy for it, as pods do, and keeps what the gateway says. A refusal is returned. */
  async patiently(call: () => Promise<HttpResponse>): Promise<HttpResponse> {
    for (;;) {
      const response = await call();
      if (response.status !== 503) return response;
      this.unserved.push(response.text);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Sends a message of a user to the agent. */
  send(session: string, key = `message-${session}`): Promise<HttpResponse> {
    return this.userCall('POST', `/agents/${this.name}/messages`, {
      key,
      body: { text: `work on ${session}`, session },
    });
  }
}
