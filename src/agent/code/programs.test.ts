import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ModelEvent } from '../../models/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { calls, says } from '../loop/scripted-loop.testing.ts';
import { requiredValue } from '../returns/finish.ts';
import { codeLoop } from './code-mode.testing.ts';

const FOLDER = join(import.meta.dirname, '../../../test/fixtures/programs');

/** A program as its file has it. */
const program = (name: string): string => readFileSync(join(FOLDER, `${name}.js`), 'utf8');
const runs = (code: string): ModelEvent[] => calls(['invoke', { code }]);

function readFile(input: Json): Json {
  const { path } = input as { path: string };
  if (path === 'present.txt') return { text: 'here' };
  throw new TemperError('TEMPER_NOT_FOUND', `there is no file ${path}`);
}

describe('the programs that the specification of code mode writes', () => {
  let sandbox: Supervisor;
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock, warm: 0 });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  it('a program finishes with the result of a tool, and the message ends without another model call', async () => {
    const [comment, invocation, finish] = program('result-or-failure').split('\n');
    const inputs: Json[] = [];
    await using fixture = codeLoop(sandbox, [runs([comment, invocation, finish].join('\n'))], {
      'skill-name': (input) => {
        inputs.push(input);
        return { done: true };
      },
    });
    const handled = await fixture.send('go');
    assert.deepEqual([handled.reply, handled.turns], ['{"done":true}', 1]);
    assert.deepEqual(inputs, [{ key: 'value' }]);
  });

  it('a program that signals failure has failed with its reason, and finishes nothing', async () => {
    await using fixture = codeLoop(sandbox, [runs(program('result-or-failure')), says('It failed.')], {
      'skill-name': () => ({ done: true }),
    });
    const handled = await fixture.send('go');
    assert.deepEqual([handled.reply, handled.turns], ['It failed.', 2]);
    assert.match(fixture.results()[0] ?? '', /TEMPER_SANDBOX_EXCEPTION.*Error: reason/);
  });

  it('memory counts the programs of a session, across its messages', async () => {
    const count = runs(program('memory'));
    await using fixture = codeLoop(sandbox, [count, count, says('two'), count, runs('return memory;'), says('three')]);
    await fixture.send('count');
    await fixture.send('count again');
    assert.equal(fixture.results().at(-1), '{"count":3}');
  });

  it('a loop with conditions calls a tool until it has no more pages', async () => {
    const pages: Record<number, Json> = {
      1: { items: [{ name: 'a', open: true }, { name: 'b' }], next: 2 },
      2: { items: [], next: 3 },
      3: { items: [{ name: 'c', open: true }] },
    };
    await using fixture = codeLoop(sandbox, [runs(program('loop')), says('done')], {
      'page-read': (input) => pages[(input as { page: number }).page] ?? assert.fail('no such page'),
    });
    assert.equal((await fixture.send('go')).toolCalls, 3);
    assert.deepEqual(fixture.results(), ['["a","c"]']);
  });

  it('two calls of one program are open at the same time', async () => {
    const waiting: (() => void)[] = [];
    await using fixture = codeLoop(sandbox, [runs(program('parallel')), says('done')], {
      meet: async (input) => {
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          if (waiting.length === 2) for (const resume of waiting) resume();
        });
        return (input as { side: string }).side;
      },
    });
    await fixture.send('go');
    assert.deepEqual(fixture.results(), ['{"left":"left","right":"right"}']);
  });

  it('a program catches the failure of a call by its code and goes on', async () => {
    await using fixture = codeLoop(sandbox, [runs(program('catch')), says('done')], { 'file-read': readFile });
    await fixture.send('go');
    assert.deepEqual(fixture.results(), ['{"code":"TEMPER_NOT_FOUND","found":{"text":"here"}}']);
  });

  it('a program calls bare names only', async () => {
    await using fixture = codeLoop(sandbox, [runs(program('untrusted-refs')), says('done')], { 'file-read': readFile });
    await fixture.send('go');
    const refused = Array<string>(5).fill('TEMPER_TOOL_NOT_FOUND');
    assert.deepEqual(JSON.parse(fixture.results()[0] ?? ''), { refused, called: { text: 'here' } });
  });

  it('a value that breaks the schema of returns is asked for again, and a matching one ends the message', async () => {
    const returns = requiredValue(
      '{"type":"object","properties":{"count":{"type":"number"}},"required":["count"]}',
      createSchemaCompiler(),
    );
    const answers = [
      says('There are two.'),
      runs('ctx.manager.finish({});'),
      runs('ctx.manager.finish({ count: 2 });'),
    ];
    await using fixture = codeLoop(sandbox, answers, {}, { returns });
    const handled = await fixture.send('go');
    assert.deepEqual([handled.reply, handled.turns], ['{"count":2}', 3]);
    const asked = JSON.stringify(fixture.model.requests.at(-1)?.messages);
    assert.match(asked, /Your answer has no result/);
    assert.match(asked, /TEMPER_TOOL_OUTPUT_INVALID/);
  });

  it('a program that serves a middleware learns that no agent serves one, and what to call', async () => {
    await using fixture = codeLoop(sandbox, [runs(program('middleware')), says('done')]);
    await fixture.send('go');
    assert.match(fixture.results()[0] ?? '', /TEMPER_SANDBOX_EXCEPTION.*serves no tool.*ctx\.manager\.invoke/);
  });
});
