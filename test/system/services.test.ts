import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { StampedEvent } from '../../src/tools/events.ts';
import { jsonLines } from '../support/json-lines.ts';
import { startTemper, temper, temporaryFolder } from './command.ts';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: reading}
  model: {primary: default/default}
  prompt: {system: You answer questions.}
  grants: {tools: [web_search, sql_query]}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: reading}
spec:
  level: {initial: restricted}
  autonomy: Full
  tools: {allow: [sql_query]}
`;
const SCRIPT = `
rules:
  - name: search
    when: {turn: 1}
    answer: {toolCalls: [{id: a, name: web_search, arguments: {query: exchange rate, count: 3}}]}
  - name: query
    when: {turn: 2}
    answer:
      toolCalls:
        - {id: b, name: sql_query, arguments: {connection: shop, query: "SELECT count(*) AS n FROM orders WHERE total > ?", parameters: [2]}}
        - {id: c, name: sql_query, arguments: {connection: shop, query: PRAGMA query_only = OFF}}
  - name: answer
    when: {turn: 3}
    answer: {text: done}
`;

describe('the services of a user', () => {
  it('an agent of a run searches the web and reads a database with the services of the configuration folder', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    const seen: (string | string[] | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers['x-subscription-token']);
      const results = [{ title: 'Rates', url: 'https://example.com/rates', description: 'One euro is 1.1 dollars.' }];
      response.end(JSON.stringify({ web: { results } }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    server.unref();
    const { port } = server.address() as AddressInfo;
    const config = join(path, 'config/temper');
    await mkdir(config, { recursive: true });
    await writeFile(join(path, 'agent.yaml'), MANIFESTS);
    await writeFile(join(path, 'script.yaml'), SCRIPT);
    const search = { type: 'Brave', url: `http://localhost:${port}/search`, keyEnvironment: 'SHOP_SEARCH_KEY' };
    const environment = { XDG_CONFIG_HOME: join(path, 'config'), SHOP_SEARCH_KEY: 'key-0123456789' };
    const run = () =>
      startTemper(['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '-m', 'go', '--output', 'json'], {
        cwd: path,
        environment,
      }).ended;

    const without = await run();
    assert.match(
      without.stderr,
      /agent "analyst" has no tool web_search, because your configuration folder has no search\.yaml/,
    );
    assert.match(
      without.stderr,
      /agent "analyst" has no tool sql_query, because your configuration folder has no databases\.yaml/,
    );

    const shop = new DatabaseSync(join(path, 'shop.db'));
    shop.exec('CREATE TABLE orders (total REAL); INSERT INTO orders VALUES (1), (2), (3), (4)');
    shop.close();
    const databases = [{ name: 'shop', type: 'SQLite', description: 'Orders.', file: join(path, 'shop.db') }];
    await writeFile(join(config, 'search.yaml'), JSON.stringify(search), { mode: 0o600 });
    await writeFile(join(config, 'databases.yaml'), JSON.stringify({ databases }), { mode: 0o600 });
    const { code, stdout, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.deepEqual(seen, ['key-0123456789']);
    assert.ok(!stdout.includes('key-0123456789'));
    const events = jsonLines<StampedEvent>(stdout);
    const [found, counted, refusedQuery] = events.filter((event) => event.type === 'tool-result');
    assert.match(found?.summary ?? '', /One euro is 1\.1 dollars/);
    assert.match(counted?.summary ?? '', /\[\[2\]\]/);
    assert.equal(refusedQuery?.code, 'TEMPER_DATABASE_QUERY_FAILED');
    assert.ok(events.some((event) => event.type === 'warning' && event.code === 'session-tainted'));

    const explained = await temper(['policy', 'explain', '-f', 'agent.yaml', '--tool', 'sql_query'], {
      cwd: path,
      environment,
    });
    assert.equal(explained.code, 0, explained.stderr);
    await chmod(join(config, 'search.yaml'), 0o666);
    const refused = await run();
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(refused.stderr, /only its user can write/);
    server.close();
  });
});
