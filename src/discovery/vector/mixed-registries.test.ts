import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  array,
  assert as assertProperty,
  asyncProperty,
  constantFrom,
  integer,
  record,
  string,
  uniqueArray,
} from 'fast-check';
import { callOptions } from '../../../test/support/call-options.ts';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { seededRandom } from '../../../test/support/seeded-random.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { systemClock } from '../../lib/clock.ts';
import { CAPABILITY_KINDS, type DiscoveryEntry } from '../entry.ts';
import { LexicalIndex } from '../lexical/lexical-index.ts';
import { anAgent } from '../agent-means.testing.ts';
import { buildResult, MAX_RESULTS } from '../result.ts';
import { UNOBSERVED } from './embed-texts.ts';
import { type EntryOwner, HybridSearch } from './hybrid-search.ts';
import { MemoryVectorIndex } from './memory-index.ts';

const WORDS = 'rain weather invoice bill flight plane photo image dinner recipe report list read send'.split(' ');
const OWNERS: readonly EntryOwner[] = ['Everyone', 'Namespace', 'Agent'];
/** 800 tokens of four characters, and the members around the list. */
const MAX_CHARACTERS = 3_200 + 40;

interface Source {
  owner: EntryOwner;
  size: number;
  seed: number;
}

/** The entries of one source: built-in tools, a catalog, or forged tools. Some have the name of an entry of another source. */
function entriesOf({ owner, size, seed }: Source): DiscoveryEntry[] {
  const random = seededRandom(seed);
  const some = (count: number): string[] => Array.from({ length: count }, () => WORDS[random(WORDS.length)] ?? '');
  return Array.from({ length: size }, () => {
    const kind = CAPABILITY_KINDS[random(CAPABILITY_KINDS.length)] ?? 'tool';
    const name = `${some(2).join('_')}_${random(size * 2)}`;
    const description = some(1 + random(30))
      .join(' ')
      .repeat(1 + random(8));
    const links =
      random(4) === 0 ? [{ type: 'DependsOn' as const, target: `tool:${some(2).join('_')}_1`, weight: 1 }] : [];
    const agent = owner === 'Agent' ? { agent: 'analyst' } : {};
    return {
      id: `${kind}:${name}`,
      kind,
      name,
      description,
      category: 'other',
      tags: some(2),
      requiredTools: [],
      links,
      ...agent,
    };
  });
}

async function found(
  groups: readonly (readonly DiscoveryEntry[])[],
  permits: (entry: DiscoveryEntry) => boolean,
  query: string,
) {
  const owners = new Map(groups.flatMap((entries, at) => entries.map((entry) => [entry, OWNERS[at]] as const)));
  const embed = async (texts: string[]) => texts.map((text) => conceptVector(text));
  const search = new HybridSearch({
    index: new MemoryVectorIndex(),
    embedEntries: embed,
    clock: systemClock,
    redact: (text) => text,
    observer: UNOBSERVED,
    closing: NEVER_ABORTED,
    limits: { searchMs: 120_000, entriesMs: 120_000 },
  });
  const caller = {
    id: 'a',
    namespace: 'team-a',
    embed,
    ownerOf: (entry: DiscoveryEntry) => owners.get(entry) ?? 'Namespace',
  };
  const scope = { indexes: groups.map((entries) => LexicalIndex.of(entries)), permits };
  return search.search({ query }, scope, caller, { ...callOptions(), deadline: Infinity });
}

async function assertLikeAbsence(sources: readonly Source[], hiddenShare: number, query: string): Promise<void> {
  const groups = sources.map(entriesOf);
  const random = seededRandom(hiddenShare + 1);
  const hidden = new Set(groups.flat().filter(() => random(100) < hiddenShare));
  const seen = groups.map((entries) => entries.filter((entry) => !hidden.has(entry)));
  const ranked = await found(groups, (entry) => !hidden.has(entry), query);
  const expected = await found(seen, () => true, query);
  assert.deepEqual(ranked, expected);
  const result = buildResult(ranked, anAgent());
  assert.ok(result.capabilities.length <= MAX_RESULTS);
  assert.ok(JSON.stringify(result).length <= MAX_CHARACTERS, String(JSON.stringify(result).length));
  assert.equal(result.capabilities.length + result.more, ranked.length);
}

describe('registries of several sources', () => {
  it('what an agent may not see is like what does not exist, and a result is within its budget', async () => {
    const source = record({ size: integer({ min: 7, max: 150 }), seed: integer({ min: 1, max: 1_000_000 }) });
    const query = array(constantFrom(...WORDS, 'umbrella', 'airport. ', 'meal; ', 'wether'), {
      minLength: 1,
      maxLength: 8,
    });
    await assertProperty(
      asyncProperty(
        array(source, { minLength: 3, maxLength: 3 }),
        integer({ min: 0, max: 100 }),
        query,
        async (sources, hidden, words) => {
          const owned = sources.map((one, at) => ({ ...one, owner: OWNERS[at] ?? 'Namespace' }));
          await assertLikeAbsence(owned, hidden, words.join(' '));
        },
      ),
      { numRuns: 25 },
    );
  });

  it('the same holds for 5,000 tools', async () => {
    const sources = OWNERS.map((owner, at) => ({ owner, size: owner === 'Namespace' ? 4_900 : 50, seed: at + 3 }));
    await assertLikeAbsence(sources, 40, 'Is an umbrella needed? Read the invoice.');
  });

  it('a hostile description or query neither breaks the search nor its budget', async () => {
    const texts = uniqueArray(string({ unit: 'binary', maxLength: 300 }), { minLength: 1, maxLength: 20 });
    await assertProperty(
      asyncProperty(texts, string({ unit: 'binary', maxLength: 400 }), async (descriptions, query) => {
        const entries = descriptions.map(
          (description, number): DiscoveryEntry => ({
            id: `tool:t${number}`,
            kind: 'tool',
            name: `t${number}`,
            description,
            category: description.slice(0, 20),
            tags: [description],
            requiredTools: [],
          }),
        );
        const ranked = await found([[], entries, []], () => true, query);
        assert.ok(ranked.every(({ relevance }) => relevance >= 0 && relevance <= 1));
        assert.ok(JSON.stringify(buildResult(ranked, anAgent())).length <= MAX_CHARACTERS);
      }),
      { numRuns: 50 },
    );
  });
});
