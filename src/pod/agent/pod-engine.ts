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
  /** Folder of the agent's files, as a path in the sandbox container. */
  workspace: string;
  clock: Clock;
  ids: Ids;
  log: Logger;
}

/** The engine of one assignment, with the tools of the current session. */
export interface PodEngine {
  version: string;
  engine: Engine;
  tools: RemoteTools;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

/**
 * Creates the engine with adapters for the gateway and the sandbox container; the engine itself is the one `temper run` uses.
 * Throws TEMPER_POLICY_DENIED when the policy does not allow the agent's model.
 */
export function createPodEngine(deps: PodEngineParts, assignment: Assignment): PodEngine {
  const { client, bus, claims, work, sandbox, workspace, clock, ids, log } = deps;
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
      log.warn({ agent: name, ...work.stamp(), tool, problem }, 'cannot use a tool of the session'),
  });
  const engine = createEngine(
    {
      clock,
      ids,
      models: modelsOf(deps, assignment),
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
  const byName = new Map(Object.entries(models));
  const byResolvedName = new Map([...byName.values()].map((model) => [model.resolved, model]));
  return {
    model: remoteModel({ client, lease: work.lease }),
    resolve: (name) => byName.get(name)?.resolved ?? name,
    // The gateway charges model calls and knows their prices.
    costOf: () => 0,
    contextTokens: (name) => (byName.get(name) ?? byResolvedName.get(name))?.contextTokens ?? DEFAULT_CONTEXT_TOKENS,
  };
}

const noFetch: SafeFetch = () =>
  Promise.reject(
    new TemperError('TEMPER_EGRESS_UNAVAILABLE', 'this pod has no network egress; forge a tool that needs no network'),
  );
