import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { gatewayConfig } from '../../../src/gateway/config.ts';
import { parseConnections } from '../../../src/connections/connection.ts';
import { parseOperatorConfig } from '../../../src/operator/config.ts';
import { configOf, renderChart } from '../../cluster/helm.ts';

const SALES = {
  name: 'sales',
  type: 'PostgreSQL',
  host: 'db.example.com',
  port: 6432,
  database: 'sales',
  user: 'reader',
  namespaces: ['team-a'],
};
const SOURCES = { credential: { existingSecret: 'sales-db', key: 'p' }, caBundle: { configMap: 'sales-ca', key: 'c' } };
const SEARXNG = { type: 'SearXNG', url: 'http://searxng.tools.svc:8080/search', private: true };

describe('the services of a release', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-chart-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const render = async (gateway: object, ...flags: string[]) => {
    const file = join(folder, 'values.yaml');
    await writeFile(file, stringify({ gateway }));
    const objects = await renderChart('--values', file, ...flags);
    const config = gatewayConfig(configOf(objects, 'temper-gateway', 'gateway.yaml'));
    const ofGateway = JSON.stringify(objects.filter(({ metadata }) => metadata.name === 'temper-gateway'));
    return { objects, config, ofGateway };
  };

  it('gateways read the databases and the search service, and reach no other port', async () => {
    const { config, ofGateway } = await render({ webSearch: SEARXNG, databases: [{ ...SALES, ...SOURCES }] });
    const mount = '/etc/temper/databases/sales';
    assert.deepEqual(config.databases, [{ ...SALES, passwordFile: `${mount}/password`, caFile: `${mount}/ca.crt` }]);
    assert.deepEqual(config.webSearch, SEARXNG);
    assert.ok(ofGateway.includes(`{"name":"database-sales","mountPath":"${mount}","readOnly":true}`));
    assert.match(ofGateway, /"secret":\{"name":"sales-db","items":\[\{"key":"p","path":"password"\}\]\}/);
    assert.match(ofGateway, /"configMap":\{"name":"sales-ca","items":\[\{"key":"c","path":"ca\.crt"\}\]\}/);
    assert.match(ofGateway, /"ports":\[\{"port":6432,"protocol":"TCP"\},\{"port":8080,"protocol":"TCP"\}\]/);
    assert.doesNotMatch(ofGateway, /"name":"search"/);
  });

  it('a public search service has its key in a file, and needs the egress proxy', async () => {
    const brave = { type: 'Brave', namespaces: ['team-a'], existingSecret: 'brave' };
    const { config, ofGateway } = await render({ webSearch: brave });
    assert.equal(config.webSearch?.keyFile, '/etc/temper/search/key');
    assert.deepEqual(config.webSearch?.namespaces, ['team-a']);
    assert.match(ofGateway, /"secret":\{"name":"brave","items":\[\{"key":"api-key","path":"key"\}\]\}/);
    await assert.rejects(render({ webSearch: brave }, '--set', 'egress.enabled=false'), /webSearch: .*egress\.enabled/);
  });

  it('the values refuse SQLite and a database of all namespaces', async () => {
    const sqlite = { name: 'notes', type: 'SQLite', namespaces: ['team-a'] };
    await assert.rejects(render({ databases: [sqlite] }), /databases\/0/);
    const { namespaces: _namespaces, ...everywhere } = SALES;
    await assert.rejects(render({ databases: [{ ...everywhere, ...SOURCES }] }), /databases\/0.*namespaces/s);
  });

  it('the operator knows where connections lead and who has the tools of services, without any credential', async () => {
    const connection = { name: 'rates', hosts: ['api.example.com:443'], namespaces: ['team-a'] };
    const values = { ...connection, credential: { existingSecret: 'rates', key: 'token' }, header: 'x-api-key' };
    const databases = [
      { ...SALES, ...SOURCES },
      { ...SALES, ...SOURCES, name: 'stock', namespaces: ['team-a', 'team-b'] },
    ];
    const repository = { url: 'https://git.example.com/code.git', branchPrefix: 'agents/' };
    const code = { ...values, name: 'code', hosts: ['git.example.com:443'], repository };
    const { objects } = await render({ connections: [values, code], webSearch: SEARXNG, databases });
    const gateway = configOf(objects, 'temper-gateway', 'gateway.yaml');
    assert.deepEqual(parseConnections(gateway['connections'], 'chart')[1]?.repository, repository);
    const operator = parseOperatorConfig(stringify(configOf(objects, 'temper-operator', 'operator.yaml')));
    assert.deepEqual(operator.connections, [connection]);
    assert.deepEqual(operator.serviceTools, [
      { name: 'web_search' },
      { name: 'sql_query', namespaces: ['team-a', 'team-b'] },
    ]);
  });
});
