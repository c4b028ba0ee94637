import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentEvent } from '../../tools/events.ts';
import { displayWidth } from '../display-width.ts';
import { Screen } from './screen.ts';
import { Transcript } from './transcript.ts';

function output(events: AgentEvent[], options: { colour?: boolean; columns?: number } = {}): string {
  let out = '';
  const { colour = false, columns } = options;
  const screen = new Screen({
    out: (text) => (out += text),
    colour,
    ...(columns === undefined ? {} : { columns: () => columns }),
  });
  const transcript = new Transcript('analyst', screen);
  for (const event of events) transcript.show(event);
  return out;
}

/** The lines in a pipe. */
function shown(events: AgentEvent[], colour = false): string[] {
  return output(events, { colour }).split('\n').slice(0, -1);
}

function end(reply: string): AgentEvent {
  return { type: 'session-end', turns: 1, toolCalls: 0, inputTokens: 0, outputTokens: 0, reply };
}

function result(id: string, summary: string): Extract<AgentEvent, { type: 'tool-result' }> {
  return { type: 'tool-result', id, tool: 'file_read', ok: true, summary, milliseconds: 1 };
}

const forge: AgentEvent[] = [
  { type: 'forge-start', tool: 'csv_rows', mode: 'sandbox', description: 'Parse CSV' },
  { type: 'forge-gate', tool: 'csv_rows', result: { gate: 'shape', passed: true, note: '' } },
  { type: 'forge-gate', tool: 'csv_rows', result: { gate: 'tests', passed: false, note: '1/2' } },
];

