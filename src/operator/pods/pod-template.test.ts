import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podTemplate } from './pod-template.ts';

const AMOUNTS = { cpu: '100m', memory: '192Mi', ephemeralStorage: '128Mi' };
const CONFIG = { agent: { image: 'temper', resources: AMOUNTS } };
const CLASS = { name: 'standard', image: 'sandbox', resources: AMOUNTS, workspace: '1Gi' };

interface Probe {
  exec: { command: string[] };
  periodSeconds: number;
  timeoutSeconds: number;
  failureThreshold: number;
}

interface Container {
  name: string;
  startupProbe: Probe;
  readinessProbe: Probe;
  securityContext: { runAsUser: number; readOnlyRootFilesystem: boolean; capabilities: { drop: string[] } };
  resources: { requests: object; limits: object };
  volumeMounts: { name: string }[];
}

const PROGRAM = {
  name: 'helper',
  image: `registry.example.com/helper@sha256:${'a'.repeat(64)}`,
  folder: '/opt/helper',
  program: 'main.js',
  arguments: ['--say', '$(HOME)'],
};

describe('the template of an agent pod', () => {
  const containers = podTemplate(CONFIG, CLASS).spec['containers'] as Container[];

  it('the template has two containers with different users, and mounts token and gateway address only in the agent container', () => {
    const [agent, sandbox] = containers;
    assert.deepEqual([agent?.name, sandbox?.name], ['agent', 'sandbox']);
    assert.notEqual(agent?.securityContext.runAsUser, sandbox?.securityContext.runAsUser);
    const mounts = sandbox?.volumeMounts.map(({ name }) => name);
    assert.deepEqual(mounts, ['run', 'workspace', 'tmp-sandbox']);
  });

  it('the template is restricted, has no reachable name server, and has requests equal to limits', () => {
    const { spec } = podTemplate(CONFIG, CLASS);
    assert.deepEqual(
      [spec['automountServiceAccountToken'], spec['enableServiceLinks'], spec['dnsPolicy']],
      [false, false, 'None'],
    );
    for (const { securityContext, resources } of containers) {
      assert.ok(securityContext.readOnlyRootFilesystem && securityContext.capabilities.drop.includes('ALL'));
      assert.deepEqual(resources.requests, resources.limits);
    }
  });

  it('the template has a startup probe that waits for the pod and never restarts it, and a readiness probe that does not wait', () => {
    const [agent] = containers;
    const [startup, readiness] = [agent?.startupProbe, agent?.readinessProbe];
    assert.ok(startup !== undefined && readiness !== undefined);
    const [startupWait, readinessWait] = [startup, readiness].map(({ exec }) => Number(exec.command.at(-1)));
    assert.deepEqual(startup.exec.command.slice(0, -1), readiness.exec.command.slice(0, -1));
    assert.deepEqual([startupWait, readinessWait, startup.periodSeconds], [30, 0, 1]);
    assert.ok(startup.timeoutSeconds > 30, 'the kubelet ends a probe that exceeds its timeout');
    assert.ok(startup.failureThreshold > 86_400 && readiness.periodSeconds >= 10);
  });

  it('mounts the requested files read-only, and only in the sandbox container', () => {
    const files = [{ path: 'data', configMap: { name: 'orders' } }];
    const { spec, digest } = podTemplate(CONFIG, CLASS, { workspace: { files } });
    const [agent, sandbox] = spec['containers'] as Container[];
    const mount = { name: 'files-0', mountPath: '/workspace/data', readOnly: true };
    assert.deepEqual(sandbox?.volumeMounts[2], mount);
    assert.ok(agent?.volumeMounts.every(({ name }) => name !== mount.name));
    const volumes = spec['volumes'] as { name: string }[];
    assert.deepEqual(
      volumes.find(({ name }) => name === mount.name),
      { name: mount.name, configMap: { name: 'orders' } },
    );
    assert.notEqual(digest, podTemplate(CONFIG, CLASS).digest);
  });

  it('the agent container has a token for the egress proxy only where there is one, apart from that for the gateway', () => {
    const tokensOf = (config: Parameters<typeof podTemplate>[0]) => {
      const volumes = podTemplate(config, CLASS).spec['volumes'] as {
        name: string;
        projected?: { sources: { serviceAccountToken: { audience: string; path: string } }[] };
      }[];
      const sources = volumes.find(({ name }) => name === 'tokens')?.projected?.sources ?? [];
      return sources.map(({ serviceAccountToken: { audience, path } }) => [audience, path]);
    };
    const gateway = ['temper-gateway', 'gateway'];
    assert.deepEqual(tokensOf(CONFIG), [gateway]);
    const egress = { service: 'temper-egress', podLabels: {} };
    assert.deepEqual(tokensOf({ ...CONFIG, egress }), [gateway, ['temper-egress', 'egress']]);
  });

  it('the template changes its digest only when the pod spec changes, not with the notation of quantities', () => {
    const { digest } = podTemplate(CONFIG, CLASS);
    assert.equal(podTemplate(CONFIG, { ...CLASS, workspace: '1024Mi' }, {}).digest, digest);
    assert.equal(podTemplate(CONFIG, CLASS, { class: 'standard' }).digest, digest);
    assert.notEqual(podTemplate(CONFIG, { ...CLASS, image: 'sandbox:2' }).digest, digest);
    assert.notEqual(podTemplate(CONFIG, CLASS, { resources: { cpu: '2' } }).digest, digest);
  });

  it('an agent program changes the image, the options and the memory of the sandbox container, and adds a volume in memory for each process', () => {
    const [plain, { spec }] = [podTemplate(CONFIG, CLASS), podTemplate(CONFIG, CLASS, {}, PROGRAM)];
    const [agent, sandbox] = spec['containers'] as (Container & { image: string; args: string[] })[];
    assert.equal(agent?.image, 'temper');
    assert.equal(sandbox?.image, PROGRAM.image);
    assert.deepEqual(sandbox.securityContext, containers[1]?.securityContext);
    assert.deepEqual(sandbox.args.slice(0, 3), ['serve', 'sandbox', '--program']);
    assert.doesNotMatch(sandbox.args.join(' '), /\$\(/, 'the kubelet replaces references to variables');
    const { arguments: given } = JSON.parse(sandbox.args[3] ?? '') as { arguments: string[] };
    assert.deepEqual(given, PROGRAM.arguments);
    assert.deepEqual(sandbox.args.slice(4), ['--program-heap', '336']);
    assert.deepEqual((sandbox.resources.limits as { memory: string }).memory, `${192 + 2_048}Mi`);
    assert.deepEqual(sandbox.resources.requests, sandbox.resources.limits);
    const homes = [0, 1, 2, 3].map((number) => `program-${number}`);
    assert.deepEqual(
      sandbox.volumeMounts.slice(-4),
      homes.map((name, number) => ({ name, mountPath: `/home/programs/${number}` })),
    );
    assert.deepEqual(
      (spec['volumes'] as object[]).slice(-4),
      homes.map((name) => ({ name, emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } })),
    );
    const { digest } = podTemplate(CONFIG, CLASS, {}, PROGRAM);
    assert.notEqual(digest, plain.digest);
    const image = `registry.example.com/helper@sha256:${'b'.repeat(64)}`;
    assert.notEqual(podTemplate(CONFIG, CLASS, {}, { ...PROGRAM, image }).digest, digest);
  });
});
