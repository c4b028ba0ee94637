import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../../../lib/json.ts';
import type { ReplayConversation } from '../conversation.ts';
import { fillText, fillValue } from './fill.ts';
import { parseTemplate } from './template.ts';

const conversationWith = (value: Json): ReplayConversation => ({
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
  it('fillText returns text without references unchanged', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes('{{')),
        (text) => {
          assert.equal(fillText(text, conversationWith(null)), text);
        },
      ),
    );
  });

  it('fillText throws nothing but TEMPER_REPLAY_NO_MATCH for any template that parses', () => {
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

  it('fillValue returns any JSON value of a tool result unchanged, without unsafe keys', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const kept = parseUntrustedJson(JSON.stringify({ value })) as { value: Json };
        assert.deepEqual(fillValue('{{lastTool.value}}', conversationWith({ value: value as Json })), kept.value);
      }),
      { examples: [[{ prototype: false }]] },
    );
  });

  it('parseTemplate takes linear time, also for hostile text', () => {
    const text = '{{lastTool}}'.repeat(100_000) + '\\{{'.repeat(100_000) + '|'.repeat(100_000);
    const parsed = parseTemplate(text);
    assert.ok('parts' in parsed && parsed.parts.length === 100_001);
  });
});
