import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import type { AgentEvent, Gate } from '../../tools/events.ts';
import { displayWidth } from '../display-width.ts';
import { Screen } from './screen.ts';
import { graphemes } from './styled-text.ts';
import { Transcript } from './transcript.ts';

/** The expected output. `UPDATE_GOLDEN=1 node --test` writes it again; review the difference. */
const GOLDEN = resolve(import.meta.dirname, '../../../test/fixtures/transcript');

const FAMILY = '👩‍👩‍👧‍👦';
const LONG_NAME = '地域別売上高集計および前四半期比較ツール第二版';

/** An answer as a provider streams it, in pieces of a few characters. */
function streamed(text: string): AgentEvent[] {
  const clusters = graphemes(text);
  const pieces = Array.from({ length: Math.ceil(clusters.length / 3) }, (_, index) =>
    clusters.slice(3 * index, 3 * index + 3).join(''),
  );
  const deltas = pieces.map((piece): AgentEvent => ({ type: 'message', text: piece, delta: true }));
  return [...deltas, { type: 'message', text, delta: false }];
}

function gates(tool: string, notes: readonly (readonly [gate: Gate, passed: boolean, note: string])[]): AgentEvent[] {
  return notes.map(([gate, passed, note]) => ({ type: 'forge-gate', tool, result: { gate, passed, note } }));
}

const ANSWER = `売上高は前四半期から大きく減少しました。 The region West fell most: −$18,204.50 (−11.3 %) ${FAMILY} 👍🏽 🇩🇪 ❤️, cafe\u0301.

| region | Q2 | Q3 |
- https://example.com/a/very/long/address/that/no/line/of/forty/columns/can/contain?and=more
\u001b[2Jnot a control sequence\u0007`;

const EVENTS: readonly AgentEvent[] = [
  { type: 'session-start', session: 's', model: 'openai/gpt-4o-mini', policy: 'quickstart', level: 'restricted' },
  {
    type: 'message-received',
    text: `Which region’s revenue fell most between Q2 and Q3, and by how much? 地域別に。 ${FAMILY}`,
  },
  { type: 'turn-start', turn: 1 },
  { type: 'reasoning', text: 'The files come first.' },
  ...streamed('I read both files before I forge a parser for them. 😀'),
  { type: 'tool-call', id: '1', tool: 'file_read', input: { path: 'data/orders-2026-04.csv' } },
  { type: 'tool-call', id: '2', tool: 'file_read', input: { path: `data/${LONG_NAME}.csv` } },
  {
    type: 'tool-result',
    id: '2',
    tool: 'file_read',
    ok: false,
    summary: `"data/${LONG_NAME}.csv" does not exist; list the folder with file_list to see what is there`,
    milliseconds: 1,
  },
  {
    type: 'tool-result',
    id: '1',
    tool: 'file_read',
    ok: true,
    summary:
      '{"text":"order,region,amount\\n1,West,12.50\\n2,East,8.25\\n3,North,99.10","bytes":20480,"truncated":true}',
    milliseconds: 2,
  },
  {
    type: 'forge-start',
    tool: 'csv_rows',
    mode: 'Sandbox',
    description: 'Parses CSV with quotes and embedded line breaks into one object per row.',
  },
  ...gates('csv_rows', [
    ['shape', true, ''],
    ['static', true, ''],
    ['schemas', true, ''],
    ['build', true, ''],
    ['policy', true, ''],
    ['tests', true, '3/3 ×2'],
    ['resources', true, '8 ms · 2.1 MiB'],
    ['judge', true, '0.93'],
  ]),
  { type: 'forge-accepted', tool: 'csv_rows', digest: `sha256:${'3f2a91c0'.repeat(8)}`, tier: 'Session' },
  {
    type: 'forge-start',
    tool: LONG_NAME,
    mode: 'Compose',
    description: '地域別の売上高を集計し、前四半期と比較して差額と増減率を返します。',
  },
  ...gates(LONG_NAME, [
    ['shape', true, ''],
    ['tests', false, '1/2'],
  ]),
  {
    type: 'forge-refused',
    tool: LONG_NAME,
    gate: 'tests',
    code: 'TEMPER_FORGE_TEST_FAILED',
    message:
      'case 2: expected {"total":412.5,"currency":"USD","rows":[{"region":"West"}]}, got {"total":null}; the tool reads a column that the input does not have\n売上高の列が見つかりません。入力の見出し行を確認してください。',
  },
  {
    type: 'warning',
    code: 'TEMPER_X',
    message:
      'the model answered slowly; the fallback anthropic/claude-haiku-4-5 takes over for the rest of this message',
  },
  {
    type: 'approval-requested',
    request: 'file-write-k4q7p',
    tool: 'file_write',
    risk: 'medium',
    reason: 'rules.requireApproval names code:write, and the path is outside the folder of the report',
  },
  { type: 'approval-decided', request: 'file-write-k4q7p', decision: 'Approve', by: 'person/alice' },
  {
    type: 'promotion',
    tool: 'csv_rows',
    digest: 'sha256:3f',
    from: 'Session',
    to: 'Agent',
    state: 'Promoted',
    note: '6 valid uses of 6, 6 distinct inputs → panel: safety ✓ 0.91, correctness ✓ 0.90',
  },
  {
    type: 'demotion',
    tool: LONG_NAME,
    digest: 'sha256:b8',
    reason: 'a re-run with a recorded input gave another output than before',
  },
  ...streamed(ANSWER),
  { type: 'session-end', turns: 2, toolCalls: 2, inputTokens: 1, outputTokens: 1, reply: ANSWER },
  { type: 'message-received', text: 'And by product?' },
  ...streamed('The products are').slice(0, 4),
  {
    type: 'error',
    code: 'TEMPER_MODEL_UNREACHABLE',
    message:
      'provider "openai" cannot be reached at api.openai.com: getaddrinfo ENOTFOUND api.openai.com; check the host name in baseUrl and the DNS of this machine',
    attempt: 1,
  },
  { type: 'session-end', turns: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, reply: '' },
];

