import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { AuditAlarm } from './audit-alarm.ts';

function setup() {
  const state = { subjects: {} as Record<string, number> };
  const connection = {
    request: (work: () => Promise<unknown>) => work(),
    limitBulk: (work: () => Promise<unknown>) => work(),
    manager: { streams: { info: async () => ({ state }) } },
  } as unknown as JetStreamConnection;
  const ratios: number[] = [];
  const errors: unknown[] = [];
  const alarm = new AuditAlarm(
    { error: (fields: unknown) => errors.push(fields) } as never,
    { gauge: (_name: string, _labels: object, value: number) => ratios.push(value) } as never,
  );
  const check = async (subjects: Record<string, number>): Promise<void> => {
    state.subjects = subjects;
    await alarm.checkNamespaces(connection);
  };
  return { alarm, check, ratios, errors };
}

describe('the alarm of the operator for evidence of decisions', () => {
  it('the log names a namespace with nearly all of its records once, and again after it had fewer', async () => {
    const { check, ratios, errors } = setup();
    const [few, nearly] = [{ 'temper.audit.a': 10_000 }, { 'temper.audit.a': 160_000, 'temper.audit.b': 50_000 }];
    for (const counts of [{}, few, nearly, nearly, few, nearly]) await check(counts);
    assert.deepEqual(ratios, [0, 0.05, 0.8, 0.8, 0.05, 0.8]);
    const named = { namespace: 'a', records: 160_000, maxRecords: 200_000 };
    assert.deepEqual(errors, [named, named]);
  });
  it('the log has one error while the stream is nearly full', () => {
    const { alarm, errors } = setup();
    for (const bytes of [79, 80, 90, 10, 80]) alarm.checkStream({ bytes, maxBytes: 100 });
    assert.deepEqual(errors, [
      { bytes: 80, maxBytes: 100 },
      { bytes: 80, maxBytes: 100 },
    ]);
  });
});
