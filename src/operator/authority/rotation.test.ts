import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { connect, createServer } from 'node:tls';
import { createAuthority, isDue, isSignedBy, issue, readCertificate } from './certificates.ts';
import { bundleOf, rotated } from './rotation.ts';

const DAY = 86_400_000;
const NOW = new Date('2026-05-04T12:00:00Z');
const after = (milliseconds: number) => new Date(NOW.getTime() + milliseconds);

describe('the certificates of an installation', () => {
  it('hold in a TLS handshake for their names and addresses, and for no other', async () => {
    const now = new Date();
    const authority = await createAuthority('test', now, DAY);
    const names = { names: ['temper-gateway.temper-system.svc'], addresses: ['127.0.0.1'] };
    const { certificate, key } = await issue(authority, names, now, DAY);
    const server = createServer({ cert: certificate, key }, (socket) => socket.end('hello'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const shake = async (servername: string, ca: string) => {
      const socket = connect({ port, host: '127.0.0.1', servername, ca });
      try {
        await once(socket, 'secureConnect');
        return 'trusted';
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      } finally {
        socket.destroy();
      }
    };
    assert.equal(await shake('temper-gateway.temper-system.svc', authority.certificate), 'trusted');
    assert.equal(await shake('another.svc', authority.certificate), 'ERR_TLS_CERT_ALTNAME_INVALID');
    const stranger = await createAuthority('test', now, DAY);
    assert.notEqual(await shake('temper-gateway.temper-system.svc', stranger.certificate), 'trusted');
    assert.deepEqual(
      [await isSignedBy(certificate, authority.certificate), await isSignedBy(certificate, stranger.certificate)],
      [true, false],
    );
    server.close();
  });

  it('say what they are for', async () => {
    const authority = await createAuthority('test', NOW, DAY);
    const names = { names: ['a.svc', 'b.svc'], addresses: ['10.96.0.7', 'fd00::7'] };
    const pair = await issue(authority, names, NOW, DAY);
    const facts = readCertificate(pair.certificate);
    assert.deepEqual([facts?.names, facts?.addresses.length], [names.names, 2]);
    const leaf = new X509Certificate(pair.certificate);
    assert.equal(leaf.ca, false);
    assert.equal(new X509Certificate(authority.certificate).ca, true);
    assert.equal(readCertificate('no certificate'), undefined);
  });

  it('are due once two thirds of their life are over', () => {
    const validity = { notBefore: NOW, notAfter: after(90 * DAY) };
    assert.deepEqual([isDue(validity, after(59 * DAY)), isDue(validity, after(60 * DAY))], [false, true]);
  });
});

describe('the rotation of the authority', () => {
  it('announces the next one, lets it sign an hour later, and trusts the one before as long as it lives', async () => {
    const first = await rotated(undefined, NOW);
    assert.equal(await rotated(first, after(3 * 365 * DAY)), first);
    const late = after(4 * 365 * DAY);
    const announced = await rotated(first, late);
    assert.equal(announced.current, first.current);
    assert.ok(announced.next !== undefined && bundleOf(announced).includes(announced.next.certificate));
    const soon = new Date(late.getTime() + 60_000);
    assert.equal(await rotated(announced, soon), announced);
    const swapped = await rotated(announced, new Date(late.getTime() + 3_700_000));
    assert.deepEqual(swapped, { current: announced.next, previous: first.current.certificate });
    assert.equal(bundleOf(swapped), `${announced.next.certificate}${first.current.certificate}`);
    const settled = await rotated(swapped, after(5 * 365 * DAY + DAY));
    assert.deepEqual(settled, { current: announced.next });
  });

  it('begins anew with what cannot be read, and with one that is over', async () => {
    const first = await rotated(undefined, NOW);
    const broken = await rotated({ current: { certificate: 'x', key: 'y' } }, NOW);
    assert.ok(readCertificate(broken.current.certificate));
    const over = await rotated(first, after(6 * 365 * DAY));
    assert.notEqual(over.current.certificate, first.current.certificate);
  });
});
