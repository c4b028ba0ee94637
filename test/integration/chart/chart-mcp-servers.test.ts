import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { gatewayConfig } from '../../../src/gateway/config.ts';
import { parseBridgeProgram } from '../../../src/mcp/bridge/bridge-program.ts';
import { parseOperatorConfig } from '../../../src/operator/config.ts';
import { configOf, renderChart } from '../../cluster/helm.ts';

const IMAGE = `registry.example.com/mcp-time@sha256:${'a'.repeat(64)}`;
const TIME = { name: 'time', image: IMAGE, command: 'python3', namespaces: ['team-a'] };

interface Container {
  image: string;
  args: string[];
  resources: { limits: Record<string, string> };
  securityContext: object;
  volumeMounts: { mountPath: string }[];
}
interface PodSpec {
  automountServiceAccountToken: boolean;
  securityContext: { runAsUser: number };
  containers: Container[];
  volumes: object[];
}

describe('the MCP servers of a release', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-chart-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const render = async (mcpServers: object[], ...flags: string[]) => {
    const file = join(folder, 'values.yaml');
    await writeFile(file, stringify({ mcpServers }));
    return renderChart('--values', file, ...flags);
  };
  const podOf = (objects: Awaited<ReturnType<typeof render>>, name: string): PodSpec => {
    const found = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
    const { spec } = found as unknown as { spec: { replicas: number; template: { spec: PodSpec } } };
    assert.equal(spec.replicas, 1);
    return spec.template.spec;
  };

  it('a server is a pod of one container without a token, with a home for each session and memory for all', async () => {
    const server = {
      ...TIME,
      arguments: ['-m', 'mcp_server_time', '$(HOME)'],
      environment: { DATA: '$(HOME)/data' },
      folder: '/opt/mcp-time',
      sessions: 3,
      memory: '100Mi',
      home: '20Mi',
    };
    const pod = podOf(await render([server]), 'temper-mcp-time');
    assert.deepEqual([pod.automountServiceAccountToken, pod.securityContext.runAsUser], [false, 10_003]);
    const [container] = pod.containers;
    assert.ok(container !== undefined && pod.containers.length === 1);
    assert.equal(container.image, IMAGE);
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.equal(container.resources.limits['memory'], `${128 + 3 * 120}Mi`);
    assert.deepEqual(
      container.volumeMounts.map(({ mountPath }) => mountPath),
      ['/home/sessions/0', '/home/sessions/1', '/home/sessions/2'],
    );
    assert.deepEqual(pod.volumes[0], { name: 'home-0', emptyDir: { medium: 'Memory', sizeLimit: '20Mi' } });
    const program = container.args[container.args.indexOf('--program') + 1] ?? '';
    // As Kubernetes gives it to the process.
    assert.deepEqual(parseBridgeProgram(program.replaceAll('$$(', '$(')), {
      command: 'python3',
      arguments: server.arguments,
      environment: server.environment,
      folder: '/opt/mcp-time',
    });
    assert.ok(!/[^$]\$\(/.test(program), program);
  });

  it('gateways and the operator know its name and its namespaces, and only gateways reach it', async () => {
    const objects = await render([TIME, { ...TIME, name: 'git', namespaces: ['team-a', 'team-b'] }]);
    const servers = [
      { name: 'time', url: 'http://temper-mcp-time.temper-system.svc:8080/mcp', namespaces: ['team-a'] },
      { name: 'git', url: 'http://temper-mcp-git.temper-system.svc:8080/mcp', namespaces: ['team-a', 'team-b'] },
    ];
    assert.deepEqual(gatewayConfig(configOf(objects, 'temper-gateway', 'gateway.yaml')).mcpServers, servers);
    const operator = parseOperatorConfig(stringify(configOf(objects, 'temper-operator', 'operator.yaml')));
    assert.deepEqual(operator.mcpServers, servers);
    const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
    const own = policies.find(({ metadata }) => metadata.name === 'temper-mcp-time') as unknown as { spec: object };
    const labels = (component: string) => ({
      'app.kubernetes.io/name': 'temper',
      'app.kubernetes.io/instance': 'temper',
      'app.kubernetes.io/component': component,
    });
    assert.deepEqual(own.spec, {
      podSelector: { matchLabels: labels('mcp-time') },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { ports: [{ protocol: 'TCP', port: 8080 }], from: [{ podSelector: { matchLabels: labels('gateway') } }] },
      ],
    });
    const gateway = policies.find(({ metadata }) => metadata.name === 'temper-gateway');
    assert.match(JSON.stringify(gateway), /"app\.kubernetes\.io\/component":"mcp-git"/);
  });

  it('without servers nothing is installed', async () => {
    assert.ok((await render([])).every(({ metadata }) => !metadata.name.startsWith('temper-mcp')));
  });

  for (const [what, server, flags, message] of [
    ['an image by a tag', { ...TIME, image: 'registry.example.com/mcp-time:1' }, [], /image/],
    ['a path as command', { ...TIME, command: '/usr/bin/python3' }, [], /command/],
    ['no namespaces', { ...TIME, namespaces: [] }, [], /namespaces/],
    ['a folder of the system', { ...TIME, folder: '/etc' }, [], /folder/],
    ['a secret', { ...TIME, existingSecret: 'key' }, [], /existingSecret/],
    ['no NetworkPolicies', TIME, ['--set', 'networkPolicies.enabled=false'], /networkPolicies\.enabled/],
  ] as [string, object, string[], RegExp][])
    it(`the values refuse ${what}`, () => assert.rejects(render([server], ...flags), message));

  it('the values refuse a name that is there twice', () => assert.rejects(render([TIME, TIME]), /time is there twice/));
});
