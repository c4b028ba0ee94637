import { LABELS, RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import type { EmergentTool } from '../../../src/api/v1alpha1/emergenttool.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { subjects } from '../../../src/nats/jetstream/names.ts';
import { notify } from '../../../src/nats/notify/notifications.ts';
import { createEncryptedTexts } from '../../../src/nats/sources/encrypted-texts.ts';
import { createToolSources } from '../../../src/nats/sources/tool-sources.ts';
import { createSourceCipher, SourceKeyring } from '../../../src/nats/sources/source-cipher.ts';
import { createPanelReviews, type ReviewJob } from '../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../../src/nats/promotion/promotion-states.ts';
import type { KubeRequest, Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { OperatorConfig } from '../../../src/operator/config.ts';
import { type OperatorNats, openOperatorNats } from '../../../src/operator/nats/open.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { aVerdict } from '../../../src/tempering/tempering.testing.ts';
import type { TesterAnswer } from '../../../src/tempering/examination/testers/ask-tester.ts';
import type { PanelVerdict } from '../../../src/tempering/judge/panel.ts';
import type { PromotionRecord } from '../../../src/tempering/promotion/promotion-record.ts';
import { type ApiServerFixture, RELEASE_NAMESPACE, startApiServerFixture } from '../api-server/api-server-fixture.ts';
import { runFakeKubelet } from '../api-server/fake-kubelet.ts';
import { FollowedObjects } from '../api-server/followed-objects.ts';
import { type NatsFixture, startNatsFixture } from '../nats/nats-fixture.ts';
import {
  OPERATOR_CONFIG,
  recordingTransport,
  type RunningOperator,
  startOperator,
} from '../operator/start-operator.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../stubs.ts';
import { mortalAudit, mortalStore, mortalTransport, OperatorLife } from './operator-life.ts';
import { type PreparedChange, type PreparedTool, prepareTool, requestPromotion } from './prepared-tool.ts';
import { type Behaviour, honestOutputs, simulateVerifiers } from './simulated-verifier.ts';
import { warmVerifier } from './warm-verifier.ts';

const CONFIG: OperatorConfig = {
  ...OPERATOR_CONFIG,
  verifier: { podLabels: { 'app.kubernetes.io/component': 'verifier' }, warm: 1, max: 3 },
};
const NAMESPACE = 'team-a';
const QUIET = { level: 'error' as const, destination: { write: () => undefined }, secrets: createSecretRedactor() };
export const REVIEWERS = { reviewers: ['replay/safety', 'replay/correctness'] };
export const APPROVING: PanelVerdict = {
  approved: true,
  confidence: 0.9,
  reasoning: 'sound',
  verdicts: [aVerdict({ model: 'replay/safety' }), aVerdict({ model: 'replay/correctness' })],
};
export const doubled = honestOutputs(({ value }: { value: number }) => ({ result: value * 2 }));

type WrittenTool = Pick<Pod, 'metadata'> & Pick<EmergentTool, 'spec' | 'status'>;

/** An API server, NATS and an operator with its real adapters; the tests decide what verifiers and panel answer. */
export class PromotionFixture implements AsyncDisposable {
  readonly apiServer: ApiServerFixture;
  readonly nats: NatsFixture;
  readonly gateway: JetStreamConnection;
  /** What a verifier pod makes of its work. */
  behaviour: Behaviour = doubled;
  /** What the panel answers; undefined: nothing. */
  panel: PanelVerdict | undefined = APPROVING;
  /** What the testers answer. */
  cases: readonly TesterAnswer[] = [];
  /** The attempts that the panel was asked about. */
  readonly reviews: string[] = [];
  /** Those of the operator. */
  readonly sourceKeys = new SourceKeyring();
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>[] = [];
  /** What the operator sent to the API server. */
  readonly sent: KubeRequest[] = [];
  /** How many requests the operator sent to NATS. */
  natsRequests = 0;
  readonly #verifiers: ReturnType<typeof simulateVerifiers>;
  readonly #transport: Transport;
  readonly #tools: FollowedObjects<WrittenTool>;
  readonly #pods: FollowedObjects<Pod>;
  #operatorNats: OperatorNats | undefined;
  #operator: RunningOperator | undefined;
  #serial = 0;

  private constructor(
    { apiServer, nats, transport }: { apiServer: ApiServerFixture; nats: NatsFixture; transport: Transport },
    gateway: JetStreamConnection,
  ) {
    this.apiServer = apiServer;
    this.nats = nats;
    this.gateway = gateway;
    const { signal } = this.#stopping;
    this.#running.push(runFakeKubelet(transport, new Set(), signal, LABELS.verifierPod));
    this.#verifiers = simulateVerifiers(transport, gateway, this.sourceKeys, () => this.behaviour, signal);
    this.#transport = transport;
    this.#tools = new FollowedObjects<WrittenTool>(transport, { type: TYPES.emergentTools, namespace: NAMESPACE });
    this.#pods = new FollowedObjects<Pod>(transport, { type: TYPES.pods, labelSelector: `${LABELS.verifierPod}=true` });
    const take = (job: ReviewJob) => this.#review(job);
    this.#running.push(
      this.#verifiers.ended,
      createPanelReviews(gateway).consume(take, signal, () => undefined),
    );
  }

  static async open(): Promise<PromotionFixture> {
    const [apiServer, nats] = await Promise.all([startApiServerFixture(), startNatsFixture()]);
    const gateway = await nats.connect('gateway');
    const account = { metadata: { name: RELEASE_OBJECTS.verifierServiceAccount, namespace: RELEASE_NAMESPACE } };
    const object = { apiVersion: 'v1', kind: 'ServiceAccount', ...account };
    await apiServer.client.create(TYPES.serviceAccounts, object, NEVER_ABORTED);
    await apiServer.createNamespace(NAMESPACE);
    const fixture = new PromotionFixture({ apiServer, nats, transport: await apiServer.connect() }, gateway);
    await fixture.start();
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.stop();
    await Promise.allSettled(this.#running);
    for (const open of [this.#tools, this.#pods, this.#transport]) await open[Symbol.asyncDispose]();
    await this.nats[Symbol.asyncDispose]();
    await this.apiServer[Symbol.asyncDispose]();
  }

  /** The UIDs of the pods that sent outputs. */
  get served(): readonly string[] {
    return this.#verifiers.served;
  }

  /** Starts an operator. The test may end its life at any of its effects. */
  async start(): Promise<OperatorLife> {
    const { url, caFile } = this.nats;
    const log = createLogger(QUIET);
    const server = { storeBytes: 256 * 1_024 * 1_024 };
    const options = { url, caFile, seedFile: this.nats.seedFile('operator'), server };
    const observe = () => {
      this.natsRequests += 1;
    };
    const metrics = { ...NO_METRICS, observe };
    const parts = openOperatorNats(options, { clock: systemClock, log, metrics }, this.sourceKeys);
    const life = new OperatorLife();
    this.#operatorNats = parts;
    this.#operator = await startOperator(this.apiServer, CONFIG, {
      ...parts,
      promotions: mortalStore(parts.promotions, life),
      audit: mortalAudit(parts.audit, life),
      wrap: (transport, die) => mortalTransport(recordingTransport(transport, this.sent), life, die),
    });
    return life;
  }

  async stop(): Promise<void> {
    await this.#operator?.stop();
    await this.#operatorNats?.[Symbol.asyncDispose]();
  }

  /** An agent with a session tool and reported uses for so many root messages. */
  prepare(policy: object = { models: REVIEWERS }, uses = 5, change: PreparedChange = {}): Promise<PreparedTool> {
    this.#serial += 1;
    const cipher = createSourceCipher(this.sourceKeys, systemClock);
    const sources = createToolSources(createEncryptedTexts(this.gateway, cipher));
    const { apiServer, gateway } = this;
    return prepareTool({ apiServer, gateway, sources }, `agent-${this.#serial}`, { policy, uses, change });
  }

  request(prepared: PreparedTool, revision = 0): Promise<void> {
    return requestPromotion(this.gateway, prepared, revision);
  }

  async recordOf({ key }: Pick<PreparedTool, 'key'>): Promise<PromotionRecord | undefined> {
    return (await createPromotionStates(this.gateway).get(key)).record;
  }

  settled(prepared: Pick<PreparedTool, 'key'>): Promise<PromotionRecord | undefined> {
    return pollValue(
      'the end of the promotion',
      () => this.recordOf(prepared),
      (record) =>
        record?.state === 'Candidate' || (record !== undefined && 'concluded' in record && record.concluded === true),
    );
  }

  /** Waits for the tool of the agent to be in service. */
  inService(name: string, signal: AbortSignal = AbortSignal.timeout(60_000)): Promise<WrittenTool> {
    const isActive = ({ metadata, status }: WrittenTool): boolean =>
      status?.active === true && metadata.labels?.['temper.dev/agent'] === name;
    return this.#tools.until((tools) => tools.find(isActive), signal);
  }

  /** Waits until the only verifier pod is Ready and unused, and returns it. */
  warmVerifier(signal: AbortSignal = AbortSignal.timeout(60_000)): Promise<Pod> {
    return warmVerifier(this.#pods, signal);
  }

  async objectsOf(name: string): Promise<WrittenTool[]> {
    const where = { namespace: NAMESPACE };
    const all = await this.apiServer.client.list<WrittenTool>(TYPES.emergentTools, where, NEVER_ABORTED);
    return all.filter(({ metadata }) => metadata.labels?.['temper.dev/agent'] === name);
  }

  /** The actions of the audit records about the agent. */
  async decisionsOf(uid: string): Promise<string[]> {
    const records = await createNatsAudit(this.gateway).all(NAMESPACE, 10_000);
    return records.filter(({ facts }) => facts['agentUid'] === uid).map(({ action }) => action);
  }

  async #review(job: ReviewJob): Promise<void> {
    const { panel, cases, gateway } = this;
    const states = createPromotionStates(gateway);
    if (job.kind === 'Panel') this.reviews.push(job.attempt);
    if (job.kind === 'Testers') await states.putTesterAnswers(job, job.attempt, cases);
    else if (panel !== undefined) await states.putReview(job, job.attempt, panel);
    notify(gateway, subjects.notifyPromotions());
  }
}
