import { createRecordMemory } from '../agent/tools/memory.ts';
import { createRecordSessionStore } from '../agent/session/session-store.ts';
import { openAudit } from '../audit/recorded-trail.ts';
import { builtInDescriptors } from '../engine/built-in.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import type { EngineAgent, EngineModels } from '../engine/ports.ts';
import type { Ledger } from '../ledger/port.ts';
import type { Digest } from '../lib/canonical.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import { createSafeFetch } from '../net/fetch.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { SessionSandbox } from '../sandbox/session-port.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { ApprovalDecision, Approvals } from '../tools/approvals.ts';

export interface FreshAgentDeps {
  readonly agent: EngineAgent;
  /** Their calls are limited where they are charged. */
  readonly models: EngineModels;
  readonly ledger: Ledger;
  readonly sandbox: Sandbox & SessionSandbox;
  readonly tools: readonly RegisteredTool[];
  /** A folder that the agent may read; undefined: it has no files. */
  readonly workspace: string | undefined;
  readonly protectedPaths: readonly string[];
  /** A call of a forged tool by the agent or by another tool. */
  onUse(digest: Digest): void;
}

const NO_WORKSPACE = '/nonexistent';

/**
 * An engine with the tools and the policy of an agent and nothing else of it: no session, no memory, no record. Its calls change nothing
 * outside: tools with effects and the network are denied, and a call that needs an approval is.
 */
export async function openFreshAgent(deps: FreshAgentDeps): Promise<Engine> {
  const records = memoryRecordStore();
  const clock = systemClock;
  const agent = withoutEffects(deps.agent, deps.workspace !== undefined);
  const tools = [...deps.tools];
  return createEngine(
    {
      clock,
      ids: ulids,
      models: deps.models,
      sandbox: deps.sandbox,
      ledger: deps.ledger,
      sessions: createRecordSessionStore(records, clock, { agent: agent.name, namespace: agent.namespace }),
      memory: createRecordMemory(records, 'memory'),
      audit: await openAudit({ records, clock }),
      approvals: NO_APPROVER,
      tools: {
        resolve: () => tools,
        onChange: () => () => undefined,
        closeSession: async () => undefined,
        drop: refuse,
      },
      tempering: {
        review: { submit: refuse },
        keepRejected: async () => undefined,
        reportUse: ({ digest }) => deps.onUse(digest),
      },
      fetch: createSafeFetch({ clock }),
      workspace: deps.workspace ?? NO_WORKSPACE,
      protectedPaths: deps.protectedPaths,
    },
    agent,
    () => undefined,
  );
}

function withoutEffects(agent: EngineAgent, hasFiles: boolean): EngineAgent {
  const denied = builtInDescriptors().filter(
    ({ sideEffects, category }) => sideEffects || (category === 'file_system' && !hasFiles),
  );
  const { spec } = agent;
  return {
    ...agent,
    spec: {
      ...spec,
      denyTools: [...new Set([...(spec.denyTools ?? []), ...denied.map(({ name }) => name)])],
      grants: { ...spec.grants, network: [] },
      forge: { ...spec.forge, enabled: false },
    },
  };
}

const refuse = (): Promise<never> =>
  Promise.reject(new TemperError('TEMPER_POLICY_DENIED', 'an audit of a tool changes nothing'));

const DENIED: ApprovalDecision = { decision: 'Deny', by: 'system', reason: 'an audit asks no user' };

const NO_APPROVER: Approvals = {
  request: async () => 'audit',
  decisionNow: async () => DENIED,
  waitForDecision: async () => DENIED,
  decisionOrPark: async () => DENIED,
  use: refuse,
};
