import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { aRequest, anOp, callsOf, eventsOf, modelOver, textOf } from '../raw-http-server.testing.ts';
import type { ModelEvent, ModelMessage, ModelRequest } from '../port.ts';
import { readReplayScript } from './script/read-script.ts';
import type { ReplayCondition, ReplayRule } from './script/script.ts';
import { startReplay } from './server.ts';

const start = (rules: ReplayRule[]) => startReplay({ script: { rules }, clock: systemClock });
const say = (server: { url: string }, changes: Partial<ModelRequest> = {}): Promise<ModelEvent[]> =>
  eventsOf(modelOver('openai-chat', server.url).stream(aRequest(changes), anOp()));
const answerTo = async (rules: ReplayRule[], changes: Partial<ModelRequest> = {}): Promise<string> => {
  await using server = await start(rules);
  return textOf(await say(server, changes));
};

/** A question, one call of each tool, and its result. */
function afterTools(...results: [name: string, text: string, isError?: boolean][]): ModelMessage[] {
  const calls = results.map(([name], index) => ({ id: `c${index}`, name, arguments: '{}' }));
  return [
    { role: 'user', text: 'how much?' },
    { role: 'assistant', text: '', toolCalls: calls },
    ...results.map(
      ([name, text, isError = false], index): ModelMessage => ({
        role: 'tool',
        toolCallId: `c${index}`,
        name,
        text,
        isError,
      }),
    ),
  ];
}

describe('rules of a replay script', () => {
  it('the first matching rule answers', async () => {
    const rules: ReplayRule[] = [
      { when: { lastUser: 'nothing' }, answer: { text: 'a' } },
      { when: { lastUser: 'hell', system: 'brief', turn: 1, last: 'user', model: 'mod*' }, answer: { text: 'b' } },
      { answer: { text: 'c' } },
    ];
    assert.equal(await answerTo(rules), 'b');
  });

  it('a rule matches only if every member of its condition matches', async () => {
    const tools = [{ name: 'sum', description: '', inputSchema: { type: 'object' } }];
    const failing: ReplayCondition[] = [
      { system: 'verbose' },
      { lastUser: 'HELLO' },
      { last: 'tool' },
      { lastTool: {} },
      { turn: 2 },
      { model: 'm*x*l' },
      { model: 'model*model' },
      { tools: ['sum', 'forge_tool'] },
    ];
    for (const when of failing) {
      const rules: ReplayRule[] = [
        { when: { lastUser: 'hello', ...when }, answer: { text: 'no' } },
        { answer: { text: 'yes' } },
      ];
      assert.equal(await answerTo(rules, { tools }), 'yes', JSON.stringify(when));
    }
    const holding: ReplayCondition[] = [{ tools: ['sum'] }, { tools: [] }, { model: '*' }, { model: 'm*d*l' }, {}];
    for (const when of holding) assert.equal(await answerTo([{ when, answer: { text: 'yes' } }], { tools }), 'yes');
  });

  it('lastTool matches the tool results at the end of the conversation, and their errors', async () => {
    const rules: ReplayRule[] = [
      {
        when: { lastTool: { name: 'forge_tool', isError: true, contains: 'TEMPER_FORGE' } },
        answer: { text: 'repair' },
      },
      { when: { lastTool: { name: 'forge_tool' } }, answer: { text: 'use' } },
      { when: { lastTool: { name: 'other' } }, answer: { text: 'other' } },
    ];
    assert.equal(
      await answerTo(rules, { messages: afterTools(['forge_tool', 'TEMPER_FORGE_SYNTAX', true]) }),
      'repair',
    );
    assert.equal(await answerTo(rules, { messages: afterTools(['forge_tool', '{}'], ['other', '{}']) }), 'use');
    const later: ModelMessage[] = [...afterTools(['other', '{}']), { role: 'assistant', text: 'x', toolCalls: [] }];
    await assert.rejects(answerTo(rules, { messages: [...later, { role: 'user', text: 'and?' }] }), (error) =>
      isTemperError(error, 'TEMPER_REPLAY_NO_MATCH'),
    );
  });

  it('turn counts answers since the last user message', async () => {
    const rules: ReplayRule[] = [{ when: { turn: 2 }, answer: { text: 'second' } }, { answer: { text: 'first' } }];
    const messages = afterTools(['sum', '1']);
    assert.equal(await answerTo(rules, { messages }), 'second');
    assert.equal(await answerTo(rules, { messages: [...messages, { role: 'user', text: 'again' }] }), 'first');
  });

  it('times limits the answers of a rule per conversation', async () => {
    await using server = await start([
      { when: { lastUser: 'e' }, times: 1, answer: { text: 'once' } },
      { answer: { text: 'then' } },
    ]);
    const one: Partial<ModelRequest> = { messages: [{ role: 'user', text: 'one' }] };
    const other: Partial<ModelRequest> = { messages: [{ role: 'user', text: 'other' }] };
    const said: string[] = [];
    for (const changes of [one, other, one, other]) said.push(textOf(await say(server, changes)));
    assert.deepEqual(said, ['once', 'once', 'then', 'then']);
  });

  it('the error for a conversation without a matching rule shows its last message', async () => {
    await assert.rejects(
      answerTo([{ when: { turn: 9 }, answer: {} }], { messages: afterTools(['sum', 'oh\u0007no', true]) }),
      (error) => {
        assert.ok(isTemperError(error, 'TEMPER_REPLAY_NO_MATCH'));
        assert.equal(error.retry, 'never');
        assert.match(error.message, /tool of "sum" \(an error\).*oh\\u\{7\}no/);
        return true;
      },
    );
  });
});

