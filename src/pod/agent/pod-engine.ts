import { builtInNames } from '../../engine/built-in.ts';
import { createEngine, type Engine } from '../../engine/engine.ts';
import type { EngineModels } from '../../engine/ports.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Ids } from '../../lib/ids.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { SafeFetch } from '../../net/fetch.ts';
import { noApprovals } from '../../remote/approvals.ts';
import type { RemoteBus } from '../../remote/bus.ts';
import type { Claims } from '../../remote/claims.ts';
import { remoteDiscovery } from '../../remote/discovery.ts';
import type { GatewayClient } from '../../remote/gateway-client.ts';
import { remoteModel } from '../../remote/model.ts';
import { remoteMemory, remoteSessions } from '../../remote/stores.ts';
import { RemoteTools } from '../../remote/tools.ts';
import type { Assignment } from '../../remote/wire.ts';
import { MinuteLedger } from './minute-ledger.ts';
import type { SandboxLink } from './sandbox-link.ts';
import type { WorkInHand } from './work.ts';

export interface PodEngineParts {
  client: GatewayClient;
  bus: RemoteBus;
  claims: Claims;
  work: WorkInHand;
  sandbox: SandboxLink;
  /** Where the sandbox container has the agent's files. */
  workspace: string;
  clock: Clock;
  ids: Ids;
  log: Logger;
}

/** The engine of an assignment, with the tools of the session it works on. */
export interface PodEngine {
  version: string;
  engine: Engine;
  tools: RemoteTools;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

/** The same engine as everywhere, over the gateway and the sandbox container. Throws TEMPER_POLICY_DENIED when the model is not allowed. */
export function createPodEngine(parts: PodEngineParts, assignment: Assignment): PodEngine {
  const { client, bus, claims, work, sandbox, workspace, clock, ids, log } = parts;
  const { agent, policy, level, version } = assignment;
  const { name, namespace, spec } = agent;
  const stores = { client, clock, ids, lease: work.lease, signal: work.signal };
  const tools = new RemoteTools({
    client,
    clock,
    lease: work.lease,
    builtIn: builtInNames(),
    flush: (op) => claims.flush(op),
    onUnusable: (tool, problem) =>
      log.warn({ agent: name, ...work.stamp(), tool, problem }, 'a tool of the session cannot be used'),
  });
  const engine = createEngine(
    {
      clock,
      ids,
      models: modelsOf(parts, assignment),
      sandbox,
      ledger: new MinuteLedger(clock, spec.quotas?.toolCallsPerMinute),
      sessions: remoteSessions(stores),
      memory: remoteMemory(stores),
      audit: claims.audit,
      approvals: noApprovals,
      tools,
      tempering: { review: tools.review, keepRejected: tools.keepRejected, claimUse: (use) => claims.use(use) },
      bus,
      discovery: remoteDiscovery({ client, lease: work.lease, tools }),
      fetch: noFetch,
      workspace,
      closed: [],
      remoteWorkspace: sandbox,
    },
    { name, namespace, spec, policy, level },
    (event) => claims.event({ ...event, time: clock.now().toISOString(), agent: name, ...work.stamp() }),
  );
  return { version, engine, tools };
}

function modelsOf({ client, work }: PodEngineParts, { models }: Assignment): EngineModels {
  const named = new Map(Object.entries(models));
  const real = new Map([...named.values()].map((model) => [model.resolved, model]));
  return {
    model: remoteModel({ client, lease: work.lease }),
    resolve: (name) => named.get(name)?.resolved ?? name,
    // What it costs is known where it is charged.
    costOf: () => 0,
    contextTokens: (name) => (named.get(name) ?? real.get(name))?.contextTokens ?? DEFAULT_CONTEXT_TOKENS,
  };
}

const noFetch: SafeFetch = () =>
  Promise.reject(
    new TemperError(
      'TEMPER_EGRESS_UNAVAILABLE',
      'this pod has no way out of the cluster yet; forge a tool that needs no network',
    ),
  );
