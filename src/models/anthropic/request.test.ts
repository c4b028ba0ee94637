import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ModelInput, ModelMessage } from '../port.ts';
import { messagesRequest } from './request.ts';

const TOOL = { name: 'file_read', description: 'reads', inputSchema: { type: 'object' } } as const;
const input = (changes: Partial<ModelInput>): ModelInput => ({
  system: 'be brief',
  messages: [],
  tools: [TOOL],
  maxOutputTokens: 100,
  ...changes,
});

/** The user asks, and the model calls a tool `turns` times, several calls per turn. */
function conversation(turns: number, calls = 3): ModelMessage[] {
  const turn = (index: number): ModelMessage[] => {
    const ids = Array.from({ length: calls }, (_, call) => `call-${index}-${call}`);
    return [
      { role: 'assistant', text: '', toolCalls: ids.map((id) => ({ id, name: 'file_read', arguments: '{}' })) },
      ...ids.map(
        (id): ModelMessage => ({ role: 'tool', toolCallId: id, name: 'file_read', isError: false, text: 'x' }),
      ),
    ];
  };
  return [{ role: 'user', text: 'question' }, ...Array.from({ length: turns }, (_, index) => turn(index)).flat()];
}

/** The places with a mark, as `message.block`. */
function marks({ messages }: ReturnType<typeof messagesRequest>): string[] {
  return messages.flatMap(({ content }, index) =>
    typeof content === 'string'
      ? []
      : content.flatMap((block, at) => ('cache_control' in block ? [`${index}.${at} of ${content.length}`] : [])),
  );
}

describe('the prompt cache of Anthropic', () => {
  it('a request of a loop marks its system prompt and the ends of its last two messages of the user', () => {
    const request = messagesRequest(input({ messages: conversation(3) }), 'm');
    assert.deepEqual(request.system, [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }]);
    assert.deepEqual(marks(request), ['4.2 of 3', '6.2 of 3']);
    assert.deepEqual(marks(messagesRequest(input({ messages: conversation(0) }), 'm')), ['0.0 of 1']);
  });

  it('the next turn marks the end of the turn before again, so its prefix is found however many calls a turn has', () => {
    const [before, after] = [1, 2].map((turns) => messagesRequest(input({ messages: conversation(turns, 40) }), 'm'));
    const [, newest] = before === undefined ? [] : marks(before);
    assert.equal(newest, '2.39 of 40');
    assert.ok(after !== undefined && marks(after).includes(newest ?? ''));
  });

  it('a request has at most the four marks that the provider permits', () => {
    const request = messagesRequest(input({ messages: conversation(50) }), 'm');
    assert.equal(JSON.stringify(request).split('cache_control').length - 1, 3);
  });

  it('a request without tools, which comes once, marks nothing', () => {
    const request = messagesRequest(input({ messages: conversation(2), tools: [] }), 'm');
    assert.equal(request.system, 'be brief');
    assert.doesNotMatch(JSON.stringify(request), /cache_control/);
  });
});
