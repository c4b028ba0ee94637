import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { ERROR_CODES } from './error-codes.ts';

const SRC = resolve(import.meta.dirname, '..');
const TABLE = join('lib', 'error-codes.ts');

/** Every code that occurs as a literal in `src`, with the file that contains it. */
async function usedCodes(): Promise<Map<string, string>> {
  const used = new Map<string, string>();
  for (const name of await readdir(SRC, { recursive: true })) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts') || name === TABLE) continue;
    const text = await readFile(join(SRC, name), 'utf8');
    for (const [, code = ''] of text.matchAll(/['"`](TEMPER_[A-Z0-9_]*[A-Z0-9])['"`]/g)) used.set(code, name);
  }
  return used;
}

describe('the error codes', () => {
  it('the table has every code that the source uses', async () => {
    const missing = [...(await usedCodes())].filter(([code]) => !Object.hasOwn(ERROR_CODES, code));
    assert.deepEqual(missing, []);
  });

  it('the table has no unused code', async () => {
    const used = await usedCodes();
    const unused = Object.keys(ERROR_CODES).filter((code) => !used.has(code));
    assert.deepEqual(unused, [], `not used in src: ${unused.join(', ')}`);
  });

  it('every code has a meaning and a fix', () => {
    for (const [code, { meaning, fix }] of Object.entries(ERROR_CODES)) {
      assert.match(meaning, /\S.*[.!]$/, code);
      assert.match(fix, /\S.*[.!]$/, code);
    }
  });
});
