import { LABELS, RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import type { EmergentTool, ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../src/kube/informer/store.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createTransport, type KubeRequest, type Transport } from '../../../src/kube/client/transport.ts';
import { digestOf, type Digest } from '../../../src/lib/canonical.ts';
import { SourceKeyring } from '../../../src/nats/sources/source-cipher.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { OperatorDeps } from '../../../src/operator/components.ts';
import type { OperatorConfig } from '../../../src/operator/config.ts';
import { TYPES } from '../../../src/operator/kube/types.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { type OperatorNats, openOperatorNats } from '../../../src/operator/nats/open.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { objectName } from '../../../src/tempering/registry/object-name.ts';
import type { ApiResponse, ApiUser } from '../../cluster/api-client.ts';
import type { ControlPlane } from '../../cluster/control-plane.ts';
import { renderChart } from '../../cluster/helm.ts';
import { createAll, grant } from '../../cluster/objects.ts';
import { admissionObjects, enforceAdmissionPolicies } from '../admission/policies.ts';
import { type ApiServerFixture, RELEASE_NAMESPACE, startApiServerFixture } from '../api-server/api-server-fixture.ts';
import { runFakeKubelet } from '../api-server/fake-kubelet.ts';
import { buildAgent, buildTrustPolicy } from '../builders.ts';
import { GITOPS_ACCOUNT } from '../gitops/gitops-controller.ts';
import { type NatsFixture, startNatsFixture, STORE_BYTES } from '../nats/nats-fixture.ts';
import { poll } from '../poll.ts';
import { type Behaviour, honestOutputs, simulateVerifiers } from '../promotion/simulated-verifier.ts';
import { NEVER_ABORTED, NO_METRICS } from '../stubs.ts';
import { OPERATOR_CONFIG, recordingTransport, type RunningOperator, startOperator } from './start-operator.ts';

const AUTHENTICATED = 'system:authenticated';
export const OPERATOR: ApiUser = {
  user: 'system:serviceaccount:temper-system:temper-operator',
  groups: [AUTHENTICATED],
};
/** May approve every tool of team-a. */
export const ALICE: ApiUser = { user: 'alice', groups: [AUTHENTICATED] };
/** May write every object of team-a, and approve nothing. */
export const BOB: ApiUser = { user: 'bob', groups: [AUTHENTICATED] };
/** Applies what was merged; the list of approvers names it. */
export const GITOPS: ApiUser = {
  user: GITOPS_ACCOUNT,
  groups: ['system:serviceaccounts', AUTHENTICATED],
};
export const NAMESPACE = 'team-a';
const SILENT = createLogger({
  level: 'silent',
  destination: { write: () => undefined },
  secrets: createSecretRedactor(),
});
const VERIFIER_LABELS = { 'app.kubernetes.io/component': 'verifier', 'app.kubernetes.io/part-of': 'temper' };
const DOUBLED = honestOutputs(({ value }: { value: number }) => ({ result: value * 2 }));
const GROUP = `/apis/temper.dev/v1alpha1/namespaces/${NAMESPACE}`;
const KINDS = ['agents', 'approvals', 'approvalrequests', 'capabilities', 'emergenttools', 'trustpolicies'];

export type Stored<T> = T & KubeObject;

/** An API server with the admission policies of the chart, and an operator with the account and the rights of the chart. */
export class ApprovalsFixture implements AsyncDisposable {
  readonly apiServer: ApiServerFixture;
  readonly nats: NatsFixture;
  /** A connection of the gateway. */
  readonly gateway: JetStreamConnection;
  /** What the operator sent to the API server. */
  readonly sent: KubeRequest[] = [];
  /** What verifier pods send; they run the tool that doubles a number. */
  behaviour: Behaviour = DOUBLED;
  readonly #options: Partial<OperatorDeps>;
  readonly #sourceKeys = new SourceKeyring();
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>[] = [];
  /** For watches of the test; it is closed with the fixture. */
  readonly transport: Transport;
  #operator: RunningOperator | undefined;
  #operatorNats: OperatorNats | undefined;

  private constructor(
    parts: { apiServer: ApiServerFixture; nats: NatsFixture; gateway: JetStreamConnection; transport: Transport },
    options: Partial<OperatorDeps>,
  ) {
    this.apiServer = parts.apiServer;
    this.nats = parts.nats;
    this.gateway = parts.gateway;
    this.transport = parts.transport;
    this.#options = options;
  }

  static async open(options: Partial<OperatorDeps> = {}): Promise<ApprovalsFixture> {
    await using opening = new AsyncDisposableStack();
    const [apiServer, nats] = await Promise.all([
      startApiServerFixture({ controllerManager: true }),
      startNatsFixture(),
    ]);
    opening.use(apiServer);
    opening.use(nats);
    await prepare(apiServer);
    const gateway = await nats.connect('gateway');
    const transport = opening.use(await apiServer.connect());
    const fixture = new ApprovalsFixture({ apiServer, nats, gateway, transport }, options);
    await fixture.startOperator();
    fixture.#startVerifiers();
    opening.move();
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.stopOperator();
    await Promise.allSettled(this.#running);
    await this.transport[Symbol.asyncDispose]();
    await this.nats[Symbol.asyncDispose]();
    await this.apiServer[Symbol.asyncDispose]();
  }

  async startOperator(): Promise<void> {
    const { url, caFile } = this.nats;
    const server = { storeBytes: STORE_BYTES };
    const options = { url, caFile, seedFile: this.nats.seedFile('operator'), server };
    const parts = { clock: systemClock, log: SILENT, metrics: NO_METRICS };
    this.#operatorNats = openOperatorNats(options, parts, this.#sourceKeys);
    const connect = () => connectAs(this.apiServer.plane, OPERATOR);
    const config: OperatorConfig = {
      ...OPERATOR_CONFIG,
      admissionPolicies: { policies: await expectedPolicies() },
      verifier: { podLabels: VERIFIER_LABELS, warm: 1, max: 3 },
    };
    const { audit, promotions, sourceKeys, withheld } = this.#operatorNats;
    const wrap = (transport: Transport) => recordingTransport(transport, this.sent);
    const deps = { audit, promotions, sourceKeys, withheld, wrap, ...this.#options };
    this.#operator = await startOperator({ ...this.apiServer, connect }, config, deps);
  }

  async stopOperator(): Promise<void> {
    await this.#operator?.stop();
    await this.#operatorNats?.[Symbol.asyncDispose]();
    this.#operator = undefined;
    this.#operatorNats = undefined;
  }

  #startVerifiers(): void {
    const { signal } = this.#stopping;
    const transport = this.transport;
    this.#running.push(runFakeKubelet(transport, new Set(), signal, LABELS.verifierPod));
    this.#running.push(
      simulateVerifiers(transport, this.gateway, this.#sourceKeys, () => this.behaviour, signal).ended,
    );
  }

  call(method: string, path: string, options: { body?: object; as?: ApiUser; contentType?: string } = {}) {
    return this.apiServer.plane.admin.call(method, `${GROUP}/${path}`, options);
  }

  async create(as: ApiUser, object: NewObject): Promise<ApiResponse> {
    return this.call('POST', `${object.kind.toLowerCase()}s`, { body: object, as });
  }

  async mustCreate<T>(as: ApiUser, object: NewObject): Promise<Stored<T>> {
    const { status, body } = await this.create(as, object);
    if (status !== 201) throw new Error(`${object.kind}: ${status} ${String(body['message'])}`);
    return body as unknown as Stored<T>;
  }

  async agentUid(name: string): Promise<string> {
    return (await this.apiServer.getAgent(NAMESPACE, name)).metadata.uid;
  }

  /** A verified tool of tier Agent, as the operator writes it after the verification. */
  async agentTool(artifact: ToolArtifact, agent = 'analyst'): Promise<Stored<EmergentTool>> {
    const object = agentObject(artifact, agent, await this.agentUid(agent));
    const created = await this.mustCreate<EmergentTool>(OPERATOR, object);
    const lastTransitionTime = new Date().toISOString();
    const verified = { type: 'Active', status: 'True', reason: 'Verified', message: 'verified', lastTransitionTime };
    const { status, body } = await this.call('PATCH', `emergenttools/${object.metadata.name}/status`, {
      as: OPERATOR,
      contentType: 'application/merge-patch+json',
      body: { status: { active: true, conditions: [verified] } },
    });
    if (status !== 200) throw new Error(`status: ${status} ${String(body['message'])}`);
    return created;
  }

  async read<T>(plural: string, name: string): Promise<Stored<T> | undefined> {
    const { status, body } = await this.call('GET', `${plural}/${name}`);
    return status === 200 ? (body as unknown as Stored<T>) : undefined;
  }

  /** Waits for a reason of a condition of an object. */
  reason(plural: string, name: string, type: string, reason: string): Promise<Stored<EmergentTool>> {
    let last = '';
    return poll(`${plural} ${name}: ${type}=${reason}`, async () => {
      const found = await this.read<EmergentTool>(plural, name);
      const condition = found?.status?.conditions?.find((one) => one.type === type);
      last = `${condition?.reason}: ${condition?.message}`;
      if (condition?.reason === reason) return found;
      throw new Error(`last: ${last}`);
    });
  }

  list<T>(plural: keyof typeof TYPES): Promise<Stored<T>[]> {
    return this.apiServer.client.list<Stored<T>>(TYPES[plural], { namespace: NAMESPACE }, NEVER_ABORTED);
  }

  /**
   * Creates an Approval that counts. Right after the installation an Approval is too young for its admission policy; its condition says to
   * create it again under another name, which this does.
   */
  async approve(by: ApiUser, subject: Promotion, nonce: string, name: string): Promise<string> {
    return poll(`an Approval ${name} that is not too early`, async () => {
      const attempt = `${name}-${Date.now().toString(36)}`;
      await this.mustCreate(by, approval(by, subject, { nonce, name: attempt }));
      const effective = await poll(`the condition of ${attempt}`, async () => {
        const found = await this.read<EmergentTool>('approvals', attempt);
        return found?.status?.conditions?.find(({ type }) => type === 'Effective');
      });
      return effective.reason === 'CreatedTooEarly' ? undefined : attempt;
    });
  }
}

interface NewObject {
  readonly kind: string;
  readonly [member: string]: unknown;
}

export interface Promotion {
  readonly tool: string;
  readonly digest: string;
  readonly tier: 'Agent' | 'Shared';
}

export function promotionOf(artifact: ToolArtifact, tier: Promotion['tier'] = 'Shared'): Promotion {
  return { tool: artifact.name, digest: digestOfArtifact(artifact), tier };
}

export function approval(
  by: ApiUser,
  promotion: Promotion,
  { nonce, name, decision = 'Approve', ...rest }: { nonce: string; name: string; decision?: string; reason?: string },
) {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Approval',
    metadata: { name, namespace: NAMESPACE },
    spec: { decision, nonce, approvedBy: { username: by.user }, subject: { promotion }, ...rest },
  };
}

export function sharedObject(artifact: ToolArtifact, requestNonce: string, change: object = {}) {
  const digest = digestOfArtifact(artifact);
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: { name: sharedNameOf(artifact), namespace: NAMESPACE, ...change },
    spec: { artifact, digest, tier: 'Shared', contributors: ['agent/analyst'], requestNonce },
  };
}

