import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../../src/api/v1alpha1/emergenttool.ts';
import { subjects } from '../../../../src/nats/jetstream/names.ts';
import { notify } from '../../../../src/nats/notify/notifications.ts';
import { createPanelReviews, type ReviewJob } from '../../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../../../src/nats/promotion/promotion-states.ts';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import {
  ALICE,
  type ApprovalsFixture,
  NAMESPACE,
  promotionOf,
  sharedNameOf,
} from '../../../support/operator/approvals-fixture.ts';
import { type PreparedChange, prepareTool, requestPromotion } from '../../../support/promotion/prepared-tool.ts';
import { APPROVING, REVIEWERS } from '../../../support/promotion/promotion-fixture.ts';
import { poll, pollValue } from '../../../support/poll.ts';

/** No other tool of the namespace has this member, so the examination compares the tool with none of those that double a number too. */
const CHANGE: PreparedChange = {
  artifact: {
    inputSchema:
      '{"properties":{"unit":{"type":"string"},"value":{"type":"number"}},"required":["unit","value"],"type":"object"}',
    tests: [{ input: '{"unit":"m","value":2}', expectedOutput: '{"result":4}' }],
  },
  use: (index) => ({ input: { unit: 'm', value: index + 10 } }),
};
const POLICY = { models: REVIEWERS, promotion: { toAgent: { requireHuman: true } } };

