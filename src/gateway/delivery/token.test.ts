import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import { coordinatesOf, createDeliveryTokens, type DeliveryTokenClaims, MAX_DELIVERY_TOKEN_LENGTH } from './token.ts';

const KEY = randomBytes(32);
const CLAIMS: DeliveryTokenClaims = {
  agentUid: 'agent-uid',
  agent: 'scout',
  namespace: 'team-a',
  podUid: 'pod-uid',
  message: 'msg-1',
  session: 's-1',
  root: 'msg-0',
  depth: 1,
  deadline: '2030-01-01T00:00:00.000Z',
  at: { streamSequence: 7, deliveries: 1 },
};

const invalid = (error: unknown) => isTemperError(error, 'TEMPER_DELIVERY_TOKEN_INVALID');
const text = fc.string({ minLength: 1, maxLength: 64, unit: 'binary' }).filter((value) => value.isWellFormed());
const claims = fc.record({
  agentUid: text,
  agent: text,
  namespace: text,
  podUid: text,
  message: text,
  session: text,
  root: text,
  depth: fc.nat(),
  deadline: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString()),
  at: fc.record({ streamSequence: fc.nat(), deliveries: fc.nat() }),
});

describe('a delivery token', () => {
  it('reading a token returns exactly the signed claims', () => {
    const tokens = createDeliveryTokens(() => [KEY]);
    fc.assert(
      fc.property(claims, (signed) =>
        assert.equal(JSON.stringify(tokens.verify(tokens.sign(signed))), JSON.stringify(signed)),
      ),
    );
  });

  it('a token with one character changed, added or removed is invalid', () => {
    const tokens = createDeliveryTokens(() => [KEY]);
    const token = tokens.sign(CLAIMS);
    const position = fc.nat({ max: token.length - 1 });
    const alphabet = 'ABCXYZabcxyz0189-_.=+ \n'.split('');
    fc.assert(
      fc.property(position, fc.constantFrom(...alphabet, ''), fc.boolean(), (at, character, insert) => {
        const altered = token.slice(0, at) + character + token.slice(insert ? at : at + 1);
        fc.pre(altered !== token);
        assert.throws(() => tokens.verify(altered), invalid);
      }),
      { numRuns: 2_000 },
    );
  });

  it('a token with a changed claim and the old signature is invalid', () => {
    const tokens = createDeliveryTokens(() => [KEY]);
    const [version, , signature] = tokens.sign(CLAIMS).split('.');
    fc.assert(
      fc.property(claims, (changed) => {
        const content = Buffer.from(JSON.stringify(changed)).toString('base64url');
        assert.throws(() => tokens.verify(`${version}.${content}.${signature}`), invalid);
      }),
    );
  });

  it('an invented token is invalid', () => {
    const tokens = createDeliveryTokens(() => [KEY]);
    fc.assert(
      fc.property(fc.string({ maxLength: MAX_DELIVERY_TOKEN_LENGTH + 100, unit: 'binary' }), (invented) => {
        assert.throws(() => tokens.verify(invented), invalid);
      }),
    );
    for (const invented of ['', 'd1..', `d1.${'A'.repeat(5_000)}.${'A'.repeat(43)}`, `d2.e30.${'A'.repeat(43)}`]) {
      assert.throws(() => tokens.verify(invented), invalid);
    }
  });

  it('a token signed for another purpose, or with missing claims, is invalid', () => {
    const tokens = createDeliveryTokens(() => [KEY]);
    const content = Buffer.from(JSON.stringify(CLAIMS)).toString('base64url');
    const otherSignature = createHmac('sha256', KEY).update(content).digest('base64url');
    assert.throws(() => tokens.verify(`d1.${content}.${otherSignature}`), invalid);
    for (const missing of Object.keys(CLAIMS) as (keyof DeliveryTokenClaims)[]) {
      const { [missing]: _omitted, ...rest } = CLAIMS;
      assert.throws(() => tokens.verify(tokens.sign(rest as DeliveryTokenClaims)), invalid, missing);
    }
    assert.throws(() => tokens.verify(tokens.sign({ ...CLAIMS, deadline: 'never' })), invalid);
    assert.throws(() => tokens.verify(tokens.sign({ ...CLAIMS, depth: -0.5 })), invalid);
  });

  it('a token of an older gateway identifies its delivery by the numbers that are still in use', () => {
    const tokens = createDeliveryTokens(() => [KEY]);
    const at = { streamSequence: 7, consumerSequence: 3, deliveries: 2 };
    const { agentUid, message } = CLAIMS;
    assert.deepEqual(coordinatesOf(tokens.verify(tokens.sign({ ...CLAIMS, at }))), {
      agentUid,
      message,
      streamSequence: 7,
      deliveries: 2,
    });
  });

  it('a token stays valid through one key rotation and not through two', () => {
    const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)];
    let keys = [first];
    const tokens = createDeliveryTokens(() => keys);
    const token = tokens.sign(CLAIMS);
    keys = [second, first];
    assert.deepEqual(tokens.verify(token), CLAIMS);
    const newer = tokens.sign(CLAIMS);
    keys = [third, second];
    assert.throws(() => tokens.verify(token), invalid);
    assert.deepEqual(tokens.verify(newer), CLAIMS);
  });

  it('creating tokens requires at least one key of sufficient length', () => {
    const refused = (error: unknown) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID');
    assert.throws(() => createDeliveryTokens(() => []), refused);
    assert.throws(() => createDeliveryTokens(() => [KEY, randomBytes(31)]), refused);
  });
});
