import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { anAgent } from '../agent-means.testing.ts';
import { buildResult, MAX_RESULTS } from '../result.ts';
import { CAPABILITY_KINDS, type DiscoveryEntry } from '../entry.ts';
import { LexicalIndex } from './lexical-index.ts';
import { parameterText } from '../parameters.ts';
import { search, searchSteps } from './search.ts';
import { tokenize } from './tokenizer.ts';

const all = (): boolean => true;
const nothing = anAgent();

function anEntry(name: string, changes: Partial<DiscoveryEntry> = {}): DiscoveryEntry {
  const base = { description: '', category: 'other', tags: [], requiredTools: [] };
  return { id: `tool:${name}`, kind: 'tool', name, ...base, ...changes };
}

function found(query: string, entries: readonly DiscoveryEntry[], permits = all): string[] {
  return search({ query }, { indexes: [LexicalIndex.of(entries)], permits }).map(({ entry }) => entry.name);
}

const WORDS = ['parse', 'csv', 'rows', 'send', 'mail', 'sum', 'orders', 'region', 'file', 'read'] as const;
const word = fc.constantFrom(...WORDS);
const entries = fc
  .uniqueArray(
    fc.record({
      name: fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('_')),
      description: fc.array(word, { maxLength: 12 }).map((words) => words.join(' ')),
      tags: fc.array(word, { maxLength: 3 }),
      kind: fc.constantFrom(...CAPABILITY_KINDS),
      category: fc.constantFrom('data', 'mail'),
      hidden: fc.boolean(),
    }),
    { selector: ({ kind, name }) => `${kind}:${name}`, maxLength: 25 },
  )
  .map((made) =>
    made.map(({ hidden, ...entry }) => ({
      hidden,
      entry: anEntry(entry.name, { ...entry, id: `${entry.kind}:${entry.name}` }),
    })),
  );
const query = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(' '));

describe('wordsOf', () => {
  it('all spellings of a name have the same words', () => {
    for (const text of ['csvRows', 'csv_rows', 'CSV rows', 'csv-row', 'csv.Rows!']) {
      assert.deepEqual(tokenize(text), ['csv', 'row'], text);
    }
    assert.deepEqual(tokenize('the queries of 3 classes'), tokenize('query 3 class'));
    assert.deepEqual(tokenize('getHTMLContent'), tokenize('get HTML content'));
    assert.deepEqual(tokenize('listURLs'), tokenize('list urls'));
  });

  it('the forms of an English word have one stem', () => {
    assert.equal(
      new Set(['translate', 'translates', 'translating', 'translated'].map((form) => tokenize(form)[0])).size,
      1,
    );
  });

  it('each character of a script without spaces is a word', () => {
    assert.deepEqual(tokenize('売上 report'), ['売', '上', 'report']);
  });

  it('the number and the length of words are bounded for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 5_000 }), (text) => {
        const words = tokenize(text);
        assert.ok(words.length <= 257);
        assert.ok(words.every((found) => found !== '' && found.length <= 160));
      }),
    );
    assert.ok(tokenize('ﷺ'.repeat(100_000)).length <= 257);
    assert.deepEqual(tokenize('x'.repeat(1_000_000)), ['x'.repeat(40)]);
  });
});

