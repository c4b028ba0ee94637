import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import type { AuditRecord } from '../../../audit/port.ts';
import { TemperError } from '../../../lib/errors.ts';
import { FakeClock } from '../../../lib/fake-clock.testing.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../../telemetry/prometheus.ts';
import { createSecretRedactor } from '../../../telemetry/secret-redactor.ts';
import { GATEWAY_METRICS } from '../../../telemetry/temper-metrics.ts';
import type { RequestContext } from '../request-context.ts';
import { type EndedResponse, RefusedCallers } from './refused-callers.ts';

const LIMITED = { status: 429, code: 'TEMPER_RATE_LIMITED' } as const;

function setup(append?: () => Promise<number>) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const records: { record: AuditRecord; once: string | undefined }[] = [];
  const registry = createRegistry();
  const refused = new RefusedCallers({
    clock,
    log: createLogger({
      level: 'info',
      destination: { write: (line) => lines.push(line) },
      secrets: createSecretRedactor(),
    }),
    metrics: registerMetrics(registry, GATEWAY_METRICS),
    audit: {
      append: async (_source, record, once) => {
        records.push({ record, once });
        return (await append?.()) ?? 0;
      },
    },
  });
  /** How many of so many refused requests the log has one by one. */
  const logged = (
    context: RequestContext,
    count: number,
    response: Partial<EndedResponse> & { status: number } = LIMITED,
  ) =>
    Array.from({ length: count }, () => refused.count(context, { code: undefined, ...response })).filter(Boolean)
      .length;
  return { clock, lines, records, logged, page: () => registry.metrics() };
}

const BASE: RequestContext = { address: '10.0.0.1', disconnected: NEVER_ABORTED, logFields: {} };
const agent: RequestContext = {
  ...BASE,
  pod: { kind: 'pod', namespace: 'team-a', podName: 'p', podUid: 'p', agent: 'flooder', agentUid: 'u-1' },
};

describe('RefusedCallers', () => {
  it('an agent that is refused a hundred times in a minute is named once in log, metrics and audit stream', async () => {
    const { lines, records, logged, page } = setup();
    assert.equal(logged(agent, 99), 99);
    assert.deepEqual([lines.length, records.length], [0, 0]);
    assert.equal(logged(agent, 400), 1);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /"agent":"flooder".*"refused":100.*"code":"TEMPER_RATE_LIMITED"/);
    const facts = { refusedPerMinute: 100, code: 'TEMPER_RATE_LIMITED' };
    const record = { action: 'agent.refused', actor: 'agent/flooder', evidence: 'observed', subject: 'flooder', facts };
    assert.deepEqual(records, [{ record, once: 'refused/u-1/0' }]);
    assert.match(await page(), /^temper_callers_refused_total\{caller="pod"\} 1$/m);
  });

  it('records of the same half hour have the same key, so that the stream stores one', () => {
    const { clock, records, logged } = setup();
    for (let minute = 0; minute < 60; minute += 10) {
      logged(agent, 100);
      clock.skip(10 * 60_000);
    }
    assert.deepEqual(
      records.map(({ once }) => once),
      [0, 0, 0, 1, 1, 1].map((interval) => `refused/u-1/${interval}`),
    );
  });

  it('an address without a valid token has a line and a metric, and no record', async () => {
    const { lines, records, logged, page } = setup();
    assert.equal(logged(BASE, 150, { status: 404, code: 'TEMPER_NOT_FOUND' }), 100);
    assert.match(lines[0] ?? '', /"address":"10\.0\.0\.1"/);
    assert.deepEqual(records, []);
    assert.match(await page(), /^temper_callers_refused_total\{caller="address"\} 1$/m);
  });

  it('what an agent asks for in its work is no refusal, and neither is a defect of the gateway', () => {
    const { lines, logged } = setup();
    for (const status of [200, 404, 409, 410, 500, 503]) assert.equal(logged(agent, 150, { status }), 150);
    assert.deepEqual(lines, []);
  });

  it('a record that cannot be stored is a warning', async () => {
    const failure = new TemperError('TEMPER_BUS_FULL', 'the stream is full');
    const { lines, logged } = setup(() => Promise.reject(failure));
    logged(agent, 100);
    await new Promise(setImmediate);
    assert.match(lines[1] ?? '', /the refusals of an agent were not recorded/);
  });
});
