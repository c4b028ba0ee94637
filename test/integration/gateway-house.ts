import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent as HttpsAgent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { NAMESPACE_OBJECTS } from '../../src/api/cluster.ts';
import { type GatewayConfig, gatewayConfig } from '../../src/gateway/config.ts';
import { runGateway } from '../../src/gateway/gateway.ts';
import { openNoParts, type OpenParts } from '../../src/gateway/parts.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';
import type { ApiObject } from '../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { startBus, type TestBus } from './nats-bus.ts';

const ROOT = new URL('../../', import.meta.url);
const TLS = new URL('test/fixtures/tls/', ROOT);
const PATIENCE_MS = 60_000;
const GROUP = '/apis/temper.dev/v1alpha1/namespaces';

/** Spend nobody keeps, so that reports have something to say. */
const HOUR = { window: 'hour', inputTokens: 40, outputTokens: 2, costMicros: 7, inFlightTokens: 0 } as const;
const openTestParts: OpenParts = async (context) => {
  const report = async () => ({ windows: [HOUR], limits: {} });
  return { ...(await openNoParts(context)), usage: { agent: report, policy: report } };
};

export interface HttpAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

export interface CallOptions {
  token?: string;
  /** In the header people use. */
  person?: string;
  key?: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** The address the call comes from. */
  from?: string;
  signal?: AbortSignal;
}

/** One replica of the gateway in this process. */
export interface Replica {
  port: number;
  healthPort: number;
  /** Resolves when the drain is over. */
  stop(): Promise<void>;
  call(method: string, path: string, options?: CallOptions): Promise<HttpAnswer>;
}

