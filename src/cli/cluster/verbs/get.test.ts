import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { type FakeCluster, type FakeResponse, fakeCluster } from '../api-server.testing.ts';
import { aTerminal, type FakeTerminal } from '../../io.testing.ts';
import { clusterGet, type ClusterGetOptions } from './get.ts';

const AGENTS = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
const COLUMNS = [
  { name: 'Name', priority: 0 },
  { name: 'Ready', priority: 0 },
];

function object(name: string, resourceVersion = '1') {
  return { metadata: { name, namespace: 'team-a', resourceVersion, managedFields: [{}] }, spec: { n: name } };
}

const tableOf = (version: string, ...rows: (readonly [string, string, string])[]) => ({
  kind: 'Table',
  metadata: { resourceVersion: version },
  columnDefinitions: COLUMNS,
  rows: rows.map(([name, ready, resourceVersion]) => ({
    cells: [name, ready],
    object: { metadata: { name, namespace: 'team-a', resourceVersion } },
  })),
});

const listOf = (...names: string[]): FakeResponse => ({
  status: 200,
  body: { kind: 'AgentList', metadata: { resourceVersion: '7' }, items: names.map((name) => object(name)) },
});

async function get(cluster: FakeCluster, options: Partial<ClusterGetOptions>, io = aTerminal()): Promise<FakeTerminal> {
  const code = await clusterGet(
    { kubeconfig: cluster.kubeconfig, targets: ['agents'], output: 'text', ...options },
    io,
  );
  assert.equal(code, 0);
  return io;
}

/** A terminal whose user interrupts after `count` outputs. */
function interruptedAfter(count: number): FakeTerminal {
  const io = aTerminal();
  const interrupt = new AbortController();
  let outputs = 0;
  return {
    ...io,
    signal: interrupt.signal,
    out: (text) => {
      io.out(text);
      outputs += 1;
      if (outputs === count) interrupt.abort(new DOMException('interrupted', 'AbortError'));
    },
  };
}

describe('temper get on a cluster: formats', () => {
  it('json and yaml print one List without managed fields, and the object itself when it is named', async () => {
    await using cluster = await fakeCluster(({ path }) =>
      path === AGENTS ? listOf('a', 'b') : path === `${AGENTS}/a` ? { status: 200, body: object('a') } : undefined,
    );
    const list = JSON.parse((await get(cluster, { output: 'json' })).printed()) as { items: object[] };
    const expected = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', spec: { n: 'a' } };
    assert.deepEqual(list, {
      apiVersion: 'v1',
      kind: 'List',
      metadata: { resourceVersion: '' },
      items: ['a', 'b'].map((name) => ({
        ...expected,
        metadata: { name, namespace: 'team-a', resourceVersion: '1' },
        spec: { n: name },
      })),
    });
    const [yaml] = parseAllDocuments((await get(cluster, { output: 'yaml' })).printed());
    assert.deepEqual(yaml?.toJS(), list);
    const one = JSON.parse((await get(cluster, { targets: ['agent', 'a'], output: 'json' })).printed()) as object;
    assert.deepEqual(one, list.items[0]);
    assert.equal((await get(cluster, { output: 'name' })).printed(), 'agent.temper.dev/a\nagent.temper.dev/b\n');
  });

  it('all namespaces, label selectors and several kinds become requests of the API server', async () => {
    await using cluster = await fakeCluster(({ path }) =>
      path.includes('trustpolicies')
        ? { status: 200, body: tableOf('1') }
        : { status: 200, body: tableOf('1', ['a', 'True', '1']) },
    );
    const everywhere = await get(cluster, { allNamespaces: true, selector: 'team in (a, b)' });
    assert.equal(everywhere.printed(), 'NAMESPACE  NAME  READY\nteam-a     a     True\n');
    assert.equal(cluster.requests[0]?.path, '/apis/temper.dev/v1alpha1/agents?labelSelector=team+in+%28a%2C+b%29');
    const several = await get(cluster, { targets: ['agents,tp,tools'] });
    assert.equal(
      several.printed(),
      'NAME                READY\nagent.temper.dev/a  True\n\nNAME                       READY\nemergenttool.temper.dev/a  True\n',
    );
    assert.match((await get(cluster, { targets: ['tp'] })).printed(), /^No trust policies in prod\/team-a\.$/m);
  });

  it('options that contradict each other are refused before any request', async () => {
    await using cluster = await fakeCluster(() => undefined);
    const wrong: Partial<ClusterGetOptions>[] = [
      { targets: ['agent', 'a'], allNamespaces: true },
      { targets: ['agent', 'a'], selector: 'x=y' },
      { targets: ['all'], watch: true },
      { targets: ['agent', 'a', 'b'], watch: true },
    ];
    for (const options of wrong) await assert.rejects(get(cluster, options), { code: 'TEMPER_USAGE' });
    assert.equal(cluster.requests.length, 0);
  });
});

