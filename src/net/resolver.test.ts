import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { startNameServer } from '../../test/support/name-server.ts';
import { pollAssertion } from '../../test/support/poll.ts';
import { hostsFile, parseHosts } from './hosts-file.ts';
import { createResolver, type ResolverOptions } from './resolver.ts';

const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  'both.example': ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
  'six.example': ['2001:db8::6'],
};

/** A name server of two names, which never answers for names below `silent.example`. */
async function startServer(folder: string) {
  const addressesOf = (name: string) => (name.endsWith('silent.example') ? 'silent' : ADDRESSES[name]);
  const server = await startNameServer({ addressesOf });
  const options: ResolverOptions = { servers: [`127.0.0.1:${server.port}`], hostsFile: join(folder, 'none') };
  return Object.assign(server, { options });
}

describe('the resolver of the fetch', () => {
  let folder: string;
  let server: Awaited<ReturnType<typeof startServer>>;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-resolver-'));
    server = await startServer(folder);
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
