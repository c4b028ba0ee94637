import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../../src/api/v1alpha1/emergenttool.ts';
import { subjects } from '../../../../src/nats/jetstream/names.ts';
import { notify } from '../../../../src/nats/notify/notifications.ts';
import { createPanelReviews, type ReviewJob } from '../../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../../../src/nats/promotion/promotion-states.ts';
import { ALICE, type ApprovalsFixture, promotionOf } from '../../../support/operator/approvals-fixture.ts';
import { prepareTool, requestPromotion } from '../../../support/promotion/prepared-tool.ts';
import { APPROVING, REVIEWERS } from '../../../support/promotion/promotion-fixture.ts';
import { poll } from '../../../support/poll.ts';

/** Tier Agent with the approval of a user, under the admission policies of the chart. */
export function agentApprovalTests(open: () => ApprovalsFixture): void {
  it('a promotion to tier Agent waits for a user, who reads the tool in the request and approves it', async () => {
    const fixture = open();
    const { gateway } = fixture;
    const stopping = new AbortController();
    const review = async (job: ReviewJob): Promise<void> => {
      await createPromotionStates(gateway).putReview(job, job.attempt, APPROVING);
      notify(gateway, subjects.notifyPromotions());
    };
    const reviewing = createPanelReviews(gateway).consume(review, stopping.signal, () => undefined);
    try {
      const policy = { models: REVIEWERS, promotion: { toAgent: { requireHuman: true } } };
      const prepared = await prepareTool(fixture, 'supervised', { policy });
      const { artifact } = prepared.tool;
      await requestPromotion(gateway, prepared);
      const { spec, metadata } = await poll('the request for tier Agent', async () => {
        const requests = await fixture.list<ApprovalRequest>('approvalRequests');
        return requests.find((request) => request.spec.agent.uid === prepared.uid);
      });
      assert.deepEqual([spec.from, spec.to], ['Session', 'Agent']);
      assert.deepEqual(spec.review?.artifact, artifact);
      const objects = async () => (await fixture.list<EmergentTool>('emergentTools')).filter(isOwn);
      const isOwn = ({ metadata: { labels } }: { metadata: { labels?: Readonly<Record<string, string>> } }) =>
        labels?.['temper.dev/agent'] === 'supervised';
      assert.deepEqual(await objects(), [], 'no object before the decision');
      await fixture.approve(ALICE, promotionOf(artifact, 'Agent'), spec.nonce, 'supervised-alice');
      const tool = await poll('the object of tier Agent', async () =>
        (await objects()).find(({ status }) => status?.active === true),
      );
      assert.deepEqual([tool.spec.tier, tool.spec.artifact], ['Agent', artifact]);
      await fixture.reason('approvalrequests', metadata.name, 'Decided', 'Approved');
    } finally {
      stopping.abort();
      await reviewing;
    }
  });
}
