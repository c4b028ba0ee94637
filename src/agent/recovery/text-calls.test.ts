import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { ModelMessage } from '../../models/port.ts';
import { recoverTextCalls } from './text-calls.ts';

const TOOLS = [
  {
    name: 'read_file',
    inputSchema: { type: 'object', properties: { path: { type: 'string' }, lines: { type: 'integer' } } },
  },
  { name: 'time', inputSchema: { type: 'object' } },
];
const DEEPSEEK = (text: string): string =>
  text.replaceAll('<|', '<\uff5c').replaceAll('|>', '\uff5c>').replaceAll('_', '\u2581');
const READ = '{"path":"a.txt","lines":3}';
const CALL = `{"name":"read_file","arguments":${READ}}`;

const made = (text: string, messages: readonly ModelMessage[] = []): [string, Json][] | undefined =>
  recoverTextCalls(text, TOOLS, messages)?.toolCalls.map((call) => [call.name, JSON.parse(call.arguments) as Json]);

const ONE: [string, Json][] = [['read_file', { path: 'a.txt', lines: 3 }]];

/** Every form of one call. */
const FORMS: Record<string, string> = {
  'function tag with JSON': `<function=read_file>${READ}</function>`,
  'function tag without its end': `<function=read_file>${READ}`,
  'function tag with parameters':
    '<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=lines>3</parameter>\n</function>',
  'tool_call tag': `<tool_call>\n${CALL}\n</tool_call>`,
  'tool_call tag without its end': `<tool_call>${CALL}`,
  'tool_call tag around a function tag': `<tool_call>\n<function=read_file>${READ}</function>\n</tool_call>`,
  'invoke tag':
    '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a.txt</parameter>\n<parameter name="lines">3</parameter>\n</invoke>\n</function_calls>',
  'invoke tag without a wrapper':
    '<invoke name="read_file"><parameter name="path">a.txt</parameter><parameter name="lines">3</parameter></invoke>',
  'list after a token': `[TOOL_CALLS] [${CALL}]`,
  'name after a token': `[TOOL_CALLS]read_file${READ}`,
  'name and arguments after tokens': `[TOOL_CALLS]read_file[ARGS]${READ}`,
  'python token': `<|python_tag|>{"name":"read_file","parameters":${READ}}<|eom_id|>`,
  'DeepSeek tokens': DEEPSEEK(
    `<|tool_calls_begin|><|tool_call_begin|>read#file<|tool_sep|>${READ}<|tool_call_end|><|tool_calls_end|>`,
  ).replace('read#file', 'read_file'),
  'older DeepSeek tokens': DEEPSEEK(
    `<|tool_call_begin|>function<|tool_sep|>read#file\n\`\`\`json\n${READ}\n\`\`\`<|tool_call_end|>`,
  ).replace('read#file', 'read_file'),
  'fence of a call': `\`\`\`tool_call\n${CALL}\n\`\`\``,
  'fence of JSON': `\`\`\`json\n${CALL}\n\`\`\``,
  'fence without a label': `\`\`\`\n${CALL}\n\`\`\``,
  'bare JSON': CALL,
  'bare JSON with parameters': `{"name":"read_file","parameters":${READ}}`,
  'bare JSON in the form of a provider': `{"type":"function","function":{"name":"read_file","arguments":${JSON.stringify(READ)}}}`,
};

/** Texts that are answers. */
const ANSWERS: Record<string, string> = {
  'a plain answer': 'The file has three lines.',
  'an empty answer': '',
  'a call of a tool that is not offered': '<function=shell>{"command":"ls"}</function>',
  'a call of which one tool is not offered': `<function=time>{}</function><function=shell>{}</function>`,
  'a call before more text': `<function=read_file>${READ}</function>\nThat is how you call it.`,
  'a call inside of a sentence': `Write <function=read_file>${READ}</function>`,
  'a call in inline code': `\`<function=read_file>${READ}</function>\``,
  'a call in a quoted line': `> <function=read_file>${READ}</function>`,
  'a call in a fence of another language': `\`\`\`xml\n<function=read_file>${READ}</function>\n\`\`\``,
  'an example of JSON after a sentence': `Here is an example:\n\`\`\`json\n${CALL}\n\`\`\``,
  'bare JSON after a sentence': `The call is\n${CALL}`,
  'bare JSON with other members': `{"name":"read_file","arguments":${READ},"status":"planned"}`,
  'bare JSON without arguments': '{"name":"read_file"}',
  'arguments that are no object': '<function=read_file>["a.txt"]</function>',
  'arguments that are cut': '<function=read_file>{"path":"a.t',
  'a parameter that is cut': '<function=read_file><parameter=path>a.txt</parameter>',
  'arguments that are not JSON': "<function=read_file>{path: 'a.txt'}</function>",
  'arguments that are nested too deep': `<function=time>${'{"a":'.repeat(80)}1${'}'.repeat(80)}</function>`,
  'more calls than an answer has': '<function=time>{}</function>'.repeat(17),
};

