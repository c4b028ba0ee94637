import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Capability, CapabilitySpec } from '../api/v1alpha1/capability.ts';
import { createDecider } from '../policy/decider.ts';
import { aSnapshot } from '../policy/policy.testing.ts';
import { anAgent } from './agent-means.testing.ts';
import { capabilityEntry, type DiscoveryEntry, forgedEntry } from './entry.ts';
import { deniedHosts } from './fetch-hosts.ts';
import { type AgentMeans, buildResult } from './result.ts';

const TOOL = { name: 'exchange_rate', category: 'web', inputSchema: {} } as const;

function entryOf(spec: Partial<CapabilitySpec>): DiscoveryEntry {
  const capability: Capability = {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Capability',
    metadata: { name: 'exchange-rate', namespace: 'team-a' },
    spec: { type: 'Tool', description: 'Rates of exchange.', ...spec },
  };
  return capabilityEntry(capability);
}

function noteOf(entry: DiscoveryEntry, means: AgentMeans): string | undefined {
  const [found] = buildResult([{ entry, relevance: 1 }], means).capabilities;
  assert.equal(found?.available, found?.note === undefined);
  return found?.note;
}

describe('whether an agent can use what it finds', () => {
  it('a note gives the reason without the names of missing tools', () => {
    const entry = entryOf({ requiredSecrets: ['rates-api'], requiredTools: ['secret_tool'], tool: TOOL });
    assert.deepEqual(entry.request, {
      kind: 'Tool',
      name: 'exchange_rate',
      category: 'web',
      action: 'comms:external',
      forged: false,
    });
    const why = 'needs connection rates-api; it cannot be called';
    assert.equal(noteOf(entry, anAgent()), `[not available: needs 1 tool this agent does not have; ${why}]`);
    assert.equal(noteOf(entry, anAgent(['secret_tool'])), `[not available: ${why}]`);
    assert.equal(noteOf(entry, anAgent(['exchange_rate'])), undefined, 'the agent has a tool of this name');
  });

  it('capabilities of all kinds need their connections, and have the note of their kind', () => {
    const withWiki = anAgent([], { hasConnection: (name) => name === 'wiki' });
    const kinds: [Partial<CapabilitySpec>, own: string | undefined][] = [
      [{ type: 'Skill', content: 'Do it.' }, undefined],
      [{ type: 'Skill' }, 'it has no text'],
      [{ type: 'Tool' }, 'it cannot be called'],
      [{ type: 'Tool', tool: TOOL, backend: { http: { url: 'https://example.com/' } } }, 'it cannot be called'],
      [{ type: 'Extension' }, 'a catalogue entry only'],
      [{ type: 'Productivity' }, 'a catalogue entry only'],
    ];
    for (const [spec, own] of kinds) {
      const entry = entryOf({ ...spec, requiredSecrets: ['wiki'] });
      assert.equal(noteOf(entry, withWiki), own === undefined ? undefined : `[not available: ${own}]`);
      const reasons = ['needs connection wiki', ...(own === undefined ? [] : [own])];
      assert.equal(noteOf(entry, anAgent()), `[not available: ${reasons.join('; ')}]`);
    }
    const both = entryOf({ type: 'Skill', content: 'Do it.', requiredSecrets: ['wiki', 'mail'] });
    assert.equal(noteOf(both, withWiki), '[not available: needs connection mail]', 'only what is missing');
  });

  const parts = {
    name: 'rates',
    description: 'Rates.',
    inputSchema: '{}',
    implementation: { mode: 'Sandbox' },
    requires: { apis: ['fetch'], domains: ['api.example.com', 'other.example.com:8443'] },
  };

  it('a forged tool that uses fetch has the note of the release or of the policy, and any other tool has none', () => {
    const agent = (fetchProblem: AgentMeans['fetchProblem']) => anAgent(['rates'], { fetchProblem });
    assert.equal(
      noteOf(
        forgedEntry(parts),
        agent(() => 'no proxy'),
      ),
      '[not available: no proxy]',
    );
    assert.equal(
      noteOf(
        forgedEntry(parts),
        agent(() => undefined),
      ),
      undefined,
    );
    const offline = { ...parts, requires: { apis: [], domains: [] } };
    assert.equal(
      noteOf(
        forgedEntry(offline),
        agent(() => 'no proxy'),
      ),
      undefined,
    );
  });

  it('a policy makes a tool unavailable only when it denies each of its hosts', () => {
    const note = (granted: string[], domains = parts.requires.domains) => {
      const decider = createDecider(
        aSnapshot({ agent: { grants: { network: granted } }, policy: { egress: { allow: ['**', '**:8443'] } } }),
      );
      const entry = forgedEntry({ ...parts, requires: { ...parts.requires, domains } });
      return noteOf(entry, anAgent(['rates'], { fetchProblem: (hosts) => deniedHosts(hosts, decider) }));
    };
    const denied = '[not available: it uses fetch, and this agent may connect to none of its hosts]';
    assert.equal(note(['elsewhere.example.com']), denied);
    assert.equal(note(['other.example.com']), denied, 'another port');
    assert.equal(note(['api.example.com']), undefined);
    assert.equal(note(['other.example.com:8443']), undefined);
    assert.equal(note(['elsewhere.example.com'], ['*.example.com']), undefined, 'a pattern stands for any host');
    assert.equal(note(['elsewhere.example.com'], []), undefined, 'a tool that declares no host');
  });

  it('a composed tool needs the exact versions that it pins', () => {
    const pin = `csv_rows@sha256:${'1'.repeat(64)}`;
    const implementation = { mode: 'Compose', steps: [{ tool: pin }, { tool: 'file_read' }] };
    const chain = forgedEntry({ ...parts, requires: { apis: [], domains: [] }, implementation });
    const missing = '[not available: needs 1 tool this agent does not have]';
    assert.equal(
      noteOf(chain, anAgent(['rates', 'file_read', 'csv_rows'])),
      missing,
      'another version is another tool',
    );
    assert.equal(noteOf(chain, anAgent(['rates', 'file_read', 'csv_rows', pin])), undefined);
    assert.equal(noteOf(chain, anAgent(['file_read', pin])), '[not available: this agent does not have it]');
  });
});
