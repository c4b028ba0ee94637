import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { PatternKind } from '../../api/findings.ts';
import { PLAIN_PATTERN_RULES } from '../../api/pattern-rules.ts';
import { BoundedPatternRules, PATTERN_RULES } from './pattern-rules.ts';

const SEPARATORS: Readonly<Record<PatternKind, string[]>> = {
  tool: [],
  name: [],
  model: ['/'],
  path: ['/', '/**', '**/', './'],
  host: ['.', '*.', '**.', ':*', ':443'],
  key: ['.', '.*', '.**'],
  event: ['.', '.*', '>', '.>'],
};

const letters = (kind: PatternKind): string[] => ['a', 'b', '*', '**', ...SEPARATORS[kind]];

const anyCase = fc.constantFrom<PatternKind>('tool', 'model', 'path', 'host', 'key', 'name', 'event').chain((kind) => {
  const pattern = fc
    .array(fc.constantFrom(...letters(kind)), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join(''));
  return fc.record({ kind: fc.constant(kind), ceiling: fc.array(pattern, { maxLength: 3 }), text: pattern });
});

describe('the plain pattern rules of manifests', () => {
  it('the plain rules report a grant as too wide only when the full pattern language does', () => {
    let wide = 0;
    fc.assert(
      fc.property(anyCase, ({ kind, ceiling, text }) => {
        const readable = ceiling.filter((pattern) => PATTERN_RULES.patternError(pattern, kind) === undefined);
        if (PATTERN_RULES.patternError(text, kind) !== undefined || PLAIN_PATTERN_RULES.covers(readable, text, kind))
          return;
        wide += 1;
        assert.equal(PATTERN_RULES.covers(readable, text, kind), false, `${text} within ${readable.join()}`);
      }),
      { numRuns: 5000 },
    );
    assert.ok(wide > 200, `${wide}`);
  });

  it('the plain rules reject only patterns that the full pattern language rejects', () => {
    fc.assert(
      fc.property(anyCase, ({ kind, text }) => {
        if (PLAIN_PATTERN_RULES.patternError(text, kind) === undefined) return;
        assert.notEqual(PATTERN_RULES.patternError(text, kind), undefined, `${kind} ${text}`);
      }),
      { numRuns: 5000 },
    );
  });

  it('an invalid pattern is reported with the position of the error', () => {
    assert.equal(PATTERN_RULES.patternError('*.example.com', 'host'), undefined);
    assert.match(PATTERN_RULES.patternError('a.*.b', 'host') ?? '', /^character 3: /);
    assert.equal(PATTERN_RULES.covers(['**.example.com'], '*.example.com', 'host'), true);
    assert.equal(PATTERN_RULES.covers(['*.example.com'], '**.example.com', 'host'), false);
  });
});

describe('the bounded pattern rules of untrusted objects', () => {
  const hundred = (form: (index: number) => string) => Array.from({ length: 100 }, (_, index) => form(index));

  it('a hundred ordinary patterns are compared with a hundred others within the budget of one object', () => {
    const rules = new BoundedPatternRules();
    const ceiling = hundred((index) => `**.team-${index}.example.com`);
    assert.ok(hundred((index) => `*.team-${index}.example.com`).every((host) => rules.covers(ceiling, host, 'host')));
  });

  it('all comparisons of one object share a budget, and the next object has its own', () => {
    const rules = new BoundedPatternRules();
    const heavy = hundred((index) => `${'a*'.repeat(100)}${index}`);
    assert.equal(rules.covers(['b*', ...heavy], 'ba*', 'tool'), true);
    for (let index = 0; index < 3; index += 1) rules.covers(heavy, `${'a*'.repeat(100)}x`, 'tool');
    assert.equal(rules.covers(['b*', ...heavy], 'ba*', 'tool'), false);
    rules.startObject();
    assert.equal(rules.covers(['b*', ...heavy], 'ba*', 'tool'), true);
  });
});
