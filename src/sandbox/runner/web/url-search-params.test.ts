import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { GuestSearchParams } from './url-search-params.ts';

describe('URLSearchParams of the guest', () => {
  it('URLSearchParams parses and writes any text like Node', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '=', '&', '+', '%', '2', 'B', '?', ' ', '*', '~', "'"),
    });
    fc.assert(
      fc.property(text, (input) => {
        const [actual, expected] = [new GuestSearchParams(input), new URLSearchParams(input)];
        assert.deepEqual([...actual], [...expected]);
        assert.equal(actual.toString(), expected.toString());
      }),
      { numRuns: 2_000 },
    );
  });

  it('URLSearchParams decodes escapes and text beyond ASCII as UTF-8', () => {
    const params = new GuestSearchParams('é=%C3%A9&x=%aaé&y=\ud83d&z=%F0%9F%98%80');
    assert.deepEqual([...params.values()], ['é', '\ufffdé', '\ufffd', '😀']);
    assert.equal(params.toString(), '%C3%A9=%C3%A9&x=%EF%BF%BD%C3%A9&y=%EF%BF%BD&z=%F0%9F%98%80');
  });

  it('the methods of URLSearchParams do what those of Node do', () => {
    const run = (Kind: typeof GuestSearchParams | typeof URLSearchParams): unknown[] => {
      const params = new Kind([
        ['b', '2'],
        ['a', '1'],
        ['b', '3'],
        ['c', '4'],
      ] as never);
      const seen: unknown[] = [
        params.get('b'),
        params.get('x'),
        params.getAll('b'),
        params.has('b', '3'),
        params.has('b', '9'),
        params.size,
      ];
      params.set('b', 'new');
      params.set('d', 'last');
      params.delete('c', '9');
      params.sort();
      params.forEach((value: string, name: string) => seen.push(name, value));
      seen.push(params.toString(), [...params.keys()], [...params.values()], [...params.entries()]);
      const copies = [new Kind(params as never), new Kind({ x: 1, y: null } as never), new Kind(), new Kind('?a')];
      return [...seen, ...copies.map(String)];
    };
    assert.deepEqual(run(GuestSearchParams), run(URLSearchParams));
    assert.throws(() => new GuestSearchParams([['a']]), TypeError);
  });
});
