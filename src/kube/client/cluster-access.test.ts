import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { type ClusterAccess, loadClusterAccess } from './cluster-access.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';

describe('cluster access', () => {
  let folder: string;
  const clock = new FakeClock();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-access-'));
  });
  after(() => rm(folder, { recursive: true }));

  /** A kubeconfig with one context `c` in namespace `team`. */
  async function load(cluster: object, user: object = {}, context?: string): Promise<ClusterAccess> {
    const path = join(folder, 'config');
    const config = {
      clusters: [{ name: 'k', cluster }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', namespace: 'team' } }],
      'current-context': 'c',
    };
    await writeFile(path, JSON.stringify(config));
    return loadClusterAccess({ kind: 'file', path, ...(context === undefined ? {} : { context }) }, clock);
  }

  it('loadClusterAccess reads server, namespace, CA, certificate and token', async () => {
    const data = (text: string): string => Buffer.from(text).toString('base64');
    const cluster = {
      server: 'https://10.0.0.1:6443',
      'certificate-authority-data': data('CA'),
      'tls-server-name': 'kubernetes',
    };
    const user = { token: 't', 'client-certificate-data': data('CERT'), 'client-key-data': data('KEY') };
    const access = await load(cluster, user);
    assert.deepEqual([access.server.href, access.namespace], ['https://10.0.0.1:6443/', 'team']);
    const { headers, tls } = await access.credentials();
    assert.deepEqual(headers, { authorization: 'Bearer t' });
    assert.deepEqual(
      [String(tls.ca), String(tls.cert), String(tls.key), tls.servername, tls.rejectUnauthorized],
      ['CA', 'CERT', 'KEY', 'kubernetes', undefined],
    );
    const byPassword = await load(cluster, { username: 'a', password: 'b' });
    assert.deepEqual((await byPassword.credentials()).headers, { authorization: 'Basic YTpi' });
  });

  it('credential files are read again after ten seconds, and immediately after refresh', async () => {
    const [ca, certificate, key] = ['ca.crt', 'c.crt', 'c.key'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    for (const file of [ca, certificate, key]) await writeFile(file, 'first');
    const user = { 'client-certificate': certificate, 'client-key': key };
    const access = await load({ server: 'https://k', 'certificate-authority': ca }, user);
    const seen = async (): Promise<string> => String((await access.credentials()).tls.ca);
    assert.equal(await seen(), 'first');
    await writeFile(ca, 'second');
    assert.equal(await seen(), 'first');
    await clock.advance(10_001);
    assert.equal(await seen(), 'second');
    await writeFile(ca, 'third');
    await access.refresh();
    assert.equal(await seen(), 'third');
    await rm(ca);
    await clock.advance(10_001);
    await assert.rejects(seen(), (error) => isTemperError(error, 'TEMPER_KUBE_CONFIG'));
    await writeFile(ca, 'fourth');
    assert.equal(await seen(), 'fourth');
  });

  it('unsupported or unsafe kubeconfig settings are rejected', async () => {
    const refused = (error: unknown): boolean => isTemperError(error, 'TEMPER_KUBE_CONFIG');
    await assert.rejects(load({ server: 'http://k' }), refused);
    await assert.rejects(load({ server: 'k' }), refused);
    await assert.rejects(load({ server: 'https://k', 'proxy-url': 'http://proxy' }), refused);
    await assert.rejects(load({ server: 'https://k' }, {}, 'other'), refused);
    await writeFile(join(folder, 'broken'), '{');
    await assert.rejects(loadClusterAccess({ kind: 'file', path: join(folder, 'broken') }, clock), refused);
  });
});
