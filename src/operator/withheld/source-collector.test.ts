import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { Digest } from '../../lib/canonical.ts';
import { SourceKeyring } from '../../nats/sources/source-cipher.ts';
import { sourceKey, type StoredText } from '../../nats/sources/tool-sources.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { aTool } from '../tool/tool.testing.ts';
import type { WithheldStore } from './ports.ts';
import { SourceCollector } from './source-collector.ts';

const DIGESTS = ['a', 'b', 'c'].map((letter): Digest => `sha256:${letter.repeat(64)}`);
const [PROMOTED, IN_SESSION, UNUSED] = DIGESTS as [Digest, Digest, Digest];

function setup() {
  const clock = new FakeClock();
  const keyring = new SourceKeyring();
  keyring.keys = [{ id: 'first', createdAt: clock.now(), key: Buffer.alloc(32) }];
  const texts = new Map<string, StoredText>();
  const tools: StoredTool[] = [];
  const known = new Set(['agent-1']);
  const [requeued, renewed]: [string[], string[]] = [[], []];
  const store: WithheldStore = {
    get: async () => undefined,
    put: async () => undefined,
    texts: async () => new Map(texts),
    remove: async (key) => void texts.delete(key),
    renew: async (key) => {
      renewed.push(key);
      return 'second';
    },
    sessionTools: async () => new Set([IN_SESSION]),
    sessionExists: async (_agentUid, session) => session === 'open',
  };
  const collector = new SourceCollector({
    store,
    keyring,
    clock,
    agents: { byIndex: (_name, uid) => (known.has(uid) ? [{} as StoredAgent] : []) },
    tools: { list: () => tools },
    requeue: ({ metadata }) => void requeued.push(metadata.name),
  });
  const stored = (agentUid: string, digest: Digest): void => {
    texts.set(sourceKey(agentUid, digest), { kind: 'tool', agentUid, digest });
  };
  const withheldTool = (digest: Digest, reason = 'Verified'): StoredTool => {
    const ownerReferences = [{ apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'analyst', uid: 'agent-1' }];
    const condition = { type: 'Active', status: 'True', reason, message: '', lastTransitionTime: '' } as const;
    return aTool(
      { tier: 'Agent', digest, sourceWithheld: true },
      { metadata: { ownerReferences }, status: { conditions: [condition] } },
    );
  };
  return { clock, keyring, texts, tools, requeued, renewed, collector, stored, withheldTool };
}

describe('the collector of withheld sources', () => {
  it('a source is deleted at the second look at which no session and no EmergentTool of its agent has the tool', async () => {
    const { texts, tools, collector, stored, withheldTool } = setup();
    tools.push(withheldTool(PROMOTED));
    for (const digest of DIGESTS) stored('agent-1', digest);
    stored('agent-of-another-namespace', UNUSED);
    texts.set('agent-1.calls.open.x', { kind: 'call', agentUid: 'agent-1', session: 'open' });
    texts.set('agent-1.calls.closed.x', { kind: 'call', agentUid: 'agent-1', session: 'closed' });
    await collector.round();
    assert.equal(texts.size, 6, 'a source is stored before its tool');
    await collector.round();
    assert.deepEqual(
      [...texts.keys()].sort(),
      [
        sourceKey('agent-1', PROMOTED),
        sourceKey('agent-1', IN_SESSION),
        sourceKey('agent-of-another-namespace', UNUSED),
        'agent-1.calls.open.x',
      ].sort(),
    );
  });

  it('a tool whose source was lost or came back is looked at again, and every one after a change of the keys', async () => {
    const { keyring, tools, requeued, collector, stored, withheldTool } = setup();
    const lost = withheldTool(PROMOTED);
    tools.push(lost);
    await collector.round();
    requeued.length = 0;
    await collector.round();
    assert.deepEqual(requeued, [lost.metadata.name]);
    stored('agent-1', PROMOTED);
    requeued.length = 0;
    await collector.round();
    assert.deepEqual(requeued, [], 'it has its source');
    tools[0] = withheldTool(PROMOTED, 'SourceLost');
    await collector.round();
    assert.deepEqual(requeued, [lost.metadata.name], 'its source came back');
    tools[0] = withheldTool(PROMOTED);
    requeued.length = 0;
    keyring.keys = [{ id: 'other', createdAt: new Date(), key: Buffer.alloc(32) }];
    await collector.round();
    assert.deepEqual(requeued, [lost.metadata.name], 'another key cannot decrypt it');
  });

  it('while there are two keys, everything is encrypted with the current one every hour', async () => {
    const { clock, keyring, tools, renewed, collector, stored, withheldTool } = setup();
    tools.push(withheldTool(PROMOTED));
    stored('agent-1', PROMOTED);
    await collector.round();
    assert.deepEqual(renewed, []);
    keyring.keys = [...keyring.keys, { id: 'second', createdAt: clock.now(), key: Buffer.alloc(32) }];
    await collector.round();
    await collector.round();
    assert.deepEqual([renewed, keyring.inUse], [[sourceKey('agent-1', PROMOTED)], new Set(['second'])]);
    await clock.advance(3_600_000);
    await collector.round();
    assert.equal(renewed.length, 2);
  });
});
