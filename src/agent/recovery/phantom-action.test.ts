import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { claimsPhantomAction } from './phantom-action.ts';

const tool = (name: string, category: ToolDescriptor['category']) => ({ name, category });
const TOOLS = [
  tool('write_file', 'file_system'),
  tool('send_message', 'communication'),
  tool('memory_set', 'memory'),
  tool('forge_tool', 'code_execution'),
];
const NONE: ReadonlySet<string> = new Set();

const CLAIMS = [
  "I've saved the result to a file.",
  'Done! I have now written the file report.md.',
  'I sent a message to the planner.',
  'I have successfully sent the email to the team.',
  'I’ve stored that in memory.',
  'All good.\n- nothing else\nI have created the folder for you.',
  'I ran the tests; they pass.',
  'I just forged a tool that parses dates.',
];

const ANSWERS = [
  'The file has three lines.',
  'I will save the file now.',
  'I can send a message to the planner.',
  'Should I have saved the file?',
  'I have not saved the file.',
  'I would have written the file if it existed.',
  'Earlier I saved the file.',
  'You said "I saved the file" and I agree.',
  '> I saved the file.',
  '```\nI saved the file.\n```',
  'Once I have sent the message, it cannot be changed.',
  'I created a plan with three steps.',
  'I read your message.',
  '',
];

describe('a claimed action without a call', () => {
  for (const text of CLAIMS) {
    it(`the answer ${JSON.stringify(text)} claims an action`, () => assert.ok(claimsPhantomAction(text, TOOLS, NONE)));
  }

  for (const text of ANSWERS) {
    it(`the answer ${JSON.stringify(text)} claims none`, () => assert.ok(!claimsPhantomAction(text, TOOLS, NONE)));
  }

  it('an agent that has no tool for the action, or has called one, is not asked', () => {
    const [text = ''] = CLAIMS;
    assert.ok(!claimsPhantomAction(text, [], NONE));
    assert.ok(!claimsPhantomAction(text, [tool('memory_set', 'memory')], NONE));
    assert.ok(!claimsPhantomAction(text, TOOLS, new Set(['write_file'])));
    assert.ok(claimsPhantomAction(text, TOOLS, new Set(['memory_set'])), 'another tool cannot have done it');
  });

  it('a very long answer is not searched', () => {
    assert.ok(!claimsPhantomAction(`I saved the file. ${'x'.repeat(20_000)}`, TOOLS, NONE));
  });
});
