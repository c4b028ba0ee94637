import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentEvent } from '../../tools/events.ts';
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

  it('the transcript uses colours only when they are enabled', () => {
    const event: AgentEvent = { type: 'warning', code: 'x', message: 'careful' };
    assert.ok(!(shown([event])[0] ?? '').includes('\u001b'));
    assert.ok((shown([event], true)[0] ?? '').includes('\u001b[33m'));
  });
});
