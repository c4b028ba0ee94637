import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { aCallContext } from '../../test/support/call-context.ts';
import { systemClock } from '../lib/clock.ts';
import { type ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import type { PolicyRequest } from '../policy/types.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { createToolbox } from './toolbox.ts';

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const context = aCallContext({ agent: 'analyst' });

interface ToolboxFixture {
  workspace: string;
  /** A folder beside the workspace that no tool may access. */
  outside: string;
  call: (tool: string, input: Json) => Promise<Json>;
  asked: PolicyRequest[];
}

async function aToolbox(deny: (request: PolicyRequest) => boolean = () => false): Promise<ToolboxFixture> {
  const base = await mkdtemp(join(tmpdir(), 'temper-toolbox-'));
  folders.push(base);
  const workspace = join(base, 'workspace');
  const outside = join(base, 'outside');
  await mkdir(join(workspace, 'data', 'deep'), { recursive: true });
  await mkdir(outside);
  await writeFile(join(outside, 'secret.txt'), 'secret');
  await writeFile(join(workspace, 'data', 'a.csv'), 'x,y\n1,2\n3,4');
  await writeFile(join(workspace, 'data', 'deep', 'b.csv'), 'x\nneedle (a+)+$\n');
  await writeFile(join(workspace, 'data', 'picture'), Buffer.from([0, 1, 2, 0x0a]));
  await symlink(outside, join(workspace, 'way-out'));
  await symlink(join(outside, 'secret.txt'), join(workspace, 'data', 'link.csv'));
  await symlink(join(outside, 'new.txt'), join(workspace, 'dangling'));
  const asked: PolicyRequest[] = [];
  const tools = createToolbox({
    workspace,
    clock: systemClock,
    decide: (_, request) => {
      asked.push(request);
      return { effect: deny(request) ? 'Deny' : 'Allow', rule: 'test', reason: 'denied by the test', risk: 'low' };
    },
  });
  return {
    workspace,
    outside,
    asked,
    async call(name, input) {
      const tool = tools.find((found) => found.descriptor.name === name);
      assert.ok(tool, name);
      const schemas = createSchemaCompiler();
      assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
      const output = await tool.call(input, context);
      assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), [], 'output schema');
      return output;
    },
  };
}

async function refused(work: Promise<unknown>, code: ErrorCode, about = ''): Promise<void> {
  await assert.rejects(work, (error) => isTemperError(error, code), about);
}

describe('file_read', () => {
  it('file_read returns the text with the size of the whole file', async () => {
    const { call } = await aToolbox();
    assert.deepEqual(await call('file_read', { path: 'data/a.csv' }), {
      path: 'data/a.csv',
      text: 'x,y\n1,2\n3,4',
      bytes: 11,
      lines: 3,
    });
  });
  it('file_read returns a range of lines', async () => {
    const { call } = await aToolbox();
    const read = async (range: Record<string, Json>): Promise<unknown> => {
      const answer = await call('file_read', { path: 'data/a.csv', ...range });
      return (answer as { text: string }).text;
    };
    assert.equal(await read({ firstLine: 2, lineCount: 1 }), '1,2\n');
    assert.equal(await read({ firstLine: 3 }), '3,4');
    assert.equal(await read({ firstLine: 9, lineCount: 9 }), '');
  });
  it('file_read refuses a path outside the roots, a folder, a binary file and a missing file', async () => {
    const { call, outside } = await aToolbox();
    for (const path of ['../outside/secret.txt', join(outside, 'secret.txt'), 'way-out/secret.txt', 'data/link.csv']) {
      await refused(call('file_read', { path }), 'TEMPER_FILE_DENIED', path);
    }
    for (const path of ['data', 'data/picture', 'data/none']) {
      await refused(call('file_read', { path }), 'TEMPER_FILE_FAILED', path);
    }
  });
  it('file_read refuses a file above one mebibyte', async () => {
    const { call, workspace } = await aToolbox();
    await writeFile(join(workspace, 'big'), 'x'.repeat(1_048_577));
    await refused(call('file_read', { path: 'big' }), 'TEMPER_FILE_FAILED');
  });
  it('file_read asks the policy first', async () => {
    const { call, asked } = await aToolbox(() => true);
    await refused(call('file_read', { path: 'data/a.csv' }), 'TEMPER_POLICY_DENIED');
    assert.deepEqual(asked, [{ kind: 'File', path: 'data/a.csv', access: 'read' }]);
  });
});

