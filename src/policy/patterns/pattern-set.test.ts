import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { compilePattern, matchesSubject } from './pattern.ts';
import { patternSet } from './pattern-set.ts';
import { parseSubject, type SubjectKind } from './pattern-subjects.ts';

/** Few letters, so that many patterns of a list begin, end and match alike. */
const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 3 });
/** No two or three of these letters are a public suffix. */
const label = fc.string({ unit: fc.constantFrom('q', 'v', 'w'), minLength: 1, maxLength: 3 });
const starred = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '*'), minLength: 1, maxLength: 5 });
const joined = (item: fc.Arbitrary<string>, separator: string) =>
  fc.array(item, { minLength: 1, maxLength: 4 }).map((items) => items.join(separator));
const port = fc.constantFrom('', '', ':80', ':*');
const rooted = fc.constantFrom('', '/');

const ANY_SEGMENT = fc.oneof(
  word,
  starred.filter((text) => !text.includes('**')),
  fc.constant('**'),
);
const PATTERNS: Partial<Record<SubjectKind, fc.Arbitrary<string>>> = {
  tool: starred,
  name: starred,
  model: joined(ANY_SEGMENT, '/'),
  key: joined(ANY_SEGMENT, '.'),
  path: fc.tuple(rooted, joined(ANY_SEGMENT, '/')).map((parts) => parts.join('')),
  event: fc
    .tuple(joined(fc.oneof(word, fc.constant('*')), '.'), fc.constantFrom('', '.>'))
    .map((parts) => parts.join('')),
  host: fc
    .tuple(fc.constantFrom('', '*.', '**.'), joined(label, '.'), port)
    .map((parts) => parts.join(''))
    .chain((host) => fc.constantFrom(host, '*', '192.0.2.7', '192.0.2.7:*')),
};
const SUBJECTS: Partial<Record<SubjectKind, fc.Arbitrary<string>>> = {
  tool: fc.oneof(word, starred),
  name: fc.oneof(word, starred),
  model: joined(word, '/'),
  key: joined(word, '.'),
  path: fc.tuple(rooted, joined(word, '/')).map((parts) => parts.join('')),
  event: joined(word, '.'),
  host: fc.oneof(
    fc.tuple(joined(label, '.'), fc.constantFrom('', ':80')).map((parts) => parts.join('')),
    fc.constantFrom('192.0.2.7', '192.0.2.7:80'),
  ),
};

describe('a set of patterns', () => {
  for (const [kind, pattern] of Object.entries(PATTERNS) as [SubjectKind, fc.Arbitrary<string>][]) {
    it(`a set of ${kind} patterns covers what one of its patterns matches, however long the list is`, () => {
      const subjects = SUBJECTS[kind] ?? word;
      let covered = 0;
      let uncovered = 0;
      fc.assert(
        fc.property(
          fc.array(pattern, { minLength: 1, maxLength: 60 }),
          fc.array(subjects, { minLength: 10, maxLength: 10 }),
          (texts, asked) => {
            const set = patternSet(texts, kind);
            const compiled = texts.map((text) => compilePattern(text, kind));
            for (const text of asked) {
              const subject = parseSubject(kind, text);
              const expected = subject !== undefined && compiled.some((one) => matchesSubject(one, subject));
              assert.equal(set.has(text), expected, `${kind} ${JSON.stringify(texts)} and ${text}`);
              if (expected) covered += 1;
              else uncovered += 1;
            }
          },
        ),
        { numRuns: 300, seed: 20_261_124 },
      );
      assert.ok(covered > 100 && uncovered > 100, `${covered} covered, ${uncovered} not`);
    });
  }
});
