import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import { systemClock } from '../../../../src/lib/clock.ts';
import { type ReplayServer, startReplay } from '../../../../src/models/replay/server.ts';
import type { JetStreamConnection } from '../../../../src/nats/connection/connection.ts';
import { QUEUES } from '../../../../src/nats/jetstream/names.ts';
import { createPanelReviews } from '../../../../src/nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../../../src/nats/promotion/promotion-states.ts';
import type { GatewayFixture } from '../../../support/gateway/gateway-fixture.ts';
import { startGatewayProcess } from '../../../support/gateway/gateway-process.ts';
import { reviewerAnswer, reviewModels } from '../../../support/gateway/review-answers.ts';
import { poll, pollValue } from '../../../support/poll.ts';
import { addTool } from '../../../support/promotion/prepared-tool.ts';

/** Walks through the moments of a kill; `make chaos` sets more. */
const TIMES = Number(process.env['KILLS'] ?? 1);
/** Kills come up to this time after both reviewers were asked. */
const MAX_WAIT_MS = 400;
/** Instead of a minute: the server gives the job of a killed gateway to another one after this time. */
const ACK_WAIT_NANOS = 2_000_000_000;

/** A gateway that ends while the two reviewers of a promotion think. */
export function panelKills(open: () => GatewayFixture): void {
  describe('the panel of a promotion', () => {
    let replay: ReplayServer;
    let operator: JetStreamConnection;
    let gateway: JetStreamConnection;
    let tool: Awaited<ReturnType<typeof addTool>>;
    /** The reviewers think until this resolves. */
    let thinking = Promise.withResolvers<void>();

    before(async () => {
      const fixture = open();
      const rule = (model: string) => ({
        when: { model },
        answer: { text: reviewerAnswer(true), delayMilliseconds: 1 },
      });
      const clock = { ...systemClock, sleep: () => thinking.promise };
      replay = await startReplay({ script: { rules: [rule('safety'), rule('correctness')] }, clock });
      const reviewers = ['replay/safety', 'replay/correctness'];
      const forge = { limits: { minTestCases: 1 } };
      await fixture.createPolicy('team-a', 'reviewed', {
        level: { initial: 'restricted' },
        models: { reviewers },
        forge,
      });
      const uid = await fixture.createAgent('team-a', 'reviewed', {
        trustPolicyRef: { name: 'reviewed' },
        forge: { enabled: true, modes: ['Sandbox'] },
      });
      operator = await fixture.nats.connect('operator');
      gateway = await fixture.nats.connect('gateway');
      tool = await addTool(gateway, { name: 'reviewed', uid }, {});
      await shortenAckWait(gateway);
    });
    after(async () => {
      await replay?.[Symbol.asyncDispose]();
    });

    it('a gateway that is killed while it asks the panel is followed by another one, and the first verdict stays', async () => {
      const fixture = open();
      const models = { ...reviewModels(replay.url), judges: { canaryPercent: 0, resumed: [] } };
      const reviews = createPanelReviews(operator);
      const states = createPromotionStates(operator);
      for (let time = 0; time < TIMES; time += 1) {
        const attempt = `killed-${time}`;
        const job = { agentUid: tool.uid, session: 's1', digest: tool.tool.digest, attempt, facts: { tests: 1 } };
        const asked = replay.requests.length;
        thinking = Promise.withResolvers<void>();
        const first = await startGatewayProcess(fixture, { models });
        await reviews.request(job, 0);
        // On a slow machine the server gives the job to the same gateway again, which asks again.
        await poll('a question to each reviewer', () => replay.requests.length >= asked + 2);
        await systemClock.sleep((time * 37) % MAX_WAIT_MS, new AbortController().signal);
        await first.end('SIGKILL');
        thinking.resolve();
        assert.equal(await states.review(tool.key, attempt), undefined, 'killed before the answers');
        await using second = await startGatewayProcess(fixture, { models });
        const verdict = await pollValue(
          'the verdict',
          () => states.review(tool.key, attempt),
          (found) => found !== undefined,
        );
        assert.ok(verdict?.approved, `${verdict?.reasoning}\n${second.output}`);
        await noJobInWork(gateway);
        // On a slow machine it may still ask for a job that it got twice.
        await second.end('SIGTERM');
        const answered = replay.requests.length;
        assert.ok(answered - asked >= 4, 'each reviewer answers each of the two gateways');
        await using _third = await startGatewayProcess(fixture, { models });
        await reviews.request(job, 1);
        await noJobInWork(gateway);
        assert.deepEqual(await states.review(tool.key, attempt), verdict);
        assert.equal(replay.requests.length, answered, 'a repeated request asks no model');
      }
    });
  });
}

async function noJobInWork({ manager: { consumers } }: JetStreamConnection): Promise<void> {
  const { stream, consumer } = QUEUES.panelReviews;
  await poll('no job in work', async () => {
    const { num_pending: pending, num_ack_pending: inWork } = await consumers.info(stream, consumer);
    return pending + inWork === 0;
  });
}

/** Other tests of the server may have created the consumer. */
async function shortenAckWait({ manager: { consumers } }: JetStreamConnection): Promise<void> {
  const { stream, consumer, filter } = QUEUES.panelReviews;
  const config = {
    durable_name: consumer,
    filter_subject: filter,
    deliver_policy: DeliverPolicy.All,
    ack_policy: AckPolicy.Explicit,
    ack_wait: ACK_WAIT_NANOS,
    max_deliver: -1,
    max_ack_pending: 64,
  };
  const exists = await consumers.info(stream, consumer).then(
    () => true,
    () => false,
  );
  if (exists) await consumers.update(stream, consumer, { ack_wait: ACK_WAIT_NANOS });
  else await consumers.add(stream, config);
}
