import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../decider.ts';
import { withApprovedConnections } from './approved-connections.ts';
import { aSnapshot, aTool, type SnapshotChange } from '../policy.testing.ts';
import { isPrivateContent, isPrivateSource, PRIVATE_NETWORK_RULE } from './sources.ts';
import type { PolicyRequest } from '../types.ts';

const AGENT = { grants: { tools: ['*'], network: ['api.example.com'] }, forge: { enabled: true } };
const POLICY: TrustPolicySpec = { autonomy: 'Full', egress: { allow: ['api.example.com'] } };
const SENDS = aTool({
  name: 'post_note',
  category: 'code_execution',
  action: 'comms:external',
  forged: true,
  hosts: ['api.example.com'],
  arguments: { note: 'é' },
});
const CONNECTS = { kind: 'Network', host: 'api.example.com', port: 443 } as const;
const READS = aTool({ name: 'file_read', arguments: { path: 'a.txt' } });
const WRITES: PolicyRequest = { kind: 'Memory', key: 'self.note', access: 'write' };

const decide = (request: PolicyRequest, change: SnapshotChange) =>
  createDecider(aSnapshot({ agent: AGENT, policy: POLICY, ...change })).decide(request);

describe('private data in a session with untrusted content', () => {
  const guarded = { tainted: true, hasPrivateData: true };
  const cases: readonly [name: string, request: PolicyRequest, marks: SnapshotChange, effect: string, rule: string][] =
    [
      ['a call that sends to hosts', SENDS, guarded, 'Escalate', PRIVATE_NETWORK_RULE],
      [
        'a call whose tool names hosts and another action',
        { ...SENDS, action: 'code:read' },
        guarded,
        'Escalate',
        PRIVATE_NETWORK_RULE,
      ],
      ['the listing of its tool', { ...SENDS, arguments: undefined } as never, guarded, 'Allow', 'grant.tools'],
      ['the same call of a tainted session', SENDS, { tainted: true }, 'Allow', 'grant.tools'],
      ['the same call of a session with private data', SENDS, { hasPrivateData: true }, 'Allow', 'grant.tools'],
      ['the same call of a new session', SENDS, {}, 'Allow', 'grant.tools'],
      ['a call that sends to no host', READS, guarded, 'Allow', 'grant.tools'],
      ['a connection', CONNECTS, guarded, 'Escalate', PRIVATE_NETWORK_RULE],
      ['a connection of a tainted session', CONNECTS, { tainted: true }, 'Allow', 'grant.network'],
      ['a connection of a session with private data', CONNECTS, { hasPrivateData: true }, 'Allow', 'grant.network'],
      ['a connection that nothing grants', { ...CONNECTS, host: 'example.org' }, guarded, 'Deny', 'grant.network'],
      ['a write to the memory', WRITES, guarded, 'Deny', 'grant.memory'],
    ];
  for (const [name, request, marks, effect, rule] of cases) {
    it(`${name}: ${effect} by ${rule}`, () => {
      const decision = decide(request, marks);
      assert.deepEqual([decision.effect, decision.rule], [effect, rule], decision.reason);
    });
  }

  it('the approver reads the hosts and the number of bytes', () => {
    const { reason } = decide(SENDS, guarded);
    assert.match(reason, /"post_note" may send to api\.example\.com, and the session contains private data/);
    assert.match(reason, /: 13 bytes of arguments\.$/);
    const hosts = Array.from({ length: 14 }, (_, index) => `h${index}.example.com`);
    assert.match(decide({ ...SENDS, hosts }, guarded).reason, /h9\.example\.com and 4 more, and/);
  });

  it('the question is about the private data also where every such call needs an approver', () => {
    assert.equal(
      decide(SENDS, { ...guarded, policy: { ...POLICY, autonomy: 'Supervised' } }).rule,
      PRIVATE_NETWORK_RULE,
    );
  });

  it('no autonomy and no allowance of the policy lifts it', () => {
    const policy = { ...POLICY, rules: { allow: ['comms:external'] }, tools: { allow: ['*'] } };
    assert.equal(decide(SENDS, { ...guarded, policy }).effect, 'Escalate');
  });

  it('files and the memory are private by default, and the policy names others or none', () => {
    const privateOf = (sources?: ('File' | 'Memory' | 'Mcp' | 'Agent' | 'Reply')[]) =>
      ['File', 'Memory', 'Database', 'Agent', 'Reply', 'User', 'Web', 'Mcp', 'Tool'].filter((origin) =>
        isPrivateSource(origin, sources === undefined ? {} : { privateData: { sources } }),
      );
    assert.deepEqual(privateOf(), ['File', 'Memory', 'Database']);
    assert.deepEqual(privateOf(['Agent']), ['Agent']);
    assert.deepEqual(privateOf(['Mcp']), ['Mcp']);
    assert.deepEqual(privateOf([]), []);
    assert.equal(isPrivateSource(undefined, {}), false);
  });

  it('what a tainted session wrote is private by every way that it arrives, because it may contain what that session read', () => {
    for (const source of ['Agent', 'Reply', 'Trigger', 'Schedule']) {
      assert.equal(isPrivateContent({ source, tainted: true }, {}), true, source);
      assert.equal(isPrivateContent({ source }, {}), false, source);
    }
    const named: TrustPolicySpec = { privateData: { sources: ['Mcp'] } };
    assert.equal(isPrivateContent({ source: 'Memory', tainted: true }, named), true);
    assert.equal(isPrivateContent({ source: 'Memory' }, named), false);
    assert.equal(isPrivateContent({ source: 'Agent' }, { privateData: { sources: ['Agent'] } }), true);
    assert.equal(isPrivateContent({ source: 'Agent', tainted: true }, { privateData: { sources: [] } }), false);
  });
});

describe('the connections of a call that an approver permitted', () => {
  const decider = createDecider(aSnapshot({ agent: AGENT, policy: POLICY, tainted: true, hasPrivateData: true }));
  const effectOf = (approved: Parameters<typeof withApprovedConnections>[1], request: PolicyRequest = CONNECTS) =>
    withApprovedConnections(decider, approved).decide(request).effect;

  it('they reach the hosts that the approver saw, and no other', () => {
    const rule = PRIVATE_NETWORK_RULE;
    assert.equal(effectOf({ rule, hosts: ['api.example.com'] }), 'Allow');
    assert.equal(effectOf({ rule, hosts: ['*.example.com'] }), 'Allow');
    assert.equal(effectOf({ rule, hosts: ['other.example.com'] }), 'Escalate');
    assert.equal(effectOf({ rule, hosts: [] }), 'Escalate');
    assert.equal(effectOf({ rule, hosts: ['**'] }, { ...CONNECTS, host: 'example.org' }), 'Deny');
  });

  it('an approval by another rule, or of no call, covers none', () => {
    assert.equal(effectOf({ rule: 'autonomy', hosts: ['**'] }), 'Escalate');
    assert.equal(effectOf(undefined), 'Escalate');
  });
});
