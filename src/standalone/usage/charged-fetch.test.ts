import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Amounts, Denial } from '../../ledger/port.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { Network } from '../../net/dialer.ts';
import { chargedFetch } from './charged-fetch.ts';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);
const BODY = 300_000;
const DENIAL: Denial = {
  granted: false,
  quota: 'spec.quotas.networkBytesPerHour',
  limit: 1_000,
  used: 1_000,
  resumesAt: '2026-05-04T13:00:00Z',
};

describe('the requests of tools with temper run', () => {
  let server: Server;
  let certificate = '';
  let dialled = 0;
  const sockets: Socket[] = [];
  const network: Network = {
    resolve: async () => ['93.184.215.14'],
    connect: async () => {
      dialled += 1;
      const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
      sockets.push(socket);
      await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
      return socket;
    },
  };

  before(async () => {
    certificate = await readFile(new URL('certificate.pem', TLS), 'utf8');
    const key = await readFile(new URL('key.pem', TLS), 'utf8');
    server = createServer({ key, cert: certificate }, ({ url }, response) => {
      if (url === '/moved') response.writeHead(302, { location: '/' });
      response.end(url === '/huge' ? Buffer.alloc(2_000_000) : Buffer.alloc(BODY, 'a'));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  /** The amounts that a request is charged, and the keys of its reservations. */
  async function charged(path: string, isGranted = true) {
    const amounts: Amounts[] = [];
    const keys: string[] = [];
    const fetch = chargedFetch({
      clock: systemClock,
      ids: ulids,
      network,
      certificateAuthorities: [certificate],
      ledger: {
        reserve: async (_maximum, { key }) => {
          keys.push(key);
          return isGranted ? { granted: true, id: 'r-1' } : DENIAL;
        },
        commit: async (_id, used) => void amounts.push(used),
      },
    });
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 20_000, key: 'call-1' };
    const result = await fetch(
      { url: `https://api.example.com${path}` },
      { hostDenialReason: () => undefined },
      op,
    ).catch((error: unknown) => error);
    return { amounts, keys, result, bytes: amounts[0]?.networkBytes ?? 0 };
  }

  it('a request is charged what its connections moved, with TLS and redirects', async () => {
    const direct = await charged('/');
    assert.equal((direct.result as { status: number }).status, 200);
    assert.equal(direct.amounts.length, 1);
    assert.ok(direct.bytes > BODY && direct.bytes < BODY + 20_000, String(direct.bytes));
    dialled = 0;
    const moved = await charged('/moved');
    assert.equal(dialled, 2);
    assert.ok(moved.bytes > direct.bytes + 1_000, `${moved.bytes} beside ${direct.bytes}`);
  });

  it('a request that fails is charged what it moved', async () => {
    const { result, bytes } = await charged('/huge');
    assert.ok(isTemperError(result, 'TEMPER_FETCH_FAILED'), String(result));
    assert.ok(bytes > 1_000_000, String(bytes));
  });

  it('without a rest of the quota no connection is opened', async () => {
    dialled = 0;
    const { result, amounts } = await charged('/', false);
    assert.ok(isTemperError(result, 'TEMPER_QUOTA_EXCEEDED'), String(result));
    assert.match(result.message, /1,000 of 1,000 bytes allowed by spec\.quotas\.networkBytesPerHour are used/);
    assert.deepEqual([dialled, amounts], [0, []]);
  });

  it('each request of one call has a charge of its own', async () => {
    const [one, other] = [await charged('/'), await charged('/')];
    assert.notEqual(one.keys[0], other.keys[0]);
    assert.match(one.keys[0] ?? '', /^call-1\//);
  });
});
