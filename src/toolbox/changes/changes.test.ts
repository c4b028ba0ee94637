import assert from 'node:assert/strict';
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import * as fc from 'fast-check';
import { aCallContext } from '../../../test/support/call-context.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { createFileTools } from '../toolbox.ts';
import { applyEdits, type Edit } from './apply-edits.ts';
import { unifiedDiff } from './unified-diff.ts';

const MAX = 100_000;

function edited(text: string, ...edits: Edit[]): string {
  const result = applyEdits(text, edits, MAX);
  return 'text' in result ? result.text : `problem: ${result.problem}`;
}

const texts = fc.array(fc.constantFrom('a', 'ab', '\n', ' '), { maxLength: 12 }).map((parts) => parts.join(''));

describe('edits of a text', () => {
  it('an edit by text is the replacement of the one occurrence, or of all', () => {
    fc.assert(
      fc.property(texts, texts, texts, fc.boolean(), (text, oldText, newText, all) => {
        const result = applyEdits(text, [{ oldText, newText, all }], MAX);
        const occurrences = oldText === '' ? 0 : text.split(oldText).length - 1;
        if (occurrences === 0 || (occurrences > 1 && !all)) return assert.ok('problem' in result);
        assert.deepEqual(result, { text: text.split(oldText).join(newText), replaced: occurrences });
      }),
      { seed: 1, numRuns: 2_000 },
    );
  });

  it('an edit by lines is a splice of the lines', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', ''), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(lines, fc.nat(7), fc.nat(4), lines, (before, first, count, fresh) => {
        const text = before.map((line) => `${line}\n`).join('');
        const expectedText = before
          .slice(first, first + count)
          .map((line) => `${line}\n`)
          .join('');
        const newText = fresh.map((line) => `${line}\n`).join('');
        const result = applyEdits(text, [{ firstLine: first + 1, lineCount: count, expectedText, newText }], MAX);
        if (first > before.length || first + count > before.length) return assert.ok('problem' in result);
        const expected = before
          .toSpliced(first, count, ...fresh)
          .map((line) => `${line}\n`)
          .join('');
        assert.deepEqual(result, { text: expected, replaced: 1 });
      }),
      { seed: 1, numRuns: 2_000 },
    );
  });

  it('edits see the text that the one before them left, and one that fails undoes all', () => {
    assert.equal(edited('a b', { oldText: 'a', newText: 'b' }, { oldText: 'b b', newText: 'c' }), 'c');
    assert.match(edited('a b', { oldText: 'a', newText: 'c' }, { oldText: 'a', newText: 'd' }), /^problem: edits\[1\]/);
  });

  it('a problem names the number of occurrences and their lines', () => {
    assert.match(edited('x\ny\nx\nx', { oldText: 'x', newText: '' }), /occurs 3 times, at lines 1, 3, 4;/);
    assert.match(edited('x\n'.repeat(20), { oldText: 'x', newText: '' }), /occurs 20 times, at lines 1, .*10, …;/);
    assert.match(
      edited('  if (a) {\n', { oldText: '    if (a) {', newText: '' }),
      /line 1 differs from it in blanks only/,
    );
    assert.match(edited('a\nb\n', { firstLine: 2, lineCount: 1, expectedText: 'c', newText: '' }), /they are: b\\n/);
    assert.match(edited('a\n', { firstLine: 2, lineCount: 1, expectedText: '', newText: '' }), /has 1 lines, not 2/);
    assert.match(edited('aa', { oldText: 'a', newText: 'x'.repeat(MAX), all: true }), /more than 100000 characters/);
  });

  it('line ends stay as they are in the file', () => {
    assert.equal(edited('a\r\nb\r\n', { oldText: 'a\nb', newText: 'c\nd' }), 'c\r\nd\r\n');
    const line = { firstLine: 1, lineCount: 1, expectedText: 'a', newText: 'x\ny' };
    assert.equal(edited('a\r\nb\r\n', line), 'x\r\ny\r\nb\r\n');
    assert.equal(
      edited('a\r\nb\n', { oldText: '\r\n', newText: '\n' }),
      'a\nb\n',
      'a file of both kinds is left alone',
    );
    assert.equal(edited('a', { firstLine: 2, lineCount: 0, expectedText: '', newText: 'b' }), 'a\nb');
  });

  it('the difference of the texts leads from one to the other', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        const { diff, cut } = unifiedDiff(before, after, MAX);
        const lines = diff.split('\n');
        assert.equal(cut, false);
        const count = (mark: string): number => lines.filter((line) => line.startsWith(mark)).length;
        const growth = after.split('\n').length - before.split('\n').length;
        assert.equal(count('+') - count('-'), growth);
        assert.equal(diff === '', before === after);
      }),
      { seed: 1 },
    );
    const { diff } = unifiedDiff('a\nb\nc\nd\ne\nf\n', 'a\nb\nc\nD\ne\nf\n', MAX);
    assert.equal(diff, '@@ -2,5 +2,5 @@\n b\n c\n-d\n+D\n e\n f\n');
    assert.deepEqual(unifiedDiff('a', 'b\u001b[2J', 20), { diff: '@@ -1,1 +1,1 @@\n-a\n', cut: true });
  });
});

