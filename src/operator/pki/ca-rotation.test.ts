import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { connect, createServer } from 'node:tls';
import { createCa, issueCertificate } from './certificate-issuer.ts';
import { isDue, isSignedBy, readCertificate } from './certificates.ts';
import { caBundleOf, rotateCa } from './ca-rotation.ts';

const DAY = 86_400_000;
const NOW = new Date('2026-05-04T12:00:00Z');
const after = (milliseconds: number) => new Date(NOW.getTime() + milliseconds);

describe('certificates', () => {
  it('certificates are valid in a TLS handshake only for their names and addresses', async () => {
    const now = new Date();
    const authority = await createCa('test', now, DAY);
    const names = { names: ['temper-gateway.temper-system.svc'], addresses: ['127.0.0.1'] };
    const { certificate, key } = await issueCertificate(authority, names, now, DAY);
    const server = createServer({ cert: certificate, key }, (socket) => socket.end('hello'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const handshake = async (servername: string, ca: string) => {
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
    assert.equal(await handshake('temper-gateway.temper-system.svc', authority.certificate), 'trusted');
    assert.equal(await handshake('another.svc', authority.certificate), 'ERR_TLS_CERT_ALTNAME_INVALID');
    const otherCa = await createCa('test', now, DAY);
    assert.notEqual(await handshake('temper-gateway.temper-system.svc', otherCa.certificate), 'trusted');
    assert.deepEqual(
      [isSignedBy(certificate, authority.certificate), isSignedBy(certificate, otherCa.certificate)],
      [true, false],
    );
    server.close();
  });

  it('certificates contain their names, addresses and CA flag', async () => {
    const authority = await createCa('test', NOW, DAY);
    const names = { names: ['a.svc', 'b.svc'], addresses: ['10.96.0.7', 'fd00::7'] };
    const pair = await issueCertificate(authority, names, NOW, DAY);
    const facts = readCertificate(pair.certificate);
    assert.deepEqual(facts, {
      ...names,
      isPeer: false,
      notBefore: after(-300_000),
      notAfter: after(DAY),
    });
    const peer = await issueCertificate(authority, { ...names, isPeer: true }, NOW, DAY);
    assert.deepEqual(readCertificate(peer.certificate), { ...facts, isPeer: true });
    const leaf = new X509Certificate(pair.certificate);
    assert.equal(leaf.ca, false);
    assert.equal(new X509Certificate(authority.certificate).ca, true);
    assert.equal(readCertificate('no certificate'), undefined);
  });

  it('certificates are due for renewal after two thirds of their lifetime', () => {
    const validity = { notBefore: NOW, notAfter: after(90 * DAY) };
    assert.deepEqual([isDue(validity, after(59 * DAY)), isDue(validity, after(60 * DAY))], [false, true]);
  });
});

describe('CA rotation', () => {
  it('the CA rotation announces the next CA, starts signing with it an hour later, and trusts the previous CA until it expires', async () => {
    const first = await rotateCa(undefined, NOW);
    assert.equal(await rotateCa(first, after(3 * 365 * DAY)), first);
    const late = after(4 * 365 * DAY);
    const announced = await rotateCa(first, late);
    assert.equal(announced.current, first.current);
    assert.ok(announced.next !== undefined && caBundleOf(announced).includes(announced.next.certificate));
    const soon = new Date(late.getTime() + 60_000);
    assert.equal(await rotateCa(announced, soon), announced);
    const swapped = await rotateCa(announced, new Date(late.getTime() + 3_700_000));
    assert.deepEqual(swapped, { current: announced.next, previous: first.current.certificate });
    assert.equal(caBundleOf(swapped), `${announced.next.certificate}${first.current.certificate}`);
    const completed = await rotateCa(swapped, after(5 * 365 * DAY + DAY));
    assert.deepEqual(completed, { current: announced.next });
  });

  it('the CA rotation creates a new CA when the stored one is unreadable or expired', async () => {
    const first = await rotateCa(undefined, NOW);
    const broken = await rotateCa({ current: { certificate: 'x', key: 'y' } }, NOW);
    assert.ok(readCertificate(broken.current.certificate));
    const renewed = await rotateCa(first, after(6 * 365 * DAY));
    assert.notEqual(renewed.current.certificate, first.current.certificate);
  });
});
