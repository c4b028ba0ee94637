import assert from 'node:assert/strict';
import { it } from 'node:test';
import { TYPES } from '../../../../src/operator/kube/types.ts';
import type { PreparedTool } from '../../../support/promotion/prepared-tool.ts';
import { doubled, type PromotionFixture } from '../../../support/promotion/promotion-fixture.ts';
import { poll } from '../../../support/poll.ts';
import { NEVER_ABORTED } from '../../../support/stubs.ts';
import { RELEASE_NAMESPACE } from '../../../support/api-server/api-server-fixture.ts';

/** Some steps once; `make chaos` kills after each. */
const TIMES = Number(process.env['KILLS'] ?? 1);
/** Above the number of effects of one promotion. The loop ends at a promotion that ends before the fault. */
const MAX_EFFECTS = 60;
/** The rounds of an examination repeat the same effects; the tests of the reconciler end it at each call. */
const STRIDE = process.env['KILLS'] === undefined ? 3 : 1;

/** Kills at every step of a promotion. */
export function promotionKills(open: () => PromotionFixture): void {
  async function assertPromotedOnce(agent: PreparedTool, during: string): Promise<void> {
    const fixture = open();
    const record = await fixture.settled(agent);
    assert.equal(record?.state, 'Promoted', `${during}: ${JSON.stringify(record)}`);
    const objects = await fixture.objectsOf(agent.name);
    assert.deepEqual(
      objects.map(({ status }) => status?.active),
      [true],
      during,
    );
    // Each verification is examined.
    const decisions = (await fixture.decisionsOf(agent.uid)).filter((action) => action !== 'tool.examined');
    assert.deepEqual(decisions, ['tool.promoted'], during);
  }

  /** A promotion whose operator does something after so many effects. Returns whether that happened before the promotion ended. */
  const settledOr = (agent: PreparedTool, isOver: () => boolean): Promise<unknown> =>
    poll('the fault or the end of the promotion', async () => {
      if (isOver()) return true;
      const record = await open().recordOf(agent);
      return record?.state === 'Promoted' && record.concluded;
    });

  it('an operator that is killed after any of its effects leaves a promotion that ends in one decision', async () => {
    const fixture = open();
    for (let time = 0; time < TIMES; time += 1) {
      let effects = 1;
      await fixture.stop();
      let life = await fixture.start();
      for (; effects < MAX_EFFECTS; effects += STRIDE) {
        const agent = await fixture.prepare();
        life.dieAfter(effects);
        await fixture.request(agent);
        const mortal = life;
        await settledOr(agent, () => mortal.isDead);
        await mortal.disarm();
        await fixture.stop();
        life = await fixture.start();
        await assertPromotedOnce(agent, `killed after effect ${effects}`);
        if (!mortal.isDead) break;
      }
      assert.ok(effects > 8 && effects < MAX_EFFECTS, `${effects - 1} kills`);
    }
  });

  it('NATS that is killed after any effect of the operator loses no promotion and repeats no decision', async () => {
    const fixture = open();
    const { nats } = fixture;
    for (let time = 0; time < TIMES; time += 1) {
      let effects = 1;
      await fixture.stop();
      const life = await fixture.start();
      for (; effects < MAX_EFFECTS; effects += STRIDE) {
        const agent = await fixture.prepare();
        life.after(effects, () => nats.server.kill());
        await fixture.request(agent);
        await settledOr(agent, () => life.hasActed);
        await life.disarm();
        if (!life.hasActed) break;
        await nats.server.restart();
        await assertPromotedOnce(agent, `NATS killed after effect ${effects}`);
      }
      assert.ok(effects > 8 && effects < MAX_EFFECTS, `${effects - 1} kills`);
    }
  });

  it('a verifier pod that ends before or after its outputs does not lose the promotion', async () => {
    const fixture = open();
    const end = (name: string, namespace = RELEASE_NAMESPACE): Promise<unknown> =>
      fixture.apiServer.client.delete(TYPES.pods, { namespace, name }, { gracePeriodSeconds: 0 }, NEVER_ABORTED);
    for (let time = 0; time < TIMES; time += 1) {
      const silent = await fixture.prepare();
      const ended = new Set<string>();
      let ending: Promise<unknown> = Promise.resolve();
      fixture.behaviour = (work, pod) => {
        const { uid = '', name } = pod.metadata;
        if (ended.size > 0 && !ended.has(uid)) return doubled(work, pod);
        if (!ended.has(uid)) ending = end(name);
        ended.add(uid);
        return undefined;
      };
      await fixture.request(silent);
      await assertPromotedOnce(silent, 'a pod that ended with its work');
      const quick = await fixture.prepare();
      let last: string | undefined;
      fixture.behaviour = (work, pod) => {
        if (last === undefined) ending = end((last = pod.metadata.name));
        return doubled(work, pod);
      };
      await fixture.request(quick);
      await assertPromotedOnce(quick, 'a pod that ended with its outputs');
      await ending;
    }
  });
}