/** An API server, a bus, and what an installation puts into them; gateways are started on top. */
export class GatewayHouse implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly bus: TestBus;
  readonly folder: string;
  readonly lines: string[] = [];
  readonly #replicas: Replica[] = [];

  private constructor(plane: ControlPlane, bus: TestBus, folder: string) {
    this.plane = plane;
    this.bus = bus;
    this.folder = folder;
  }

  static async open(namespaces: readonly string[]): Promise<GatewayHouse> {
    const [plane, bus] = await Promise.all([startControlPlane({ controllerManager: true }), startBus()]);
    const house = new GatewayHouse(plane, bus, await mkdtemp(join(tmpdir(), 'temper-gateway-')));
    try {
      await house.#prepare(namespaces);
    } catch (error) {
      await house[Symbol.asyncDispose]();
      throw error;
    }
    return house;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.stop()));
    await Promise.all([this.plane[Symbol.asyncDispose](), this.bus[Symbol.asyncDispose]()]);
    await rm(this.folder, { recursive: true, force: true });
  }

  async #prepare(namespaces: readonly string[]): Promise<void> {
    await writeFile(join(this.folder, 'lease.key'), randomBytes(32));
    const crds = new URL('crds/', ROOT);
    for (const file of await readdir(crds)) {
      const crd = parse(await readFile(new URL(file, crds), 'utf8')) as object;
      await this.made('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
    }
    for (const name of namespaces) {
      await this.made('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      for (const account of [NAMESPACE_OBJECTS.agentServiceAccount, NAMESPACE_OBJECTS.peopleServiceAccount, 'other']) {
        const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account } };
        await this.made(`/api/v1/namespaces/${name}/serviceaccounts`, object);
      }
      await this.policy(name, 'standard', {});
    }
  }

  /** POSTs, again while the API server does not serve the kind yet. */
  async made(path: string, body: object): Promise<ApiObject> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await this.plane.admin.call('POST', path, { body });
      if (answer.status === 201) return answer.body;
      if (performance.now() > deadline) throw new Error(`${path}: ${answer.status} ${String(answer.body['message'])}`);
      await sleep(100);
    }
  }

  policy(namespace: string, name: string, spec: object): Promise<ApiObject> {
    const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata: { name }, spec };
    return this.made(`${GROUP}/${namespace}/trustpolicies`, object);
  }

  /** An Agent; the answer is its uid. */
  async agent(namespace: string, name: string, spec: object = {}): Promise<string> {
    const object = {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name },
      spec: {
        trustPolicyRef: { name: 'standard' },
        model: { primary: 'default/default' },
        prompt: { system: 'You help.' },
        ...spec,
      },
    };
    const { metadata } = await this.made(`${GROUP}/${namespace}/agents`, object);
    return (metadata as { uid: string }).uid;
  }

  async changeAgent(namespace: string, name: string, patch: Record<string, object>): Promise<void> {
    await this.#merge(`${GROUP}/${namespace}/agents/${name}`, patch);
  }

  /** As the operator does it. */
  async bind(namespace: string, agent: string, pod: { name: string; uid: string } | undefined): Promise<void> {
    await this.#merge(`${GROUP}/${namespace}/agents/${agent}/status`, { status: { pod } });
  }

  /** A pod no kubelet runs; the answer is its uid. */
  async pod(namespace: string, name: string, address = '127.0.0.1'): Promise<{ name: string; uid: string }> {
    const object = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { 'temper.dev/agent-pod': 'true' } },
      spec: {
        serviceAccountName: NAMESPACE_OBJECTS.agentServiceAccount,
        automountServiceAccountToken: false,
        containers: [{ name: 'agent', image: 'none' }],
      },
    };
    const { metadata } = await this.made(`/api/v1/namespaces/${namespace}/pods`, object);
    await this.#merge(`/api/v1/namespaces/${namespace}/pods/${name}/status`, {
      status: { podIP: address, podIPs: [{ ip: address }] },
    });
    return { name, uid: (metadata as { uid: string }).uid };
  }

  /** An agent with its pod and the pod's token. */
  async runningAgent(namespace: string, name: string, spec: object = {}) {
    const uid = await this.agent(namespace, name, spec);
    const pod = await this.pod(namespace, `${name}-1`);
    await this.bind(namespace, name, pod);
    return { uid, pod, token: await this.podToken(namespace, pod) };
  }

  async token(namespace: string, account: string, spec: object = {}): Promise<string> {
    const object = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: ['temper-gateway'], expirationSeconds: 3_600, ...spec },
    };
    const { status } = await this.made(`/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, object);
    return (status as { token: string }).token;
  }

  podToken(namespace: string, { name, uid }: { name: string; uid: string }, spec: object = {}): Promise<string> {
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid };
    return this.token(namespace, NAMESPACE_OBJECTS.agentServiceAccount, { boundObjectRef, ...spec });
  }

  personToken(namespace: string): Promise<string> {
    return this.token(namespace, NAMESPACE_OBJECTS.peopleServiceAccount);
  }

  /** What the configuration file of a replica says. */
  configuration(): object {
    return {
      listen: { host: '127.0.0.1', port: 0 },
      health: { host: '127.0.0.1', port: 0 },
      tls: { certificate: new URL('certificate.pem', TLS).pathname, key: new URL('key.pem', TLS).pathname },
      nats: { servers: [this.bus.url], seedFile: this.bus.seedFile('gateway'), caFile: this.bus.caFile },
      kubernetes: { kubeconfig: this.plane.kubeconfig },
      leaseKeys: [join(this.folder, 'lease.key')],
    };
  }

  async replica(change: Partial<GatewayConfig> = {}, openParts: OpenParts = openTestParts): Promise<Replica> {
    const stopping = new AbortController();
    const listening = Promise.withResolvers<{ port: number; healthPort: number }>();
    const destination = { write: (line: string) => this.lines.push(line) };
    const log = createLogger({ level: 'debug', destination, secrets: createSecrets() });
    const config = { ...gatewayConfig(this.configuration()), ...change };
    const running = runGateway(config, {
      log,
      signal: stopping.signal,
      openParts,
      listening: listening.resolve,
    });
    running.catch(listening.reject);
    const { port, healthPort } = await listening.promise;
    const call = httpsCaller(port);
    const stop = async (): Promise<void> => {
      stopping.abort();
      await running;
    };
    const replica = { port, healthPort, stop, call };
    this.#replicas.push(replica);
    await eventually(async () => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status === 200);
    return replica;
  }

  /** Of any object, as its controller does it. */
  async status(path: string, status: object): Promise<void> {
    await this.#merge(`${path}/status`, { status });
  }

  /** Members of the patch are laid over those of the object, one level deep. */
  async #merge(path: string, patch: Record<string, object>): Promise<void> {
    const { body: object } = await this.plane.admin.call('GET', path);
    for (const [name, value] of Object.entries(patch)) object[name] = { ...(object[name] as object), ...value };
    const { status, body } = await this.plane.admin.call('PUT', path, { body: object });
    if (status !== 200) throw new Error(`${path}: ${status} ${String(body['message'])}`);
  }
}

/** Calls one port over HTTPS. The fixture's certificate is of other names. */
export function httpsCaller(port: number): Replica['call'] {
  return (method, path, { token, person, key, headers: given = {}, body, from, signal } = {}) => {
    const headers = {
      ...given,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(person === undefined ? {} : { 'temper-token': person }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    // Nothing is known of whose certificate it is here; that pods pin theirs is tested with their client.
    const agent = new HttpsAgent({ rejectUnauthorized: false });
    return new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers,
        agent,
        ...(from === undefined ? {} : { localAddress: from }),
        ...(signal === undefined ? {} : { signal }),
      };
      const sent = request(options, (response) => {
        text(response).then(
          (received) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received }),
          reject,
        );
      });
      sent.on('error', reject);
      sent.on('close', () => agent.destroy());
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  };
}

/** Bounded, and quick when it can be. */
export async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('it did not come true in time');
    await sleep(50);
  }
}
