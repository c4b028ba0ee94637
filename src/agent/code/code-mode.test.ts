import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ModelEvent } from '../../models/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import type { CallerContext } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { requiredValue } from '../returns/finish.ts';
import { calls, says } from '../loop/scripted-loop.testing.ts';
import { aCodeAgent, codeLoop } from './code-mode.testing.ts';

let sandbox: Supervisor;
before(async () => {
  sandbox = await createSupervisor({ clock: systemClock, warm: 0 });
});
after(() => sandbox[Symbol.asyncDispose]());

const invoke = (...programs: string[]): ModelEvent[] =>
  calls(...programs.map((code, index): [string, Json, string] => ['invoke', { code }, `call-${index}`]));

describe('code mode', () => {
  it('the model gets one tool and the tools of the agent as text, and its program calls them in a loop and in parallel', async () => {
    const callers: CallerContext[] = [];
    await using fixture = codeLoop(
      sandbox,
      [
        invoke(`const sums = [];
          for (const n of [1, 2]) sums.push((await ctx.manager.invoke('double', { n })).n);
          const both = await Promise.all([3, 4].map((n) => ctx.manager.invoke('double', { n })));
          return { sums, both };`),
        says('done'),
      ],
      {
        double: (input, caller) => {
          callers.push(caller);
          return { n: (input as { n: number }).n * 2 };
        },
      },
    );
    const handled = await fixture.send('go');
    assert.equal(handled.reply, 'done');
    assert.equal(handled.toolCalls, 4);
    const [request] = fixture.model.requests;
    assert.deepEqual(
      request?.tools.map(({ name }) => name),
      ['invoke'],
    );
    assert.match(request?.system ?? '', /\{"name":"double","description":"The tool double\.","parameters":/);
    assert.deepEqual(fixture.results(), ['{"sums":[2,4],"both":[{"n":6},{"n":8}]}']);
    assert.deepEqual(new Set(callers.map(({ origin }) => origin)), new Set(['Code']));
    const nested = fixture.events.filter((event) => event.type === 'tool-call' && event.depth === 1);
    assert.deepEqual(
      nested.map((event) => event.type === 'tool-call' && [event.id, event.tool, event.origin]),
      [1, 2, 3, 4].map((n) => [`call-0/${n}`, 'double', 'Code']),
    );
  });

  it('a program catches a failure, fails by throwing, and prints', async () => {
    await using fixture = codeLoop(
      sandbox,
      [
        invoke(
          `try { await ctx.manager.invoke('no_such', {}); } catch (error) { console.log('caught', error.code); return error.code; }`,
        ),
        invoke(`throw new Error('gave up');`),
        says('done'),
      ],
      { double: () => 1 },
    );
    await fixture.send('go');
    const [caught, thrown] = fixture.results();
    assert.equal(caught, '"TEMPER_TOOL_NOT_FOUND"\n[The code printed:]\ncaught TEMPER_TOOL_NOT_FOUND');
    assert.match(thrown ?? '', /^\{"error":\{"code":"TEMPER_SANDBOX_EXCEPTION","message":"Error: gave up/);
  });

  it('a program that fails leaves a note of its calls with effects: those that succeeded, and those that may have', async () => {
    const open = Promise.withResolvers<Json>();
    await using fixture = codeLoop(
      sandbox,
      [
        invoke(`await ctx.manager.invoke('send', { n: 1 });
          await ctx.manager.invoke('send', { n: 2 });
          await ctx.manager.invoke('read', {});
          await ctx.manager.invoke('refuse', {}).catch(() => {});
          throw new Error('gave up');`),
        invoke(`ctx.manager.invoke('wait', {}).catch(() => {});
          for (let n = 0; n < 5000; n += 1) ctx.manager.invoke('read', { n }).catch(() => {});`),
        invoke(`await ctx.manager.invoke('send', { n: 3 }); return 'sent';`),
        says('done'),
      ],
      {
        send: () => true,
        read: () => 1,
        wait: () => open.promise,
        refuse: () => Promise.reject(new TemperError('TEMPER_POLICY_DENIED', 'no', { retry: 'never' })),
      },
      { effects: ['send', 'wait', 'refuse'], limits: { steps: 10_000 } },
    );
    await fixture.send('go');
    const [thrown, killed, good] = fixture.results();
    assert.match(
      thrown ?? '',
      /gave up.*\n\[These calls succeeded: send \(2 times\)\. Check before you call them again\.\]$/,
    );
    assert.match(
      killed ?? '',
      /\[These calls did not end, and may have had their effects: wait\. Check before you call them again\.\]/,
    );
    assert.equal(good, '"sent"');
  });

  it('finish ends the message with its value, without another model call', async () => {
    await using fixture = codeLoop(sandbox, [invoke(`ctx.manager.finish({ count: 3 }); return 1;`)]);
    const handled = await fixture.send('count', 'm-1');
    assert.deepEqual([handled.reply, handled.finishReason, handled.turns], ['{"count":3}', 'complete', 1]);
    assert.equal((await fixture.send('count', 'm-1')).reply, '{"count":3}', 'a redelivered message has the same reply');
    assert.equal(fixture.model.requests.length, 1);
  });

  it('with a schema of returns, a value that does not match it is refused, and a matching one ends the message', async () => {
    const schema = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}';
    const returns = requiredValue(schema, createSchemaCompiler());
    await using fixture = codeLoop(
      sandbox,
      [invoke(`ctx.manager.finish({ count: 'three' });`), says('three'), invoke(`ctx.manager.finish({ count: 3 });`)],
      {},
      { returns },
    );
    const { reply, finishReason, turns } = await fixture.send('count');
    assert.deepEqual([reply, finishReason, turns], ['{"count":3}', 'complete', 3]);
    const [first, , last] = fixture.model.requests;
    assert.match(
      first?.system ?? '',
      /ctx\.manager\.finish takes an object that matches this JSON Schema: \{"type":"object"/,
    );
    assert.ok(!/\{"name":"finish"/.test(first?.system ?? ''));
    assert.match(JSON.stringify(last?.messages), /TEMPER_TOOL_OUTPUT_INVALID.*Your answer has no result/);
  });

  it('a program that throws after it finished has failed', async () => {
    await using fixture = codeLoop(sandbox, [invoke(`ctx.manager.finish('x'); throw new Error('no');`), says('sorry')]);
    assert.equal((await fixture.send('go')).reply, 'sorry');
  });

  it('memory lives with its session, closures too, and continues from its snapshot in another process', async () => {
    await using first = codeLoop(sandbox, [
      invoke('memory.count = 1; memory.next = () => (memory.count += 1);'),
      invoke('return memory.next();'),
      says('done'),
    ]);
    await first.send('go');
    const [one, two] = first.results();
    assert.match(
      one ?? '',
      /^null\n\[These members of memory are not JSON and are lost when the session moves: next \(it is a function/,
    );
    assert.equal(two, '2');
    await using second = codeLoop(
      sandbox,
      [invoke('return [memory.count, typeof memory.next];'), says('done')],
      {},
      { records: first.records },
    );
    await second.send('again');
    assert.match(
      second.results().at(-1) ?? '',
      /^\[2,"undefined"\]\n\[The runner of the session was started again\. .*: next\.\]$/,
    );
  });

  it('memory is as before a run that ended its runner, and the model is informed', async () => {
    await using fixture = codeLoop(sandbox, [
      invoke('memory.a = 1;'),
      invoke('memory.a = 2; for (let n = 0; n < 5000; n += 1) ctx.manager.invoke("x").catch(() => {});'),
      invoke('return memory.a;'),
      says('done'),
    ]);
    await fixture
      .send('go')
      .catch((error: unknown) => assert.ok(isTemperError(error, 'TEMPER_STEP_LIMIT'), String(error)));
    const [, killed] = fixture.results();
    assert.match(killed ?? '', /TEMPER_SANDBOX_CALL_BUDGET.*\n\[The run ended the runner of the session\./);
  });

  it('the inner calls are the steps of the message', async () => {
    let made = 0;
    const tools = { count: () => (made += 1) };
    await using fixture = codeLoop(
      sandbox,
      [invoke('for (let n = 0; n < 10; n += 1) await ctx.manager.invoke("count", { n });'), says('that is all')],
      tools,
      { limits: { steps: 3 } },
    );
    await assert.rejects(fixture.send('go'), (error) => {
      assert.ok(isTemperError(error, 'TEMPER_STEP_LIMIT'));
      return error.details['reply'] === 'that is all';
    });
    assert.equal(made, 3);
    assert.match(fixture.results()[0] ?? '', /all tool calls for this message are used up/);
  });

  it('a program without calls takes a step, so that a message of such programs ends', async () => {
    await using fixture = codeLoop(sandbox, [invoke('return 1;')], {}, { limits: { steps: 2 } });
    await assert.rejects(fixture.send('go'), (error) => isTemperError(error, 'TEMPER_STEP_LIMIT'));
  });

  it('only bare names of tools are called, and other tools are not called directly', async () => {
    await using fixture = codeLoop(
      sandbox,
      [
        invoke(`const codes = [];
          for (const name of ['inline://code,return 1', 'file:///etc/passwd', 'double@sha256:00', '../double', 'Double', '', 'x'.repeat(64)]) {
            try { await ctx.manager.invoke(name, {}); } catch (error) { codes.push(error.code); }
          }
          return codes;`),
        calls(['double', { n: 1 }, 'direct']),
        calls(['invoke', '{"code":', 'cut']),
        says('done'),
      ],
      { double: () => assert.fail('the tool was called') },
    );
    await fixture.send('go');
    const [refused, direct, cut] = fixture.results();
    assert.deepEqual(
      JSON.parse(refused ?? ''),
      Array.from({ length: 7 }, () => 'TEMPER_TOOL_NOT_FOUND'),
    );
    assert.match(direct ?? '', /TEMPER_TOOL_NOT_FOUND.*ctx\.manager\.invoke\('double'/);
    assert.match(cut ?? '', /TEMPER_TOOL_INPUT_INVALID/);
  });

  it('a call that is not awaited, and a warning of the loop guard, are notes for the model', async () => {
    await using fixture = codeLoop(sandbox, [invoke('ctx.manager.invoke("slow"); return 1;'), says('done')], {
      slow: () => 1,
    });
    await fixture.send('go');
    assert.equal(
      fixture.results()[0],
      '1\n[Calls that the code did not await: 1. They ended before the code. Await every call.]',
    );
  });

  it('a refusal of the loop guard that ends the message ends it after the program', async () => {
    await using fixture = codeLoop(
      sandbox,
      [invoke('try { await ctx.manager.invoke("same"); } catch {} return 1;'), says('blocked')],
      {
        same: () => {
          throw new TemperError('TEMPER_LOOP_DETECTED', 'no progress', { details: { rule: 'loop-guard.break' } });
        },
      },
    );
    await assert.rejects(fixture.send('go'), (error) => isTemperError(error, 'TEMPER_LOOP_DETECTED'));
  });

  it('a failure of the engine ends the program and the message', async () => {
    await using fixture = codeLoop(sandbox, [invoke('await ctx.manager.invoke("broken"); return 1;')], {
      broken: () => {
        throw new Error('the audit record cannot be written');
      },
    });
    await assert.rejects(fixture.send('go'), /audit record/);
  });

  it('a message that is cancelled ends its program', async () => {
    await using fixture = codeLoop(sandbox, [invoke('await new Promise((resolve) => setTimeout(resolve, 60_000));')]);
    const controller = new AbortController();
    const handled = fixture.loop.handle(
      { session: 's-1', rootMessage: 'r', text: 'go' },
      aCodeAgent(),
      (event) => {
        if (event.type === 'tool-call') controller.abort();
      },
      { signal: controller.signal, deadline: systemClock.monotonic() + 30_000, key: 'k' },
    );
    await assert.rejects(handled, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
  });
});
