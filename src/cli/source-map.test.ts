import assert from 'node:assert/strict';
import { SourceMap } from 'node:module';
import { describe, it } from 'node:test';
import { transform } from 'esbuild';
import { originalPositions } from './source-map.ts';

const SOURCE = `interface Row { name: string }

export function first(rows: Row[]): string {
  const [row] = rows;
  if (row === undefined) throw new Error('no rows');
  return row.name;
}
export const all = (rows: Row[]) => rows.map((row) => first([row]));
`;

describe('originalPositions', () => {
  it('originalPositions finds the same source position as Node for every place of a generated file', async () => {
    const { code, map } = await transform(SOURCE, {
      loader: 'ts',
      sourcemap: true,
      sourcefile: 'rows.ts',
      minify: true,
    });
    const reference = new SourceMap(JSON.parse(map));
    const places = code
      .split('\n')
      .flatMap((text, line) =>
        Array.from({ length: text.length }, (_, column) => ({ line: line + 1, column: column + 1 })),
      );
    const found = originalPositions(map, places);
    for (const [index, { line, column }] of places.entries()) {
      const entry = reference.findEntry(line - 1, column - 1);
      const expected =
        'originalSource' in entry ? `rows.ts:${entry.originalLine + 1}:${entry.originalColumn + 1}` : undefined;
      assert.equal(found[index], expected, `${line}:${column}`);
    }
    assert.ok(new Set(found).size > 10);
  });

  it('originalPositions finds nothing for places outside of the generated file', async () => {
    const { map } = await transform(SOURCE, { loader: 'ts', sourcemap: true, sourcefile: 'rows.ts' });
    assert.deepEqual(
      originalPositions(map, [
        { line: 0, column: 0 },
        { line: 900, column: 1 },
      ]),
      [undefined, undefined],
    );
  });

  it('originalPositions throws for a text that is not JSON', () => {
    assert.throws(() => originalPositions('no map', [{ line: 1, column: 1 }]), SyntaxError);
  });
});
