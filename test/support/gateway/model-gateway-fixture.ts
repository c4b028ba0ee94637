import type { Skill } from '../../../src/skills/skill.ts';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createManifestLoader } from '../../../src/api/manifests.ts';
import type { Agent, AgentSpec } from '../../../src/api/v1alpha1/agent.ts';
import type { TrustPolicy, TrustPolicySpec } from '../../../src/api/v1alpha1/trustpolicy.ts';
import type { GatewayDeps } from '../../../src/gateway/deps.ts';
import { type BrokeredTools, NO_BROKERED_TOOLS } from '../../../src/gateway/brokered/port.ts';
import { executedGitTool } from '../../../src/gateway/brokered/start.ts';
import type { AgentRepositories } from '../../../src/gateway/git/agent-repositories.ts';
import { WatchedCatalog } from '../../../src/gateway/discovery/catalog.ts';
import { WatchedAgentDirectory } from '../../../src/gateway/cluster/agent-directory.ts';
import { createAnswerSignatures } from '../../../src/gateway/delivery/answer-signatures.ts';
import {
  createDeliveryTokens,
  type DeliveryTokenClaims,
  type DeliveryTokens,
} from '../../../src/gateway/delivery/token.ts';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import type { GatewayModule } from '../../../src/gateway/modules.ts';
import { CallApprovals } from '../../../src/gateway/approvals/call-approvals.ts';
import { CORE_ROUTES } from '../../../src/gateway/routes.ts';
import type { RouteModule } from '../../../src/gateway/http/routes.ts';
import { eventDeps } from '../../../src/gateway/events/deps.ts';
import { TriggerIndex } from '../../../src/gateway/events/trigger-index.ts';
import { createGatewayServer } from '../../../src/gateway/http/server.ts';
import { ReportLimits, REVIEWS } from '../../../src/gateway/storage/report-limits.ts';
import { DEFAULT_STORAGE_LIMITS } from '../../../src/nats/residents/storage-limits.ts';
import { StorageQuota } from '../../../src/nats/residents/storage-quota.ts';
import { createPromotionDeps } from '../../../src/gateway/promotion/promotion-deps.ts';
import { writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import { GatewayClient } from '../../../src/gateway-client/gateway-client.ts';
import { GatewayConfigFiles } from '../../../src/gateway-client/endpoints/gateway-config-files.ts';
import type { PodIdentity } from '../../../src/identity/types.ts';
import { PodBindings } from '../../../src/identity/pod-bindings.ts';
import { Store } from '../../../src/kube/informer/store.ts';
import type { Digest } from '../../../src/lib/canonical.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { hasErrno, TemperError } from '../../../src/lib/errors.ts';
import { ulids } from '../../../src/lib/ids.ts';
import type { ModelEvent, ModelRequest } from '../../../src/models/port.ts';
import { PATTERN_RULES } from '../../../src/policy/patterns/pattern-rules.ts';
import type { ReplayScript } from '../../../src/models/replay/script/script.ts';
import { type ReplayServer, startReplay } from '../../../src/models/replay/server.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createToolAuditStore } from '../../../src/nats/promotion/tool-audits.ts';
import { natsAuditStream } from '../../../src/nats/audit-stream.ts';
import { Answers } from '../../../src/gateway/tasks/answers.ts';
import { createTaskRecorder } from '../../../src/gateway/tasks/recorder.ts';
import { createAgentScheduleStore } from '../../../src/nats/schedules/agent-schedule-store.ts';
import { createScheduleStates } from '../../../src/nats/schedules/schedule-states.ts';
import { createChildRequests } from '../../../src/nats/children/child-requests.ts';
import { createAsks } from '../../../src/nats/tasks/asks.ts';
import { createPeerTasks } from '../../../src/nats/tasks/peer-tasks.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { createDeadLetters } from '../../../src/nats/dead-letters/dead-letters.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import type { DeliveryRules } from '../../../src/nats/inbox/inbox-deliveries.ts';
import { SessionHeads } from '../../../src/nats/sessions/session-heads.ts';
import { SourceKeyring } from '../../../src/nats/sources/source-cipher.ts';
import { createSources, type GatewaySources } from '../../../src/gateway/storage/sources.ts';
import { withheldSessions, withholdsSources } from '../../../src/gateway/storage/withheld-sessions.ts';
import type { NatsSessionStore } from '../../../src/nats/sessions/port.ts';
import { createSessionStore } from '../../../src/nats/sessions/session-store.ts';
import { openSessionRegistry } from '../../../src/nats/sessions/session-registry.ts';
import { createPendingCalls } from '../../../src/nats/pending-calls.ts';
import { createWakeups } from '../../../src/nats/wakeups.ts';
import { checkResponses } from './response-check.ts';
import type { UsageReport } from '../../../src/gateway-api/user-api.ts';
import type { ModelStreamLine, ErrorBody } from '../../../src/gateway-api/pod-api.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../../src/telemetry/prometheus.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { GATEWAY_METRICS } from '../../../src/telemetry/temper-metrics.ts';
import { startNatsFixture, type NatsFixture } from '../nats/nats-fixture.ts';

const TLS = new URL('../../fixtures/tls/', import.meta.url);
/** A name of the certificate. */
const TLS_NAME = 'api.example.com';
const NAMESPACE = 'team-a';
/** With it, a gateway uses the egress proxy. */
export const GATEWAY_TOKEN = 'temper-gateway';

export interface HttpResponse {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export interface RequestOptions {
  agent: string;
  /** The idempotency key; random by default. */
  key?: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

export interface ModelGatewayReplica {
  port: number;
  parts: GatewayModule;
  catalog: WatchedCatalog;
  /** The text of `/metrics`. */
  metrics(): Promise<string>;
  call(method: string, path: string, options: RequestOptions): Promise<HttpResponse>;
}

/**
 * Gateways with models, ledger and review over real NATS and a replay server. The token of a pod is its agent's name and is not verified;
 * test/integration/gateway/identity.test.ts covers token verification.
 */
export class ModelGatewayFixture implements AsyncDisposable {
  readonly nats: NatsFixture;
  readonly replay: ReplayServer;
  readonly folder: string;
  /** Demoted digests, each with its reason. */
  readonly demoted = new Map<Digest, string>();
  /** Skills of team-a, by name. */
  readonly skills = new Map<string, Skill>();
  /** Reviews of all replicas. */
  reviewLimits = new ReportLimits(systemClock, REVIEWS);
  /** The tools that the gateways execute, and those of them that are of services of the platform. */
  brokered: BrokeredTools = NO_BROKERED_TOOLS;
  services: Pick<BrokeredTools, 'list'> = NO_BROKERED_TOOLS;
  /** The connections that Capabilities may name. */
  readonly connections = new Set<string>();
  /** The repositories of connections. */
  repositories: AgentRepositories = { list: () => [], tool: () => undefined };
  /** True: the request takes effect and its response is lost. */
  losesResponse: (url: string) => boolean = () => false;
  /** The keys of withheld sources. */
  readonly sourceKeys = new SourceKeyring();
  /** All log lines. */
  readonly logLines: string[] = [];
  readonly #agents = new Store<Agent>();
  readonly #policies = new Store<TrustPolicy>();
  readonly #directory = new WatchedAgentDirectory(
    this.#agents,
    this.#policies,
    new PodBindings(this.#agents, new Store()),
  );
  readonly #deliveryTokens: ReturnType<typeof createDeliveryTokens>;
  readonly #answerSignatures: ReturnType<typeof createAnswerSignatures>;
  readonly #open: (() => Promise<void>)[] = [];
  #serial = 0;

  private constructor(nats: NatsFixture, replay: ReplayServer, folder: string) {
    this.nats = nats;
    this.replay = replay;
    this.folder = folder;
    this.sourceKeys.keys = [{ id: 'first', createdAt: new Date(), key: randomBytes(32) }];
    const key = randomBytes(32);
    this.#deliveryTokens = createDeliveryTokens(() => [key]);
    this.#answerSignatures = createAnswerSignatures(() => [key]);
  }

  static async open(script: ReplayScript): Promise<ModelGatewayFixture> {
    const [nats, replay] = await Promise.all([startNatsFixture(), startReplay({ script, clock: systemClock })]);
    const fixture = new ModelGatewayFixture(nats, replay, await mkdtemp(join(tmpdir(), 'temper-models-')));
    await fixture.writeKey('the-first-key');
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#open.toReversed()) await close();
    await this.replay[Symbol.asyncDispose]();
    await this.nats[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }

  async writeKey(key: string): Promise<void> {
    await writeFile(join(this.folder, 'key'), `${key}\n`);
  }

  /** Updates a Secret volume as the kubelet does: writes a new folder and swaps the symbolic link `..data`. */
  async mountKey(key: string | undefined): Promise<void> {
    const mount = join(this.folder, 'mount');
    const version = `..version-${(this.#serial += 1)}`;
    await mkdir(join(mount, version), { recursive: true });
    if (key !== undefined) await writeFile(join(mount, version, 'key'), key);
    await symlink(version, join(mount, '..data_tmp'));
    await rename(join(mount, '..data_tmp'), join(mount, '..data'));
    await symlink('..data/key', join(mount, 'key')).catch((error: unknown) => {
      if (!hasErrno(error, 'EEXIST')) throw error;
    });
  }

  setAgent(name: string, spec: Partial<AgentSpec> = {}, policy = 'standard', namespace = NAMESPACE): string {
    const uid = `uid-${name}`;
    this.#agents.set({
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name, namespace, uid, resourceVersion: String((this.#serial += 1)) },
      spec: {
        trustPolicyRef: { name: policy },
        model: { primary: 'default/default' },
        prompt: { system: 'You help.' },
        ...spec,
      },
    });
    return uid;
  }

  setPolicy(name: string, spec: TrustPolicySpec, namespace = NAMESPACE): TrustPolicy {
    const metadata = {
      name,
      namespace,
      uid: namespace === NAMESPACE ? `uid-policy-${name}` : `uid-policy-${namespace}-${name}`,
      resourceVersion: String((this.#serial += 1)),
    };
    const policy: TrustPolicy = { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec };
    this.#policies.set(policy);
    return policy;
  }

  get deliveryTokens(): Pick<DeliveryTokens, 'sign'> {
    return this.#deliveryTokens;
  }

  deliveryToken(
    agent: string,
    session = 's1',
    root = 'root-1',
    message = 'message-1',
    more: Pick<DeliveryTokenClaims, 'isCall'> = {},
  ): string {
    return this.#deliveryTokens.sign({
      ...podOf(agent),
      message,
      session,
      root,
      depth: 0,
      deadline: new Date(Date.now() + 600_000).toISOString(),
      ...more,
      at: { streamSequence: 1, deliveries: 1 },
    });
  }

  /** Starts a replica with its own connection to NATS; `models` is the section of its configuration. */
  async startReplica(models: object, rules: Partial<DeliveryRules> = {}): Promise<ModelGatewayReplica> {
    const bus = await this.nats.connect('gateway');
    const log = createLogger({
      level: 'debug',
      destination: { write: (line: string) => this.logLines.push(line) },
      secrets: createSecretRedactor(),
    });
    const page = createRegistry();
    const metrics = registerMetrics(page, GATEWAY_METRICS);
    const shared = { clock: systemClock, ids: ulids, log, metrics, directory: this.#directory };
    const demotions = { reason: (_agent: object, digest: Digest) => this.demoted.get(digest) };
    const none = { get: async () => undefined };
    const library = new WatchedCatalog({ read: async () => undefined, sources: none, log, isServed: () => true });
    const identify = (uid: string) => ({ namespace: 'team-a', name: uid.replace(/^uid-/, ''), uid });
    const storage = new StorageQuota({ connection: bus, limits: DEFAULT_STORAGE_LIMITS, release: 'temper', identify });
    const heads = new SessionHeads(bus);
    const sources = createSources(this.sourceKeys, { bus, storage, clock: systemClock });
    const sessionsOf = (uid: string) =>
      this.#sessions(createSessionStore(bus, uid, { quota: storage.of(uid), heads }), uid, sources);
    const parts = await openModelModule({
      ...shared,
      bus,
      storage,
      sources,
      sessionsOf,
      demotions,
      catalog: library,
      hasEgress: true,
      models,
    });
    const audit = createNatsAudit(bus);
    const registry = openSessionRegistry(bus, { sources: sources.tools });
    const promotions = createPromotionDeps({
      ...shared,
      bus,
      storage,
      sources,
      registry,
      audit,
      demotions,
      hasEgress: true,
    });
    const tasks = createTaskRecords(bus, (uid) => storage.of(uid));
    const peerTasks = createPeerTasks(bus, tasks);
    const recorder = createTaskRecorder({ records: tasks, peers: peerTasks, clock: systemClock, log });
    const inbox = createNatsInbox(bus, rules, async (letter) => {
      await Promise.all([recorder.deadLettered(letter), answers.deadLettered(letter)]);
    });
    const answers = new Answers({
      ...shared,
      asks: createAsks(bus, tasks),
      inbox,
      agent: (uid) => this.#directory.byUid(uid),
      sessionsOf,
      wake: async () => undefined,
      endSpecialist: async () => undefined,
    });
    const deps: GatewayDeps = {
      ...shared,
      toolsVersion: () => '',
      skills: { any: () => this.skills.size > 0, find: async (_namespace, name) => this.skills.get(name) },
      brokered: {
        list: (namespace) => this.brokered.list(namespace),
        find: (namespace, name) =>
          this.brokered.find(namespace, name) ?? executedGitTool(this.repositories, namespace, name),
        services: (namespace) => this.services.list(namespace),
        hasConnection: (_namespace, name) => this.connections.has(name),
      },
      repositories: {
        list: (namespace) => this.repositories.list(namespace),
        tool: (namespace, name) => this.repositories.tool(namespace, name),
      },
      sessionsOf,
      sessionContent: async () => undefined,
      spans: undefined,
      identity: {
        pod: async (token) => podOf(token),
        podOrWarm: async (token) => podOf(token),
        boundIdentity: () => undefined,
        isVerified: () => true,
        isStillBound: () => true,
        verifier: async (token) => ({ kind: 'verifier', namespace: 'temper-system', podName: token, podUid: token }),
        egress: async (token) => ({ kind: 'egress', namespace: 'temper-system', podName: token, podUid: token }),
        egressClient: async (token) =>
          token === GATEWAY_TOKEN
            ? { kind: 'egress-gateway', namespace: 'temper-system', podName: token, podUid: token }
            : podOf(token),
        user: rejectUserToken,
        peer: rejectUserToken,
      },
      deliveryTokens: this.#deliveryTokens,
      answerSignatures: this.#answerSignatures,
      toolAudits: createToolAuditStore(bus),
      inbox,
      peerTasks,
      a2aUrl: 'https://temper-gateway:8443',
      answers,
      manifests: createManifestLoader({ patterns: PATTERN_RULES }),
      childRequests: createChildRequests(bus),
      agentSchedules: createAgentScheduleStore(bus),
      scheduleStates: createScheduleStates(bus),
      ...eventDeps(bus, { ...shared, inbox, wake: async () => undefined, sessionsOf, index: new TriggerIndex() }),
      approvals: new CallApprovals({
        ...shared,
        calls: createPendingCalls(bus),
        quotaOf: (uid) => storage.of(uid),
        approvals: () => [],
        agent: (uid) => this.#directory.byUid(uid),
        inbox,
        wakeups: createWakeups(bus),
        signal: new AbortController().signal,
      }),
      toolsOf: ({ agentUid }, session) => registry.tools(agentUid, session),
      tasks,
      recorder,
      events: createSessionEvents(bus),
      deadLetters: createDeadLetters(bus),
      wakeups: createWakeups(bus),
      audit,
      auditStream: natsAuditStream(() => bus),
      uses: promotions.uses,
      verifications: promotions.verifications,
      reportLimits: new ReportLimits(systemClock),
      reviewLimits: { take: (agentUid, count) => this.reviewLimits.take(agentUid, count) },
      models: parts.catalog,
      sessions: promotions.sessions,
      closeTools: promotions.closeTools,
      usage: parts.usage,
      draining: new AbortController().signal,
    };
    const tls = {
      cert: await readFile(new URL('certificate.pem', TLS), 'utf8'),
      key: await readFile(new URL('key.pem', TLS), 'utf8'),
    };
    const routes = [checkResponses, this.#lossyRoutes(), ...CORE_ROUTES, ...parts.routes];
    // The tests share the process, so their work and a busy machine delay the event loop too.
    const server = await createGatewayServer(deps, { tls, routes, maxEventLoopDelayMs: 0 });
    await server.listen({ host: '127.0.0.1', port: 0 });
    this.#open.push(async () => {
      await server.close();
      await parts[Symbol.asyncDispose]();
    });
    const { port } = server.server.address() as AddressInfo;
    return {
      port,
      parts,
      catalog: library,
      metrics: () => page.metrics(),
      call: (method, path, options) => call(port, method, path, options),
    };
  }

  /** A pod's client of this replica. */
  async connect(
    agent: string,
    { port }: ModelGatewayReplica,
    onAnswerSignature: (signature: string) => void = () => undefined,
  ): Promise<GatewayClient> {
    const folder = await mkdtemp(join(this.folder, `${agent}-`));
    const authority = await readFile(new URL('certificate.pem', TLS), 'utf8');
    await writeGatewayConfig(folder, { url: `https://127.0.0.1:${port}`, name: TLS_NAME, authority, token: agent });
    const configFiles = new GatewayConfigFiles({ folder, tokenFile: join(folder, 'token'), clock: systemClock });
    const client = new GatewayClient({ configFiles, clock: systemClock, random: () => 0, onAnswerSignature });
    this.#open.push(() => client[Symbol.asyncDispose]());
    return client;
  }

  #sessions(store: NatsSessionStore, uid: string, { texts }: GatewaySources): NatsSessionStore {
    const state = this.#directory.byUid(uid);
    return state !== undefined && withholdsSources(state) ? withheldSessions(store, texts, uid) : store;
  }

  #lossyRoutes(): RouteModule {
    return (server) => {
      server.addHook('onSend', async (request) => {
        if (this.losesResponse(request.url)) request.raw.socket.destroy();
      });
    };
  }

  async dailyUsage(replica: ModelGatewayReplica, agent: string): Promise<UsageReport['windows'][number]> {
    const state = this.#directory.agent(NAMESPACE, agent);
    if (state === undefined) throw new Error(`the agent index has no agent ${agent}`);
    const day = (await replica.parts.usage.agent(state)).windows.find(({ window }) => window === 'day');
    if (day === undefined) throw new Error('the usage report has no window "day"');
    return day;
  }
}

function podOf(agent: string): PodIdentity {
  const podUid = `pod-${agent}`;
  return { kind: 'pod', namespace: NAMESPACE, podName: podUid, podUid, agent, agentUid: `uid-${agent}` };
}

async function rejectUserToken(): Promise<never> {
  throw new TemperError('TEMPER_TOKEN_INVALID', 'this fixture accepts no user tokens');
}

async function call(
  port: number,
  method: string,
  path: string,
  { agent, key = ulids.next('key'), body, headers: extra = {}, signal }: RequestOptions,
): Promise<HttpResponse> {
  // The fixture's certificate has another name. The tests of the pod's client cover that it pins the certificate.
  const connection = new HttpsAgent({ rejectUnauthorized: false });
  const headers = {
    ...extra,
    authorization: `Bearer ${agent}`,
    'idempotency-key': key,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const target = { host: '127.0.0.1', port, path, method, headers, agent: connection };
  try {
    return await new Promise<HttpResponse>((resolve, reject) => {
      const sent = request({ ...target, ...(signal === undefined ? {} : { signal }) }, (response) => {
        const { statusCode: status = 0, headers: received } = response;
        text(response).then((body) => resolve({ status, headers: received, text: body }), reject);
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  } finally {
    connection.destroy();
  }
}

export function aModelRequest(changes: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'default/default',
    system: 'You help.',
    messages: [{ role: 'user', text: 'How are you?' }],
    tools: [],
    maxOutputTokens: 1_000,
    ...changes,
  };
}

export function streamLines({ text: received }: HttpResponse): ModelStreamLine[] {
  return received.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as ModelStreamLine]));
}

export function streamText(lines: readonly ModelStreamLine[]): string {
  return lines.map((line) => (line.type === 'text' ? line.text : '')).join('');
}

export function streamEnd(lines: readonly ModelStreamLine[]): Extract<ModelEvent, { type: 'end' }> {
  const last = lines.at(-1);
  if (last?.type !== 'end') throw new Error(`the response has no end event: ${JSON.stringify(last)}`);
  return last;
}

export function errorOf({ status, text: received }: HttpResponse): [number, string] {
  return [status, (JSON.parse(received) as ErrorBody).error.code];
}
