import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isPlatformSubject, subjectError, subjectMatches, subjectPatternError } from './subject.ts';
import { SubjectTree } from './subject-tree.ts';

describe('the subjects of events', () => {
  it('a subject has one to eight tokens of letters, digits, dashes and underscores', () => {
    for (const subject of ['orders', 'orders.paid', 'A-1.b_2', 'a.b.c.d.e.f.g.h'])
      assert.equal(subjectError(subject), undefined);
    const wrong = [
      '',
      '.',
      'a..b',
      '.a',
      'a.',
      'a b',
      'a.*',
      '>',
      'a.b.c.d.e.f.g.h.i',
      'a'.repeat(129),
      'ä',
      '$SYS.x',
      'a\n',
    ];
    for (const subject of wrong) assert.notEqual(subjectError(subject), undefined, subject);
  });

  it('a wildcard of a pattern is a whole token, and ">" is the last one', () => {
    for (const pattern of ['*', '>', 'a.*.b', 'a.>', '*.*.>']) assert.equal(subjectPatternError(pattern), undefined);
    for (const pattern of ['a*', 'a.>.b', '>.a', '**', 'a.>>', '*a', ''])
      assert.notEqual(subjectPatternError(pattern), undefined, pattern);
  });

  it('subjects of the platform begin with the token temper', () => {
    assert.deepEqual(['temper', 'temper.agent', 'tempered', 'x.temper'].map(isPlatformSubject), [
      true,
      true,
      false,
      false,
    ]);
  });
});

/** The definition of NATS: token by token. */
function matches(pattern: string, subject: string): boolean {
  const [tokens, texts] = [pattern.split('.'), subject.split('.')];
  for (const [index, token] of tokens.entries()) {
    if (token === '>') return texts.length > index;
    if (texts[index] === undefined || (token !== '*' && token !== texts[index])) return false;
  }
  return tokens.length === texts.length;
}

describe('a tree of subjects', () => {
  const words = (...all: string[]): fc.Arbitrary<string> =>
    fc.array(fc.constantFrom(...all), { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('.'));
  const pattern = words('a', 'b', '*', '>').filter((text) => subjectPatternError(text) === undefined);

  it('the tree finds the patterns that match by their definition, each once, also after others were removed', () => {
    fc.assert(
      fc.property(
        fc.array(pattern, { maxLength: 12 }),
        fc.array(pattern),
        words('a', 'b', 'c'),
        (kept, removed, subject) => {
          const tree = new SubjectTree<string>();
          for (const text of [...kept, ...removed]) tree.add(text, text);
          for (const text of removed) if (!kept.includes(text)) tree.remove(text, text);
          const expected = [...new Set(kept)].filter((text) => matches(text, subject));
          assert.deepEqual(tree.match(subject).sort(), expected.sort());
          const alone = [...new Set(kept)].filter((text) => subjectMatches(text, subject));
          assert.deepEqual(alone.sort(), expected);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('a tree without values is empty', () => {
    const tree = new SubjectTree<number>();
    tree.add('a.b', 1);
    tree.add('a.>', 2);
    tree.remove('a.b', 1);
    tree.remove('a.b', 1);
    assert.deepEqual([tree.isEmpty, tree.match('a.b')], [false, [2]]);
    tree.remove('a.>', 2);
    assert.equal(tree.isEmpty, true);
  });
});