describe('temper get --watch', () => {
  const line = (type: string, value: object) => `${JSON.stringify({ type, object: value })}\n`;
  const watching = (...bodies: string[]) =>
    fakeCluster(({ path }) => {
      if (!path.includes('watch=true')) return { status: 200, body: tableOf('7', ['analyst', 'False', '5']) };
      return { status: 200, body: bodies.shift() ?? '' };
    });

  it('watch prints the list, then each change in the same columns, and ends at an interrupt', async () => {
    const changed = tableOf('', ['analyst', 'True', '8']);
    await using cluster = await watching(line('BOOKMARK', tableOf('', ['', '', '9'])) + line('MODIFIED', changed));
    const io = await get(cluster, { watch: true }, interruptedAfter(2));
    assert.equal(io.printed(), 'NAME     READY\nanalyst  False\nanalyst  True\n');
    assert.match(cluster.requests[1]?.path ?? '', /agents\?watch=true&allowWatchBookmarks=true&resourceVersion=7$/);
  });

  it('watch continues from the last change after a broken connection, and lists again after an expired version', async () => {
    const first = line('MODIFIED', tableOf('', ['analyst', 'True', '8'])) + '{"type":"MODIF';
    const expired = line('ERROR', { kind: 'Status', code: 410 });
    await using cluster = await watching(first, expired);
    const io = await get(cluster, { watch: true }, interruptedAfter(3));
    assert.equal(io.printed(), 'NAME     READY\nanalyst  False\nanalyst  True\nanalyst  False\n');
    const versions = cluster.requests.map(({ path }) => new URLSearchParams(path.split('?')[1]).get('resourceVersion'));
    assert.deepEqual(versions, [null, '7', '8', null]);
  });

  it('watch prints objects in the requested format', async () => {
    await using cluster = await fakeCluster(({ path }) =>
      path.includes('watch=true')
        ? { status: 200, body: line('ADDED', object('b', '8')) }
        : { status: 200, body: { metadata: { resourceVersion: '7' }, items: [object('a')] } },
    );
    const names = await get(cluster, { watch: true, output: 'name' }, interruptedAfter(2));
    assert.equal(names.printed(), 'agent.temper.dev/a\nagent.temper.dev/b\n');
    const documents = await get(cluster, { watch: true, output: 'yaml' }, interruptedAfter(2));
    const parsed = parseAllDocuments(documents.printed()).map((document) => document.get('spec'));
    assert.equal(parsed.length, 2);
  });

  it('watch reports that the user may not watch', async () => {
    await using cluster = await fakeCluster(({ path }) =>
      path.includes('watch=true')
        ? { status: 403, body: { reason: 'Forbidden', message: 'no' } }
        : { status: 200, body: tableOf('7') },
    );
    await assert.rejects(get(cluster, { watch: true }), {
      code: 'TEMPER_CLUSTER_FORBIDDEN',
      message: /watching agents/,
    });
  });
});
