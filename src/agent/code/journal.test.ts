import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assert as check, asyncProperty, infiniteStream, integer, nat, uniqueArray } from 'fast-check';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { ModelEvent } from '../../models/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { calls, says, type ScriptedTool, WaitsFor } from '../loop/scripted-loop.testing.ts';
import { unfinishedMessage } from '../session/resume.ts';
import { createRecordSessionStore } from '../session/session-store.ts';
import { aCodeAgent, codeLoop } from './code-mode.testing.ts';
import { type RunJournalEntry, journalItem, journalOf, Replay, requestDigest } from './journal.ts';

let sandbox: Supervisor;
before(async () => {
  sandbox = await createSupervisor({ clock: systemClock, warm: 0 });
});
after(() => sandbox[Symbol.asyncDispose]());

const program = (code: string): ModelEvent[] => calls(['invoke', { code }, 'call-0']);

/** Handles the message until the tool `stuck` is called, and ends like a killed process: nothing more is stored. */
async function interrupted(records: RecordStore, code: string, tools: Record<string, ScriptedTool>, effects: string[]) {
  const reached = Promise.withResolvers<void>();
  const killed = new AbortController();
  const stuck = (): Promise<Json> => {
    reached.resolve();
    return new Promise(() => undefined);
  };
  const fixture = codeLoop(sandbox, [program(code)], { ...tools, stuck }, { records, effects });
  const op = { signal: killed.signal, deadline: systemClock.monotonic() + 60_000, key: 'first' };
  const message = { session: 's-1', rootMessage: 'r', text: 'go', message: 'm-1' };
  const handled = fixture.loop.handle(message, aCodeAgent(), () => undefined, op);
  await reached.promise;
  killed.abort();
  await assert.rejects(handled, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
}

describe('an interrupted or parked program', () => {
  it('a parked call parks the turn; the decision repeats the program, and no call is made twice', async () => {
    const records = memoryRecordStore();
    const made: string[] = [];
    const keys: string[] = [];
    let isApproved = false;
    const tools: Record<string, ScriptedTool> = {
      read: () => made.push('read'),
      delete: (_input, _caller, { key }) => {
        keys.push(key);
        if (!isApproved) throw new WaitsFor('request-1');
        return made.push('delete');
      },
    };
    const code = `const time = Date.now(); const chance = Math.random();
      const first = await ctx.manager.invoke('read', { time, chance });
      const second = await ctx.manager.invoke('delete', { after: first, chance });
      ctx.manager.finish([first, second]);`;
    await using before = codeLoop(sandbox, [program(code)], tools, { records, effects: ['read', 'delete'] });
    assert.deepEqual((await before.send('go', 'm-1')).parked, ['request-1']);
    const store = createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'n' });
    const waiting = unfinishedMessage('s-1', await store.load('s-1'));
    assert.deepEqual(waiting?.callKeys, ['s-1/0/1/call-0', 's-1/0/1/call-0/2']);
    await using still = codeLoop(sandbox, [], tools, { records, effects: ['read', 'delete'] });
    assert.deepEqual((await still.send('go', 'm-1')).parked, ['request-1'], 'the request is still open');
    isApproved = true;
    await using later = codeLoop(sandbox, [], tools, { records, effects: ['read', 'delete'] });
    const handled = await later.send('go', 'm-1');
    assert.deepEqual([handled.reply, handled.parked], ['[1,2]', undefined]);
    assert.deepEqual(made, ['read', 'delete']);
    assert.deepEqual(new Set(keys), new Set(['s-1/0/1/call-0/2']));
    assert.equal(handled.toolCalls, 2);
  });

  it('calls beside a parked one end first, and the program gets all answers in the order of the first run', async () => {
    const records = memoryRecordStore();
    const made: number[] = [];
    const beside = Promise.withResolvers<void>();
    let isApproved = false;
    const tools: Record<string, ScriptedTool> = {
      step: async (input) => {
        const { n } = input as { n: number };
        made.push(n);
        if (n === 4) beside.resolve();
        if (n === 1) await systemClock.sleep(40, new AbortController().signal);
        return n;
      },
      ask: async () => {
        await beside.promise;
        if (!isApproved) throw new WaitsFor('request-1');
        return 3;
      },
    };
    const code = `const order = [];
      const note = (name, n) => ctx.manager.invoke(name, { n }).then((value) => { order.push(value); });
      await Promise.all([note('step', 1), note('step', 2)]);
      await Promise.all([note('ask', 3), note('step', 4)]);
      return order;`;
    await using before = codeLoop(sandbox, [program(code)], tools, { records });
    assert.deepEqual((await before.send('go', 'm-1')).parked, ['request-1']);
    isApproved = true;
    await using later = codeLoop(sandbox, [says('done')], tools, { records });
    await later.send('go', 'm-1');
    assert.deepEqual(later.results(), ['[2,1,4,3]']);
    assert.deepEqual(made, [1, 2, 4]);
  });

  it('a process that ends in a call with effects does not make it again, and the program gets an error', async () => {
    const records = memoryRecordStore();
    let made = 0;
    const tools = { count: () => (made += 1), stuck: () => assert.fail('the call was made again') };
    const code = `const first = await ctx.manager.invoke('count', {});
      try { await ctx.manager.invoke('stuck', {}); } catch (error) { return [first, error.code]; }`;
    await interrupted(records, code, tools, ['count', 'stuck']);
    await using later = codeLoop(sandbox, [says('done')], tools, { records, effects: ['count', 'stuck'] });
    await later.send('go', 'm-1');
    assert.deepEqual([later.results(), made], [['[1,"TEMPER_TOOL_OUTCOME_UNKNOWN"]'], 1]);
  });

  it('a process that ends in a call without effects makes it again', async () => {
    const records = memoryRecordStore();
    let made = 0;
    const tools = { count: () => (made += 1), stuck: () => 'again' };
    const code = `const first = await ctx.manager.invoke('count', {});
      return [first, await ctx.manager.invoke('stuck', {})];`;
    await interrupted(records, code, tools, ['count']);
    await using later = codeLoop(sandbox, [says('done')], tools, { records, effects: ['count'] });
    await later.send('go', 'm-1');
    assert.deepEqual([later.results(), made], [['[1,"again"]'], 1]);
  });

  it('an answer that is too large to be stored is asked for again, unless the call has effects', async () => {
    const records = memoryRecordStore();
    const made: string[] = [];
    let isApproved = false;
    const large = (name: string) => (): Json => {
      made.push(name);
      return 'x'.repeat(70_000);
    };
    const tools: Record<string, ScriptedTool> = {
      read: large('read'),
      create: large('create'),
      ask: () => {
        if (!isApproved) throw new WaitsFor('request-1');
        return 1;
      },
    };
    const code = `const text = await ctx.manager.invoke('read', {});
      let created;
      try { created = (await ctx.manager.invoke('create', {})).length; } catch (error) { created = error.code; }
      await ctx.manager.invoke('ask', {});
      return [text.length, created];`;
    const options = { records, effects: ['create', 'ask'] };
    await using before = codeLoop(sandbox, [program(code)], tools, options);
    assert.deepEqual((await before.send('go', 'm-1')).parked, ['request-1']);
    isApproved = true;
    await using later = codeLoop(sandbox, [says('done')], tools, options);
    await later.send('go', 'm-1');
    assert.deepEqual(later.results(), ['[70000,"TEMPER_TOOL_OUTCOME_UNKNOWN"]']);
    assert.deepEqual(made, ['read', 'create', 'read']);
  });

  it('a program that makes other calls than before its interruption fails, and makes none of them', async () => {
    for (const code of [
      `await ctx.manager.invoke('count', { kind: typeof memory.made }); await ctx.manager.invoke('stuck', {}); return 1;`,
      `if (memory.made === undefined) return 'ended'; await ctx.manager.invoke('count', {}); await ctx.manager.invoke('stuck', {});`,
    ]) {
      const records = memoryRecordStore();
      let made = 0;
      const tools = { count: () => (made += 1), stuck: () => assert.fail('the call was made') };
      await using first = codeLoop(sandbox, [program('memory.made = () => 1;'), says('ok')], tools, { records });
      await first.send('prepare');
      const killed = new AbortController();
      const reached = Promise.withResolvers<void>();
      const stuck = (): Promise<Json> => {
        reached.resolve();
        return new Promise(() => undefined);
      };
      await using running = codeLoop(
        sandbox,
        [program(code)],
        { ...tools, stuck },
        { records, effects: ['stuck'], sessions: first.sessions },
      );
      const op = { signal: killed.signal, deadline: systemClock.monotonic() + 60_000, key: 'first' };
      const handled = running.loop.handle(
        { session: 's-1', rootMessage: 'r', text: 'go', message: 'm-1' },
        aCodeAgent(),
        () => undefined,
        op,
      );
      await reached.promise;
      killed.abort();
      await assert.rejects(handled);
      await using later = codeLoop(sandbox, [says('done')], tools, { records, effects: ['stuck'] });
      await later.send('go', 'm-1');
      assert.match(later.results().at(-1) ?? '', /TEMPER_CODE_DIVERGED/);
      assert.equal(made, 1);
    }
  });

  it('a journal entry that cannot be read is a corrupt session', () => {
    const item = {
      ...journalItem('a', { kind: 'started', call: 1, digest: 'd' }, 'Engine'),
      text: '{"kind":"answered"}',
    };
    assert.throws(
      () => journalOf([item], 'a'),
      (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT'),
    );
  });
});

