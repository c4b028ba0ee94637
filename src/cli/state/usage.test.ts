import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { openLedgerBook } from '../../ledger/ledger.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { aTerminal } from '../io.testing.ts';
import { stateBreakdown } from '../usage/state-breakdown.ts';
import { sessions } from './sessions.ts';
import { stateUsage } from './usage.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-usage-'));
  const records = fileRecordStore(folder);
  const quotas = { tokensPerHour: 100, costPerDay: '1.00' };
  await records.put('agents', 'lead', { metadata: { name: 'lead' }, spec: { quotas } });
  await records.put('agents', 'far', { metadata: { name: 'far', namespace: 'b' }, spec: { quotas } });
  await records.put('agents', 'idle', { metadata: { name: 'idle' }, spec: {} });
  await records.put('trustpolicies', 'strict', { metadata: { name: 'strict' }, spec: {} });
  const book = await openLedgerBook(records, systemClock);
  for (const name of ['agent/default/lead', 'agent/default/far']) {
    const ledger = book.ledger([{ name, quotas: {}, prefix: '' }]);
    const op = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: name };
    const reserved = await ledger.reserve({ inputTokens: 85, costMicros: 100_000 }, op);
    assert.ok(reserved.granted);
    await ledger.commit(reserved.id, { inputTokens: 85, costMicros: 100_000 });
  }
  await book.close();
});
after(() => rm(folder, { recursive: true, force: true }));

async function printed(output: 'text' | 'json'): Promise<string> {
  const io = aTerminal();
  assert.equal(await stateUsage({ state: folder, output }, io), 0);
  return io.printed();
}

describe('temper usage of a state folder', () => {
  it('each window shows how much of the quotas of the last run is used, and none of an agent of another namespace', async () => {
    const text = await printed('text');
    assert.match(text, /^agent\/default\/lead +hour +85 +0 +\S+ +85 % of tokensPerHour \(nearly used\)$/m);
    assert.match(text, /^agent\/default\/lead +day +85 +0 +\S+ +10 % of costPerDay$/m);
    assert.match(text, /^agent\/default\/far +hour +85 +0 +\S+ +-$/m);
  });

  it('an agent or a policy that exists nowhere is an error that names those that exist, and one without usage is none', async () => {
    const common = { state: folder, output: 'text' } as const;
    await assert.rejects(stateUsage({ ...common, agent: 'laed' }, aTerminal()), {
      code: 'TEMPER_NOT_FOUND',
      message: 'no agents named "laed"; there are: far, idle, lead',
    });
    await assert.rejects(stateUsage({ ...common, policy: 'strcit' }, aTerminal()), {
      code: 'TEMPER_NOT_FOUND',
      message: 'no trust policies named "strcit"; there are: strict',
    });
    const byDay = { ...common, by: 'Day', since: 86_400_000 } as const;
    await assert.rejects(stateBreakdown({ ...byDay, agent: 'laed' }, aTerminal()), { code: 'TEMPER_NOT_FOUND' });
    for (const named of [{ agent: 'idle' }, { policy: 'strict' }]) {
      const io = aTerminal();
      assert.equal(await stateUsage({ ...common, ...named }, io), 0);
      assert.match(io.printed(), /^No usage in /);
    }
    const io = aTerminal();
    assert.equal(await stateBreakdown({ ...byDay, agent: 'idle' }, io), 0);
    assert.match(io.printed(), /^No usage since /);
  });

  it('sessions of an agent that exists nowhere are an error, and those of an agent without sessions an empty answer', async () => {
    const common = { state: folder, output: 'text' } as const;
    await assert.rejects(sessions({ ...common, agent: 'laed' }, aTerminal()), { code: 'TEMPER_NOT_FOUND' });
    const io = aTerminal();
    assert.equal(await sessions({ ...common, agent: 'idle' }, io), 0);
    assert.match(io.printed(), /^No sessions of agent "idle" in /);
  });

  it('JSON has the quotas of each account', async () => {
    const [far, lead] = (await printed('json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(far.quotas, []);
    assert.deepEqual(
      lead.quotas.map(({ field, percent }: { field: string; percent: number }) => [field, percent]),
      [
        ['tokensPerHour', 85],
        ['costPerDay', 10],
      ],
    );
  });
});
