import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Memory, SessionStore } from '../agent/ports.ts';
import type { Audit, AuditTrail } from '../audit/port.ts';
import type { Bus } from '../bus/port.ts';
import type { Discovery } from '../discovery/port.ts';
import type { ForgeReview, SessionTools } from '../forge/types.ts';
import type { Ledger } from '../ledger/port.ts';
import type { Clock } from '../lib/clock.ts';
import type { Ids } from '../lib/ids.ts';
import type { RecordStore } from '../lib/records.ts';
import type { Model, TokenUsage } from '../models/port.ts';
import type { SafeFetch } from '../net/fetch.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { Registry } from '../tempering/registry.ts';
import type { RegisteredTool, ToolUse } from '../tempering/types.ts';
import type { Approvals } from '../tools/approvals.ts';
import type { RemoteWorkspace } from '../tools/remote-workspace.ts';

/** The models of the place the engine runs in, under the names manifests use. */
export interface EngineModels {
  model: Model;
  /** The real `provider/model` behind a name such as `default/judge`. */
  resolve: (name: string) => string;
  /** In millionths of a dollar. */
  costOf: (name: string, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => number;
  contextTokens: (name: string) => number;
}

/** The forged tools of one agent. */
export interface ToolStore {
  /** Active tools the agent sees in a session, in lookup order; no name stands twice. */
  resolve(agent: string, namespace: string, session: string): RegisteredTool[];
  /** Told after each change; the answer ends it. */
  changes(listener: () => void): () => void;
  /** Removes the tools of exactly this session. */
  closeSession(session: string): Promise<void>;
}

/** This engine itself accepts what is forged, keeps the record and raises and demotes. */
export interface TemperingHere {
  registry: Registry;
  audit: AuditTrail;
  /** Where promotions in progress are kept. */
  records: RecordStore;
  /** Other processes than those of the engine's sandbox, for verification. */
  openFreshSandbox(): Promise<{ sandbox: Sandbox; close(): Promise<void> }>;
}

/** Somebody else does; the engine submits, and tells what happened. */
export interface TemperingElsewhere {
  review: ForgeReview;
  keepRejected: SessionTools['keepRejected'];
  /** Takes the claim that a tool was used; sends it later. */
  claimUse(use: ToolUse): void;
}

/** Everything the engine needs of the place it runs in. */
export interface EnginePorts {
  clock: Clock;
  ids: Ids;
  models: EngineModels;
  sandbox: Sandbox;
  ledger: Ledger;
  sessions: SessionStore;
  memory: Memory;
  audit: Audit;
  approvals: Approvals;
  tools: ToolStore;
  tempering: TemperingHere | TemperingElsewhere;
  /** The way to other agents; absent where an agent runs alone. */
  bus?: Pick<Bus, 'send'>;
  /** What else there is to find; absent where an agent finds its own tools only. */
  discovery?: Discovery;
  fetch: SafeFetch;
  /** Absolute folder the agent's files lie in. */
  workspace: string;
  /** Absolute folders no tool opens though they may lie in the workspace: the engine's own state. */
  closed: readonly string[];
  /** The workspace, where another container holds it. */
  remoteWorkspace?: RemoteWorkspace;
}

/** The one agent an engine runs. */
export interface EngineAgent {
  name: string;
  namespace: string;
  spec: AgentSpec;
  policy: { name: string; spec: TrustPolicySpec };
  /** The level earned. */
  level: string;
}
