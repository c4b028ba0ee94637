import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { aCallContext } from '../../test/support/call-context.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { CODE_RUN_TOOL, codeRunTool } from './code-run.ts';

const context = aCallContext();

describe('code_run', () => {
  let sandbox: Supervisor;
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  const run = async (code: string, input?: Json): Promise<Json> => {
    const limits = () => ({ durationMilliseconds: 300, memoryBytes: 32 << 20 });
    const argument = { code, ...(input === undefined ? {} : { input }) };
    const schemas = createSchemaCompiler();
    assert.deepEqual(schemas.check(CODE_RUN_TOOL.inputSchema)(argument), []);
    const output = await codeRunTool({ sandbox, limits }).call(argument, context);
    assert.deepEqual(schemas.check(CODE_RUN_TOOL.outputSchema ?? {})(output), []);
    return output;
  };
  const fails = (code: string, expected: Parameters<typeof isTemperError>[1], message = /./): Promise<void> =>
    assert.rejects(run(code), (error: Error) => {
      assert.ok(isTemperError(error, expected), String(error));
      assert.match(error.message, message);
      return true;
    });

  it('code returns a JSON value and what it printed', async () => {
    const code = `console.log('sum of', input); // a comment
      return (await Promise.all(input)).reduce((a, b) => a + b, 0)`;
    assert.deepEqual(await run(code, [1, 2, 3]), { value: 6, log: 'sum of [1,2,3]\n' });
    assert.deepEqual(await run('console.warn(1n, undefined)'), { value: null, log: '1 undefined\n' });
    assert.deepEqual(await run('// nothing'), { value: null, log: '' });
  });

  it('the lines that code prints are cut at a limit', async () => {
    const cut = await run(`for (let line = 0; line < 9999; line += 1) console.log('line ' + line); return 1`);
    const { value, log, logIsCut } = cut as { value: number; log: string; logIsCut: boolean };
    assert.deepEqual([value, log.length, logIsCut], [1, 16_384, true]);
  });

  it('an error names the reason, its line and what the code had printed', async () => {
    await fails(
      `console.log('step 1'); throw new RangeError('too far')`,
      'TEMPER_SANDBOX_EXCEPTION',
      /RangeError: too far.*step 1/,
    );
    await fails('const a = 1;\nconst a = 2;', 'TEMPER_SANDBOX_SYNTAX', /2/);
    await fails('return () => 1', 'TEMPER_SANDBOX_OUTPUT_INVALID');
    await fails('while (true);', 'TEMPER_SANDBOX_TIMEOUT');
    await fails('await new Promise(() => {})', 'TEMPER_SANDBOX_TIMEOUT');
    await fails(`return 'x'.repeat(300000)`, 'TEMPER_SANDBOX_OUTPUT_TOO_LARGE');
  });

  it('code has no host function, no clock, no randomness and no modules', async () => {
    const absent = ['fetch', 'process', 'require', 'fs', 'WebAssembly', 'SharedArrayBuffer'];
    const found = await run('return input.filter((name) => typeof globalThis[name] !== "undefined")', absent);
    for (const name of (found as { value: string[] }).value) {
      await fails(
        `await globalThis.${name}.readFile?.('/etc/passwd') ?? ${name}('https://example.com')`,
        'TEMPER_SANDBOX_EXCEPTION',
      );
    }
    for (const code of [
      'Date.now()',
      'Math.random()',
      'new Date()',
      `await import('node:fs')`,
      `new Function('1')()`,
    ]) {
      await fails(`return ${code}`, 'TEMPER_SANDBOX_EXCEPTION');
    }
  });

  it('code that leaves its function changes only what its own call returns', async () => {
    const code = `return 1; })(input, console); return { value: 'other', log: 7, cut: 1 }; } catch {} } function unused() { try { (() => {`;
    assert.deepEqual(await run(code), { value: 'other', log: '' });
    assert.deepEqual(await run('return typeof unused'), { value: 'undefined', log: '' });
  });
});
