import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type BrokeredTools, NO_BROKERED_TOOLS } from '../../../../src/gateway/brokered/port.ts';
import { openServiceTools } from '../../../../src/gateway/services/start.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import type { ErrorCode } from '../../../../src/lib/error-codes.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import type { Json } from '../../../../src/lib/json.ts';
import { createTaskRecords } from '../../../../src/nats/tasks/task-records.ts';
import { callBrokered } from '../../../support/gateway/brokered-caller.ts';
import { GATEWAY_TOKEN } from '../../../support/gateway/model-gateway-fixture.ts';
import { POSTGRES_PASSWORD, type PostgresServer, startPostgres } from '../../../support/postgres-server.ts';
import { type EgressSetup, startEgressProxy } from '../../../support/gateway/egress-proxy.ts';

const TLS = new URL('../../../fixtures/tls/', import.meta.url);
const KEY = 'the-key-of-the-search-service';
const SETUP = `
  CREATE TABLE orders (id int PRIMARY KEY, note text);
  INSERT INTO orders SELECT n, 'order ' || n FROM generate_series(1, 500) n;
  CREATE ROLE reader LOGIN PASSWORD '${POSTGRES_PASSWORD}';
  GRANT ALL ON orders TO reader;
`;
const RESULT = { title: 'EUR', url: 'https://example.com/eur' };

