import type { KubeClient } from '../kube/client/kube-client.ts';
import { createKubeClient } from '../kube/client/http-kube-client.ts';
import { createEventRecorder } from '../kube/events/event-recorder.ts';
import { LeaderElection } from '../kube/leader-election/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { type OperatorDeps, createComponents } from './components.ts';
import type { OperatorConfig } from './config.ts';
import { createControllers } from './controllers.ts';
import { requeueAllNamespaces, requeuePools } from './event-routes.ts';
import { leaderTasks } from './leader-tasks.ts';
import { registerOperatorGauges, withWriteMetrics } from './metrics.ts';
import type { AuditStream } from '../nats/audit-stream.ts';
import { attestedTools } from './provenance/attested-tools.ts';
import { auditChainRound, type ChainTaskDeps } from './provenance/chain-task.ts';
import { DataLossDetector } from './nats/data-loss.ts';
import { NatsServerReloads } from './pki/nats-reload.ts';

const COMPONENT = 'temper-operator';

/** Creates the operator without starting it. */
export function createOperator(config: OperatorConfig, deps: OperatorDeps): Manager {
  const election = config.leaderElection === false ? undefined : createElection(config, deps);
  const client = createLeaderClient(deps, election);
  const events = createEventRecorder({ ...deps, client, component: COMPONENT, instance: deps.identity });
  const components = createComponents(
    config,
    deps,
    countWrites(client, deps),
    events,
    () => election?.isLeader() ?? true,
  );
  if (deps.operatorMetrics !== undefined) registerOperatorGauges(deps.operatorMetrics, components);
  const controllers = createControllers(components, deps);
  requeuePools(components);
  const { informers } = components;
  for (const { subscribe } of [informers.admissionPolicies, informers.admissionBindings]) {
    subscribe((_change, source) => (source === 'change' ? requeueAllNamespaces(components) : undefined));
  }
  return new Manager({
    clock: deps.clock,
    log: deps.log,
    informers: informers.all,
    controllers,
    tasks: leaderTasks({
      ...components,
      natsReload: createNatsReload(config, deps),
      dataLoss: new DataLossDetector({ ...components, namespace: config.namespace }),
      auditChain: auditChainOf(deps.auditStream, {
        ...components,
        namespace: config.namespace,
        attested: attestedTools(components),
      }),
    }),
    ...(election === undefined ? {} : { election }),
    resources: [events],
  });
}

function auditChainOf(auditStream: AuditStream | undefined, deps: Omit<ChainTaskDeps, 'auditStream'>) {
  return auditStream === undefined ? undefined : auditChainRound({ ...deps, auditStream });
}

function createElection({ namespace }: OperatorConfig, deps: OperatorDeps): LeaderElection {
  const client = createKubeClient(deps.transport, { connection: 'lease' });
  return new LeaderElection({ ...deps, ...deps.election, client, namespace, name: COMPONENT });
}

/** A client that writes only while this process is the leader. Without an election every process writes. */
function createLeaderClient({ transport }: OperatorDeps, election: LeaderElection | undefined): KubeClient {
  if (election === undefined) return createKubeClient(transport);
  return createKubeClient(transport, { isLeader: () => election.isLeader() });
}

/** Counts the writes of the client, but not those of the Lease and of Events, which use other clients. */
function countWrites(client: KubeClient, { operatorMetrics }: OperatorDeps): KubeClient {
  return operatorMetrics === undefined ? client : withWriteMetrics(client, operatorMetrics);
}

function createNatsReload({ nats }: OperatorConfig, deps: OperatorDeps): NatsServerReloads | undefined {
  return nats?.service === undefined ? undefined : new NatsServerReloads({ ...deps, metrics: deps.operatorMetrics });
}