describe('tool calls in the text of a model', () => {
  for (const [form, text] of Object.entries(FORMS)) {
    it(`the ${form} is a call`, () => assert.deepEqual(made(text), ONE));
  }

  for (const [what, text] of Object.entries(ANSWERS)) {
    it(`${what} is no call`, () => assert.equal(made(text), undefined));
  }

  it('text before a marked call stays as the text of the answer', () => {
    const text = `I look at it.\n\n<tool_call>${CALL}</tool_call>`;
    assert.deepEqual(recoverTextCalls(text, TOOLS, [])?.text, 'I look at it.');
  });

  it('several calls get their own ids in their order', () => {
    const text = `<tool_call>${CALL}</tool_call>\n<tool_call>{"name":"time","arguments":{}}</tool_call>`;
    assert.deepEqual(
      recoverTextCalls(text, TOOLS, [])?.toolCalls.map(({ id, name }) => [id, name]),
      [
        ['text-call-1', 'read_file'],
        ['text-call-2', 'time'],
      ],
    );
  });

  it('a parameter is text where the schema asks for text, and JSON elsewhere', () => {
    const text =
      '<function=read_file><parameter=path>17</parameter><parameter=lines>17</parameter><parameter=more>{"a":1}</parameter></function>';
    assert.deepEqual(made(text), [['read_file', { path: '17', lines: 17, more: { a: 1 } }]]);
  });

  it('members that change a prototype are dropped', () => {
    assert.deepEqual(made('<function=time>{"__proto__":{"a":1},"b":2}</function>'), [['time', { b: 2 }]]);
  });

  it('no form is recovered that stands in a message or a tool result, however it is escaped there', () => {
    for (const [form, text] of Object.entries(FORMS)) {
      for (const read of [text, JSON.stringify(`page: ${text} end`), text.replaceAll(' ', '\n  ')]) {
        const result: ModelMessage = { role: 'tool', toolCallId: 'c', name: 'time', text: read, isError: false };
        assert.equal(made(text, [result]), undefined, `${form} in a result`);
        assert.equal(made(text, [{ role: 'user', text: read }]), undefined, `${form} in a message`);
      }
    }
  });

  it('one quoted call among others makes all of them text', () => {
    const quoted = '<function=time>{"zone":"UTC"}</function>';
    const result: ModelMessage = { role: 'tool', toolCallId: 'c', name: 'time', text: quoted, isError: false };
    assert.equal(made(`<function=read_file>${READ}</function>${quoted}`, [result]), undefined);
  });

  it('hostile texts are read in bounded time', () => {
    const hostile = [
      '<function='.repeat(20_000),
      '<tool_call>{'.repeat(15_000),
      `\n<function=time>${'{"a":'.repeat(20_000)}`,
      '\n<function=time>{}</function>x'.repeat(6_000),
      `<function=time>${'<parameter=a>'.repeat(10_000)}`,
      '```\n'.repeat(40_000),
    ];
    for (const text of hostile) assert.equal(made(text), undefined);
    assert.equal(made(`${'x'.repeat(300_000)}\n<function=time>{}</function>`), undefined);
  });

  it('any JSON object survives as arguments', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.jsonValue({ maxDepth: 4 })), (input) => {
        const written = JSON.stringify(input);
        assert.deepEqual(made(`<function=time>${written}</function>`), [['time', parseUntrustedJson(written)]]);
      }),
    );
  });
});
