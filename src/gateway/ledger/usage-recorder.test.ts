import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UsageEntry } from '../../ledger/usage/usage-entry.ts';
import { TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { ResolvedModel } from '../../models/pipeline.ts';
import type { UsagePart } from '../../nats/tasks/usage-parts.ts';
import type { AgentState } from '../agent-state.ts';
import { createUsageRecorder } from './usage-recorder.ts';

const LEAD = { uid: 'u-lead', agent: { metadata: { name: 'lead' } }, ancestors: [] } as unknown as AgentState;
const CHILD = { uid: 'u-one', agent: { metadata: { name: 'lead-one' } }, ancestors: [LEAD] } as unknown as AgentState;
const PRICE = { inputPrice: 1, outputPrice: 3 } as unknown as ResolvedModel['price'];
const model = (id: string): ResolvedModel =>
  ({ id, provider: 'p', model: id, price: PRICE, contextTokens: 1 }) as ResolvedModel;
const used = (costMicros: number) => ({ inputTokens: 10, outputTokens: 2, costMicros });

interface Written extends UsagePart {
  entries: readonly UsageEntry[];
  before: number;
}

function aRecorder(write: (part: UsagePart) => void = () => undefined) {
  const clock = new FakeClock('2026-05-04T23:59:00Z');
  const writes: Written[] = [];
  const errors: unknown[] = [];
  let ids = 0;
  const recorder = createUsageRecorder({
    clock,
    ids: { next: (prefix) => `${prefix}-${(ids += 1)}` },
    onError: (error) => errors.push(error),
    parts: {
      async write(part, entries, before) {
        write(part);
        const { teamUid, kind, day, id } = part;
        writes.push({ teamUid, kind, day, id, entries, before });
        return 100 * entries.length;
      },
    },
  });
  return { clock, recorder, writes, errors };
}

describe('the recorder of usage', () => {
  it('calls of a tree are recorded with the agent at its top, by day and by root message', async () => {
    const { recorder, writes } = aRecorder();
    recorder.of(LEAD, 'm-1')(model('p/x'), used(5));
    recorder.of(CHILD, 'm-1')(model('p/y'), used(7));
    recorder.of(CHILD, undefined)(model('p/y'), used(1));
    await recorder.flush();
    const seen = writes.map(({ teamUid, kind, day, entries }) => [
      teamUid,
      kind,
      day,
      entries.map(({ agent, root, costMicros }) => [agent, root, costMicros]),
    ]);
    assert.deepEqual(seen, [
      [
        'u-lead',
        'days',
        '2026-05-04',
        [
          ['lead', undefined, 5],
          ['lead-one', undefined, 8],
        ],
      ],
      [
        'u-lead',
        'roots',
        '2026-05-04',
        [
          ['lead', 'm-1', 5],
          ['lead-one', 'm-1', 7],
        ],
      ],
    ]);
    await recorder.flush();
    assert.equal(writes.length, 2, 'what has not changed is not stored again');
    await recorder[Symbol.asyncDispose]();
  });

  it('a part that is full is followed by another one, and so is a day', async () => {
    const { clock, recorder, writes } = aRecorder();
    for (let index = 0; index < 30; index += 1) recorder.of(LEAD, undefined)(model(`p/m${index}`), used(1));
    await clock.advance(60_000);
    recorder.of(LEAD, undefined)(model('p/m0'), used(1));
    await recorder.flush();
    const sizes = new Map(writes.map(({ id, day, entries }) => [id, `${day} ${entries.length}`]));
    assert.deepEqual([...sizes.values()], ['2026-05-04 24', '2026-05-04 6', '2026-05-05 1']);
    await recorder[Symbol.asyncDispose]();
  });

  it('a part that could not be stored is stored with the next round, also with what came meanwhile', async () => {
    let fails = true;
    const { recorder, writes, errors } = aRecorder(() => {
      if (fails) throw new Error('away');
    });
    const charge = recorder.of(LEAD, undefined);
    charge(model('p/x'), used(5));
    await recorder.flush();
    assert.equal(errors.length, 1);
    fails = false;
    charge(model('p/x'), used(2));
    await recorder.flush();
    charge(model('p/x'), used(1));
    await recorder[Symbol.asyncDispose]();
    assert.deepEqual(
      writes.map(({ entries: [entry], before }) => [entry?.calls, entry?.costMicros, before]),
      [
        [2, 7, 0],
        [3, 8, 100],
      ],
    );
  });

  it('usage of a deleted agent is given up', async () => {
    const { recorder, writes, errors } = aRecorder(() => {
      throw new TemperError('TEMPER_NOT_FOUND', 'gone');
    });
    recorder.of(LEAD, undefined)(model('p/x'), used(5));
    await recorder.flush();
    await recorder[Symbol.asyncDispose]();
    assert.deepEqual([writes, errors], [[], []]);
  });
});
