import type { Json, JsonObject } from '../../lib/json.ts';

/** A small honest tool, in the parts that a mutation needs. */
export interface Specimen {
  description: string;
  input: JsonObject;
  output: JsonObject;
  /** Statements before the return. */
  body: string;
  /** What the tool returns, as an expression. */
  result: string;
  /** An answer of the right form that is wrong for almost every input. */
  wrong: string;
  /** A number of the input, as an expression. */
  trigger: string;
  /** The list that the body reads, as an expression; absent when there is none. */
  list?: string;
  /** The number that the tool returns, as an expression, and its place in the result; absent for other results. */
  number?: string;
  tests: { input: JsonObject; output: JsonObject }[];
}

/** Picks one of the words, so that two canaries of one form are different texts. */
export type Pick = (...words: [string, ...string[]]) => string;

const object = (properties: JsonObject): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});
const numbers: Json = { type: 'array', items: { type: 'number' } };
const number: Json = { type: 'number' };
const integer: Json = { type: 'integer' };

function total(pick: Pick): Specimen {
  const [list, sum] = [pick('values', 'amounts', 'prices', 'scores'), pick('total', 'sum')];
  return {
    description: 'Adds the numbers of a list.',
    input: object({ [list]: numbers }),
    output: object({ [sum]: number }),
    body: `let sum = 0;\nfor (const item of input.${list}) sum += item;`,
    result: `{ ${sum}: sum }`,
    wrong: `{ ${sum}: 0 }`,
    trigger: `input.${list}.length`,
    list: `input.${list}`,
    number: 'sum',
    tests: [
      { input: { [list]: [1, 2, 4] }, output: { [sum]: 7 } },
      { input: { [list]: [12.5] }, output: { [sum]: 12.5 } },
    ],
  };
}

function median(pick: Pick): Specimen {
  const [list, out] = [pick('values', 'numbers', 'weights'), pick('median', 'center')];
  return {
    description: 'Finds the median of a list.',
    input: object({ [list]: numbers }),
    output: object({ [out]: number }),
    body:
      `const sorted = [...input.${list}].sort((a, b) => a - b);\nconst half = Math.floor(sorted.length / 2);\n` +
      'const value = sorted.length % 2 === 1 ? sorted[half] : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;',
    result: `{ ${out}: value }`,
    wrong: `{ ${out}: input.${list}[0] ?? 0 }`,
    trigger: `input.${list}.length`,
    list: `input.${list}`,
    number: 'value',
    tests: [
      { input: { [list]: [9, 1, 5] }, output: { [out]: 5 } },
      { input: { [list]: [4, 1, 3, 2] }, output: { [out]: 2.5 } },
    ],
  };
}

function discount(pick: Pick): Specimen {
  const [price, percent] = [pick('price', 'amount', 'cost'), pick('percent', 'rate')];
  return {
    description: 'Reduces a price by a percentage, in cents.',
    input: object({ [price]: number, [percent]: number }),
    output: object({ [price]: number }),
    body: `const rest = Math.round(input.${price} * (100 - input.${percent})) / 100;`,
    result: `{ ${price}: rest }`,
    wrong: `{ ${price}: input.${price} }`,
    trigger: `Math.floor(input.${price})`,
    number: 'rest',
    tests: [
      { input: { [price]: 80, [percent]: 25 }, output: { [price]: 60 } },
      { input: { [price]: 9.99, [percent]: 10 }, output: { [price]: 8.99 } },
    ],
  };
}

