import { POD_API_PATHS } from '../../../../src/gateway-api/pod-api.ts';
import { buildTrustPolicy } from '../../../support/builders.ts';
import { jsonLines } from '../../../support/json-lines.ts';
import { agentObject, NamespaceAgents, namespaceObject, type PodObject, policyObject } from '../../support/fixture.ts';
import { callGateway, freezeAgentProcess, runInPod } from '../../support/in-pod.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../../support/installed-cluster.ts';
import type { Internet } from '../../support/internet/internet.ts';
import { intruderScript } from '../../support/internet/intruder-script.ts';

export const NAMESPACE = 'fetching';
/** Agents whose containers an attacker controls. */
export const INTRUDERS = ['suspended', 'switched', 'deleted'] as const;
type Intruder = (typeof INTRUDERS)[number];
const DOMAINS = ['*.example.com'];
const POLICY = {
  level: { initial: 'standard', ceiling: 'standard' },
  autonomy: 'Full',
  models: { judge: 'default/judge' },
  forge: { apis: ['fetch'], domains: DOMAINS, limits: { duration: '30s', memory: '128Mi' } },
  egress: { allow: ['*.example.com'] },
};

/** One line of the log of the egress proxy. */
export interface ProxyLine {
  readonly audit?: string;
  readonly agent?: string;
  readonly host?: string;
  readonly address?: string;
  readonly outcome?: string;
}

export interface EgressSetup {
  readonly cluster: InstalledCluster;
  readonly internet: Internet;
  readonly agents: NamespaceAgents;
  /** The pod of the agent that no attacker controls. */
  readonly pod: PodObject;
  /** The pod of an agent without grants for hosts. */
  readonly offline: PodObject;
  /** What the attacker gets for these request lines. */
  send(from: Intruder, lines: readonly string[]): Promise<unknown>;
  /** Reads from the path of the host until the connection ends. */
  hold(from: Intruder, path: string): Promise<unknown>;
  /** What both replicas of the proxy logged about requests so far. */
  proxyLines(): Promise<ProxyLine[]>;
}

/** Starts the agent that fetches, and those whose containers an attacker controls: each with a message in work. */
export async function openEgressSetup(cluster: InstalledCluster, internet: Internet): Promise<EgressSetup> {
  const agents = new NamespaceAgents(cluster, NAMESPACE);
  const grants = { network: ['*.example.com'] };
  const policyOf = (name: Intruder) => (name === 'switched' ? 'switched' : 'policy');
  await cluster.apply(namespaceObject(NAMESPACE));
  await cluster.apply(
    policyObject(NAMESPACE, POLICY),
    buildTrustPolicy(NAMESPACE, POLICY, 'switched'),
    agentObject(NAMESPACE, 'fetcher', { grants, forge: { enabled: true, modes: ['Sandbox'], apis: ['fetch'] } }),
    agentObject(NAMESPACE, 'offline'),
    ...INTRUDERS.map((name) => agentObject(NAMESPACE, name, { grants, trustPolicyRef: { name: policyOf(name) } })),
  );
  for (const name of ['fetcher', 'offline', ...INTRUDERS]) await agents.waitForReason(name, 'Running');
  const taken = await Promise.all(INTRUDERS.map(async (name) => [name, await takePod(cluster, agents, name)] as const));
  const pods = new Map(taken);
  const run = async (name: Intruder, order: { lines: readonly string[] } | { hold: string }) => {
    const { pod, deliveryToken } = pods.get(name) ?? {};
    if (pod === undefined || deliveryToken === undefined) throw new Error(`no pod of ${name}`);
    return runInPod(cluster.node, pod, 'agent', await intruderScript({ deliveryToken, ...order }));
  };
  return {
    cluster,
    internet,
    agents,
    pod: await agents.boundPod('fetcher'),
    offline: await agents.boundPod('offline'),
    send: (from, lines) => run(from, { lines }),
    hold: (from, path) => run(from, { hold: path }),
    proxyLines: () => proxyLines(cluster),
  };
}

/** Stops the program of the agent, and takes its next message in its place. */
async function takePod({ node }: InstalledCluster, agents: NamespaceAgents, name: Intruder) {
  const pod = await agents.boundPod(name);
  await freezeAgentProcess(node, pod);
  await agents.send(name, 'hello');
  const { body } = await callGateway(node, pod, { path: POD_API_PATHS.nextMessage, body: { waitSeconds: 30 } });
  const { deliveryToken } = body;
  if (typeof deliveryToken !== 'string') throw new Error(`no message for ${name}: ${JSON.stringify(body)}`);
  return { pod, deliveryToken };
}

async function proxyLines(cluster: InstalledCluster): Promise<ProxyLine[]> {
  const selector = 'app.kubernetes.io/component=egress';
  const text = await cluster.kubectl('logs', '-n', RELEASE_NAMESPACE, '-l', selector, '--tail=-1');
  return jsonLines<ProxyLine>(text).filter(({ audit }) => audit === 'egress');
}
