import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { whyNoNamespace } from '../../manifests/local/shared/namespace.ts';
import { codeBlocks, commandsIn } from '../support/documented-commands.ts';
import { type CommandResult, plainEnvironment, ROOT, temper, temporaryFolder } from './command.ts';

const REASON = whyNoNamespace();
// Continuous integration skips nothing.
const SKIP = REASON === undefined || process.env['CI'] !== undefined ? false : REASON;

const COMMANDS = commandsIn(await codeBlocks(ROOT))
  .filter(({ page }) => page === 'docs/samples.md')
  .map(({ command }) => command);

/** The command of the page that starts a sample. */
function documented(sample: string): string {
  const command = `make sample-${sample}`;
  assert.ok(COMMANDS.includes(command), `the page has no command ${command}`);
  return command;
}

async function run(program: string, args: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  const child = spawn(program, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, stdout, stderr };
}

describe('the samples in one process', { timeout: 900_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;

  before(async () => {
    folder = await temporaryFolder();
  });
  after(() => folder?.[Symbol.asyncDispose]());

  const own = (...path: string[]): string => join(folder.path, 'samples', ...path);

  /** Runs the command of the page for a user who has configured nothing; what the tests installed is not installed again. */
  async function sample(name: string): Promise<string> {
    const command = `${documented(name)} -s -o node_modules/.installed SAMPLES=${own()}`;
    const env = { ...plainEnvironment(), HOME: join(folder.path, 'home'), XDG_CONFIG_HOME: join(folder.path, 'none') };
    const { code, stdout, stderr } = await run('bash', ['-c', command], env);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.doesNotMatch(stdout, / ✗ /);
    return stdout;
  }

  it('every sample of the page is a command of its own', () => {
    const samples = COMMANDS.filter((command) => command.startsWith('make sample-'));
    assert.deepEqual(samples, ['web', 'git', 'sql', 'mcp', 'skills'].map(documented));
  });

  it('the web researcher searches, reads the page of a result, and names it', { skip: SKIP }, async () => {
    const out = await sample('web');
    assert.match(out, /✓ web_search .*api\.example\.com\/anvils\.html/);
    assert.match(out, /◂ researcher: Weights of anvils: see https:\/\/api\.example\.com\/anvils\.html\n/);
    assert.match(out, /the session has untrusted content from now on: content of a host/);
  });

  it('the helper for repositories clones, corrects and commits', { skip: SKIP }, async () => {
    const out = await sample('git');
    assert.match(out, /◂ repository-helper: Committed: [0-9a-f]{40} docs: correct a word/);
    const clone = own('git/work/tools');
    assert.equal(await readFile(join(clone, 'README.md'), 'utf8'), '# Tools\n\nUse the tools with care.\n');
    const { stdout } = await promisify(execFile)('git', ['-C', clone, 'log', '--format=%an %s']);
    assert.equal(stdout, 'repository-helper docs: correct a word\nKim Add the tools\n');
  });

  it('the analyst with SQL answers from the database of its sample', async () => {
    assert.match(await sample('sql'), /◂ sql-analyst: South leads with \$112351\.53\.\n/);
  });

  it('the user of an MCP server accepts its tool, and calls it by the Capability that the command line prints', async () => {
    const out = await sample('mcp');
    assert.match(out, /accept the tools as they are above[^]*accepted 1 of 1 tools of weights/);
    assert.match(out, /◂ weigher: The anvil weighs 100 kg\.\n/);
    assert.match(out, /the session has untrusted content from now on: content of an MCP server/);
    const environment = { XDG_CONFIG_HOME: own('mcp/config') };
    const { stdout } = await temper(['mcp', 'manifest', 'weights'], { environment });
    assert.equal(stdout, await readFile(join(ROOT, 'manifests/local/mcp-user/capability.yaml'), 'utf8'));
  });

  it('the user of skills follows a skill that was pulled from a repository', { skip: SKIP }, async () => {
    const out = await sample('skills');
    assert.match(out, / of https:\/\/api\.example\.com\/tools\.git#[0-9a-f]{40}:skills\/release-notes is in /);
    assert.match(out, /◂ editor: Added: the command line completes names with the tab key\.\n/);
    assert.match(out, /the session has untrusted content from now on: the text of an imported skill/);
  });

  for (const [manifest, message] of [
    ['researcher/researcher.yaml', 'How heavy is an anvil?'],
    ['repository-helper/repository-helper.yaml', 'Correct the spelling in https://api.example.com/tools.git'],
    ['sql-analyst/sql-analyst.yaml', 'Which region sold the most?'],
    ['mcp-user/mcp-user.yaml', 'How heavy is an anvil?'],
  ] as const) {
    it(`the run of ${manifest} without its service fails and says which call failed`, async () => {
      const file = join(ROOT, 'manifests/local', manifest);
      const state = own(`without/${manifest.split('/')[0]}`);
      const args = ['-f', file, '--model-script', join(file, '../replay.yaml'), '--workspace', folder.path];
      const { code, stdout } = await temper(['run', ...args, '--state', state, '-o', 'text', '-m', message]);
      assert.equal(code, 1, stdout);
      assert.match(
        stdout,
        /✗ TEMPER_REPLAY_NO_MATCH: .* role tool of "\w+" \(an error\), is: \{"error":\{"code":"TEMPER_/,
      );
    });
  }

  it('a sample that gets no network namespace says what is missing', async () => {
    const demo = join(ROOT, 'manifests/local/researcher/demo.ts');
    const { code, stderr } = await run(process.execPath, [demo, '--samples', own('none')], { PATH: folder.path });
    assert.equal(code, 1);
    assert.match(stderr, /needs a network namespace for its server, and gets none: /);
  });
});