describe('references in an answer', () => {
  const DATA = JSON.stringify({
    total: 1_234_567.891,
    share: 0.4567,
    change: -12.5,
    regions: [
      { name: 'North', sum: 3 },
      { name: 'South', sum: 4 },
    ],
    note: 'as is',
  });
  const filled = (text: string, messages = afterTools(['totals', DATA])): Promise<string> =>
    answerTo([{ answer: { text } }], { messages });

  it('references are filled from tool results, the user and the model', async () => {
    assert.equal(
      await filled(
        '{{user}}: {{ lastTool.regions.0.name }}, {{tool.totals.regions.-1.sum}}; {{toolCall.c0.note}} by {{model}}',
      ),
      'how much?: North, 4; as is by model',
    );
  });

  it('formatters format the values of references', async () => {
    assert.equal(await filled('{{lastTool.total | number 2}} {{lastTool.total | fixed 1}}'), '1,234,567.89 1234567.9');
    assert.equal(await filled('{{lastTool.total | currency}} {{lastTool.change | currency}}'), '$1,234,567.89 -$12.50');
    assert.equal(await filled('{{lastTool.change | signed 1}} {{lastTool.share | percent}}'), '-12.5 45.7%');
    assert.equal(await filled('{{lastTool.regions | pluck name | join " and "}}'), 'North and South');
    assert.equal(
      await filled('{{lastTool.regions | count}} {{lastTool.regions.0 | json}}'),
      '2 {"name":"North","sum":3}',
    );
  });

  it('an argument that is a single reference becomes the value itself', async () => {
    const answer: ReplayRule['answer'] = {
      toolCalls: [
        {
          name: 'f',
          arguments: {
            rows: '{{tool.totals.regions}}',
            mixed: ['n={{lastTool.total}}', { deep: '{{lastTool.share}}' }],
          },
        },
      ],
    };
    await using server = await start([{ answer }]);
    const events = await say(server, { messages: afterTools(['totals', DATA]) });
    assert.deepEqual(callsOf(events)[0]?.arguments, {
      rows: [
        { name: 'North', sum: 3 },
        { name: 'South', sum: 4 },
      ],
      mixed: ['n=1234567.891', { deep: 0.4567 }],
    });
  });

  it('a reference to a tool uses its latest result, as text if it is not JSON', async () => {
    const messages = afterTools(['a', '1'], ['a', '2'], ['b', 'plain words']);
    assert.equal(await filled('{{tool.a}} {{tool.b}} {{lastTool}}', messages), '2 plain words plain words');
  });

  it('an escaped reference is literal text', async () => {
    assert.equal(await filled('\\{{user}} and {{user}}'), '{{user}} and how much?');
  });

  it('the error for an unresolved reference names the missing part', async () => {
    for (const [text, why] of [
      ['{{lastTool.regions.2.name}}', /"lastTool\.regions" has no "2"/],
      ['{{lastTool.toString}}', /has no "toString"/],
      ['{{lastTool.__proto__}}', /has no "__proto__"/],
      ['{{tool.unknown.x}}', /no tool result of "unknown"/],
      ['{{lastTool.note | number 2}}', /"number" cannot be applied to "as is"/],
    ] as const) {
      await assert.rejects(filled(text), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_REPLAY_NO_MATCH'), text);
        assert.match(error.message, why);
        return true;
      });
    }
  });

  it('references inside filled-in values are not evaluated', async () => {
    assert.equal(await filled('{{lastTool}}', afterTools(['x', '{{user}} {{tool.x}}'])), '{{user}} {{tool.x}}');
  });
});

