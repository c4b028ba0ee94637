import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runCommandLine } from '../command-line.ts';
import { aTerminal } from '../io.testing.ts';

async function typed(...words: string[]): Promise<{ code: number; out: string; errors: string }> {
  const io = aTerminal();
  const code = await runCommandLine(words, io);
  return { code, out: io.printed(), errors: io.errors() };
}

describe('temper help', () => {
  it('help of a verb is that of --help, also of a verb in a group', async () => {
    for (const verb of [[], ['trace'], ['tool'], ['tool', 'check'], ['sessions', 'close']]) {
      const { code, out, errors } = await typed('help', ...verb);
      assert.deepEqual([code, errors], [0, ''], verb.join(' '));
      assert.equal(out, (await typed(...verb, '--help')).out);
      assert.ok(out.startsWith(`Usage: ${['temper', ...verb].join(' ')} [`), out.slice(0, 80));
    }
    assert.equal((await typed('tool', 'help', 'check')).out, (await typed('tool', 'check', '--help')).out);
  });

  it('help of an unknown verb names the mistake and the nearest verb, and exits as for an unknown verb', async () => {
    const unknown: readonly [string[], string][] = [
      [['nope'], "error: unknown command 'nope'\n"],
      [['tarce'], "error: unknown command 'tarce'\n(Did you mean trace?)\n"],
      [['tool', 'chekc'], "error: unknown command 'tool chekc'\n(Did you mean check?)\n"],
      [['run', 'x'], "error: unknown command 'run x'\n"],
    ];
    for (const [words, message] of unknown)
      assert.deepEqual(await typed('help', ...words), { code: 2, out: '', errors: `${message}(see temper help)\n` });
    assert.deepEqual(await typed('tool', 'help', 'chekc'), {
      code: 2,
      out: '',
      errors: "error: unknown command 'chekc'\n(Did you mean check?)\n(see temper help)\n",
    });
  });
});

describe('a required option', () => {
  it('an unknown option is reported before a missing one', async () => {
    const { code, errors } = await typed('run', '--hlep');
    assert.equal(code, 2);
    assert.equal(errors, "error: unknown option '--hlep'\n(Did you mean --help?)\n(see temper help)\n");
    assert.match((await typed('approve', 'x', '--raeson', 'y')).errors, /^error: unknown option '--raeson'/);
  });

  it('a missing option is an error of the command line', async () => {
    assert.deepEqual(await typed('run'), {
      code: 2,
      out: '',
      errors: "error: required option '-f, --filename <path...>' not specified\n(see temper help)\n",
    });
    assert.match((await typed('approve', 'x')).errors, /^error: required option '--reason <text>' not specified/);
  });
});
