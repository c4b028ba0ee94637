import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { aCallContext } from '../../../support/call-context.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import type { Json, JsonObject } from '../../../../src/lib/json.ts';
import { egressFetch } from '../../../../src/pod/agent/egress-fetch.ts';
import { CLONE_REQUEST, FETCH_REQUEST } from '../../../../src/toolbox/git/clone/clone-request.ts';
import { createWeb } from '../../../../src/toolbox/web/create-web.ts';
import { WEB_HEADERS } from '../../../../src/toolbox/web/deps.ts';
import type { CallContext } from '../../../../src/tools/contract.ts';
import { callOptions } from '../../../support/call-options.ts';
import { egressEndpoints, type EgressSetup, startEgressProxy } from '../../../support/gateway/egress-proxy.ts';
import { type GitPod, startGitPod } from '../../../support/gateway/git-pod.ts';
import { BareRepository } from '../../../support/gitops/bare-repository.ts';
import { type GitHttpServer, startGitHttpServer } from '../../../support/gitops/git-http-server.ts';

const TLS = new URL('../../../fixtures/tls/', import.meta.url);
const ADDRESS = 'https://api.example.com/repository.git';

/** The git tools of a pod: its agent container reads through the egress proxy, its sandbox container writes. */
export function gitClonesSuite(open: () => EgressSetup): void {
  describe('git_clone of a pod through the egress proxy', () => {
    const stop = new AbortController();
    let pod: GitPod;
    let repository: BareRepository;
    let server: GitHttpServer;
    let proxy: Awaited<ReturnType<typeof startEgressProxy>>;

    before(async () => {
      pod = await startGitPod();
      repository = await BareRepository.create({ 'README.md': 'one\n', 'src/a.txt': 'a\n' });
      const [cert = '', key = ''] = await Promise.all(
        ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
      );
      server = await startGitHttpServer(repository.folder, { tls: { cert, key } });
      proxy = await startEgressProxy(open(), () => server.port, stop.signal);
      open().fixture.setPolicy('cloning', {
        level: { initial: 'restricted', ceiling: 'restricted' },
        egress: { allow: ['*.example.com'] },
      });
      open().fixture.setAgent('cloner', { grants: { network: ['api.example.com'] } }, 'cloning');
      open().fixture.setAgent('elsewhere', { grants: { network: ['other.example.com'] } }, 'cloning');
    });
    after(async () => {
      stop.abort(new Error('the tests are over'));
      await pod?.[Symbol.asyncDispose]();
      await proxy?.running;
      await server?.[Symbol.asyncDispose]();
      await repository?.[Symbol.asyncDispose]();
    });

    const contextOf = (agent: string): CallContext =>
      aCallContext({ agent, session: 's1', rootMessage: 'message-1', op: callOptions() });
    const call = async (agent: string, name: string, input: Json): Promise<JsonObject> => {
      const files = egressEndpoints(proxy, agent);
      const deliveryToken = () => open().fixture.deliveryToken(agent);
      const fetch = egressFetch({ files, deliveryToken, clock: systemClock }, { sentHeaders: WEB_HEADERS });
      const tool = pod.tools({ web: createWeb(fetch) }).find(({ descriptor }) => descriptor.name === name);
      return (await tool?.call(input, contextOf(agent))) as JsonObject;
    };
    const clone = (folder: string, agent = 'cloner', more: JsonObject = {}) =>
      call(agent, 'git_clone', { url: ADDRESS, folder, ...more });
    const fails = (work: Promise<unknown>, code: Parameters<typeof isTemperError>[1], words: RegExp): Promise<void> =>
      assert.rejects(work, (error: Error) => {
        assert.ok(isTemperError(error, code) && words.test(error.message), String(error));
        return true;
      });

    it('the sandbox container has the files of what the agent container read and checked, and Git works on them', async () => {
      const commit = await repository.git('rev-parse', 'main');
      const cloned = { repository: 'cloned', commit, branch: 'main', files: 2, bytes: 6 };
      assert.deepEqual(await clone('cloned'), cloned);
      assert.equal(await readFile(join(pod.workspace, 'cloned/src/a.txt'), 'utf8'), 'a\n');
      assert.equal((await call('cloner', 'git_status', { repository: 'cloned' }))['text'], '## main\n');
      const served = proxy.lines.filter(({ outcome }) => outcome === 'ok');
      assert.ok(
        served.length > 0 && served.every(({ agent, host }) => agent === 'cloner' && host === 'api.example.com'),
      );
      const both = await Promise.all([clone('one'), clone('two')]);
      assert.deepEqual(
        both.map(({ files }) => files),
        [2, 2],
      );
    });

    it('the gateway refuses a host that the agent may not reach, and nothing is written', async () => {
      await fails(clone('refused', 'elsewhere'), 'TEMPER_POLICY_DENIED', /api\.example\.com.* is not granted/);
      assert.ok(!(await readdir(pod.workspace)).includes('refused'));
    });

    it('a repository beyond the memory of a pod is refused before it is written', async () => {
      await repository.commit('large', { 'a.bin': randomBytes(2_700_000).toString('base64') });
      await repository.commit('large', { 'b.bin': randomBytes(2_700_000).toString('base64') });
      await fails(
        clone('large', 'cloner', { revision: 'large' }),
        'TEMPER_CONNECTION_FAILED',
        /larger than 3145728 bytes/,
      );
      await repository.commit('inflated', { 'a.txt': 'a'.repeat(5_000_000) });
      const inflated = clone('large', 'cloner', { revision: 'inflated' });
      await fails(inflated, 'TEMPER_CONNECTION_FAILED', /too large to be read/);
      assert.ok(!(await readdir(pod.workspace)).includes('large'));
    });

    it('the sandbox container writes only to new folders of the workspace, and refuses what is no clone', async () => {
      const caller = { agent: 'a', namespace: 'n', session: 's', rootMessage: 'm', key: 'k' };
      const valid = { folder: 'x', url: ADDRESS, commit: 'a'.repeat(40), shallow: [], pack: 'UEFDSw==', caller };
      const write = (change: JsonObject) => pod.sandbox.callTool(CLONE_REQUEST, { ...valid, ...change }, callOptions());
      for (const change of [{ commit: 'main' }, { branch: '--x' }, { shallow: ['x'] }, { url: 'a\nb' }, { caller: {} }])
        await fails(write(change), 'TEMPER_TOOL_INPUT_INVALID', /not valid/);
      for (const folder of ['../x', '/tmp/x', '.git', 'cloned'])
        await fails(write({ folder }), 'TEMPER_FILE_DENIED', /./);
      await fails(write({}), 'TEMPER_TOOL_FAILED', /git index-pack/);
      assert.ok(!(await readdir(pod.workspace)).includes('x'));
    });

    it('a fetch brings what came since to the sandbox container', async () => {
      await clone('fetching');
      await repository.commit('main', { 'b.txt': 'b\n' });
      const commit = await repository.git('rev-parse', 'main');
      const fetch = { url: ADDRESS, repository: 'fetching', branch: 'main' };
      assert.deepEqual(await call('cloner', 'git_fetch', fetch), { branch: 'origin/main', commit, objects: 3 });
      const shown = { repository: 'fetching', revision: 'origin/main', path: 'b.txt' };
      assert.equal((await call('cloner', 'git_show', shown))['text'], 'b\n');
      await fails(call('elsewhere', 'git_fetch', fetch), 'TEMPER_POLICY_DENIED', /is not granted/);
      const caller = { agent: 'a', namespace: 'n', session: 's', rootMessage: 'm', key: 'k' };
      const valid = { folder: 'fetching', branch: 'main', commit: 'a'.repeat(40), pack: 'UEFDSw==', caller };
      const write = (change: JsonObject) => pod.sandbox.callTool(FETCH_REQUEST, { ...valid, ...change }, callOptions());
      await fails(write({ branch: 'a:b' }), 'TEMPER_TOOL_INPUT_INVALID', /not valid/);
      await fails(write({ folder: '..' }), 'TEMPER_FILE_DENIED', /./);
      await fails(write({}), 'TEMPER_TOOL_FAILED', /git fetch/);
      assert.ok((await readdir(pod.workspace)).every((name) => !name.startsWith('.temper')));
    });

    it('a repository without a connection is not pushed to', async () => {
      const push = { url: ADDRESS, branch: 'main', commit: 'a'.repeat(40) };
      await fails(call('cloner', 'git_push', push), 'TEMPER_CONNECTION_DENIED', /gateway\.connections/);
    });
  });
}
