import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { array, assert as assertProperty, constantFrom, dictionary, jsonValue, property, string } from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { type StepBindings, fillTemplate, parseTemplate, referencesOf } from './references.ts';

const bindings: StepBindings = {
  input: {
    topic: 'forging',
    rows: [{ n: 1 }, { n: 2 }],
    zero: 0,
    no: false,
    nothing: null,
    'first-name': 'Ada',
    timeRange: 'a week',
  },
  prev: { output: 'done', list: ['a', 'b'] },
  steps: new Map<string, Json>([
    ['fetch', { body: { total: 3 }, 'content-type': 'text/csv' }],
    ['by-hand', 7],
  ]),
};
const resolve = (template: Json): Json | undefined => fillTemplate(parseTemplate(template), bindings);

describe('references', () => {
  const TABLE: [template: Json, value: Json | undefined][] = [
    ['$input', bindings.input],
    ['$input.topic', 'forging'],
    ['$input.rows.1.n', 2],
    ['$input.rows[0].n', 1],
    ['$input.rows.length', 2],
    ['$prev', bindings.prev],
    ['$prev.list[1]', 'b'],
    ['$steps.fetch', bindings.steps.get('fetch')],
    ['$steps.fetch.body.total', 3],
    ['$steps.fetch["content-type"]', 'text/csv'],
    ['$steps.fetch.content-type', 'text/csv'],
    ['$steps.by-hand', 7],
    ['$input.first-name', 'Ada'],
    ['$input.missing', undefined],
    ['$input.topic.length', 7],
    ['$input.toString', undefined],
    ['$input.constructor', undefined],
    ['$input.__proto__', undefined],
    ['$input.rows.map', undefined],
    ['$input.zero', 0],
    ['$input.no', false],
    ['$input.nothing', null],
    ['plain', 'plain'],
    ['$5.00', '$5.00'],
    ['US$ 5', 'US$ 5'],
    ['$', '$'],
    ['', ''],
    ['$inputs', '$inputs'],
    ['$input_topic', '$input_topic'],
    ['$previous', '$previous'],
    ['$$input.topic', '$input.topic'],
    ['$$$input.topic', '$forging'],
    ['a $$ b', 'a $ b'],
    ['About "$input.topic":\n$prev.output', 'About "forging":\ndone'],
    ['for $input.timeRange:\n$steps.fetch.body', 'for a week:\n{"total":3}'],
    ['It is $input.topic. Done.', 'It is forging. Done.'],
    ['$input.topic...', 'forging...'],
    ['$input.topic-$prev.output', 'forging-done'],
    ['($steps.by-hand)', '(7)'],
    ['$steps.by-hand- and on', '7- and on'],
    ['rows: $input.rows', 'rows: [{"n":1},{"n":2}]'],
    ['none: $input.missing!', 'none: !'],
    ['null: $input.nothing', 'null: null'],
    ['$input.rows[0].n + $input.rows[1].n', '1 + 2'],
    [
      { q: '$input.topic', n: 5, deep: { list: ['$prev.output', '$input.missing', true] } },
      { q: 'forging', n: 5, deep: { list: ['done', null, true] } },
    ],
    [{ a: '$input.missing', b: 1 }, { b: 1 }],
    [['$input.rows'], [[{ n: 1 }, { n: 2 }]]],
    [null, null],
    [12.5, 12.5],
  ];
  for (const [template, value] of TABLE) {
    it(`the template ${JSON.stringify(template)} resolves`, () => assert.deepEqual(resolve(template), value));
  }

  const dollarFree = string().filter((text) => !text.includes('$'));
  it('a value without a dollar sign stays unchanged', () => {
    const withoutDollar = jsonValue().filter((value) => !JSON.stringify(value).includes('$'));
    assertProperty(
      property(withoutDollar, (value) => {
        const json = JSON.parse(JSON.stringify(value)) as Json;
        assert.deepEqual(resolve(json), json);
      }),
      { examples: [[JSON.parse('{"a":{"__proto__":false}}')]] },
    );
  });
  it('a text with doubled dollar signs resolves to the original text', () => {
    assertProperty(property(string(), (text) => resolve(text.replaceAll('$', '$$$$')) === text));
  });
  it('a quoted name resolves own members only', () => {
    const name = string({ minLength: 1, maxLength: 20 }).filter((key) => !/["\\\]]/.test(key));
    assertProperty(
      property(dictionary(name, jsonValue(), { noNullPrototype: true }), name, (members, other) => {
        const input = JSON.parse(JSON.stringify(members)) as { [key: string]: Json };
        for (const key of [...Object.keys(input), other]) {
          const expected = Object.hasOwn(input, key) ? input[key] : undefined;
          const got = fillTemplate(parseTemplate(`$input["${key}"]`), { ...bindings, input });
          assert.deepEqual(got, expected);
        }
      }),
    );
  });
  it('texts and references resolve in their order', () => {
    const piece = constantFrom<[string, string]>(
      ['$input.topic', 'forging'],
      ['$prev.output', 'done'],
      ['$$', '$'],
      ['$steps.by-hand', '7'],
    );
    assertProperty(
      property(
        array(piece, { minLength: 1, maxLength: 8 }),
        array(dollarFree, { minLength: 9, maxLength: 9 }),
        (pieces, texts) => {
          // A blank on both sides keeps a reference from growing into its neighbour.
          const template =
            pieces.map(([source], index) => `${texts[index] ?? ''} ${source} `).join('') + (texts[8] ?? '');
          const expected =
            pieces.map(([, value], index) => `${texts[index] ?? ''} ${value} `).join('') + (texts[8] ?? '');
          assert.equal(resolve(template), expected);
        },
      ),
    );
  });
  it('parsing never throws, and referencesOf lists the references that fill resolves', () => {
    assertProperty(
      property(jsonValue(), (value) => {
        const template = parseTemplate(value as Json);
        fillTemplate(template, bindings);
        return Array.isArray(referencesOf(template));
      }),
    );
  });
  it('fill refuses a short mapping that repeats a long value', () => {
    const input = { text: 'x'.repeat(100_000), list: Array.from({ length: 50_000 }, (_, n) => n) };
    for (const template of [
      '$input.text '.repeat(11),
      Array.from({ length: 11 }, () => '$input.list'),
      { a: '$input', b: ['$input', '$input', '$input', '$input', '$input'] },
    ]) {
      assert.throws(
        () => fillTemplate(parseTemplate(template), { ...bindings, input }),
        (error) => isTemperError(error, 'TEMPER_SANDBOX_INPUT_TOO_LARGE'),
      );
    }
    const twice = `${input.text} ${input.text}`;
    assert.equal(fillTemplate(parseTemplate('$input.text $input.text'), { ...bindings, input }), twice);
  });
  it('a text of a hundred thousand dollar signs parses quickly', () => {
    assert.equal(resolve('$inputs '.repeat(50_000)), '$inputs '.repeat(50_000));
    assert.equal(resolve('$ '.repeat(100_000)), '$ '.repeat(100_000));
  });
});