describe('the transcript', () => {
  it('the transcript prints the header once for several messages', () => {
    const start: AgentEvent = { type: 'session-start', session: 's', model: 'a/b', policy: 'p', level: 'restricted' };
    assert.deepEqual(shown([start, start]), ['Agent analyst · model a/b · policy p (level restricted)']);
  });

  it('the transcript prints repetitions of model calls, summaries, the choice of a model and the context', () => {
    const retry = { type: 'retry', model: 'a/b', code: 'TEMPER_MODEL_OVERLOADED' } as const;
    assert.deepEqual(
      shown([
        { ...retry, attempt: 2, milliseconds: 640 },
        { ...retry, model: 'c/d', attempt: 1, milliseconds: 0 },
        { type: 'compaction', items: 21, characters: 900 },
        { type: 'model-routed', points: 120, complexity: 'Medium', model: 'a/b' },
        {
          type: 'context',
          characters: 300,
          parts: [
            { kind: 'File', name: 'SOUL.md', state: 'Included', characters: 120 },
            { kind: 'Memory', name: 'self.profile', state: 'Missing', characters: 0 },
          ],
        },
      ]),
      [
        '  ! TEMPER_MODEL_OVERLOADED: attempt 2 with a/b in 0.6 s',
        '  ! TEMPER_MODEL_OVERLOADED: attempt 1 with c/d',
        '  the first 21 items of the session are summarised',
        '  model a/b for a message of complexity Medium (120 points)',
        '  context: SOUL.md (120 characters), self.profile (Missing)',
      ],
    );
  });

  it('the transcript prints text of the agent once, before the tool call', () => {
    const lines = shown([
      { type: 'message', text: 'Let me ', delta: true },
      { type: 'message', text: 'look.', delta: true },
      { type: 'message', text: 'Let me look.', delta: false },
      { type: 'tool-call', id: '1', tool: 'file_list', input: { path: 'data' } },
      { type: 'tool-call', id: '2', tool: 'file_list', input: {} },
    ]);
    assert.deepEqual(lines, [
      '  analyst  “Let me look.”',
      '  analyst  calls   file_list  {"path":"data"}',
      '  analyst  calls   file_list',
    ]);
  });

  it('gates that a pod reports are marked, and verdicts of the gateway are not', () => {
    let out = '';
    const screen = new Screen({ out: (text) => (out += text), colour: false });
    const transcript = new Transcript('analyst', screen, { isReported: true });
    const gates = [
      ['shape', true, ''],
      ['tests', true, '3/3 ×2'],
      ['policy', true, ''],
      ['judge', true, '0.93'],
      ['registration', true, 'Session'],
    ] as const;
    transcript.show({ type: 'forge-start', tool: 'csv_rows', mode: 'sandbox', description: 'Parse CSV' });
    for (const [gate, passed, note] of gates)
      transcript.show({ type: 'forge-gate', tool: 'csv_rows', result: { gate, passed, note } });
    transcript.show({ type: 'forge-accepted', tool: 'csv_rows', digest: `sha256:${'ab'.repeat(32)}`, tier: 'Session' });
    const lines = out.split('\n').map((line) => line.replaceAll('\u00a0', ' ').trim());
    assert.deepEqual(lines.slice(1, 3), [
      'reported by the pod:  shape ✓  tests 3/3 ×2 ✓',
      'policy ✓  judge 0.93 ✓  registration Session ✓',
    ]);
    const refused = shown([{ ...forge[0] } as AgentEvent, ...forge.slice(1)]);
    assert.ok(!refused.join('').includes('reported'), 'a run observes its gates itself');
  });

  it('the transcript prints the gates of a forge on one line when the forge ends', () => {
    const refused: AgentEvent = {
      type: 'forge-refused',
      tool: 'csv_rows',
      gate: 'tests',
      code: 'TEMPER_FORGE_TEST_FAILED',
      message: 'case 2: expected 1, got 2',
    };
    const lines = shown([...forge, refused]);
    assert.equal(lines.length, 4);
    assert.match(
      lines.slice(1).join('\n'),
      /shape ✓ {2}tests 1\/2 ✗\n +case 2: expected 1, got 2\n +→ reported to the agent, nothing registered/,
    );
  });

  it('the transcript separates the gates of two concurrent forges', () => {
    const other: AgentEvent = { type: 'forge-start', tool: 'other', mode: 'compose', description: '' };
    const accepted: AgentEvent = {
      type: 'forge-accepted',
      tool: 'other',
      digest: `sha256:${'ab'.repeat(32)}`,
      tier: 'Session',
    };
    const gate: AgentEvent = {
      type: 'forge-gate',
      tool: 'other',
      result: { gate: 'judge', passed: true, note: '0.93' },
    };
    const lines = shown([...forge, other, gate, accepted]);
    assert.match(lines.slice(-2).join('\n'), /^ +judge 0\.93 ✓\n +→ other@abababab {2}tier Session$/);
  });

  it('the transcript escapes control characters in untrusted text', () => {
    const evil = 'ok\u001b[2J\u202egnp.exe';
    const lines = shown([
      { type: 'message-received', text: evil },
      { type: 'tool-call', id: '1', tool: evil, input: { path: evil } },
      { type: 'forge-start', tool: evil, mode: 'sandbox', description: evil },
      { type: 'warning', code: 'x', message: evil },
      { type: 'session-end', turns: 1, toolCalls: 0, inputTokens: 0, outputTokens: 0, reply: evil },
    ]);
    assert.ok(!lines.join('').includes('\u001b') && !lines.join('').includes('\u202e'), lines.join('\n'));
  });

  it('a pipe receives no partial text, and the answer once', () => {
    const out = output([
      { type: 'message', text: 'It is ', delta: true },
      { type: 'message', text: '42.', delta: true },
      { type: 'message', text: 'It is 42.', delta: false },
      end('It is 42.'),
    ]);
    assert.equal(out, '◂ analyst: It is 42.\n');
  });

  it('a terminal receives each word when it arrives, and the answer once', () => {
    let out = '';
    const screen = new Screen({ out: (text) => (out += text), colour: false, columns: () => 80 });
    const transcript = new Transcript('analyst', screen);
    transcript.show({ type: 'message', text: 'It is fo', delta: true });
    assert.equal(out, '◂ analyst: It is', 'the last word may be incomplete');
    transcript.show({ type: 'message', text: 'rty-two.', delta: true });
    transcript.show({ type: 'message', text: 'It is forty-two.', delta: false });
    transcript.show(end('It is forty-two.'));
    assert.equal(out, '◂ analyst: It is forty-two.\n');
  });

  it('a terminal receives the whole text of an answer that was repeated after a broken one', () => {
    const out = output(
      [
        { type: 'message', text: 'It is fo', delta: true },
        { type: 'message', text: 'It is 42.', delta: false },
        end('It is 42.'),
      ],
      { columns: 80 },
    );
    assert.ok(out.endsWith('\n◂ analyst: It is 42.\n'), out);
  });

  it('a continued answer is streamed as one text', () => {
    const out = output(
      [
        { type: 'message', text: 'one ', delta: true },
        { type: 'message', text: 'one ', delta: false },
        { type: 'turn-end', turn: 1, inputTokens: 1, outputTokens: 1 },
        { type: 'message', text: 'two', delta: true },
        { type: 'message', text: 'two', delta: false },
        end('one two'),
      ],
      { columns: 80 },
    );
    assert.equal(out, '◂ analyst: one two\n');
  });

  it('a secret that arrives in pieces is redacted on a terminal', () => {
    let out = '';
    const redact = (text: string): string => text.replaceAll('sk-secret', '[redacted]');
    const screen = new Screen({ out: (text) => (out += text), colour: false, columns: () => 16, redact });
    const transcript = new Transcript('a', screen);
    for (const text of ['The key is sk', '-sec', 'ret now']) transcript.show({ type: 'message', text, delta: true });
    transcript.show(end('The key is sk-secret now'));
    assert.ok(out.replaceAll(/\s/g, '').includes('[redacted]'), out);
    assert.ok(!out.replaceAll(/\s/g, '').includes('sk-secret'), out);
  });

  for (const columns of [40, 80, 200]) {
    it(`no line is wider than a terminal of ${columns} columns, and continuation lines are indented`, () => {
      const gates = ['shape', 'static', 'schemas', 'build', 'tests', 'policy'] as const;
      const out = output(
        [
          { type: 'message-received', text: 'word '.repeat(60) },
          { type: 'tool-call', id: '1', tool: 'file_read', input: { path: '日本語'.repeat(20) } },
          result('1', 'x'.repeat(160)),
          ...gates.map(
            (gate): AgentEvent => ({
              type: 'forge-gate',
              tool: 'csv_rows',
              result: { gate, passed: true, note: '3/3 ×2' },
            }),
          ),
          { type: 'message', text: '漢字'.repeat(120), delta: true },
          end('漢字'.repeat(120)),
        ].toSpliced(3, 0, {
          type: 'forge-start',
          tool: 'csv_rows',
          mode: 'sandbox',
          description: 'Parse',
        }) as AgentEvent[],
        { columns },
      );
      const lines = out.split('\n').slice(0, -1);
      for (const line of lines) assert.ok(displayWidth(line) <= columns, `${displayWidth(line)}: ${line}`);
      for (const line of lines) assert.match(line, /^( {2}|▸|◂)/);
    });
  }

  it('a call that another call makes is indented by its depth, and its result names it', () => {
    const nested = { origin: 'Compose', depth: 1 } as const;
    const lines = shown([
      { type: 'tool-call', id: '1', tool: 'report', input: { path: 'a' } },
      { type: 'tool-call', id: '1/1', ...nested, tool: 'file_read', input: { path: 'a' } },
      { type: 'tool-call', id: '1/1/1', origin: 'Compose', depth: 2, tool: 'clock', input: {} },
      { ...result('1/1/1', 'now'), ...nested, tool: 'clock' },
      { ...result('1/1', 'text'), ...nested },
      { ...result('1', 'done'), tool: 'report' },
    ]);
    assert.deepEqual(lines.slice(0, 3), [
      '  analyst  calls   report  {"path":"a"}',
      '  analyst  ↳ calls   file_read  {"path":"a"}',
      '  analyst    ↳ calls   clock',
    ]);
    assert.match(lines[4] ?? '', /✓ file_read \{"path":"a"\}: text$/);
  });

  it('each result follows its call; a result of a parallel call names the call', () => {
    const lines = shown([
      { type: 'tool-call', id: '1', tool: 'file_read', input: { path: 'a' } },
      result('1', 'first'),
      { type: 'tool-call', id: '2', tool: 'file_read', input: { path: 'b' } },
      { type: 'tool-call', id: '3', tool: 'file_read', input: { path: 'c' } },
      { ...result('3', 'third'), ok: false },
      result('2', 'second'),
    ]);
    assert.equal(lines[1], '             ✓ first');
    assert.equal(lines[4], '             ✗ file_read {"path":"c"}: third');
    assert.equal(lines[5], '             ✓ file_read {"path":"b"}: second');
  });

  it('a forge_tool call that fails before the first gate is shown', () => {
    const failed: AgentEvent = {
      type: 'tool-result',
      id: '1',
      tool: 'forge_tool',
      ok: false,
      code: 'TEMPER_FORGE_DISABLED',
      summary: 'forging is disabled',
      milliseconds: 1,
    };
    const lines = shown([{ type: 'tool-call', id: '1', tool: 'forge_tool', input: {} }, failed]);
    assert.deepEqual(lines, ['             ✗ forge_tool: forging is disabled']);
  });

  it('an interrupted message has no answer line', () => {
    const lines = shown([{ type: 'error', code: 'TEMPER_CANCELLED', message: 'x', attempt: 1 }, end('')]);
    assert.deepEqual(lines, ['  ! interrupted']);
  });

  it('output waits while the user answers a question', () => {
    let out = '';
    const screen = new Screen({ out: (text) => (out += text), colour: false });
    screen.hold();
    screen.line('later');
    assert.equal(out, '');
    screen.release();
    assert.equal(out, 'later\n');
  });

  it('the transcript uses colours only when they are enabled', () => {
    const event: AgentEvent = { type: 'warning', code: 'x', message: 'careful' };
    assert.ok(!(shown([event])[0] ?? '').includes('\u001b'));
    assert.ok((shown([event], true)[0] ?? '').includes('\u001b[33m'));
  });
});
