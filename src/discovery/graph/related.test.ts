import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { CapabilityLink, LinkType } from '../../tools/contract.ts';
import { type DiscoveryEntry, toolEntry } from '../entry.ts';
import { LexicalIndex } from '../lexical/lexical-index.ts';
import { search } from '../lexical/search.ts';

function anEntry(name: string, changes: Partial<DiscoveryEntry> = {}): DiscoveryEntry {
  return {
    id: `tool:${name}`,
    kind: 'tool',
    name,
    description: '',
    category: 'other',
    tags: [],
    requiredTools: [],
    ...changes,
  };
}

function link(type: LinkType, name: string, weight = 1): CapabilityLink {
  return { type, target: `tool:${name}`, weight };
}

function found(query: string, entries: readonly DiscoveryEntry[], hidden: readonly string[] = []) {
  const permits = ({ name }: DiscoveryEntry): boolean => !hidden.includes(name);
  return search({ query }, { indexes: [LexicalIndex.of(entries)], permits });
}

const namesOf = (...search: Parameters<typeof found>): string[] => found(...search).map(({ entry }) => entry.name);

describe('links between capabilities', () => {
  it('a search returns what a result needs, behind it, and what a result is composed with', () => {
    const entries = [
      anEntry('report', { requiredTools: ['fetch_page'] }),
      anEntry('report_small', { links: [link('ComposedWith', 'chart')] }),
      anEntry('fetch_page'),
      anEntry('chart'),
      anEntry('unrelated'),
    ];
    assert.deepEqual(namesOf('report', entries), ['report', 'fetch_page', 'report_small', 'chart']);
    const [, needed] = found('report', entries);
    assert.ok((needed?.relevance ?? 0) >= 0.3, 'what a result needs is not below the results');
  });

  it('a search for a tool does not return all that need it, and links by tag or category bring in nothing', () => {
    const entries = [
      anEntry('report', {
        requiredTools: ['fetch_page'],
        links: [link('TaggedWith', 'chart'), link('SameCategory', 'chart')],
      }),
      anEntry('fetch_page'),
      anEntry('chart'),
    ];
    assert.deepEqual(namesOf('fetch', entries), ['fetch_page']);
    assert.deepEqual(namesOf('report', entries), ['report', 'fetch_page']);
  });

  it('a search for a tool finds what the agent uses with it, if the agent may see it', () => {
    const entries = [anEntry('report'), anEntry('chart'), anEntry('unrelated')];
    const usedTogether = [{ ids: ['tool:chart', 'tool:report'] as const, weight: 0.8 }];
    const searched = (hidden: readonly string[], links = usedTogether) => {
      const permits = ({ name }: DiscoveryEntry): boolean => !hidden.includes(name);
      return search({ query: 'report' }, { indexes: [LexicalIndex.of(entries)], permits, usedTogether: links });
    };
    const [report, chart, ...others] = searched([]);
    assert.deepEqual([report?.entry.name, chart?.entry.name, others], ['report', 'chart', []]);
    assert.ok((chart?.relevance ?? 1) < (report?.relevance ?? 0) / 2, 'what words find goes before');
    assert.deepEqual(searched(['chart']), searched([], []), 'a hidden tool changes nothing');
    const declared = [anEntry('report', { links: [link('ComposedWith', 'chart', 1)] }), anEntry('chart')];
    const twice = search(
      { query: 'report' },
      { indexes: [LexicalIndex.of(declared)], permits: () => true, usedTogether },
    );
    assert.deepEqual(twice, found('report', declared), 'a declared link counts once');
  });

  it('results that are linked or share tags gain relevance', () => {
    const make = (changes: Partial<DiscoveryEntry>) => [
      anEntry('mail_x'),
      anEntry('mail_y', changes),
      anEntry('mail_z', changes),
    ];
    const order = (changes: Partial<DiscoveryEntry>) => namesOf('mail', make(changes));
    assert.deepEqual(order({}), ['mail_x', 'mail_y', 'mail_z']);
    assert.deepEqual(order({ links: [link('TaggedWith', 'mail_z')] }).slice(-1), ['mail_x']);
    const tags = ['inbox', 'post'];
    const [first] = found('mail', [anEntry('mail_x', { tags: ['red', 'blue'] }), ...make({ tags }).slice(1)]);
    assert.notEqual(first?.entry.name, 'mail_x');
  });

  it('hidden entries neither bring in nor lift others, whichever end declares the link', () => {
    const name = fc.constantFrom('mail', 'send', 'read', 'chart', 'page', 'report');
    const type = fc.constantFrom<LinkType>('DependsOn', 'ComposedWith', 'TaggedWith', 'SameCategory');
    const entry = fc.record({
      name,
      requiredTools: fc.array(name, { maxLength: 2 }),
      tags: fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 }),
      links: fc.array(
        fc.record({ type, target: name.map((one) => `tool:${one}`), weight: fc.constantFrom(0, 0.5, 1) }),
        { maxLength: 3 },
      ),
      hidden: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.uniqueArray(entry, { selector: (one) => one.name }), name, (made, query) => {
        const entries = made.map(({ name: own, requiredTools, tags, links }) =>
          anEntry(own, { requiredTools, tags, links }),
        );
        const hidden: string[] = made.filter((one) => one.hidden).map((one) => one.name);
        const visible = entries.filter((one) => !hidden.includes(one.name));
        const ranked = found(query, entries, hidden);
        assert.deepEqual(ranked, found(query, visible));
        assert.ok(ranked.every(({ relevance }) => relevance > 0 && relevance <= 1));
      }),
    );
  });

  it('a tool that a Capability describes has its tags, category and links', () => {
    const topics = {
      category: 'Reporting',
      tags: ['walrus'],
      requiredTools: ['page'],
      links: [link('ComposedWith', 'chart')],
    };
    const action = 'code:read';
    const described = { name: 'report', description: '', inputSchema: {}, category: 'other', action } as const;
    const entry = toolEntry({ ...described, sideEffects: false, locality: 'Local', topics });
    for (const query of ['walrus', 'reporting'])
      assert.deepEqual(namesOf(query, [entry, anEntry('page'), anEntry('chart')]), ['report', 'page', 'chart'], query);
  });

  it('a changed or deleted entry takes its links along', () => {
    const index = LexicalIndex.of([anEntry('page')]);
    const names = () =>
      search({ query: 'report' }, { indexes: [index], permits: () => true }).map(({ entry }) => entry.name);
    for (let round = 0; round < 3; round += 1) {
      index.set('report', anEntry('report', { requiredTools: ['page'] }));
      assert.deepEqual(names(), ['report', 'page']);
      index.set('report', anEntry('report'));
      assert.deepEqual(names(), ['report']);
      index.delete('report');
      assert.deepEqual(names(), []);
    }
  });

  it('links bring in a limited number of capabilities', () => {
    const users = Array.from({ length: 500 }, (_, at) =>
      anEntry(`user_${at}`, { links: [link('ComposedWith', 'hub')] }),
    );
    assert.equal(namesOf('hub', [anEntry('hub'), ...users]).length, 11);
  });
});
