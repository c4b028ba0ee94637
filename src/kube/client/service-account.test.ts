import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { roleSource } from './cluster-access.ts';
import { loadServiceAccount } from './service-account.ts';

const POD = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };

describe('the ServiceAccount of a pod', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-account-'));
  });
  after(() => rm(folder, { recursive: true }));

  const mount = async (files: Record<string, string>) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  };
  const refuses = (work: Promise<unknown>, message: RegExp) =>
    assert.rejects(work, (error: Error) => isTemperError(error, 'TEMPER_KUBE_CONFIG') && message.test(error.message));

  it('the address is in the environment; token, CA and namespace are in the mounted files', async () => {
    await mount({ token: 'first\n', 'ca.crt': 'CA', namespace: 'temper-system\n' });
    const { server, namespace, read } = await loadServiceAccount(POD, folder);
    assert.deepEqual([server.href, namespace], ['https://10.96.0.1/', 'temper-system']);
    assert.deepEqual(await read(), { headers: { authorization: 'Bearer first' }, tls: { ca: 'CA' } });
    const ipv6 = await loadServiceAccount({ ...POD, KUBERNETES_SERVICE_HOST: 'fd00::1' }, folder);
    assert.equal(ipv6.server.host, '[fd00::1]');
  });

  it('a token that the kubelet replaced is read', async () => {
    await mount({ token: 'first', 'ca.crt': 'CA', namespace: 'n' });
    const { read } = await loadServiceAccount(POD, folder);
    await mount({ token: 'second' });
    assert.equal((await read()).headers['authorization'], 'Bearer second');
  });

  it('a missing address or a missing file is an error that names it', async () => {
    await mount({ token: 't', 'ca.crt': 'CA', namespace: 'n' });
    await refuses(loadServiceAccount({}, folder), /KUBERNETES_SERVICE_HOST/);
    await refuses(loadServiceAccount({ ...POD, KUBERNETES_SERVICE_PORT: 'x' }, folder), /KUBERNETES_SERVICE_PORT/);
    await rm(join(folder, 'token'));
    await refuses(loadServiceAccount(POD, folder), /token.*automountServiceAccountToken/);
  });

  it('a role in a pod uses the ServiceAccount unless KUBECONFIG is set', () => {
    assert.equal(roleSource(POD).kind, 'cluster');
    assert.equal(roleSource({ ...POD, KUBECONFIG: '/config' }).kind, 'default');
    assert.equal(roleSource({}).kind, 'default');
  });
});
