import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { Conversation } from './conversation.ts';
import { fillText, fillValue } from './fill.ts';
import { parseTemplate } from './template.ts';

const conversationWith = (value: Json): Conversation => ({
  model: 'm',
  system: '',
  messages: [{ role: 'tool', toolCallId: 'c', name: 't', text: JSON.stringify(value), isError: false }],
  tools: [],
  stream: false,
});
const pieces = fc.array(
  fc.constantFrom('{{', '}}', '\\', '|', '.', 'lastTool', 'tool', 'x', '0', '-1', ' ', 'number 2', 'user', '"', '🌞'),
);

describe('templates', () => {
  it('leave text without references as it is', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes('{{')),
        (text) => {
          assert.equal(fillText(text, conversationWith(null)), text);
        },
      ),
    );
  });

  it('of any text are parsed or refused, and never fail otherwise', () => {
    fc.assert(
      fc.property(pieces, fc.jsonValue(), (parts, value) => {
        const text = parts.join('');
        if ('problem' in parseTemplate(text)) return;
        try {
          fillText(text, conversationWith(value as Json));
        } catch (error) {
          assert.ok(isTemperError(error, 'TEMPER_REPLAY_NO_MATCH'), String(error));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('give any JSON value of a tool back as it was, without the names that no text from a tool may set', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const kept = parseUntrustedJson(JSON.stringify({ value })) as { value: Json };
        assert.deepEqual(fillValue('{{lastTool.value}}', conversationWith({ value: value as Json })), kept.value);
      }),
      { examples: [[{ prototype: false }]] },
    );
  });

  it('are parsed in one pass, however hostile the text', () => {
    const text = '{{lastTool}}'.repeat(100_000) + '\\{{'.repeat(100_000) + '|'.repeat(100_000);
    const parsed = parseTemplate(text);
    assert.ok('parts' in parsed && parsed.parts.length === 100_001);
  });
});
