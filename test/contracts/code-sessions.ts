import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import type { Json, JsonObject } from '../../src/lib/json.ts';
import type {
  RunOutcome,
  SessionCall,
  SessionLimits,
  SessionRunner,
  SessionSandbox,
} from '../../src/sandbox/session-port.ts';
import { TIMER_CALL } from '../../src/sandbox/session-port.ts';
import { callOptions } from '../support/call-options.ts';

export const SESSION_LIMITS: SessionLimits = {
  memoryBytes: 67_108_864,
  guestMilliseconds: 5_000,
  runMilliseconds: 30_000,
  outputBytes: 65_536,
  snapshotBytes: 16_384,
  logBytes: 1_024,
  calls: 50,
  callBytes: 262_144,
};

/** A host that echoes its input, waits, and fails on request. */
export const echoCall: SessionCall = async ({ name, input }) => {
  const time = systemClock.now().getTime();
  if (name === TIMER_CALL) return { time, ok: true, value: null };
  if (name === 'fail') return { time, ok: false, code: 'TEMPER_POLICY_DENIED', message: 'not allowed' };
  return { time, ok: true, value: { name, input } };
};

export function valueOf(outcome: RunOutcome): Json | undefined {
  assert.ok(outcome.ok, outcome.ok ? '' : `${outcome.code}: ${outcome.message}`);
  return outcome.value;
}

