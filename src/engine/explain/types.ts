import type { PlannedStep } from '../../forge/compose/plan.ts';
import type { Decider, ExplainedDecision, PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import type { NamedRepositories } from '../../toolbox/git/remote/port.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { DeclaredReach } from './noted-work.ts';

export interface ExplainCallDeps {
  decider: Decider;
  schemas: SchemaCompiler;
  /** The agent and the workspace of the decider. */
  snapshot: Pick<PolicySnapshot, 'agent' | 'workspace'>;
  /** Absolute paths that no tool may open, as in `EnginePorts.protectedPaths`. */
  protectedFolders?: readonly string[] | undefined;
  /** The repositories of the connections of a run or of a release; absent: there is none. `Unknown`: any may have a connection. */
  repositories?: NamedRepositories | 'Unknown' | undefined;
  /** The tools beside the built-in ones, as far as they are known. */
  external?: readonly ExternalTool[];
}

/** A tool that is not built in. */
export interface ExternalTool {
  descriptor: ToolDescriptor;
  /** What the policy has to permit beside the call. */
  requests: readonly PolicyRequest[];
  /** As in `Tool`. */
  check?: Tool['check'];
  /** Why no agent can call it. */
  unavailable?: string | undefined;
  /** What decides about its calls and is not known here. */
  unknown?: string | undefined;
  /** Of a forged tool: what its host functions may open. */
  requires?: DeclaredReach | undefined;
  /** Of a composed tool. */
  steps?: readonly PlannedStep[] | undefined;
}

export interface ExplainedCall extends ExplainedDecision {
  /** Of a forged tool that may be called: what the policy would refuse of its work, each with the rule. */
  refused?: readonly string[];
}
