import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { array, assert as assertProperty, asyncProperty, boolean, constantFrom, record } from 'fast-check';
import { callOptions } from '../../../test/support/call-options.ts';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { DiscoveryEntry } from '../entry.ts';
import { LexicalIndex } from '../lexical/lexical-index.ts';
import { search as searchByWords } from '../lexical/search.ts';
import type { EmbedTexts, VectorObserver } from './embed-texts.ts';
import { HybridSearch, type SearchCaller } from './hybrid-search.ts';
import { MemoryVectorIndex } from './memory-index.ts';

const everything = { permits: () => true };

function entry(name: string, description: string, changes: Partial<DiscoveryEntry> = {}): DiscoveryEntry {
  return {
    id: `tool:${name}`,
    kind: 'tool',
    name,
    description,
    category: 'other',
    tags: [],
    requiredTools: [],
    ...changes,
  };
}

const TOOLS = [
  entry('rain_report', 'Reports whether rain is near.'),
  entry('pay_invoice', 'Settles an open invoice.'),
  entry('find_flight', 'Searches for a flight.'),
  entry('count_words', 'Counts the words of a text.'),
];

/** A search whose embedder is `conceptVector`; `sent` receives the texts of each request. */
function aSearch(
  changes: { embed?: EmbedTexts; observer?: Partial<VectorObserver>; redact?: (text: string) => string } = {},
) {
  const sent: string[][] = [];
  const embed: EmbedTexts = (texts, op) => {
    sent.push(texts);
    return changes.embed?.(texts, op) ?? Promise.resolve(texts.map((text) => conceptVector(text)));
  };
  const outcomes: string[] = [];
  const search = new HybridSearch({
    index: new MemoryVectorIndex(),
    embedEntries: embed,
    clock: systemClock,
    redact: changes.redact ?? ((text) => text),
    observer: {
      embedded: (part, outcome) => outcomes.push(`${part} ${outcome}`),
      cached: () => undefined,
      queried: () => undefined,
      ...changes.observer,
    },
    closing: NEVER_ABORTED,
    limits: { searchMs: 60_000, entriesMs: 60_000 },
  });
  const caller: SearchCaller = { id: 'team-a/analyst', namespace: 'team-a', embed, ownerOf: () => 'Namespace' };
  return { search, caller, sent, outcomes };
}

async function names(
  { search, caller }: ReturnType<typeof aSearch>,
  query: string,
  entries: readonly DiscoveryEntry[] = TOOLS,
  permits: (one: DiscoveryEntry) => boolean = () => true,
): Promise<string[]> {
  const scope = { indexes: [LexicalIndex.of(entries)], permits };
  return (await search.search({ query }, scope, caller, callOptions())).map(({ entry: { name } }) => name);
}

