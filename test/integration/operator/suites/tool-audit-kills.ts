import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ToolAuditOrder } from '../../../../src/gateway-api/verification/tool-audit-schemas.ts';
import type { Json } from '../../../../src/lib/json.ts';
import { createToolAuditStore, hasEnded, type ToolAudit } from '../../../../src/nats/promotion/tool-audits.ts';
import { poll, pollValue } from '../../../support/poll.ts';
import type { PreparedTool } from '../../../support/promotion/prepared-tool.ts';
import type { PromotionFixture } from '../../../support/promotion/promotion-fixture.ts';

/** `make chaos` sets more, and kills after each effect. */
const TIMES = Number(process.env['KILLS'] ?? 1);
/** Above the number of effects of one audit. The loop ends at an audit that ends before the fault. */
const MAX_EFFECTS = 30;
const STRIDE = process.env['KILLS'] === undefined ? 3 : 1;
const RUN = { outcome: 'complete', uses: 1, toolCalls: 1, turns: 2, tokens: 300 };

/** Kills at every step of an audit of a tool by fresh agents. */
export function toolAuditKills(open: () => PromotionFixture): void {
  function anAudit(id: string, { uid, name, tool }: PreparedTool): ToolAudit {
    const time = new Date().toISOString();
    return {
      id,
      agent: { uid, name, namespace: 'team-a' },
      tool: tool.artifact.name,
      digest: tool.digest,
      tasks: ['double 21'],
      maxTokens: 10_000,
      requestedAt: time,
      since: time,
      state: 'Requested',
      runs: [],
    };
  }

  it('an operator that is killed after any of its effects leaves an audit with each session and its record once', async () => {
    const fixture = open();
    const store = createToolAuditStore(fixture.gateway);
    const agent = await fixture.prepare();
    await fixture.request(agent);
    assert.equal((await fixture.settled(agent))?.state, 'Promoted');
    await fixture.inService(agent.name);
    const sessions: string[] = [];
    fixture.behaviour = (work) => {
      const { attempt, round, audit } = work as unknown as ToolAuditOrder;
      sessions.push(`${attempt} ${round} ${audit.withTool}`);
      const run = { ...RUN, uses: audit.withTool ? 1 : 0 };
      return { attempt, round, model: 'replay/fresh', run } as unknown as Json;
    };
    const stored = () => store.get(agent.uid, agent.tool.digest);
    let audits = 0;
    await fixture.stop();
    let life = await fixture.start();
    for (let time = 0; time < TIMES; time += 1) {
      let effects = 1;
      for (; effects < MAX_EFFECTS; effects += STRIDE) {
        audits += 1;
        const id = `audit-${audits}`;
        const mortal = life;
        mortal.dieAfter(effects);
        await store.write(anAudit(id, agent), (await stored())?.revision ?? 0);
        const isOver = async () => mortal.isDead || hasEnded((await stored())?.audit ?? assert.fail());
        await poll('the fault or the end of the audit', isOver);
        await mortal.disarm();
        await fixture.stop();
        life = await fixture.start();
        const ended = await pollValue(
          'the end of the audit',
          stored,
          (found) => found !== undefined && hasEnded(found.audit),
        );
        const during = `killed after effect ${effects}: ${JSON.stringify(ended)}`;
        assert.deepEqual([ended?.audit.id, ended?.audit.state], [id, 'Completed'], during);
        assert.deepEqual(
          ended?.audit.runs.map(({ uses }) => uses),
          [1, 0],
          during,
        );
        const own = sessions.filter((session) => session.startsWith(`${id} `));
        assert.deepEqual(own, [`${id} 0 true`, `${id} 1 false`], during);
        const records = (await fixture.decisionsOf(agent.uid)).filter((action) => action.startsWith('tool.audit'));
        assert.deepEqual(
          records,
          Array.from({ length: audits }, () => 'tool.audited'),
          during,
        );
        if (!mortal.isDead) break;
      }
      assert.ok(effects > 5 && effects < MAX_EFFECTS, `${effects - 1} kills`);
    }
  });
}
