import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { aCallContext } from '../support/call-context.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import type { Json } from '../../src/lib/json.ts';
import { createProgramRunner } from '../../src/sandbox/terminal/program-runner.ts';
import { gitTools } from '../../src/toolbox/git/git-tools.ts';
import { createLocalTerminal } from '../../src/toolbox/terminal/local-terminal.ts';
import { createSchemaCompiler } from '../../src/tools/json-schema/compiler.ts';
import { buildLauncher } from '../support/launcher.ts';

const exec = promisify(execFile);
const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');

const context = aCallContext();

describe('git tools', { skip: CAN ? false : 'needs Linux on x86_64 or aarch64', timeout: 300_000 }, () => {
  let base: string;
  let workspace: string;
  let marker: string;
  let launcher: string;
  before(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'temper-git-tools-')));
    launcher = await buildLauncher(base);
  });
  after(() => rm(base, { recursive: true, force: true }));

  const git = async (...args: string[]): Promise<string> => {
    const environment = { PATH: process.env['PATH'] ?? '', HOME: base, GIT_CONFIG_NOSYSTEM: '1' };
    const options = ['-c', 'user.name=user', '-c', 'user.email=user@example.com', '-C', workspace];
    return (await exec('git', [...options, ...args], { env: environment })).stdout;
  };
  /** A repository with one commit, in a folder of its own. */
  const aRepository = async (): Promise<void> => {
    workspace = await mkdtemp(join(base, 'repository-'));
    marker = join(workspace, 'marker');
    await git('init', '--quiet', '--initial-branch=main');
    await writeFile(join(workspace, 'a.txt'), 'one\n');
    await git('add', '.');
    await git('commit', '--quiet', '--message=first');
  };
  const call = async (name: string, input: Json = {}): Promise<string> => {
    const runner = createProgramRunner({ clock: systemClock, launcher });
    const terminal = createLocalTerminal({ runner, workspace, environment: {} });
    const tool = gitTools(terminal).find(({ descriptor }) => descriptor.name === name);
    assert.ok(tool, name);
    const schemas = createSchemaCompiler();
    assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
    const output = await tool.call(input, context);
    assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), []);
    return (output as { text: string }).text;
  };
  const fails = (name: string, input: Json, code: Parameters<typeof isTemperError>[1], message = /./): Promise<void> =>
    assert.rejects(call(name, input), (error: Error) => {
      assert.ok(isTemperError(error, code) && message.test(error.message), String(error));
      return true;
    });

  it('an agent sees its changes, commits them under its name, and reads the history', async () => {
    await aRepository();
    await writeFile(join(workspace, 'a.txt'), 'two\n');
    await writeFile(join(workspace, 'new file'), 'new\n');
    assert.equal(await call('git_status'), '## main\n M a.txt\n?? "new file"\n');
    assert.match(await call('git_diff', { path: 'a.txt' }), /-one\n\+two\n/);
    assert.match(
      await call('git_commit', { message: 'fix: see https://example.com', paths: ['a.txt'] }),
      /^[0-9a-f]{40} fix: see/,
    );
    assert.equal(await call('git_status'), '## main\n?? "new file"\n');
    await call('git_commit', { message: 'all', all: true });
    assert.match(
      await git('log', '--format=%an <%ae>|%cn|%s'),
      /^coder <coder@team-a.invalid>\|coder\|all\n.*\n.*user/,
    );
    assert.match(await call('git_log', { count: 2 }), /^\w+ \S+ coder: all\n\w+ \S+ coder: fix: .*\n$/);
    assert.equal(await call('git_show', { revision: 'HEAD~2', path: 'a.txt' }), 'one\n');
    assert.match(await call('git_show'), /new file[\s\S]*\+new/);
    assert.match(await call('git_diff', { from: 'HEAD~2', to: 'HEAD', stat: true }), /a\.txt.*[\s\S]*new file/);
    assert.match(await call('git_branch', { name: 'topic', from: 'HEAD~2' }), /\* main \w+\ntopic \w+/);
    assert.match(await call('git_branch', { name: 'topic', switch: true }), /main \w+\n\* topic \w+/);
    assert.equal(await readFile(join(workspace, 'a.txt'), 'utf8'), 'one\n');
  });

  it('options in the place of names, other repositories and empty commits are refused', async () => {
    await aRepository();
    for (const revision of ['--output=x', '-p', 'a..b', 'a b', '$(id)', '@{-1}x y']) {
      await fails('git_show', { revision }, 'TEMPER_TOOL_INPUT_INVALID');
      await fails('git_log', { revision }, 'TEMPER_TOOL_INPUT_INVALID');
      await fails('git_branch', { name: revision }, 'TEMPER_TOOL_INPUT_INVALID');
    }
    await fails('git_log', { path: '../outside' }, 'TEMPER_TOOL_FAILED', /outside repository/);
    await fails('git_status', { repository: '..' }, 'TEMPER_FILE_DENIED');
    await fails('git_commit', { message: 'nothing' }, 'TEMPER_TOOL_FAILED', /nothing to commit/);
    await mkdir(join(workspace, 'inner'));
    workspace = join(workspace, 'inner');
    await fails('git_status', {}, 'TEMPER_TOOL_FAILED', /not a git repository/);
  });

  it('a hostile repository starts no program', async () => {
    await aRepository();
    const evil = join(workspace, 'evil.sh');
    await writeFile(evil, `#!/bin/sh\necho ran >> ${marker}\n`, { mode: 0o755 });
    await writeFile(join(workspace, '.gitattributes'), '* filter=evil diff=evil merge=evil\n');
    const settings = {
      'core.fsmonitor': evil,
      'core.hooksPath': workspace,
      'core.pager': evil,
      'core.editor': evil,
      'core.sshCommand': evil,
      'core.alternateRefsCommand': evil,
      'pager.log': evil,
      'pager.status': evil,
      'diff.external': evil,
      'diff.evil.command': evil,
      'diff.evil.textconv': evil,
      'diff.evil.cachetextconv': 'true',
      'filter.evil.clean': evil,
      'filter.evil.smudge': evil,
      'filter.evil.process': evil,
      'merge.evil.driver': evil,
      'gpg.program': evil,
      'gpg.ssh.program': evil,
      'commit.gpgSign': 'true',
      'log.showSignature': 'true',
      'credential.helper': evil,
      'alias.status': `!${evil}`,
      'uploadpack.packObjectsHook': evil,
      'interactive.diffFilter': evil,
      'maintenance.auto': 'true',
      'gc.auto': '1',
    };
    for (const [name, value] of Object.entries(settings)) {
      const section = name.split('.');
      const key = section.pop();
      const [group, sub] = section;
      const header = sub === undefined ? `[${group}]` : `[${group} "${sub}"]`;
      await writeFile(join(workspace, '.git', 'config'), `${header}\n\t${key} = ${value}\n`, { flag: 'a' });
    }
    for (const hook of [
      'pre-commit',
      'commit-msg',
      'post-commit',
      'post-checkout',
      'reference-transaction',
      'post-index-change',
    ]) {
      for (const folder of [workspace, join(workspace, '.git', 'hooks')]) {
        await mkdir(folder, { recursive: true });
        await writeFile(join(folder, hook), `#!/bin/sh\necho ran >> ${marker}\n`, { mode: 0o755 });
      }
    }
    await writeFile(join(workspace, 'a.txt'), 'two\n');
    const attempts: [string, Json][] = [
      ['git_status', {}],
      ['git_diff', {}],
      ['git_diff', { staged: true }],
      ['git_log', {}],
      ['git_show', {}],
      ['git_commit', { message: 'm', paths: ['a.txt'] }],
      ['git_branch', { name: 'topic' }],
      ['git_branch', { name: 'topic', switch: true }],
      ['git_show', { path: 'a.txt' }],
    ];
    for (const [name, input] of attempts) {
      // A filter that cannot start may make git refuse the call; it must only not run.
      await call(name, input).catch((error: unknown) =>
        assert.ok(isTemperError(error, 'TEMPER_TOOL_FAILED'), String(error)),
      );
      await assert.rejects(access(marker), { code: 'ENOENT' }, `${name} started a program`);
    }
    // The Git of the user, without these settings, starts it.
    await git('status').catch(() => undefined);
    await access(marker);
  });
});
