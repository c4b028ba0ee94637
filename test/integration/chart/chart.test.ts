import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { gatewayConfig } from '../../../src/gateway/config.ts';
import { type ChartObject, helm, renderChart } from '../../cluster/helm.ts';
import { parseOperatorConfig } from '../../../src/operator/config.ts';

const CHART = new URL('../../../charts/temper/', import.meta.url).pathname;
const GOLDEN = new URL('../../fixtures/chart/', import.meta.url);
const NAMESPACED = ['--set', 'namespaces={team-a,team-b}'];
const REPLAY = ['--set', 'replay.enabled=true'];

describe('the chart', () => {
  it('helm lint accepts the chart', async () => {
    await helm('lint', CHART, '--strict', '--kube-version', '1.36.3');
  });

  it('the rendered chart equals the golden files', async () => {
    const standard = briefs(await renderChart());
    await assertGolden('default.yaml', standard);
    await assertGolden('namespaced.yaml', changes(standard, briefs(await renderChart(...NAMESPACED))));
    await assertGolden('replay.yaml', changes(standard, briefs(await renderChart(...REPLAY))));
  });

  it('every value has a description, and every described value has a default', async () => {
    const read = async (file: string) => parse(await readFile(join(CHART, file), 'utf8')) as Schema & Values;
    const schema = await read('values.schema.json');
    const values = await read('values.yaml');
    const described = pathsOf(schema, schema).map(({ path }) => path);
    assert.deepEqual(
      described.filter((path) => !has(values, path)),
      ['global'],
    );
    assert.deepEqual(
      pathsOf(schema, schema).filter(({ text }) => text === ''),
      [],
    );
    const page = await readFile(new URL('../../../docs/reference/chart.md', import.meta.url), 'utf8');
    for (const { path, text } of pathsOf(schema, schema)) {
      if (path !== 'global')
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
    ['nats.replicas=3', '/nats/replicas'],
    ['namespaces={Team A}', '/namespaces/0'],
    ['sandboxClasses=[]', '/sandboxClasses'],
    ['sandboxClasses[0].name=UPPER', '/sandboxClasses/0'],
    ['image.digest=sha256:short', '/image/digest'],
    ['gateway.providers[0].name=x', '/gateway/providers/0'],
    ['gateway.aliases.nonsense=x', '/gateway/aliases'],
    ['networkPolicies.apiServerPorts={0}', '/networkPolicies/apiServerPorts/0'],
    ['users.subjects[0].kind=ServiceAccount', '/users/subjects/0'],
    ['tracing.endpoint=collector:4318', '/tracing/endpoint'],
    ['tracing.sampleRatio=2', '/tracing/sampleRatio'],
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
    assert.ok(Object.values(own).every((digest) => digest.startsWith('sha256:')) && Object.keys(own).length === 6);
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
    });
    const operator = configOf(objects, 'temper-operator', 'operator.yaml');
    assert.deepEqual(operator['sandboxClasses'], values.sandboxClasses);
  });
});

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

function configOf(objects: readonly ChartObject[], name: string, file: string): Record<string, unknown> {
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  assert.ok(found !== undefined);
  return parse((found['data'] as Record<string, string>)[file] ?? '') as Record<string, unknown>;
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
