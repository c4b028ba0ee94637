import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { callOptions } from '../../../test/support/call-options.ts';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { seededRandom } from '../../../test/support/seeded-random.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { DiscoveryEntry } from '../../discovery/entry.ts';
import { UNOBSERVED } from '../../discovery/vector/embed-texts.ts';
import { HybridSearch } from '../../discovery/vector/hybrid-search.ts';
import { MemoryVectorIndex } from '../../discovery/vector/memory-index.ts';
import { keyOf } from '../../kube/informer/store.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { WatchedCatalog } from './catalog.ts';
import { pruneCapability } from './catalog-entries.ts';

const CAPABILITIES = 500;
const AGENTS = 50;
const SEARCHES = 6;
const EDITS = 1_500;
const NAMESPACE = 'team-a';

describe('a catalog that changes while agents search', () => {
  it('an answer contains current revisions only, whatever changed while its vectors were read', async () => {
    const log = createLogger({ level: 'error', destination: { write: () => true }, secrets: createSecretRedactor() });
    const catalog = new WatchedCatalog({
      read: async () => undefined,
      sources: { get: async () => undefined },
      isServed: () => true,
      log,
    });
    /** The revision of each capability that the last watch event had; absent: deleted. */
    const revisions = new Map<string, number>();
    let revision = 0;
    const random = seededRandom(11);

    const change = (number: number, type: 'updated' | 'deleted'): void => {
      const name = `c-${number}`;
      revision += 1;
      const topic = ['rain', 'invoice', 'flight', 'photo', 'dinner'][revision % 5];
      const object = pruneCapability({
        metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: String(revision) },
        spec: { type: 'Skill', description: `revision ${revision} about item${number} and ${topic}` },
      } as never);
      if (type === 'deleted') {
        catalog.capabilityChanged({ type, key: keyOf(object), object, tombstone: false });
        revisions.delete(name);
        return;
      }
      catalog.capabilityChanged({ type, key: keyOf(object), object } as never);
      revisions.set(name, revision);
    };
    for (let number = 0; number < CAPABILITIES; number += 1) change(number, 'updated');

    /** As slow as a server: the catalog changes meanwhile. */
    const embed = async (texts: string[]) => {
      for (let wait = 0; wait < 3; wait += 1) await turn();
      return texts.map((text) => conceptVector(text));
    };
    const search = new HybridSearch({
      index: new MemoryVectorIndex(),
      embedEntries: embed,
      clock: systemClock,
      redact: (text) => text,
      observer: UNOBSERVED,
      closing: NEVER_ABORTED,
      limits: { searchMs: 120_000, entriesMs: 120_000 },
    });

    const assertCurrent = ({ name, description }: DiscoveryEntry): void => {
      assert.ok(
        description.startsWith(`revision ${revisions.get(name)} `),
        `${name} has revision ${revisions.get(name)}, and the answer says: ${description}`,
      );
    };
    const ask = async (agent: number): Promise<void> => {
      const caller = { id: `agent-${agent}`, namespace: NAMESPACE, embed, ownerOf: () => 'Namespace' as const };
      for (let asked = 0; asked < SEARCHES; asked += 1) {
        const number = random(CAPABILITIES);
        const query = `umbrella ${agent} ${asked}. The item${number} of the airport.`;
        const scope = { indexes: [catalog.index(NAMESPACE)], permits: () => true };
        const found = await search.search({ query }, scope, caller, { ...callOptions(), deadline: Infinity });
        const entries = found.map(({ entry }) => entry);
        entries.forEach(assertCurrent);
        assert.equal(new Set(entries.map(({ id }) => id)).size, entries.length, 'no entry is there twice');
        const name = `c-${number}`;
        assert.equal(
          entries.some((entry) => entry.name === name),
          revisions.has(name),
          `${name} is found when it exists, by its word`,
        );
      }
    };
    const edit = async (): Promise<void> => {
      for (let edited = 0; edited < EDITS; edited += 1) {
        change(random(CAPABILITIES), random(10) === 0 ? 'deleted' : 'updated');
        if (edited % 5 === 0) await turn();
      }
    };
    await Promise.all([edit(), ...Array.from({ length: AGENTS }, (_, agent) => ask(agent))]);
    assert.equal(catalog.index(NAMESPACE).size, revisions.size);
  });
});
