import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseDocuments } from './yaml-documents.ts';

const rulesOf = (text: string): string[] => parseDocuments(text).errors.map(({ rule }) => rule);

describe('parseDocuments', () => {
  it('parseDocuments reports the position of each member of each document', () => {
    const { documents, errors } = parseDocuments('a: 1\n---\n# a comment\nb:\n  - c: x\n  - {d: 2.00}\n');
    assert.deepEqual(errors, []);
    assert.deepEqual(
      documents.map(({ value }) => value),
      [{ a: 1 }, { b: [{ c: 'x' }, { d: 2 }] }],
    );
    const [first, second] = documents;
    assert.deepEqual(first?.locate(['a']), { line: 1, column: 1 });
    assert.deepEqual(second?.locate([]), { line: 4, column: 1 });
    assert.deepEqual(second?.locate(['b', 1, 'd']), { line: 6, column: 6 });
    assert.equal(second?.source(['b', 1, 'd']), '2.00');
  });

  it('parseDocuments reports the position of the nearest existing parent of a missing member', () => {
    const [document] = parseDocuments('spec:\n  model:\n    primary: x\n').documents;
    assert.deepEqual(document?.locate(['spec', 'model', 'fallbacks', 3]), { line: 2, column: 3 });
  });

  it('parseDocuments parses JSON with tabs, and skips empty documents', () => {
    assert.deepEqual(parseDocuments('{\n\t"a": [\n\t\t1]\n}\n').documents[0]?.value, { a: [1] });
    const { documents, errors } = parseDocuments('---\n---\n# nothing\n---\nnull\n');
    assert.deepEqual([documents, errors], [[], []]);
  });

  it('parseDocuments parses YAML 1.2 scalars: no octal numbers, no dates, and yes is a string', () => {
    const [document] = parseDocuments('a: yes\nb: 012\nc: 2026-01-01\nd: 0x1F\ne: .inf\n').documents;
    assert.deepEqual(document?.value, { a: 'yes', b: 12, c: '2026-01-01', d: 31, e: 'Infinity' });
  });

  it('parseDocuments reports tabs, unclosed quotes and custom tags', () => {
    const [tab] = parseDocuments('spec:\n\tmodel: x\n').errors;
    assert.equal(tab?.rule, 'yaml-tabs');
    assert.equal(tab?.fix, 'indent with spaces');
    assert.deepEqual(tab?.position, { line: 2, column: 1 });
    assert.deepEqual(rulesOf('a: "x\nb: 1\n'), ['yaml-syntax']);
    assert.deepEqual(rulesOf('a: !!js/function x\n'), ['yaml-syntax']);
  });

  it('parseDocuments reports a duplicate key at its second occurrence', () => {
    const { errors, documents } = parseDocuments('a: 1\nb:\n  c: 1\n  c: 2\n');
    assert.deepEqual(
      errors.map(({ rule, position }) => [rule, position.line]),
      [['duplicate-key', 4]],
    );
    assert.equal(documents.length, 1);
  });

  it('parseDocuments parses __proto__ as an ordinary member', () => {
    const value = parseDocuments('__proto__: {polluted: true}\n').documents[0]?.value;
    assert.deepEqual(Object.keys(value ?? {}), ['__proto__']);
    assert.equal((value as { polluted?: boolean }).polluted, undefined);
  });

  it('parseDocuments resolves a few aliases, and rejects alias bombs, alias loops and deep nesting', () => {
    assert.deepEqual(parseDocuments('a: &x [1]\nb: *x\n').documents[0]?.value, { a: [1], b: [1] });
    const bomb = Array.from(
      { length: 12 },
      (_, at) =>
        `a${at}: &a${at} [${Array(10)
          .fill(at === 0 ? 'x' : `*a${at - 1}`)
          .join(',')}]`,
    );
    assert.deepEqual(rulesOf(bomb.join('\n')), ['alias-bomb']);
    assert.deepEqual(parseDocuments(bomb.join('\n')).documents, []);
    assert.deepEqual(parseDocuments('a: &a [*a]\n').documents, []);
    assert.ok(rulesOf('a: &a [*a]\n').length > 0);
    assert.deepEqual(rulesOf('['.repeat(100) + ']'.repeat(100)), ['depth']);
    assert.ok(rulesOf('['.repeat(50_000)).includes('depth'));
    assert.ok(rulesOf('{a: '.repeat(20_000)).length > 0);
  });

  it('parseDocuments parses many keys in linear time and rejects too many documents or values', () => {
    const keys = Array.from({ length: 50_000 }, (_, at) => `k${at}: 1`).join('\n');
    assert.equal(Object.keys(parseDocuments(keys).documents[0]?.value ?? {}).length, 50_000);
    assert.deepEqual(rulesOf('---\na: 1\n'.repeat(2_000)), ['document-count']);
    assert.deepEqual(rulesOf(`[${'1,'.repeat(120_000)}1]`), ['document-size']);
  });
});
