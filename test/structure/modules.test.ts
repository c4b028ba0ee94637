import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../../src');
const MAX_FILES = 12;
const TEST_SUPPORT = /\.(?:test|testing)\.ts$/;
const EXPORTED_TYPE = /^export (?:declare |abstract )*(?:interface|type|class|enum|const enum) (\w+)/gm;

async function filesPerFolder(): Promise<Map<string, number>> {
  const entries = await readdir(SRC, { recursive: true, withFileTypes: true });
  const counts = new Map<string, number>();
  for (const entry of entries) {
    if (!entry.isFile() || TEST_SUPPORT.test(entry.name)) continue;
    const folder = relative(SRC, entry.parentPath);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return counts;
}

describe('the folders of src', () => {
  it(`no folder has more than ${MAX_FILES} source files besides tests`, async () => {
    const counts = await filesPerFolder();
    assert.ok(counts.size > 40, `the search found only ${counts.size} folders`);
    const crowded = [...counts].filter(([, files]) => files > MAX_FILES);
    assert.deepEqual(crowded, []);
  });
});

describe('test support in src', () => {
  it('no source file besides tests imports test support', async () => {
    const names = (await readdir(SRC, { recursive: true })).filter((name) => name.endsWith('.ts'));
    assert.ok(names.some((name) => name.endsWith('.testing.ts')));
    const wrong: string[] = [];
    for (const name of names.filter((file) => !TEST_SUPPORT.test(file))) {
      const text = await readFile(join(SRC, name), 'utf8');
      if (/from '(?:[^']*\.(?:test|testing)\.ts|[^']*\/test\/[^']*)'/.test(text)) wrong.push(name);
    }
    assert.deepEqual(wrong, []);
  });
});

describe('the exported types of src', () => {
  it('no two exported types share a name', async () => {
    const names = (await readdir(SRC, { recursive: true })).filter((name) => name.endsWith('.ts'));
    const places = new Map<string, string[]>();
    for (const file of names.filter((name) => !TEST_SUPPORT.test(name))) {
      for (const [, type = ''] of (await readFile(join(SRC, file), 'utf8')).matchAll(EXPORTED_TYPE)) {
        places.set(type, [...(places.get(type) ?? []), file]);
      }
    }
    assert.ok(places.size > 500, `the search found only ${places.size} types`);
    assert.deepEqual(
      [...places].filter(([, files]) => files.length > 1),
      [],
    );
  });
});