function render(columns: number | undefined, colour: boolean): string {
  let out = '';
  const screen = new Screen({
    out: (text) => (out += text),
    colour,
    ...(columns === undefined ? {} : { columns: () => columns }),
  });
  const transcript = new Transcript('analyst', screen);
  for (const event of EVENTS) transcript.show(event);
  return out;
}

/** Line ends and the colour sequences of this program are the only control characters. */
function hasBareControl(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- searches for control characters
  return /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(text.replaceAll(/\u001b\[\d+(?:;\d+)*m/g, ''));
}

describe('the transcript of every kind of event', () => {
  for (const columns of [40, 80, 200, undefined]) {
    for (const colour of [false, true]) {
      const name = `${columns ?? 'pipe'}${colour ? '-colour' : ''}`;

      it(`${name} is as reviewed`, async () => {
        const file = join(GOLDEN, `${name}.txt`);
        const rendered = render(columns, colour);
        if (process.env['UPDATE_GOLDEN'] === '1') {
          await mkdir(GOLDEN, { recursive: true });
          await writeFile(file, rendered);
        }
        assert.equal(rendered, await readFile(file, 'utf8'));
      });
    }
  }

  for (const columns of [20, 33, 40, 41, 80, 200]) {
    it(`${columns} columns: no line is longer, no control character is bare, and colour changes no text`, () => {
      const plain = render(columns, false);
      for (const line of plain.split('\n')) assert.ok(displayWidth(line) <= columns, `${displayWidth(line)}: ${line}`);
      const coloured = render(columns, true);
      assert.ok(!hasBareControl(plain) && !hasBareControl(coloured));
      assert.equal(stripVTControlCharacters(coloured), plain);
    });

    it(`${columns} columns: no grapheme cluster is split`, () => {
      const lines = render(columns, false).split('\n');
      const isPart = (cluster: string | undefined): boolean =>
        /^[\p{Mark}\p{Cf}\p{Emoji_Modifier}]/u.test(cluster ?? '');
      for (const line of lines) assert.ok(!isPart(graphemes(line.trimStart())[0]), JSON.stringify(line));
      assert.ok(lines.some((line) => line.includes(FAMILY)));
    });
  }
});
