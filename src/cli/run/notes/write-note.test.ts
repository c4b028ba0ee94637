import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../../test/system/command.ts';
import { aTerminal } from '../../io.testing.ts';
import { readManifests } from '../run.ts';
import { ignoredFilesNote } from './write-note.ts';

describe('the notes of temper run', () => {
  it('skipped files have one note, with relative paths, in lines as wide as the terminal of standard error', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    await mkdir(join(path, 'schemas'));
    await writeFile(
      join(path, 'kustomization.yaml'),
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n',
    );
    for (const file of ['replay.yaml', 'schemas/agent.json', 'schemas/policy.json'])
      await writeFile(join(path, file), '{"rules": []}');
    const io = { ...aTerminal(), cwd: path, errorColumns: () => 40 };
    await readManifests({ filename: ['.'] }, io);
    const [first, ...lines] = io.errors().trimEnd().split('\n');
    assert.equal(first, 'note: 3 files skipped, because they have');
    assert.equal(
      ['', ...lines.map((line) => line.trim())].join(' '),
      ' no apiVersion and kind: replay.yaml, schemas/agent.json, schemas/policy.json',
    );
    assert.ok(lines.every((line) => line.startsWith('  ') && line.length <= 40));
    const pipe = { ...aTerminal(), cwd: path };
    await readManifests({ filename: ['.'] }, pipe);
    assert.equal(pipe.errors().split('\n').length, 2, 'one line in a pipe');
  });

  it('a note names at most ten files and counts the others', () => {
    const files = Array.from({ length: 12 }, (_, index) => `/a/${index}.yaml`);
    assert.match(ignoredFilesNote(files, '/a') ?? '', /^12 files skipped.*: 0\.yaml, .*9\.yaml, and 2 more$/);
    assert.match(ignoredFilesNote(['/b/x.yaml'], '/a') ?? '', /^1 file skipped, because it has .*: \.\.\/b\/x\.yaml$/);
    assert.equal(ignoredFilesNote([], '/a'), undefined);
  });
});
