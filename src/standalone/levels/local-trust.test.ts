import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy, TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { MAX_TASK_RECORDS } from '../../api/v1alpha1/trust/strategy.ts';
import type { AuditRecord } from '../../audit/port.ts';
import type { Engine } from '../../engine/engine.ts';
import { TemperError } from '../../lib/errors.ts';
import { type JsonObject, textAt } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { anAgentSpec } from '../../policy/policy.testing.ts';
import { storeDecision } from '../stored-decision.ts';
import { localTaskRecords, localTasks, rateTask, recordTask } from './local-tasks.ts';
import { evaluateLocalTrust } from './local-trust.ts';
import { LocalTaskRecorder } from './task-recorder.ts';

const FORGED = `sha256:${'a'.repeat(64)}` as const;
const NOW = new Date('2026-11-22T12:00:00Z');
const OWN = { name: 'analyst', namespace: 'team-a' };
const WEIGHTED: TrustPolicySpec = { strategy: { type: 'Weighted', minTasks: 3, minRatings: 3 } };
let recorded = 0;

function aTask(change: object = {}) {
  const id = `msg-${String((recorded += 1)).padStart(6, '0')}`;
  return {
    id,
    session: 's-1',
    outcome: 'completed' as const,
    endedAt: NOW.getTime() - 60_000,
    categories: [],
    tools: [],
    ...change,
  };
}

async function evaluate(records: RecordStore, policySpec: TrustPolicySpec, agentSpec = anAgentSpec(), now = NOW) {
  const agent = { metadata: { ...OWN }, spec: agentSpec } as Agent;
  const policy = { metadata: { name: 'standard' }, spec: policySpec } as TrustPolicy;
  const trust = await evaluateLocalTrust({ records, agent, policy, namespace: OWN.namespace, now });
  const audited: AuditRecord[] = [];
  const ids = { next: (prefix: string) => `${prefix}-${(recorded += 1)}` };
  await trust.store({ append: async (record) => void audited.push(record) }, ids);
  return { level: trust.levels.level, audited: audited.map(({ action }) => action) };
}

async function ratedTasks(records: RecordStore): Promise<void> {
  for (let count = 0; count < 5; count += 1) {
    const task = aTask();
    await recordTask(records, OWN, task);
    await rateTask(records, OWN, task.id, { rating: 9 });
  }
}

async function requests(records: RecordStore): Promise<{ name: string; to: string; decision: string }[]> {
  const all = await records.list('approvalrequests');
  return all.map(({ name, value }) => ({
    name,
    to: textAt(value, ['spec', 'to']),
    decision: textAt(value, ['status', 'decision']),
  }));
}

async function decide(records: RecordStore, verb: 'Approve' | 'Deny', target: string): Promise<void> {
  const decision = { id: 'd-1', verb, target, reason: 'seen', by: 'user/alice', time: NOW.toISOString() };
  await storeDecision(records, decision);
}

describe('the level of an agent in a state folder', () => {
  it('an agent rises by rated tasks, one level per run, and the chain has each change', async () => {
    const records = memoryRecordStore();
    assert.deepEqual(await evaluate(records, WEIGHTED), { level: 'sandboxed', audited: [] });
    await ratedTasks(records);
    assert.deepEqual(await evaluate(records, WEIGHTED), { level: 'restricted', audited: ['trust.raised'] });
    assert.deepEqual(await evaluate(records, WEIGHTED), { level: 'standard', audited: ['trust.raised'] });
    assert.deepEqual(await evaluate(records, WEIGHTED), { level: 'standard', audited: [] });
    const edited = { ...WEIGHTED, level: { ceiling: 'restricted' } };
    assert.equal((await evaluate(records, edited)).level, 'restricted');
    assert.equal((await evaluate(records, { level: { initial: 'sandboxed' } })).level, 'sandboxed');
  });

  it('a rating outside its range, and a document of another form, do not count', async () => {
    const records = memoryRecordStore();
    const task = aTask();
    await recordTask(records, OWN, task);
    await records.put('ratings/team-a/analyst', task.id, { rating: 1_000 });
    await records.put('tasks/team-a/analyst', 'msg-broken', { outcome: 'perfect' });
    assert.deepEqual(
      (await localTaskRecords(records, OWN)).map(({ rating }) => rating),
      [undefined],
    );
  });

  it('the oldest tasks are removed with their ratings', async () => {
    const records = memoryRecordStore();
    const first = aTask();
    await recordTask(records, OWN, first);
    await rateTask(records, OWN, first.id, { rating: 9 });
    for (let count = 0; count < MAX_TASK_RECORDS; count += 1) await recordTask(records, OWN, aTask());
    assert.equal((await localTasks(records, OWN)).length, MAX_TASK_RECORDS);
    assert.deepEqual(await records.list('ratings/team-a/analyst'), []);
  });
});

