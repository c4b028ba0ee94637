import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { aCallContext } from '../support/call-context.ts';
import { loopbackNetwork } from '../support/loopback-network.ts';
import { gitRepositories } from '../../src/cli/connections/git-repositories.ts';
import { parseUserConnections } from '../../src/cli/connections/read-connections.ts';
import { FLUSH, packet } from '../../src/git/protocol/pkt-line.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import type { Json } from '../../src/lib/json.ts';
import { createSafeBytesFetch } from '../../src/net/fetch.ts';
import type { Decision, PolicyRequest } from '../../src/policy/types.ts';
import { createProgramRunner } from '../../src/sandbox/terminal/program-runner.ts';
import { gitTools } from '../../src/toolbox/git/git-tools.ts';
import { remoteGitTools } from '../../src/toolbox/git/remote/remote-tools.ts';
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
const ADDRESS = 'https://api.example.com/repository.git';
const TOKEN = 'git-token-0123456789';
const AUTHORIZATION = `Basic ${Buffer.from(`git:${TOKEN}`).toString('base64')}`;

describe('git_fetch and git_push', { skip: CAN ? false : 'needs Linux on x86_64 or aarch64', timeout: 300_000 }, () => {
  let base: string;
  let workspace: string;
  let launcher: string;
  let certificate: string;
  let repository: BareRepository;
  let server: GitHttpServer;
  let hostile: (request: IncomingMessage, response: ServerResponse) => boolean;
  let isAllowed: (request: PolicyRequest) => boolean;
  let authorizations: Set<string | undefined>;
  let git: object;

  before(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'temper-git-remote-')));
    launcher = await buildLauncher(base);
    certificate = await readFile(join(TLS, 'certificate.pem'), 'utf8');
  });
  after(() => rm(base, { recursive: true, force: true }));
  beforeEach(async (context) => {
    workspace = await mkdtemp(join(base, 'workspace-'));
    repository = await BareRepository.create({ 'README.md': 'one\n' });
    await repository.commit('main', { 'README.md': 'two\n' });
    const tls = { cert: certificate, key: await readFile(join(TLS, 'key.pem'), 'utf8') };
    authorizations = new Set();
    hostile = () => false;
    server = await startGitHttpServer(repository.folder, {
      tls,
      authorization: AUTHORIZATION,
      hostile: (request, response) => {
        authorizations.add(request.headers.authorization);
        return hostile(request, response);
      },
    });
    isAllowed = (request) =>
      request.kind === 'File' || (request.kind === 'Network' && request.host === 'api.example.com');
    git = { url: ADDRESS, branchPrefix: 'agents/' };
    assert.ok('after' in context);
    context.after(async () => {
      await server[Symbol.asyncDispose]();
      await repository[Symbol.asyncDispose]();
    });
  });

  const network = loopbackNetwork({ port: () => server.port });
  const decide = (_caller: unknown, request: PolicyRequest): Decision => ({
    effect: isAllowed(request) ? 'Allow' : 'Deny',
    rule: 'grant.test',
    reason: 'it is not granted',
    risk: 'low',
  });
  const context = (): CallContext => aCallContext({ op: callOptions() });

  async function call(name: string, input: Json): Promise<Record<string, Json>> {
    const runner = createProgramRunner({ clock: systemClock, launcher });
    const terminal = createLocalTerminal({ runner, workspace, environment: {} });
    const over = { clock: systemClock, network, certificateAuthorities: [certificate] };
    const entry = { name: 'code', hosts: ['api.example.com:443'], tokenEnvironment: 'GIT_TOKEN', git };
    const connections = parseUserConnections('connections.yaml', { connections: [entry] });
    const repositories = gitRepositories(connections, (variable) => (variable === 'GIT_TOKEN' ? TOKEN : undefined))?.({
      fetchWith: (limits) => createSafeBytesFetch({ ...limits, ...over }),
    });
    const web = {
      fetch: createSafeBytesFetch({ ...over, sentHeaders: WEB_HEADERS }),
      readPage: () => Promise.reject(new Error('not called')),
    };
    const deps = { workspace, protectedFolders: [], decide, clock: systemClock, web, terminal, repositories };
    const tool = [...remoteGitTools(deps), ...gitTools(terminal)].find(({ descriptor }) => descriptor.name === name);
    assert.ok(tool, name);
    const schemas = createSchemaCompiler();
    assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
    const output = await tool.call(input, context());
    assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), []);
    return output as Record<string, Json>;
  }
  const clone = (changes: Record<string, Json> = {}) => call('git_clone', { url: ADDRESS, folder: 'work', ...changes });
  const fetch = (changes: Record<string, Json> = {}) =>
    call('git_fetch', { url: ADDRESS, repository: 'work', branch: 'main', ...changes });
  const push = (commit: string, changes: Record<string, Json> = {}) =>
    call('git_push', { url: ADDRESS, repository: 'work', branch: 'agents/fix', commit, ...changes });
  async function commit(text: string): Promise<string> {
    await writeFile(join(workspace, 'work/README.md'), text);
    const { commit: made } = await call('git_commit', { repository: 'work', message: text, all: true });
    return typeof made === 'string' ? made : assert.fail('no commit was made');
  }
  const headOf = (branch: string) => repository.git('rev-parse', '-q', '--verify', `refs/heads/${branch}`);
  async function refuses(
    work: Promise<unknown>,
    code: Parameters<typeof isTemperError>[1],
    words: RegExp,
  ): Promise<void> {
    await assert.rejects(work, (error: Error) => {
      assert.ok(isTemperError(error, code) && words.test(error.message), String(error));
      assert.ok(!error.message.includes(TOKEN));
      return true;
    });
    const left = (await readdir(workspace)).filter((name) => name.startsWith('.temper'));
    assert.deepEqual(left, [], 'no exchange is left');
  }

  it('commits are pushed to a new branch with the credential of the connection, and then more of them', async () => {
    await clone();
    const first = await commit('three\n');
    assert.deepEqual(await push(first), { branch: 'agents/fix', commit: first, objects: 3 });
    assert.equal(await headOf('agents/fix'), first);
    assert.equal(await repository.git('show', `${first}:README.md`), 'three');
    const second = await commit('four\n');
    assert.deepEqual(await push(second), { branch: 'agents/fix', commit: second, before: first, objects: 3 });
    assert.deepEqual(await push(second), { branch: 'agents/fix', commit: second, before: second, objects: 0 });
    assert.equal(await headOf('agents/fix'), second);
    assert.deepEqual([...authorizations], [AUTHORIZATION]);
  });

  it('a push never replaces commits of the branch, whatever the repository in the workspace says', async () => {
    await clone({ depth: 2 });
    const first = await commit('three\n');
    await push(first);
    await repository.commit('agents/fix', { 'other.txt': 'theirs\n' });
    const theirs = await headOf('agents/fix');
    const second = await commit('four\n');
    await refuses(push(second), 'TEMPER_TOOL_FAILED', /read it with git_fetch/);
    assert.deepEqual(await fetch({ branch: 'agents/fix' }), {
      branch: 'origin/agents/fix',
      commit: theirs,
      objects: 3,
    });
    await refuses(push(second), 'TEMPER_TOOL_FAILED', /the push would replace others/);
    // A replacement of objects, as a program of the agent could write it, makes one continue the other for Git.
    const fake = join(workspace, 'work/.git/refs/replace');
    await mkdir(fake, { recursive: true });
    await writeFile(join(fake, second), `${theirs}\n`);
    await refuses(push(second), 'TEMPER_TOOL_FAILED', /nothing is pushed|git pack-objects/);
    assert.equal(await headOf('agents/fix'), theirs);
  });

  it('a fetch brings the history since, and the next branch begins there', async () => {
    await clone();
    await repository.commit('main', { 'b.txt': 'b\n' });
    await repository.commit('main', { 'c.txt': 'c\n' });
    const head = await headOf('main');
    assert.deepEqual(await fetch(), { branch: 'origin/main', commit: head, objects: 6 });
    assert.deepEqual(await fetch(), { branch: 'origin/main', commit: head, objects: 0 });
    assert.equal(await readFile(join(workspace, 'work/README.md'), 'utf8'), 'two\n');
    await call('git_branch', { repository: 'work', name: 'agents/next', from: 'origin/main' });
    await call('git_branch', { repository: 'work', name: 'agents/next', switch: true });
    assert.equal(await readFile(join(workspace, 'work/c.txt'), 'utf8'), 'c\n');
    const next = await commit('five\n');
    assert.equal((await push(next, { branch: 'agents/next' }))['objects'], 3);
    assert.equal(await repository.git('rev-parse', 'agents/next~1'), head);
    assert.deepEqual((await readdir(workspace)).sort(), ['work']);
  });

  it('the connection decides about the branches, and a repository without one is not pushed to', async () => {
    await clone();
    const made = await commit('three\n');
    const denied = 'TEMPER_CONNECTION_DENIED';
    await refuses(push(made, { branch: 'main' }), denied, /default branch main/);
    await refuses(push(made, { branch: 'agents' }), denied, /begin with agents\//);
    await refuses(push(made, { branch: 'release' }), denied, /begin with agents\//);
    for (const branch of ['agents/../main', 'agents//x', 'agents/.x', 'agents/x.lock', '--force', '+main', 'a:b'])
      await refuses(push(made, { branch }), 'TEMPER_TOOL_INPUT_INVALID', /not the name of a branch/);
    await refuses(push('f'.repeat(40)), 'TEMPER_NOT_FOUND', /no commit f/);
    git = { url: ADDRESS };
    await refuses(push(made), denied, /for reading/);
    git = { url: 'https://api.example.com/other.git', branchPrefix: 'agents/' };
    await refuses(push(made), denied, /no connection is for/);
    git = { url: ADDRESS, pushDefaultBranch: true };
    isAllowed = (request) => request.kind === 'File';
    await refuses(push(made, { branch: 'main' }), 'TEMPER_FETCH_DENIED', /not granted/);
    isAllowed = () => true;
    assert.equal((await push(made, { branch: 'main' }))['commit'], made);
    assert.equal(await headOf('main'), made);
  });

  it('the policy decides about each file of a fetched commit, and nothing of a refused one is kept', async () => {
    await clone();
    await repository.commit('main', { 'secret/a.txt': 'a\n' });
    const head = await headOf('main');
    isAllowed = (request) =>
      request.kind === 'Network' || (request.kind === 'File' && !request.path.includes('secret'));
    await refuses(fetch(), 'TEMPER_POLICY_DENIED', /not granted/);
    await refuses(call('git_show', { repository: 'work', revision: head }), 'TEMPER_TOOL_FAILED', /./);
    await refuses(fetch({ branch: 'none' }), 'TEMPER_NOT_FOUND', /no branch none/);
  });

  it('a refusal of the server is an error, without the credential that it may repeat', async () => {
    await clone();
    const made = await commit('three\n');
    await repository.hook('pre-receive', 'echo "not on a Friday" >&2; exit 1');
    await refuses(push(made), 'TEMPER_TOOL_FAILED', /refuses the push to agents\/fix: pre-receive hook declined/);
    await repository.hook('pre-receive', `echo "${TOKEN}" >&2; exit 1`);
    await refuses(push(made), 'TEMPER_TOOL_OUTPUT_INVALID', /answered with the credential; .*rotate|rotate it/);
    await repository.commit('main', { 'echo.txt': `${TOKEN}\n` });
    await refuses(fetch(), 'TEMPER_TOOL_OUTPUT_INVALID', /sent the credential/);
  });

  it('a hostile server is contained: endless answers, long lists, odd names and packs that lie', async () => {
    await clone();
    const made = await commit('three\n');
    const [head] = [await headOf('main')];
    const type = (service: string, kind: string) => ({ 'content-type': `application/x-git-${service}-${kind}` });
    const lines = (...texts: string[]) => Buffer.concat([...texts.map((text) => packet(text)), FLUSH]);
    const offer = lines('version 2\n', 'ls-refs\n', 'fetch=shallow\n', 'object-format=sha1\n');
    const odd = [`${head} refs/heads/--force`, `${head} refs/heads/a..b`, `${head} refs/heads/\u001b[2J`, `${head} x`];
    const isList = ({ url }: IncomingMessage): boolean => url?.includes('info/refs') === true;

    const isEndless = (request: IncomingMessage, response: ServerResponse): boolean => {
      if (isList(request)) return (void response.writeHead(200, type('upload-pack', 'advertisement')).end(offer), true);
      response.writeHead(200, type('upload-pack', 'result'));
      const more = (): void => {
        while (!response.destroyed && response.write(packet(`\u0002${'x'.repeat(60_000)}`)));
      };
      response.on('drain', more);
      more();
      return true;
    };
    hostile = isEndless;
    await refuses(fetch(), 'TEMPER_CONNECTION_FAILED', /larger than 33554432 bytes/);

    const many = Buffer.concat([
      packet(`${head} HEAD symref-target:refs/heads/main\n`),
      ...odd.map((line) => packet(`${line}\n`)),
      ...Array.from({ length: 60_000 }, (_, n) => packet(`${head} refs/heads/agents/b${n}\n`)),
      FLUSH,
    ]);
    hostile = (request, response) => {
      if (request.url?.includes('receive-pack') === true) return false;
      const [body, kind] = isList(request) ? [offer, 'advertisement'] : [many, 'result'];
      response.writeHead(200, type('upload-pack', kind)).end(body);
      return true;
    };
    assert.equal((await push(made))['objects'], 3, 'the list is cut');

    const lie = Buffer.concat([packet('packfile\n'), packet(`\u0001PACK${'\0'.repeat(40)}`), FLUSH]);
    hostile = (request, response) => {
      if (isList(request)) return false;
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const isRefs = Buffer.concat(chunks).includes('ls-refs');
        const refs = lines(`${'a'.repeat(40)} refs/heads/main\n`);
        response.writeHead(200, type('upload-pack', 'result')).end(isRefs ? refs : lie);
      });
      return true;
    };
    await refuses(fetch(), 'TEMPER_CONNECTION_FAILED', /not in the form of Git/);
  });
});