describe('Replay', () => {
  it('stored answers are given in their order, whatever the order of the calls', async () => {
    await check(
      asyncProperty(
        uniqueArray(integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 8 }),
        infiniteStream(nat()),
        async (order, random) => {
          const digest = requestDigest({ name: 'a', input: {} });
          const journal: RunJournalEntry[] = order.map((call) => ({
            kind: 'answered',
            call,
            digest,
            answer: { time: call, ok: true, value: call },
          }));
          const replay = new Replay(journal);
          const asked = order
            .map((call): [number, number] => [random.next().value, call])
            .toSorted(([a], [b]) => a - b)
            .map(([, call]) => call);
          const got: number[] = [];
          const all = asked.map(async (call) => {
            const known = replay.find(call, digest, () => assert.fail('all answers are stored'));
            assert.ok(known.state === 'answered');
            got.push((await known.answer).time);
          });
          await Promise.all(all);
          await replay.isComplete;
          assert.deepEqual(got, order);
          assert.equal(replay.remaining, 0);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('a call with other arguments than before has diverged, and a call that started has an unknown outcome', () => {
    const digest = requestDigest({ name: 'a', input: {} });
    const replay = new Replay([
      { kind: 'started', call: 1, digest },
      { kind: 'started', call: 2, digest },
      { kind: 'parked', call: 2, digest, request: 'r' },
    ]);
    const stateOf = (call: number, of: string): string =>
      replay.find(call, of, () => assert.fail('nothing is stored')).state;
    assert.equal(stateOf(1, requestDigest({ name: 'a', input: { n: 1 } })), 'diverged');
    assert.equal(stateOf(1, digest), 'unknown');
    assert.equal(stateOf(2, digest), 'new');
    assert.equal(stateOf(3, digest), 'new');
  });
});
