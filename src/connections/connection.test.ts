import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { systemClock } from '../lib/clock.ts';
import type { Network } from '../net/dialer.ts';
import { createConnectionClient } from './connection-client.ts';
import { createConnectionTransport } from './connection-transport.ts';
import { type Connection, gitConnectionFor, parseConnections } from './connection.ts';

const FIXTURES = join(import.meta.dirname, '../../test/fixtures/tls');
const TOKEN = 'token-0123456789';

function section(changes: object = {}): object {
  return {
    name: 'tools-repo',
    hosts: ['api.example.com:443', 'other.example.com:443'],
    namespaces: ['team-a'],
    credentialFile: '/etc/temper/connections/tools-repo/token',
    git: { type: 'GitHub', apiUrl: 'https://api.example.com', repository: 'org/tools', approver: 'system:admin' },
    ...changes,
  };
}

describe('the repository that agents use with a connection', () => {
  const url = 'https://api.example.com/org/code.git';
  const entry = (repository: object, changes: object = {}) =>
    section({ name: 'code', git: undefined, repository: { url, ...repository }, ...changes });

  it('it is on the hosts of its connection, and beside nothing else', () => {
    const pullRequests = { type: 'Gitea', apiUrl: 'https://api.example.com/api/v1', repository: 'org/code' };
    const [parsed] = parseConnections([entry({ branchPrefix: 'agents/', pullRequests })], 'test');
    assert.deepEqual(parsed?.repository, { url, branchPrefix: 'agents/', pullRequests });
    const cases: [repository: object, changes: object, expected: RegExp][] = [
      [{ url: 'https://git.example.com/code.git' }, {}, /repository\/url leads to git\.example\.com:443/],
      [{ url: 'http://api.example.com/code.git' }, {}, /repository\/url must match/],
      [{ branchPrefix: '../' }, {}, /branchPrefix must be the beginning/],
      [{ approver: 'system:admin' }, {}, /connections\/0\/repository/],
      [{ pullRequests: { ...pullRequests, apiUrl: 'https://x.example.com' } }, {}, /apiUrl leads to x\.example\.com/],
      [{}, { oauth: { tokenUrl: 'https://auth.example.com/token', clientId: 'temper' } }, /another connection/],
      [{}, { git: (section() as { git: object }).git }, /another connection for git/],
    ];
    for (const [repository, changes, expected] of cases)
      assert.throws(() => parseConnections([entry(repository, changes)], 'test'), expected);
  });

  it('it is never one whose files become Approvals, however its URL is written', () => {
    const plain = { type: 'Git', url: 'https://api.example.com/org/tools.git', approver: 'system:admin' };
    for (const shared of [section(), section({ git: plain })])
      for (const path of ['org/tools', 'ORG/Tools.git', 'git/org/tools/', 'org/%74ools'])
        assert.throws(
          () => parseConnections([shared, entry({ url: `https://api.example.com/${path}` })], 'test'),
          /connections\/1\/repository is the one that connection "tools-repo" shares tools with/,
          path,
        );
    const pullRequests = { type: 'GitHub', apiUrl: 'https://api.example.com', repository: 'Org/Tools' };
    assert.throws(() => parseConnections([section(), entry({ pullRequests })], 'test'), /shares tools with/);
    assert.equal(parseConnections([section(), entry({})], 'test').length, 2);
  });
});