const context = aCallContext();

describe('tools that change files', () => {
  const folders: string[] = [];
  after(async () => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  });

  async function aWorkspace(deny: (request: PolicyRequest) => boolean = () => false) {
    const base = await mkdtemp(join(tmpdir(), 'temper-changes-'));
    folders.push(base);
    const [workspace, outside] = [join(base, 'workspace'), join(base, 'outside')];
    await mkdir(join(workspace, 'data', 'deep'), { recursive: true });
    await mkdir(join(workspace, 'state', 'inner'), { recursive: true });
    await mkdir(outside);
    await writeFile(join(outside, 'secret.txt'), 'secret');
    await writeFile(join(workspace, 'data', 'a.txt'), 'one\ntwo\nthree\n');
    await symlink(outside, join(workspace, 'way-out'));
    await symlink(join(outside, 'secret.txt'), join(workspace, 'data', 'link'));
    const tools = createFileTools({
      workspace,
      protectedFolders: [join(workspace, 'state', 'inner')],
      clock: systemClock,
      decide: (_, request) => ({ effect: deny(request) ? 'Deny' : 'Allow', rule: 'r', reason: 'denied', risk: 'low' }),
    });
    const call = async (name: 'file_edit' | 'file_delete' | 'file_write', input: Json): Promise<Json> => {
      const tool = tools[name];
      const schemas = createSchemaCompiler();
      assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
      const output = await tool.call(input, context);
      assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), []);
      return output;
    };
    return { workspace, outside, call };
  }
  const refused = (work: Promise<unknown>, code: Parameters<typeof isTemperError>[1], message = /./): Promise<void> =>
    assert.rejects(work, (error: Error) => isTemperError(error, code) && message.test(error.message));

  it('file_edit changes the file as a whole, keeps its mode and answers with the difference', async () => {
    const { call, workspace } = await aWorkspace();
    const path = join(workspace, 'data', 'a.txt');
    await chmod(path, 0o755);
    const edits = [
      { oldText: 'two', newText: 'TWO' },
      { firstLine: 3, expectedText: 'three', newText: '3' },
    ];
    assert.deepEqual(await call('file_edit', { path: 'data/a.txt', edits }), {
      path: 'data/a.txt',
      bytes: 10,
      replaced: 2,
      diff: '@@ -1,4 +1,4 @@\n one\n-two\n-three\n+TWO\n+3\n \n',
    });
    assert.equal(await readFile(path, 'utf8'), 'one\nTWO\n3\n');
    assert.equal((await lstat(path)).mode & 0o777, 0o755);
    const half = [
      { oldText: 'one', newText: '1' },
      { oldText: 'none', newText: '' },
    ];
    await refused(call('file_edit', { path: 'data/a.txt', edits: half }), 'TEMPER_FILE_FAILED', /edits\[1\]/);
    assert.equal(await readFile(path, 'utf8'), 'one\nTWO\n3\n');
    assert.deepEqual(await readdir(join(workspace, 'data')), ['a.txt', 'deep', 'link']);
  });

  it('edits of one file at the same time all stay', async () => {
    const { call, workspace } = await aWorkspace();
    const names = Array.from({ length: 20 }, (_, index) => `<${index}>`);
    await writeFile(join(workspace, 'list'), names.join(''));
    const edit = (name: string) => call('file_edit', { path: 'list', edits: [{ oldText: name, newText: `${name}!` }] });
    await Promise.all(names.map(edit));
    assert.equal(await readFile(join(workspace, 'list'), 'utf8'), names.map((name) => `${name}!`).join(''));
  });

  it('file_edit refuses links, folders, other folders, binary files and incomplete edits', async () => {
    const { call, workspace, outside } = await aWorkspace();
    await writeFile(join(workspace, 'binary'), Buffer.from([0x61, 0xff]));
    const edits = [{ oldText: 'secret', newText: 'x' }];
    for (const path of [
      'data/link',
      'way-out/secret.txt',
      '../outside/secret.txt',
      'state/inner',
      'data',
      '.',
      'a\0b',
    ]) {
      await refused(call('file_edit', { path, edits }), 'TEMPER_FILE_DENIED');
    }
    for (const path of ['none', 'no/folder', 'binary'])
      await refused(call('file_edit', { path, edits }), 'TEMPER_FILE_FAILED');
    for (const edit of [{ newText: '' }, { oldText: 'a', firstLine: 1, newText: '' }, { firstLine: 1, newText: '' }]) {
      await refused(call('file_edit', { path: 'data/a.txt', edits: [edit] }), 'TEMPER_TOOL_INPUT_INVALID');
    }
    assert.equal(await readFile(join(outside, 'secret.txt'), 'utf8'), 'secret');
  });

  it('file_edit and file_delete ask the policy first, and file_edit may also read', async () => {
    const edits = [{ oldText: 'one', newText: '1' }];
    for (const access of ['read', 'write'] as const) {
      const { call } = await aWorkspace((request) => request.kind === 'File' && request.access === access);
      await refused(call('file_edit', { path: 'data/a.txt', edits }), 'TEMPER_POLICY_DENIED');
    }
    const { call } = await aWorkspace((request) => request.kind === 'File' && request.access === 'write');
    await refused(call('file_delete', { path: 'data/a.txt' }), 'TEMPER_POLICY_DENIED');
  });

  it('no file tool changes the files of Git itself', async () => {
    const { call, workspace } = await aWorkspace();
    await mkdir(join(workspace, '.git'));
    await writeFile(join(workspace, '.git', 'config'), '[core]\n');
    await symlink('.git', join(workspace, 'other'));
    const edits = [{ oldText: 'core', newText: 'alias' }];
    for (const path of ['.git/config', 'other/config']) {
      await refused(call('file_edit', { path, edits }), 'TEMPER_FILE_DENIED', /Git itself/);
      await refused(call('file_delete', { path }), 'TEMPER_FILE_DENIED', /Git itself/);
      await refused(call('file_write', { path, text: '' }), 'TEMPER_FILE_DENIED', /Git itself/);
    }
    await refused(call('file_delete', { path: '.git', recursive: true }), 'TEMPER_FILE_DENIED', /Git itself/);
    await refused(call('file_write', { path: 'sub/.GIT/hooks/x', text: '' }), 'TEMPER_FILE_DENIED', /Git itself/);
    assert.equal(await readFile(join(workspace, '.git', 'config'), 'utf8'), '[core]\n');
  });

  it('file_delete deletes files, links themselves and empty folders', async () => {
    const { call, workspace, outside } = await aWorkspace();
    for (const path of ['data/a.txt', 'data/link', 'way-out', 'data/deep', 'data']) {
      assert.deepEqual(await call('file_delete', { path }), { path, entries: 1, deleted: true });
    }
    assert.deepEqual(await readdir(workspace), ['state']);
    assert.deepEqual(await readdir(outside), ['secret.txt']);
  });

  it('file_delete deletes a folder with content only when asked, within its limit, and counts without deleting', async () => {
    const { call, workspace } = await aWorkspace();
    await refused(call('file_delete', { path: 'data' }), 'TEMPER_FILE_FAILED', /set recursive/);
    const all = { path: 'data', recursive: true };
    assert.deepEqual(await call('file_delete', { ...all, dryRun: true }), { path: 'data', entries: 4, deleted: false });
    await refused(call('file_delete', { ...all, limit: 3 }), 'TEMPER_FILE_FAILED', /more than 3 entries/);
    assert.deepEqual((await readdir(join(workspace, 'data'))).length, 3);
    assert.deepEqual(await call('file_delete', all), { path: 'data', entries: 4, deleted: true });
  });

  it('file_delete never deletes outside the workspace, the workspace itself or protected folders', async () => {
    const { call, outside } = await aWorkspace();
    const paths = ['.', '..', '../outside', 'way-out/secret.txt', 'state/inner', 'state'];
    for (const path of paths) await refused(call('file_delete', { path, recursive: true }), 'TEMPER_FILE_DENIED');
    await refused(call('file_delete', { path: 'none' }), 'TEMPER_FILE_FAILED', /does not exist/);
    assert.deepEqual(await readdir(outside), ['secret.txt']);
  });
});
