import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe as suite, it } from 'node:test';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { aTerminal } from '../io.testing.ts';
import { traceLog } from '../../standalone/sessions/session-trace.ts';
import { createPromotionStateStore } from '../../tempering/promotion/promotion-state-store.ts';
import { aCaller, anAcceptance, anArtifact, aRegistry, aUse } from '../../tempering/tempering.testing.ts';
import { describe } from './describe.ts';
import { get } from './get.ts';
import { trace } from './trace.ts';

const DIGEST = `sha256:${'3f'.repeat(32)}`;
const POLICY = { models: { judge: 'a/judge' }, decay: { idle: '720h' } };

suite('temper describe in a state folder', () => {
  let state = '';
  before(async () => {
    state = await mkdtemp(join(tmpdir(), 'temper-describe-'));
    const records = fileRecordStore(state);
    await records.put('trustpolicies', 'strict', { metadata: { name: 'strict' }, spec: POLICY });
    const lenient = { models: { judge: 'a/judge', judgeMayBeAuthor: true } };
    await records.put('trustpolicies', 'lenient', { metadata: { name: 'lenient' }, spec: lenient });
    await records.put('trustpolicies', 'closed', { metadata: { name: 'closed' }, spec: {} });
    const grants = { shell: ['ls'], network: ['api.example.com'] };
    await records.put('agents', 'analyst', { metadata: { name: 'analyst' }, spec: { grants } });
  });
  after(() => rm(state, { recursive: true }));

  async function described(...targets: string[]): Promise<string> {
    const io = aTerminal();
    assert.equal(await describe({ targets, state, output: 'text' }, io), 0);
    return io.printed();
  }

  it('a policy has the effect of its judge, and the fields that have no effect', async () => {
    const strict = await described('policy', 'strict');
    assert.match(strict, /^Judge: +a\/judge; it refuses every tool that it wrote itself$/m);
    assert.match(await described('policy', 'lenient'), /^Judge: +a\/judge; it may judge tools that it wrote itself/m);
    const closed = await described('policy', 'closed');
    assert.match(closed, /^Judge: +<none>; without a judge every forge is refused$/m);
    assert.ok(!closed.includes('Not In Force'));
  });

  it('an agent has no fields that only a cluster ignores', async () => {
    assert.ok(!(await described('agent', 'analyst')).includes('Not In Force'));
  });

  it('a session id of two agents is ambiguous, and trace prints the session of the agent that --agent names', async () => {
    const records = fileRecordStore(state);
    for (const agent of ['analyst', 'writer']) {
      const scope = { session: 's-1', agent, namespace: 'default' };
      await records.put('sessions', `default_${agent}_s-1`, { ...scope, openedAt: '2026-01-01T00:00:00Z' });
      const events = [{ type: 'message-received', time: '2026-01-01T00:00:00Z', text: `hello ${agent}` }];
      await records.append(traceLog(scope), { agent, events });
    }
    const choice = /several agents have .*"s-1".*analyst.*writer.*--agent/;
    await assert.rejects(described('session', 's-1'), { code: 'TEMPER_USAGE', message: choice });
    const traced = async (agent?: string): Promise<string> => {
      const io = aTerminal();
      await trace({ session: 's-1', state, output: 'text', ...(agent === undefined ? {} : { agent }) }, io);
      return io.printed();
    };
    await assert.rejects(traced(), { code: 'TEMPER_USAGE', message: /a session "s-1": .*Choose one with --agent/ });
    const writer = await traced('writer');
    assert.match(writer, /You: hello writer/);
    assert.ok(!writer.includes('hello analyst'));
  });

  it('a tool has the findings of its examination with their cases, and the names of the checks that it passed', async () => {
    const records = fileRecordStore(state);
    const tool = { metadata: { name: 'csv-3f' }, spec: { digest: DIGEST, artifact: { name: 'csv' } } };
    await records.put('tools', 'csv-3f', tool);
    const finding = { input: '{"n":[1]}', got: '{"sum":2}', reason: 'the order of the items changes the output' };
    const checks = [
      { check: 'state', consequence: 'Refuse', cases: 9, disagreements: 0, examples: [] },
      { check: 'order-independence', consequence: 'Refuse', cases: 4, disagreements: 1, examples: [finding] },
    ];
    await records.put('examinations/default', '3f'.repeat(32), {
      digest: DIGEST,
      claims: [],
      checks,
      testers: [],
      inputs: 40,
    });
    const text = await described('tool', 'csv');
    assert.match(text, /Examination:\n {2}inputs: 40\n/);
    assert.match(text, /passed:\n +- state\n/);
    assert.match(text, /check: order-independence\n[^]*reason: the order of the items changes the output/);
    await records.delete('tools', 'csv-3f');
  });

  it('an empty list and an unknown name are said with the words of the kinds', async () => {
    const empty: readonly [string, string][] = [
      ['requests', 'No approval requests in '],
      ['rejected', 'No rejected tools in '],
    ];
    for (const [kind, text] of empty) {
      const io = aTerminal();
      assert.equal(await get({ targets: [kind], state, output: 'text' }, io), 0);
      assert.ok(io.printed().startsWith(text), io.printed());
    }
    await assert.rejects(get({ targets: ['rejected', 'x'], state, output: 'text' }, aTerminal()), {
      message: 'no rejected tools named "x"; there are none',
    });
  });

  it('a tool that is not promoted yet has its state, the reason and the next step', async () => {
    const records = fileRecordStore(state);
    const artifact = anArtifact();
    const registry = await aRegistry(records);
    await registry.register(anAcceptance(artifact), aCaller());
    await records.put('sessions', 'team-a_analyst_s-1', { session: 's-1', agent: 'analyst', namespace: 'team-a' });
    assert.match(
      await described('tool', 'double'),
      /state: Candidate\n +reason: "?0 of 5 successful uses; 0 of 3 distinct/,
    );
    for (const value of [1, 2, 3, 4, 5]) {
      const recording = { ok: false, reason: 'ContainsSecret' } as const;
      await registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${value}`, recording }));
    }
    const secret = await described('tool', 'double');
    assert.match(secret, /notStored:\n +- 5 had a secret in an argument or an answer/);
    assert.match(secret, /reason: "?0 of 5 recorded uses that a re-run can repeat: 5 had a secret/);
    assert.match(secret, /nextStep: "?use it where its calls can be recorded/);
    const call = { name: 'file_read', input: {}, answer: { ok: true, value: 1 }, evidence: 'reported' } as const;
    for (const value of [1, 2, 3, 4, 5]) {
      const recording = { ok: true as const, recording: { calls: [call] } };
      const reported = { rootMessage: `m-${value}`, recording, evidence: 'reported' as const };
      await registry.recordUse(aUse(artifact, { value }, reported));
    }
    const denied = await described('tool', 'double');
    assert.match(denied, /withReportedAnswers: 5/);
    assert.match(denied, /5 have answers that only the pod reported, and TrustPolicy spec.*reportedEvidence is Deny/);
    await records.put('agents', 'analyst', {
      metadata: { name: 'analyst' },
      spec: { trustPolicyRef: { name: 'open' } },
    });
    const open = { promotion: { toAgent: { reportedEvidence: 'Allow' } } };
    await records.put('trustpolicies', 'open', { metadata: { name: 'open' }, spec: open });
    assert.match(await described('tool', 'double'), /reason: "?its uses suffice"?\n +nextStep: "?the next valid use/);
  });

  it('a tool in cool-down has its end, and one that waits for an approval has the command', async () => {
    const records = fileRecordStore(state);
    const { digest } = anAcceptance();
    const store = createPromotionStateStore(records);
    const subject = { digest, tool: 'double', agent: 'analyst', namespace: 'team-a', to: 'Agent' } as const;
    const coolDownUntil = '2999-01-02T00:00:00.000Z';
    await store.write({ ...subject, state: 'Rejected', reason: 'the panel found a fault', coolDownUntil });
    const rejected = await described('tool', 'double');
    assert.match(
      rejected,
      /reason: "?the panel found a fault"?\n +nextStep: "?a valid use after the cool-down, which ends at 2999/,
    );
    await store.write({ ...subject, state: 'AwaitingApproval', request: 'double-k4q7p', nonce: 'n', verdicts: [] });
    assert.match(await described('tool', 'double'), /nextStep: "?temper approve double-k4q7p --reason/);
    await store.write({ ...subject, state: 'Candidate', missing: ['TEMPER_SANDBOX_UNAVAILABLE: no memory'] });
    assert.match(await described('tool', 'double'), /reason: "?TEMPER_SANDBOX_UNAVAILABLE: no memory/);
  });
});
