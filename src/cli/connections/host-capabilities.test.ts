import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { createSafeBytesFetch } from '../../net/fetch.ts';
import type { Decision } from '../../policy/types.ts';
import type { HostToolDeps } from '../../standalone/team/host-tools.ts';
import type { CallContext } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { hostCapabilities } from './host-capabilities.ts';
import { parseUserConnections, type UserConnection } from './read-connections.ts';
import { connectionNames } from './user-connections.ts';

const TOKEN = 'rates-token-0123456789';

describe('tools of Capabilities with an HTTP backend in a run', () => {
  let server: Server;
  let answer: (request: IncomingMessage) => { status?: number; body: Json };
  let effect: Decision['effect'];
  let asked: string[] = [];

  before(async () => {
    server = createServer((request, response) => {
      const { status = 200, body } = answer(request);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  beforeEach(() => {
    effect = 'Allow';
    asked = [];
    answer = ({ headers, url }) => ({ body: { key: headers['x-api-key'] === TOKEN, url: url ?? '' } });
  });

  const connection = (change: Partial<UserConnection> = {}): UserConnection => ({
    name: 'rates',
    hosts: ['rates.example.com:443'],
    isPrivate: false,
    tokenEnvironment: 'RATES_KEY',
    header: 'x-api-key',
    ...change,
  });
  const capability = (name: string, spec: object = {}, tool: object = {}): Capability =>
    ({
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Capability',
      metadata: { name },
      spec: {
        type: 'Tool',
        description: 'Rates.',
        tool: { name: name.replaceAll('-', '_'), category: 'web', inputSchema: { type: 'object' }, ...tool },
        backend: { http: { url: 'https://rates.example.com/v1', method: 'GET', connection: 'rates' } },
        ...spec,
      },
    }) as Capability;
  const run = (capabilities: Capability[], connections = [connection()], token: string | undefined = TOKEN) =>
    hostCapabilities(capabilities, {
      connections,
      others: new Set(['offered_tool']),
      token: (variable) => (variable === 'RATES_KEY' ? token : undefined),
    });
  /** The TLS of the host is left out: each request arrives at the server of this test. */
  const fetchWith: HostToolDeps['fetchWith'] = (options) => async (request, rules, op) => {
    const target = new URL(request.url);
    const port = target.port === '' ? 443 : Number(target.port);
    const refusal = rules.hostDenialReason(target.hostname, port);
    assert.equal(refusal, undefined);
    assert.equal(options.redirects, 'refused');
    asked.push(target.host);
    const { port: local } = server.address() as AddressInfo;
    const here = { ...request, url: `http://localhost:${local}${target.pathname}${target.search}` };
    const open = { ports: [local], allowHttp: true, hostDenialReason: () => undefined };
    return createSafeBytesFetch({ ...options, clock: systemClock })(
      here,
      { ...open, privateHosts: new Set(['localhost']) },
      op,
    );
  };
  const call = (tools: ReturnType<typeof run>['tools'], input: Json = { base: 'EUR' }): Promise<Json> => {
    const decide = (): Decision => ({ effect, rule: 'test', reason: 'as the test says', risk: 'low' });
    const [tool] = tools({ decide, schemas: createSchemaCompiler(), fetchWith });
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 30_000, key: 'test' };
    return tool?.call(input, { op } as CallContext) ?? assert.fail('no tool');
  };
  const fails = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      assert.ok(!error.message.includes(TOKEN));
      return true;
    });

  it('a call has the arguments and the credential of the connection, and needs no decision about the host', async () => {
    effect = 'Deny';
    const { tools, problems } = run([capability('exchange-rate')]);
    assert.deepEqual(await call(tools), { key: true, url: '/v1?base=EUR' });
    assert.deepEqual([problems, asked], [[], ['rates.example.com']]);
  });

  it('without a connection the policy of the agent decides about the host', async () => {
    const open = { backend: { http: { url: 'https://open.example.com/v1', method: 'POST' } } };
    const { tools } = run([capability('exchange-rate', open)]);
    assert.deepEqual(await call(tools), { key: false, url: '/v1' });
    for (const refusing of ['Deny', 'Escalate'] as const) {
      effect = refusing;
      await fails('TEMPER_POLICY_DENIED', call(tools), /as the test says/);
    }
    assert.deepEqual(asked, ['open.example.com']);
  });

  it('an answer with the credential, one that breaks the schema, and an error of the endpoint are failures', async () => {
    const { tools } = run([capability('exchange-rate', {}, { outputSchema: { type: 'object' } })]);
    answer = () => ({ body: { echo: TOKEN } });
    await fails('TEMPER_TOOL_OUTPUT_INVALID', call(tools), /contains the credential/);
    answer = () => ({ body: 'text' });
    await fails('TEMPER_TOOL_OUTPUT_INVALID', call(tools), /breaks its schema/);
    answer = () => ({ status: 403, body: {} });
    await fails('TEMPER_CONNECTION_UNAUTHORIZED', call(tools), /"rates"/);
    await fails('TEMPER_CONNECTION_UNAUTHORIZED', call(run([capability('a')], [connection()], '').tools), /RATES_KEY/);
  });

  it('authorities that cannot be read fail the call, which is not sent', async () => {
    const { tools } = run([capability('exchange-rate')], [connection({ caFile: '/no/such/file' })]);
    await fails('TEMPER_CONNECTION_FAILED', call(tools), /caFile cannot be read/);
    assert.deepEqual(asked, []);
  });

  it('a Capability that cannot be used is named with the next step of the user, and no agent has its tool', () => {
    const elsewhere = { backend: { http: { url: 'https://other.example.com/v1', connection: 'rates' } } };
    const unknown = { backend: { http: { url: 'https://rates.example.com/', connection: 'none' } } };
    const { tools, problems } = run([
      capability('elsewhere', elsewhere),
      capability('reader', {}, { name: 'file_read' }),
      capability('unknown', unknown),
      capability('skill', { type: 'Skill', tool: undefined, backend: undefined }),
    ]);
    assert.deepEqual(tools({ fetchWith } as HostToolDeps), []);
    assert.equal(problems.length, 3);
    assert.match(problems[0] ?? '', /^Capability\/elsewhere .*connections\.yaml/);
    assert.match(problems[1] ?? '', /^Capability\/reader .*another tool is named "file_read"/);
    assert.match(problems[2] ?? '', /^Capability\/unknown .*connections\.yaml/);
  });

  it('no Capability may name the connection of a repository, and the reason names the connection', () => {
    const git = { url: 'https://rates.example.com/code.git', mayPushDefaultBranch: false };
    const connections = [connection(), connection({ name: 'code', git })];
    const http = (name: string) => ({ http: { url: 'https://rates.example.com/v1', connection: name } });
    const { tools, problems } = run(
      [
        capability('backend', { backend: http('code') }),
        capability('required', { backend: http('rates'), requiredSecrets: ['code'] }),
        capability('permitted', { requiredSecrets: ['rates'] }),
      ],
      connections,
    );
    const refusal =
      'cannot be used: connection "code" has git in connections.yaml, so its credential is for that repository; name a connection without git';
    assert.deepEqual(problems, [`Capability/backend ${refusal}`, `Capability/required ${refusal}`]);
    const names = tools({ fetchWith } as HostToolDeps).map(({ descriptor }) => descriptor.name);
    assert.deepEqual(names, ['permitted']);
    assert.deepEqual([...connectionNames(connections, [{ name: 'server' }])], ['rates', 'server']);
  });
});

describe('the connections of a user', () => {
  const entry = { name: 'rates', hosts: ['rates.example.com:443'], tokenEnvironment: 'RATES_KEY' };
  const parse = (value: object) => parseUserConnections('connections.yaml', { connections: [value] });

  it('a connection has exact hosts and a variable that is redacted', () => {
    assert.deepEqual(parse(entry), [{ ...entry, isPrivate: false }]);
    assert.deepEqual(parse({ ...entry, private: true, header: 'x-api-key' }), [
      { ...entry, isPrivate: true, header: 'x-api-key' },
    ]);
  });

  it('any other entry is refused with its field', () => {
    const cases: [object, RegExp][] = [
      [{ hosts: [] }, /hosts must have 1 to 20/],
      [{ hosts: ['rates.example.com'] }, /hosts must be hosts with their ports/],
      [{ hosts: ['*.example.com:443'] }, /hosts must be/],
      [{ hosts: ['rates.example.com:99999'] }, /hosts must be/],
      [{ tokenEnvironment: 'RATES' }, /tokenEnvironment must name/],
      [{ header: 'a b' }, /header must be/],
      [{ private: 'yes' }, /private must be/],
      [{ caFile: 'ca.pem' }, /caFile must be an absolute path/],
      [{ credentialFile: '/x' }, /credentialFile is not known/],
    ];
    for (const [change, words] of cases) assert.throws(() => parse({ ...entry, ...change }), words);
  });

  it('a repository is on a host of its connection, and says what agents may push', () => {
    const hosts = ['git.example.com:443', 'api.example.com:8443'];
    const url = 'https://git.example.com/team/tools.git';
    const server = { type: 'Gitea', apiUrl: 'https://api.example.com:8443/api/v1', repository: 'team/tools' };
    const read = (git: object) => parse({ ...entry, hosts, git })[0]?.git;
    assert.deepEqual(read({ url }), { url, mayPushDefaultBranch: false });
    assert.deepEqual(
      read({ url, username: 'bot', branchPrefix: 'a/', pushDefaultBranch: true, pullRequests: server }),
      {
        url,
        username: 'bot',
        branchPrefix: 'a/',
        mayPushDefaultBranch: true,
        pullRequests: server,
      },
    );
    const cases: [object, RegExp][] = [
      [{}, /git\.url must be a non-empty string/],
      [{ url: 'http://git.example.com/x.git' }, /git\.url must be an https URL/],
      [{ url: 'https://user@git.example.com/x.git' }, /git\.url must be an https URL/],
      [{ url: 'https://other.example.com/x.git' }, /git\.url must be on one of the hosts/],
      [{ url: 'https://git.example.com:8443/x.git' }, /git\.url must be on one of the hosts/],
      [{ url, branchPrefix: '../' }, /git\.branchPrefix must be the beginning/],
      [{ url, branchPrefix: '--x' }, /git\.branchPrefix must be the beginning/],
      [{ url, pushDefaultBranch: 'main' }, /git\.pushDefaultBranch must be true or false/],
      [{ url, username: 'a:b' }, /git\.username must match/],
      [{ url, force: true }, /git\.force is not known/],
      [{ url, pullRequests: { ...server, type: 'Git' } }, /pullRequests\.type must be one of GitHub, GitLab, Gitea/],
      [{ url, pullRequests: { ...server, apiUrl: 'https://x.example.com/' } }, /apiUrl must be on one of the hosts/],
      [{ url, pullRequests: { ...server, repository: 'tools' } }, /pullRequests\.repository must match/],
    ];
    for (const [git, words] of cases) assert.throws(() => read(git), words);
  });
});
