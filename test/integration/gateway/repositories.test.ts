import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Connection, parseConnections } from '../../../src/connections/connection.ts';
import { startRepositories } from '../../../src/gateway/git/start.ts';
import { gatewayRepositories } from '../../../src/gateway-client/repositories/gateway-repositories.ts';
import { commitObject } from '../../../src/git/objects/commit.ts';
import { type GitObject, objectId } from '../../../src/git/objects/object-id.ts';
import { treeObject } from '../../../src/git/objects/tree.ts';
import { writePack } from '../../../src/git/pack/pack-writer.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import type { Json, JsonObject } from '../../../src/lib/json.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { GIT_CLONE } from '../../../src/toolbox/git/clone/git-clone.ts';
import { GIT_PUSH } from '../../../src/toolbox/git/remote/git-push.ts';
import type { GatewayRepository } from '../../../src/toolbox/git/remote/port.ts';
import type { ToolDescriptor } from '../../../src/tools/contract.ts';
import { type Gitea, startGitea } from '../../cluster/gitea.ts';
import { aCallContext } from '../../support/call-context.ts';
import { callOptions } from '../../support/call-options.ts';
import { startEgressProxy } from '../../support/gateway/egress-proxy.ts';
import { type GitPod, startGitPod } from '../../support/gateway/git-pod.ts';
import {
  GATEWAY_TOKEN,
  ModelGatewayFixture,
  type ModelGatewayReplica,
} from '../../support/gateway/model-gateway-fixture.ts';
import { BareRepository } from '../../support/gitops/bare-repository.ts';
import { GiteaRepository } from '../../support/gitops/gitea-repository.ts';
import { type GitHttpServer, startGitHttpServer } from '../../support/gitops/git-http-server.ts';

const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
const TLS = new URL('../../fixtures/tls/', import.meta.url);
const ADDRESS = 'https://api.example.com/repository.git';
const FOREIGN = 'https://api.example.com/foreign.git';
const TOKEN = 'git-token-0123456789';
const AUTHORIZATION = `Basic ${Buffer.from(`git:${TOKEN}`).toString('base64')}`;

/** The gateway needs a provider; no model is asked. */
function modelsOf({ replay }: ModelGatewayFixture): object {
  const models = [{ name: 'scripted' }];
  return { providers: [{ name: 'replay', type: 'openai', baseUrl: `${replay.url}/v1`, models }] };
}

