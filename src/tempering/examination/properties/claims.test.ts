import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ParsedArtifact, parseArtifact } from '../../../forge/parse-artifact.ts';
import { anArtifact } from '../../tempering.testing.ts';
import { claimsOf } from './claims.ts';

function claimed(name: string, description: string, inputSchema?: object): string[] {
  const schema = inputSchema === undefined ? {} : { inputSchema: JSON.stringify(inputSchema) };
  return claimsOf(parseArtifact(anArtifact(name, { description, ...schema })) as ParsedArtifact).map(
    ({ claim }) => claim,
  );
}

describe('the claims of a tool', () => {
  const TABLE: [string, string, string[]][] = [
    ['sum_numbers', 'Adds all numbers of a list.', ['sum', 'order-independent']],
    ['sort_list', 'Sorts numbers.', ['sorted', 'idempotent']],
    ['sort_array', 'Sorts ascending if the sum is odd, else descending.', []],
    ['running_sum', 'The running sums of a list.', []],
    ['weighted_mean', 'The mean of values with weights.', []],
    ['min_sub_array_sum', 'The least sum of a sub-array.', []],
    ['median_of_numbers', 'The middle one in ascending order.', ['order-independent']],
    ['unique_values', 'Removes repetitions and keeps the given order.', ['distinct', 'idempotent']],
    ['parse_date', 'Parses a date.', []],
    ['report', 'Counts words in any order.', ['order-independent']],
    ['to_string', 'constructor of a text', []],
  ];
  for (const [name, description, expected] of TABLE) {
    it(`"${name}" (${description}) claims ${expected.join(', ') || 'nothing'}`, () => {
      assert.deepEqual(claimed(name, description), expected);
    });
  }

  it('a member with the values encode and decode claims an inverse', () => {
    const properties = { mode: { enum: ['encode', 'decode'] }, text: { type: 'string' } };
    assert.deepEqual(claimed('codec', 'Converts a text.', { properties, type: 'object' }), ['invertible']);
  });
});
