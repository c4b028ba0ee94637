import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
const PLACES = ['src', 'test', 'bench', 'bin', 'charts', 'crds', 'docs', 'manifests', 'sandbox-image'];
const FILES = ['Makefile', 'Containerfile', 'README.md', 'CONTRIBUTING.md', 'package.json'];
/** This list itself, and data that comes from other projects or imitates them. */
const EXEMPT_PATHS = ['test/structure/words.test.ts', 'test/fixtures/'];
/** Names that other systems define, and texts of examples. */
const FOREIGN = [/nobody:x:65534:65534:nobody:/g, /open[ _]?world/gi, /hello,?[ -]world/gi];

/** Words that hide which component or user acts, or for which Kubernetes, NATS, HTTP or Node has a standard term. */
const PRIVATE_WORDS = [
  'anew',
  'anybody',
  'asleep',
  'ballast',
  'begun',
  'burial|bury|buried',
  'complaints?',
  'doors?',
  'everybody',
  'farewell',
  'flaws?',
  'for ever',
  'for good',
  'giveaways?',
  'houses?',
  'news',
  'nobody',
  'patience',
  'people',
  'purse|wallet',
  'rivals?',
  'rooms?',
  'scenes?',
  'somebody',
  'strangers?',
  'stray',
  'swollen',
  'tells|told',
  'veil',
  'whoever',
  'workshop',
  'worlds?',
];
const PRIVATE = new RegExp(`\\b(?:${PRIVATE_WORDS.join('|')})\\b`, 'i');

/** The first private word of a line, also as a part of an identifier in camel case, snake case or upper case. */
function privateWordOf(line: string): string | undefined {
  const text = FOREIGN.reduce((rest, name) => rest.replaceAll(name, ''), line);
  const words = text
    .replaceAll('_', ' ')
    .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2');
  return PRIVATE.exec(words)?.[0];
}

async function filesBelow(place: string): Promise<string[]> {
  const entries = await readdir(join(ROOT, place), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));
}

describe('the words of code and documentation', () => {
  it('no file contains a word that hides its actor or its standard term', async () => {
    const files = [...FILES, ...(await Promise.all(PLACES.map(filesBelow))).flat()];
    assert.ok(files.length > 1_000, `the search found only ${files.length} files`);
    const found: string[] = [];
    for (const file of files.filter((path) => !EXEMPT_PATHS.some((exempt) => path.startsWith(exempt)))) {
      const inName = privateWordOf(file.replaceAll(/[-./]/g, ' '));
      if (inName !== undefined) found.push(`${file}: ${inName} in the name`);
      const lines = (await readFile(join(ROOT, file), 'utf8')).split('\n');
      for (const [index, line] of lines.entries()) {
        const word = privateWordOf(line);
        if (word !== undefined) found.push(`${file}:${index + 1}: ${word}`);
      }
    }
    assert.deepEqual(found, []);
  });

  it('the search finds private words in identifiers, and not inside other words', () => {
    for (const text of ['the Door', 'openDoors()', 'MAX_PURSE', 'HTTPDoor', 'a `told` value']) {
      assert.notEqual(privateWordOf(text), undefined, text);
    }
    for (const text of ['renewsLease', 'broom', 'peopleapi', 'newsletter', 'outdoors']) {
      assert.equal(privateWordOf(text), undefined, text);
    }
  });
});