/** Git's own server on one side, the containers of a pod on the other side, and a gateway with its egress proxy between them. */
describe('repositories of connections', { skip: CAN ? false : 'needs Linux', timeout: 300_000 }, () => {
  const stop = new AbortController();
  let fixture: ModelGatewayFixture;
  let gateway: ModelGatewayReplica;
  let pod: GitPod;
  let proxy: Awaited<ReturnType<typeof startEgressProxy>>;
  let repository: BareRepository;
  let server: GitHttpServer;
  let hostile: (request: IncomingMessage, response: ServerResponse) => boolean;
  let authorizations: Set<string | undefined>;
  const answers: string[] = [];

  before(async () => {
    fixture = await ModelGatewayFixture.open({ rules: [] });
    gateway = await fixture.startReplica(modelsOf(fixture));
    pod = await startGitPod();
    const [cert = '', key = ''] = await Promise.all(
      ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
    );
    proxy = await startEgressProxy({ fixture, gateway }, () => server.port, stop.signal);
    const folder = await mkdtemp(join(fixture.folder, 'repositories-'));
    const files = {
      egress: `https://127.0.0.1:${proxy.port}`,
      'egress-name': 'api.example.com',
      'ca.crt': proxy.certificate,
      'egress-ca.crt': proxy.certificate,
      token: GATEWAY_TOKEN,
      credential: `${TOKEN}\n`,
    };
    await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)));
    const own = { hosts: ['api.example.com:443'], credentialFile: join(folder, 'credential') };
    const branchPrefix = 'agents/';
    const connections: Connection[] = parseConnections(
      [
        { ...own, name: 'code', namespaces: ['team-a'], repository: { url: ADDRESS, branchPrefix } },
        { ...own, name: 'foreign', namespaces: ['team-b'], repository: { url: FOREIGN, branchPrefix } },
      ],
      'test',
    );
    fixture.repositories = startRepositories({
      connections,
      egress: { endpoints: folder, tokenFile: join(folder, 'token') },
      deliveryTokens: fixture.deliveryTokens,
      clock: systemClock,
    });
    const policy = { level: { initial: 'standard' }, autonomy: 'Full' } as const;
    fixture.setPolicy('coding', { ...policy, egress: { allow: ['*.example.com'] } });
    fixture.setPolicy('asking', {
      ...policy,
      egress: { allow: ['*.example.com'] },
      rules: { requireApproval: ['vcs:push'] },
    });
    const grants = { tools: ['git_*'], network: ['api.example.com'] };
    fixture.setAgent('coder', { grants }, 'coding');
    fixture.setAgent('elsewhere', { grants: { ...grants, network: ['other.example.com'] } }, 'coding');
    fixture.setAgent('asking', { grants }, 'asking');
    fixture.setAgent('without', { grants: { network: ['api.example.com'] } }, 'coding');
    repository = await BareRepository.create({ 'README.md': 'one\n' });
    server = await startGitHttpServer(repository.folder, {
      tls: { cert, key },
      authorization: AUTHORIZATION,
      hostile: (request, response) => {
        authorizations.add(request.headers.authorization);
        return hostile(request, response);
      },
    });
  });
  after(async () => {
    stop.abort(new Error('the tests are over'));
    await pod?.[Symbol.asyncDispose]();
    await proxy?.running;
    await server?.[Symbol.asyncDispose]();
    await repository?.[Symbol.asyncDispose]();
    await fixture?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    hostile = () => false;
    authorizations = new Set();
    fixture.losesResponse = () => false;
  });

  /** What the pod of an agent uses; a pod that lies names any repository. */
  async function known(agent: string, urls: readonly string[] = [ADDRESS]) {
    const client = await fixture.connect(agent, gateway);
    return gatewayRepositories(
      urls.map((url) => ({ url })),
      { client, clock: systemClock, deliveryToken: () => fixture.deliveryToken(agent) },
    );
  }
  async function call(name: string, input: Json, agent = 'coder'): Promise<JsonObject> {
    const tools = pod.tools({ gatewayRepositories: await known(agent) });
    const tool = tools.find(({ descriptor }) => descriptor.name === name);
    const output = await tool?.call(input, aCallContext({ agent, op: callOptions() }));
    answers.push(JSON.stringify(output));
    return output as JsonObject;
  }
  /** A request that no tool of the pod would send. */
  async function lie(
    tool: ToolDescriptor,
    input: JsonObject,
    work: (there: GatewayRepository, call: { tool: ToolDescriptor; input: Json }) => Promise<unknown>,
    { agent = 'coder', url = ADDRESS } = {},
  ): Promise<unknown> {
    const there = (await known(agent, [url])).find(url);
    return there === undefined ? assert.fail('the pod names it') : work(there, { tool, input: { url, ...input } });
  }
  const pushes = (commit: string, pack: Buffer, changes: JsonObject = {}, as: { agent?: string; url?: string } = {}) =>
    lie(
      GIT_PUSH,
      { branch: 'agents/lie', commit, ...changes },
      (there, asked) => there.call({ ...asked, op: callOptions() }, pack),
      as,
    );
  const headOf = (branch: string) => repository.git('rev-parse', '-q', '--verify', `refs/heads/${branch}`);
  async function committed(folder: string, text: string): Promise<string> {
    await writeFile(join(pod.workspace, folder, 'README.md'), text);
    const { commit } = await call('git_commit', { repository: folder, message: text, all: true });
    return typeof commit === 'string' ? commit : assert.fail('no commit was made');
  }
  const push = (commit: string, changes: JsonObject = {}, agent = 'coder') =>
    call('git_push', { url: ADDRESS, repository: 'work', branch: 'agents/fix', commit, ...changes }, agent);
  async function refuses(
    work: Promise<unknown>,
    code: Parameters<typeof isTemperError>[1],
    words: RegExp,
  ): Promise<void> {
    await assert.rejects(work, (error: Error) => {
      assert.ok(isTemperError(error, code) && words.test(error.message), String(error));
      answers.push(error.message);
      return true;
    });
  }
  /** Objects of one commit with one file, and their pack. */
  function packed(parent: string, content = Buffer.from('x')): { commit: string; pack: Buffer } {
    const blob: GitObject = { type: 'blob', content };
    const tree = treeObject([{ mode: '100644', name: 'a.txt', id: objectId(blob) }]);
    const commit = commitObject({ tree: objectId(tree), parent, message: 'a lie', at: new Date(0) });
    return { commit: objectId(commit), pack: writePack([blob, tree, commit]) };
  }

  it('a pod without the credential clones, commits, pushes twice, and fetches what others pushed', async () => {
    const main = await headOf('main');
    const cloned = await call('git_clone', { url: ADDRESS, folder: 'work' });
    assert.deepEqual([cloned['commit'], cloned['branch'], cloned['files']], [main, 'main', 1]);
    const first = await committed('work', 'two\n');
    assert.deepEqual(await push(first), { branch: 'agents/fix', commit: first, objects: 3 });
    assert.equal(await repository.git('show', 'agents/fix:README.md'), 'two');
    const second = await committed('work', 'three\n');
    assert.deepEqual(await push(second), { branch: 'agents/fix', commit: second, before: first, objects: 3 });
    assert.deepEqual(await push(second), { branch: 'agents/fix', commit: second, before: second, objects: 0 });
    assert.equal(await headOf('agents/fix'), second);
    await repository.commit('agents/fix', { 'b.txt': 'b\n' });
    const theirs = await headOf('agents/fix');
    await refuses(push(await committed('work', 'four\n')), 'TEMPER_TOOL_FAILED', /read it with git_fetch/);
    const fetched = await call('git_fetch', { url: ADDRESS, repository: 'work', branch: 'agents/fix' });
    assert.deepEqual(fetched, { branch: 'origin/agents/fix', commit: theirs, objects: 3 });
    assert.equal(await headOf('agents/fix'), theirs);
    assert.deepEqual([...authorizations], [AUTHORIZATION]);
    const left = (await readdir(pod.workspace)).filter((name) => name.startsWith('.temper'));
    assert.deepEqual(left, [], 'no exchange is left');
    const charged = proxy.lines.filter(({ outcome }) => outcome === 'ok').map(({ agent }) => agent);
    assert.ok(charged.length > 0 && charged.every((agent) => agent === 'coder'));
    const records = createTaskRecords(await fixture.nats.connect('gateway'), () => ({
      reserve: async () => undefined,
    }));
    const end = {
      message: 'message-1',
      session: 's1',
      outcome: 'completed',
      deliveries: 1,
      endedAt: Date.now(),
    } as const;
    await records.end('uid-coder', end);
    assert.deepEqual(
      (await records.read('uid-coder')).map(({ categories }) => categories),
      [['version_control']],
    );
  });

  it('the connection decides about branches, whatever the pod asks', async () => {
    const main = await headOf('main');
    const { commit, pack } = packed(main);
    for (const branch of ['main', 'release', 'agents/'.slice(0, -1)])
      await refuses(pushes(commit, pack, { branch }), 'TEMPER_CONNECTION_DENIED', /default branch|begin with agents\//);
    for (const branch of ['agents/../main', 'agents/x.lock', '+agents/x', 'refs/heads/main:x'])
      await refuses(pushes(commit, pack, { branch }), 'TEMPER_TOOL_INPUT_INVALID', /not the name of a branch/);
    assert.equal(await headOf('main'), main);
    await refuses(
      call('git_pull_request', { url: ADDRESS, branch: 'agents/fix', title: 'fix' }),
      'TEMPER_CONNECTION_DENIED',
      /names no server with pull requests/,
    );
  });

  it('a repository of another namespace looks like one that no connection names', async () => {
    const { commit, pack } = packed(await headOf('main'));
    const unknown = 'https://api.example.com/unknown.git';
    for (const url of [FOREIGN, unknown]) {
      await refuses(
        pushes(commit, pack, {}, { url }),
        'TEMPER_CONNECTION_DENIED',
        /no connection is for .*gateway\.connections/,
      );
      const reads = lie(
        GIT_CLONE,
        { folder: 'x' },
        (there, asked) => there.reader({ ...asked, op: callOptions() }).resolve('HEAD', callOptions()),
        { url },
      );
      await refuses(reads, 'TEMPER_CONNECTION_DENIED', /no connection is for/);
    }
    await assert.rejects(headOf('agents/lie'));
  });

  it('the policy of the agent decides about the tool, its host, and what needs an approver', async () => {
    const { commit, pack } = packed(await headOf('main'));
    const denied = 'TEMPER_POLICY_DENIED';
    await refuses(pushes(commit, pack, {}, { agent: 'elsewhere' }), denied, /api\.example\.com/);
    await refuses(pushes(commit, pack, {}, { agent: 'without' }), denied, /git_push/);
    await refuses(pushes(commit, pack, {}, { agent: 'asking' }), denied, /./);
    await refuses(call('git_clone', { url: ADDRESS, folder: 'refused' }, 'elsewhere'), denied, /api\.example\.com/);
    await refuses(call('git_clone', { url: ADDRESS, folder: 'refused' }, 'without'), denied, /git_clone/);
    assert.ok(!(await readdir(pod.workspace)).includes('refused'));
    await assert.rejects(headOf('agents/lie'));
  });

  it('a pack that lies changes nothing on the server', async () => {
    const main = await headOf('main');
    const { commit, pack } = packed(main);
    const failed = 'TEMPER_TOOL_FAILED';
    await refuses(pushes('a'.repeat(40), pack), failed, /git packed another commit/);
    const before = await headOf('agents/fix');
    await refuses(pushes(commit, pack, { branch: 'agents/fix' }), failed, /would replace others/);
    assert.equal(await headOf('agents/fix'), before);
    const bomb = packed(main, Buffer.alloc(13_000_000));
    assert.ok(bomb.pack.length < 100_000);
    await refuses(pushes(bomb.commit, bomb.pack), failed, /at most 10000 objects of 12582912 bytes/);
    await refuses(pushes(commit, Buffer.from('PACK')), failed, /not in the form of Git/);
    const cut = Buffer.concat([pack.subarray(0, -21), pack.subarray(-20)]);
    await refuses(pushes(commit, cut), failed, /not in the form of Git/);
    await refuses(pushes(commit, Buffer.alloc(6_000_000)), 'TEMPER_REQUEST_TOO_LARGE', /the limit of this route/);
    await refuses(pushes(commit, Buffer.alloc(3_200_000)), 'TEMPER_REQUEST_INVALID', /not in the form of/);
    await assert.rejects(headOf('agents/lie'));
    assert.ok(!server.requests.some((url) => url.includes('lie')));
  });

  it('a request that is repeated with its key pushes once, and its key belongs to its pack', async () => {
    const { commit, pack } = packed(await headOf('main'));
    const other = packed(await headOf('main'), Buffer.from('y'));
    let lost = 0;
    fixture.losesResponse = (url) => url.includes('call-with-attachment') && (lost += 1) === 1;
    const from = server.requests.length;
    const op = callOptions();
    const input = { branch: 'agents/once', commit };
    const pushed = await lie(GIT_PUSH, input, (there, asked) => there.call({ ...asked, op }, pack));
    assert.deepEqual(pushed, { branch: 'agents/once', commit, objects: 3 });
    assert.equal(lost, 2, 'the first answer was lost');
    const posts = server.requests.slice(from).filter((url) => url.endsWith('/git-receive-pack'));
    assert.equal(posts.length, 1);
    await refuses(
      lie(GIT_PUSH, input, (there, asked) => there.call({ ...asked, op }, other.pack)),
      'TEMPER_REQUEST_INVALID',
      /belongs to another call/,
    );
    assert.equal(await headOf('agents/once'), commit);
  });

  it('an answer that contains the credential reaches no pod', async () => {
    const { commit, pack } = packed(await headOf('main'));
    const dropped = 'TEMPER_TOOL_OUTPUT_INVALID';
    await repository.hook('pre-receive', `echo "${TOKEN}" >&2; exit 1`);
    await refuses(pushes(commit, pack), dropped, /rotate/);
    await repository.hook('pre-receive', 'echo "not on a Friday" >&2; exit 1');
    await refuses(pushes(commit, pack), 'TEMPER_TOOL_FAILED', /pre-receive hook declined/);
    await repository.hook('pre-receive', 'exit 0');
    await repository.commit('echo', { 'deep/echo.txt': `token: ${TOKEN}\n` });
    await refuses(
      call('git_clone', { url: ADDRESS, folder: 'echo', revision: 'echo' }),
      dropped,
      /sent the credential/,
    );
    await refuses(
      call('git_fetch', { url: ADDRESS, repository: 'work', branch: 'echo' }),
      dropped,
      /sent the credential/,
    );
    hostile = (_request, response) => {
      response.writeHead(302, { location: 'https://evil.example.com/repository.git/info/refs' }).end();
      return true;
    };
    await refuses(call('git_clone', { url: ADDRESS, folder: 'moved' }), 'TEMPER_CONNECTION_FAILED', /redirects/);
    assert.ok(!(await readdir(pod.workspace)).some((name) => name === 'echo' || name === 'moved'));
  });

  it('the credential is in no answer, no log of the gateway and no line of the proxy', () => {
    const written = [...answers, ...fixture.logLines, ...proxy.lines.map((line) => JSON.stringify(line))].join('\n');
    assert.ok(written.length > 1_000);
    for (const form of [TOKEN, Buffer.from(`git:${TOKEN}`).toString('base64')]) assert.ok(!written.includes(form));
  });
});