describe('the section of connections', () => {
  it('a connection is found only for its namespaces, and a foreign one looks like an unknown one', () => {
    const connections = parseConnections([section()], 'test');
    assert.equal(gitConnectionFor(connections, 'tools-repo', 'team-a').git.approver, 'system:admin');
    const messageFor = (name: string, namespace: string): string => {
      try {
        gitConnectionFor(connections, name, namespace);
      } catch (error) {
        return (error as Error).message.replaceAll(name, 'NAME').replaceAll(namespace, 'NAMESPACE');
      }
      return assert.fail('a connection was found');
    };
    assert.equal(messageFor('tools-repo', 'team-b'), messageFor('unknown', 'team-b'));
    const { git: _, ...bare } = section() as Record<string, unknown>;
    assert.throws(() => gitConnectionFor(parseConnections([bare], 'test'), 'tools-repo', 'team-a'), {
      code: 'TEMPER_CONNECTION_DENIED',
      message: /no git section/,
    });
  });

  it('an invalid connection is refused with its field and rule', () => {
    const git = {
      type: 'GitHub',
      apiUrl: 'https://api.example.com',
      repository: 'org/tools',
      approver: 'system:admin',
    };
    const remote = { type: 'Git', url: 'https://api.example.com/tools.git', approver: 'system:admin' };
    const cases: [changes: object, expected: RegExp][] = [
      [{ hosts: ['*.example.com:443'] }, /connections\/0\/hosts\/0/],
      [{ hosts: ['api.example.com'] }, /connections\/0\/hosts\/0/],
      [{ hosts: ['api.example.com:70000'] }, /no valid port/],
      [{ hosts: ['git.example.com:443'] }, /apiUrl leads to api\.example\.com:443, which is not in hosts/],
      [{ namespaces: [] }, /connections\/0\/namespaces/],
      [{ namespaces: ['*'] }, /connections\/0\/namespaces\/0/],
      [{ git: { ...git, apiUrl: 'http://api.example.com' } }, /apiUrl/],
      [{ git: { ...git, apiUrl: 'https://user:secret@api.example.com' } }, /apiUrl/],
      [{ git: { ...git, repository: '../tools' } }, /repository/],
      [{ token: 'secret' }, /connections\/0/],
      [{ git: { type: 'Other' } }, /connections\/0\/git\/type must be equal to one of/],
      [{ git: { ...remote, url: 'http://api.example.com/tools.git' } }, /connections\/0\/git\/url must match/],
      [{ git: { ...remote, url: 'https://git.example.com/tools.git' } }, /git\/url leads to git\.example\.com:443/],
      [{ git: { ...remote, username: 'a:b' } }, /connections\/0\/git\/username must match/],
      [{ git: { ...remote, repository: 'org/tools' } }, /connections\/0\/git\/repository/],
    ];
    const oauth = { tokenUrl: 'https://auth.example.com/token', clientId: 'temper' };
    const tool = { git: undefined, oauth };
    cases.push(
      [{ oauth }, /connections\/0\/oauth is for calls of tools/],
      [{ ...tool, header: 'x-api-key' }, /connections\/0\/header has no effect with oauth/],
      [{ ...tool, oauth: { ...oauth, tokenUrl: 'http://auth.example.com/token' } }, /oauth\/tokenUrl must match/],
      [{ ...tool, oauth: { ...oauth, tokenUrl: 'https://[/token' } }, /oauth\/tokenUrl is not a URL/],
      [{ ...tool, oauth: { ...oauth, scopes: ['a b'] } }, /oauth\/scopes\/0 must match/],
      [{ ...tool, oauth: { ...oauth, clientSecret: 'x' } }, /connections\/0\/oauth/],
    );
    const [parsed] = parseConnections([{ ...section(), ...tool }], 'gateway.yaml');
    assert.deepEqual(parsed?.oauth, oauth);
    for (const [changes, message] of cases) {
      assert.throws(() => parseConnections([section(changes)], 'gateway.yaml'), {
        code: 'TEMPER_CONFIGURATION_INVALID',
        message,
      });
    }
    assert.throws(() => parseConnections([section(), section()], 'gateway.yaml'), { message: /used twice/ });
  });
});

