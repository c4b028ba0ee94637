import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { webhookSignature } from './signature.testing.ts';
import { isSigned, parseWebhookHeaders, parseWebhookKeys } from './signature.ts';

/** The example of the specification of Standard Webhooks. */
const KEY = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const BODY = '{"test": 2432232314}';
const HEADERS = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const OTHER = 'v1,AAAA9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';

function verdict(headers: Record<string, string>, body = BODY, keys = KEY): boolean | undefined {
  const parsed = parseWebhookHeaders(headers);
  return parsed === undefined ? undefined : isSigned(parseWebhookKeys(keys), parsed, body);
}

const [key = Buffer.alloc(0)] = parseWebhookKeys(KEY);
const signed = (change: Record<string, string> = {}): Record<string, string> => {
  const parsed = parseWebhookHeaders(HEADERS);
  assert.ok(parsed !== undefined);
  return { ...HEADERS, 'webhook-signature': webhookSignature(key, parsed, BODY), ...change };
};

describe('the signatures of webhooks', () => {
  it('a signature holds for its id, time, body and key only', () => {
    assert.equal(verdict(HEADERS), true);
    assert.deepEqual(signed(), HEADERS);
    assert.equal(verdict(signed(), `${BODY} `), false);
    assert.equal(verdict(signed({ 'webhook-id': 'msg_other' })), false);
    assert.equal(verdict(signed({ 'webhook-timestamp': '1614265331' })), false);
    assert.equal(verdict(signed(), BODY, `whsec_${Buffer.alloc(32).toString('base64')}`), false);
    assert.equal(verdict(signed(), BODY, ''), false);
    assert.equal(verdict({ ...HEADERS, 'webhook-signature': OTHER }), false);
  });

  it('one of several signatures and one of several keys suffice', () => {
    const { 'webhook-signature': own = '' } = signed();
    assert.equal(verdict(signed({ 'webhook-signature': `v1a,x ${OTHER} ${own}` })), true);
    assert.equal(verdict(signed(), BODY, `whsec_${Buffer.alloc(32, 1).toString('base64')}\n${KEY}\n`), true);
  });

  it('headers that are absent or malformed are refused', () => {
    for (const name of Object.keys(HEADERS)) assert.equal(verdict(signed({ [name]: '' })) ?? false, false, name);
    for (const id of ['a b', 'a\n', 'x'.repeat(129)]) assert.equal(verdict(signed({ 'webhook-id': id })), undefined);
    for (const time of ['-1', '1.5', 'now']) assert.equal(verdict(signed({ 'webhook-timestamp': time })), undefined);
  });

  it('a key has 24 to 64 bytes, and other lines of the Secret are no keys', () => {
    const lengths = [16, 24, 64, 65].map(
      (length) => parseWebhookKeys(`whsec_${Buffer.alloc(length, 7).toString('base64')}`).length,
    );
    assert.deepEqual(lengths, [0, 1, 1, 0]);
    assert.deepEqual(parseWebhookKeys('secret\n\nMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), []);
  });
});
