import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { toCounts } from '../../../src/ledger/account.ts';
import { windowStart } from '../../../src/ledger/windows.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import type { AccountReport, SharedLedger } from '../../../src/nats/ledger/ledger.ts';
import { ACCOUNT, spendUntilDenied, openLedgerOver } from '../../support/nats/ledger-load.ts';
import { startNatsFixture, STORE_BYTES, type NatsFixture } from '../../support/nats/nats-fixture.ts';
import { callOptions } from '../../support/call-options.ts';
import { clockAt } from '../../support/clocks.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

function tokensOf({ windows }: AccountReport, window: 'hour' | 'day' | 'month' = 'day'): number {
  const { inputTokens, outputTokens } = windows[window].spent;
  return inputTokens + outputTokens;
}

const allLedgers: SharedLedger[] = [];
/** Closes ledgers that a failed test left open. */
after(() => closeAll(allLedgers));

async function ledgers(bus: NatsFixture, count: number): Promise<SharedLedger[]> {
  const opened = await Promise.all(
    Array.from({ length: count }, async () => openLedgerOver(await bus.connect('gateway'))),
  );
  allLedgers.push(...opened);
  return opened;
}

async function closeAll(opened: readonly SharedLedger[]): Promise<void> {
  for (const ledger of opened) await ledger.close();
}