/** Tier Agent with the approval of a user, under the admission policies of the chart. */
export function agentApprovalTests(open: () => ApprovalsFixture): void {
  const stopping = new AbortController();
  let reviewing: Promise<void> | undefined;

  before(() => {
    const { gateway } = open();
    const review = async (job: ReviewJob): Promise<void> => {
      await createPromotionStates(gateway).putReview(job, job.attempt, APPROVING);
      notify(gateway, subjects.notifyPromotions());
    };
    reviewing = createPanelReviews(gateway).consume(review, stopping.signal, () => undefined);
  });
  after(async () => {
    stopping.abort();
    await reviewing;
  });

  /** A tool of a new agent whose promotion waits for a user. */
  async function waiting(agent: string, approvals: object = {}) {
    const fixture = open();
    const policy = { ...POLICY, approvals };
    const prepared = await prepareTool(fixture, agent, { policy, change: CHANGE });
    await requestPromotion(fixture.gateway, prepared);
    const request = await poll('the request for tier Agent', async () => {
      const requests = await fixture.list<ApprovalRequest>('approvalRequests');
      return requests.find(({ spec }) => spec.agent.uid === prepared.uid);
    });
    const objects = async () =>
      (await fixture.list<EmergentTool>('emergentTools')).filter(
        ({ metadata: { labels } }: { metadata: { labels?: Readonly<Record<string, string>> } }) =>
          labels?.['temper.dev/agent'] === agent,
      );
    const active = () =>
      poll('the object of tier Agent', async () => (await objects()).find(({ status }) => status?.active === true));
    return { ...prepared, artifact: prepared.tool.artifact, request, objects, active };
  }

  it('a promotion to tier Agent waits for a user, who reads the tool in the request and approves it', async () => {
    const fixture = open();
    const { artifact, request, objects, active } = await waiting('supervised');
    const { spec, metadata } = request;
    assert.deepEqual([spec.from, spec.to], ['Session', 'Agent']);
    assert.deepEqual(spec.review?.artifact, artifact);
    assert.deepEqual(
      spec.review.verdicts?.map(({ model, approved }) => [model, approved]),
      REVIEWERS.reviewers.map((model) => [model, true]),
    );
    assert.deepEqual(await objects(), [], 'no object before the decision');
    await fixture.approve(ALICE, promotionOf(artifact, 'Agent'), spec.nonce, 'supervised-alice');
    const tool = await active();
    assert.deepEqual([tool.spec.tier, tool.spec.artifact], ['Agent', artifact]);
    await fixture.reason('approvalrequests', metadata.name, 'Decided', 'Approved');
  });

  it('a promotion that no user decides in time is denied by the policy, and an Approval that comes later has no effect', async () => {
    const fixture = open();
    const approvals = {
      timeout: '4s',
      onTimeout: 'Deny',
      byRisk: [{ risk: 'medium', timeout: '1h', onTimeout: 'Approve' }],
      escalation: [{ after: '1s', to: ['group:oncall'] }],
    };
    const { artifact, request, objects, key, uid } = await waiting('unattended', approvals);
    const { name } = request.metadata;
    assert.equal(request.spec.onTimeout, 'Deny');
    await fixture.reason('approvalrequests', name, 'Decided', 'TimedOut');
    const denied = await fixture.read<ApprovalRequest>('approvalrequests', name);
    const { decision, decidedBy, announcedSteps } = denied?.status ?? {};
    assert.deepEqual([decision, decidedBy, announcedSteps], ['Expired', 'policy', 1]);
    const states = createPromotionStates(fixture.gateway);
    const { record } = await pollValue(
      'the end of the promotion',
      () => states.get(key),
      (found) => found.record?.state === 'Rejected' && found.record.concluded,
    );
    assert.ok(record?.state === 'Rejected' && Date.parse(record.notBefore) > Date.now(), JSON.stringify(record));
    const late = await fixture.approve(ALICE, promotionOf(artifact, 'Agent'), request.spec.nonce, 'unattended-late');
    await fixture.reason('approvals', late, 'Effective', 'RequestTimedOut');
    assert.deepEqual(await objects(), []);
    assert.equal((await states.get(key)).record?.state, 'Rejected');
    const records = await createNatsAudit(fixture.gateway).all(NAMESPACE, 10_000);
    const decided = records.filter(({ action, facts }) => action === 'approval.decided' && facts['request'] === name);
    assert.deepEqual(
      decided.map(({ actor, evidence, facts }) => [actor, evidence, facts['decision']]),
      [['policy', 'observed', 'Expired']],
    );
    const events = await fixture.list<{ involvedObject: { uid: string }; reason: string; count?: number }>('events');
    const steps = events.filter((one) => one.involvedObject.uid === uid && one.reason === 'ApprovalEscalated');
    assert.deepEqual(
      steps.map(({ count = 1 }) => count),
      [1],
    );
  });

  it('requests that are pending when NATS loses its store have their effect after the approval', async () => {
    const fixture = open();
    const { artifact, request, objects, active, key, uid } = await waiting('storeless');
    const other = anArtifact('shared_after_the_loss');
    await fixture.agentTool(other);
    const toShared = await poll('the request for tier Shared', async () =>
      (await fixture.list<ApprovalRequest>('approvalRequests')).find(
        ({ spec }) => spec.subject.promotion?.tool === other.name,
      ),
    );
    await fixture.nats.loseStore();
    await fixture.approve(ALICE, promotionOf(artifact, 'Agent'), request.spec.nonce, 'storeless-alice');
    await fixture.approve(ALICE, promotionOf(other), toShared.spec.nonce, 'other-alice');
    assert.deepEqual(await objects(), []);
    await fixture.nats.server.restart();
    const tool = await active();
    assert.deepEqual([tool.spec.tier, tool.spec.artifact], ['Agent', artifact]);
    await fixture.reason('emergenttools', sharedNameOf(other), 'Active', 'Approved');
    const states = createPromotionStates(fixture.gateway);
    const { record } = await pollValue(
      'the end of the promotion',
      () => states.get(key),
      (found) => found.record?.state === 'Promoted' && found.record.concluded,
    );
    assert.deepEqual(record?.restored, { request: request.metadata.name, tainted: false });
    const records = (await createNatsAudit(fixture.gateway).all(NAMESPACE, 10_000)).filter(
      ({ action, facts }) => action === 'tool.promoted' && facts['agentUid'] === uid,
    );
    assert.equal(records.length, 1);
  });
}
