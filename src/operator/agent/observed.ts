import type { StoredAgent, StoredPolicy, Pod } from '../kube-types.ts';
import type { AgentFacts } from '../ports.ts';
import type { PodTemplate } from './pod-template.ts';

/** What holds in a namespace for all its agents. */
export type GuardState =
  | { readonly kind: 'fenced' }
  | { readonly kind: 'notFenced' }
  /** The policies that keep agent pods apart are not as they should be: no new pod. */
  | { readonly kind: 'missing'; readonly message: string };

/** Everything a plan for one agent is made from. */
export interface Observed {
  readonly agent: StoredAgent;
  readonly now: Date;
  /** What its own spec breaks: field, rule and fix. */
  readonly specProblem: string | undefined;
  readonly policy: StoredPolicy | undefined;
  /** Why the policy cannot be used. */
  readonly policyProblem: string | undefined;
  /** The first grant beyond the policy. */
  readonly grantProblem: string | undefined;
  /** Why none of its models may be used. */
  readonly modelProblem: string | undefined;
  /** How many agents of the policy are older; and how many there are. */
  readonly rank: { readonly older: number; readonly all: number };
  readonly guard: GuardState;
  /** Pods made for this agent, whatever became of them. */
  readonly pods: readonly Pod[];
  /** The pod the status names, when it exists. */
  readonly bound: Pod | undefined;
  /** What holds the bound pod up, when it should run by now and somebody said why it does not. */
  readonly delay: string | undefined;
  /** Another agent's status names the same pod. */
  readonly boundTwice: boolean;
  /** Undefined when the sandbox class it asks for is not offered; `specProblem` says so then. */
  readonly template: PodTemplate | undefined;
  /** A warm pod of this template that nobody has. */
  readonly warm: Pod | undefined;
  /** Failures of its pods of late. */
  readonly failures: { readonly count: number; readonly retryAt: Date | undefined; readonly message: string };
  /** Messages that wait. Undefined: the bus was not asked, or did not answer. */
  readonly pending: number | undefined;
  /** When it last did anything. Undefined as `pending`. */
  readonly lastActivity: Date | undefined;
  readonly facts: AgentFacts;
  readonly busUnavailableSince: Date | undefined;
}