describe('a level that an approver decides, in a state folder', () => {
  const ASKS: TrustPolicySpec = {
    strategy: { type: 'Weighted', minTasks: 3, minRatings: 3, requireHuman: ['restricted'] },
    level: { ceiling: 'restricted' },
  };

  it('the rise is requested once, applied after its approval, and withdrawn by an edit that needs another approval', async () => {
    const records = memoryRecordStore();
    await ratedTasks(records);
    assert.deepEqual(await evaluate(records, ASKS), { level: 'sandboxed', audited: [] });
    assert.deepEqual(await evaluate(records, ASKS), { level: 'sandboxed', audited: [] });
    const [first, ...others] = await requests(records);
    assert.deepEqual([first?.to, first?.decision, others], ['restricted', '', []]);
    await decide(records, 'Approve', first?.name ?? '');
    assert.deepEqual(await evaluate(records, ASKS), { level: 'restricted', audited: ['trust.approved'] });
    assert.deepEqual(await evaluate(records, ASKS), { level: 'restricted', audited: [] });
    const edited = { ...ASKS, description: 'Another version.' };
    assert.deepEqual(await evaluate(records, edited), { level: 'sandboxed', audited: ['trust.withdrawn'] });
    // The earlier version comes back: its approval was used.
    assert.deepEqual(await evaluate(records, ASKS), { level: 'sandboxed', audited: [] });
    assert.deepEqual((await requests(records)).find(({ name }) => name === first?.name)?.decision, '');
    assert.deepEqual(await records.list('approvals'), []);
  });

  it('a denied rise is not requested again, and a request that no longer applies expires', async () => {
    const records = memoryRecordStore();
    await ratedTasks(records);
    await evaluate(records, ASKS);
    const [asked] = await requests(records);
    await decide(records, 'Deny', asked?.name ?? '');
    await evaluate(records, ASKS);
    assert.deepEqual(await requests(records), [{ ...asked, decision: 'Deny' }]);
    const edited = { ...ASKS, description: 'Another version.' };
    await evaluate(records, edited);
    await evaluate(records, WEIGHTED);
    assert.deepEqual((await requests(records)).map(({ decision }) => decision).toSorted(), ['Deny', 'Expired']);
  });

  it('the timeout of the policy denies a rise, which is not requested again before a spec changes', async () => {
    const asks: TrustPolicySpec = { ...ASKS, approvals: { timeout: '1h', onTimeout: 'Deny' } };
    const later = (hours: number) => new Date(NOW.getTime() + hours * 3_600_000);
    const records = memoryRecordStore();
    await ratedTasks(records);
    await evaluate(records, asks);
    const [asked] = await requests(records);
    assert.deepEqual(await evaluate(records, asks, anAgentSpec(), later(0.5)), { level: 'sandboxed', audited: [] });
    const denied = { level: 'sandboxed', audited: ['approval.decided'] };
    assert.deepEqual(await evaluate(records, asks, anAgentSpec(), later(1)), denied);
    await decide(records, 'Approve', asked?.name ?? '');
    assert.deepEqual(await evaluate(records, asks, anAgentSpec(), later(2)), { level: 'sandboxed', audited: [] });
    assert.deepEqual(await requests(records), [{ ...asked, decision: 'Expired' }]);
    const edited = { ...asks, description: 'Another version.' };
    await evaluate(records, edited, anAgentSpec(), later(3));
    assert.equal((await requests(records)).filter(({ decision }) => decision === '').length, 1);
  });

  it('a rise that was approved before its timeout is applied after it', async () => {
    const asks: TrustPolicySpec = { ...ASKS, approvals: { timeout: '1h', onTimeout: 'Deny' } };
    const records = memoryRecordStore();
    await ratedTasks(records);
    await evaluate(records, asks);
    const [asked] = await requests(records);
    await decide(records, 'Approve', asked?.name ?? '');
    const { level } = await evaluate(records, asks, anAgentSpec(), new Date(NOW.getTime() + 7_200_000));
    assert.equal(level, 'restricted');
  });

  it('an approval of another nonce or of another level raises nothing', async () => {
    const records = memoryRecordStore();
    await ratedTasks(records);
    await evaluate(records, ASKS);
    const [asked] = await requests(records);
    const name = asked?.name ?? '';
    await decide(records, 'Approve', name);
    const approval = (await records.get('approvals', name)) as { spec: JsonObject };
    await records.put('approvals', name, { ...approval, spec: { ...approval.spec, nonce: 'another' } });
    assert.equal((await evaluate(records, ASKS)).level, 'sandboxed');
    await records.put('approvals', name, { ...approval, spec: { ...approval.spec, subject: { trust: {} } } });
    assert.equal((await evaluate(records, ASKS)).level, 'sandboxed');
  });
});

