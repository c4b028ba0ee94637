import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe as suite, it } from 'node:test';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { aTerminal } from '../cluster/api-server.testing.ts';
import { traceLog } from '../../standalone/session-trace.ts';
import { describe } from './describe.ts';
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
    const grants = { spawn: ['child'], network: ['api.example.com'] };
    await records.put('agents', 'analyst', { metadata: { name: 'analyst' }, spec: { grants } });
    const tool = { metadata: { name: 'csv-3f' }, spec: { digest: DIGEST, artifact: { name: 'csv' } } };
    await records.put('tools', 'csv-3f', tool);
    const promotion = { digest: DIGEST, tool: 'csv', to: 'Shared' };
    await records.put('promotions', 'one', { ...promotion, state: 'AwaitingApproval', request: 'csv-k4q7p' });
    const rejected = { state: 'Rejected', reason: 'the panel found a fault', coolDownUntil: '2026-01-02T00:00:00Z' };
    await records.put('promotions', 'two', { ...promotion, to: 'Agent', ...rejected });
    const finding = { input: '{"n":[1]}', got: '{"sum":2}', reason: 'the order of the items changes the output' };
    const checks = [
      { check: 'state', consequence: 'Refuse', cases: 9, disagreements: 0, examples: [] },
      { check: 'order-independence', consequence: 'Refuse', cases: 4, disagreements: 1, examples: [finding] },
    ];
    const report = { digest: DIGEST, claims: [], checks, testers: [], inputs: 40 };
    await records.put('examinations/default', '3f'.repeat(32), report);
    await records.put('promotions', 'other', { ...promotion, digest: 'sha256:00', state: 'Rejected' });
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
    assert.match(strict, /Not In Force:\n {2}- spec\.decay\.idle has no effect yet/);
    assert.match(await described('policy', 'lenient'), /^Judge: +a\/judge; it may judge tools that it wrote itself/m);
    const closed = await described('policy', 'closed');
    assert.match(closed, /^Judge: +<none>; without a judge every forge is refused$/m);
    assert.ok(!closed.includes('Not In Force'));
  });

  it('an agent has the fields that a run does not act on, and not those that only a cluster ignores', async () => {
    const agent = await described('agent', 'analyst');
    assert.match(agent, /Not In Force:\n {2}- this value of spec\.grants\.spawn has no effect yet/);
    assert.ok(!agent.includes('this value of spec.grants.network'));
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
    const tool = await described('tool', 'csv');
    assert.match(tool, /Examination:\n {2}inputs: 40\n/);
    assert.match(tool, /passed:\n +- state\n/);
    assert.match(tool, /check: order-independence\n[^]*reason: the order of the items changes the output/);
  });

  it('a tool has the state of its promotions and what each waits for', async () => {
    const tool = await described('tool', 'csv');
    assert.match(tool, /to: Shared\n +state: AwaitingApproval\n +waitsFor: "?an approver: temper approve csv-k4q7p /);
    assert.match(
      tool,
      /state: Rejected\n +waitsFor: "?valid uses after 2026-01-02T00:00:00Z; rejected: the panel found/,
    );
    assert.equal(tool.split('waitsFor').length, 3);
  });
});