/** The contract of every adapter of the sandbox port for sessions. */
export function sessionsContract(adapter: string, sandboxOf: () => SessionSandbox): void {
  const open = (limits: Partial<SessionLimits> = {}, memory: JsonObject = {}): Promise<SessionRunner> =>
    sandboxOf().openSession({ limits: { ...SESSION_LIMITS, ...limits }, memory }, callOptions());
  const run = (session: SessionRunner, code: string, call: SessionCall = echoCall) =>
    session.run({ code }, call, callOptions());

  describe(`session contract: ${adapter}`, () => {
    it('the code calls its host in sequence and in parallel, and catches failures', async () => {
      const session = await open();
      const outcome = await run(
        session,
        `const one = await ctx.manager.invoke('first', { n: 1 });
         const two = await Promise.all([ctx.manager.invoke('a', one.input), ctx.manager.invoke('b')]);
         let caught;
         try { await ctx.manager.invoke('fail', {}); } catch (error) { caught = [error.code, error.message, error instanceof Error]; }
         return { two, caught };`,
      );
      assert.deepEqual(valueOf(outcome), {
        two: [
          { name: 'a', input: { n: 1 } },
          { name: 'b', input: {} },
        ],
        caught: ['TEMPER_POLICY_DENIED', 'not allowed', true],
      });
      assert.equal(outcome.usage.calls, 4);
      await session.close();
    });

    it('memory and its closures live with the session, and a snapshot names what JSON cannot hold', async () => {
      const session = await open({}, { count: 1 });
      const first = await run(session, 'memory.count += 1; memory.next = () => memory.count * 10;');
      assert.deepEqual(first.memory?.values, { count: 2 });
      assert.deepEqual(
        first.memory?.omitted.map(({ name }) => name),
        ['next'],
      );
      assert.equal(valueOf(await run(session, 'return memory.next();')), 20);
      await session.close();
      const restored = await open({}, first.memory?.values);
      assert.deepEqual(valueOf(await run(restored, 'return [memory.count, typeof memory.next];')), [2, 'undefined']);
      await restored.close();
    });

    it('a thrown error, an error of syntax and a promise that never settles leave the session usable', async () => {
      const session = await open();
      const outcomes: RunOutcome[] = [];
      for (const code of [
        'memory.a = 1; throw new TypeError("x is wrong");',
        'const a = ;',
        'await new Promise(() => {});',
      ])
        outcomes.push(await run(session, code));
      const shown = outcomes.map((outcome) => (outcome.ok ? 'ok' : `${outcome.code}: ${outcome.message}`));
      assert.match(shown[0] ?? '', /^TEMPER_SANDBOX_EXCEPTION: TypeError: x is wrong \(line 1, column/);
      assert.match(shown[1] ?? '', /^TEMPER_SANDBOX_SYNTAX: .*code\.js:1/);
      assert.match(shown[2] ?? '', /^TEMPER_SANDBOX_TIMEOUT: .*can never settle/);
      assert.equal(valueOf(await run(session, 'return memory.a;')), 1);
      await session.close();
    });

    it('waiting for the host is not counted as time of the code, and timers end with the run', async () => {
      const session = await open({ guestMilliseconds: 400 });
      const slow: SessionCall = async (request, op) => {
        await systemClock.sleep(600, op.signal);
        return echoCall(request, op);
      };
      const code = `let ticks = 0; setInterval(() => { ticks += 1; }, 1);
        await new Promise((resolve) => setTimeout(resolve, 1)); return ticks >= 0;`;
      assert.equal(valueOf(await run(session, code, slow)), true);
      await session.close();
    });

    it('code that does not end, or takes too much memory, ends its session and no other one', async () => {
      const neighbour = await open();
      for (const code of ['for (;;);', 'const spin = () => Promise.resolve().then(spin); await spin();']) {
        const session = await open({ guestMilliseconds: 200 });
        const outcome = await run(session, code);
        assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_TIMEOUT', code);
        assert.equal(outcome.memory, undefined);
        assert.equal(session.isOpen, false);
        const next = await run(session, 'return 1;');
        assert.equal(next.ok ? 'ok' : next.code, 'TEMPER_SANDBOX_CRASHED');
      }
      const greedy = await open({ memoryBytes: 33_554_432 });
      const outcome = await run(greedy, 'const all = []; for (;;) all.push(new Array(10000).fill(all.length));');
      assert.ok(!outcome.ok && /MEMORY|TIMEOUT|CRASHED/.test(outcome.code), JSON.stringify(outcome));
      assert.equal(valueOf(await run(neighbour, 'return 1;')), 1);
      await neighbour.close();
    });

    it('more calls or bytes than the budget end the session', async () => {
      for (const code of [
        'for (let n = 0; n < 10_000; n += 1) ctx.manager.invoke("a").catch(() => {}); return 1;',
        'await ctx.manager.invoke("a", { text: "x".repeat(300_000) });',
      ]) {
        const session = await open();
        const outcome = await run(session, code);
        assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_CALL_BUDGET', code);
        assert.equal(session.isOpen, false);
      }
    });

    it('a cancelled run aborts its open call and ends the session', async () => {
      const session = await open();
      const controller = new AbortController();
      const aborted = Promise.withResolvers<void>();
      const waiting: SessionCall = (_request, op) =>
        new Promise((_resolve, reject) => {
          op.signal.addEventListener('abort', () => {
            aborted.resolve();
            reject(new Error('aborted'));
          });
          controller.abort();
        });
      const op = { ...callOptions(), signal: controller.signal };
      const outcome = await session.run({ code: 'await ctx.manager.invoke("a");' }, waiting, op);
      assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_CANCELLED');
      await aborted.promise;
      assert.equal(session.isOpen, false);
    });

    it('a call that is not awaited is waited for, and reported', async () => {
      const session = await open();
      let ended = 0;
      const slow: SessionCall = async (request, op) => {
        await systemClock.sleep(20, op.signal);
        ended += 1;
        return echoCall(request, op);
      };
      const outcome = await run(session, 'ctx.manager.invoke("a"); return 5;', slow);
      assert.deepEqual([valueOf(outcome), outcome.unawaited, ended], [5, 1, 1]);
      await session.close();
    });

    it('the first finished value, the bounded console and a repeatable run are reported', async () => {
      const code = `console.log('one', { a: 1 }, new Error('two')); console.error('x'.repeat(2000));
        ctx.manager.finish({ done: true }); ctx.manager.finish(2);
        const before = Date.now(); await ctx.manager.invoke('a'); return [before, Date.now(), Math.random(), crypto.randomUUID()];`;
      const timeAndRandomness = { startTime: 1_000, seed: '00112233445566778899aabbccddeeff' };
      const at: SessionCall = async () => ({ time: 2_000, ok: true, value: null });
      const outcomes: RunOutcome[] = [];
      for (let times = 0; times < 2; times += 1) {
        const session = await open();
        await run(session, 'Math.random(); Date.now();');
        outcomes.push(await session.run({ code, timeAndRandomness }, at, callOptions()));
        await session.close();
      }
      const [one, two] = outcomes;
      assert.ok(one !== undefined && two !== undefined);
      assert.deepEqual(one.finished, { value: { done: true } });
      assert.deepEqual([one.log, one.isLogCut], ['one {"a":1} Error: two\n', true]);
      assert.deepEqual((valueOf(one) as Json[]).slice(0, 2), [1_000, 2_000]);
      assert.deepEqual(valueOf(one), valueOf(two));
    });

    it('sessions share nothing, and a closed session runs no code', async () => {
      const [one, two] = await Promise.all([open(), open()]);
      await run(one, 'globalThis.left = 1; memory.left = 1; Object.prototype.left = 1;');
      assert.deepEqual(valueOf(await run(two, 'return [typeof left, memory.left === undefined];')), [
        'undefined',
        true,
      ]);
      await one.close();
      assert.equal(one.isOpen, false);
      const outcome = await run(one, 'return 1;');
      assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_CRASHED');
      await two.close();
    });

    it('memory beyond what a session takes is refused at its start', async () => {
      const deep = Array.from({ length: 300 }).reduce<JsonObject>((inner) => ({ inner }), {});
      await assert.rejects(open({}, deep), (error) => isTemperError(error));
    });
  });
}
