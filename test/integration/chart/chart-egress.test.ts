import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { egressConfig } from '../../../src/egress/config.ts';
import { gatewayConfig } from '../../../src/gateway/config.ts';
import { addressRanges } from '../../../src/net/address-ranges.ts';
import { parseOperatorConfig } from '../../../src/operator/config.ts';
import { type ChartObject, configOf, renderChart } from '../../cluster/helm.ts';

describe('the egress proxy in the chart', () => {
  it('the egress proxy is reached by pods of agents with grants for hosts and by gateways alone, and reaches no address of a private network or of an excluded range', async () => {
    const flags = ['--set', 'egress.excludedRanges={34.118.224.0/20,2600:1f00::/24}'];
    const objects = await renderChart(...flags);
    const policy = objects.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'temper-egress');
    interface Rule {
      ports?: { port: number }[];
      from?: object[];
      to?: { podSelector?: object; ipBlock?: { cidr: string; except?: string[] } }[];
    }
    assert.ok(policy !== undefined);
    const { ingress, egress } = policy['spec'] as { ingress: Rule[]; egress: Rule[] };
    const matchLabels = { 'temper.dev/agent-pod': 'true', 'temper.dev/egress': 'true' };
    const agentPods = { namespaceSelector: {}, podSelector: { matchLabels } };
    const gateways = {
      podSelector: {
        matchLabels: {
          'app.kubernetes.io/component': 'gateway',
          'app.kubernetes.io/instance': 'temper',
          'app.kubernetes.io/name': 'temper',
        },
      },
    };
    assert.deepEqual(ingress, [{ ports: [{ protocol: 'TCP', port: 8445 }], from: [agentPods, gateways] }]);
    const blocks = egress.at(-1)?.to?.map(({ ipBlock }) => ipBlock) ?? [];
    assert.deepEqual(
      blocks.map((block) => block?.cidr),
      ['0.0.0.0/0', '2000::/3'],
    );
    const ranges = addressRanges(blocks[0]?.except ?? []);
    const inside = [
      '10.1.2.3',
      '172.31.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '127.0.0.1',
      '34.118.225.7',
    ];
    assert.deepEqual(
      inside.filter((address) => !ranges(address)),
      [],
    );
    assert.equal(ranges('93.184.215.14'), false);
    assert.deepEqual(blocks[1]?.except, ['2600:1f00::/24']);
    const config = egressConfig(configOf(objects, 'temper-egress', 'egress.yaml'));
    assert.equal(config.isExcluded('34.118.225.7') && config.isExcluded('2600:1f00::1'), true);
  });

  it('gateway and operator know the egress proxy, and without egress.enabled there is no trace of it', async () => {
    const known = (objects: readonly ChartObject[]) => {
      const operator = parseOperatorConfig(stringify(configOf(objects, 'temper-operator', 'operator.yaml')));
      const gateway = gatewayConfig(configOf(objects, 'temper-gateway', 'gateway.yaml'));
      const names = objects.filter(({ metadata }) => metadata.name.startsWith('temper-egress')).map(({ kind }) => kind);
      const { releaseNamespace, hasEgress } = gateway;
      return {
        service: operator.egress?.service,
        namespace: releaseNamespace,
        hasEgress,
        executes: gateway.egress !== undefined,
        names: names.length,
      };
    };
    const off = ['--set', 'verifier.enabled=false'];
    const namespace = 'temper-system';
    assert.deepEqual(known(await renderChart(...off)), {
      service: 'temper-egress',
      namespace,
      hasEgress: true,
      executes: true,
      names: 7,
    });
    const without = known(await renderChart(...off, '--set', 'egress.enabled=false'));
    assert.deepEqual(without, {
      service: undefined,
      namespace: undefined,
      hasEgress: false,
      executes: false,
      names: 0,
    });
  });

  it('with a proxy of the company, the egress proxy reaches its port and no other', async () => {
    const objects = await renderChart('--set', 'egress.proxy.httpsProxy=http://proxy.corp:3128');
    const config = egressConfig(configOf(objects, 'temper-egress', 'egress.yaml'));
    assert.deepEqual(config.upstreamProxy, { host: 'proxy.corp', port: 3_128 });
    const policy = objects.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'temper-egress');
    assert.ok(policy !== undefined);
    const { egress } = policy['spec'] as { egress: { ports?: { port: number }[] }[] };
    const ports = egress.map((rule) => rule.ports?.map(({ port }) => port));
    assert.deepEqual(new Set(ports.flat()), new Set([8443, 53, 5353, 3128]));
    assert.ok(!ports.includes(undefined));
  });

  it('the credentials of the proxy of the company are a file of the egress proxy alone', async () => {
    const proxy = ['--set', 'egress.proxy.httpsProxy=http://proxy.corp:3128'];
    const credential = ['--set', 'egress.proxy.credential.existingSecret=corporate-proxy'];
    const objects = await renderChart(...proxy, ...credential);
    const config = egressConfig(configOf(objects, 'temper-egress', 'egress.yaml'));
    const credentialFile = '/etc/temper/proxy/credentials';
    assert.deepEqual(config.upstreamProxy, { host: 'proxy.corp', port: 3_128, credentialFile });
    const naming = objects.filter((object) => JSON.stringify(object).includes('corporate-proxy'));
    assert.deepEqual(
      naming.map(({ kind, metadata }) => `${kind}/${metadata.name}`),
      ['Deployment/temper-egress'],
    );
    interface PodSpec {
      volumes: { name: string; secret?: object }[];
      containers: { args: string[]; env?: unknown; volumeMounts: { name: string; mountPath: string }[] }[];
    }
    const [deployment] = naming;
    assert.ok(deployment !== undefined);
    const { spec } = (deployment['spec'] as { template: { spec: PodSpec } }).template;
    assert.partialDeepStrictEqual(spec.volumes.find(({ name }) => name === 'proxy')?.secret, {
      secretName: 'corporate-proxy',
      items: [{ key: 'credentials', path: 'credentials' }],
    });
    const [container] = spec.containers;
    assert.equal(container?.volumeMounts.find(({ name }) => name === 'proxy')?.mountPath, '/etc/temper/proxy');
    assert.deepEqual([container?.env, container?.args.length], [undefined, 4]);
    await assert.rejects(renderChart(...credential), /egress\.proxy\.credential.*set egress\.proxy\.httpsProxy/);
    const without = await renderChart(...proxy);
    assert.equal(JSON.stringify(without).includes('/etc/temper/proxy'), false);
  });

  it('the operator reads the certificate authorities that agents trust for their hosts, where a ConfigMap has them', async () => {
    const read = async (...flags: string[]) => {
      const objects = await renderChart(...flags);
      const operator = parseOperatorConfig(stringify(configOf(objects, 'temper-operator', 'operator.yaml')));
      const pod = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'temper-operator');
      return { file: operator.egress?.caFile, pod: JSON.stringify(pod?.['spec']) };
    };
    const { file, pod } = await read('--set', 'egress.caBundle.configMap=corporate-ca');
    assert.equal(file, '/etc/temper/egress-ca/ca.crt');
    assert.ok(pod.includes('{"name":"corporate-ca","items":[{"key":"ca.crt","path":"ca.crt"}]}'), pod);
    assert.ok(pod.includes('"mountPath":"/etc/temper/egress-ca"'), pod);
    const without = await read();
    assert.deepEqual([without.file, without.pod.includes('egress-ca')], [undefined, false]);
  });
});
