import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { RULES } from './findings.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/reference/manifests.md'), 'utf8');

/** The names in the first column of the tables whose first heading is `rule`. */
function rulesOfPage(): string[] {
  const tables = PAGE.split('\n\n').filter((block) => block.startsWith('| rule |'));
  const rows = tables.flatMap((table) => table.split('\n').slice(2));
  return rows.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

function sources(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => /(?<!\.test|\.testing)\.ts$/.test(name) && name !== 'findings.ts');
  return files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
}

describe('the rules of manifests', () => {
  it('the reference page describes exactly the rules that temper validate prints', () => {
    assert.deepEqual([...new Set(rulesOfPage())].sort(), [...RULES].sort());
  });

  it('a check of the manifests gives each rule', () => {
    const text = sources(import.meta.dirname);
    assert.deepEqual(
      RULES.filter((rule) => !text.includes(`'${rule}'`)),
      [],
    );
  });

  it('the reference page names the rules of what was not checked', () => {
    const text = sources(join(ROOT, 'src/cli/manifests'));
    const notes = [...text.matchAll(/rule: '([\w-]+)'/g)].map(([, rule = '']) => rule);
    assert.ok(notes.length >= 3);
    assert.deepEqual(
      notes.filter((rule) => !PAGE.includes(`\`${rule}\``)),
      [],
    );
  });
});