describe('a search', () => {
  it('a match in the name ranks above one in the tags, and that above one in the description', () => {
    const filler = 'some other words about nothing at all';
    const made = [
      anEntry('alpha', { description: `csv ${filler}` }),
      anEntry('beta', { tags: ['csv'], description: filler }),
      anEntry('csv', { description: filler }),
    ];
    assert.deepEqual(found('csv', made), ['csv', 'beta', 'alpha']);
  });

  it('parameters and the category of a tool are searched', () => {
    const parameters = parameterText({
      type: 'object',
      properties: { iban: { type: 'string', description: 'The account.' } },
    });
    const made = [anEntry('transfer', { parameters, category: 'banking' }), anEntry('other')];
    for (const text of ['iban', 'accounts', 'banking']) assert.deepEqual(found(text, made), ['transfer'], text);
  });

  it('a request for several tools finds one for each of its sentences', () => {
    const several = (name: string, count: number, description: string) =>
      Array.from({ length: count }, (_, at) => anEntry(`${name}_${at}`, { description }));
    const made = [
      anEntry('exchange_rate', { description: 'The current exchange rate of a currency in a market.' }),
      ...several('chart', 5, 'Draws the current currency of a market.'),
      ...several('folder', 30, 'Counts the mails of a folder that users can send.'),
      anEntry('send_mail', { description: 'Sends a mail.' }),
    ];
    const text = 'Look up the current exchange rate of a currency in a market. Then send a mail.';
    assert.deepEqual(found(text, made).slice(0, 2), ['exchange_rate', 'send_mail']);
  });

  it('words in quotation marks weigh less than the words around them', () => {
    const made = [anEntry('weather'), anEntry('translate')];
    assert.deepEqual(found('translate "weather"', made), ['translate', 'weather']);
    assert.deepEqual(found('"translate" weather', made), ['weather', 'translate']);
  });

  it('a word that no entry has is read as its misspelling or as two words', () => {
    const made = [anEntry('receive_message'), anEntry('copy_editing')];
    for (const text of ['recieve', 'mesage', 'messsage'])
      assert.deepEqual(found(text, made), ['receive_message'], text);
    assert.deepEqual(found('copyediting', made), ['copy_editing']);
    assert.deepEqual(found('xyzzyq', made), []);
  });

  it('a search finds, of the entries of a list with one ID, the first that the agent may see', () => {
    const fill = Array.from({ length: 9 }, (_, number) => anEntry(`fill_${number}`));
    const [third, eleventh] = ['third', 'eleventh'].map((description) => anEntry('csv', { description }));
    const index = LexicalIndex.of(
      [...fill.slice(0, 2), third, ...fill.slice(2), eleventh].flatMap((entry) => entry ?? []),
    );
    const seen = (permits: (entry: DiscoveryEntry) => boolean): string[] =>
      search({ query: 'csv' }, { indexes: [index], permits }).map(({ entry }) => entry.description);
    assert.deepEqual(seen(all), ['third']);
    assert.deepEqual(
      seen((entry) => entry !== third),
      ['eleventh'],
    );
  });

  it('the policy decides about every entry, whatever the words of the query are', () => {
    const index = LexicalIndex.of([anEntry('csv'), anEntry('mail'), anEntry('secret_plan')]);
    const asked = (text: string): string[] => {
      const names: string[] = [];
      const permits = ({ name }: DiscoveryEntry): boolean => names.push(name) > 0 && name !== 'secret_plan';
      assert.ok(
        search({ query: text }, { indexes: [index], permits }).every(({ entry }) => entry.name !== 'secret_plan'),
      );
      return names;
    };
    assert.deepEqual(asked('secret plan'), asked('zebra'));
  });

  it('unknown words and an empty query find nothing', () => {
    assert.deepEqual(found('zebra', [anEntry('csv')]), []);
    assert.deepEqual(found('the of !!', [anEntry('csv')]), []);
  });

  it('the filters for kind and category also exclude better matches', () => {
    fc.assert(
      fc.property(entries, query, fc.constantFrom(...CAPABILITY_KINDS), (made, text, kind) => {
        const index = LexicalIndex.of(made.map(({ entry }) => entry));
        const ranked = search({ query: text, kind, category: 'DATA' }, { indexes: [index], permits: all });
        assert.ok(ranked.every(({ entry }) => entry.kind === kind && entry.category === 'data'));
      }),
    );
  });

  it('invisible entries affect neither the results nor the scores', () => {
    fc.assert(
      fc.property(entries, query, (made, text) => {
        const hidden = new Set(made.filter((one) => one.hidden).map(({ entry }) => entry));
        const whole = LexicalIndex.of(made.map(({ entry }) => entry));
        const without = LexicalIndex.of(made.filter((one) => !one.hidden).map(({ entry }) => entry));
        const asked = search({ query: text }, { indexes: [whole], permits: (entry) => !hidden.has(entry) });
        const clean = search({ query: text }, { indexes: [without], permits: all });
        assert.deepEqual(buildResult(asked, nothing), buildResult(clean, nothing));
      }),
    );
  });

  it('a search in steps has the results of its beginning, whatever changes between them', () => {
    const change = fc.record({
      at: fc.nat(200),
      which: fc.nat(30),
      to: fc.option(fc.array(word, { maxLength: 4 }).map((words) => words.join(' '))),
    });
    const clauses = fc.array(query, { minLength: 1, maxLength: 3 }).map((texts) => texts.join('. '));
    let cut = 0;
    fc.assert(
      fc.property(entries, clauses, fc.array(change, { maxLength: 20 }), (made, text, changes) => {
        const index = LexicalIndex.of([]);
        for (const { entry } of made) index.set(entry.id, entry);
        const tools = LexicalIndex.of([anEntry('sum_rows'), anEntry('read_mail')]);
        const hidden = new Set(made.filter((one) => one.hidden).map(({ entry }) => entry.id));
        const scope = { indexes: [index, tools], permits: ({ id }: DiscoveryEntry) => !hidden.has(id) };
        const expected = search({ query: text }, scope);
        const steps = searchSteps({ query: text }, scope);
        let step = steps.next();
        for (let at = 0; step.done !== true; at += 1) {
          for (const { which, to } of changes.filter((one) => one.at % 8 === at % 8)) {
            const key = made[which]?.entry.id ?? `tool:new_${which}`;
            if (to === null) index.delete(key);
            else index.set(key, anEntry(`new_${which}`, { id: key, description: to }));
            cut += 1;
          }
          step = steps.next();
        }
        assert.deepEqual(step.value, expected);
      }),
    );
    assert.ok(cut > 0);
  });

  it('the ranking does not depend on the order in which entries were added', () => {
    fc.assert(
      fc.property(entries, query, fc.nat(), (made, text, seed) => {
        const list = made.map(({ entry }) => entry);
        const changed = new LexicalIndex();
        for (const entry of list.toSorted(
          (a, b) => ((a.id.length * 31 + seed) % 7) - ((b.id.length * 17 + seed) % 7),
        )) {
          changed.set(entry.id, anEntry(entry.name, { description: 'sum sum sum' }));
          changed.set(`${entry.id}/gone`, entry);
          changed.delete(`${entry.id}/gone`);
          changed.set(entry.id, entry);
        }
        const one = search({ query: text }, { indexes: [LexicalIndex.of(list)], permits: all });
        assert.deepEqual(search({ query: text }, { indexes: [changed], permits: all }), one);
        assert.ok(one.every(({ relevance }) => relevance > 0 && relevance <= 1));
      }),
    );
  });

  it('for two entries with the same id the earlier index wins', () => {
    const mine = LexicalIndex.of([anEntry('csv', { description: 'mine' })]);
    const theirs = LexicalIndex.of([anEntry('csv', { description: 'theirs' })]);
    const ranked = search({ query: 'csv' }, { indexes: [mine, theirs], permits: all });
    assert.deepEqual(
      ranked.map(({ entry }) => entry.description),
      ['mine'],
    );
  });
});

