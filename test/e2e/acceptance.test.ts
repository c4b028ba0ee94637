import { after, before, describe } from 'node:test';
import { fileURLToPath } from 'node:url';
import { agentsWithoutPods } from './asleep.ts';
import { conversations } from './conversation.ts';
import { theDoors } from './doors.ts';
import { faultsOfPods } from './faults.ts';
import { theFence } from './fence.ts';
import { type Installation, startCluster } from './installation.ts';
import { warmPods } from './pool.ts';
import { prometheus } from './prometheus.ts';
import { allObjects, removal } from './removal.ts';
import { upgrades } from './upgrades.ts';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const VALUES = ['--values', file('acceptance.yaml'), '--set-file', `replay.script=${file('acceptance-replay.yaml')}`];
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'a cluster is given';
/** All that the suites make. */
const NAMESPACES = [
  'upgraded',
  'asleep',
  'conversation',
  'doors',
  'faults',
  'fenced',
  'monitoring',
  'pooled',
  'scraped',
  'unfenced',
];

/** One installation, from an empty cluster to its removal; the order of the suites is that of its life. */
describe('an installation on real pods', { skip, timeout: 1_200_000 }, () => {
  let installation: Installation;
  let empty: ReadonlySet<string>;

  before(async () => {
    installation = await startCluster();
    empty = await allObjects(installation.node.admin);
    await installation.install(...VALUES);
  });

  after(async () => {
    await installation?.[Symbol.asyncDispose]();
  });

  const current = () => installation;
  agentsWithoutPods(current);
  warmPods(current);
  conversations(current);
  theFence(current);
  theDoors(current);
  faultsOfPods(current);
  prometheus(current);
  upgrades(current, (...more) => installation.upgrade(...VALUES, ...more));
  removal(current, () => empty, NAMESPACES);
});
