import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { seededRandom } from '../../../test/support/seeded-random.ts';
import { includes } from './pattern-containment.ts';
import { compilePattern, matches, matchesSubject } from './pattern.ts';
import type { Pattern } from './pattern.ts';
import { parseSubject } from './pattern-subjects.ts';
import type { Subject, SubjectKind } from './pattern-subjects.ts';

const SEPARATOR: Readonly<Record<string, string>> = {
  path: '/',
  key: '.',
  model: '/',
  action: ':',
  tool: '',
  name: '',
};
const KINDS = ['path', 'key', 'model', 'tool', 'name', 'action', 'host'] as const;

function randomPattern(next: (limit: number) => number, kind: SubjectKind): string {
  if (kind === 'host') return randomHost(next);
  const separator = SEPARATOR[kind] ?? '';
  if (separator === '') return randomSegment(next, 1 + next(5));
  const segments = Array.from({ length: 1 + next(4) }, () => (next(4) === 0 ? '**' : randomSegment(next, 1 + next(3))));
  return `${kind === 'path' && next(4) === 0 ? '/' : ''}${segments.join(separator)}`;
}

function randomSegment(next: (limit: number) => number, length: number): string {
  let text = '';
  while (text.length < length) {
    const piece = ['a', 'b', 'c', '*'][next(4)] ?? 'a';
    if (piece !== '*' || !text.endsWith('*')) text += piece;
  }
  return text;
}

function randomHost(next: (limit: number) => number): string {
  const labels = Array.from({ length: 1 + next(3) }, () => ['a', 'b', 'corp'][next(3)] ?? 'a');
  const head = ['', '', '*.', '**.'][next(4)] ?? '';
  return `${head}${labels.join('.')}${['', '', ':443', ':80', ':*'][next(5)] ?? ''}`;
}

/** A text that the pattern matches, generated from the pattern without the matcher. */
function sample(next: (limit: number) => number, pattern: Pattern): string {
  const words = pattern.segments.flatMap((segment) => {
    if (segment === '**') return Array.from({ length: next(3) }, () => letters(next, 1 + next(2)));
    const text = segment.join('\u0001').replaceAll('\u0001', () => letters(next, next(3)));
    return [text === '' ? letters(next, 1) : text];
  });
  if (pattern.kind === 'host') return `${words.slice(1).join('.')}:${portOf(words[0] ?? '')}`;
  if (pattern.kind === 'path' && words[0] === '/') return `/${words.slice(1).join('/')}`;
  return words.length === 0 && pattern.kind === 'path' ? '.' : words.join(SEPARATOR[pattern.kind] ?? '');
}

function portOf(text: string): string {
  return /^\d+$/.test(text) ? text : '8080';
}

function letters(next: (limit: number) => number, length: number): string {
  return Array.from({ length }, () => 'abcz'[next(4)] ?? 'z').join('');
}

