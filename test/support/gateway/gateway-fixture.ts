import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent as HttpsAgent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { NAMESPACE_OBJECTS } from '../../../src/api/cluster.ts';
import { type GatewayConfig, gatewayConfig } from '../../../src/gateway/config.ts';
import { runGateway } from '../../../src/gateway/gateway.ts';
import type { OpenModule } from '../../../src/gateway/modules.ts';
import { TemperError } from '../../../src/lib/errors.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import type { ApiObject } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { installCrds } from '../api-server/crds.ts';
import { startNatsFixture, type NatsFixture, type NatsFixtureOptions } from '../nats/nats-fixture.ts';
import { pollValue } from '../poll.ts';
import { checkResponses } from './response-check.ts';
import { buildAgent, buildTrustPolicy } from '../builders.ts';

const ROOT = new URL('../../../', import.meta.url);
const TLS = new URL('test/fixtures/tls/', ROOT);
const GROUP = '/apis/temper.dev/v1alpha1/namespaces';

/** A fixed usage report, because these replicas have no ledger. */
const FIXED_TOKENS = { inputTokens: 40, outputTokens: 2, costMicros: 7, inFlightTokens: 0 };
const FIXED_USAGE = { window: 'hour', ...FIXED_TOKENS, networkBytes: 0 } as const;
/** The gateway delivers messages, and agents have no models. */
const openModuleWithoutModels: OpenModule = async () => {
  const report = async () => ({ windows: [FIXED_USAGE], limits: {} });
  const breakdown = async (): Promise<never> => {
    throw new TemperError('TEMPER_NOT_FOUND', 'this gateway has no ledger');
  };
  return {
    routes: [],
    catalog: { resolve: () => undefined },
    usage: { agent: report, policy: report, breakdown },
    [Symbol.asyncDispose]: async () => undefined,
  };
};

export interface HttpResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

export interface HttpRequestOptions {
  token?: string;
  /** Sent in the header `temper-token`, which users' clients send. */
  userToken?: string;
  key?: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** The local address that the connection is bound to. */
  localAddress?: string;
  signal?: AbortSignal;
}

/** One gateway replica that runs in this process. */
export interface GatewayReplica {
  port: number;
  healthPort: number;
  /** Undefined when webhooks are off. */
  webhookPort?: number | undefined;
  /** Drains the replica and resolves when it has stopped. */
  stop(): Promise<void>;
  /** The error with which the replica ends by itself. */
  failure(): Promise<unknown>;
  call(method: string, path: string, options?: HttpRequestOptions): Promise<HttpResponse>;
}