describe('the ledger that gateways share', () => {
  it('eight gateways together stay within the limit, and the report equals the committed tokens', async () => {
    await using bus = await startNatsFixture();
    const opened = await ledgers(bus, 8);
    const limit = 1_000_000;
    const results = await Promise.all(
      opened.map((ledger) => spendUntilDenied(ledger, { limit, maxReservations: 100, parallel: 4 })),
    );
    const settled = results.reduce((sum, result) => sum + result.settled, 0);
    const reservations = results.reduce((sum, result) => sum + result.reservations, 0);
    const contention = opened.map((ledger) => ledger.contention());
    assert.ok(settled <= limit, `${settled} of ${limit}`);
    assert.ok(settled > limit * 0.9, 'over 90 % of the limit is used');
    assert.ok(
      results.some(({ denials }) => denials.length > 0),
      'the limit was reached',
    );
    const changes = contention.reduce((sum, one) => sum + one.changes, 0);
    assert.ok(changes < reservations, `${changes} writes for ${reservations} reservations`);
    assert.ok(
      contention.every(({ maxConflicts: mostConflicts }) => mostConflicts < 64),
      JSON.stringify(contention),
    );
    await closeAll(opened);
    const report = await opened[0]?.report(ACCOUNT);
    assert.ok(report);
    assert.deepEqual(
      [tokensOf(report, 'hour'), tokensOf(report), tokensOf(report, 'month')],
      [settled, settled, settled],
    );
    assert.equal(report.windows.day.held.tokens, 0);
  });

  it('the report includes committed tokens that are not yet in the shared counters', async () => {
    await using bus = await startNatsFixture();
    const [gateway] = await ledgers(bus, 1);
    assert.ok(gateway !== undefined);
    const ledger = gateway.ledger([{ name: ACCOUNT, quotas: { tokensPerDay: 200_000 }, prefix: '' }]);
    let settled = 0;
    const spending = (async () => {
      for (let times = 0; times < 300; times += 1) {
        const answer = await ledger.reserve({ inputTokens: 500 }, callOptions());
        assert.ok(answer.granted);
        await ledger.commit(answer.id, { inputTokens: 500 });
        settled += 500;
        await sleep(1);
      }
    })();
    for (let last = -1; last < 300 * 500; ) {
      const before = settled;
      last = tokensOf(await gateway.report(ACCOUNT));
      assert.ok(last >= before, `${last} of ${before}`);
    }
    await spending;
  });

  it('a denial names the quota and the time at which it resets', async () => {
    await using bus = await startNatsFixture();
    const [gateway] = await ledgers(bus, 1);
    assert.ok(gateway);
    const ledger = gateway.ledger([
      { name: 'agent/uid-1', quotas: {}, prefix: 'spec.quotas.' },
      { name: ACCOUNT, quotas: { tokensPerDay: 1_000 }, prefix: 'TrustPolicy "standard" spec.quotas.' },
    ]);
    const first = await ledger.reserve({ inputTokens: 600 }, callOptions());
    assert.ok(first.granted);
    const denied = await ledger.reserve({ inputTokens: 600 }, callOptions());
    assert.ok(!denied.granted);
    const tomorrow = new Date();
    tomorrow.setUTCHours(24, 0, 0, 0);
    assert.deepEqual(
      { ...denied, used: denied.used >= 600 && denied.used <= 1_000 },
      {
        granted: false,
        quota: 'TrustPolicy "standard" spec.quotas.tokensPerDay',
        limit: 1_000,
        used: true,
        resumesAt: tomorrow.toISOString(),
      },
    );
    await ledger.commit(first.id, { inputTokens: 10 });
    assert.ok((await ledger.reserve({ inputTokens: 600 }, callOptions())).granted, 'unused tokens are available again');
    await closeAll([gateway]);
  });

  it('a repeated idempotency key reserves once', async () => {
    await using bus = await startNatsFixture();
    const [gateway] = await ledgers(bus, 1);
    assert.ok(gateway);
    const ledger = gateway.ledger([{ name: 'agent/uid-1', quotas: {}, prefix: 'spec.quotas.' }]);
    const op = callOptions();
    const [one, two] = await Promise.all([
      ledger.reserve({ inputTokens: 5 }, op),
      ledger.reserve({ inputTokens: 5 }, op),
    ]);
    assert.deepEqual(one, two);
    await closeAll([gateway]);
  });

  it('no gateway counts tool calls, so a limit per minute does not grow with the number of gateways', async () => {
    await using bus = await startNatsFixture();
    const gateways = await ledgers(bus, 2);
    const holder = { name: 'agent/uid-1', quotas: { toolCallsPerMinute: 1 }, prefix: 'spec.quotas.' };
    for (const gateway of gateways) {
      const ledger = gateway.ledger([holder]);
      await assert.rejects(ledger.reserve({ toolCalls: 1 }, callOptions()), /counted in the pod/);
      for (let call = 0; call < 2; call += 1) {
        const reservation = await ledger.reserve({ inputTokens: 5 }, callOptions());
        assert.ok(reservation.granted, 'a model call is not a tool call');
        await ledger.commit(reservation.id, { inputTokens: 1 });
      }
    }
    await closeAll(gateways);
  });

  it('a killed gateway is charged at least its commits and at most its allocations', async () => {
    await using bus = await startNatsFixture();
    const [gateway] = await ledgers(bus, 1);
    assert.ok(gateway);
    const limit = 20_000_000;
    const child = startLoadProcess(bus, limit, 100_000);
    const seen = { granted: 0, settled: 0, lines: 0 };
    await new Promise<void>((resolve) => {
      child.lines.on('line', (line) => {
        const [what, tokens] = line.split(' ');
        if (what === 'granted') seen.granted += Number(tokens);
        if (what === 'settled') seen.settled += Number(tokens);
        seen.lines += 1;
        if (seen.lines > 300) resolve();
      });
    });
    child.process.kill('SIGKILL');
    await once(child.process, 'exit');
    const usage = await gateway.ledger([{ name: ACCOUNT, quotas: {}, prefix: '' }]).usage();
    const charged = usage.day.inputTokens + usage.day.outputTokens;
    assert.ok(charged >= seen.settled, `${charged} charged, ${seen.settled} settled`);
    assert.ok(charged <= seen.granted + 2 * 312_500, `${charged} charged, ${seen.granted} granted`);
    await closeAll([gateway]);
  });

  it('a charge is counted exactly once when nats-server is killed', async () => {
    await using bus = await startNatsFixture();
    const opened = await ledgers(bus, 4);
    const limit = 40_000_000;
    const working = opened.map((ledger) => spendUntilDenied(ledger, { limit, maxReservations: 400, parallel: 4 }));
    for (let kills = 0; kills < 2; kills += 1) {
      await sleep(400);
      await bus.server.kill();
      await sleep(100);
      await bus.server.restart();
    }
    const results = await Promise.all(working);
    const settled = results.reduce((sum, result) => sum + result.settled, 0);
    assert.ok(
      results.every(({ denials }) => denials.length === 0),
      'no reservation was denied',
    );
    await closeAll(opened);
    const report = await opened[0]?.report(ACCOUNT);
    assert.ok(report);
    assert.equal(tokensOf(report), settled);
    assert.equal(report.windows.day.held.tokens, 0);
  });

  it('lost counters restart from the recorded spend and add in-flight commits', async () => {
    await using bus = await startNatsFixture();
    const [gateway, other] = await ledgers(bus, 2);
    assert.ok(gateway && other);
    const today = windowStart('day', Date.now());
    const written = { inputTokens: 0 };
    const opening = () => [{ window: 'day' as const, start: today, spent: toCounts(written) }];
    const account = (of: SharedLedger) =>
      of.ledger([{ name: ACCOUNT, quotas: { tokensPerDay: 100_000 }, prefix: '', initialSpend: opening }]);
    const inFlight = await account(gateway).reserve({ inputTokens: 10_000 }, callOptions());
    assert.ok(inFlight.granted);
    await bus.loseStore();
    await bus.server.restart();
    await reconcileTopology(await bus.connect('operator'), { storeBytes: STORE_BYTES });
    written.inputTokens = 90_000;
    await using later = openLedgerOver(await bus.connect('gateway'));
    assert.equal((await account(later).reserve({ inputTokens: 20_000 }, callOptions())).granted, false);
    await account(gateway).commit(inFlight.id, { inputTokens: 9_000 });
    await gateway.close();
    const { windows } = await later.report(ACCOUNT);
    assert.deepEqual([windows.day.spent.inputTokens, windows.day.held.tokens], [99_000, 0]);
    await closeAll([gateway, other]);
  });

  it('a reservation fails when the ledger is unreachable until its deadline', async () => {
    await using bus = await startNatsFixture();
    const [gateway] = await ledgers(bus, 1);
    assert.ok(gateway);
    await bus.server.kill();
    const ledger = gateway.ledger([{ name: ACCOUNT, quotas: {}, prefix: '' }]);
    await assert.rejects(ledger.reserve({ inputTokens: 1 }, callOptions(300)), (error) =>
      isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE'),
    );
    await bus.server.restart();
    await gateway.close();
  });

  it('a new hour releases the allocations of the previous hour and keeps the spend of the day', async () => {
    await using bus = await startNatsFixture();
    let shift = 0;
    const clock = clockAt(() => Date.UTC(2031, 4, 5, 10, 59, 0) + shift);
    const gateway = openLedgerOver(await bus.connect('gateway'), clock);
    const quotas = { tokensPerHour: 1_000, tokensPerDay: UNLIMITED };
    const ledger = gateway.ledger([{ name: ACCOUNT, quotas, prefix: '' }]);
    const first = await ledger.reserve({ inputTokens: 900 }, callOptions());
    const second = await ledger.reserve({ inputTokens: 900 }, callOptions());
    assert.deepEqual([first.granted, second.granted], [true, false]);
    shift = 120_000;
    const third = await ledger.reserve({ inputTokens: 800 }, callOptions());
    assert.ok(first.granted && third.granted);
    await ledger.commit(first.id, { inputTokens: 700 });
    await ledger.commit(third.id, { inputTokens: 100 });
    await gateway.close();
    const { windows } = await gateway.report(ACCOUNT);
    const spent = [windows.hour, windows.day, windows.month].map((window) => window.spent.inputTokens);
    assert.deepEqual(spent, [100, 800, 800]);
    assert.deepEqual([windows.hour.held.tokens, windows.day.held.tokens], [0, 0]);
  });
});

function startLoadProcess(bus: NatsFixture, limit: number, most: number): { process: ChildProcess; lines: Interface } {
  const script = new URL('../../support/nats/ledger-load-process.ts', import.meta.url).pathname;
  const args = [bus.url, bus.caFile, bus.seedFile('gateway'), String(limit), String(most)];
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return { process: child, lines: createInterface({ input: child.stdout }) };
}