describe('the recorder of tasks', () => {
  const op = { signal: new AbortController().signal, deadline: Number.POSITIVE_INFINITY, key: 'k' };
  const clock = { now: () => NOW } as never;

  async function outcomesOf(handle: () => Promise<unknown>) {
    const records = memoryRecordStore();
    const ids = { next: (prefix: string) => `${prefix}-${(recorded += 1)}` };
    const recorder = new LocalTaskRecorder({ records, clock, ids, agent: OWN });
    const engine = recorder.recorded({
      handle: async () => {
        const result = { id: '1', milliseconds: 1, summary: '' };
        recorder.called('database', 's-1');
        recorder.called('mcp', 's-other');
        recorder.observe({ type: 'tool-result', tool: 'invoke', ok: true, ...result }, 's-1');
        recorder.observe({ type: 'tool-result', tool: 'agent_send', ok: true, ...result }, 's-1');
        recorder.used(FORGED, 's-1');
        return handle();
      },
    } as unknown as Engine);
    await engine.handle({ session: 's-1', text: 'x' }, op).catch(() => undefined);
    return (await localTasks(records, OWN)).map(({ outcome, categories, tools }) => [outcome, ...categories, ...tools]);
  }

  it('an answered message is a completed task with the categories of its tools, the code that it ran, and its forged tools', async () => {
    const outcomes = await outcomesOf(async () => ({ finishReason: 'complete' }));
    assert.deepEqual(outcomes, [['completed', 'database', 'code_execution', FORGED]]);
  });

  it('a cut answer and an error are failures, a missing quota is none, and a parked turn has not ended', async () => {
    assert.equal((await outcomesOf(async () => ({ finishReason: 'truncated' })))[0]?.[0], 'failed');
    const fail = (code: 'TEMPER_TURN_LIMIT' | 'TEMPER_QUOTA_EXCEEDED') => async () => {
      throw new TemperError(code, 'x');
    };
    assert.equal((await outcomesOf(fail('TEMPER_TURN_LIMIT')))[0]?.[0], 'failed');
    assert.equal((await outcomesOf(fail('TEMPER_QUOTA_EXCEEDED')))[0]?.[0], 'excused');
    assert.deepEqual(await outcomesOf(async () => ({ finishReason: 'complete', parked: ['r'] })), []);
  });
});
