import type { PlannedStep } from '../../forge/compose/plan.ts';
import { TemperError } from '../../lib/errors.ts';
import { validateTarget } from '../../net/targets.ts';
import type { Decider, Decision, ExplainedDecision, PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import type { NamedRepositories } from '../../toolbox/git/remote/port.ts';
import { writtenPath, writtenTarget } from '../../toolbox/path-resolution.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Requirements } from './noted-work.ts';
import { refusalOf, Steps } from './steps.ts';
import { CheckedCall, type MetCall } from './tool-call.ts';

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
  requires?: Requirements | undefined;
  /** Of a composed tool. */
  steps?: readonly PlannedStep[] | undefined;
}

export interface ExplainedCall extends ExplainedDecision {
  /** Of a forged tool that may be called: what the policy would refuse of its work, each with the rule. */
  refused?: readonly string[];
}

/**
 * Explains what a real call would meet, with the functions of the call: the defaults of its arguments, listing, input schema, the policy
 * for these arguments, the quota that permits none, and what the tool refuses by its arguments alone. Executes nothing, and resolves
 * neither links nor names; both, the loop guard, hooks and used quotas may still refuse the call.
 */
export function explainCall(deps: ExplainCallDeps, request: PolicyRequest): ExplainedCall {
  const { decider, snapshot } = deps;
  const steps = new Steps(decider);
  if (request.kind === 'Tool' && request.arguments !== undefined) return explainToolCall(deps, request, steps);
  const decision = steps.decide(request);
  const absent =
    request.kind === 'Tool' ? deps.external?.find(({ descriptor }) => descriptor.name === request.name) : undefined;
  if (absent?.unavailable !== undefined) {
    return steps.refused(new TemperError('TEMPER_TOOL_NOT_FOUND', absent.unavailable), decision);
  }
  if (decision.effect === 'Deny') return steps.permitted(decision);
  if (request.kind === 'File') {
    const { workspace } = snapshot;
    const { path, access } = request;
    return checked(steps, decision, 'workspace', 'the path is below the workspace', () =>
      access === 'write'
        ? writtenTarget(path, workspace, deps.protectedFolders)
        : writtenPath(path, workspace, [workspace], deps.protectedFolders),
    );
  }
  if (request.kind !== 'Network') return steps.permitted(decision);
  return checked(steps, decision, 'public-host', 'the host is not known to be internal', () =>
    validateTarget(urlOf(request), { ports: [request.port], hostDenialReason: () => undefined }),
  );
}

function explainToolCall(
  deps: ExplainCallDeps,
  question: Extract<PolicyRequest, { kind: 'Tool' }>,
  steps: Steps,
): ExplainedCall {
  const call = new CheckedCall(deps, steps);
  const { arguments: given = {} } = question;
  let met: MetCall | undefined;
  const refusal = refusalOf(() => {
    met = call.meet(question, given);
  });
  if (refusal !== undefined) return steps.refused(refusal, call.listed(question));
  if (met === undefined) throw new TypeError('a call was neither refused nor permitted');
  return { ...steps.permitted(met.decision), refused: met.refused };
}

function checked(
  steps: Steps,
  decision: Decision,
  rule: string,
  detail: string,
  check: () => unknown,
): ExplainedDecision {
  const refusal = refusalOf(check);
  if (refusal !== undefined) return steps.refused(refusal, decision);
  steps.note(rule, 'passed', detail);
  return steps.permitted(decision);
}

function urlOf({ host, port }: Extract<PolicyRequest, { kind: 'Network' }>): string {
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}/`;
}
