import type { ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { Audit, AuditTrail } from '../../audit/port.ts';
import type { ForgeReview, SessionToolRegistry } from '../../forge/types.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Ledger } from '../../ledger/port.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { Model } from '../../models/port.ts';
import type { Decider } from '../../policy/types.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { Approvals } from '../../tools/approvals.ts';
import type { CallerContext } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Canaries } from '../canary/canaries.ts';
import type { Registry } from '../registry/registry.ts';
import type { ToolUse } from '../types.ts';

/** Local tool lifecycle: acceptance, use records, promotion and demotion run in this process. */
export interface LocalLifecyclePorts {
  registry: Registry;
  audit: AuditTrail;
  /** Stores promotion states and pending imports. */
  records: RecordStore;
  /** Supervises judges and reviewers; default: none. */
  canaries?: Canaries;
  /** Called for each call of a forged tool by the agent itself, not by another tool, that reached the tool. */
  onUse?(digest: Digest, session: string): void;
  /** Called with the category of each tool whose call succeeded, also when another tool made it, but not a hook or a forge. */
  onSucceeded?(category: ToolCategoryName, session: string): void;
  /** Opens a sandbox for verification, in processes separate from those of the engine's sandbox. */
  openFreshSandbox(): Promise<{ sandbox: Sandbox; close(): Promise<void> }>;
}

/** Remote tool lifecycle: the gateway runs it; the engine submits candidates and reports uses. */
export interface RemoteLifecyclePorts {
  review: ForgeReview;
  keepRejected: SessionToolRegistry['recordRejected'];
  /** Queues the report of a tool use; it is sent asynchronously. */
  reportUse(use: ToolUse): void;
  /** Called for each call of a forged tool by the agent itself, not by another tool, that reached the tool. */
  onCall?(digest: Digest, succeeded: boolean): void;
}

/** The parts of an engine that the tool lifecycle of its agent needs. */
export interface LifecycleContext {
  ports: { clock: Clock; ids: IdGenerator; ledger: Ledger; approvals: Approvals; audit: Audit };
  agent: {
    name: string;
    namespace: string;
    spec: Pick<AgentSpec, 'forge'>;
    policy: { spec: TrustPolicySpec };
  };
  agentModel: { reviewers: readonly string[]; testers: readonly string[] };
  /** The model port for judges, reviewers and testers; its costs are charged to the agent. */
  reviewModel: Model;
  events: EventSink;
  schemas: SchemaCompiler;
  decider: (caller: Pick<CallerContext, 'agent' | 'namespace' | 'session'>) => Decider;
}
