import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createIds } from '../../lib/ids.ts';
import { TemperError } from '../../lib/errors.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { ConnectionReport } from '../authorizer.ts';
import { ConnectionReporter } from './connection-reporter.ts';
import type { OpenConnection } from './open-connection.ts';
import { DEFAULT_LIMITS, OpenConnections } from './open-connections.ts';

const log = createLogger({ level: 'silent', destination: { write: () => true }, secrets: createSecretRedactor() });
const OWNER = { caller: 'Pod', agentUid: 'uid-1', remainingMs: 1e9 } as const;
const REQUEST = { deliveryToken: 'd1.x.y', address: '10.0.0.7', host: 'api.example.com', port: 443 };

/** Reports with a clock that the test moves. `answer` is called for each report. */
function setup(answer: (reports: readonly ConnectionReport[]) => Promise<[]>) {
  const clock = new FakeClock();
  const ids = createIds(() => 0, Math.random);
  const connections = new OpenConnections({ limits: DEFAULT_LIMITS, ids, onReportDue: () => reporter.due() });
  const reporter = new ConnectionReporter({ clock, log, connections, authorizer: { report: answer } });
  const open = (): OpenConnection => connections.open(OWNER, REQUEST);
  return { clock, connections, reporter, open };
}

describe('the reports of connections', () => {
  it('every connection is reported at the interval, in batches, and with the bytes since the last report', async () => {
    const batches: number[][] = [];
    const { clock, connections, reporter, open } = setup(async (reports) => {
      batches.push(reports.map(({ bytes }) => bytes));
      return [];
    });
    const all = Array.from({ length: 20 }, open);
    const [first] = all;
    assert.equal(first?.count('sent', 7), undefined);
    const stop = new AbortController();
    const running = reporter.run(stop.signal);
    await clock.advance(100);
    assert.deepEqual(batches, [[7, ...Array.from({ length: 19 }, () => 0)]]);
    assert.equal(first?.count('received', 5), undefined);
    for (const connection of all) connections.close(connection);
    await clock.advance(1_600);
    assert.deepEqual(batches.slice(1), [[5]]);
    stop.abort();
    await running;
  });

  it('without connections a report still says whether a gateway answers', async () => {
    let isBroken = true;
    const sizes: number[] = [];
    const { clock, reporter } = setup(async (reports) => {
      sizes.push(reports.length);
      if (isBroken) throw new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'it cannot be reached');
      return [];
    });
    const stop = new AbortController();
    assert.equal(reporter.hasGateway, false);
    const running = reporter.run(stop.signal);
    await clock.advance(100);
    assert.equal(reporter.hasGateway, false);
    isBroken = false;
    await clock.advance(500);
    assert.equal(reporter.hasGateway, true);
    isBroken = true;
    await clock.advance(1_600);
    assert.equal(reporter.hasGateway, false);
    assert.deepEqual(sizes, [0, 0, 0]);
    stop.abort();
    await running;
  });

  it('bytes of a failed report are reported again, and all connections end when none succeeds for four seconds', async () => {
    let isBroken = true;
    const seen: number[] = [];
    const { clock, connections, reporter, open } = setup(async (reports) => {
      seen.push(...reports.map(({ bytes }) => bytes));
      if (isBroken) throw new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'it cannot be reached');
      return [];
    });
    const connection = open();
    void connection.count('sent', 7);
    const stop = new AbortController();
    const running = reporter.run(stop.signal);
    await clock.advance(1_100);
    assert.deepEqual(seen, [7, 7, 7]);
    await clock.advance(2_800);
    assert.equal(connection.signal.aborted, false);
    await clock.advance(100);
    assert.equal(connection.signal.aborted, true);
    assert.equal((connection.signal.reason as TemperError).code, 'TEMPER_GATEWAY_UNAVAILABLE');
    connections.close(connection);
    isBroken = false;
    await clock.advance(600);
    assert.deepEqual([seen.at(-1), connections.reportable.length], [7, 0]);
    stop.abort();
    await running;
  });
});
