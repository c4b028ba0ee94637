import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { parseConnections } from '../../../src/connections/connection.ts';
import { gatewayConfig } from '../../../src/gateway/config.ts';
import { type ChartObject, configOf, helm, renderChart } from '../../cluster/helm.ts';
import { chartReplayRules } from '../../support/chart-replay.ts';
import { METRICS } from '../../../src/kube/metrics.ts';
import { parseOperatorConfig } from '../../../src/operator/config.ts';
import { readReplayScript } from '../../../src/models/replay/script/read-script.ts';
import { EGRESS_METRICS, GATEWAY_METRICS, OPERATOR_METRICS } from '../../../src/telemetry/temper-metrics.ts';

const CHART = new URL('../../../charts/temper/', import.meta.url).pathname;
const GOLDEN = new URL('../../fixtures/chart/', import.meta.url);
const NAMESPACED = ['--set', 'namespaces={team-a,team-b}'];
const REPLAY = ['--set', 'replay.enabled=true'];
const WEBHOOKS = ['--set', 'gateway.webhooks.enabled=true'];
const EXPORTER = ['--set', 'nats.exporter.enabled=true', '--set', 'monitoring.serviceMonitor.enabled=true'];
const THREE_SERVERS = ['--set', 'nats.replicas=3'];