/** A service in the form of SearXNG: what it finds depends on the query. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const query = new URL(request.url ?? '', 'https://localhost').searchParams.get('q') ?? '';
  const { authorization = 'none' } = request.headers;
  if (query === 'moved') {
    response.writeHead(302, { location: 'https://evil.example.com/' }).end();
    return;
  }
  const key = authorization === `Bearer ${KEY}` ? 'with key' : 'without key';
  const results = [{ ...RESULT, content: query === 'echo' ? `<b>${authorization}</b>` : key }];
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ results }));
}

const listen = (server: Server): Promise<number> =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done((server.address() as AddressInfo).port)));

/** `web_search` and `sql_query` of the platform, executed by a real gateway for a pod. */
export function serviceToolsSuite(open: () => EgressSetup): void {
  describe('tools of services of the platform', () => {
    const stop = new AbortController();
    let [outside, inside]: Server[] = [];
    let database: PostgresServer;
    let proxy: Awaited<ReturnType<typeof startEgressProxy>>;
    let tools: BrokeredTools;
    let within: BrokeredTools;

    before(async () => {
      const [cert, key] = await Promise.all(
        ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
      );
      outside = createServer({ cert: cert ?? '', key: key ?? '' }, answer);
      inside = createHttpServer(answer);
      const [privatePort, started, publicPort] = await Promise.all([listen(inside), startPostgres(), listen(outside)]);
      database = started;
      await database.execute(SETUP);
      proxy = await startEgressProxy(open(), () => publicPort, stop.signal);
      const { fixture } = open();
      const folder = await mkdtemp(join(fixture.folder, 'services-'));
      const files = {
        egress: `https://127.0.0.1:${proxy.port}`,
        'egress-name': 'api.example.com',
        'ca.crt': proxy.certificate,
        'egress-ca.crt': proxy.certificate,
        token: GATEWAY_TOKEN,
        key: KEY,
        password: `${POSTGRES_PASSWORD}\n`,
        'database-ca.crt': database.certificate,
      };
      await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)));
      const common = { clock: systemClock, deliveryTokens: fixture.deliveryTokens };
      tools = openServiceTools({
        ...common,
        egress: { endpoints: folder, tokenFile: join(folder, 'token') },
        webSearch: { type: 'SearXNG', url: 'https://api.example.com/search', keyFile: join(folder, 'key') },
        databases: [
          {
            name: 'sales',
            type: 'PostgreSQL',
            host: 'localhost',
            port: database.port,
            database: 'postgres',
            user: 'reader',
            namespaces: ['team-a'],
            passwordFile: join(folder, 'password'),
            caFile: join(folder, 'database-ca.crt'),
          },
        ],
      });
      within = openServiceTools({
        ...common,
        webSearch: { type: 'SearXNG', url: `http://localhost:${privatePort}/search`, private: true },
        databases: [],
      });
      fixture.brokered = tools;
      const level = { initial: 'standard' };
      fixture.setPolicy('served', {
        level,
        autonomy: 'Full',
        tools: { allow: ['sql_query'] },
        tainted: { tools: ['web_search', 'sql_query'] },
      });
      fixture.setPolicy('plain', { level, autonomy: 'Full' });
    });
    after(async () => {
      open().fixture.brokered = NO_BROKERED_TOOLS;
      stop.abort();
      await proxy?.running;
      for (const server of [outside, inside]) {
        server?.closeAllConnections();
        server?.close();
      }
      await database?.[Symbol.asyncDispose]();
    });

    const call = (agent: string, name: string, input: Json, message = 'message-1', from = tools) =>
      callBrokered({ ...open(), tools: from }, { agent, name, input, message });
    const search = (agent: string, query: string, message?: string) => call(agent, 'web_search', { query }, message);
    const sql = (agent: string, query: string, message?: string) =>
      call(agent, 'sql_query', { connection: 'sales', query, maxRows: 2 }, message);
    const setUser = (name: string, policy = 'served', spec: object = {}): string =>
      open().fixture.setAgent(name, { grants: { tools: ['*'] }, ...spec }, policy);
    const fails = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
      assert.rejects(work, (error) => {
        assert.ok(isTemperError(error, code), String(error));
        assert.match(error.message, words);
        return true;
      });

    it('an agent without a grant for the host searches through the egress proxy, which charges it, and never sees the key', async () => {
      setUser('searcher');
      const { output, signatures } = await search('searcher', 'rate of EUR');
      assert.deepEqual(output, { results: [{ ...RESULT, snippet: 'with key' }] });
      assert.equal(signatures.length, 1);
      const lines = proxy.lines.filter(({ agent, outcome }) => agent === 'searcher' && outcome === 'ok');
      assert.deepEqual(
        lines.map(({ host }) => host),
        ['api.example.com'],
      );
      await fails('TEMPER_SEARCH_FAILED', search('searcher', 'moved', 'message-2'), /evil\.example\.com/);
      await fails('TEMPER_TOOL_OUTPUT_INVALID', search('searcher', 'echo', 'message-3'), /rotate the credential/);
    });

    it('a private host is reached without the proxy', async () => {
      setUser('insider');
      open().fixture.brokered = within;
      try {
        const { output } = await call('insider', 'web_search', { query: 'rate' }, 'message-1', within);
        assert.deepEqual(output, { results: [{ ...RESULT, snippet: 'without key' }] });
      } finally {
        open().fixture.brokered = tools;
      }
      assert.deepEqual(
        proxy.lines.filter(({ agent }) => agent === 'insider'),
        [],
      );
    });

    it('a database gives rows and keeps every query read-only, whatever the role may do', async () => {
      setUser('analyst');
      const { output } = await sql('analyst', 'SELECT id, note FROM orders ORDER BY id');
      assert.deepEqual(output, {
        columns: [
          { name: 'id', type: 'int4' },
          { name: 'note', type: 'text' },
        ],
        rows: [
          [1, 'order 1'],
          [2, 'order 2'],
        ],
        truncated: true,
      });
      const write = "INSERT INTO orders VALUES (0, 'x') RETURNING id";
      await fails('TEMPER_DATABASE_QUERY_FAILED', sql('analyst', write, 'message-2'), /read-only transaction/);
      const unknown = call('analyst', 'sql_query', { connection: 'payroll', query: 'SELECT 1' }, 'message-3');
      await fails('TEMPER_TOOL_INPUT_INVALID', unknown, /connection/);
      const { output: counted } = await sql('analyst', 'SELECT count(*)::int AS n FROM orders', 'message-4');
      assert.deepEqual((counted as { rows: Json }).rows, [[500]]);
    });

    it('the gateway itself marks the session: after rows and a page of results, nothing is sent without an approval', async () => {
      setUser('reader');
      await sql('reader', 'SELECT note FROM orders');
      await search('reader', 'first', 'message-2');
      await fails(
        'TEMPER_POLICY_DENIED',
        search('reader', 'order 1', 'message-3'),
        /private data and untrusted content/,
      );
      assert.ok((await sql('reader', 'SELECT 1 AS one', 'message-4')).output !== undefined);
    });

    it('the gateway records the category of each tool for the task, and none for a call that failed', async () => {
      const uid = setUser('observed');
      await sql('observed', 'SELECT 1 AS one', 'message-sql');
      await search('observed', 'rate of EUR', 'message-search');
      await fails('TEMPER_DATABASE_QUERY_FAILED', sql('observed', 'SELECT nothing', 'message-failed'), /nothing/);
      const { fixture } = open();
      const records = createTaskRecords(await fixture.nats.connect('gateway'), () => ({
        reserve: async () => undefined,
      }));
      for (const message of ['message-sql', 'message-search', 'message-failed'])
        await records.end(uid, { message, session: 's1', outcome: 'completed', deliveries: 1, endedAt: Date.now() });
      assert.deepEqual(
        (await records.read(uid)).map(({ categories }) => categories),
        [['database'], ['web'], []],
      );
    });

    it('the policy decides about each call, and a quota of the agent holds', async () => {
      setUser('denied', 'plain');
      await fails('TEMPER_POLICY_DENIED', sql('denied', 'SELECT 1'), /category database/);
      setUser('metered', 'served', { quotas: { toolCallsPerMinute: 1 } });
      await sql('metered', 'SELECT 1 AS one');
      await fails('TEMPER_QUOTA_EXCEEDED', sql('metered', 'SELECT 1 AS one', 'message-2'), /toolCallsPerMinute/);
    });
  });
}
