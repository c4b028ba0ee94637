import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { apiClient } from '../../cluster/api-client.ts';
import { isWrite } from '../../cluster/audit.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { freePorts } from '../../cluster/process.ts';
import { pollValue } from '../../support/poll.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';

describe('startControlPlane', () => {
  let plane: ControlPlane;

  before(async () => {
    // The first allocation contains a port in use, as can happen when several tests start at once.
    const portHolder = createServer((socket) => socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => portHolder.listen(0, '127.0.0.1', resolve));
    const { port } = portHolder.address() as { port: number };
    const choices = [{ secure: port }, {}];
    const choose = async () => ({ ...(await freePorts('etcd', 'peer', 'secure')), ...choices.shift() });
    try {
      plane = await startControlPlane(
        { controllerManager: true, audit: true, featureGates: { AllAlpha: false } },
        choose,
      );
    } finally {
      await new Promise((resolve) => portHolder.close(resolve));
    }
    assert.equal(choices.length, 0);
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('the audit log records every write once, with user and result', async () => {
    const body = { metadata: { name: 'counted' } };
    await plane.admin.call('POST', CONFIG_MAPS, { body });
    await plane.admin.call('POST', CONFIG_MAPS, { body });
    const patch = { body: { data: { a: 'b' } }, contentType: 'application/merge-patch+json' };
    await plane.admin.call('PATCH', `${CONFIG_MAPS}/counted`, patch);
    await plane.admin.call('GET', `${CONFIG_MAPS}/counted`);
    await plane.admin.call('DELETE', `${CONFIG_MAPS}/counted`, { as: { user: 'unprivileged' } });
    await plane.admin.call('DELETE', `${CONFIG_MAPS}/counted`);
    const all = await plane.audit();
    const ours = all.filter(({ user, resource }) => user === 'admin' && resource === 'configmaps');
    const seen = ours.filter(isWrite).map(({ verb, name, namespace, code }) => [verb, name, namespace, code]);
    assert.deepEqual(seen, [
      ['create', 'counted', 'default', 201],
      ['create', 'counted', 'default', 409],
      ['patch', 'counted', 'default', 200],
      ['delete', 'counted', 'default', 403],
      ['delete', 'counted', 'default', 200],
    ]);
    assert.equal(ours.filter((entry) => !isWrite(entry)).length, 1);
  });

  it('a token holder can read the signing keys of the API server', async () => {
    await plane.admin.call('POST', ACCOUNTS, { body: { metadata: { name: 'reader' } } });
    const spec = { audiences: ['https://kubernetes.default.svc'], expirationSeconds: 600 };
    const { status, body } = await plane.admin.call('POST', `${ACCOUNTS}/reader/token`, { body: { spec } });
    assert.equal(status, 201, JSON.stringify(body));
    const { token } = body['status'] as { token: string };
    using holder = apiClient(plane.url, { ca: plane.ca, token });
    const accept = 'application/jwk-set+json';
    const keys = await holder.call('GET', '/openid/v1/jwks', { accept });
    assert.equal(keys.status, 200, JSON.stringify(keys.body));
    const header = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: string };
    assert.ok((keys.body['keys'] as { kid: string }[]).some(({ kid }) => kid === header.kid));
    const issuer = await holder.call('GET', '/.well-known/openid-configuration');
    assert.equal(issuer.body['issuer'], 'https://kubernetes.default.svc');
  });

  it('the controller manager creates the service account of a new namespace', async () => {
    await plane.admin.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'team-a' } } });
    const account = () => plane.admin.call('GET', '/api/v1/namespaces/team-a/serviceaccounts/default');
    await pollValue('the service account', account, ({ status }) => status === 200);
  });

  it('a failed start throws the name and the log of the component', async () => {
    await assert.rejects(
      startControlPlane({ featureGates: { NoSuchGate: true } }),
      /kube-apiserver ended: .*NoSuchGate/s,
    );
  });
});
