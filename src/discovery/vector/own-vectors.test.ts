import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assert as assertProperty, asyncProperty, shuffledSubarray } from 'fast-check';
import { callOptions } from '../../../test/support/call-options.ts';
import { FakeClock } from '../../../test/support/clocks.ts';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { TemperError } from '../../lib/errors.ts';
import type { DiscoveryEntry } from '../entry.ts';
import { LexicalIndex } from '../lexical/lexical-index.ts';
import { type EmbedTexts, MAX_BATCH, UNOBSERVED } from './embed-texts.ts';
import { HybridSearch } from './hybrid-search.ts';
import { MemoryVectorIndex } from './memory-index.ts';

const entry = (name: string, description: string): DiscoveryEntry => ({
  id: `emergent-tool:${name}`,
  kind: 'emergent-tool',
  name,
  description,
  category: 'other',
  tags: [],
  requiredTools: [],
  agent: 'analyst',
});
const FITTING = entry('pay_invoice', 'Pays an invoice of the supplier.');
const PARTLY = entry('bill_list', 'Lists a bill or an invoice.');
/** Of 40 tools the fitting one is the 37th. */
const TOOLS = Array.from({ length: 40 }, (_, at) => {
  if (at === 0) return PARTLY;
  return at === 36 ? FITTING : entry(`weather_${at}`, `Reports the rain of place ${at}.`);
});
const QUERY = 'pay the invoice of the supplier';
const CHANGES = { limits: { searchMs: 60_000, entriesMs: 60_000 }, clock: new FakeClock() };

/** A search of an agent that owns all entries. */
function setup(answer: EmbedTexts = async (texts) => texts.map((text) => conceptVector(text)), changes = CHANGES) {
  const requests: string[][] = [];
  const embed: EmbedTexts = (texts, op) => {
    requests.push(texts);
    return answer(texts, op);
  };
  const search = new HybridSearch({
    index: new MemoryVectorIndex(),
    embedEntries: embed,
    redact: (text) => text,
    observer: UNOBSERVED,
    closing: NEVER_ABORTED,
    ...changes,
  });
  const caller = { id: 'uid-analyst', namespace: 'team-a', embed, ownerOf: () => 'Agent' as const };
  const found = async (tools: readonly DiscoveryEntry[], query = QUERY) => {
    const scope = { indexes: [LexicalIndex.of(tools)], permits: () => true };
    const ranked = await search.search({ query }, scope, caller, { ...callOptions(), deadline: Infinity });
    return ranked.map(({ entry: { name }, relevance }) => ({ name, relevance }));
  };
  return { found, requests };
}

describe('the search by meaning among the tools of one agent', () => {
  it('the fitting tool is the first result, whatever its position in the list of 40 tools is', async () => {
    const expected = await setup().found(TOOLS);
    assert.equal(expected[0]?.name, FITTING.name);
    await assertProperty(
      asyncProperty(shuffledSubarray(TOOLS, { minLength: TOOLS.length }), async (tools) => {
        assert.deepEqual(await setup().found(tools), expected);
      }),
      { numRuns: 30 },
    );
  });

  it('the texts of a hundred tools are sent once, in batches after the query, and a later query is sent alone', async () => {
    const { found, requests } = setup();
    const tools = [...TOOLS, ...Array.from({ length: 60 }, (_, at) => entry(`photo_${at}`, `Prints picture ${at}.`))];
    await found(tools);
    assert.deepEqual(
      requests.map((texts) => texts.length),
      [1, MAX_BATCH, MAX_BATCH, MAX_BATCH, 4],
    );
    await found(tools, 'a picture');
    assert.deepEqual(requests.slice(5), [['a picture']]);
  });

  it('a tool for which the embedder fails is ranked by its words, and the others by their meaning', async () => {
    const { found, requests } = setup(async (texts) => {
      if (texts.some((text) => text.includes('weather_7')))
        throw new TemperError('TEMPER_MODEL_OVERLOADED', 'failed', { retry: 'backoff', details: { status: 500 } });
      return texts.map((text) => conceptVector(text));
    });
    const queries = Array.from({ length: 8 }, (_, at) => `invoice ${at}`);
    for (const query of queries) {
      const sent = requests.length;
      await found(TOOLS, query);
      assert.ok(requests.length - sent <= 4, 'a search ends its requests after a failure');
    }
    const sent = requests.length;
    assert.equal((await found(TOOLS))[0]?.name, FITTING.name);
    assert.equal((await found(TOOLS, 'umbrella')).length, 37, 'all other tools for the weather are found by meaning');
    assert.equal(requests.length, sent + 2, 'the failing text is not sent again');
    const named = await found(TOOLS, 'weather_7');
    assert.ok(named.some(({ name }) => name === 'weather_7'));
  });

  it('an embedder that is too slow for a batch gets half of it in the next search', async () => {
    const { found, requests } = setup(
      async (texts, { signal }) => {
        if (texts.length <= 8) return texts.map((text) => conceptVector(text));
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      { limits: { searchMs: 60_000, entriesMs: 20 }, clock: new FakeClock() },
    );
    for (const query of ['rain', 'rain again', 'rain once more']) await found(TOOLS, query);
    const sizes = requests.filter(([text = '']) => !text.startsWith('rain')).map((texts) => texts.length);
    assert.deepEqual(sizes.slice(0, 3), [32, 8, 16]);
  });

  it('a quota that refuses the tools of the agent says nothing about their texts', async () => {
    let isRefused = true;
    const { found, requests } = setup(async (texts) => {
      if (isRefused && texts.length > 1) throw new TemperError('TEMPER_QUOTA_EXCEEDED', 'used up');
      return texts.map((text) => conceptVector(text));
    });
    await found(TOOLS);
    isRefused = false;
    await found(TOOLS);
    assert.deepEqual(
      requests.map((texts) => texts.length),
      [1, MAX_BATCH, MAX_BATCH, 8],
    );
  });
});
