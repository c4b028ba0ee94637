import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { aModel } from '../../models/pipeline.testing.ts';
import { sanitizeRequest, storedMessage } from './request.ts';

function sanitized(inputSchema: JsonObject): unknown {
  const given = {
    model: 'a/b',
    system: '',
    messages: [],
    tools: [{ name: 'look', description: '', inputSchema }],
    maxOutputTokens: 10,
  };
  return sanitizeRequest(given, { model: aModel('a/b'), maxOutputTokens: 10 }).tools[0]?.inputSchema;
}

describe('an item of a history for storage', () => {
  it('an answer keeps the count of its request and no unknown member, and a request to a provider has no count', () => {
    const request = { model: 'a/b', estimated: 10, counted: 7, refused: 90 };
    const answer = { role: 'assistant' as const, text: 'x', toolCalls: [], request };
    const given = { ...answer, request: { ...request, evil: 'x' }, evil: 1 };
    assert.deepEqual(storedMessage(given), answer);
    const sent = sanitizeRequest(
      { model: 'a/b', system: '', messages: [given], tools: [], maxOutputTokens: 10 },
      { model: aModel('a/b'), maxOutputTokens: 10 },
    );
    assert.deepEqual(sent.messages, [{ role: 'assistant', text: 'x', toolCalls: [] }]);
  });
});

describe('the request for a provider', () => {
  const UNKNOWN = 'exceeded your current quota';

  for (const schema of [
    { type: UNKNOWN },
    { type: ['string', UNKNOWN] },
    { type: [] },
    { type: 7 },
    { type: { type: 'string' } },
    { properties: { a: { type: UNKNOWN } } },
    { $defs: { a: { items: { anyOf: [{ type: 'string' }, { type: UNKNOWN }] } } } },
    { additionalProperties: { not: { type: UNKNOWN } } },
    { 'x-unknown-keyword': { type: UNKNOWN } },
  ] satisfies JsonObject[]) {
    it(`a schema with an unknown type is refused before it is sent: ${JSON.stringify(schema)}`, () => {
      assert.throws(
        () => sanitized(schema),
        (error) => {
          assert.ok(isTemperError(error, 'TEMPER_REQUEST_INVALID'));
          assert.match(error.message, /inputSchema of tool "look".*type/);
          assert.doesNotMatch(error.message, /quota/);
          return true;
        },
      );
    });
  }

  for (const schema of [
    { type: 'object', properties: { type: { type: 'string' }, enum: { type: ['integer', 'null'] } } },
    { properties: { a: { enum: [{ type: 'any' }], default: { type: 'any' }, const: { type: 'any' } } } },
    { dependencies: { a: ['b'] }, required: ['type'] },
    {},
  ] satisfies JsonObject[]) {
    it(`a schema with known types is sent unchanged: ${JSON.stringify(schema)}`, () => {
      assert.deepEqual(sanitized(schema), schema);
    });
  }

  it('a schema beyond its limits is refused', () => {
    assert.throws(() => sanitized({ description: 'x'.repeat(70_000) }), /exceeds 65536 characters and 40 levels/);
  });
});
