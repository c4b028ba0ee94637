import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validateObject } from '../api/manifests.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { randomIds } from '../lib/ids.ts';
import { member, textAt } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import { memoryRecords } from '../lib/records.ts';
import type { Ask } from '../tools/approvals.ts';
import { type ApprovalRules, createFileApprovals, expireAbandoned } from './approvals.ts';
import { applyDecisions, type PersonDecision, submitDecision } from './decisions.ts';

function anOp(milliseconds = 5_000): Op {
  return { signal: new AbortController().signal, deadline: systemClock.monotonic() + milliseconds, key: 'k' };
}

const ask: Ask = {
  type: 'ToolCall',
  agent: 'analyst',
  tool: 'deploy_site',
  subject: 'sha256:x',
  binding: { call: { tool: 'deploy_site', argumentsDigest: `sha256:${'0'.repeat(64)}`, callId: 'call-1' } },
  risk: 'high',
  reason: 'a person decides',
};

function aHouse(rules: ApprovalRules = { onTimeout: 'Wait' }) {
  const records = memoryRecords();
  const deps = { records, clock: systemClock, ids: randomIds };
  return { records, deps, approvals: createFileApprovals({ ...deps, rules }) };
}

function said(target: string, verb: PersonDecision['verb']): PersonDecision {
  return { id: 'd-1', verb, target, reason: 'looked at it', by: 'person/kim', time: '2026-01-01T00:00:00.000Z' };
}

describe('approvals in the state folder', () => {
  it('wait for a person and take the answer', async () => {
    const { approvals, records } = aHouse();
    const id = await approvals.request(ask);
    const waiting = approvals.decided(id, anOp());
    await approvals.decide(said(id, 'Approve'));
    assert.deepEqual(await waiting, { decision: 'Approve', by: 'person/kim', reason: 'looked at it' });
    const request = await records.get('approvalrequests', id);
    assert.equal(member(member(request, 'status'), 'decision'), 'Approve');
  });

  it('remember a decision made before anyone waited, and keep the first one', async () => {
    const { approvals } = aHouse();
    const id = await approvals.request(ask);
    await approvals.decide(said(id, 'Deny'));
    await approvals.decide(said(id, 'Approve'));
    assert.equal((await approvals.decided(id, anOp())).decision, 'Deny');
  });

  it('make one request of one ask, and another of other arguments', async () => {
    const { approvals } = aHouse();
    const first = await approvals.request(ask);
    assert.equal(await approvals.request(ask), first);
    assert.notEqual(await approvals.request({ ...ask, subject: 'sha256:y' }), first);
  });

  it('let at most five wait for one agent', async () => {
    const { approvals } = aHouse();
    for (let index = 0; index < 5; index += 1) await approvals.request({ ...ask, subject: `sha256:${index}` });
    await assert.rejects(approvals.request({ ...ask, subject: 'sha256:more' }), (error) =>
      isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
    await approvals.request({ ...ask, agent: 'other', subject: 'sha256:more' });
  });

  it('take silence for no only where the policy says so', async () => {
    const strict = aHouse({ onTimeout: 'Deny', timeoutMilliseconds: 20 });
    const id = await strict.approvals.request(ask);
    await assert.rejects(strict.approvals.decided(id, anOp()), (error) =>
      isTemperError(error, 'TEMPER_APPROVAL_TIMEOUT'),
    );
    const patient = aHouse({ onTimeout: 'Wait', timeoutMilliseconds: 20 });
    const other = await patient.approvals.request(ask);
    const waiting = patient.approvals.decided(other, anOp());
    await systemClock.sleep(60, new AbortController().signal);
    await patient.approvals.decide(said(other, 'Approve'));
    assert.equal((await waiting).decision, 'Approve');
  });
});

describe('what is kept of a request and its answer', () => {
  it('are the objects their kinds describe', async () => {
    const { approvals, records } = aHouse();
    const id = await approvals.request(ask);
    const binding = { promotion: { tool: 'csv_rows', digest: `sha256:${'1'.repeat(64)}`, tier: 'Shared' as const } };
    const other = await approvals.request({ ...ask, type: 'PromoteTool', subject: 'sha256:p', binding });
    await approvals.decide(said(id, 'Approve'));
    await approvals.decide(said(other, 'Deny'));
    for (const collection of ['approvalrequests', 'approvals']) {
      const all = await records.list(collection);
      assert.equal(all.length, 2);
      for (const { value } of all) assert.deepEqual(validateObject(value), [], JSON.stringify(value));
    }
  });
});

describe('a request nobody waits for any more', () => {
  it('is expired and takes nobody else’s place, but a promotion goes on waiting', async () => {
    const { approvals, records } = aHouse();
    const call = await approvals.request(ask);
    const promotion = await approvals.request({ ...ask, type: 'PromoteTool', subject: 'sha256:p' });
    await expireAbandoned(records);
    assert.equal(textAt(await records.get('approvalrequests', call), ['status', 'decision']), 'Expired');
    assert.equal(textAt(await records.get('approvalrequests', promotion), ['status', 'decision'], 'none'), 'none');
    for (let index = 0; index < 4; index += 1) await approvals.request({ ...ask, subject: `sha256:${index}` });
  });

  it('is expired when its caller withdraws', async () => {
    const { approvals, records } = aHouse();
    const id = await approvals.request(ask);
    const controller = new AbortController();
    const waiting = approvals.decided(id, { ...anOp(), signal: controller.signal });
    controller.abort(new Error('enough'));
    await assert.rejects(waiting);
    assert.equal(textAt(await records.get('approvalrequests', id), ['status', 'decision']), 'Expired');
  });
});

describe('decisions from another terminal', () => {
  it('are applied once, oldest first, and then gone', async () => {
    const { records, deps } = aHouse();
    await submitDecision(records, { verb: 'Demote', target: 'csv_rows', reason: 'wrong' }, deps);
    await submitDecision(records, { verb: 'Approve', target: 'x', reason: 'fine' }, deps);
    const seen: string[] = [];
    const apply = async (decision: PersonDecision): Promise<void> => {
      seen.push(decision.verb);
      assert.match(decision.by, /^person\/./);
    };
    await applyDecisions(records, apply);
    await applyDecisions(records, apply);
    assert.deepEqual(seen.sort(), ['Approve', 'Demote']);
  });

  it('are not held up by a file that is none', async () => {
    const { records, deps } = aHouse();
    await records.put('decisions', 'decision-0', { verb: 'Explode' });
    await submitDecision(records, { verb: 'Approve', target: 'x', reason: 'fine' }, deps);
    const [seen, problems]: [string[], string[]] = [[], []];
    const apply = async ({ verb }: PersonDecision): Promise<void> => void seen.push(verb);
    for (let round = 0; round < 2; round += 1) await applyDecisions(records, apply, ({ code }) => problems.push(code));
    assert.deepEqual(seen, ['Approve']);
    assert.deepEqual(problems, ['TEMPER_STATE_CORRUPT'], 'told once');
    assert.deepEqual(await records.get('decisions-invalid', 'decision-0'), { verb: 'Explode' });
  });

  it('are kept when applying them fails', async () => {
    const { records, deps } = aHouse();
    await submitDecision(records, { verb: 'Demote', target: 'csv_rows', reason: 'wrong' }, deps);
    await assert.rejects(applyDecisions(records, () => Promise.reject(new Error('disk full'))));
    assert.equal((await records.list('decisions')).length, 1);
  });
});
