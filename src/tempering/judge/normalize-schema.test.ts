import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { compileSchema, validateSchema } from '../../tools/json-schema/compiler.ts';
import {
  ASSERTIONS,
  DEFINITIONS,
  FORBIDDEN_KEYWORDS,
  IN_PLACE,
  TO_ITEMS,
  TO_MEMBERS,
} from '../../tools/json-schema/keywords.ts';
import { createObfuscator } from './obfuscation.ts';
import { normalizeSchema } from './normalize-schema.ts';

const NAMES = [
  'a',
  'b',
  '',
  'price',
  'toString',
  'hasOwnProperty',
  'length',
  '__proto__',
  'constructor',
  '$ref',
  'temper:visit',
  '0',
];
const REFERENCES = [
  '#',
  '#/',
  '#/$defs/a',
  '#/%24defs/a',
  '#/$defs',
  '#/$defs/root',
  '#/properties/a',
  '#/enum/0',
  '#/~2',
  '#/%',
  '#a',
  'x',
];
const VALUES: Json[] = [
  0,
  -1,
  1,
  1.5,
  1e-320,
  1e308,
  2 ** 53,
  '',
  'a',
  'object',
  'uri',
  '^a',
  '(',
  true,
  null,
  [],
  ['a'],
  ['a', 'a'],
  {},
];

const FORMS = new Map([...IN_PLACE, ...TO_MEMBERS, ...TO_ITEMS, ...DEFINITIONS]);

/** Schemas of every keyword, with right, odd and hostile values. */
const { schema } = fc.letrec<{ schema: Json }>((tie) => {
  const inner = fc.oneof({ maxDepth: 3 }, fc.boolean(), tie('schema'));
  const named = fc.dictionary(fc.constantFrom(...NAMES), inner, { maxKeys: 3 });
  const value = fc.constantFrom(...VALUES);
  const entry = fc.oneof(
    fc.tuple(fc.constantFrom(...ASSERTIONS.keys()), value),
    fc.tuple(fc.constantFrom(...FORMS.keys()), fc.oneof(inner, named, fc.array(inner, { maxLength: 3 }), value)),
    fc.tuple(fc.constantFrom(...FORBIDDEN_KEYWORDS, '$id', 'title', 'temper:visit', 'x-note', 'odd'), value),
    fc.tuple(fc.constant('$ref'), fc.constantFrom(...REFERENCES)),
    fc.tuple(fc.constantFrom('enum', 'required'), fc.array(fc.constantFrom(...NAMES), { maxLength: 4 })),
    fc.tuple(fc.constant('$defs'), named),
  );
  return { schema: fc.array(entry, { maxLength: 5 }).map((entries) => Object.fromEntries(entries) as Json) };
});

describe('the schema of a reviewer', () => {
  it('every schema that the validator accepts compiles, checks every value and is shown; every other one is refused', () => {
    let accepted = 0;
    fc.assert(
      fc.property(schema, fc.jsonValue({ maxDepth: 3 }), (given, value) => {
        const refused = validateSchema(given, 'schema').some(({ problem }) => problem !== 'unknown-keyword');
        if (refused) {
          assert.throws(
            () => compileSchema(given as JsonObject),
            (error) => isTemperError(error, 'TEMPER_FORGE_SCHEMA'),
          );
          return;
        }
        accepted += 1;
        assert.ok(Array.isArray(compileSchema(given as JsonObject)(value as Json)));
        normalizeSchema(given, createObfuscator());
      }),
      { numRuns: 400 },
    );
    assert.ok(accepted > 20, `${accepted} schemas were accepted`);
  });
});
