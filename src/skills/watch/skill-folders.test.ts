import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManifestLoader } from '../../api/manifests.ts';
import type { Json } from '../../lib/json.ts';
import { poll } from '../../../test/support/poll.ts';
import { SkillFolders } from './skill-folders.ts';

const manifests = createManifestLoader();
const check = (object: Json) => manifests.validate(object);
const text = (name: string, body: string): string => `---\nname: ${name}\ndescription: d\n---\n${body}`;

describe('folders of skills that their user edits', () => {
  let root: string;
  let problems: string[];
  let folders: SkillFolders;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-watch-'));
    problems = [];
    await write('notes', text('notes', 'first'));
    folders = new SkillFolders({
      check,
      reserved: new Set(),
      roots: [root],
      onProblem: (problem) => problems.push(problem),
    });
    await folders.open();
  });
  afterEach(async () => {
    folders[Symbol.dispose]();
    await rm(root, { recursive: true, force: true });
  });

  async function write(folder: string, content: string, file = 'SKILL.md'): Promise<void> {
    await mkdir(join(root, folder), { recursive: true });
    await writeFile(join(root, folder, file), content);
  }

  const contents = (): string[] =>
    folders.capabilities().map(({ metadata, spec }) => `${metadata.name}: ${spec.content}`);

  it('a change is used when the files stayed the same between two looks', async () => {
    const before = folders.capabilities();
    await write('notes', text('notes', 'second'));
    await folders.look();
    assert.deepEqual([contents(), folders.capabilities() === before], [['notes: first'], true]);
    await write('notes', text('notes', 'third'));
    await folders.look();
    assert.deepEqual(contents(), ['notes: first']);
    await folders.look();
    assert.deepEqual(contents(), ['notes: third']);
  });

  it('a half-written version is reported once, and the version before stays until the next good one', async () => {
    await write('notes', '---\nname: notes\ndesc');
    for (let time = 0; time < 4; time += 1) await folders.look();
    assert.deepEqual(contents(), ['notes: first']);
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.match(problems[0] ?? '', /^error: .*SKILL.md: the front matter has no end/);
    await write('notes', text('notes', 'second'));
    for (let time = 0; time < 2; time += 1) await folders.look();
    assert.deepEqual(contents(), ['notes: second']);
  });

  it('a new folder appears, and a removed one disappears', async () => {
    await write('more', text('more', 'x'));
    for (let time = 0; time < 2; time += 1) await folders.look();
    assert.deepEqual(contents(), ['notes: first', 'more: x']);
    await rm(join(root, 'notes'), { recursive: true });
    await folders.look();
    assert.deepEqual(contents(), ['more: x']);
  });

  it('the first of two folders with one name is used, and the other one is named', async () => {
    await write('zebra', text('notes', 'other'));
    for (let time = 0; time < 2; time += 1) await folders.look();
    assert.deepEqual(contents(), ['notes: first']);
    assert.match(problems.join('\n'), /zebra: another folder has a capability notes/);
  });

  it('a folder that vanished is reported once, and what was read of it stays', async () => {
    await rm(root, { recursive: true });
    for (let time = 0; time < 3; time += 1) await folders.look();
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.deepEqual(contents(), ['notes: first']);
  });

  it('the folders are looked at while the process runs', async () => {
    folders.start();
    await write('notes', text('notes', 'second'));
    await poll('the new version', () => contents()[0] === 'notes: second');
  });
});
