import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../lib/errors.ts';
import { createLeases, type LeaseClaims, LONGEST_LEASE } from './lease.ts';

const KEY = randomBytes(32);
const CLAIMS: LeaseClaims = {
  agentUid: 'agent-uid',
  agent: 'scout',
  namespace: 'team-a',
  podUid: 'pod-uid',
  message: 'msg-1',
  session: 's-1',
  root: 'msg-0',
  depth: 1,
  deadline: '2030-01-01T00:00:00.000Z',
  at: { streamSequence: 7, consumerSequence: 3, deliveries: 1 },
};

const invalid = (error: unknown) => isTemperError(error, 'TEMPER_LEASE_INVALID');
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
  at: fc.record({ streamSequence: fc.nat(), consumerSequence: fc.nat(), deliveries: fc.nat() }),
});

describe('a lease', () => {
  it('gives back what was signed, whatever that is', () => {
    const leases = createLeases(() => [KEY]);
    fc.assert(
      fc.property(claims, (signed) =>
        assert.equal(JSON.stringify(leases.read(leases.sign(signed))), JSON.stringify(signed)),
      ),
    );
  });

  it('with any one character changed, added or taken away is none', () => {
    const leases = createLeases(() => [KEY]);
    const lease = leases.sign(CLAIMS);
    const place = fc.nat({ max: lease.length - 1 });
    const alphabet = 'ABCXYZabcxyz0189-_.=+ \n'.split('');
    fc.assert(
      fc.property(place, fc.constantFrom(...alphabet, ''), fc.boolean(), (at, character, insert) => {
        const altered = lease.slice(0, at) + character + lease.slice(insert ? at : at + 1);
        fc.pre(altered !== lease);
        assert.throws(() => leases.read(altered), invalid);
      }),
      { numRuns: 2_000 },
    );
  });

  it('with any claim changed and the old signature is none', () => {
    const leases = createLeases(() => [KEY]);
    const [form, , signature] = leases.sign(CLAIMS).split('.');
    fc.assert(
      fc.property(claims, (changed) => {
        const content = Buffer.from(JSON.stringify(changed)).toString('base64url');
        assert.throws(() => leases.read(`${form}.${content}.${signature}`), invalid);
      }),
    );
  });

  it('that somebody made up is none', () => {
    const leases = createLeases(() => [KEY]);
    fc.assert(
      fc.property(fc.string({ maxLength: LONGEST_LEASE + 100, unit: 'binary' }), (made) => {
        assert.throws(() => leases.read(made), invalid);
      }),
    );
    for (const made of ['', 'l1..', `l1.${'A'.repeat(5_000)}.${'A'.repeat(43)}`, `l2.e30.${'A'.repeat(43)}`]) {
      assert.throws(() => leases.read(made), invalid);
    }
  });

  it('signed with the key but not as a lease, or with half the claims, is none', () => {
    const leases = createLeases(() => [KEY]);
    const content = Buffer.from(JSON.stringify(CLAIMS)).toString('base64url');
    const bare = createHmac('sha256', KEY).update(content).digest('base64url');
    assert.throws(() => leases.read(`l1.${content}.${bare}`), invalid);
    for (const missing of Object.keys(CLAIMS) as (keyof LeaseClaims)[]) {
      const { [missing]: _left, ...rest } = CLAIMS;
      assert.throws(() => leases.read(leases.sign(rest as LeaseClaims)), invalid, missing);
    }
    assert.throws(() => leases.read(leases.sign({ ...CLAIMS, deadline: 'never' })), invalid);
    assert.throws(() => leases.read(leases.sign({ ...CLAIMS, depth: -0.5 })), invalid);
  });

  it('outlives the replacing of the key by one step, and no longer', () => {
    const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)];
    let keys = [first];
    const leases = createLeases(() => keys);
    const lease = leases.sign(CLAIMS);
    keys = [second, first];
    assert.deepEqual(leases.read(lease), CLAIMS);
    const newer = leases.sign(CLAIMS);
    keys = [third, second];
    assert.throws(() => leases.read(lease), invalid);
    assert.deepEqual(leases.read(newer), CLAIMS);
  });

  it('needs a key, and one of length', () => {
    const refused = (error: unknown) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID');
    assert.throws(() => createLeases(() => []), refused);
    assert.throws(() => createLeases(() => [KEY, randomBytes(31)]), refused);
  });
});
