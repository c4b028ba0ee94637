import assert from 'node:assert/strict';
import { access, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { aCallContext } from '../support/call-context.ts';
import { loopbackNetwork } from '../support/loopback-network.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import type { Json } from '../../src/lib/json.ts';
import { createSafeBytesFetch } from '../../src/net/fetch.ts';
import type { Decision, PolicyRequest } from '../../src/policy/types.ts';
import { createProgramRunner } from '../../src/sandbox/terminal/program-runner.ts';
import { gitCloneTool } from '../../src/toolbox/git/clone/git-clone.ts';
import { gitTools } from '../../src/toolbox/git/git-tools.ts';
import { createLocalTerminal } from '../../src/toolbox/terminal/local-terminal.ts';
import { WEB_HEADERS } from '../../src/toolbox/web/deps.ts';
import type { CallContext } from '../../src/tools/contract.ts';
import { createSchemaCompiler } from '../../src/tools/json-schema/compiler.ts';
import { callOptions } from '../support/call-options.ts';
import { BareRepository } from '../support/gitops/bare-repository.ts';
import { type GitHttpServer, startGitHttpServer } from '../support/gitops/git-http-server.ts';
import { buildLauncher } from '../support/launcher.ts';

const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
const TLS = join(import.meta.dirname, '../fixtures/tls');
const URL_OF_REPOSITORY = 'https://api.example.com/repository.git';
const PUBLIC = '93.184.215.14';

describe('git_clone', { skip: CAN ? false : 'needs Linux on x86_64 or aarch64', timeout: 300_000 }, () => {
  let base: string;
  let workspace: string;
  let launcher: string;
  let certificate: string;
  let repository: BareRepository;
  let server: GitHttpServer;
  let hostile: (request: IncomingMessage, response: ServerResponse) => boolean;
  let addresses: Record<string, string[]>;
  let dialled: string[];
  /** The policy of the agent. */
  let isAllowed: (request: PolicyRequest) => boolean;

  before(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'temper-git-clone-')));
    launcher = await buildLauncher(base);
    certificate = await readFile(join(TLS, 'certificate.pem'), 'utf8');
    const tls = { cert: certificate, key: await readFile(join(TLS, 'key.pem'), 'utf8') };
    repository = await BareRepository.create({ 'README.md': 'one\n', 'src/a.txt': 'a\n' });
    await repository.commit('main', { 'README.md': 'two\n', '.gitattributes': '* filter=evil diff=evil\n' });
    await repository.git('tag', 'v1', 'main');
    server = await startGitHttpServer(repository.folder, { tls, hostile: (...exchange) => hostile(...exchange) });
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await repository?.[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  });
  beforeEach(async () => {
    workspace = await mkdtemp(join(base, 'workspace-'));
    hostile = () => false;
    addresses = { 'api.example.com': [PUBLIC] };
    dialled = [];
    isAllowed = (request) =>
      request.kind === 'File' || (request.kind === 'Network' && request.host === 'api.example.com');
  });

  const network = loopbackNetwork({
    port: () => server.port,
    addresses: (host) => addresses[host] ?? [],
    dialled: (address, port) => void dialled.push(`${address}:${port}`),
  });
  const context = (): CallContext => aCallContext({ op: callOptions() });
  const decide = (_caller: unknown, request: PolicyRequest): Decision => ({
    effect: isAllowed(request) ? 'Allow' : 'Deny',
    rule: 'grant.test',
    reason: 'it is not granted',
    risk: 'low',
  });

  async function call(name: string, input: Json): Promise<Record<string, Json>> {
    const terminal = createLocalTerminal({
      runner: createProgramRunner({ clock: systemClock, launcher }),
      workspace,
      environment: {},
    });
    const fetch = createSafeBytesFetch({
      clock: systemClock,
      network,
      certificateAuthorities: [certificate],
      sentHeaders: WEB_HEADERS,
    });
    const web = { fetch, readPage: () => Promise.reject(new Error('not called')) };
    const deps = { workspace, protectedFolders: [], decide, clock: systemClock, web, terminal, remote: undefined };
    const tool = [gitCloneTool(deps), ...gitTools(terminal)].find(({ descriptor }) => descriptor.name === name);
    assert.ok(tool, name);
    const schemas = createSchemaCompiler();
    assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
    const output = await tool.call(input, context());
    assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), []);
    return output as Record<string, Json>;
  }
  async function textOf(name: string, input: Json): Promise<string> {
    const { text } = await call(name, input);
    return typeof text === 'string' ? text : assert.fail(`${name} returned no text`);
  }
  const clone = (changes: Record<string, Json> = {}) =>
    call('git_clone', { url: URL_OF_REPOSITORY, folder: 'cloned', ...changes });
  async function refuses(
    work: Promise<unknown>,
    code: Parameters<typeof isTemperError>[1],
    message: RegExp,
  ): Promise<void> {
    await assert.rejects(work, (error: Error) => {
      assert.ok(isTemperError(error, code) && message.test(error.message), String(error));
      return true;
    });
    assert.deepEqual(await readdir(workspace), [], 'nothing is left');
  }

  it('a repository is cloned with the default branch, and the git tools work on it', async () => {
    const commit = await repository.git('rev-parse', 'main');
    assert.deepEqual(await clone(), { repository: 'cloned', commit, branch: 'main', files: 3, bytes: 30 });
    assert.deepEqual(dialled, Array(dialled.length).fill(`${PUBLIC}:443`));
    assert.equal(await readFile(join(workspace, 'cloned/README.md'), 'utf8'), 'two\n');
    const text = (name: string, input: Record<string, Json> = {}) => textOf(name, { repository: 'cloned', ...input });
    assert.equal(await text('git_status'), '## main\n');
    assert.match(await text('git_log'), /^\w+ \S+ user: test\n$/);
    await writeFile(join(workspace, 'cloned/README.md'), 'three\n');
    assert.match(await text('git_commit', { message: 'change', all: true }), /^[0-9a-f]{40} change/);
    assert.match(await text('git_branch'), /\* main \w+\norigin\/main \w+/);
  });

  it('a tag, a commit and more of the history are cloned', async () => {
    const commit = await repository.git('rev-parse', 'main');
    assert.deepEqual(await clone({ revision: 'v1' }), { repository: 'cloned', commit, files: 3, bytes: 30 });
    const before = await repository.git('rev-parse', 'main~1');
    assert.equal((await clone({ revision: before, folder: 'a/before' }))['files'], 2);
    await clone({ depth: 5, folder: 'all', revision: 'main' });
    assert.equal((await textOf('git_log', { repository: 'all' })).trimEnd().split('\n').length, 2);
    await assert.rejects(access(join(workspace, 'all/.git/shallow')), { code: 'ENOENT' });
  });

  it('the policy decides about the host, about each redirect, and about each file', async () => {
    isAllowed = () => false;
    await refuses(clone(), 'TEMPER_POLICY_DENIED', /not granted/);
    isAllowed = (request) => request.kind === 'File';
    await refuses(clone(), 'TEMPER_FETCH_DENIED', /api\.example\.com.*not granted/);
    assert.deepEqual(dialled, []);
    isAllowed = (request) =>
      request.kind === 'Network' || (request.kind === 'File' && !request.path.endsWith('/src/a.txt'));
    await refuses(clone(), 'TEMPER_POLICY_DENIED', /not granted/);
    isAllowed = (request) =>
      request.kind === 'File' || (request.kind === 'Network' && request.host === 'api.example.com');
    hostile = (_request, response) => {
      response
        .writeHead(302, { location: 'https://other.example.com/repository.git/info/refs?service=git-upload-pack' })
        .end();
      return true;
    };
    addresses['other.example.com'] = ['1.1.1.1'];
    await refuses(clone(), 'TEMPER_FETCH_DENIED', /redirects.*other\.example\.com/);
    assert.ok(
      dialled.every((target) => target === `${PUBLIC}:443`),
      dialled.join(),
    );
  });

  it('no other scheme, no credential in the URL, no port and no private address is reached', async () => {
    isAllowed = () => true;
    for (const url of [
      'http://api.example.com/repository.git',
      'ssh://git@api.example.com/repository.git',
      'git://api.example.com/repository.git',
      'file:///etc',
      '/etc',
      '--upload-pack=/bin/sh',
      'ext::sh -c id',
      'git@api.example.com:repository.git',
      'https://user:secret@api.example.com/repository.git',
      'https://127.0.0.1/repository.git',
      'https://[::1]/repository.git',
      'https://[::ffff:169.254.169.254]/repository.git',
      'https://2852039166/repository.git',
      'https://localhost/repository.git',
      'https://metadata.google.internal/repository.git',
    ])
      await refuses(clone({ url }), 'TEMPER_FETCH_DENIED', /./);
    for (const address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', 'fd00::1', '100.64.0.1']) {
      addresses['api.example.com'] = [PUBLIC, address];
      await refuses(clone(), 'TEMPER_FETCH_DENIED', /./);
    }
    assert.deepEqual(dialled, []);
  });

  it('a clone goes to a new folder of the workspace only', async () => {
    await mkdir(join(base, 'outside'), { recursive: true });
    for (const folder of ['../outside/x', '/tmp/x', '.', '.git', 'a/.git/x'])
      await refuses(clone({ folder }), 'TEMPER_FILE_DENIED', /./);
    await mkdir(join(workspace, 'cloned'));
    await assert.rejects(
      clone(),
      (error) => isTemperError(error, 'TEMPER_FILE_DENIED') && /exists/.test(error.message),
    );
    assert.deepEqual(await readdir(join(workspace, 'cloned')), []);
  });

  it('a server that does not answer as Git leaves nothing', async () => {
    const answers: [(response: ServerResponse) => void, RegExp][] = [
      [(response) => response.end('<html>'), /does not answer as a Git server/],
      [(response) => response.writeHead(404).end(), /does not exist, or is not public/],
      [(response) => response.writeHead(401, { 'www-authenticate': 'Basic' }).end(), /is not public/],
      [(response) => response.destroy(), /the request failed/],
    ];
    for (const [answer, message] of answers) {
      hostile = (_request, response) => {
        answer(response);
        return true;
      };
      await refuses(clone(), 'TEMPER_CONNECTION_FAILED', message);
    }
    hostile = () => false;
    await refuses(clone({ revision: 'none' }), 'TEMPER_NOT_FOUND', /no branch or tag none/);
    for (const revision of ['--x', 'a..b', 'a b']) await refuses(clone({ revision }), 'TEMPER_TOOL_INPUT_INVALID', /./);
  });

  const text = async (content: string | Buffer): Promise<string> =>
    (await repository.run(['hash-object', '-w', '--stdin'], content)).toString().trim();
  /** A commit with these entries, as no program of Git would write it. */
  async function commitOf(entries: readonly [mode: string, name: string, id: string][]): Promise<string> {
    const sorted = entries.toSorted(([, one], [, other]) => (one < other ? -1 : 1));
    const content = sorted.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]);
    const write = ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'];
    const tree = (await repository.run(write, Buffer.concat(content))).toString().trim();
    return repository.git('commit-tree', '-m', 'x', tree);
  }
  const treeOf = async (entries: string): Promise<string> =>
    (await repository.run(['mktree', '--missing'], entries)).toString().trim();

  it('links become texts, submodules stay empty, and no program of a repository runs', async () => {
    const marker = join(workspace, 'marker');
    const script = await text(`#!/bin/sh\necho ran >> ${marker}\n`);
    const modules = '[submodule "m"]\n\tpath = m\n\turl = https://api.example.com/other.git\n';
    const revision = await commitOf([
      ['100644', '.gitattributes', await text('* filter=evil diff=evil merge=evil\n')],
      ['100644', '.gitmodules', await text(modules)],
      ['100755', 'post-checkout', script],
      ['120000', 'link', await text('/etc/passwd')],
      ['160000', 'm', '1'.repeat(40)],
    ]);
    const update = await commitOf([['100644', '.gitmodules', await text(`${modules}\tupdate = !touch marker\n`)]]);
    await refuses(clone({ revision: update }), 'TEMPER_TOOL_FAILED', /disallowed submodule update setting/);
    assert.equal((await clone({ revision }))['files'], 5);
    assert.equal(await readFile(join(workspace, 'cloned/link'), 'utf8'), '/etc/passwd');
    assert.ok((await lstat(join(workspace, 'cloned/link'))).isFile());
    assert.deepEqual(await readdir(join(workspace, 'cloned/m')), []);
    assert.deepEqual(await readdir(join(workspace, 'cloned/.git')).then((names) => names.includes('hooks')), false);
    await call('git_status', { repository: 'cloned' });
    await assert.rejects(access(marker), { code: 'ENOENT' });
    const config = await readFile(join(workspace, 'cloned/.git/config'), 'utf8');
    assert.doesNotMatch(config, /filter|submodule|hooksPath/);
  });

  it('a repository that would fill the disk or leave its folder leaves nothing', async () => {
    const big = await text(Buffer.alloc(8 * 1_048_576));
    let bomb = await treeOf(`100644 blob ${await text('x')}\tf\n`);
    for (let level = 0; level < 6; level += 1)
      bomb = await treeOf(Array.from({ length: 10 }, (_, n) => `040000 tree ${bomb}\td${n}\n`).join(''));
    let deep = await treeOf(`100644 blob ${await text('x')}\tf\n`);
    for (let level = 0; level < 40; level += 1) deep = await treeOf(`040000 tree ${deep}\td\n`);
    const root = await repository.git('rev-parse', 'main^{tree}');
    const huge = await text(Buffer.alloc(17 * 1_048_576));
    const cases: [entries: [string, string, string][], message: RegExp][] = [
      [
        Array.from({ length: 17 }, (_, n) => ['100644', `f${String.fromCharCode(97 + n)}`, big]),
        /more than 134217728 bytes/,
      ],
      [[['100644', 'huge', huge]], /too large to be read/],
      [[['40000', 'bomb', bomb]], /more than 20000 files and folders/],
      [[['40000', 'deep', deep]], /more than 30 levels/],
      [[['40000', '.git', root]], /an entry "\.git"/],
      [[['40000', '.GIT', root]], /an entry "\.GIT"/],
      [[['40000', 'git~1', root]], /an entry "git~1"/],
      [[['40000', '..', root]], /an entry "\.\."/],
      [[['40000', '.g\u200cit', root]], /not a name that a reader can see/],
      [[['100644', 'a\u001b[2Jb', await text('x')]], /not a name that a reader can see/],
      [[['100644', 'a/b', await text('x')]], /not in the form of Git/],
      [[['060644', 'device', await text('x')]], /neither a file nor a link|form of Git/],
    ];
    for (const [entries, message] of cases) {
      const revision = await commitOf(entries);
      await refuses(clone({ revision }), 'TEMPER_CONNECTION_FAILED', message);
    }
  });
});
