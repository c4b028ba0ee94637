import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { pollAssertion } from '../../test/support/poll.ts';
import { hostsFile, parseHosts } from './hosts-file.ts';
import { createResolver, type ResolverOptions } from './resolver.ts';

const A = 1;
const AAAA = 28;

/** A name server of four names; it never answers for names below `silent.example`. */
interface NameServer extends AsyncDisposable {
  readonly options: ResolverOptions;
  /** Names of the received queries. */
  readonly queries: string[];
}

const RECORDS: Readonly<Record<string, readonly [type: number, address: Buffer][]>> = {
  'both.example': [
    [A, Buffer.from([192, 0, 2, 1])],
    [A, Buffer.from([192, 0, 2, 2])],
    [AAAA, Buffer.from('20010db8000000000000000000000001', 'hex')],
  ],
  'six.example': [[AAAA, Buffer.from('20010db8000000000000000000000006', 'hex')]],
};

async function startNameServer(folder: string): Promise<NameServer> {
  const socket = createSocket('udp4');
  const queries: string[] = [];
  socket.on('message', (query, peer) => {
    const { name, type, end } = question(query);
    queries.push(name);
    if (!name.endsWith('silent.example'))
      socket.send(response(query.subarray(0, end), name, type), peer.port, peer.address);
  });
  await bound(socket);
  const servers = [`127.0.0.1:${socket.address().port}`];
  const options = { servers, hostsFile: join(folder, 'none') };
  return { options, queries, [Symbol.asyncDispose]: async () => void socket.close() };
}

async function bound(socket: Socket): Promise<void> {
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
}

/** The first question of a DNS message (RFC 1035, 4.1). */
function question(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function response(query: Buffer, name: string, type: number): Buffer {
  const records = (RECORDS[name] ?? []).filter(([kind]) => kind === type);
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(RECORDS[name] === undefined ? 0x8183 : 0x8180, 2);
  header.writeUInt16BE(records.length, 6);
  header.fill(0, 8, 12);
  const answers = records.map(([kind, address]) => {
    const fixed = Buffer.from([0xc0, 0x0c, 0, kind, 0, 1, 0, 0, 0, 60, 0, address.length]);
    return Buffer.concat([fixed, address]);
  });
  return Buffer.concat([header, query.subarray(12), ...answers]);
}

describe('the resolver of the fetch', () => {
  let folder: string;
  let server: NameServer;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-resolver-'));
    server = await startNameServer(folder);
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  it('a name has its addresses of both families, alternating', async () => {
    const resolve = createResolver(server.options);
    assert.deepEqual(await resolve('both.example', NEVER_ABORTED), ['192.0.2.1', '2001:db8::1', '192.0.2.2']);
    assert.deepEqual(await resolve('six.example', NEVER_ABORTED), ['2001:db8::6']);
  });

  it('a name without addresses rejects, and is asked without a search domain', async () => {
    await assert.rejects(createResolver(server.options)('none.example', NEVER_ABORTED), { code: 'ENOTFOUND' });
    assert.ok(server.queries.every((name) => name.split('.').length === 2));
  });

  it('a name server that does not answer ends in the timeout, and holds no later lookup', async () => {
    const resolve = createResolver({ ...server.options, timeoutMs: 50, maxLookups: 2 });
    const silent = Array.from({ length: 12 }, (_, index) => resolve(`n${index}.silent.example`, NEVER_ABORTED));
    for (const result of await Promise.allSettled(silent)) assert.equal(result.status, 'rejected');
    const later = createResolver({ ...server.options, maxLookups: 2 });
    assert.deepEqual(await later('six.example', NEVER_ABORTED), ['2001:db8::6']);
  });

  it('lookups beyond the limit wait, without a query, and start when one ends', async () => {
    const resolve = createResolver({ ...server.options, maxLookups: 2 });
    const abort = new AbortController();
    const silent = ['w1', 'w2'].map((name) => resolve(`${name}.silent.example`, abort.signal));
    await pollAssertion('two queries', () => assert.ok(server.queries.includes('w2.silent.example')));
    const before = server.queries.filter((name) => name === 'both.example').length;
    const waiting = resolve('both.example', NEVER_ABORTED);
    const cancelled = new AbortController();
    const given = resolve('n.silent.example', cancelled.signal);
    cancelled.abort(new Error('enough'));
    await assert.rejects(given, { message: 'enough' });
    assert.equal(server.queries.filter((name) => name === 'both.example').length, before);
    abort.abort(new Error('stop'));
    for (const result of await Promise.allSettled(silent)) assert.equal(result.status, 'rejected');
    assert.equal((await waiting).length, 3);
    assert.ok(!server.queries.includes('n.silent.example'), 'a cancelled lookup asks no server');
  });

  it('the hosts file comes first, and a change of it takes effect', async () => {
    const path = join(folder, 'hosts');
    await writeFile(path, '# comment\n127.0.0.1 blocked.example Both.Example # end\n::1\tblocked.example\nbad line\n');
    const resolve = createResolver({ ...server.options, hostsFile: path });
    assert.deepEqual(await resolve('blocked.example', NEVER_ABORTED), ['127.0.0.1', '::1']);
    assert.deepEqual(await resolve('both.example', NEVER_ABORTED), ['127.0.0.1']);
    await writeFile(path, '192.0.2.9 other.example\n');
    assert.equal((await resolve('both.example', NEVER_ABORTED)).length, 3);
    await rm(path);
    await assert.rejects(resolve('other.example', NEVER_ABORTED), { code: 'ENOTFOUND' });
  });

  it('a hosts file names no prototype member, and no host for a line without an address', async () => {
    assert.deepEqual([...parseHosts('300.1.1.1 a\n10.0.0.1\n\u0000 b\n')], []);
    assert.equal(await hostsFile(join(folder, 'none')).addressesOf('constructor'), undefined);
  });

  it('lookups that hang leave the threads of the process to its files', async () => {
    const abort = new AbortController();
    const resolve = createResolver({ ...server.options, maxLookups: 64 });
    const hanging = Array.from({ length: 32 }, (_, index) => resolve(`t${index}.silent.example`, abort.signal));
    await pollAssertion('the queries', () => assert.ok(server.queries.includes('t31.silent.example')));
    await writeFile(join(folder, 'written'), 'while all lookups hang');
    abort.abort(new Error('stop'));
    for (const result of await Promise.allSettled(hanging)) assert.equal(result.status, 'rejected');
  });
});
