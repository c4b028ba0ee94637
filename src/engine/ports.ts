import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Memory, SessionStore } from '../agent/ports.ts';
import type { AuditTrail } from '../audit/port.ts';
import type { Ledger } from '../ledger/port.ts';
import type { Clock } from '../lib/clock.ts';
import type { Ids } from '../lib/ids.ts';
import type { RecordStore } from '../lib/records.ts';
import type { Model, TokenUsage } from '../models/port.ts';
import type { SafeFetch } from '../net/fetch.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { Registry } from '../tempering/registry.ts';
import type { Approvals } from '../tools/approvals.ts';

/** The models of the place the engine runs in, under the names manifests use. */
export interface EngineModels {
  model: Model;
  /** The real `provider/model` behind a name such as `default/judge`. */
  resolve: (name: string) => string;
  /** In millionths of a dollar. */
  costOf: (name: string, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => number;
  contextTokens: (name: string) => number;
}

/** Everything the engine needs of the place it runs in. */
export interface EnginePorts {
  clock: Clock;
  ids: Ids;
  models: EngineModels;
  sandbox: Sandbox;
  /** Other processes than those of `sandbox`, for verification. */
  openFreshSandbox(): Promise<{ sandbox: Sandbox; close(): Promise<void> }>;
  ledger: Ledger;
  sessions: SessionStore;
  memory: Memory;
  audit: AuditTrail;
  approvals: Approvals;
  registry: Registry;
  /** Where promotions in progress are kept. */
  records: RecordStore;
  fetch: SafeFetch;
  /** Absolute folder the agent's files lie in. */
  workspace: string;
  /** Absolute folders no tool opens though they may lie in the workspace: the engine's own state. */
  closed: readonly string[];
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
