import { createRecordMemory } from '../../agent/tools/memory.ts';
import { createRecordSessionStore } from '../../agent/session/session-store.ts';
import { openAudit } from '../../audit/recorded-trail.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { createEngine, type Engine } from '../../engine/engine.ts';
import { localModels } from '../../engine/local-models.ts';
import type { EngineAgent } from '../../engine/ports.ts';
import { openLedgerBook } from '../../ledger/ledger.ts';
import type { Digest } from '../../lib/canonical.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import type { NamedModelSet } from '../../models/named-models.ts';
import { createSafeFetch } from '../../net/fetch.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { Approvals } from '../../tools/approvals.ts';

export interface FreshAgentDeps {
  readonly agent: EngineAgent;
  readonly models: NamedModelSet;
  readonly sandbox: Sandbox & SessionSandbox;
  readonly tools: readonly RegisteredTool[];
  readonly workspace: string;
  readonly protectedPaths: readonly string[];
  /** Tokens of all sessions of this agent together. */
  readonly maxTokens: number;
  /** A call of a forged tool by the agent or by another tool. */
  onUse(digest: Digest): void;
}

/**
 * An engine with the tools and the policy of an agent and nothing else of it: no session, no memory, no record. Its calls change nothing
 * outside: tools with effects and the network are denied, and a call that needs an approval is.
 */
export async function openFreshAgent(deps: FreshAgentDeps): Promise<Engine> {
  const records = memoryRecordStore();
  const clock = systemClock;
  const agent = withoutEffects(deps.agent);
  const book = await openLedgerBook(records, clock);
  const ledger = book.ledger([{ name: 'audit', quotas: { tokensPerDay: deps.maxTokens }, prefix: '--max-tokens ' }]);
  const tools = [...deps.tools];
  return createEngine(
    {
      clock,
      ids: ulids,
      models: localModels(deps.models, { ledger, ids: ulids }),
      sandbox: deps.sandbox,
      ledger,
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
      workspace: deps.workspace,
      protectedPaths: deps.protectedPaths,
    },
    agent,
    () => undefined,
  );
}

function withoutEffects(agent: EngineAgent): EngineAgent {
  const effects = builtInDescriptors().filter(({ sideEffects }) => sideEffects);
  const { spec } = agent;
  return {
    ...agent,
    spec: {
      ...spec,
      denyTools: [...new Set([...(spec.denyTools ?? []), ...effects.map(({ name }) => name)])],
      grants: { ...spec.grants, network: [] },
      forge: { ...spec.forge, enabled: false },
    },
  };
}

const refuse = (): Promise<never> =>
  Promise.reject(new TemperError('TEMPER_POLICY_DENIED', 'an audit of a tool changes nothing'));

const NO_APPROVER: Approvals = {
  request: async () => 'audit',
  waitForDecision: async () => ({ decision: 'Deny', by: 'system', reason: 'an audit asks no user' }),
  decisionOrPark: async () => ({ decision: 'Deny', by: 'system', reason: 'an audit asks no user' }),
  use: refuse,
};
