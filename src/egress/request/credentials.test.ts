import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import { credentialsOf } from './credentials.ts';

const DELIVERY = { 'temper-delivery-token': 'd1.claims.signature' };

describe('the credentials of a request to the proxy', () => {
  it('a caller shows the token of its pod and the delivery token of its message', () => {
    assert.deepEqual(credentialsOf({ 'proxy-authorization': 'Bearer a.b.c', ...DELIVERY }), {
      token: 'a.b.c',
      deliveryToken: 'd1.claims.signature',
    });
  });

  const refused: [what: string, code: ErrorCode, headers: Record<string, string>][] = [
    ['no token', 'TEMPER_TOKEN_INVALID', DELIVERY],
    ['a token for the target', 'TEMPER_TOKEN_INVALID', { authorization: 'Bearer a.b.c', ...DELIVERY }],
    ['a password', 'TEMPER_TOKEN_INVALID', { 'proxy-authorization': 'Basic YTpi', ...DELIVERY }],
    ['two tokens', 'TEMPER_TOKEN_INVALID', { 'proxy-authorization': 'Bearer a.b.c, Bearer d.e.f', ...DELIVERY }],
    ['a long token', 'TEMPER_TOKEN_INVALID', { 'proxy-authorization': `Bearer ${'a'.repeat(8_193)}`, ...DELIVERY }],
    ['no delivery token', 'TEMPER_DELIVERY_TOKEN_INVALID', { 'proxy-authorization': 'Bearer a.b.c' }],
    [
      'two delivery tokens',
      'TEMPER_DELIVERY_TOKEN_INVALID',
      { 'proxy-authorization': 'Bearer a.b.c', 'temper-delivery-token': 'd1.a.b, d1.c.d' },
    ],
  ];
  for (const [what, code, headers] of refused) {
    it(`a request with ${what} is refused`, () =>
      assert.throws(
        () => credentialsOf(headers),
        (error) => isTemperError(error, code),
      ));
  }
});