describe('the chart', () => {
  it('helm lint accepts the chart', async () => {
    await helm('lint', CHART, '--strict', '--kube-version', '1.36.3');
  });

  it('the rendered chart equals the golden files', async () => {
    const standard = briefs(await renderChart());
    await assertGolden('default.yaml', standard);
    await assertGolden('namespaced.yaml', changes(standard, briefs(await renderChart(...NAMESPACED))));
    await assertGolden('replay.yaml', changes(standard, briefs(await renderChart(...REPLAY))));
    await assertGolden('webhooks.yaml', changes(standard, briefs(await renderChart(...WEBHOOKS))));
    await assertGolden('nats-exporter.yaml', changes(standard, briefs(await renderChart(...EXPORTER))));
    await assertGolden('three-nats-servers.yaml', changes(standard, briefs(await renderChart(...THREE_SERVERS))));
  });

  it('the scripted model answers the samples and the quick start, unless the values have a script', async () => {
    const scriptOf = (objects: readonly ChartObject[]): string => {
      const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'temper-replay');
      assert.ok(found !== undefined);
      return (found['data'] as Record<string, string>)['replay.yaml'] ?? '';
    };
    const { rules } = readReplayScript(scriptOf(await renderChart(...REPLAY)), 'replay.yaml');
    assert.deepEqual(rules, await chartReplayRules());
    const own = 'rules: [{answer: {text: own}}]';
    assert.equal(scriptOf(await renderChart(...REPLAY, '--set-json', `replay.script=${JSON.stringify(own)}`)), own);
  });

  it('every value has a description, and every described value has a default', async () => {
    const read = async (file: string) => parse(await readFile(join(CHART, file), 'utf8')) as Schema & Values;
    const schema = await read('values.schema.json');
    const values = await read('values.yaml');
    const described = pathsOf(schema, schema).map(({ path }) => path);
    assert.deepEqual(
      described.filter((path) => !has(values, path)),
      [],
    );
    assert.deepEqual(
      pathsOf(schema, schema).filter(({ text }) => text === ''),
      [],
    );
    const page = await readFile(new URL('../../../docs/reference/chart.md', import.meta.url), 'utf8');
    for (const { path, text } of pathsOf(schema, schema)) {
      assert.ok(page.includes(`| \`${path}\` | ${text}`), `docs/reference/chart.md lacks ${path}: ${text}`);
    }
  });

  const REFUSED: readonly (readonly [setting: string, place: string])[] = [
    ['gateway.replicas=0', '/gateway/replicas'],
    ['image.repositry=x', '/image'],
    ['unknown=x', 'additional properties'],
    ['admissionPolicies.approvers={bob}', '/admissionPolicies/approvers/0'],
    ["admissionPolicies.systemAccounts={a' || true || 'b}", '/admissionPolicies/systemAccounts/0'],
    ['operator.resources.cpu=lots', '/operator/resources/cpu'],
    ['nats.enabled=yes', '/nats/enabled'],
    ['egress.proxy.httpsProxy=https://proxy.corp', '/egress/proxy/httpsProxy'],
    ['egress.proxy.credential.password=x', '/egress/proxy/credential'],
    ['egress.excludedRanges={10.0.0.0}', '/egress/excludedRanges/0'],
    ['egress.excludedRanges={fd00::/8}', '/egress/excludedRanges/0'],
    ['nats.replicas=2', '/nats/replicas'],
    ['namespaces={Team A}', '/namespaces/0'],
    ['sandboxClasses=[]', '/sandboxClasses'],
    ['sandboxClasses[0].name=UPPER', '/sandboxClasses/0'],
    ['image.digest=sha256:short', '/image/digest'],
    ['agentPrograms[0].image=helper:latest', '/agentPrograms/0'],
    ['gateway.providers[0].name=x', '/gateway/providers/0'],
    ['gateway.aliases.nonsense=x', '/gateway/aliases'],
    ['networkPolicies.apiServerPorts={0}', '/networkPolicies/apiServerPorts/0'],
    ['users.subjects[0].kind=ServiceAccount', '/users/subjects/0'],
    ['tracing.endpoint=collector:4318', '/tracing/endpoint'],
    ['tracing.sampleRatio=2', '/tracing/sampleRatio'],
    ["admissionPolicies.agentPods.images={x' || true || 'y}", '/admissionPolicies/agentPods/images/0'],
    ["admissionPolicies.agentPods.imagePullSecrets={x'y}", '/admissionPolicies/agentPods/imagePullSecrets/0'],
    ['admissionPolicies.checkStatusWrites=yes', '/admissionPolicies/checkStatusWrites'],
    ['image.registry=mirror.example/', '/image/registry'],
    ['global.imageRegistry=two words', '/global/imageRegistry'],
    ['gateway.proxy.httpsProxy=http://user:password@proxy:3128', '/gateway/proxy/httpsProxy'],
    ['gateway.proxy.noProxy={a,b}', '/gateway/proxy/noProxy/0'],
    ['gateway.caBundle.key=', '/gateway/caBundle/key'],
    ['gateway.extraEnv[0].value=x', '/gateway/extraEnv/0'],
    ['networkPolicies.dnsPorts={0}', '/networkPolicies/dnsPorts/0'],
    ['monitoring.serviceMonitor.interval=often', '/monitoring/serviceMonitor/interval'],
    ['flowControl.shares=0', '/flowControl/shares'],
    ['priorityClassName=Not A Name', '/priorityClassName'],
    ['crds.enabled=no', '/crds/enabled'],
  ];
  for (const [setting, place] of REFUSED) {
    it(`helm rejects ${setting} and names its path`, async () => {
      await assert.rejects(renderChart('--set-json', jsonOf(setting)), (error: Error) => error.message.includes(place));
    });
  }

  it('the chart rejects a Kubernetes version that is too old', async () => {
    const old = ['--kube-version', '1.32.9'];
    await assert.rejects(renderChart(...old), /incompatible with Kubernetes v1\.32\.9/);
  });

  it('the memory limit of Go leaves a tenth of the memory of NATS, in every unit', async () => {
    for (const [memory, bytes] of [
      ['1000', '900'],
      ['100k', '90000'],
      ['512Mi', '483183820'],
      ['3Gi', '2899102924'],
      ['1T', '900000000000'],
    ] as const) {
      const objects = await renderChart('--set-string', `nats.resources.memory=${memory}`);
      const nats = workloadsOf(objects).find(({ name }) => name === 'temper-nats');
      const limit = nats?.template.spec.containers[0]?.env?.find(({ name }) => name === 'GOMEMLIMIT');
      assert.equal(limit?.value, bytes, memory);
    }
  });

  it('the gateway can send traces only when a collector is configured', async () => {
    const egressOf = (objects: readonly ChartObject[]): string => {
      const policy = objects.find(
        ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'temper-gateway',
      );
      assert.ok(policy !== undefined);
      return JSON.stringify((policy['spec'] as { egress: object[] }).egress);
    };
    const closed = await renderChart();
    assert.equal(configOf(closed, 'temper-gateway', 'gateway.yaml')['tracing'], undefined);
    for (const [endpoint, port] of [
      ['http://collector.observability:4318/v1/traces', 4318],
      ['https://collector.example/v1/traces', 443],
    ] as const) {
      const objects = await renderChart('--set-json', `tracing=${JSON.stringify({ endpoint, sampleRatio: 0.25 })}`);
      const config = configOf(objects, 'temper-gateway', 'gateway.yaml');
      assert.deepEqual(config['tracing'], { endpoint, ratio: 0.25 });
      assert.ok(gatewayConfig(config).tracing !== undefined);
      assert.ok(egressOf(objects).length > egressOf(closed).length);
      assert.ok(egressOf(objects).includes(`"port":${port}`));
    }
  });

  it('the operator of a second release accepts the installed admission policies of the first', async () => {
    const policiesOf = async (...flags: string[]) => {
      const config = configOf(await renderChart(...flags), 'temper-operator', 'operator.yaml');
      return parseOperatorConfig(stringify(config)).admissionPolicies?.policies ?? {};
    };
    const own = await policiesOf();
    const second = await policiesOf('--set', 'clusterPrerequisites.enabled=false');
    assert.deepEqual(Object.keys(second), Object.keys(own));
    assert.ok(Object.values(own).every((digest) => digest.startsWith('sha256:')) && Object.keys(own).length === 14);
    assert.deepEqual(new Set(Object.values(second)), new Set(['installed']));
  });

  it('providers, keys, sandbox classes and pools reach the configuration of gateway and operator', async () => {
    await using folder = await temporary();
    const file = join(folder.path, 'values.yaml');
    const provider = {
      name: 'openai',
      type: 'openai',
      key: 'openai',
      models: [{ name: 'gpt-4o-mini', inputPrice: 0.15 }],
    };
    const pool = [{ namespace: 'team-a', size: 3 }];
    const resources = { cpu: '1', memory: '1Gi', ephemeralStorage: '1Gi' };
    const values = {
      gateway: {
        providers: [provider],
        aliases: { 'default/default': 'openai/gpt-4o-mini' },
        providerKeys: { existingSecret: 'keys' },
      },
      sandboxClasses: [
        {
          name: 'gvisor',
          runtimeClassName: 'gvisor',
          image: 'example.com/s@sha256:1',
          resources,
          workspace: '2Gi',
          pool,
        },
      ],
    };
    await writeFile(file, stringify(values));
    const objects = await renderChart('--values', file);
    const gateway = configOf(objects, 'temper-gateway', 'gateway.yaml');
    const { key: _, ...rest } = provider;
    assert.deepEqual(gateway['models'], {
      providers: [{ ...rest, keyFile: '/etc/temper/provider-keys/openai' }],
      aliases: { 'default/default': 'openai/gpt-4o-mini' },
      judges: { canaryPercent: 5, resumed: [] },
    });
    const operator = configOf(objects, 'temper-operator', 'operator.yaml');
    assert.deepEqual(operator['sandboxClasses'], values.sandboxClasses);
  });

  it('an agent program reaches the configuration of the operator, and its image the admission policy of agent pods', async () => {
    const image = `example.com/helper@sha256:${'a'.repeat(64)}`;
    const agentPrograms = [{ name: 'helper', image, folder: '/opt/helper', program: 'main.js', arguments: ['--acp'] }];
    const objects = await renderChart('--set-json', `agentPrograms=${JSON.stringify(agentPrograms)}`);
    const operator = configOf(objects, 'temper-operator', 'operator.yaml');
    assert.deepEqual(operator['agentPrograms'], agentPrograms);
    const text = JSON.stringify(operator);
    assert.deepEqual(parseOperatorConfig(text).agentPrograms, agentPrograms);
    assert.ok(policyText(objects, 'temper-agent-pods').includes(`'${image}'`));
  });

  it('a connection reaches the configuration, the mounts and the network policy of the gateway', async () => {
    await using folder = await temporary();
    const file = join(folder.path, 'values.yaml');
    const git = { type: 'Gitea', apiUrl: 'https://git.local:3000/api/v1', repository: 'org/tools', approver: 'a' };
    const connection = { name: 'tools', hosts: ['git.local:3000'], private: true, namespaces: ['team-a'], git };
    const sources = { credential: { existingSecret: 'tools-repo', key: 't' }, caBundle: { configMap: 'ca', key: 'c' } };
    const plain = { type: 'Git', url: 'https://git.local:3000/tools.git', username: 'ci', approver: 'a' };
    const named = { ...connection, name: 'plain', git: plain };
    const oauth = { tokenUrl: 'https://auth.example.com/token', clientId: 'temper', scopes: ['find'] };
    const search = { name: 'search', hosts: ['mcp.example.com:443'], namespaces: ['team-a'], oauth };
    const connections = [connection, named, search].map((one) => ({ ...one, ...sources }));
    await writeFile(file, stringify({ gateway: { connections } }));
    const objects = await renderChart('--values', file);
    const folderOf = '/etc/temper/connections/tools';
    const config = configOf(objects, 'temper-gateway', 'gateway.yaml');
    const expected = { ...connection, credentialFile: `${folderOf}/token`, caFile: `${folderOf}/ca.crt` };
    const other = {
      ...named,
      credentialFile: '/etc/temper/connections/plain/token',
      caFile: '/etc/temper/connections/plain/ca.crt',
    };
    const client = {
      ...search,
      credentialFile: '/etc/temper/connections/search/token',
      caFile: '/etc/temper/connections/search/ca.crt',
    };
    assert.deepEqual(parseConnections(config['connections'], 'chart'), [expected, other, client]);
    await writeFile(
      file,
      stringify({ gateway: { connections: [{ ...named, ...sources, git: { ...plain, apiUrl: plain.url } }] } }),
    );
    await assert.rejects(renderChart('--values', file), /apiUrl/);
    const gateway = JSON.stringify(objects.filter(({ metadata }) => metadata.name === 'temper-gateway'));
    assert.match(gateway, /"name":"connection-tools","mountPath":"\/etc\/temper\/connections\/tools","readOnly":true/);
    assert.match(gateway, /"secret":\{"name":"tools-repo","items":\[\{"key":"t","path":"token"\}\]\}/);
    assert.match(gateway, /"configMap":\{"name":"ca","items":\[\{"key":"c","path":"ca\.crt"\}\]\}/);
    assert.match(gateway, /"ports":\[\{"port":443,"protocol":"TCP"\},\{"port":3000,"protocol":"TCP"\}\]/);
  });

  it('podLabels cannot replace a label that selects the pods', async () => {
    for (const name of ['app.kubernetes.io/component', 'temper.dev/agent-pod']) {
      const flags = ['--set-json', `podLabels=${JSON.stringify({ [name]: 'x' })}`];
      await assert.rejects(renderChart(...flags), (error: Error) => error.message.includes('/podLabels'));
    }
  });

  it('a registry precedes every image, and global.imageRegistry replaces it', async () => {
    const own = await renderChart('--set', 'image.registry=one.example,sandboxImage.registry=two.example:5000/x');
    assert.deepEqual(imagesOf(own), ['nats:2.15.2-scratch', 'one.example/temper:0.1.0']);
    const classes = (objects: readonly ChartObject[]) =>
      (configOf(objects, 'temper-operator', 'operator.yaml')['sandboxClasses'] as { image: string }[]).map(
        (one) => one.image,
      );
    assert.deepEqual(classes(own), ['two.example:5000/x/temper-sandbox:0.1.0']);
    const flags = ['--set', 'image.registry=one.example,global.imageRegistry=mirror.example'];
    const mirrored = await renderChart(...flags);
    assert.deepEqual(imagesOf(mirrored), ['mirror.example/nats:2.15.2-scratch', 'mirror.example/temper:0.1.0']);
    assert.deepEqual(classes(mirrored), ['mirror.example/temper-sandbox:0.1.0']);
    assert.match(policyText(mirrored, 'temper-agent-pods'), /'mirror\.example\/temper-sandbox:0\.1\.0'/);
  });

  it('the admission policy of agent pods permits the images and pull secrets of the release and those listed', async () => {
    const images = ['other.example/a:1', 'side.example/*'];
    const flags = [
      '--set-json',
      `admissionPolicies.agentPods=${JSON.stringify({ images, imagePullSecrets: ['other'] })}`,
    ];
    const text = policyText(await renderChart(...flags, '--set', 'imagePullSecrets={own}'), 'temper-agent-pods');
    assert.match(
      text,
      /c\.image in \['other\.example\/a:1', 'temper-sandbox:0\.1\.0', 'temper:0\.1\.0'\] \|\| c\.image\.startsWith\('side\.example\/'\)/,
    );
    assert.match(text, /s\.name in \['other', 'own'\]/);
  });

  it('labels, annotations, affinity, priority and environment reach every pod of the release', async () => {
    const values = {
      podLabels: { team: 'x' },
      podAnnotations: { 'example.com/a': 'b' },
      affinity: { nodeAffinity: {} },
      priorityClassName: 'other',
      'operator.extraEnv': [{ name: 'A', value: 'operator' }],
      'gateway.extraEnv': [{ name: 'A', value: 'gateway' }],
    };
    const flags = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);
    const workloads = workloadsOf(await renderChart(...flags, ...REPLAY));
    assert.equal(workloads.length, 5);
    for (const { name, template } of workloads) {
      assert.equal(template.metadata.labels['team'], 'x', name);
      assert.equal(template.metadata.annotations['example.com/a'], 'b', name);
      assert.deepEqual(
        [template.spec.affinity, template.spec.priorityClassName],
        [{ nodeAffinity: {} }, 'other'],
        name,
      );
      const component = name.slice('temper-'.length);
      const hasEnv = component === 'operator' || component === 'gateway';
      const [env] = template.spec.containers.map((container) => container.env?.find((one) => one.name === 'A')?.value);
      assert.equal(env, hasEnv ? component : undefined, name);
    }
  });

  it('a proxy and certificate authorities reach the gateway alone, and its network policy permits the proxy', async () => {
    const flags = ['gateway.proxy.httpsProxy=http://proxy.corp:3128', 'gateway.proxy.noProxy={models.corp}'];
    flags.push(
      'gateway.caBundle.configMap=corporate-ca',
      'tracing.endpoint=http://collector.observability:4318/v1/traces',
    );
    const objects = await renderChart('--set', flags.join(','));
    const environments = Object.fromEntries(
      workloadsOf(objects).map(({ name, template }) => [
        name,
        Object.fromEntries(template.spec.containers.flatMap(({ env = [] }) => env.map((one) => [one.name, one.value]))),
      ]),
    );
    const gateway = environments['temper-gateway'];
    assert.equal(gateway?.['NODE_USE_ENV_PROXY'], '1');
    assert.equal(gateway['HTTPS_PROXY'], 'http://proxy.corp:3128');
    assert.equal(
      gateway['NO_PROXY'],
      'localhost,127.0.0.1,::1,.svc,.cluster.local,collector.observability,models.corp',
    );
    assert.equal(gateway['NODE_EXTRA_CA_CERTS'], '/etc/temper/provider-ca/ca.crt');
    assert.equal(environments['temper-operator']?.['HTTPS_PROXY'], undefined);
    const policy = objects.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'temper-gateway');
    assert.ok(JSON.stringify(policy?.['spec']).includes('"port":3128'));
  });

  it('DNS is permitted to kube-system, OpenShift and NodeLocal DNSCache, on both ports', async () => {
    const policy = (await renderChart()).find(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'temper-api-server',
    );
    assert.ok(policy !== undefined);
    const [, dns] = (policy['spec'] as { egress: { ports: { port: number }[]; to: object[] }[] }).egress;
    assert.deepEqual(new Set(dns?.ports.map(({ port }) => port)), new Set([53, 5353]));
    const text = JSON.stringify(dns?.to);
    for (const peer of ['kube-system', 'openshift-dns', '169.254.20.10/32']) assert.ok(text.includes(peer), peer);
  });

  it('without crds.enabled the chart installs the admission policies and no CRD', async () => {
    const kinds = (await renderChart('--set', 'crds.enabled=false')).map(({ kind }) => kind);
    assert.ok(!kinds.includes('CustomResourceDefinition'));
    assert.equal(kinds.filter((kind) => kind === 'ValidatingAdmissionPolicy').length, 14);
  });

  it('every alert reads metrics that a role reports, and has a runbook line', async () => {
    const flags = ['--set', 'monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.labels.release=p'];
    const rule = (await renderChart(...flags)).find(({ kind }) => kind === 'PrometheusRule');
    assert.equal(rule?.metadata.labels?.['release'], 'p');
    const { groups } = rule['spec'] as { groups: { rules: { alert: string; expr: string }[] }[] };
    const alerts = groups.flatMap(({ rules }) => rules);
    assert.equal(alerts.length, 29);
    const page = await readFile(new URL('../../../docs/reference/alerts.md', import.meta.url), 'utf8');
    const metrics = { ...METRICS, ...OPERATOR_METRICS, ...GATEWAY_METRICS, ...EGRESS_METRICS };
    for (const { alert, expr } of alerts) {
      assert.ok(page.includes(`| \`${alert}\` |`), alert);
      const read = [...expr.matchAll(/([a-z_]+)\{ *namespace="temper-system"/g)].map(([, name = '']) => name);
      assert.ok(read.length > 0, `${alert}: ${expr}`);
      for (const name of read) assert.ok(name.replace(/_bucket$/, '') in metrics, `${alert}: ${name}`);
    }
  });

  it('every panel of the dashboard reads metrics that a role reports', async () => {
    const objects = await renderChart('--set', 'monitoring.dashboard.enabled=true');
    const map = objects.find(({ metadata }) => metadata.name === 'temper-dashboard');
    assert.equal(map?.metadata.labels?.['grafana_dashboard'], '1');
    interface Panel {
      id: number;
      title: string;
      gridPos: { x: number; y: number };
      targets?: { expr: string; legendFormat: string }[];
    }
    const { panels } = JSON.parse((map['data'] as Record<string, string>)['temper.json'] ?? '') as { panels: Panel[] };
    assert.equal(new Set(panels.map(({ id }) => id)).size, 30);
    assert.equal(new Set(panels.map(({ gridPos: { x, y } }) => `${x}/${y}`)).size, 30, 'no panel covers another one');
    const metrics = { ...METRICS, ...OPERATOR_METRICS, ...GATEWAY_METRICS, process_resident_memory_bytes: {} };
    for (const { title, targets = [] } of panels) {
      for (const { expr, legendFormat } of targets) {
        assert.match(legendFormat, /^[\w{} ]+$/, title);
        const read = [...expr.matchAll(/([a-z_]+)\{namespace="\$namespace"\}/g)].map(([, name = '']) => name);
        assert.ok(read.length > 0, `${title}: ${expr}`);
        for (const name of read) assert.ok(name.replace(/_bucket$/, '') in metrics, `${title}: ${name}`);
      }
    }
  });

  it('the ServiceMonitor selects the metrics Services of operator, gateway and egress proxy', async () => {
    const objects = await renderChart('--set', 'monitoring.serviceMonitor.enabled=true');
    const monitor = objects.find(({ kind }) => kind === 'ServiceMonitor');
    assert.ok(monitor !== undefined);
    const { selector, endpoints } = monitor['spec'] as {
      selector: { matchLabels: Record<string, string>; matchExpressions: { key: string; values: string[] }[] };
      endpoints: { port: string }[];
    };
    const services = objects.filter(({ kind, metadata }) => {
      const { labels = {} } = metadata;
      const equal = Object.entries(selector.matchLabels).every(([name, value]) => labels[name] === value);
      return (
        kind === 'Service' &&
        equal &&
        selector.matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ''))
      );
    });
    const scraped = services.filter((service) =>
      (service['spec'] as { ports: { name: string }[] }).ports.some(({ name }) => name === endpoints[0]?.port),
    );
    assert.deepEqual(scraped.map(({ metadata }) => metadata.name).sort(), [
      'temper-egress-metrics',
      'temper-gateway-metrics',
      'temper-operator-metrics',
    ]);
  });
});

