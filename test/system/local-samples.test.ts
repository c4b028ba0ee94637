import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { codeBlocks, commandsIn } from '../support/documented-commands.ts';
import { BareRepository } from '../support/gitops/bare-repository.ts';
import {
  canHavePublicServer,
  CERTIFICATE_FILE,
  type PublicServer,
  SEARCH_URL,
  startPublicServer,
} from '../support/public-server.ts';
import { plainEnvironment, ROOT, temporaryFolder } from './command.ts';

const exec = promisify(execFile);
const CAN = process.platform === 'linux' && canHavePublicServer();
// Continuous integration skips nothing.
const SKIP = CAN || process.env['CI'] !== undefined ? false : 'needs Linux with network namespaces';

/** The commands of the page, each of which has one of these words. */
const COMMANDS = commandsIn(await codeBlocks(ROOT))
  .filter(({ page }) => page === 'docs/samples.md')
  .map(({ command }) => command);

function documented(words: RegExp): string {
  const [command, ...others] = COMMANDS.filter((one) => words.test(one));
  assert.ok(command !== undefined && others.length === 0, `the page has ${others.length + 1} commands with ${words}`);
  return command;
}

describe('the samples in one process', { skip: SKIP, timeout: 300_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let repository: BareRepository;
  let server: PublicServer;

  before(async () => {
    folder = await temporaryFolder();
    const skill = (path: string) => readFile(join(ROOT, 'manifests/skills/release-notes', path), 'utf8');
    repository = await BareRepository.create({
      'README.md': '# Tools\n\nUse teh tools with care.\n',
      'skills/release-notes/SKILL.md': await skill('SKILL.md'),
      'skills/release-notes/references/style.md': await skill('references/style.md'),
    });
    server = await startPublicServer(folder.path, repository.folder);
    for (const name of ['bin', 'config/temper', 'work', 'work-skills'])
      await mkdir(join(folder.path, name), { recursive: true });
    for (const name of ['bin/temper', 'bin/node', 'manifests'])
      await symlink(join(ROOT, name), join(folder.path, name));
    const config = (name: string, value: object) =>
      writeFile(join(folder.path, 'config/temper', name), JSON.stringify(value), { mode: 0o600 });
    await config('search.yaml', { type: 'SearXNG', url: SEARCH_URL });
    await config('mcp.yaml', { servers: [{ name: 'weights', category: 'web', url: 'https://api.example.com/mcp' }] });
    const file = join(folder.path, 'orders.db');
    await config('databases.yaml', { databases: [{ name: 'orders', type: 'SQLite', description: 'Orders.', file }] });
    if (!existsSync(join(ROOT, 'dist/launcher/temper-launcher'))) await exec('make', ['-s', 'launcher'], { cwd: ROOT });
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await repository?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  /** Runs a command of the page in the namespace of the server, with the services of a user. */
  async function run(command: string): Promise<string> {
    const [program = '', ...args] = server.inside(['bash', '-c', command]);
    const environment = { XDG_CONFIG_HOME: join(folder.path, 'config'), NODE_EXTRA_CA_CERTS: CERTIFICATE_FILE };
    const options = { cwd: folder.path, env: { ...plainEnvironment(), ...environment }, timeout: 120_000 };
    return (await exec(program, args, options)).stdout;
  }

  it('the web researcher searches, reads the page of a result, and names it', async () => {
    const out = await run(`${documented(/local\/researcher/)} --state state-1 -o json`);
    assert.match(out, /"text":"Weights of anvils: see https:\/\/api\.example\.com\/anvils\.html"/);
    assert.match(out, /"code":"session-tainted"/);
  });

  it('the helper for repositories clones, corrects and commits', async () => {
    const out = await run(`${documented(/local\/repository-helper/)} --state state-2 -o json`);
    assert.match(out, /"text":"Committed: [0-9a-f]{40} docs: correct a word/, out);
    assert.equal(
      await readFile(join(folder.path, 'work/tools/README.md'), 'utf8'),
      '# Tools\n\nUse the tools with care.\n',
    );
    const { stdout } = await exec('git', ['-C', join(folder.path, 'work/tools'), 'log', '--format=%an %s']);
    assert.equal(stdout, 'repository-helper docs: correct a word\nuser test\n');
  });

  it('the analyst with SQL answers from the database of its user', async () => {
    await run(documented(/make-database/));
    const out = await run(`${documented(/local\/sql-analyst\/sql-analyst\.yaml/)} --state state-3 -o json`);
    assert.match(out, /"text":"South leads with \$112351\.53\."/, out);
  });

  it('the user of an MCP server accepts its tool, prints the Capability of the sample, and calls it', async () => {
    const listed = await run(documented(/mcp tools weights/));
    const [accept = ''] = /temper mcp accept weights --digest sha256:[0-9a-f]{64}/.exec(listed) ?? [];
    assert.equal(`bin/${accept}`, documented(/mcp accept weights/));
    await run(documented(/mcp accept weights/));
    const printed = await run(documented(/mcp manifest weights/));
    assert.equal(printed, await readFile(join(ROOT, 'manifests/local/mcp-user/capability.yaml'), 'utf8'));
    const out = await run(`${documented(/local\/mcp-user/)} --state state-5 -o json`);
    assert.match(out, /"text":"The anvil weighs 100 kg\."/, out);
    assert.match(out, /"code":"session-tainted"/);
  });

  it('the user of skills follows a skill that was pulled from a repository, in a tainted session', async () => {
    const pulled = await run(documented(/temper skill pull/));
    const commit = await repository.git('rev-parse', 'main');
    assert.match(
      pulled,
      new RegExp(`of https://api\\.example\\.com/tools\\.git#${commit}:skills/release-notes is in `),
    );
    const out = await run(`${documented(/--skills work-skills/)} --workspace work --state state-4 -o json`);
    assert.match(out, /"text":"Added: the command line completes names with the tab key\."/, out);
    assert.match(out, /"code":"session-tainted"/);
  });
});
