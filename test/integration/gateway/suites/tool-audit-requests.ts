import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ToolAuditState } from '../../../../src/gateway-api/user-api.ts';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import { createToolAuditStore } from '../../../../src/nats/promotion/tool-audits.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { agentToolName } from '../../../../src/operator/promotion/tool-object.ts';
import { artifactDigest } from '../../../../src/tempering/registry/serialization.ts';
import { AGENTS, type MessageClient, parsed } from '../../../support/gateway/message-client.ts';
import { pollValue } from '../../../support/poll.ts';

const RUN = { outcome: 'complete', uses: 1, toolCalls: 1, turns: 2, tokens: 300 };

export function toolAuditRequestTests(open: () => MessageClient): void {
  it('a user starts one audit of a tool at a time and follows it, a pod and other tools are refused', async () => {
    const messages = open();
    const { fixture, one, other, userToken } = messages;
    const agent = await messages.createReadyAgent('audited');
    const artifact = anArtifact();
    const digest = artifactDigest(artifact);
    const name = agentToolName({ namespace: 'team-a', name: 'audited' }, artifact.name, digest);
    const objects = '/apis/temper.dev/v1alpha1/namespaces/team-a/emergenttools';
    const owner = {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Agent',
      name: 'audited',
      uid: agent.uid,
      controller: true,
    };
    await fixture.create(objects, {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'EmergentTool',
      metadata: { name, namespace: 'team-a', labels: { 'temper.dev/agent': 'audited' }, ownerReferences: [owner] },
      spec: { artifact, digest, tier: 'Agent', contributors: ['agent/audited'] },
    });
    await fixture.patchStatus(`${objects}/${name}`, { active: true });
    const path = `${AGENTS}/audited/tool-audits`;
    const start = (key: string, body: object = {}) =>
      one.call('POST', path, {
        userToken,
        key,
        body: { tool: 'double', tasks: ['double 21'], maxTokens: 20_000, ...body },
      });
    const started = await pollValue(
      'the gateway to know the tool',
      () => start('first'),
      ({ status }) => status === 200,
    );
    const state = parsed(started) as ToolAuditState;
    assert.deepEqual([state.state, state.digest, state.sessions, state.runs], ['Requested', digest, 2, []]);
    assert.deepEqual(parsed(await start('first')), state, 'a repeated request starts nothing');
    const second = await start('second');
    assert.deepEqual([second.status, /TEMPER_TOOL_AUDIT_IN_PROGRESS/.test(second.text)], [409, true]);
    assert.equal((await start('third', { tool: 'other' })).status, 404);
    assert.match((await start('third', { maxTokens: 100 })).text, /TEMPER_REQUEST_INVALID.*set 2000 or more/);
    const body = { tool: 'double', tasks: ['x'], maxTokens: 20_000 };
    assert.equal((await one.call('POST', path, { token: agent.token, key: 'pod', body })).status, 401);

    const store = createToolAuditStore(await fixture.nats.connect('operator'));
    const stored = await store.get(agent.uid, digest);
    assert.ok(stored);
    const following = other.call('GET', `${path}/${encodeURIComponent(digest)}?wait=20&runs=0`, { userToken });
    const running = { ...stored.audit, state: 'Running' as const, model: 'replay/fresh', runs: [RUN] };
    const revision = await store.write(running, stored.revision);
    const progress = parsed(await following) as ToolAuditState;
    assert.deepEqual([progress.state, progress.runs, progress.tasks], ['Running', [RUN], []]);
    await store.write({ ...running, state: 'Completed', runs: [RUN, { ...RUN, uses: 0 }] }, revision ?? 0);
    const ended = parsed(
      await other.call('GET', `${path}/${encodeURIComponent(digest)}?wait=20&runs=1`, { userToken }),
    ) as ToolAuditState;
    assert.deepEqual([ended.state, ended.evidence, ended.tasks.length], ['Completed', 'Compared', 1]);
    assert.equal((await start('second')).status, 200, 'the next audit may start');
    const records = await createNatsAudit(await fixture.nats.connect('gateway')).all('team-a', 1_000);
    const requested = records.filter(({ action, subject }) => action === 'tool.audit-requested' && subject === digest);
    assert.equal(requested.length, 2);
  });
}
