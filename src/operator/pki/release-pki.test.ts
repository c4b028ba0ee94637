import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { describe, it } from 'node:test';
import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { SourceKeyring } from '../../nats/sources/source-cipher.ts';
import { systemClock } from '../../lib/clock.ts';
import type { OperatorConfig } from '../config.ts';
import { readCertificate } from './certificates.ts';
import { ReleasePki } from './release-pki.ts';

const SIGNAL = new AbortController().signal;
const HOST = 'temper-nats-2.temper-nats-headless.temper-system.svc';

/** A namespace in memory: Services with an address, and the Secrets that were applied. */
function namespace() {
  const secrets = new Map<string, object>();
  const client = {
    get: ({ plural }: { plural: string }, { name }: { name: string }) =>
      Promise.resolve(plural === 'services' ? { spec: { clusterIP: '10.0.0.1' } } : secrets.get(name)),
    apply: (_type: object, object: { metadata: { name: string } }) => {
      secrets.set(object.metadata.name, object);
      return Promise.resolve(object);
    },
  } as unknown as KubeClient;
  const read = (name: string): Record<string, string> => {
    const { data } = (secrets.get(name) ?? { data: {} }) as { data: Record<string, string> };
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    );
  };
  const targetAuthorities = { read: async () => 'CA of targets' };
  const pki = (replicas: number, egress: Pick<OperatorConfig, 'egress'> = {}) => {
    const nats = { url: 'tls://temper-nats:4222', service: 'temper-nats', seedFile: '/seed', replicas };
    const gateway = { service: 'temper-gateway', podLabels: {} };
    const config = { namespace: 'temper-system', gateway, nats, ...egress };
    return new ReleasePki({ client, clock: systemClock, config, sourceKeys: new SourceKeyring(), targetAuthorities });
  };
  return { secrets, read, pki };
}

describe('the NATS servers of a release', () => {
  it('one server has a configuration without routes, and a certificate that opens none', async () => {
    const { read, pki } = namespace();
    await pki(1).reconcile(SIGNAL);
    const configuration = read(RELEASE_OBJECTS.natsConfiguration);
    assert.deepEqual(Object.keys(configuration), ['nats-server.conf']);
    assert.doesNotMatch(configuration['nats-server.conf'] ?? '', /cluster/);
    assert.equal(readCertificate(read(RELEASE_OBJECTS.natsCertificate)['tls.crt'])?.isPeer, false);
  });

  it('a cluster has routes to each server, and the certificate has the name of each and opens routes', async () => {
    const { read, pki } = namespace();
    const own = pki(3);
    await own.reconcile(SIGNAL);
    const configuration = read(RELEASE_OBJECTS.natsConfiguration);
    assert.deepEqual(Object.keys(configuration), ['nats-cluster.conf']);
    assert.ok(configuration['nats-cluster.conf']?.includes(`"tls://${HOST}:6222"`));
    const certificate = readCertificate(read(RELEASE_OBJECTS.natsCertificate)['tls.crt']);
    assert.equal(certificate?.isPeer, true);
    assert.ok(certificate.names.includes(HOST) && certificate.names.includes('temper-nats.temper-system.svc'));
    assert.equal(readCertificate(read(RELEASE_OBJECTS.gatewayCertificate)['tls.crt'])?.isPeer, false);
    assert.deepEqual(own.natsServer?.servers[2], { name: 'temper-nats-2', url: `tls://${HOST}:4222` });
    assert.equal(own.natsConflict, undefined);
  });

  for (const [before, after] of [
    [1, 3],
    [3, 1],
  ] as const) {
    it(`a change from ${before} to ${after} servers writes nothing, and is reported until the configuration is deleted`, async () => {
      const { secrets, read, pki } = namespace();
      await pki(before).reconcile(SIGNAL);
      const stored = structuredClone(secrets);
      const changed = pki(after);
      await changed.reconcile(SIGNAL);
      assert.deepEqual(secrets, stored);
      assert.match(changed.natsConflict ?? '', new RegExp(`nats\\.replicas is ${after}`));
      secrets.delete(RELEASE_OBJECTS.natsConfiguration);
      await changed.reconcile(SIGNAL);
      assert.equal(changed.natsConflict, undefined);
      const expected = after === 3 ? 'nats-cluster.conf' : 'nats-server.conf';
      assert.deepEqual(Object.keys(read(RELEASE_OBJECTS.natsConfiguration)), [expected]);
    });
  }
});

describe('the egress proxy of a release', () => {
  it('a release with the proxy has a certificate and an address for it, and one without has neither', async () => {
    const { secrets, read, pki } = namespace();
    const without = pki(1);
    await without.reconcile(SIGNAL);
    assert.equal(secrets.has(RELEASE_OBJECTS.egressCertificate), false);
    assert.equal(without.endpoints?.egress, undefined);
    const own = pki(1, { egress: { service: 'temper-egress', podLabels: {} } });
    assert.equal(await own.reconcile(SIGNAL), true);
    const name = 'temper-egress.temper-system.svc';
    const address = 'https://10.0.0.1:8445';
    assert.deepEqual(own.endpoints?.egress, { address, name, targetAuthorities: 'CA of targets' });
    const { 'tls.crt': certificate, 'ca.crt': authority } = read(RELEASE_OBJECTS.egressCertificate);
    assert.ok(readCertificate(certificate)?.names.includes(name));
    assert.equal(authority, own.endpoints?.caBundle);
    assert.equal(await own.reconcile(SIGNAL), false);
  });
});
