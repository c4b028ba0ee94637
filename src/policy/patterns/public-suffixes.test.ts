import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { parse } from 'tldts';
import { edgeChild, edgeLength, edgeStart, labelText, nodeFlags, rulesRoot } from 'tldts/dist/cjs/src/data/trie.js';
import { isTemperError } from '../../lib/errors.ts';
import { compilePattern, matches, type Pattern } from './pattern.ts';
import { PATTERN_RULES } from './pattern-rules.ts';

const NAMES = { allowPrivateDomains: true, extractHostname: false } as const;

/** Every rule of the list, as its labels from the right. */
function rulesOfTheList(): string[][] {
  const starts = new Map<number, number>();
  for (let edge = 0, start = 0; edge < edgeLength.length; edge += 1) {
    starts.set(edge, start);
    start += edgeLength[edge] ?? 0;
  }
  const visit = (node: number, labels: string[]): string[][] => {
    const found = (nodeFlags[node] ?? 0) === 0 ? [] : [labels];
    for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge += 1) {
      const start = starts.get(edge) ?? 0;
      const label = labelText.slice(start, start + (edgeLength[edge] ?? 0));
      found.push(...visit(edgeChild[edge] ?? 0, [...labels, label]));
    }
    return found;
  };
  return visit(rulesRoot, []);
}

function nameOf(labels: readonly string[]): string {
  return labels.toReversed().join('.').replace('*', 'any');
}

/** Undefined when the pattern is refused for a public suffix. */
function accepted(text: string): Pattern | undefined {
  try {
    return compilePattern(text, 'host');
  } catch (error) {
    assert.ok(isTemperError(error, 'TEMPER_PATTERN_INVALID'));
    assert.match(error.message, /public suffix/, text);
    return undefined;
  }
}

/** The registrable domain of a name whose suffix is on the list. */
function owner(host: string): string | undefined {
  const { domain, isIcann, isPrivate } = parse(host, NAMES);
  return isIcann === true || isPrivate === true ? (domain ?? undefined) : undefined;
}

function ownersOf(pattern: Pattern, hosts: readonly string[]): Set<string> {
  return new Set(hosts.filter((host) => matches(pattern, host)).flatMap((host) => owner(host) ?? []));
}

describe('wildcards and public suffixes', () => {
  const rules = rulesOfTheList();

  it('no accepted wildcard matches two registrable domains, before every name of the list and every name above it', () => {
    const below = new Map<string, string[]>();
    for (const rule of rules) {
      for (let length = 1; length <= rule.length; length += 1) {
        const base = nameOf(rule.slice(0, length));
        below.set(base, [...(below.get(base) ?? []), nameOf(rule)]);
      }
    }
    assert.ok(below.size > 10_000, `${below.size}`);
    let refused = 0;
    for (const [base, suffixes] of below) {
      for (const head of ['*', '**']) {
        const pattern = accepted(`${head}.${base}`);
        if (pattern === undefined) refused += 1;
        const names = pattern === undefined ? [] : [base, ...suffixes];
        const owners =
          pattern &&
          ownersOf(
            pattern,
            names.flatMap((name) => [`x.${name}`, `y.${name}`, `x.z.${name}`]),
          );
        assert.ok(owners === undefined || owners.size < 2, `${head}.${base}: ${[...(owners ?? [])].join()}`);
      }
    }
    assert.ok(refused > 20_000 && refused < below.size * 2, `${refused}`);
  });

  it('no accepted wildcard before a generated name matches two registrable domains', () => {
    const label = fc.constantFrom('a', 'b', 'www', 'city', 's3', 'compute', 'co');
    const labels = fc.array(label, { maxLength: 3 });
    let compared = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...rules),
        fc.nat(3),
        labels,
        fc.constantFrom('*', '**'),
        fc.array(labels, { minLength: 6, maxLength: 6 }),
        (rule, cut, more, head, heads) => {
          const base = [...more, nameOf(rule.slice(0, Math.max(1, rule.length - cut)))].join('.');
          const pattern = accepted(`${head}.${base}`);
          if (pattern === undefined) return;
          const hosts = heads.map((before) => [...before, base].join('.'));
          const owners = ownersOf(pattern, hosts);
          assert.ok(owners.size < 2, `${head}.${base}: ${[...owners].join()}`);
          compared += owners.size;
        },
      ),
      { numRuns: 20_000, seed: 20_261_129 },
    );
    assert.ok(compared > 5_000, `${compared}`);
  });

  it('names that are not on the list, and registered domains, take a wildcard', () => {
    const names = [
      'internal',
      'corp',
      'local',
      'svc.cluster.local',
      'example',
      'example.com',
      'example.co.uk',
      'octocat.github.io',
      'xn--bcher-kva.example',
      // Exceptions of the list.
      'city.kawasaki.jp',
      'www.ck',
    ];
    for (const name of names) for (const head of ['*', '**']) assert.ok(accepted(`${head}.${name}`), `${head}.${name}`);
    for (const any of ['*', '**', '*:*', '**:8080']) assert.ok(accepted(any), any);
    assert.ok(accepted('*.amazonaws.com'), 'one label below a domain that has public suffixes further below');
  });

  it('a public suffix alone is a host like any other', () => {
    for (const host of ['github.io', 'com', 'co.uk:8443', 'github.io:*']) assert.ok(accepted(host), host);
  });

  it('the error names the suffix and what to write', () => {
    const error = (text: string) => PATTERN_RULES.patternError(text, 'host') ?? '';
    assert.match(
      error('**.co.uk'),
      /^character 4: .*public suffix "co\.uk".*name a domain that one of them registered/,
    );
    assert.match(
      error('**.amazonaws.com'),
      /public suffix "[a-z0-9.-]+\.amazonaws\.com".*or write "\*\.amazonaws\.com"/,
    );
    assert.match(error('*.kawasaki.jp'), /public suffix "kawasaki\.jp"/);
  });
});