describe('inclusion of patterns', () => {
  it('includes is never true when a sample refutes it, over 100,000 random pairs', () => {
    const next = seededRandom(20_261_121);
    let claimed = 0;
    for (let round = 0; round < 100_000; round += 1) {
      const kind = KINDS[next(KINDS.length)] ?? 'path';
      const inner = compilePattern(randomPattern(next, kind), kind);
      const outer = Array.from({ length: 1 + next(2) }, () => compilePattern(randomPattern(next, kind), kind));
      const claim = includes(outer, inner);
      if (claim) claimed += 1;
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const text = sample(next, inner);
        if (parseSubject(kind, text) === undefined) continue;
        assert.equal(matches(inner, text), true, `${kind}: the sample "${text}" of "${inner.text}" must match it`);
        const covered = outer.some((pattern) => matches(pattern, text));
        assert.ok(covered || !claim, `${kind}: "${inner.text}" within ${texts(outer)} is refuted by "${text}"`);
      }
    }
    assert.ok(claimed > 5_000, `only ${claimed} inclusions were tested`);
  });

  it('includes agrees with an enumeration of all words up to nine characters, over 100,000 pairs', () => {
    const next = seededRandom(7);
    const pool = [...new Set(Array.from({ length: 4_000 }, () => smallPattern(next)))].slice(0, 320);
    assert.equal(pool.length, 320);
    const patterns = pool.map((text) => compilePattern(text, 'key'));
    const subjects = words(['a', 'z', '.'], 9).flatMap((text) => parseSubject('key', text) ?? []);
    const languages = patterns.map((pattern) => languageOf(pattern, subjects));
    let claimed = 0;
    for (const [i, inner] of patterns.entries()) {
      for (const [o, outer] of patterns.entries()) {
        const witness = firstMissing(languages[i] ?? [], languages[o] ?? []);
        const claim = includes([outer], inner);
        if (claim) claimed += 1;
        const shown = witness === undefined ? 'no witness' : subjects[witness]?.canonical;
        assert.equal(claim, witness === undefined, `"${inner.text}" within "${outer.text}": ${shown}`);
      }
    }
    assert.ok(claimed > 3_000);
  });

  it('inclusion is reflexive and transitive, and `**` includes everything', () => {
    const next = seededRandom(99);
    for (const kind of KINDS) {
      const top = compilePattern(kind === 'host' ? '**:*' : '**', kind);
      const some = Array.from({ length: 40 }, () => compilePattern(randomPattern(next, kind), kind));
      const within = some.map((inner) => some.map((outer) => includes([outer], inner)));
      for (const [a, pattern] of some.entries()) {
        assert.ok(includes([pattern], pattern), `${kind} ${pattern.text} within itself`);
        assert.ok(includes([top], pattern), `${kind} ${pattern.text} within the top`);
        assert.equal(includes([], pattern), false, 'nothing is within nothing');
        for (const [b] of some.entries()) {
          for (const [c] of some.entries()) {
            if (within[a]?.[b] === true && within[b]?.[c] === true) {
              assert.ok(within[a]?.[c], `${kind}: ${texts([some[a], some[b], some[c]])}`);
            }
          }
        }
      }
    }
  });

  it('several patterns together can cover one pattern', () => {
    const within = (outer: string[], inner: string) =>
      includes(
        outer.map((text) => compilePattern(text, 'path')),
        compilePattern(inner, 'path'),
      );
    assert.equal(within(['.', '*', '*/*/**'], '**'), false, 'absolute paths are left out');
    assert.equal(within(['.', '*', '*/*/**', '/**'], '**'), true);
    assert.equal(within(['data/*'], 'data/**'), false);
    assert.equal(within(['data', 'data/*/**'], 'data/**'), true);
  });

  it('host names and IP addresses do not cover each other', () => {
    const host = (text: string) => compilePattern(text, 'host');
    assert.equal(includes([host('**:*')], host('192.0.2.1')), false);
    assert.equal(includes([host('192.0.2.1')], host('192.0.2.1:443')), true);
    assert.equal(includes([host('*.example.com')], host('**.example.com')), false);
    assert.equal(includes([host('*')], host('api.example.com:22')), false);
  });

  it('includes returns false when the search exceeds its limit, even when the pattern is covered', () => {
    const path = (text: string) => compilePattern(text, 'path');
    const pieces = ['ab', 'bc', 'ca', 'aa', 'bb', 'cc', 'abc', 'bca', 'cab', 'aab', 'bba', 'cca'];
    const heavy = pieces.map((piece) => path(`data/*${piece}*${pieces.join('*')}*e`));
    const together = [path('data'), path('data/*/**')];
    assert.equal(includes(together, path('data/**')), true);
    assert.equal(includes([...heavy, ...together], path('data/**')), false);
    assert.equal(
      includes([...heavy, path('data/**')], path('data/*ab*')),
      true,
      'one alone is never lost in the crowd',
    );
  });
});

/** Patterns over `a`, `.` and stars, short enough that nine characters show every difference. */
function smallPattern(next: (limit: number) => number): string {
  const length = 1 + next(3);
  return Array.from({ length }, () => ['a', '*', '**', 'a*', '*a', 'aa', '*a*'][next(7)] ?? 'a').join('.');
}

/** One bit per subject, 32 to a number. */
function languageOf(pattern: Pattern, subjects: readonly Subject[]): number[] {
  const bits = Array.from({ length: Math.ceil(subjects.length / 32) }, () => 0);
  for (const [at, subject] of subjects.entries()) {
    if (matchesSubject(pattern, subject)) bits[at >> 5] = (bits[at >> 5] ?? 0) | (1 << (at & 31));
  }
  return bits;
}

/** Index of the first subject that is in one language and not in the other. */
function firstMissing(inner: readonly number[], outer: readonly number[]): number | undefined {
  for (let at = 0; at < inner.length; at += 1) {
    const missing = (inner[at] ?? 0) & ~(outer[at] ?? 0);
    if (missing !== 0) return at * 32 + (31 - Math.clz32(missing));
  }
  return undefined;
}

function words(alphabet: readonly string[], longest: number): string[] {
  let level = [''];
  const all: string[] = [];
  for (let length = 1; length <= longest; length += 1) {
    level = level.flatMap((word) => alphabet.map((letter) => word + letter));
    all.push(...level);
  }
  return all;
}

function texts(patterns: readonly (Pattern | undefined)[]): string {
  return patterns.map((pattern) => `"${pattern?.text}"`).join(', ');
}
