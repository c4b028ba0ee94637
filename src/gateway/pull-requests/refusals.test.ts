import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { rootCertificates } from 'node:tls';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { type GitConnection, parseConnections } from '../../connections/connection.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Network } from '../../net/dialer.ts';
import { pullRequestServer, repositoryOf } from '../../review/pull-requests/servers.ts';
import { follow, type GitTask, isDue } from './follow.ts';

const FIXTURES = resolve(import.meta.dirname, '../../../test/fixtures/tls');
const TOKEN = 'secret-token-0123456789';
const PULL = { number: 7, html_url: 'https://git.example.com/7', state: 'open', merged: false };

type Answer = (response: ServerResponse) => void;
const status =
  (code: number, body = '{"message":"no"}', headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(body);
const works = status(200, JSON.stringify(PULL));

/** What a server of pull requests may do, and what the gateway reports: the cause and the next step. */
const REFUSALS: readonly (readonly [what: string, answer: Answer, message: RegExp])[] = [
  ['401', status(401), /connection "tools": the server answered 401: no; check the token and its permissions/],
  ['403', status(403), /the server answered 403: no; check the token and its permissions/],
  ['404', status(404), /of org\/tools: the server answered 404 \(no\); check git\.repository, .*the token/],
  ['409', status(409), /of org\/tools: the server answered 409 \(no\)/],
  ['422', status(422), /of org\/tools: the server answered 422 \(no\)/],
  ['429', status(429, '{}', { 'retry-after': '600' }), /answered 429; the server asks to wait 600 s/],
  ['a 429 without a time', status(429), /the server answered 429: no/],
  ['502', status(502, '<html>bad gateway</html>'), /the server answered 502/],
  ['a page for users', status(200, '<html>Sign in</html>'), /answered without JSON; check git\.apiUrl/],
  ['an answer that ends early', (response) => response.writeHead(200, { 'content-length': '9' }).end('{'), /failed/],
  ['no answer', () => undefined, /connection "tools": .*(?:deadline|time)/i],
];

describe('a Git server that refuses', () => {
  let server: Server;
  let folder: string;
  let answer: Answer = works;

  const network: Network = {
    resolve: async () => ['93.184.215.14'],
    connect: () =>
      new Promise((done, reject) => {
        const { port } = server.address() as AddressInfo;
        const socket = connect({ host: '127.0.0.1', port }, () => done(socket));
        socket.once('error', reject);
      }),
  };
  const task: GitTask = {
    kind: 'Request',
    namespace: 'team-a',
    name: 'request-1',
    uid: 'uid-1',
    gitOps: { connection: 'tools', branch: 'main', path: 'tools' },
    run: ({ connection, op }) => {
      assert.ok(connection.git.type !== 'Git');
      const server = pullRequestServer({ ...connection, git: connection.git }, { clock: systemClock, network });
      return server.get(7, { ...op, deadline: Math.min(op.deadline, systemClock.monotonic() + 2_000) });
    },
  };
  const look = (caFile = join(FIXTURES, 'certificate.pem')) => {
    const git = { type: 'Gitea', apiUrl: 'https://api.example.com', repository: 'org/tools', approver: 'ci' };
    const section = { name: 'tools', hosts: ['api.example.com:443'], namespaces: ['team-a'], git };
    const connections = parseConnections([{ ...section, credentialFile: join(folder, 'token'), caFile }], 'test');
    const open = (connection: GitConnection) => repositoryOf(connection, { clock: systemClock, network });
    return follow(task, undefined, { connections, clock: systemClock, repositoryOf: open }, NEVER_ABORTED);
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-refusals-'));
    await writeFile(join(folder, 'token'), TOKEN);
    const [key, cert] = await Promise.all(['key.pem', 'certificate.pem'].map((name) => readFile(join(FIXTURES, name))));
    server = createServer({ key, cert } as object, (_request, response) => answer(response));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    await rm(folder, { recursive: true, force: true });
  });

  for (const [what, refusal, message] of REFUSALS) {
    it(`${what}: the state has the cause without the token, and the next look at a mended server follows`, async () => {
      answer = refusal;
      const failed = await look();
      assert.equal(failed.state, 'Failed');
      assert.match(failed.message ?? '', message);
      assert.ok(!JSON.stringify(failed).includes(TOKEN));
      answer = works;
      assert.deepEqual([(await look()).state, (await look()).number], ['Open', 7]);
    });
  }

  it('a certificate of another authority is refused, and a mended caFile is used by the next look', async () => {
    answer = works;
    const wrong = join(folder, 'ca.pem');
    await writeFile(wrong, rootCertificates[0] ?? '');
    const failed = await look(wrong);
    assert.match(
      failed.message ?? '',
      /connection "tools": the request failed: DEPTH_ZERO_SELF_SIGNED_CERT; check caFile/,
    );
    await writeFile(wrong, await readFile(join(FIXTURES, 'certificate.pem')));
    assert.equal((await look(wrong)).state, 'Open');
  });

  it('the gateway waits as long as the server asks, at most an hour', async () => {
    const after = (seconds: number) => new Date(Date.now() + seconds * 1_000);
    for (const [asked, early, late] of [
      ['600', 500, 660],
      ['999999999', 3_500, 3_700],
      ['soon', 30, 90],
    ] as const) {
      answer = status(429, '{}', { 'retry-after': asked });
      const failed = await look();
      assert.equal(isDue(failed, after(early)), false, asked);
      assert.equal(isDue(failed, after(late)), true, asked);
    }
  });
});
