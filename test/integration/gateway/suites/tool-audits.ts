import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ToolAuditWork } from '../../../../src/gateway-api/pod-api.ts';
import type { ToolAuditOrder } from '../../../../src/gateway-api/verification/tool-audit-schemas.ts';
import type { Digest } from '../../../../src/lib/canonical.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import type { Json } from '../../../../src/lib/json.ts';
import { createVerifications } from '../../../../src/nats/promotion/verifications.ts';
import { openSessionRegistry } from '../../../../src/nats/sessions/session-registry.ts';
import { runAudit } from '../../../../src/pod/verifier/audit.ts';
import { createSupervisor } from '../../../../src/sandbox/supervisor.ts';
import { sessionTool } from '../../../../src/tempering/registry/registered-tool.ts';
import { anAcceptance, anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import type { ModelGatewayFixture, ModelGatewayReplica } from '../../../support/gateway/model-gateway-fixture.ts';
import { NEVER_ABORTED } from '../../../support/stubs.ts';

interface Context {
  fixture: ModelGatewayFixture;
  one: ModelGatewayReplica;
}

const AGENT = 'audited';

/** What gateways do for fresh agents in verifier pods: their work, and their model calls at the cost of the agent. */
export function toolAuditTests(context: () => Context): void {
  it('a fresh agent uses a tool that it has, and misses one that it has not, within its budget and at the cost of the agent', async () => {
    const { fixture, one } = context();
    const agentUid = fixture.setAgent(AGENT, { grants: { tools: ['double'] }, model: { primary: 'replay/fresh' } });
    const artifact = anArtifact();
    // The gateway of this test has no promoted tools, so its session stands for them.
    const caller = { agent: AGENT, namespace: 'team-a', session: 'audit', rootMessage: 'm', authorModel: 'replay/x' };
    const tool = sessionTool(anAcceptance(artifact), caller, new Date().toISOString());
    await openSessionRegistry(await fixture.nats.connect('gateway')).register(agentUid, tool, () => []);
    const operator = createVerifications(await fixture.nats.connect('operator'));
    const order = async (pod: string, withTool: boolean, maxTokens: number): Promise<ToolAuditWork> => {
      const audit = { agentUid, digest: tool.digest, task: 'double 21', withTool, maxTokens };
      const work: ToolAuditOrder = { attempt: `audit-${pod}`, round: 0, audit };
      await operator.assign(pod, 0, work as unknown as Json);
      const answer = await one.call('GET', '/v1/verification', { agent: pod });
      assert.equal(answer.status, 200, answer.text);
      return JSON.parse(answer.text) as ToolAuditWork;
    };
    await using sandbox = await createSupervisor({ clock: systemClock, maxRunners: 1 });
    const run = async (pod: string, work: ToolAuditWork) => {
      const client = await fixture.connect(pod, one);
      return (await runAudit(work, { sandbox, clock: systemClock, client }, NEVER_ABORTED)).run;
    };
    const before = (await fixture.dailyUsage(one, AGENT)).inputTokens;

    const withTool = await order('pod-with', true, 100_000);
    assert.deepEqual(
      withTool.audit.tools.map(({ digest }) => digest),
      [tool.digest],
    );
    const used = await run('pod-with', withTool);
    assert.deepEqual([used.outcome, used.uses, used.turns], ['complete', 1, 2]);
    const withoutTool = await order('pod-without', false, 100_000);
    assert.deepEqual(withoutTool.audit.tools, []);
    const missed = await run('pod-without', withoutTool);
    assert.deepEqual([missed.outcome, missed.uses], ['refusal', 0]);
    assert.ok((await fixture.dailyUsage(one, AGENT)).inputTokens > before, 'the agent is charged');

    const poor = await run('pod-poor', await order('pod-poor', true, 10));
    assert.deepEqual([poor.outcome, poor.tokens], ['TEMPER_QUOTA_EXCEEDED', 0]);
  });

  it('a verifier pod without an audit calls no model, and no result of another form is stored', async () => {
    const { fixture, one } = context();
    const operator = createVerifications(await fixture.nats.connect('operator'));
    const digest = `sha256:${'a'.repeat(64)}` as Digest;
    const tests = { attempt: 'v-1', round: 0, artifact: anArtifact(), dependencies: [], cases: [] };
    await operator.assign('pod-tests', 0, tests as unknown as Json);
    const message = { role: 'user', text: 'hello' };
    const request = { model: 'replay/fresh', system: '', messages: [message], tools: [], maxOutputTokens: 10 };
    for (const [agent, round] of [
      ['pod-tests', 0],
      ['pod-none', 0],
    ] as const) {
      const call = await one.call('POST', '/v1/verification/models/stream', { agent, body: { round, request } });
      assert.equal(call.status, 403, call.text);
    }
    const gone: ToolAuditOrder = {
      attempt: 'audit-gone',
      round: 0,
      audit: { agentUid: 'uid-unknown', digest, task: 'x', withTool: true, maxTokens: 10 },
    };
    await operator.assign('pod-gone', 0, gone as unknown as Json);
    const call = await one.call('POST', '/v1/verification/models/stream', {
      agent: 'pod-gone',
      body: { round: 0, request },
    });
    assert.match(call.text, /TEMPER_AGENT_SUSPENDED/);
    const result = { attempt: 'audit-gone', round: 0, model: 'm', run: { outcome: 'complete', uses: -1 } };
    const sent = await one.call('POST', '/v1/verification/audit', { agent: 'pod-gone', body: result });
    assert.equal(sent.status, 400);
    assert.equal(await operator.outputs('pod-gone', 0), undefined);
  });
}
