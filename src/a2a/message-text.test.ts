import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Part } from '@a2a-js/sdk';
import { messageText } from './message-text.ts';

const part = (content: Part['content']): Part => ({ content, metadata: undefined, filename: '', mediaType: '' });
const text = (value: string): Part => part({ $case: 'text', value });

describe('the text of a message over A2A', () => {
  it('text parts stay as they are, and data parts become JSON', () => {
    const parts = [text('Add these.'), part({ $case: 'data', value: { numbers: [1, 2] } })];
    assert.equal(messageText({ parts }), 'Add these.\n\nData (JSON): {"numbers":[1,2]}');
  });

  it('files, empty messages and texts beyond the limit are refused by name', () => {
    const cases: readonly (readonly [Part[], RegExp])[] = [
      [[], /parts is empty/],
      [[text(' \n')], /has no text/],
      [[text('a'), part({ $case: 'raw', value: Buffer.from('a') })], /parts\[1\] is a file/],
      [[part({ $case: 'url', value: 'https://example.com' })], /parts\[0\] is a file/],
      [[part(undefined)], /parts\[0\] has neither/],
      [[text('x'.repeat(60_000)), text('x'.repeat(60_000))], /120002 characters; 100000 are allowed/],
    ];
    for (const [parts, message] of cases) assert.throws(() => messageText({ parts }), message);
  });
});
