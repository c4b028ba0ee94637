import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { type Installation, provideProgram, RELEASE_NAMESPACE, ROOT } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, type PodObject, policyObject } from './scene.ts';

const NAMESPACE = 'monitoring';
const AGENTS_NAMESPACE = 'scraped';
const NAME = 'prometheus';
const PORT = 9090;
const COMPONENT = 'app.kubernetes.io/component';
const IMAGE = 'localhost/prometheus:e2e';
/** Scrapes follow each other fast, so that a test need not wait. */
const GLOBAL = 'global: {scrape_interval: 1s}\n';

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A Prometheus of a platform team, with the jobs of the docs. */
export function prometheus(installation: () => Installation): void {
  describe('a Prometheus in the cluster', () => {
    before(async () => {
      await provideProgram(installation().node, NAME, IMAGE);
      const job = await readFile(join(ROOT, 'manifests/prometheus/scrape-config.yaml'), 'utf8');
      await installation().apply(namespaceObject(NAMESPACE, {}));
      await installation().apply(...server(`${GLOBAL}${job}`));
      await installation().waitFor(`pod/${NAME}`, 'Ready', NAMESPACE);
    });

    async function query(expression: string): Promise<Series[]> {
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${NAME}:${PORT}/proxy/api/v1/query`;
      const answer = await installation().kubectl('get', '--raw', `${path}?query=${encodeURIComponent(expression)}`);
      return (JSON.parse(answer) as { data: { result: Series[] } }).data.result;
    }

    /** The value of a query that has one. */
    async function valueOf(expression: string): Promise<number> {
      const [series] = await query(expression);
      assert.ok(series !== undefined, expression);
      return Number(series.value[1]);
    }

    it('reads every gateway and operator', async () => {
      const path = `/api/v1/namespaces/${RELEASE_NAMESPACE}/pods?labelSelector=${COMPONENT}%20in%20(gateway,operator)`;
      await eventually(async () => {
        const pods = (await installation().node.admin.call('GET', path)).body['items'] as PodObject[];
        const running = pods.map(({ metadata, status }) => [metadata.labels?.[COMPONENT], status.podIP]);
        const read = await query('up == 1');
        assert.deepEqual(
          read.map(({ metric: { job, instance } }) => `${job} ${instance}`).toSorted(),
          running.map(([component, address]) => `temper-${component} ${address}:9090`).toSorted(),
        );
        assert.equal(read.length, 4);
      });
    });

    it('counts what agents do, over all replicas', async () => {
      const answered = 'sum(temper_messages_total{outcome="answered"})';
      const agents = new Agents(installation(), AGENTS_NAMESPACE);
      await installation().apply(namespaceObject(AGENTS_NAMESPACE), policyObject(AGENTS_NAMESPACE));
      await installation().apply(agentObject(AGENTS_NAMESPACE, 'counted'));
      await agents.until('counted', 'Running');
      const before = await valueOf(`${answered} or vector(0)`);
      assert.equal(await agents.ask('counted', 'hello'), 'heard: hello');
      await eventually(async () => assert.equal(await valueOf(answered), before + 1));
      await eventually(async () => assert.ok((await valueOf('max(temper_agents{reason="Running"})')) >= 1));
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
