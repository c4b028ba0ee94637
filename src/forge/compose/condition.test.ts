import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assert as assertProperty, property, string } from 'fast-check';
import { ConditionError, conditionHolds, parseCondition } from './condition.ts';
import type { StepBindings } from './references.ts';

const bindings: StepBindings = {
  input: { n: 3, text: 'abc', list: [1], empty: [], no: false, zero: 0, blank: '', nothing: null, deep: { a: [1, 2] } },
  prev: { totalCount: 2, same: { a: [1, 2] } },
  steps: new Map([['find', { ok: true }]]),
};

describe('conditions', () => {
  const TRUE = [
    '$prev.totalCount > 0',
    '$prev.totalCount>=2&&$input.n<=3',
    '$steps.find.ok',
    '!$input.no',
    '!!$input.n',
    '$input.list.length == 1',
    '$input.text == "abc"',
    "$input.text == 'abc'",
    '$input.text === "abc"',
    '$input.text !== "abd"',
    '$input.missing == null',
    '$input.nothing == undefined',
    '$input.deep == $prev.same',
    '$input.empty',
    '($input.no || $input.n) && true',
    'false || false || 1',
    '1 < 2 == true',
    '$input.no == false && !($input.n > 3 || $input.zero)',
    '"b" > "a"',
    '-1 < 0',
    '1.5 > 1.25',
    "$input.text != 'it\\'s'",
    '  true  ',
  ];
  const FALSE = [
    '$input.no',
    '$input.zero',
    '$input.blank',
    '$input.nothing',
    '$input.missing',
    '$input.missing.deeper > 0',
    '$input.text > 1',
    '$input.n == "3"',
    '!$input.n',
    '$input.toString',
    'null',
    'true && false',
    '$input.n < 3 || $input.n > 3',
    '$input.list < $input.list',
  ];
  for (const text of TRUE)
    it(`the condition holds: ${text}`, () => assert.equal(conditionHolds(parseCondition(text), bindings), true));
  for (const text of FALSE)
    it(`the condition does not hold: ${text}`, () =>
      assert.equal(conditionHolds(parseCondition(text), bindings), false));

  const MALFORMED = [
    '',
    '$prev.a >',
    '> 1',
    '$prev.a = 1',
    '(1',
    '1)',
    '"open',
    'process.exit()',
    'trueish',
    '$input.a + 1',
    '1 2',
    '$nowhere',
    `${'('.repeat(500)}1${')'.repeat(500)}`,
    `${'!'.repeat(500)}1`,
  ];
  for (const text of MALFORMED) {
    it(`the parser refuses the condition ${JSON.stringify(text.slice(0, 40))}`, () =>
      assert.throws(() => parseCondition(text), ConditionError));
  }
  it('the parser gives a condition or a ConditionError for any text', () => {
    assertProperty(
      property(string({ unit: 'binary', maxLength: 512 }), (text) => {
        try {
          conditionHolds(parseCondition(text), bindings);
        } catch (error) {
          assert.ok(error instanceof ConditionError);
        }
      }),
    );
  });
});
