import type { StoredAgent, StoredPolicy, Pod } from '../kube/types.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import type { ScheduleState } from '../../schedule/advance.ts';
import type { TaskEvidence } from '../../policy/trust/evidence.ts';
import type { ObservedAgentTools } from '../hygiene/plan.ts';
import type { AgentRuntimeState } from '../ports.ts';
import type { PodTemplate } from '../pods/pod-template.ts';
import type { AgentRank } from '../policy/agent-ranks.ts';

/** State of the admission policies in a namespace. */
export type NamespaceProtection =
  | { readonly kind: 'protected' }
  | { readonly kind: 'notProtected' }
  /**
   * The admission policies are missing, changed or not enforced: the operator creates no new pod. The statuses of running agents report it
   * only when it is lasting.
   */
  | { readonly kind: 'notEnforced'; readonly message: string; readonly isLasting: boolean };

/** The input of the plan for one agent. */
export interface ObservedAgent {
  readonly agent: StoredAgent;
  readonly now: Date;
  /** The violated rule of its own spec: field, rule and fix. */
  readonly specError: string | undefined;
  readonly policy: StoredPolicy | undefined;
  /** The violated rule of the policy. */
  readonly policyError: string | undefined;
  /** The first grant that exceeds the policy. */
  readonly grantError: string | undefined;
  /** Why the policy does not allow its primary model. */
  readonly modelError: string | undefined;
  readonly rank: AgentRank;
  readonly protection: NamespaceProtection;
  /** The release has an egress proxy. */
  readonly hasEgress: boolean;
  /** All pods of this agent, in any phase. */
  readonly pods: readonly Pod[];
  /** UID of the pod that the status names, or that the deferred first status will name. It may not exist any more. */
  readonly boundUid: string | undefined;
  /** The pod with that UID, if it exists. */
  readonly bound: Pod | undefined;
  /** The latest warning Event of the bound pod, if the pod is late. */
  readonly delay: string | undefined;
  /** The status of another agent refers to the same pod. */
  readonly hasBindingConflict: boolean;
  /** Undefined when the spec is invalid; see `specError`. */
  readonly template: PodTemplate | undefined;
  /** A warm pod of this template, reserved for this agent. */
  readonly warmPod: Pod | undefined;
  /** Recent pod failures. */
  readonly failures: { readonly count: number; readonly retryAt: Date | undefined; readonly message: string };
  /** Number of waiting messages. Undefined when NATS was not read, or the read failed. */
  readonly pending: number | undefined;
  /** Time of the last activity. Undefined in the same cases as `pending`. */
  readonly lastActivity: Date | undefined;
  readonly runtimeState: AgentRuntimeState;
  /** The folded records of its tasks. Undefined while they are not read, and for a policy without rules of trust. */
  readonly taskEvidence: TaskEvidence | undefined;
  /** The state of its schedule. Undefined without one, and until it is read. */
  readonly schedule: ScheduleState | undefined;
  /** The schedules that it made, and what users decided about that of its spec. Undefined without any. */
  readonly agentSchedules: AgentSchedules | undefined;
  /** Its promoted tools, and what its records say about them. Undefined for an agent without any. */
  readonly tools: ObservedAgentTools | undefined;
  readonly natsUnavailableSince: Date | undefined;
}
