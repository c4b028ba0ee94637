import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { issueTlsIdentity } from '../../src/gateway-client/certificates.testing.ts';
import type { StampedEvent } from '../../src/tools/events.ts';
import { jsonLines } from '../support/json-lines.ts';
import { startTemper, temporaryFolder } from './command.ts';

const TOKEN = 'rates-token-0123456789';
const manifests = (port: number): string => `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: reading}
  model: {primary: default/default}
  prompt: {system: You answer questions.}
  grants: {tools: [exchange_rate]}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: reading}
spec:
  level: {initial: restricted}
  autonomy: Full
---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: exchange-rate}
spec:
  type: Tool
  description: The exchange rate of a currency.
  hasSideEffects: false
  tool:
    name: exchange_rate
    category: web
    action: comms:external
    inputSchema: {type: object, properties: {currency: {type: string}}, required: [currency]}
  backend:
    http: {url: "https://localhost:${port}/rates", method: GET, connection: rates}
`;
const SCRIPT = `
rules:
  - name: ask
    when: {turn: 1}
    answer: {toolCalls: [{id: a, name: exchange_rate, arguments: {currency: USD}}]}
  - name: answer
    when: {turn: 2}
    answer: {text: done}
`;

describe('a Capability with an HTTP backend in a run', () => {
  it('an agent calls it with the connection of the user, whose token no output contains, and has no tool without it', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    const { certificate, key, authority } = await issueTlsIdentity(path, 'rates', 'localhost');
    const seen: string[] = [];
    const server = createServer({ cert: certificate, key }, ({ url, headers }, response) => {
      seen.push(`${url} ${headers.authorization}`);
      response.setHeader('content-type', 'application/json').end('{"rate": 1.1}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    server.unref();
    const { port } = server.address() as AddressInfo;
    const config = join(path, 'config/temper');
    await mkdir(config, { recursive: true });
    await writeFile(join(path, 'agent.yaml'), manifests(port));
    await writeFile(join(path, 'script.yaml'), SCRIPT);
    await writeFile(join(path, 'ca.pem'), authority);
    const run = () =>
      startTemper(['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '-m', 'go', '--output', 'json'], {
        cwd: path,
        environment: { XDG_CONFIG_HOME: join(path, 'config'), RATES_KEY: TOKEN },
      }).ended;

    const without = await run();
    assert.match(without.stderr, /Capability\/exchange-rate cannot be used: connections\.yaml/);
    assert.deepEqual(seen, []);

    const rates = { name: 'rates', hosts: [`localhost:${port}`], private: true, tokenEnvironment: 'RATES_KEY' };
    const connections = [{ ...rates, caFile: join(path, 'ca.pem') }];
    await writeFile(join(config, 'connections.yaml'), JSON.stringify({ connections }), { mode: 0o600 });
    const { code, stdout, stderr } = await run();
    server.close();
    assert.equal(code, 0, stderr);
    assert.deepEqual(seen, [`/rates?currency=USD Bearer ${TOKEN}`]);
    assert.ok(!stdout.includes(TOKEN) && !stderr.includes(TOKEN));
    const events = jsonLines<StampedEvent>(stdout);
    const [found] = events.filter((event) => event.type === 'tool-result');
    assert.match(found?.summary ?? '', /1\.1/);
    assert.ok(events.some((event) => event.type === 'warning' && event.code === 'session-tainted'));
  });
});