/** An API server with CRDs and NATS with streams, as after an installation. Tests start gateway replicas on top. */
export class GatewayFixture implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly nats: NatsFixture;
  readonly folder: string;
  readonly logLines: string[] = [];
  readonly #replicas: GatewayReplica[] = [];

  private constructor(plane: ControlPlane, nats: NatsFixture, folder: string) {
    this.plane = plane;
    this.nats = nats;
    this.folder = folder;
  }

  static async open(namespaces: readonly string[], bus: NatsFixtureOptions = {}): Promise<GatewayFixture> {
    const [plane, nats] = await Promise.all([
      startControlPlane({ controllerManager: true, prepare: installCrds }),
      startNatsFixture(bus),
    ]);
    const fixture = new GatewayFixture(plane, nats, await mkdtemp(join(tmpdir(), 'temper-gateway-')));
    try {
      await fixture.#prepare(namespaces);
    } catch (error) {
      await fixture[Symbol.asyncDispose]();
      throw error;
    }
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.stop()));
    await Promise.all([this.plane[Symbol.asyncDispose](), this.nats[Symbol.asyncDispose]()]);
    await rm(this.folder, { recursive: true, force: true });
  }

  async #prepare(namespaces: readonly string[]): Promise<void> {
    await writeFile(join(this.folder, 'delivery-token.key'), randomBytes(32));
    for (const name of namespaces) {
      await this.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      for (const account of [NAMESPACE_OBJECTS.agentServiceAccount, NAMESPACE_OBJECTS.usersServiceAccount, 'other']) {
        const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account } };
        await this.create(`/api/v1/namespaces/${name}/serviceaccounts`, object);
      }
      await this.createPolicy(name, 'standard', {});
    }
  }

  /** Creates an object. Retries while the API server does not serve the kind yet. */
  async create(path: string, body: object): Promise<ApiObject> {
    const post = () => this.plane.admin.call('POST', path, { body });
    const response = await pollValue(`a new object at ${path}`, post, ({ status }) => status === 201);
    return response.body;
  }

  createPolicy(namespace: string, name: string, spec: object): Promise<ApiObject> {
    return this.create(`${GROUP}/${namespace}/trustpolicies`, buildTrustPolicy(namespace, spec, name));
  }

  /** Creates an Agent and returns its uid. */
  async createAgent(namespace: string, name: string, spec: object = {}): Promise<string> {
    const object = buildAgent(namespace, name, { model: { primary: 'default/default' }, ...spec });
    const { metadata } = await this.create(`${GROUP}/${namespace}/agents`, object);
    return (metadata as { uid: string }).uid;
  }

  async patchAgent(namespace: string, name: string, patch: Record<string, object>): Promise<void> {
    await this.#merge(`${GROUP}/${namespace}/agents/${name}`, patch);
  }

  /** Binds the pod and confirms it in the status, as the operator does. */
  async bindPod(namespace: string, agent: string, pod: { name: string; uid: string }): Promise<void> {
    await this.claimPod(namespace, agent, pod);
    await this.#merge(`${GROUP}/${namespace}/agents/${agent}/status`, { status: { pod } });
  }

  /** Binds the pod without confirming it in the status. */
  async claimPod(namespace: string, agent: string, pod: { name: string }): Promise<void> {
    const { body } = await this.plane.admin.call('GET', `${GROUP}/${namespace}/agents/${agent}`);
    const { uid } = body.metadata as { uid: string };
    const owner = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: agent, uid, controller: true };
    const labels = { 'temper.dev/agent-pod': 'true', 'temper.dev/agent-uid': uid };
    await this.#merge(`/api/v1/namespaces/${namespace}/pods/${pod.name}`, {
      metadata: { labels, ownerReferences: [owner] },
    });
  }

  /** Creates a pod that no kubelet runs, with an address in its status. */
  async createPod(namespace: string, name: string, address = '127.0.0.1'): Promise<{ name: string; uid: string }> {
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
    const { metadata } = await this.create(`/api/v1/namespaces/${namespace}/pods`, object);
    await this.#merge(`/api/v1/namespaces/${namespace}/pods/${name}/status`, {
      status: { podIP: address, podIPs: [{ ip: address }] },
    });
    return { name, uid: (metadata as { uid: string }).uid };
  }

  /** Creates an Agent, binds it to a new pod and returns the pod's token. */
  async createRunningAgent(namespace: string, name: string, spec: object = {}) {
    const uid = await this.createAgent(namespace, name, spec);
    const pod = await this.createPod(namespace, `${name}-1`);
    await this.bindPod(namespace, name, pod);
    return { uid, pod, token: await this.createPodToken(namespace, pod) };
  }

  async createToken(namespace: string, account: string, spec: object = {}): Promise<string> {
    const object = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: ['temper-gateway'], expirationSeconds: 3_600, ...spec },
    };
    const { status } = await this.create(`/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, object);
    return (status as { token: string }).token;
  }

  createPodToken(namespace: string, { name, uid }: { name: string; uid: string }, spec: object = {}): Promise<string> {
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid };
    return this.createToken(namespace, NAMESPACE_OBJECTS.agentServiceAccount, { boundObjectRef, ...spec });
  }

  createUserToken(namespace: string): Promise<string> {
    return this.createToken(namespace, NAMESPACE_OBJECTS.usersServiceAccount);
  }

  replicaConfig(): object {
    return replicaConfig(this);
  }

  async startReplica(
    change: Partial<GatewayConfig> = {},
    openParts: OpenModule = openModuleWithoutModels,
  ): Promise<GatewayReplica> {
    const stopping = new AbortController();
    const listening = Promise.withResolvers<{ port: number; healthPort: number; webhookPort?: number | undefined }>();
    const destination = { write: (line: string) => this.logLines.push(line) };
    const log = createLogger({ level: 'debug', destination, secrets: createSecretRedactor() });
    const config = { ...gatewayConfig(this.replicaConfig()), ...change };
    const running = runGateway(config, {
      log,
      signal: stopping.signal,
      openModule: async (context) => {
        const opened = await openParts(context);
        return { ...opened, routes: [checkResponses, ...opened.routes] };
      },
      listening: listening.resolve,
    });
    running.catch(listening.reject);
    const { port, healthPort, webhookPort } = await listening.promise;
    const call = httpsClient(port);
    let hasFailed = false;
    const stop = async (): Promise<void> => {
      stopping.abort();
      if (!hasFailed) await running;
    };
    const failure = async (): Promise<unknown> => {
      const error = await running.catch((reason: unknown) => reason);
      hasFailed = true;
      return error;
    };
    const replica = { port, healthPort, webhookPort, stop, failure, call };
    this.#replicas.push(replica);
    await pollValue(
      'the readiness of the gateway',
      async () => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status,
      (value) => value === 200,
    );
    return replica;
  }

  /** Writes the status of any object, as its controller does. */
  async patchStatus(path: string, status: object): Promise<void> {
    await this.#merge(`${path}/status`, { status });
  }

  /** Merges the patch into the object, one level deep. */
  async #merge(path: string, patch: Record<string, object>): Promise<void> {
    const { body: object } = await this.plane.admin.call('GET', path);
    for (const [name, value] of Object.entries(patch)) object[name] = { ...(object[name] as object), ...value };
    const { status, body } = await this.plane.admin.call('PUT', path, { body: object });
    if (status !== 200) throw new Error(`${path}: ${status} ${String(body['message'])}`);
  }
}

/** The content of a replica's configuration file. The folder has the key of its delivery tokens. */
export function replicaConfig({ plane, nats, folder }: Pick<GatewayFixture, 'plane' | 'nats' | 'folder'>): object {
  return {
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    tls: { certificate: new URL('certificate.pem', TLS).pathname, key: new URL('key.pem', TLS).pathname },
    nats: { servers: [nats.url], seedFile: nats.seedFile('gateway'), caFile: nats.caFile },
    kubernetes: { kubeconfig: plane.kubeconfig },
    deliveryTokenKeys: [join(folder, 'delivery-token.key')],
  };
}

/** An HTTPS client for one port. It does not verify the server: the fixture's certificate has other names. */
export function httpsClient(port: number): GatewayReplica['call'] {
  return (method, path, { token, userToken, key, headers: extra = {}, body, localAddress, signal } = {}) => {
    const headers = {
      ...extra,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(userToken === undefined ? {} : { 'temper-token': userToken }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    // The tests of the pod's client cover that it pins the certificate.
    const agent = new HttpsAgent({ rejectUnauthorized: false });
    return new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers,
        agent,
        ...(localAddress === undefined ? {} : { localAddress }),
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
