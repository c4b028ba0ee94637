import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Payload } from '../../test/fixtures/adversarial/payload.ts';
import { PAYLOADS } from '../../test/fixtures/adversarial/payloads.ts';
import { systemClock } from '../lib/clock.ts';
import { isUnprintable } from '../lib/printable.ts';
import { TemperError } from '../lib/errors.ts';
import type { HostCalls, JobOutcome } from './port.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { aJob, anOp } from './sandbox.testing.ts';

/** A value that only escaped guest code could read. */
const CANARY = 'canary-7f3a9c51d2';
const MEGABYTE = 1_048_576;

const CODES = new Set([
  'ok',
  'TEMPER_SANDBOX_SYNTAX',
  'TEMPER_SANDBOX_NO_ENTRY',
  'TEMPER_SANDBOX_EXCEPTION',
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_SANDBOX_MEMORY',
  'TEMPER_SANDBOX_OUTPUT_INVALID',
  'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
  'TEMPER_SANDBOX_CALL_BUDGET',
  'TEMPER_SANDBOX_CRASHED',
]);

/** A host that denies, as a broker without permissions does. */
const denying: HostCalls = {
  call: (api) => Promise.reject(new TemperError('TEMPER_HOST_CALL_DENIED', `${api} is denied`)),
};

let sandbox: Supervisor;
let folder = '';
let canaryFile = '';

function collected(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

function codeOf(outcome: JobOutcome): string {
  return outcome.ok ? 'ok' : outcome.code;
}

function attack(payload: Payload): Promise<JobOutcome> {
  const { source, input = {}, apis = [], expect } = payload;
  // A payload that must end by itself has time for it on a busy machine, too.
  const mayRunOut = expect === undefined || expect.includes('TEMPER_SANDBOX_TIMEOUT');
  const limits = {
    durationMilliseconds: mayRunOut ? 1_000 : 30_000,
    memoryBytes: 64 * MEGABYTE,
    hostCalls: 50,
    ...payload.limits,
  };
  return sandbox.run(aJob(source, { input, apis, limits }), denying, anOp());
}

/** Asserts that an outcome contains no data of the host and no control characters. */
function assertNothingLeaked(outcome: JobOutcome): void {
  const text = JSON.stringify(outcome);
  assert.ok(!text.includes(CANARY), 'the outcome contains the canary');
  assert.ok(!text.includes('ESCAPED'), `guest code escaped: ${text.slice(0, 400)}`);
  if (outcome.ok) return;
  assert.ok(outcome.message.length <= 4_096, 'the message is bounded');
  assert.ok(
    !Array.from(outcome.message).some((character) => isUnprintable(character.codePointAt(0) ?? 0)),
    'the message is printable',
  );
  assert.doesNotMatch(outcome.message, /node_modules|file:\/\/\/(?!etc)|\/src\/sandbox/);
}

async function assertCanariesUntouched(): Promise<void> {
  assert.equal(process.env['TEMPER_TEST_CANARY'], CANARY);
  assert.equal((globalThis as Record<string, unknown>)['temperTestCanary'], CANARY);
  assert.equal(await readFile(canaryFile, 'utf8'), CANARY);
  assert.deepEqual(await readdir(folder), ['canary']);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
}

/** The sockets of a runner besides its three pipes; an empty list where the system does not report them. */
async function extraSockets(pid: number): Promise<string[]> {
  const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(
    names.filter((name) => Number(name) > 2).map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')),
  );
  return links.filter((link) => link.startsWith('socket:'));
}

describe('hostile tools', () => {
  let heapBefore = 0;
  let residentBefore = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-adversarial-'));
    canaryFile = join(folder, 'canary');
    await writeFile(canaryFile, CANARY);
    process.env['TEMPER_TEST_CANARY'] = CANARY;
    (globalThis as Record<string, unknown>)['temperTestCanary'] = CANARY;
    sandbox = await createSupervisor({ clock: systemClock, warm: 2 });
    for (let times = 0; times < 5; times += 1) await attack({ class: 0, name: '', source: 'const run = () => 1' });
    heapBefore = collected();
    residentBefore = process.memoryUsage.rss();
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    delete process.env['TEMPER_TEST_CANARY'];
    delete (globalThis as Record<string, unknown>)['temperTestCanary'];
    await rm(folder, { recursive: true });
  });

  it('the payloads are at least two hundred, with unique names, of every class that reaches a sandbox', () => {
    assert.ok(PAYLOADS.length >= 200);
    const classes = new Set(PAYLOADS.map((payload) => payload.class));
    for (let kind = 1; kind <= 22; kind += 1) assert.ok(kind === 20 || classes.has(kind), `class ${kind} is missing`);
    assert.equal(new Set(PAYLOADS.map((payload) => payload.name)).size, PAYLOADS.length);
    assert.ok(PAYLOADS.filter((payload) => payload.needsKill).length >= 10);
  });

  for (const payload of PAYLOADS) {
    it(`class ${payload.class}: the sandbox withstands ${payload.name}`, async () => {
      const outcome = await attack(payload);
      const next = await sandbox.run(
        aJob('function execute(input) { return input.n * 2; }', { input: { n: 21 } }),
        denying,
        anOp(),
      );
      assert.ok(next.ok && next.output === 42, `the next call failed: ${JSON.stringify(next)}`);
      const code = codeOf(outcome);
      assert.ok(CODES.has(code), code);
      assertNothingLeaked(outcome);
      await assertCanariesUntouched();
      if (payload.expect !== undefined) {
        assert.ok(
          payload.expect.includes(code),
          `${code}: ${outcome.ok ? JSON.stringify(outcome.output).slice(0, 200) : outcome.message.slice(0, 300)}`,
        );
      }
    });
  }

  it('without declared time and randomness every run gives the same output', async () => {
    for (const payload of PAYLOADS.filter((payload) => payload.class === 19)) {
      const [one, other] = [await attack(payload), await attack(payload)];
      const seen = [one, other].map((outcome) => (outcome.ok ? outcome.output : outcome.message));
      assert.deepEqual(seen[0], seen[1], payload.name);
      if (!one.ok) assert.match(one.message, /add "(?:clock|random)" to the allowlist/, payload.name);
      const readsTime = /^the present (?!by Temporal$)|^chance by Math|^time bomb/.test(payload.name);
      if (readsTime) assert.ok(!one.ok, payload.name);
    }
  });

  it('hostile tools open no sockets', { skip: process.platform !== 'linux' }, async () => {
    for (const payload of PAYLOADS.filter((payload) => payload.class === 18).slice(0, 8)) {
      await attack(payload);
      for (const pid of sandbox.processes) assert.deepEqual(await extraSockets(pid), []);
    }
  });

  it('hostile tools do not grow the memory of the supervisor', () => {
    const grown = collected() - heapBefore;
    assert.ok(grown < 16 * MEGABYTE, `the heap grew by ${Math.round(grown / MEGABYTE)} MiB`);
    const resident = process.memoryUsage.rss() - residentBefore;
    assert.ok(resident < 64 * MEGABYTE, `the process grew by ${Math.round(resident / MEGABYTE)} MiB`);
  });
});
