import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');

interface Page {
  /** Relative to the repository. */
  path: string;
  text: string;
}

async function allPages(): Promise<Page[]> {
  const names = await readdir(join(ROOT, 'docs'), { recursive: true });
  const pages = names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
  const paths = ['README.md', 'CONTRIBUTING.md', ...pages.sort()];
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(ROOT, path), 'utf8') })));
}

const LINK = /\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g;
const REPOSITORY_PATH =
  /(?<![\w/.-])(?:src|test|bench|bin|charts|crds|manifests|sandbox-image|docs)\/(?:[\w.-]+\/)*[\w.-]*\w/g;

/** The anchors that GitHub creates for the headings of a page. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

const PAGES = await allPages();

describe('the documentation', () => {
  it('every relative link resolves to a file and a heading', async () => {
    const broken: string[] = [];
    for (const { path, text } of PAGES) {
      for (const [link, target = '', anchor] of text.matchAll(LINK)) {
        if (/^https?:/.test(target)) continue;
        const file = target === '' ? join(ROOT, path) : join(ROOT, dirname(path), target);
        const exists = existsSync(file);
        const hasAnchor = anchor === undefined || (exists && anchorsOf(await readFile(file, 'utf8')).has(anchor));
        if (!exists || !hasAnchor) broken.push(`${path}: ${link}`);
      }
    }
    assert.deepEqual(broken, []);
  });

  it('every path of the repository on a page exists', () => {
    const missing = PAGES.flatMap(({ path, text }) =>
      [...text.matchAll(REPOSITORY_PATH)]
        .map(([named]) => named)
        .filter((named) => !existsSync(join(ROOT, named)))
        .map((named) => `${path}: ${named}`),
    );
    assert.deepEqual(missing, []);
  });

  it('the source map names every folder of src and of test', () => {
    const map = PAGES.find(({ path }) => path === 'docs/architecture.md')?.text ?? '';
    const rows = map.split('\n').filter((line) => line.startsWith('| `'));
    const folders = ['src', 'test'].flatMap((parent) =>
      readdirSync(join(ROOT, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${parent}/${name}`),
    );
    assert.deepEqual(
      folders.filter((folder) => !rows.some((row) => row.split(' | ')[0]?.includes(`\`${folder}\``))),
      [],
    );
  });

  it('every fenced block of a page is closed', () => {
    const open = PAGES.filter(({ text }) => (text.match(/^ *(?:```|~~~)/gm) ?? []).length % 2 !== 0);
    assert.deepEqual(
      open.map(({ path }) => path),
      [],
    );
  });
});