interface Workload {
  readonly name: string;
  readonly template: {
    metadata: { labels: Record<string, string>; annotations: Record<string, string> };
    spec: {
      affinity?: object;
      priorityClassName?: string;
      containers: { image: string; env?: { name: string; value: string }[] }[];
    };
  };
}

function workloadsOf(objects: readonly ChartObject[]): Workload[] {
  return objects
    .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
    .map(({ metadata, ...object }) => ({
      name: metadata.name,
      template: (object['spec'] as unknown as { template: Workload['template'] }).template,
    }));
}

function imagesOf(objects: readonly ChartObject[]): string[] {
  const images = workloadsOf(objects).flatMap(({ template }) => template.spec.containers.map(({ image }) => image));
  return [...new Set(images)].sort();
}

function policyText(objects: readonly ChartObject[], name: string): string {
  const policy = objects.find(({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === name);
  assert.ok(policy !== undefined);
  return (policy['spec'] as { validations: { expression: string }[] }).validations
    .map(({ expression }) => expression)
    .join('\n');
}

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly $ref?: string;
  readonly definitions?: Readonly<Record<string, Schema>>;
}
type Values = Readonly<Record<string, unknown>>;

/** The paths of all leaf values, with their descriptions. */
function pathsOf(schema: Schema, root: Schema, path = ''): { path: string; text: string }[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const full = path === '' ? name : `${path}.${name}`;
    const below = pathsOf(child, root, full);
    return below.length > 0 ? below : [{ path: full, text: child.description ?? '' }];
  });
}

