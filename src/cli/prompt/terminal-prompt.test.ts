import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { describe, it } from 'node:test';
import type { Prompt } from '../io.ts';
import { PasteFilter, withLineBreaks } from './paste-filter.ts';
import { terminalPrompt } from './terminal-prompt.ts';

interface FakeTty {
  prompt: Prompt;
  type: (text: string) => void;
  rawModes: boolean[];
  saved: (readonly string[])[];
  interrupts: () => number;
}

function aTty(history: readonly string[] = []): FakeTty {
  const rawModes: boolean[] = [];
  const saved: (readonly string[])[] = [];
  let interrupts = 0;
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => rawModes.push(mode) });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  output.resume();
  const prompt = terminalPrompt(
    {
      input: input as unknown as ReadStream,
      output: output as unknown as WriteStream,
      interrupt: () => (interrupts += 1),
    },
    { history, onHistory: (inputs) => saved.push(inputs) },
  );
  return { prompt, type: (text) => void input.write(text), rawModes, saved, interrupts: () => interrupts };
}

describe('the prompt of a terminal', () => {
  it('a paste of several lines is one input', async () => {
    const tty = aTty();
    tty.type('\u001b[200~one\r\ntwo\rthree\u001b[201~\r');
    assert.equal(await tty.prompt.read('> '), 'one\ntwo\nthree');
    assert.deepEqual(tty.saved, [['one\ntwo\nthree']]);
  });

  it('a paste that arrives in pieces is one input, and its control characters are no keys', async () => {
    const filter = new PasteFilter();
    const pieces = ['a\u001b[20', '0~b\u0003\nc\u001b[2', '01~d'].map((piece) => filter.push(piece));
    assert.equal(withLineBreaks(pieces.join('')), 'ab\ncd');
    assert.equal(filter.push('\u001b'), '\u001b', 'the Escape key is passed on at once');
  });

  it('typed lines are inputs of their own, also when they arrive together', async () => {
    const tty = aTty();
    tty.type('one\rtwo\r');
    assert.equal(await tty.prompt.read('> '), 'one');
    assert.equal(await tty.prompt.read('> '), 'two');
  });

  it('the arrow keys recall earlier inputs, newest first, but not at a question', async () => {
    const tty = aTty(['newest', 'older']);
    tty.type('\u001b[A\u001b[A\r');
    assert.equal(await tty.prompt.read('> '), 'older');
    tty.type('\u001b[Ano\r');
    assert.equal(await tty.prompt.read('? ', { remember: false }), 'no');
    assert.deepEqual(tty.saved, [['older', 'newest']], 'the reply to a question is not kept');
  });

  it('Ctrl-D ends the input, Ctrl-C interrupts, and the terminal leaves raw mode', async () => {
    const tty = aTty();
    tty.type('\u0003\u0004');
    assert.equal(await tty.prompt.read('> '), undefined);
    assert.equal(tty.interrupts(), 1);
    assert.equal(tty.rawModes.at(-1), false);
  });

  it('an aborted signal ends the input', async () => {
    const tty = aTty();
    const abort = new AbortController();
    const reading = tty.prompt.read('> ', { signal: abort.signal });
    abort.abort();
    assert.equal(await reading, undefined);
    assert.equal(await tty.prompt.read('> ', { signal: abort.signal }), undefined);
  });
});
