import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { type InstalledCluster, provideProgram, RELEASE_NAMESPACE, ROOT } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, type PodObject, policyObject } from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

const NAMESPACE = 'monitoring';
const AGENTS_NAMESPACE = 'scraped';
const NAME = 'prometheus';
const PORT = 9090;
const COMPONENT = 'app.kubernetes.io/component';
const IMAGE = 'localhost/prometheus:e2e';
/** A short interval keeps the test fast. A scrape has as long, which has to suffice on a busy machine. */
const GLOBAL = 'global: {scrape_interval: 4s}\n';

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A Prometheus in the cluster with the scrape jobs of the documentation. */
export function prometheus(cluster: () => InstalledCluster): void {
  describe('a Prometheus in the cluster', () => {
    before(async () => {
      await provideProgram(cluster().node, NAME, IMAGE);
      const job = await readFile(join(ROOT, 'manifests/prometheus/scrape-config.yaml'), 'utf8');
      await cluster().apply(namespaceObject(NAMESPACE, {}));
      await cluster().apply(...server(`${GLOBAL}${job}`));
      await cluster().waitFor(`pod/${NAME}`, 'Ready', NAMESPACE);
    });

    async function query(expression: string): Promise<Series[]> {
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${NAME}:${PORT}/proxy/api/v1/query`;
      const answer = await cluster().kubectl('get', '--raw', `${path}?query=${encodeURIComponent(expression)}`);
      return (JSON.parse(answer) as { data: { result: Series[] } }).data.result;
    }

    /** The value of a query with one result. */
    async function valueOf(expression: string): Promise<number> {
      const [series] = await query(expression);
      assert.ok(series !== undefined, expression);
      return Number(series.value[1]);
    }

    it('Prometheus scrapes every gateway, operator and egress proxy', async () => {
      const path = `/api/v1/namespaces/${RELEASE_NAMESPACE}/pods?labelSelector=${COMPONENT}%20in%20(gateway,operator,egress)`;
      await pollAssertion('all scrape targets to be up', async () => {
        const pods = (await cluster().node.admin.call('GET', path)).body['items'] as PodObject[];
        const running = pods.map(({ metadata, status }) => [metadata.labels?.[COMPONENT], status.podIP]);
        const read = await query('up == 1');
        assert.deepEqual(
          read.map(({ metric: { job, instance } }) => `${job} ${instance}`).toSorted(),
          running.map(([component, address]) => `temper-${component} ${address}:9090`).toSorted(),
        );
        assert.equal(read.length, 6);
      });
    });

    it('Prometheus sums the messages of agents over all replicas', async () => {
      const answered = 'sum(temper_messages_total{outcome="answered"})';
      const agents = new NamespaceAgents(cluster(), AGENTS_NAMESPACE);
      await cluster().apply(namespaceObject(AGENTS_NAMESPACE), policyObject(AGENTS_NAMESPACE));
      await cluster().apply(agentObject(AGENTS_NAMESPACE, 'counted'));
      await agents.waitForReason('counted', 'Running');
      const before = await valueOf(`${answered} or vector(0)`);
      assert.equal(await agents.sendAndWait('counted', 'hello'), 'heard: hello');
      await pollAssertion('the count of the message', async () => assert.equal(await valueOf(answered), before + 1));
      await pollAssertion('a running agent in the metrics', async () =>
        assert.ok((await valueOf('max(temper_agents{reason="Running"})')) >= 1),
      );
      assert.ok((await valueOf('sum(rate(controller_runtime_reconcile_total{controller="agents"}[1m]))')) > 0);
    });
  });
}

function server(config: string): object[] {
  const metadata = { name: NAME, namespace: NAMESPACE };
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'prometheus.yml': config } },
    { apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec() },
  ];
}

function podSpec(): object {
  return {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_534,
      fsGroup: 65_534,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: NAME,
        image: IMAGE,
        imagePullPolicy: 'Never',
        args: ['--config.file=/etc/prometheus/prometheus.yml', '--storage.tsdb.path=/data'],
        readinessProbe: { httpGet: { path: '/-/ready', port: PORT }, periodSeconds: 1 },
        resources: { requests: { cpu: '20m', memory: '128Mi' }, limits: { memory: '512Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/prometheus' },
          { name: 'data', mountPath: '/data' },
        ],
      },
    ],
    volumes: [
      { name: 'config', configMap: { name: NAME } },
      { name: 'data', emptyDir: {} },
    ],
  };
}
