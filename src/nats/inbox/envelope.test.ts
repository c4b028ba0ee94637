import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_CALL_CHARACTERS } from '../../bus/message-call.ts';
import { sha256 } from '../../lib/canonical.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { parseEnvelope, storedEnvelope } from './envelope.ts';

const TIME = '2026-01-01T00:00:00Z';
const NAMES = { id: 'msg-1', from: 'user', to: 'analyst', session: 's-1', root: 'msg-1' };
const MESSAGE: JsonObject = { ...NAMES, depth: 0, deadline: TIME, time: TIME, source: 'User' };
const withCall = (call: Json): JsonObject => ({ ...MESSAGE, call });

describe('a stored message', () => {
  it('a call is stored without a text and read with one that describes it', () => {
    const call = { tool: 'sum', digest: sha256('a'), input: { values: [1] } };
    const envelope = parseEnvelope(withCall(call));
    assert.deepEqual(envelope?.call, call);
    assert.match(envelope?.text ?? '', /calls the tool "sum"/);
    const stored = envelope === undefined ? undefined : storedEnvelope(envelope);
    assert.deepEqual(stored, withCall(call), 'an older release finds no text, which it needs');
    assert.deepEqual(parseEnvelope({ ...MESSAGE, text: 'go' })?.text, 'go');
  });

  it('a call that is not valid is no message, also with a text', () => {
    const large = { text: 'x'.repeat(MAX_CALL_CHARACTERS) };
    for (const call of [
      null,
      'sum',
      {},
      { tool: 'sum' },
      { tool: 'sum', input: [] },
      { tool: 'a b', input: {} },
      { tool: '', input: {} },
      { tool: 'sum', digest: 'sha256:1', input: {} },
      { tool: 'sum', input: large },
    ])
      assert.equal(parseEnvelope({ ...withCall(call), text: 'go' }), undefined, JSON.stringify(call).slice(0, 80));
    assert.equal(parseEnvelope(MESSAGE), undefined, 'a message needs a text or a call');
  });
});
