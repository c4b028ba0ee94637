import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { runCommandLine } from '../command-line.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';
import { createProgram } from '../program.ts';

const aTerminalOf = (columns: number): FakeTerminal => ({ ...aTerminal(), columns: () => columns });

/** The words of every verb and group, the program itself included. */
function verbsOf(command: Command, words: readonly string[] = []): (readonly string[])[] {
  const children = command.commands.filter((child) => child.name() !== '__complete');
  return [words, ...children.flatMap((child) => verbsOf(child, [...words, child.name()]))];
}

async function helpOf(words: readonly string[], io: FakeTerminal): Promise<string> {
  assert.equal(await runCommandLine([...words, '--help'], io), 0);
  return io.printed();
}

function widestLine(text: string): number {
  return Math.max(...text.split('\n').map((line) => line.length));
}

describe('the help on a terminal', () => {
  for (const columns of [40, 80, 200]) {
    it(`no line of the help of any verb is wider than a terminal of ${columns} columns`, async () => {
      const verbs = verbsOf(createProgram(aTerminal(), () => undefined));
      assert.ok(verbs.length > 50);
      for (const words of verbs) {
        const text = await helpOf(words, aTerminalOf(columns));
        const wide = text.split('\n').filter((line) => line.length > columns);
        assert.deepEqual(wide, [], `temper ${words.join(' ')} --help`);
      }
    });
  }

  it('a description stands beside its term where there is space, else below it', async () => {
    assert.match(await helpOf([], aTerminalOf(80)), /^ {2}trace \[options\] <session> +print a past conversation/m);
    assert.match(await helpOf([], aTerminalOf(40)), /^ {2}trace \[options\] <session>\n {6}print a past/m);
    assert.ok(widestLine(await helpOf(['policy', 'explain'], aTerminalOf(200))) > 80);
  });

  it('the help in a pipe has lines of 80 columns, and one after an error those of standard error', async () => {
    assert.ok(widestLine(await helpOf([], aTerminal())) <= 80);
    const io = { ...aTerminal(), errorColumns: () => 40 };
    assert.equal(await runCommandLine(['tool'], io), 2);
    assert.match(io.errors(), /^Usage: temper tool/);
    assert.ok(widestLine(io.errors()) <= 40);
  });
});