describe('a private repository on Gitea', { skip: CAN ? false : 'needs Linux', timeout: 300_000 }, () => {
  let fixture: ModelGatewayFixture;
  let gateway: ModelGatewayReplica;
  let pod: GitPod;
  let gitea: Gitea;
  let repository: GiteaRepository;

  before(async () => {
    fixture = await ModelGatewayFixture.open({ rules: [] });
    gateway = await fixture.startReplica(modelsOf(fixture));
    pod = await startGitPod();
    gitea = await startGitea();
    repository = new GiteaRepository(gitea);
    await repository.create();
    await gitea.call('PATCH', '/repos/owner/tools', { private: true });
    const credentialFile = join(fixture.folder, 'gitea-token');
    await writeFile(credentialFile, gitea.token);
    const pullRequests = { type: 'Gitea', apiUrl: `${gitea.url}/api/v1`, repository: 'owner/tools' };
    const { caFile } = gitea;
    const connection = { name: 'gitea', hosts: [`localhost:${gitea.port}`], private: true, credentialFile, caFile };
    const url = `${gitea.url}/owner/tools.git`;
    const own = { url, username: 'owner', branchPrefix: 'agents/', pullRequests };
    fixture.repositories = startRepositories({
      connections: parseConnections([{ ...connection, namespaces: ['team-a'], repository: own }], 'test'),
      deliveryTokens: fixture.deliveryTokens,
      clock: systemClock,
    });
    const host = `localhost:${gitea.port}`;
    fixture.setPolicy('coding', { level: { initial: 'standard' }, autonomy: 'Full', egress: { allow: [host] } });
    fixture.setAgent('coder', { grants: { tools: ['git_*'], network: [host] } }, 'coding');
  });
  after(async () => {
    await pod?.[Symbol.asyncDispose]();
    await gitea?.[Symbol.asyncDispose]();
    await fixture?.[Symbol.asyncDispose]();
  });

  it('a pod clones it, pushes a branch and opens one pull request, and its token is in no answer and no log', async () => {
    const url = `${gitea.url}/owner/tools.git`;
    const client = await fixture.connect('coder', gateway);
    const options = { client, clock: systemClock, deliveryToken: () => fixture.deliveryToken('coder') };
    const tools = pod.tools({ gatewayRepositories: gatewayRepositories([{ url, private: true }], options) });
    const answers: string[] = [];
    const call = async (name: string, input: Json): Promise<JsonObject> => {
      const tool = tools.find(({ descriptor }) => descriptor.name === name);
      const output = await tool?.call(input, aCallContext({ agent: 'coder', op: callOptions() }));
      answers.push(JSON.stringify(output));
      return output as JsonObject;
    };
    await call('git_clone', { url, folder: 'work' });
    await writeFile(join(pod.workspace, 'work/a.txt'), 'a');
    const { commit = '' } = await call('git_commit', { repository: 'work', message: 'fix: a word', all: true });
    const pushed = await call('git_push', { url, repository: 'work', branch: 'agents/fix', commit });
    assert.deepEqual(pushed, { branch: 'agents/fix', commit, objects: 3 });
    assert.equal(await repository.fileOn('agents/fix', 'a.txt'), 'a');
    await assert.rejects(call('git_push', { url, repository: 'work', branch: 'main', commit }), {
      code: 'TEMPER_CONNECTION_DENIED',
    });
    await assert.rejects(repository.fileOn('main', 'a.txt'), /404/);
    const opened = await call('git_pull_request', {
      url,
      branch: 'agents/fix',
      title: 'fix: a word',
      body: 'It was wrong.',
    });
    assert.deepEqual([opened['state'], opened['isNew']], ['Open', true]);
    const again = await call('git_pull_request', { url, branch: 'agents/fix', title: 'fix: a word' });
    assert.deepEqual([again['number'], again['isNew']], [opened['number'], false]);
    assert.equal((await repository.pulls('agents/fix')).length, 1);
    const written = [...answers, ...fixture.logLines].join('\n');
    for (const form of [gitea.token, Buffer.from(`owner:${gitea.token}`).toString('base64')])
      assert.ok(!written.includes(form));
  });
});
