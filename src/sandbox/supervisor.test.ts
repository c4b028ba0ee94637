import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { poll } from '../../test/support/poll.ts';
import { systemClock } from '../lib/clock.ts';
import { hasErrno, isTemperError, TemperError } from '../lib/errors.ts';
import type { HostCalls, SandboxFailure } from './port.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { aJob, anOp, echoHost, type JobChanges } from './sandbox.testing.ts';

let sandbox: Supervisor;

function run(source: string, changes?: JobChanges, host: HostCalls = echoHost, op = anOp()) {
  return sandbox.run(aJob(source, changes), host, op);
}

async function fails(code: SandboxFailure, source: string, changes?: JobChanges, words?: RegExp): Promise<void> {
  const outcome = await run(source, changes);
  assert.ok(!outcome.ok, `unexpected output: ${JSON.stringify(outcome)}`);
  assert.equal(outcome.code, code, outcome.message);
  if (words !== undefined) assert.match(outcome.message, words);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    assert.ok(hasErrno(error, 'ESRCH'));
    return false;
  }
}

describe('the supervisor', () => {
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  it('the supervisor runs a tool and reports its usage', async () => {
    const outcome = await run('function execute(input) { return input.a + input.b; }', { input: { a: 1, b: 2 } });
    assert.ok(outcome.ok);
    assert.equal(outcome.output, 3);
    assert.ok(outcome.usage.heapBytes > 0 && outcome.usage.milliseconds > 0);
  });

  it('no state of a call is visible in the next', async () => {
    await run(
      'function execute() { globalThis.left = 1; Object.prototype.left = 1; Array.prototype.map = null; return 1; }',
    );
    for (let times = 0; times < 3; times += 1) {
      const outcome = await run(
        'function execute() { return [typeof left, ({}).left === undefined, [1].map((x) => x)]; }',
      );
      assert.deepEqual(outcome.ok && outcome.output, ['undefined', true, [1]]);
    }
  });

  it('two jobs run concurrently and a third waits', async () => {
    let arrived = 0;
    let open: () => void = () => {};
    const both = new Promise<void>((resolve) => {
      open = resolve;
    });
    const meeting: HostCalls = {
      async call() {
        arrived += 1;
        if (arrived === 2) open();
        await both;
        return 'met';
      },
    };
    const source = 'async function execute() { return fs.readFile("x"); }';
    const three = [0, 1, 2].map(() => run(source, { apis: ['fs.readFile'] }, meeting));
    for (const outcome of await Promise.all(three)) assert.equal(outcome.ok && outcome.output, 'met');
  });

  it('jobs of two sessions run concurrently, in processes of their own', async () => {
    const both = Promise.withResolvers<void>();
    let arrived = 0;
    const meeting: HostCalls = {
      async call() {
        arrived += 1;
        if (arrived === 2) both.resolve();
        await both.promise;
        return 'met';
      },
    };
    const source = 'async function execute() { return fs.readFile("x"); }';
    const jobs = ['a', 'b'].map((owner) => run(source, { apis: ['fs.readFile'], owner }, meeting));
    for (const outcome of await Promise.all(jobs)) assert.equal(outcome.ok && outcome.output, 'met');
  });

  it('no process runs jobs of two sessions, and a session finds nothing that another one left', async () => {
    await using one = await createSupervisor({ clock: systemClock, warm: 0, maxRunners: 1 });
    const runAs = async (owner: string, source: string) => one.run(aJob(source, { owner }), echoHost, anOp());
    const hides = `function execute() {
      globalThis.secret = 'of a';
      Object.prototype.secret = 'of a';
      Array.prototype.join = () => 'of a';
      return new Array(1e6).fill('of a').length;
    }`;
    const seeks =
      'function execute() { return [typeof secret, typeof ({}).secret, [1, 2].join(), Object.keys(globalThis).includes("secret")]; }';
    assert.ok((await runAs('a', hides)).ok);
    const processOfA = one.processes;
    assert.equal(processOfA.length, 1);
    const found = await runAs('b', seeks);
    assert.deepEqual(found.ok && found.output, ['undefined', 'undefined', '1,2', false]);
    const processOfB = one.processes;
    assert.equal(processOfB.length, 1);
    assert.notDeepEqual(processOfB, processOfA);
    assert.ok((await runAs('b', seeks)).ok);
    assert.deepEqual(one.processes, processOfB, 'the next job of the same session needs no other process');
    assert.ok((await runAs('a', seeks)).ok);
    assert.ok(!one.processes.some((pid) => processOfA.includes(pid) || processOfB.includes(pid)));
  });

  it('a waiting job of higher rank starts before older ones', async () => {
    await using one = await createSupervisor({ clock: systemClock, warm: 0, maxRunners: 1 });
    const [entered, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const host: HostCalls = {
      async call() {
        entered.resolve();
        await free.promise;
        return '';
      },
    };
    const held = one.run(
      aJob('async function execute() { return fs.readFile("x"); }', { apis: ['fs.readFile'] }),
      host,
      anOp(),
    );
    await entered.promise;
    const ended: string[] = [];
    const waiting = (['low', 'high'] as const).map(async (owner, rank) => {
      await one.run(aJob('function execute() { return 1; }', { owner, rank }), echoHost, anOp());
      ended.push(owner);
    });
    free.resolve();
    await Promise.all([held, ...waiting]);
    assert.deepEqual(ended, ['high', 'low']);
  });

  it('the supervisor replaces a runner after at most a hundred calls', async () => {
    const seen = new Set<number>();
    for (let times = 0; times < 205; times += 1) {
      assert.ok((await run('function execute() { return 1; }')).ok);
      for (const pid of sandbox.processes) seen.add(pid);
    }
    assert.ok(seen.size >= 3, `only ${seen.size} processes for 205 calls`);
  });

  it('the next call succeeds after a runner was killed during a call', async () => {
    let killed: readonly number[] = [];
    const stuck = run(
      'async function execute() { return fs.readFile("x"); }',
      { apis: ['fs.readFile'] },
      {
        call: () => {
          killed = [...sandbox.processes];
          for (const pid of killed) process.kill(pid, 'SIGKILL');
          return new Promise(() => {});
        },
      },
    );
    const outcome = await stuck;
    assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_SANDBOX_CRASHED');
    await poll('the end of the killed processes', () => !sandbox.processes.some((pid) => killed.includes(pid)));
    assert.ok((await run('function execute() { return 1; }')).ok);
  });

  it('a cancelled job ends and its host call is aborted', async () => {
    const controller = new AbortController();
    let aborted = false;
    const waiting: HostCalls = {
      call: (_api, _input, op) =>
        new Promise((_resolve, reject) => {
          op.signal.addEventListener('abort', () => {
            aborted = true;
            reject(new Error('withdrawn'));
          });
          controller.abort();
        }),
    };
    const source = 'async function execute() { return fs.readFile("x"); }';
    const outcome = await run(source, { apis: ['fs.readFile'] }, waiting, anOp(controller.signal));
    assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_CANCELLED');
    assert.ok(aborted);
    const late = await run('function execute() { return 1; }', {}, echoHost, anOp(controller.signal));
    assert.equal(late.ok ? '' : late.code, 'TEMPER_CANCELLED');
  });

  it('no job outlives the deadline of its caller', async () => {
    const outcome = await run('function execute() { for (;;); }', {}, echoHost, anOp(undefined, 150));
    assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_SANDBOX_TIMEOUT');
  });

  it('a promise that can never settle fails immediately', () =>
    fails('TEMPER_SANDBOX_TIMEOUT', 'function execute() { return new Promise(() => {}); }', {}, /never settle/));

  it('a job that waits too long for the host times out', async () => {
    const silent: HostCalls = { call: () => new Promise(() => {}) };
    const source = 'async function execute() { return fs.readFile("x"); }';
    const outcome = await run(source, { apis: ['fs.readFile'], limits: { durationMilliseconds: 200 } }, silent);
    assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_SANDBOX_TIMEOUT');
  });

  it('a late response to an ended job does not reach the next job', async () => {
    const source = (own: string) =>
      `async function execute() { for (let i = 0; i < 3; i += 1) fetch('${own}'); return 1; }`;
    for (let times = 0; times < 20; times += 1) {
      assert.ok((await run(source(`https://x.test/${times}`), { apis: ['fetch'] })).ok);
      const outcome = await run('async function execute() { return (await fetch("https://y.test/")).json(); }', {
        apis: ['fetch'],
      });
      assert.ok(outcome.ok, JSON.stringify(outcome));
      assert.equal((outcome.output as { url: string }).url, 'https://y.test/');
    }
  });

  it('the guest sees code and message of a TemperError only', async () => {
    const source = `async function execute() {
      try { await fetch('https://x.test/'); } catch (error) { return { ...error, message: error.message, stack: error.stack }; }
    }`;
    const reported = await run(
      source,
      { apis: ['fetch'] },
      {
        call: () => Promise.reject(new TemperError('TEMPER_FETCH_DENIED', 'not that one', { details: { secret: 1 } })),
      },
    );
    assert.ok(reported.ok);
    const { code, message, stack } = reported.output as Record<string, string>;
    assert.deepEqual([code, message], ['TEMPER_FETCH_DENIED', 'not that one']);
    assert.doesNotMatch(stack ?? '', /\/|node:|\.ts/);
    const hidden = await run(source, { apis: ['fetch'] }, { call: () => Promise.reject(new Error('/etc/secret')) });
    assert.ok(hidden.ok);
    assert.equal((hidden.output as Record<string, string>)['message'], 'the host could not answer');
  });

  it('host calls and their bytes count against the budget', async () => {
    const apis = ['fetch'] as const;
    const many =
      'async function execute() { for (let i = 0; i < 30; i += 1) await fetch("https://x.test/"); return 1; }';
    await fails('TEMPER_SANDBOX_CALL_BUDGET', many, { apis });
    const flood = 'function execute() { for (;;) { try { fetch("https://x.test/").catch(() => {}); } catch {} } }';
    await fails('TEMPER_SANDBOX_CALL_BUDGET', flood, { apis });
    const heavy =
      'async function execute() { await fetch("https://x.test/", { method: "POST", body: "x".repeat(300000) }); }';
    await fails('TEMPER_SANDBOX_CALL_BUDGET', heavy, { apis });
    const hashes = 'function execute() { for (;;) crypto.createHash("sha256").update("x").digest(); }';
    await fails('TEMPER_SANDBOX_CALL_BUDGET', hashes, { apis: ['crypto'] });
    const large: HostCalls = { call: () => Promise.resolve({ body: 'x'.repeat(300_000) }) };
    const outcome = await run('async function execute() { return (await fetch("x")).status; }', { apis }, large);
    assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_SANDBOX_CALL_BUDGET');
  });

  it('inputs, sources and outputs that are too large or too deep are refused', async () => {
    const echo = 'function execute(input) { return input; }';
    let deep: unknown = 1;
    for (let level = 0; level < 300; level += 1) deep = [deep];
    const input = deep as [];
    await fails('TEMPER_SANDBOX_INPUT_TOO_LARGE', echo, { input }, /deeper/);
    await fails('TEMPER_SANDBOX_INPUT_TOO_LARGE', echo, { input: 'x'.repeat(17_000_000) }, /larger/);
    await fails('TEMPER_SANDBOX_INPUT_TOO_LARGE', `${echo}//${'x'.repeat(1_100_000)}`, {}, /source/);
    const nest = 'function execute() { let a = 1; for (let i = 0; i < 300; i += 1) a = [a]; return a; }';
    await fails('TEMPER_SANDBOX_OUTPUT_INVALID', nest, {}, /deeper/);
    const poisoned =
      'function execute() { let a = JSON.parse(\'{"__proto__":1}\'); for (let i = 0; i < 90000; i += 1) a = [a]; return a; }';
    await fails('TEMPER_SANDBOX_OUTPUT_INVALID', poisoned);
    await fails('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', 'function execute() { return "x".repeat(300000); }');
    const exact = await run('function execute() { return "é".repeat(131071); }');
    assert.ok(exact.ok, 'the limit counts bytes, and the last one is allowed');
  });

  it('members such as __proto__ are dropped from a result', async () => {
    const source =
      'function execute() { return JSON.parse(\'{"__proto__":{"polluted":1},"a":{"constructor":2,"b":3}}\'); }';
    const outcome = await run(source);
    assert.deepEqual(outcome.ok && outcome.output, { a: { b: 3 } });
  });

  it('no process remains after disposal', async () => {
    const short = await createSupervisor({ clock: systemClock, warm: 2 });
    const running = short.run(aJob('function execute() { for (;;); }'), echoHost, anOp());
    const { processes } = short;
    assert.ok(processes.length >= 2 && processes.every(isAlive));
    await short[Symbol.asyncDispose]();
    assert.ok(!(await running).ok);
    assert.deepEqual(processes.filter(isAlive), []);
    const late = await short.run(aJob('function execute() { return 1; }'), echoHost, anOp());
    assert.equal(late.ok ? '' : late.code, 'TEMPER_CANCELLED');
  });

  it('the runners exit when the supervisor is killed', async () => {
    const script = `
      import { systemClock } from ${JSON.stringify(import.meta.resolve('../lib/clock.ts'))};
      import { createSupervisor } from ${JSON.stringify(import.meta.resolve('./supervisor.ts'))};
      const sandbox = await createSupervisor({ clock: systemClock, warm: 2 });
      console.log(JSON.stringify(sandbox.processes));
      setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(holder.stdout, 'data')) as [Buffer];
    const processes = JSON.parse(line.toString()) as number[];
    assert.equal(processes.length, 2);
    holder.kill('SIGKILL');
    await poll('the end of the runners', () => !processes.some(isAlive));
  });

  it('the supervisor does not start with an unusable runtime', async () => {
    for (const nodePath of ['/bin/false', '/does/not/exist']) {
      await assert.rejects(createSupervisor({ clock: systemClock, nodePath }), (error) =>
        isTemperError(error, 'TEMPER_SANDBOX_UNAVAILABLE'),
      );
    }
  });

  it('without warm runners no process starts before the first job', async () => {
    await using cold = await createSupervisor({ clock: systemClock, warm: 0 });
    assert.deepEqual(cold.processes, []);
    assert.ok((await cold.run(aJob('function execute() { return 1; }'), echoHost, anOp())).ok);
    assert.equal(cold.processes.length, 1);
  });
});
