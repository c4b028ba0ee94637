import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const TEMPER = fileURLToPath(new URL('../../bin/temper', import.meta.url));
const NODE = fileURLToPath(new URL('../../bin/node', import.meta.url));
const ROOT = new URL('../../', import.meta.url).href;

/** Calls a provider as the gateway does, a host of the cluster, and the API server. The failures do not matter: the proxy refuses every call. */
const PROGRAM = `
import { createTransport } from '${ROOT}src/kube/client/transport.ts';
import { systemClock } from '${ROOT}src/lib/clock.ts';
const access = {
  server: new URL('https://api-server.invalid'),
  credentials: async () => ({ headers: {}, tls: {} }),
  refresh: async () => {},
};
const metrics = { count() {}, gauge() {}, observe() {}, watch() {} };
const transport = createTransport({ access, clock: systemClock, metrics });
const { signal } = new AbortController();
await transport.send({ method: 'GET', path: '/' }, signal).catch(() => {});
for (const url of ['https://models.invalid/v1', 'http://models-2.invalid/v1', 'http://replay.temper-system.svc.invalid.svc/v1']) {
  await globalThis.fetch(url).catch(() => {});
}
await transport[Symbol.asyncDispose]();
`;

const PROBE = ['--type', 'openai-compatible', '--base-url', 'https://models.invalid/v1', '--model', 'm', '-m', 'Hi'];

describe('the proxy of the gateway and of the command line', () => {
  it('model providers are called through the proxy, and neither the API server nor Services of the cluster', async () => {
    const proxied: string[] = [];
    const proxy = createServer((request, response) => {
      proxied.push(new URL(request.url ?? '').host);
      response.writeHead(502).end();
    });
    proxy.on('connect', (request, socket) => {
      proxied.push((request.url ?? '').replace(/:\d+$/, ''));
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    // The variables that the chart sets.
    const environment = {
      PATH: process.env['PATH'] ?? '',
      NODE_USE_ENV_PROXY: '1',
      HTTPS_PROXY: url,
      HTTP_PROXY: url,
      NO_PROXY: 'localhost,127.0.0.1,::1,.svc,.cluster.local',
    };
    try {
      await promisify(execFile)(NODE, ['--input-type=module', '--eval', PROGRAM], { env: environment });
    } finally {
      await new Promise((resolve) => proxy.close(resolve));
    }
    assert.deepEqual(proxied, ['models.invalid', 'models-2.invalid']);
  });

  it('the command line calls a provider through a proxy with a password only when Node reads the proxy', async () => {
    const asked: unknown[] = [];
    const proxy = createServer();
    proxy.on('connect', (request, socket) => {
      asked.push([request.url, request.headers['proxy-authorization']]);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as AddressInfo;
    const environment = { PATH: process.env['PATH'] ?? '', HTTPS_PROXY: `http://user:secret@127.0.0.1:${port}` };
    const probe = (more: Record<string, string>) =>
      promisify(execFile)(TEMPER, ['model', 'probe', ...PROBE], { env: { ...environment, ...more } }).then(
        () => assert.fail('no provider answers'),
        ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
      );
    try {
      await probe({});
      assert.deepEqual(asked, []);
      assert.doesNotMatch(await probe({ NODE_USE_ENV_PROXY: '1' }), /secret/);
    } finally {
      await new Promise((resolve) => proxy.close(resolve));
    }
    const authorization = `Basic ${Buffer.from('user:secret').toString('base64')}`;
    assert.ok(asked.length > 0);
    for (const one of asked) assert.deepEqual(one, ['models.invalid:443', authorization]);
  });
});