export function agentObject(artifact: ToolArtifact, agent: string, agentUid: string) {
  const digest = digestOfArtifact(artifact);
  const owner = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: agent, uid: agentUid, controller: true };
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: {
      name: objectName(artifact.name, 'Agent', `${NAMESPACE}/${agent}`, digest),
      namespace: NAMESPACE,
      labels: { 'temper.dev/agent': agent },
      ownerReferences: [owner],
    },
    spec: { artifact, digest, tier: 'Agent', contributors: [`agent/${agent}`] },
  };
}

export function sharedNameOf(artifact: ToolArtifact): string {
  return objectName(artifact.name, 'Shared', `${NAMESPACE}/`, digestOfArtifact(artifact));
}

export function digestOfArtifact(artifact: ToolArtifact): Digest {
  return digestOf(artifact);
}

async function prepare(apiServer: ApiServerFixture): Promise<void> {
  const { plane } = apiServer;
  const rights = (await renderChart()).filter(
    ({ kind, metadata }) => /Role/.test(kind) && metadata.name.includes('operator'),
  );
  await createAll(plane, rights);
  const images = 'admissionPolicies.agentPods.images={temper:test,temper-sandbox:test}';
  await enforceAdmissionPolicies(plane, '--set', `admissionPolicies.approvers={${GITOPS.user}}`, '--set', images);
  await apiServer.createNamespace(NAMESPACE);
  const writes = {
    apiGroups: ['temper.dev'],
    resources: [...KINDS, ...KINDS.map((kind) => `${kind}/status`)],
    verbs: ['*'],
  };
  const limited = { ...writes, verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] };
  await grant(plane, BOB, [limited], NAMESPACE);
  const approves = {
    apiGroups: ['temper.dev'],
    resources: ['emergenttools', 'agents', 'trustpolicies'],
    verbs: ['approve'],
  };
  await grant(plane, ALICE, [limited, approves], NAMESPACE);
  await grant(plane, GITOPS, 'cluster-admin');
  const account = { metadata: { name: RELEASE_OBJECTS.verifierServiceAccount, namespace: RELEASE_NAMESPACE } };
  await apiServer.client.create(
    TYPES.serviceAccounts,
    { apiVersion: 'v1', kind: 'ServiceAccount', ...account },
    NEVER_ABORTED,
  );
  await apiServer.apply(buildTrustPolicy(NAMESPACE, { level: { initial: 'standard' }, forge: { apis: ['crypto'] } }));
  const forge = { forge: { enabled: true, modes: ['Compose', 'Sandbox'], apis: ['crypto'] } };
  for (const agent of ['analyst', 'reviewer']) await apiServer.apply(buildAgent(NAMESPACE, agent, forge));
}

async function expectedPolicies(): Promise<Record<string, string>> {
  const objects = await admissionObjects();
  return Object.fromEntries(
    objects
      .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
      .map(({ metadata }) => [metadata.name, 'installed']),
  );
}

/** A connection that acts as the user. */
export async function connectAs({ kubeconfig }: ControlPlane, { user, groups = [] }: ApiUser) {
  const access = await loadClusterAccess({ kind: 'file', path: kubeconfig }, systemClock);
  const credentials = async () => {
    const own = await access.credentials();
    const headers = { ...own.headers, 'impersonate-user': user, 'impersonate-group': groups.join(',') };
    return { ...own, headers };
  };
  return createTransport({ access: { ...access, credentials }, clock: systemClock, metrics: NO_METRICS });
}