function has(values: Values, path: string): boolean {
  let at: unknown = values;
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !(name in at)) return false;
    at = (at as Values)[name];
  }
  return true;
}

/** Converts `a.b[0].c=x` to the syntax of `--set-json`, where x is a number, a list or text. */
function jsonOf(setting: string): string {
  const path = setting.slice(0, setting.indexOf('='));
  const value = setting.slice(path.length + 1);
  if (/^[0-9[]/.test(value)) return `${path}=${value}`;
  if (value.startsWith('{')) {
    const text = value.slice(1, -1);
    return `${path}=${JSON.stringify([/^[0-9]+$/.test(text) ? Number(text) : text])}`;
  }
  return `${path}=${JSON.stringify(value)}`;
}

/** Objects by `kind namespace/name`, without content that other tests cover: schemas, expressions, scripts and their digests. */
function briefs(objects: readonly ChartObject[]): Record<string, unknown> {
  const entries = objects.map((object) => {
    const { kind, metadata } = object;
    const { labels: _, annotations = {}, ...rest } = metadata;
    const kept = Object.entries(annotations).filter(([name]) => !/checksum|admission-policy-digest/.test(name));
    const header = kept.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(kept) };
    const key = `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`;
    if (kind === 'CustomResourceDefinition' || kind === 'ValidatingAdmissionPolicy') return [key, { metadata: header }];
    const text = JSON.stringify({ ...object, metadata: header }).replace(
      /"checksum\/[a-z]+":"[0-9a-f]{64}"/g,
      '"checksum":"…"',
    );
    return [
      key,
      parse(
        text.replace(/sha256:[0-9a-f]{64}/g, 'sha256:…').replace(/"replay\.yaml":"(\\.|[^"\\])*"/, '"replay.yaml":"…"'),
      ),
    ];
  });
  return Object.fromEntries(entries.sort(([a], [b]) => String(a).localeCompare(String(b))));
}

/** The objects that differ from the default rendering. */
function changes(standard: Record<string, unknown>, other: Record<string, unknown>): Record<string, unknown> {
  const absent = Object.keys(standard).filter((key) => !(key in other));
  const differs = ([key, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(standard[key]);
  return {
    ...Object.fromEntries(absent.map((key) => [key, 'absent'])),
    ...Object.fromEntries(Object.entries(other).filter(differs)),
  };
}

/** Compares the value with a golden file. With UPDATE_GOLDEN=1 it writes the file instead. */
async function assertGolden(name: string, value: object): Promise<void> {
  const text = stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
  const file = new URL(name, GOLDEN);
  if (process.env['UPDATE_GOLDEN'] === '1') return writeFile(file, text);
  assert.equal(text, await readFile(file, 'utf8'), `${name}: review the difference; UPDATE_GOLDEN=1 updates the file`);
}

async function temporary(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'temper-chart-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
