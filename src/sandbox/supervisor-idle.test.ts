import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pollValue } from '../../test/support/poll.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import type { HostCalls } from './port.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { aJob, echoHost } from './sandbox.testing.ts';

const IDLE_MS = 60_000;
const LONGER_THAN_A_TEST_MS = 600_000;
/** The clock of these tests passes any deadline of a real one. */
const UNLIMITED: CallOptions = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'test' };
const ONE = aJob('function execute() { return 1; }');

/** Lets the idle time pass again and again: a runner that is not ready yet is not idle. */
async function waitUntilDormant(sandbox: Supervisor, clock: FakeClock): Promise<void> {
  await pollValue(
    'the end of all runners',
    async () => {
      await clock.advance(IDLE_MS);
      return sandbox.processes.length;
    },
    (count) => count === 0,
    { intervalMs: 5 },
  );
}

describe('an idle sandbox', () => {
  it('the supervisor ends all runners after a minute without a job, and starts one for the next job', async () => {
    const clock = new FakeClock();
    await using sandbox = await createSupervisor({ clock, warm: 2 });
    await clock.advance(IDLE_MS - 1);
    assert.equal(sandbox.processes.length, 2);
    await waitUntilDormant(sandbox, clock);
    const outcome = await sandbox.run(ONE, echoHost, UNLIMITED);
    assert.equal(outcome.ok && outcome.output, 1);
    assert.ok(sandbox.processes.length > 0);
    await waitUntilDormant(sandbox, clock);
    assert.ok((await sandbox.run(ONE, echoHost, UNLIMITED)).ok);
  });

  it('calls that follow each other start no process until few are left', async () => {
    await using sandbox = await createSupervisor({ clock: new FakeClock(), pauseMs: LONGER_THAN_A_TEST_MS });
    const [first] = sandbox.processes;
    for (let times = 0; times < 50; times += 1) {
      assert.ok((await sandbox.run(ONE, echoHost, UNLIMITED)).ok);
      assert.deepEqual(sandbox.processes, [first]);
    }
    for (let times = 0; times < 2; times += 1) assert.ok((await sandbox.run(ONE, echoHost, UNLIMITED)).ok);
    assert.equal(sandbox.processes.length, 2, 'fewer than fifty calls are left');
  });

  it('a pause after a call starts a spare process', async () => {
    await using sandbox = await createSupervisor({ clock: new FakeClock() });
    assert.ok((await sandbox.run(ONE, echoHost, UNLIMITED)).ok);
    await pollValue(
      'a spare process',
      async () => sandbox.processes.length,
      (count) => count === 2,
      { intervalMs: 5 },
    );
  });

  it('a job restarts the idle time', async () => {
    const clock = new FakeClock();
    await using sandbox = await createSupervisor({ clock });
    for (let times = 0; times < 3; times += 1) {
      await clock.advance(IDLE_MS - 1);
      const before = sandbox.processes;
      assert.notEqual(before.length, 0);
      assert.ok((await sandbox.run(ONE, echoHost, UNLIMITED)).ok);
      assert.ok(before.some((pid) => sandbox.processes.includes(pid)));
    }
  });

  it('a runner with a running job does not end, however long the job takes', async () => {
    const clock = new FakeClock();
    await using sandbox = await createSupervisor({ clock });
    const slow: HostCalls = {
      async call() {
        for (let times = 0; times < 3; times += 1) await clock.advance(IDLE_MS);
        return 'late';
      },
    };
    const job = aJob('async function execute() { return fs.readFile("x"); }', { apis: ['fs.readFile'] });
    const outcome = await sandbox.run(job, slow, UNLIMITED);
    assert.equal(outcome.ok && outcome.output, 'late');
  });

  it('a dormant sandbox can be disposed and then refuses jobs', async () => {
    const clock = new FakeClock();
    const sandbox = await createSupervisor({ clock });
    await waitUntilDormant(sandbox, clock);
    await sandbox[Symbol.asyncDispose]();
    const outcome = await sandbox.run(ONE, echoHost, UNLIMITED);
    assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_CANCELLED');
  });
});
