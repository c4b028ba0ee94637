import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { LABELS, RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import type { EmergentTool } from '../../../src/api/v1alpha1/emergenttool.ts';
import { digestOf } from '../../../src/lib/canonical.ts';
import type { Json } from '../../../src/lib/json.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { subjects } from '../../../src/nats/jetstream/names.ts';
import { notify } from '../../../src/nats/notify/notifications.ts';
import { createToolEvidence } from '../../../src/nats/promotion/evidence.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { createPanelReviews } from '../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionRequests } from '../../../src/nats/promotion/promotion-requests.ts';
import { createPromotionStates } from '../../../src/nats/promotion/promotion-states.ts';
import { openSessionRegistry } from '../../../src/nats/sessions/session-registry.ts';
import { type OperatorNats, openOperatorNats } from '../../../src/operator/nats/open.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createSupervisor, type Supervisor } from '../../../src/sandbox/supervisor.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { anAcceptance, anArtifact, aVerdict } from '../../../src/tempering/tempering.testing.ts';
import { sessionTool } from '../../../src/tempering/registry/registered-tool.ts';
import { unavailablePanel, type PanelVerdict } from '../../../src/tempering/judge/panel.ts';
import type { RegisteredTool, ToolUse } from '../../../src/tempering/types.ts';
import {
  type ApiServerFixture,
  RELEASE_NAMESPACE,
  startApiServerFixture,
} from '../../support/api-server/api-server-fixture.ts';
import { runFakeKubelet } from '../../support/api-server/fake-kubelet.ts';
import { buildAgent, buildTrustPolicy } from '../../support/builders.ts';
import { type NatsFixture, startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { OPERATOR_CONFIG, type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';
import {
  type Behaviour,
  honestOutputs,
  sandboxedOutputs,
  simulateVerifiers,
} from '../../support/promotion/simulated-verifier.ts';
import { WORKED_FORGES, workedForge, workedUses } from '../../support/promotion/worked-forges.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

const CONFIG = {
  ...OPERATOR_CONFIG,
  verifier: { podLabels: { 'app.kubernetes.io/component': 'verifier' }, warm: 1, max: 3 },
};
const REVIEWERS = { reviewers: ['replay/safety', 'replay/correctness'] };
const QUIET = { level: 'error' as const, destination: { write: () => undefined }, secrets: createSecretRedactor() };
const APPROVING: PanelVerdict = {
  approved: true,
  confidence: 0.9,
  reasoning: 'sound',
  verdicts: [aVerdict({ model: 'replay/safety' }), aVerdict({ model: 'replay/correctness' })],
};
const doubled = honestOutputs(({ value }: { value: number }) => ({ result: value * 2 }));

type WrittenTool = Pick<Pod, 'metadata'> & Pick<EmergentTool, 'spec' | 'status'>;

describe('promotion to tier Agent', () => {
  const stopping = new AbortController();
  let apiServer: ApiServerFixture;
  let nats: NatsFixture;
  let gateway: JetStreamConnection;
  let operatorNats: OperatorNats;
  let operator: RunningOperator;
  let sandbox: Supervisor;
  let verifiers: ReturnType<typeof simulateVerifiers>;
  let behaviour: Behaviour = doubled;
  let panel: PanelVerdict | undefined = APPROVING;
  const reviews: string[] = [];
  const running: Promise<unknown>[] = [];
  let serial = 0;

  const start = async (): Promise<void> => {
    const { url, caFile } = nats;
    const log = createLogger(QUIET);
    const options = { url, caFile, seedFile: nats.seedFile('operator'), server: { storeBytes: 256 * 1_024 * 1_024 } };
    operatorNats = openOperatorNats(options, { clock: systemClock, log, metrics: NO_METRICS });
    operator = await startOperator(apiServer, CONFIG, { ...operatorNats });
  };
  const stop = async (): Promise<void> => {
    await operator.stop();
    await operatorNats[Symbol.asyncDispose]();
  };

  before(async () => {
    [apiServer, nats, sandbox] = await Promise.all([
      startApiServerFixture(),
      startNatsFixture(),
      createSupervisor({ clock: systemClock }),
    ]);
    gateway = await nats.connect('gateway');
    const { client } = apiServer;
    const account = { metadata: { name: RELEASE_OBJECTS.verifierServiceAccount, namespace: RELEASE_NAMESPACE } };
    await client.create(TYPES.serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', ...account }, NEVER_ABORTED);
    await apiServer.createNamespace('team-a');
    running.push(runFakeKubelet(client, new Set(), stopping.signal, LABELS.verifierPod));
    verifiers = simulateVerifiers(client, gateway, () => behaviour, stopping.signal);
    running.push(verifiers.ended);
    const states = createPromotionStates(gateway);
    const take = async (review: { agentUid: string; digest: RegisteredTool['digest']; attempt: string }) => {
      reviews.push(review.attempt);
      if (panel !== undefined) await states.putReview(review, review.attempt, panel);
      notify(gateway, subjects.notifyPromotions());
    };
    running.push(createPanelReviews(gateway).consume(take, stopping.signal, () => undefined));
    await start();
  });

  after(async () => {
    stopping.abort();
    await stop();
    await Promise.allSettled(running);
    await sandbox[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
    await apiServer[Symbol.asyncDispose]();
  });

  beforeEach(() => {
    behaviour = doubled;
    panel = APPROVING;
    reviews.length = 0;
  });

  /** An agent with a session tool and reported uses for so many root messages. */
  function prepare(policy: object = { models: REVIEWERS }, uses = 5, change: Partial<ToolUse> = {}) {
    const each = Array.from({ length: uses }, (_, index): Partial<ToolUse> => {
      const value = index + 10;
      return { input: { value }, output: digestOf({ result: value * 2 }), ...change };
    });
    return prepareTool(anArtifact(`double_${serial + 1}`), each, policy);
  }

  async function prepareTool(
    artifact: RegisteredTool['artifact'],
    uses: readonly Partial<ToolUse>[],
    policy: object = { models: REVIEWERS },
  ) {
    serial += 1;
    const name = `agent-${serial}`;
    await apiServer.apply(buildTrustPolicy('team-a', { level: { initial: 'restricted' }, ...policy }, name));
    await apiServer.apply(
      buildAgent('team-a', name, { trustPolicyRef: { name }, forge: { enabled: true, modes: ['Sandbox', 'Compose'] } }),
    );
    const uid = (await apiServer.getAgent('team-a', name)).metadata.uid;
    const caller = { agent: name, namespace: 'team-a', session: 's1', rootMessage: 'm', authorModel: 'replay/author' };
    const tool = sessionTool(anAcceptance(artifact), caller, new Date().toISOString());
    await openSessionRegistry(gateway).register(uid, tool, () => []);
    const reportedUse = (change: Partial<ToolUse>, index: number): ToolUse => ({
      agent: name,
      namespace: 'team-a',
      session: 's1',
      digest: tool.digest,
      evidence: 'reported',
      rootMessage: `m-${index + 10}`,
      input: {},
      succeeded: true,
      milliseconds: 1,
      time: '2026-01-01T00:00:00Z',
      ...change,
    });
    const all = uses.map(reportedUse);
    await createToolEvidence(gateway).count(uid, { digest: tool.digest, namespace: 'team-a' }, 'key', all);
    await pollValue(
      'the policy of the agent',
      () => apiServer.getAgent('team-a', name),
      ({ status }) => status !== undefined,
    );
    return { name, uid, tool, key: { agentUid: uid, digest: tool.digest } };
  }

  const request = ({ uid, tool }: Awaited<ReturnType<typeof prepare>>, revision = 0) =>
    createPromotionRequests(gateway).publish({ agentUid: uid, digest: tool.digest, session: 's1' }, revision);

  const settled = ({ key }: Pick<Awaited<ReturnType<typeof prepare>>, 'key'>) =>
    pollValue(
      'the end of the promotion',
      async () => (await createPromotionStates(gateway).get(key)).record,
      (record) => record?.state === 'Candidate' || (record !== undefined && 'concluded' in record && record.concluded),
    );

  const objectsOf = async (name: string): Promise<WrittenTool[]> => {
    const all = await apiServer.client.list<WrittenTool>(TYPES.emergentTools, { namespace: 'team-a' }, NEVER_ABORTED);
    return all.filter(({ metadata }) => metadata.labels?.['temper.dev/agent'] === name);
  };

  const decisionsOf = async (uid: string): Promise<string[]> => {
    const records = await createNatsAudit(gateway).all('team-a', 10_000);
    return records.filter(({ facts }) => facts['agentUid'] === uid).map(({ action }) => action);
  };

  it('a tool that passes its re-runs and the panel becomes an object of its agent, and its pod is deleted', async () => {
    const agent = await prepare();
    await request(agent);
    const record = await settled(agent);
    assert.equal(record?.state, 'Promoted', JSON.stringify(record));
    assert.deepEqual(record.figures, {
      tests: 1,
      failedTests: 0,
      reruns: 5,
      successes: 5,
      distinctInputs: 5,
      observedAnswers: 0,
      reportedAnswers: 0,
    });
    const [object, ...others] = await objectsOf(agent.name);
    assert.equal(others.length, 0);
    assert.deepEqual(object?.spec.artifact, agent.tool.artifact);
    const [owner] = object?.metadata.ownerReferences ?? [];
    assert.deepEqual([owner?.uid, owner?.controller], [agent.uid, true]);
    const status = object?.status;
    assert.deepEqual([status?.active, status?.conditions?.[0]?.reason], [true, 'Verified']);
    assert.deepEqual(await decisionsOf(agent.uid), ['tool.promoted']);
    const used = verifiers.served.at(-1);
    const [warm] = await pollValue(
      'the deletion of the used pod, and a new warm one',
      () => apiServer.client.list<Pod>(TYPES.pods, { namespace: RELEASE_NAMESPACE }, NEVER_ABORTED),
      (pods) => pods.length === 1 && pods[0]?.metadata.uid !== used,
    );
    // Uninstalling deletes the account, and Kubernetes then deletes the pod.
    const owners = warm?.metadata.ownerReferences?.map(({ kind, name }) => [kind, name]);
    assert.deepEqual(owners, [['ServiceAccount', RELEASE_OBJECTS.verifierServiceAccount]]);
  });

  it('reported uses of a lying agent pod open a verification, never promote, and lower the level of the agent', async () => {
    const trust = { level: { initial: 'standard' }, decay: { maxErrorPercent: 15 } };
    const agent = await prepare({ models: REVIEWERS, ...trust });
    const tasks = createTaskRecords(gateway, () => ({ reserve: async () => undefined }));
    for (let task = 0; task < 6; task += 1) {
      const end = { session: 's1', outcome: 'completed', deliveries: 1, endedAt: Date.now() } as const;
      await tasks.end(agent.uid, { message: `m-${task}`, ...end });
    }
    // The tool does not do what its pod reported.
    behaviour = honestOutputs(() => ({ result: 'wrong' }));
    await request(agent);
    const record = await settled(agent);
    assert.equal(record?.state, 'Rejected');
    assert.match(record.reason, /contradict the pod of the agent: 1 tests .*, 5 outputs .*; 1 of 1 tests failed/);
    assert.deepEqual(await objectsOf(agent.name), []);
    assert.deepEqual(reviews, [], 'the panel is not asked');
    assert.deepEqual(record.evidence?.contradicted, { tests: 1, uses: 5 });
    const lowered = await pollValue(
      'the level of the agent',
      () => apiServer.getAgent('team-a', agent.name),
      ({ status }) => status?.level === 'restricted',
    );
    assert.match(lowered.status?.trust?.reason ?? '', /6 of the last 12 tasks failed/);
    const recorded = await decisionsOf(agent.uid);
    assert.deepEqual(recorded, ['tool.promotion-refused', 'tool.claims-contradicted', 'trust.lowered']);
    await request(agent, 7);
    await request(agent, 8);
    assert.equal((await settled(agent))?.attempt, record.attempt, 'no attempt during the cool-down');
  });

  it('a verifier that sends outputs of another form, number or verification gives no verdict', async () => {
    const agent = await prepare();
    const lies: Behaviour[] = [
      () => ({ approved: true }),
      (work, pod) => ({ ...(doubled(work, pod) as object), attempt: 'another' }),
      ({ attempt }) => ({ attempt, outputs: [] }),
    ];
    const seen: Json[] = [];
    behaviour = (work, pod) => {
      seen.push(work as unknown as Json);
      return lies[seen.length - 1]?.(work, pod);
    };
    await request(agent);
    const record = await settled(agent);
    assert.equal(record?.state, 'Candidate');
    assert.match(record.missing.join(), /3 verifications ended without a result; .* 0 outputs for 6 cases/);
    assert.doesNotMatch(JSON.stringify(seen), /expectedOutput/);
    assert.deepEqual(await decisionsOf(agent.uid), []);
  });

  /** A recorded call with an answer that only the pod saw. */
  const reported: Partial<ToolUse> = {
    recording: {
      ok: true,
      recording: {
        calls: [
          {
            name: 'file_read',
            input: { path: 'orders.csv' },
            answer: { ok: true, value: 'x'.repeat(200_000) },
            evidence: 'reported',
          },
        ],
      },
    },
  };

  it('answers that only the pod reported carry no promotion, unless the policy allows it, and never to tier Shared', async () => {
    const before = verifiers.served.length;
    const denied = await prepare({ models: REVIEWERS }, 5, reported);
    await request(denied);
    const waiting = await settled(denied);
    assert.equal(waiting?.state, 'Candidate', JSON.stringify(waiting));
    assert.match(
      waiting.missing.join(),
      /0 of 5 .*5 have answers that only the pod reported.*reportedEvidence is Deny/,
    );
    assert.equal(verifiers.served.length, before, 'no pod is assigned');

    const policy = { models: REVIEWERS, promotion: { toAgent: { reportedEvidence: 'Allow' } } };
    const allowed = await prepare(policy, 5, reported);
    const works: string[] = [];
    behaviour = (work, pod) => {
      works.push(JSON.stringify(work));
      return doubled(work, pod);
    };
    await request(allowed);
    const record = await settled(allowed);
    assert.equal(record?.state, 'Promoted', JSON.stringify(record));
    assert.deepEqual([record.figures.observedAnswers, record.figures.reportedAnswers], [0, 5]);
    assert.match(record.note, /recorded answers: 0 observed, 5 reported by the pod/);
    const [work = ''] = works;
    assert.equal(work.split('"file_read"').length - 1, 5, 'the pod gets the recorded answers');
    assert.ok(!work.includes(digestOf({ result: 20 })) && !work.includes('m-10'), 'and no output of a use');
    const conditionsOf = async () => (await objectsOf(allowed.name))[0]?.status?.conditions ?? [];
    const conditions = await pollValue('the refusal of tier Shared', conditionsOf, (all) =>
      all.some(({ type }) => type === 'Shared'),
    );
    const reasons = conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
    assert.ok(reasons.includes('Shareable=False ReportedAnswers'), reasons.join());
    assert.ok(reasons.includes('Shared=False NotShareable'), reasons.join());
  });

  it('a use whose re-run gives another output than the pod reported is a failed re-run', async () => {
    const agent = await prepare({ models: REVIEWERS }, 5, { output: digestOf({ result: 'invented' }) });
    await request(agent);
    const record = await settled(agent);
    assert.equal(record?.state, 'Rejected', JSON.stringify(record));
    assert.match(record.reason, /the success rate is 0 % \(0 of 5\)/);
  });

  for (const forge of Object.keys(WORKED_FORGES)) {
    it(`the worked forge ${forge} reaches tier Agent by re-runs in a sandbox, unless it needs what no gateway carries`, async () => {
      const artifact = await workedForge(forge);
      const uses = await workedUses(forge, artifact, sandbox);
      behaviour = sandboxedOutputs(sandbox);
      const agent = await prepareTool(artifact, uses);
      await request(agent);
      const record = await settled(agent);
      if (forge === 'check_http_status') {
        assert.equal(record?.state, 'Candidate', JSON.stringify(record));
        assert.match(record.missing.join(), /5 have answers that only the pod reported/);
        return;
      }
      assert.equal(record?.state, 'Promoted', JSON.stringify(record));
      const replays = uses.filter(({ recording }) => recording !== undefined).length;
      assert.deepEqual(
        [record.figures.successes, record.figures.observedAnswers, record.figures.reportedAnswers],
        [5, replays, 0],
      );
      const [object] = await objectsOf(agent.name);
      assert.equal(object?.status?.active, true, JSON.stringify(object?.status));
    });
  }

  it('two requests for one tool are one promotion, and a refusal of the panel refuses it', async () => {
    const agent = await prepare();
    panel = { ...unavailablePanel('x'), reasoning: 'hides what it does', code: 'TEMPER_JUDGE_REFUSED' };
    await Promise.all([request(agent, 0), request(agent, 1)]);
    const record = await settled(agent);
    assert.equal(record?.state, 'Rejected');
    assert.match(record.reason, /panel: hides what it does/);
    assert.equal(reviews.length, 1);
    assert.deepEqual(await decisionsOf(agent.uid), ['tool.promotion-refused']);
  });

  for (const [what, policy, uses, missing] of [
    ['without reviewers', {}, 5, /a panel needs two reviewers/],
    [
      'that requires an approval',
      { models: REVIEWERS, promotion: { toAgent: { requireHuman: true } } },
      5,
      /requireHuman/,
    ],
    ['that requires more uses', { models: REVIEWERS }, 4, /4 of 5 successful uses/],
    ['that is suspended', { models: REVIEWERS, suspend: true }, 5, /suspend/],
  ] as const) {
    it(`a request under a policy ${what} names what is missing and assigns no pod`, async () => {
      const before = verifiers.served.length;
      const agent = await prepare(policy, uses);
      await request(agent);
      const record = await settled(agent);
      assert.equal(record?.state, 'Candidate', JSON.stringify(record));
      assert.match(record.missing.join(), missing);
      assert.equal(verifiers.served.length, before);
    });
  }

  it('a promotion goes on after its operator ended and NATS restarted, and ends in one decision', async () => {
    const agent = await prepare();
    behaviour = () => undefined;
    await request(agent);
    const stateOf = async () => (await createPromotionStates(gateway).get(agent.key)).record?.state;
    await pollValue('the verification', stateOf, (state) => state === 'Verifying');
    await stop();
    await nats.server.kill();
    await nats.server.restart();
    panel = undefined;
    behaviour = doubled;
    await start();
    await pollValue('the question to the panel', stateOf, (state) => state === 'PanelReview');
    const [attempt = ''] = await pollValue(
      'the review',
      () => reviews,
      ({ length }) => length > 0,
    );
    await stop();
    await createPromotionStates(gateway).putReview(agent.key, attempt, APPROVING);
    await createPromotionStates(gateway).putReview(agent.key, attempt, unavailablePanel('a later answer'));
    await start();
    assert.equal((await settled(agent))?.state, 'Promoted');
    assert.equal((await objectsOf(agent.name)).length, 1);
    assert.deepEqual(await decisionsOf(agent.uid), ['tool.promoted']);
  });
});