describe('a search by words and meaning', () => {
  it('a search finds an entry by its meaning that has no word of the query', async () => {
    const setup = aSearch();
    assert.deepEqual(await names(setup, 'Do I need an umbrella?'), ['rain_report']);
    const scope = { indexes: [LexicalIndex.of(TOOLS)], ...everything };
    assert.deepEqual(searchByWords({ query: 'Do I need an umbrella?' }, scope), []);
  });

  it('each sentence is compared alone, so a request for several tools finds each of them', async () => {
    const query = 'Is an umbrella needed today? What do I owe for the bill? Which plane leaves the airport?';
    const found = await names(aSearch(), query);
    assert.deepEqual(found.toSorted(), ['find_flight', 'pay_invoice', 'rain_report']);
  });

  it('relevance is from 0 to 1, best first, and ties are in the order of the ids', async () => {
    const { search, caller } = aSearch();
    const scope = {
      indexes: [LexicalIndex.of([...TOOLS, entry('a_rain_report', 'Reports whether rain is near.')])],
      ...everything,
    };
    const found = await search.search({ query: 'umbrella rain' }, scope, caller, callOptions());
    const relevances = found.map(({ relevance }) => relevance);
    assert.deepEqual(
      relevances,
      relevances.toSorted((a, b) => b - a),
    );
    assert.ok(relevances.every((relevance) => relevance > 0 && relevance <= 1));
  });

  it('an entry is embedded once, a changed one again, and a query of the same agent not again', async () => {
    const setup = aSearch();
    await names(setup, 'umbrella');
    await names(setup, 'umbrella');
    assert.deepEqual(
      setup.sent.map((texts) => texts.length),
      [1, TOOLS.length],
    );
    const changed = [...TOOLS.slice(1), entry('rain_report', 'Cooks dinner.')];
    assert.deepEqual(await names(setup, 'umbrella', changed), ['rain_report']);
    assert.deepEqual(setup.sent.at(-1)?.length, 1);
    assert.deepEqual(await names(setup, 'a meal', changed), ['rain_report']);
  });

  it('another agent neither pays less nor waits shorter because of a query of the first one', async () => {
    const setup = aSearch();
    await names(setup, 'umbrella');
    const other = { ...setup, caller: { ...setup.caller, id: 'team-a/clerk' } };
    await names(other, 'umbrella');
    assert.deepEqual(
      setup.sent.map((texts) => texts.length),
      [1, TOOLS.length, 1],
    );
  });

  it('entries of the agent itself are embedded after its query, at its expense', async () => {
    const setup = aSearch();
    const paid: string[][] = [];
    const caller: SearchCaller = {
      ...setup.caller,
      ownerOf: ({ name }) => (name === 'rain_report' ? 'Agent' : 'Namespace'),
      embed: async (texts) => {
        paid.push(texts);
        return texts.map((text) => conceptVector(text));
      },
    };
    assert.deepEqual(await names({ ...setup, caller }, 'umbrella'), ['rain_report']);
    assert.deepEqual(paid[0], ['umbrella']);
    assert.equal(paid.length, 2);
    assert.match(paid[1]?.[0] ?? '', /^rain report \(rain_report\)/);
    assert.equal(
      setup.sent.flat().some((text) => text.includes('rain_report')),
      false,
    );
  });

  it('secrets are removed from the texts before they are sent', async () => {
    const setup = aSearch({ redact: (text) => text.replaceAll('hunter2', '[redacted]') });
    await names(setup, 'umbrella hunter2', [entry('rain', 'Rain with hunter2.')]);
    assert.ok(
      setup.sent.flat().every((text) => !text.includes('hunter2')),
      JSON.stringify(setup.sent),
    );
  });

  for (const [what, embed] of [
    ['fails', () => Promise.reject(new TemperError('TEMPER_MODEL_OVERLOADED', 'busy', { retry: 'backoff' }))],
    [
      'sends vectors of several lengths',
      async (texts: string[]) => texts.map((_, at) => new Float32Array(at + 1).fill(1)),
    ],
    ['sends no numbers', async (texts: string[]) => texts.map(() => Float32Array.of(Number.NaN, 1))],
    ['sends nothing', async () => []],
  ] as const) {
    it(`an embedder that ${what} leaves the search by words, with the reason`, async () => {
      const setup = aSearch({ embed });
      const query = 'Settle an open invoice. Search for a flight.';
      assert.deepEqual((await names(setup, query)).toSorted(), ['find_flight', 'pay_invoice']);
      const scope = { indexes: [LexicalIndex.of(TOOLS)], ...everything };
      const part = await setup.search.compare({ query }, scope, setup.caller, callOptions());
      assert.equal(part.similarities, undefined);
      assert.match(part.failure ?? '', /^TEMPER_MODEL_/);
    });
  }

  it('an embedder that never answers ends with the time for vectors', async () => {
    const setup = aSearch({
      embed: (_texts, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    const search = new HybridSearch({
      index: new MemoryVectorIndex(),
      embedEntries: setup.caller.embed,
      clock: systemClock,
      redact: (text) => text,
      observer: { embedded: () => undefined, cached: () => undefined, queried: () => undefined },
      closing: NEVER_ABORTED,
      limits: { searchMs: 20, entriesMs: 10 },
    });
    assert.deepEqual(await names({ ...setup, search }, 'an invoice'), ['pay_invoice']);
  });

  it('a text that the embedder refuses does not keep the other entries from being embedded', async () => {
    const refuses = async (texts: string[]) => {
      if (texts.some((text) => text.includes('count_words')))
        throw new TemperError('TEMPER_MODEL_FORMAT', 'too long', { details: { status: 413 } });
      return texts.map((text) => conceptVector(text));
    };
    const setup = aSearch({ embed: refuses });
    assert.deepEqual(await names(setup, 'umbrella'), ['rain_report']);
    const before = setup.sent.length;
    await names(setup, 'plane');
    assert.equal(setup.sent.length, before + 1, 'the refused text is not sent again');
  });

  it('a model with other dimensions replaces all vectors', async () => {
    let dimensions = 6;
    const setup = aSearch({ embed: async (texts) => texts.map((text) => conceptVector(text, dimensions)) });
    assert.deepEqual(await names(setup, 'umbrella'), ['rain_report']);
    dimensions = 8;
    assert.deepEqual(await names(setup, 'a plane'), ['find_flight']);
    assert.deepEqual(
      await names(setup, 'umbrella'),
      ['rain_report'],
      'the vector of the first query is not used any more',
    );
    assert.deepEqual(await names(setup, 'a bill'), ['pay_invoice']);
  });

  it('what an agent may not see changes neither results nor relevance, and is not embedded for it', async () => {
    const description = array(
      constantFrom('rain', 'weather', 'invoice', 'bill', 'flight', 'plane', 'photo', 'dinner', 'text'),
      { minLength: 1, maxLength: 6 },
    );
    const registry = array(record({ words: description, hidden: boolean() }), { minLength: 1, maxLength: 40 });
    await assertProperty(
      asyncProperty(registry, description, async (tools, wanted) => {
        const all = tools.map(({ words }, number) => entry(`tool_${number}`, words.join(' ')));
        const seen = all.filter((_, number) => tools[number]?.hidden === false);
        const query = { query: `${wanted.join(' ')}. umbrella` };
        const [with_, without] = [aSearch(), aSearch()];
        const found = await with_.search.search(
          query,
          { indexes: [LexicalIndex.of(all)], permits: (one) => seen.includes(one) },
          with_.caller,
          callOptions(),
        );
        const expected = await without.search.search(
          query,
          { indexes: [LexicalIndex.of(seen)], ...everything },
          without.caller,
          callOptions(),
        );
        assert.deepEqual(found, expected);
        assert.deepEqual(with_.sent, without.sent);
      }),
      { numRuns: 40 },
    );
  });
});
