import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
/** The literal names of tests; a name may contain `${…}`, but not start with it. */
const TEST_NAME = /^ *it(?:\.\w+)?\(\s*(?:'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`)/gm;
/** Third-person verbs and connectives that cannot start a sentence with a subject of its own. */
const STARTS_WITHOUT_SUBJECT =
  /^(?:is|are|was|has|have|does|do|can|may|must|never|that|of|accepts|adds|allows|announces|asks|breaks|changes|charges|checks|computes|contains?|counts|creates?|deletes|decides?|denies|disappears|drops|emits|ends|escapes|expands?|fails|finds|follows?|handles|holds|ignores|keeps?|leaves|limits?|lists|makes|match|parses|passes|prefers?|prints|reads|refuses|rejects|releases|removes|requeues|requires|resolves|restores|returns|rotates|runs|sends|shows|skips|starts?|states|stays?|stops|stores|throws|turns|validates|verifies|works|writes)(?= )/;

interface TestName {
  place: string;
  name: string;
}

async function testNames(folder: string): Promise<TestName[]> {
  const entries = await readdir(join(ROOT, folder), { recursive: true });
  const files = entries.filter((name) => name.endsWith('.ts')).map((name) => join(folder, name));
  const names = await Promise.all(
    files.map(async (file) =>
      [...(await readFile(join(ROOT, file), 'utf8')).matchAll(TEST_NAME)].map(([, plain, template]) => ({
        place: file,
        name: plain ?? template ?? '',
      })),
    ),
  );
  return names.flat();
}

describe('the names of tests', () => {
  it('every test name is a sentence with its own subject', async () => {
    const names = [...(await testNames('src')), ...(await testNames('test'))];
    assert.ok(names.length > 1_500, `the search found only ${names.length} tests`);
    const wrong = names.filter(({ name }) => STARTS_WITHOUT_SUBJECT.test(name));
    assert.deepEqual(
      wrong.map(({ place, name }) => `${place}: ${name}`),
      [],
    );
  });
});
