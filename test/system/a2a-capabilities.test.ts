import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { issueTlsIdentity } from '../../src/gateway-client/certificates.testing.ts';
import type { StampedEvent } from '../../src/tools/events.ts';
import { INJECTED, startPeer } from '../support/a2a-peer.ts';
import { jsonLines } from '../support/json-lines.ts';
import { startTemper, temporaryFolder } from './command.ts';

const TOKEN = 'archive-token-0123456789';

const manifests = (port: number): string => `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: asking}
  model: {primary: default/default}
  prompt: {system: You answer questions.}
  grants: {tools: [ask_archive, ask_open]}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: asking}
spec:
  level: {initial: restricted}
  autonomy: Full
  tainted: {tools: []}
---
${capability('archive', 'ask_archive', port, ', connection: archive')}
---
${capability('open', 'ask_open', port, '')}
`;

function capability(name: string, tool: string, port: number, connection: string): string {
  return `apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: ${name}}
spec:
  type: Tool
  description: Asks the agent of the archive.
  tool:
    name: ${tool}
    category: web
    action: comms:external
    inputSchema: {type: object, properties: {message: {type: string}, context: {type: string}, task: {type: string}}}
  backend:
    a2a: {url: "https://localhost:${port}/a2a"${connection}}`;
}

/** The first call asks, the second one goes on with the task, and the third one, in a tainted session, is refused. */
const SCRIPT = `
rules:
  - when: {turn: 1, lastUser: go}
    answer: {toolCalls: [{id: a, name: ask_archive, arguments: {message: "How many books in 2025?"}}]}
  - when: {turn: 2, lastUser: go}
    answer: {toolCalls: [{id: b, name: ask_archive, arguments: {message: "And in 2026?"}}]}
  - when: {turn: 1, lastUser: open}
    answer: {toolCalls: [{id: c, name: ask_open, arguments: {message: "2025"}}]}
  - answer: {text: done}
`;

describe('a Capability with an agent elsewhere in a run', () => {
  it('an agent asks it with the connection of the user, whose token no output contains, and its answer taints the session', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    const { certificate, key, authority } = await issueTlsIdentity(path, 'archive', 'localhost');
    const seen: [IncomingHttpHeaders['authorization'], unknown][] = [];
    const peer = await startPeer({ cert: certificate, key }, ({ authorization }, { method }) => {
      seen.push([authorization, method]);
    });
    peer.unref();
    const config = join(path, 'config/temper');
    await mkdir(config, { recursive: true });
    await writeFile(join(path, 'agent.yaml'), manifests((peer.address() as AddressInfo).port));
    await writeFile(join(path, 'script.yaml'), SCRIPT);
    await writeFile(join(path, 'ca.pem'), authority);
    const run = (message: string) =>
      startTemper(['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '-m', message, '--output', 'json'], {
        cwd: path,
        environment: { XDG_CONFIG_HOME: join(path, 'config'), ARCHIVE_TOKEN: TOKEN },
      }).ended;

    const without = await run('go');
    assert.match(without.stderr, /Capability\/archive cannot be used: connections\.yaml/);

    const hosts = [`localhost:${(peer.address() as AddressInfo).port}`];
    const archive = { name: 'archive', hosts, private: true, tokenEnvironment: 'ARCHIVE_TOKEN' };
    const connections = [{ ...archive, caFile: join(path, 'ca.pem') }];
    await writeFile(join(config, 'connections.yaml'), JSON.stringify({ connections }), { mode: 0o600 });
    // Without a connection the policy decides about the host, and it names none.
    const open = await run('open');
    assert.match(open.stdout, /TEMPER_POLICY_DENIED/);
    assert.deepEqual(seen, []);

    const { code, stdout, stderr } = await run('go');
    peer.close();
    peer.closeAllConnections();
    assert.equal(code, 0, stderr);
    assert.deepEqual(seen, [[`Bearer ${TOKEN}`, 'SendMessage']]);
    assert.ok(!stdout.includes(TOKEN) && !stderr.includes(TOKEN));
    const events = jsonLines<StampedEvent>(stdout);
    const results = events.filter((event) => event.type === 'tool-result');
    assert.ok(results[0]?.summary.includes(INJECTED), JSON.stringify(results[0]));
    assert.match(JSON.stringify(results[1]), /TEMPER_POLICY_DENIED.*untrusted|untrusted.*TEMPER_POLICY_DENIED/);
    assert.ok(events.some((event) => event.type === 'warning' && event.code === 'session-tainted'));
  });
});