describe('answerOf', () => {
  it('a response has the best results within its budget, and skips only results that do not fit', () => {
    const long = '\u202e'.repeat(160);
    const ranked = [
      ...['a', 'b'].map((name) => ({ entry: anEntry(name, { description: long }), relevance: 0.9 })),
      ...['c', 'd', 'e', 'f'].map((name) => ({ entry: anEntry(name, { description: long }), relevance: 0.5 })),
      { entry: anEntry('small'), relevance: 0.123 },
    ];
    const answer = buildResult(ranked, anAgent(['a', 'b', 'c', 'd', 'e', 'f', 'small']));
    const names = answer.capabilities.map(({ name }) => name);
    assert.ok(JSON.stringify(answer.capabilities).length <= 3_202);
    assert.deepEqual(names, ['a', 'b', 'small']);
    assert.equal(answer.more, ranked.length - names.length);
    assert.equal(answer.capabilities.find(({ name }) => name === 'small')?.relevance, 0.12);
  });

  it('a response contains no control characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const entry = anEntry('x', { description: text, unavailable: text });
        const [line] = buildResult([{ entry, relevance: 1 }], nothing).capabilities;
        const shown = `${line?.description} ${line?.note}`;
        assert.ok(!/[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u.test(shown), JSON.stringify(shown));
      }),
    );
    const many = Array.from({ length: 50 }, (_, index) => ({ entry: anEntry(`t${index}`), relevance: 1 }));
    assert.equal(buildResult(many, nothing).capabilities.length, MAX_RESULTS);
  });
});