describe('requests over a connection', () => {
  let server: Server;
  let folder: string;
  let answer: { status: number; body: string; headers?: Record<string, string> };
  let seen: (string | undefined)[] = [];
  let address = '93.184.215.14';

  const network: Network = {
    resolve: async () => [address],
    connect: (_address, _port) =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }, () =>
          resolve(socket),
        );
        socket.once('error', reject);
      }),
  };
  const clientFor = (changes: Partial<Connection> = {}) => {
    const given = section({
      credentialFile: join(folder, 'token'),
      caFile: join(FIXTURES, 'certificate.pem'),
      ...changes,
    });
    const [connection] = parseConnections([given], 'test');
    assert.ok(connection);
    return createConnectionClient(connection, { clock: systemClock, network });
  };
  const send = (client: ReturnType<typeof clientFor>, url = 'https://api.example.com/x') =>
    client({ method: 'GET', url }, { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 20_000, key: 'test' });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-connection-'));
    await writeFile(join(folder, 'token'), `${TOKEN}\n`);
    const [key, cert] = await Promise.all(['key.pem', 'certificate.pem'].map((name) => readFile(join(FIXTURES, name))));
    server = createServer({ key, cert } as object, (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(answer.body);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  after(async () => {
    await new Promise((done) => server.close(done));
    await rm(folder, { recursive: true, force: true });
  });

  it('a request has the credential, and a rotated file is used by the next one', async () => {
    seen = [];
    answer = { status: 200, body: '{"a":1}' };
    const client = clientFor();
    const { status, body } = await send(client);
    assert.deepEqual([status, body], [200, { a: 1 }]);
    await writeFile(join(folder, 'token'), 'rotated-0123456789');
    await send(client);
    await writeFile(join(folder, 'token'), TOKEN);
    assert.deepEqual(seen, [`Bearer ${TOKEN}`, 'Bearer rotated-0123456789']);
  });

  it('no error repeats the credential, whatever the server answers', async () => {
    for (const [status, code] of [
      [401, 'TEMPER_CONNECTION_UNAUTHORIZED'],
      [403, 'TEMPER_CONNECTION_UNAUTHORIZED'],
      [429, 'TEMPER_CONNECTION_FAILED'],
      [500, 'TEMPER_CONNECTION_FAILED'],
    ] as const) {
      answer = { status, body: JSON.stringify({ message: `bad Bearer ${TOKEN}\u001b[31m ${'x'.repeat(900)}` }) };
      await assert.rejects(send(clientFor()), (error: Error & { code?: string }) => {
        assert.equal(error.code, code);
        assert.ok(!error.message.includes(TOKEN) && error.message.includes('[credential]'), error.message);
        assert.ok(error.message.length < 600 && !error.message.includes('\u001b'));
        return true;
      });
    }
  });

  it('what the server says about a refusal of another status has no credential either', async () => {
    answer = { status: 422, body: JSON.stringify({ message: `bad Bearer ${TOKEN}\u001b[31m` }) };
    const { status, message } = await send(clientFor());
    assert.equal(status, 422);
    assert.match(message(), /^bad Bearer \[credential\]/);
    assert.ok(!message().includes('\u001b'));
  });

  it('a protocol with a password hides it in every form, and only its own headers are sent', async () => {
    const [connection] = parseConnections(
      [section({ credentialFile: join(folder, 'token'), caFile: join(FIXTURES, 'certificate.pem') })],
      'test',
    );
    assert.ok(connection);
    const encoded = Buffer.from(`git:${TOKEN}`).toString('base64');
    const protocol = {
      authorizationOf: (credential: string) => `Basic ${Buffer.from(`git:${credential}`).toString('base64')}`,
      messageIn: (bytes: Buffer) => bytes.toString('utf8'),
      sentHeaders: new Set(['git-protocol']),
    };
    const transport = createConnectionTransport(connection, protocol, { clock: systemClock, network });
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 20_000, key: 'test' };
    const request = { url: 'https://api.example.com/x', method: 'POST', body: Buffer.from([0, 255]) };
    seen = [];
    answer = { status: 200, body: 'ok' };
    const { bytes } = await transport({ ...request, headers: { 'git-protocol': 'version=2' } }, op);
    assert.deepEqual([bytes.toString(), ...seen], ['ok', `Basic ${encoded}`]);
    await assert.rejects(transport({ ...request, headers: { cookie: 'x' } }, op), { message: /may not be sent/ });
    answer = { status: 403, body: `refused ${TOKEN} in Basic ${encoded}` };
    await assert.rejects(transport(request, op), {
      code: 'TEMPER_CONNECTION_UNAUTHORIZED',
      message: /refused \[credential\] in Basic \[credential\]/,
    });
  });

  it('a redirect to another host is refused, and one to another host of the connection has no credential', async () => {
    seen = [];
    answer = { status: 302, body: '', headers: { location: 'https://evil.example.org/' } };
    await assert.rejects(send(clientFor()), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /not a host of the connection/,
    });
    assert.deepEqual(seen, [`Bearer ${TOKEN}`]);
    seen = [];
    answer = { status: 302, body: '', headers: { location: 'https://other.example.com/' } };
    await assert.rejects(send(clientFor()), { code: 'TEMPER_CONNECTION_FAILED' });
    assert.ok(seen.length > 1 && seen.slice(1).every((value) => value === undefined), String(seen));
  });

  it('a private address needs a connection that says so, and a link-local one is never reached', async () => {
    answer = { status: 200, body: 'null' };
    address = '10.0.0.7';
    await assert.rejects(send(clientFor()), { message: /not public/ });
    assert.equal((await send(clientFor({ private: true }))).status, 200);
    address = '169.254.169.254';
    await assert.rejects(send(clientFor({ private: true })), { message: /not public/ });
    address = '93.184.215.14';
  });

  it('a missing and an invalid credential file are named', async () => {
    const missing = clientFor({ credentialFile: join(folder, 'missing') });
    await assert.rejects(send(missing), { code: 'TEMPER_CONNECTION_UNAUTHORIZED', message: /missing cannot be read/ });
    await writeFile(join(folder, 'lines'), 'two\nlines');
    await assert.rejects(send(clientFor({ credentialFile: join(folder, 'lines') })), { message: /contains a space/ });
    await assert.rejects(send(clientFor({ caFile: join(folder, 'missing') })), { message: /caFile cannot be read/ });
  });
});