describe('file_list', () => {
  it('file_list returns types, sizes and line counts', async () => {
    const { call } = await aToolbox();
    assert.deepEqual(await call('file_list', { path: 'data' }), {
      path: 'data',
      complete: true,
      entries: [
        { path: 'data/a.csv', type: 'file', bytes: 11, lines: 3 },
        { path: 'data/deep', type: 'folder', bytes: 0 },
        { path: 'data/link.csv', type: 'link', bytes: 0 },
        { path: 'data/picture', type: 'file', bytes: 4 },
      ],
    });
  });
  it('file_list finds files by pattern, at any depth when the pattern has folders', async () => {
    const { call } = await aToolbox();
    const names = async (input: Json): Promise<string[]> => {
      const { entries } = (await call('file_list', input)) as { entries: { path: string }[] };
      return entries.map((entry) => entry.path);
    };
    assert.deepEqual(await names({ glob: '**/*.csv' }), ['data/a.csv', 'data/deep/b.csv']);
    assert.deepEqual(await names({ path: 'data', glob: '*.csv' }), ['data/a.csv']);
    assert.deepEqual(await names({ glob: '*.csv' }), []);
  });
  it('file_list shows mounted files as files and hides the version folders of Kubernetes', async () => {
    const { call, workspace } = await aToolbox();
    const mounted = join(workspace, 'mounted');
    await mkdir(join(mounted, '..2026_11_21'), { recursive: true });
    await writeFile(join(mounted, '..2026_11_21', 'a.csv'), 'x,y\n1,2\n');
    await symlink('..2026_11_21', join(mounted, '..data'));
    await symlink('..data/a.csv', join(mounted, 'a.csv'));
    const { entries } = (await call('file_list', { path: 'mounted', glob: '*.csv' })) as { entries: Json };
    assert.deepEqual(entries, [{ path: 'mounted/a.csv', type: 'file', bytes: 8, lines: 2 }]);
    const all = (await call('file_list', { path: 'mounted' })) as { entries: Json };
    assert.deepEqual(all.entries, entries);
    assert.equal(((await call('file_read', { path: 'mounted/a.csv' })) as { text: string }).text, 'x,y\n1,2\n');
  });
  it('file_list follows no links and stays below the roots', async () => {
    const { call } = await aToolbox();
    const { entries } = (await call('file_list', { glob: '**' })) as { entries: { path: string }[] };
    assert.ok(!entries.some((entry) => entry.path.includes('secret')));
    for (const path of ['..', '../outside', 'way-out'])
      await refused(call('file_list', { path }), 'TEMPER_FILE_DENIED', path);
  });
  it('file_list decides a pattern with a hundred wildcards', async () => {
    const { call, workspace } = await aToolbox();
    const name = 'a'.repeat(200);
    await writeFile(join(workspace, name), '');
    const found = async (glob: string) =>
      ((await call('file_list', { glob })) as { entries: { path: string }[] }).entries.map(({ path }) => path);
    assert.deepEqual(await found('*a'.repeat(100)), [name]);
    assert.deepEqual(await found(`${'*a'.repeat(100)}b`), []);
  });
});

describe('file_write', () => {
  it('file_write creates folders, replaces files and leaves no temporary files', async () => {
    const { call, workspace } = await aToolbox();
    assert.deepEqual(await call('file_write', { path: 'out/new/file.txt', text: 'é' }), {
      path: 'out/new/file.txt',
      bytes: 2,
      created: true,
    });
    assert.deepEqual(await call('file_write', { path: 'out/new/file.txt', text: '' }), {
      path: 'out/new/file.txt',
      bytes: 0,
      created: false,
    });
    assert.deepEqual(await readdir(join(workspace, 'out/new')), ['file.txt']);
  });
  it('file_write never writes outside the workspace, by name or by link', async () => {
    const { call, outside } = await aToolbox();
    const paths = [
      '../outside/x',
      join(outside, 'x'),
      'way-out/x',
      'way-out/deep/er/x',
      'dangling',
      '.',
      'data/..',
      'a\0b',
    ];
    for (const path of paths) await refused(call('file_write', { path, text: 'x' }), 'TEMPER_FILE_DENIED', path);
    assert.deepEqual(await readdir(outside), ['secret.txt']);
    assert.equal(await readFile(join(outside, 'secret.txt'), 'utf8'), 'secret');
  });
  it('file_write replaces regular files only', async () => {
    const { call, workspace } = await aToolbox();
    await refused(call('file_write', { path: 'data', text: 'x' }), 'TEMPER_FILE_DENIED');
    await refused(call('file_write', { path: 'data/link.csv', text: 'x' }), 'TEMPER_FILE_DENIED');
    assert.ok((await lstat(join(workspace, 'data/link.csv'))).isSymbolicLink());
  });
  it('file_write asks the policy first', async () => {
    const { call, asked } = await aToolbox(({ kind }) => kind === 'File');
    await refused(call('file_write', { path: 'x', text: '' }), 'TEMPER_POLICY_DENIED');
    assert.deepEqual(asked, [{ kind: 'File', path: 'x', access: 'write' }]);
  });
});

describe('text_search', () => {
  it('text_search finds an exact text', async () => {
    const { call } = await aToolbox();
    assert.deepEqual(await call('text_search', { text: '(a+)+$' }), {
      matches: [{ path: 'data/deep/b.csv', line: 2, text: 'needle (a+)+$' }],
      complete: true,
    });
    assert.deepEqual(await call('text_search', { text: 'secret' }), { matches: [], complete: true });
    assert.deepEqual(await call('text_search', { text: 'needle', path: 'data', glob: '*.csv' }), {
      matches: [],
      complete: true,
    });
  });
  it('text_search stops after two hundred matches and reports an incomplete result', async () => {
    const { call, workspace } = await aToolbox();
    await writeFile(join(workspace, 'many'), 'hit\n'.repeat(1_000));
    const { matches, complete } = (await call('text_search', { text: 'hit' })) as {
      matches: Json[];
      complete: boolean;
    };
    assert.deepEqual([matches.length, complete], [200, false]);
  });
});

describe('time_now', () => {
  it('time_now returns the same time in both formats', async () => {
    const { call } = await aToolbox();
    const { utc, epochMilliseconds } = (await call('time_now', {})) as { utc: string; epochMilliseconds: number };
    assert.equal(Date.parse(utc), epochMilliseconds);
  });
});