describe('a replay script', () => {
  const problemsOf = (source: string): string[] => {
    try {
      readReplayScript(source, 's.yaml');
    } catch (error) {
      assert.ok(isTemperError(error, 'TEMPER_REPLAY_SCRIPT_INVALID'));
      return error.message.split('\n');
    }
    return [];
  };

  it('startReplay reads a script from a YAML file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'replay-'));
    try {
      const script = join(folder, 's.yaml');
      await writeFile(script, 'rules:\n  - when: {turn: 1}\n    answer:\n      text: Hello {{user}}\n');
      await using server = await startReplay({ script, clock: systemClock });
      assert.equal(textOf(await say(server)), 'Hello hello');
      await assert.rejects(startReplay({ script: join(folder, 'none.yaml'), clock: systemClock }), (error) =>
        isTemperError(error, 'TEMPER_REPLAY_SCRIPT_INVALID'),
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('the error for an invalid script lists the line and the rule of every problem', () => {
    const source = [
      'rules:',
      '  - when:',
      '      turn: first',
      '      lastUsr: x',
      '    answer:',
      '      text: "{{lastTool.x | shout}}"',
      '      toolCalls:',
      '        - arguments: [1]',
      '  - when: {}',
      '  - answer: {stopReason: done, text: "{{open"}',
      '',
    ].join('\n');
    const problems = problemsOf(source);
    for (const [line, words] of [
      [3, 'rules.0.when.turn must be a whole number'],
      [4, 'rules.0.when.lastUsr is not known here; known are system'],
      [6, 'rules.0.answer.text uses the formatter "shout"'],
      [8, 'rules.0.answer.toolCalls.0.name is missing'],
      [8, 'rules.0.answer.toolCalls.0.arguments must be an object'],
      [9, 'rules.1.answer is missing'],
      [10, 'rules.2.answer.stopReason must be one of'],
      [10, 'rules.2.answer.text has {{ without }}'],
    ] as const) {
      assert.ok(
        problems.some((problem) => problem.startsWith(`s.yaml:${line}: ${words}`)),
        `${line} ${words} in\n${problems.join('\n')}`,
      );
    }
    assert.equal(problems.length, 8);
  });

  it('readReplayScript rejects invalid YAML, a script that is not an object, and an alias bomb', () => {
    assert.match(problemsOf('rules: [')[0] ?? '', /^s\.yaml:1: /);
    assert.match(problemsOf('- a')[0] ?? '', /the script must be an object/);
    assert.match(problemsOf('')[0] ?? '', /the script must be an object/);
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
    for (const [index, name] of Array.from('bcdefgh').entries())
      bomb.push(`${name}: &${name} [${Array(10).fill(`*${'abcdefgh'[index]}`).join(',')}]`);
    assert.match(problemsOf(bomb.join('\n'))[0] ?? '', /alias/i);
  });
});

describe('the replay server', () => {
  it('the server records its requests', async () => {
    await using server = await start([{ answer: { text: 'x' } }]);
    await say(server);
    assert.equal(server.requests.length, 1);
    assert.equal(server.requests[0]?.path, '/v1/chat/completions');
    assert.equal(server.requests[0]?.conversation.system, 'be brief');
  });

  it('the server rejects other paths and invalid request bodies', async () => {
    await using server = await start([{ answer: { text: 'x' } }]);
    assert.equal((await fetch(`${server.url}/v1/models`)).status, 404);
    for (const body of ['{', '[]', '{}', '{"model":"m","messages":[{"role":"alien"}]}']) {
      const response = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body });
      assert.equal(response.status, 400, body);
      await response.text();
    }
  });

  it('call ids are unique within a conversation', async () => {
    await using server = await start([
      {
        answer: {
          toolCalls: [
            { name: 'a', arguments: {} },
            { name: 'b', arguments: {} },
          ],
        },
      },
    ]);
    const ids = (events: ModelEvent[]): string[] =>
      events.flatMap((event) => (event.type === 'tool-call' ? [event.call.id] : []));
    const first = ids(await say(server));
    const second = ids(await say(server, { messages: afterTools(['a', '1']) }));
    assert.equal(new Set([...first, ...second]).size, 4);
  });
});
