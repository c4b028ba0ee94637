import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe } from 'node:test';
import { fileURLToPath } from 'node:url';
import { agentPrograms } from './suites/agent-programs.ts';
import { idleAgents } from './suites/idle.ts';
import { egress } from './suites/egress/egress.ts';
import { conversations } from './suites/conversations.ts';
import { gatewayAccess } from './suites/gateway-access.ts';
import { podFaults } from './suites/pod-faults.ts';
import { mcpServers, REMEMBERING } from './suites/mcp-servers.ts';
import { namespaceProtection } from './suites/namespace-protection.ts';
import { withForges } from './support/forging-script.ts';
import { type InstalledCluster, startClusterWithImages } from './support/installed-cluster.ts';
import { buildingRules } from './support/internet/building-script.ts';
import { callingRules } from './support/internet/calling-script.ts';
import { fetchingRules } from './support/internet/fetching-script.ts';
import { type Internet, startInternet } from './support/internet/internet.ts';
import { provideMcpServers, provideProgram, provideToolchain } from './support/program-image.ts';
import { restingRules, restingSandbox } from './suites/resting-sandbox.ts';
import { runnerConfinement } from './suites/runner-confinement.ts';
import { warmPods } from './suites/warm-pods.ts';
import { prometheus } from './suites/prometheus.ts';
import { allObjects, removal } from './suites/removal.ts';
import { building } from './suites/tools/building.ts';
import { forgedTools } from './suites/tools/forged-tools.ts';
import { services } from './suites/tools/services.ts';
import { upgrades } from './suites/upgrades.ts';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'TEMPER_E2E_KUBECONFIG is set';
/** The namespaces that the suites create. */
const NAMESPACES = [
  'upgraded',
  'idle',
  'conversation',
  'gateway-access',
  'confined',
  'faults',
  'protected',
  'monitoring',
  'pooled',
  'resting',
  'programs',
  REMEMBERING,
  'scraped',
  'forging',
  'fetching',
  'building',
  'calling',
  'unprotected',
];

/** One installation from an empty cluster to its removal. The suites share it and run in this order. */
describe('an installation on real pods', { skip, timeout: 3_300_000 }, () => {
  let cluster: InstalledCluster;
  let empty: ReadonlySet<string>;
  let values: readonly string[];
  let internet: Internet;

  before(async () => {
    cluster = await startClusterWithImages();
    empty = await allObjects(cluster.node.admin);
    internet = await startInternet(cluster);
    const script = join(dirname(cluster.node.kubeconfig), 'replay.yaml');
    await writeFile(
      script,
      await withForges(file('acceptance-replay.yaml'), [
        ...fetchingRules(),
        ...buildingRules(),
        ...callingRules(),
        ...restingRules(),
      ]),
    );
    await provideToolchain(cluster.node);
    const programs = `agentPrograms=${JSON.stringify([await provideProgram(cluster.node)])}`;
    const servers = `mcpServers=${JSON.stringify(await provideMcpServers(cluster.node, REMEMBERING))}`;
    const lists = ['--set-json', programs, '--set-json', servers];
    values = ['--values', file('acceptance.yaml'), '--set-file', `replay.script=${script}`, ...lists];
    await cluster.install(...values);
  });

  after(async () => {
    await Promise.all([cluster?.[Symbol.asyncDispose](), internet?.[Symbol.asyncDispose]()]);
  });

  const current = () => cluster;
  const resting = restingSandbox(current);
  idleAgents(current);
  warmPods(current);
  resting.used();
  conversations(current);
  agentPrograms(current);
  mcpServers(current);
  forgedTools(current);
  namespaceProtection(current);
  gatewayAccess(current);
  runnerConfinement(current);
  egress(current, () => internet);
  building(current, () => internet);
  services(current, () => internet);
  podFaults(current);
  resting.rested();
  prometheus(current);
  upgrades(current, (...more) => cluster.upgrade(...values, ...more));
  removal(current, () => empty, NAMESPACES, ['configmaps/internet', 'secrets/internet-credentials']);
});