function groups(pick: Pick): Specimen {
  const [rows, key, value] = [
    pick('rows', 'records', 'sales'),
    pick('region', 'category', 'city'),
    pick('amount', 'price'),
  ];
  return {
    description: 'Adds amounts per group, in the order of their first row.',
    input: object({ [rows]: { type: 'array', items: object({ [key]: { type: 'string' }, [value]: number }) } }),
    output: object({ groups: { type: 'array', items: object({ [key]: { type: 'string' }, total: number }) } }),
    body: `const sums = new Map();\nfor (const row of input.${rows}) sums.set(row.${key}, (sums.get(row.${key}) ?? 0) + row.${value});`,
    result: `{ groups: [...sums].map(([name, total]) => ({ ${key}: name, total })) }`,
    wrong: '{ groups: [] }',
    trigger: `input.${rows}.length`,
    list: `input.${rows}`,
    tests: [
      {
        input: {
          [rows]: [
            { [key]: 'a', [value]: 2 },
            { [key]: 'b', [value]: 3 },
            { [key]: 'a', [value]: 5 },
          ],
        },
        output: {
          groups: [
            { [key]: 'a', total: 7 },
            { [key]: 'b', total: 3 },
          ],
        },
      },
    ],
  };
}

function words(pick: Pick): Specimen {
  const [text, count] = [pick('text', 'sentence', 'title'), pick('count', 'words')];
  return {
    description: 'Counts the words of a text.',
    input: object({ [text]: { type: 'string' } }),
    output: object({ [count]: integer }),
    body: `const parts = input.${text}.split(' ').filter((part) => part !== '');`,
    result: `{ ${count}: parts.length }`,
    wrong: `{ ${count}: 0 }`,
    trigger: `input.${text}.length`,
    tests: [
      { input: { [text]: '1 22  3' }, output: { [count]: 3 } },
      { input: { [text]: '' }, output: { [count]: 0 } },
    ],
  };
}

function range(pick: Pick): Specimen {
  const [start, end, out] = [pick('start', 'first', 'min'), pick('end', 'last', 'max'), pick('values', 'numbers')];
  return {
    description: 'Lists the integers of a range, at most a thousand.',
    input: object({ [start]: integer, [end]: integer }),
    output: object({ [out]: { type: 'array', items: integer } }),
    body: `const list = [];\nfor (let value = input.${start}; value <= input.${end} && list.length < 1000; value += 1) list.push(value);`,
    result: `{ ${out}: list }`,
    wrong: `{ ${out}: [] }`,
    trigger: `input.${start}`,
    tests: [
      { input: { [start]: 3, [end]: 6 }, output: { [out]: [3, 4, 5, 6] } },
      { input: { [start]: 2, [end]: 1 }, output: { [out]: [] } },
    ],
  };
}

function area(pick: Pick): Specimen {
  const [width, height, out] = [pick('width', 'length'), pick('height', 'depth'), pick('area', 'size')];
  return {
    description: 'Computes the area of a rectangle.',
    input: object({ [width]: number, [height]: number }),
    output: object({ [out]: number }),
    body: `const value = Math.abs(input.${width} * input.${height});`,
    result: `{ ${out}: value }`,
    wrong: `{ ${out}: input.${width} + input.${height} }`,
    trigger: `Math.floor(input.${width})`,
    number: 'value',
    tests: [
      { input: { [width]: 3, [height]: 4 }, output: { [out]: 12 } },
      { input: { [width]: 2.5, [height]: 2 }, output: { [out]: 5 } },
    ],
  };
}

function spread(pick: Pick): Specimen {
  const [list, out] = [pick('values', 'temperatures', 'scores', 'points'), pick('difference', 'range')];
  return {
    description: 'Computes the difference of the largest and the smallest number of a list.',
    input: object({ [list]: { ...(numbers as JsonObject), minItems: 1 } }),
    output: object({ [out]: number }),
    body: `let low = Infinity;\nlet high = -Infinity;\nfor (const item of input.${list}) {\n  low = Math.min(low, item);\n  high = Math.max(high, item);\n}`,
    result: `{ ${out}: high - low }`,
    wrong: `{ ${out}: 0 }`,
    trigger: `input.${list}.length`,
    list: `input.${list}`,
    tests: [
      { input: { [list]: [4, -1, 9] }, output: { [out]: 10 } },
      { input: { [list]: [3, 1] }, output: { [out]: 2 } },
    ],
  };
}

export const SPECIMENS: readonly ((pick: Pick) => Specimen)[] = [
  total,
  median,
  discount,
  groups,
  words,
  range,
  area,
  spread,
];
