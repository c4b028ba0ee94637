import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { assertOrigin } from './origin.ts';

describe('the origin of a request', () => {
  it('programs without an origin and pages of this machine pass', () => {
    for (const origin of [
      undefined,
      'http://localhost',
      'https://localhost:6274',
      'http://127.0.0.1:80',
      'http://[::1]:1',
    ])
      assertOrigin(origin);
  });

  for (const origin of [
    'http://evil.example.com',
    'https://temper-gateway',
    'https://localhost.evil.example.com',
    'https://evil.example.com/localhost',
    'http://localhost@evil.example.com',
    'http://localhost, http://evil.example.com',
    'http://0.0.0.0',
    'http://10.0.0.1',
    'file://localhost',
    'chrome-extension://localhost',
    'null',
    '',
    'localhost',
  ])
    it(`a request of the origin "${origin}" is refused`, () => {
      assert.throws(
        () => assertOrigin(origin),
        (error) => isTemperError(error, 'TEMPER_ORIGIN_DENIED'),
      );
    });

  it('the message of a refusal cannot control a terminal', () => {
    assert.throws(() => assertOrigin('http://\u001b[2J'), /\\u\{1b\}/);
  });
});
