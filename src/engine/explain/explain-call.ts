import { TemperError } from '../../lib/errors.ts';
import { validateTarget } from '../../net/targets.ts';
import type { Decision, ExplainedDecision, PolicyRequest } from '../../policy/types.ts';
import { writtenPath, writtenTarget } from '../../toolbox/path-resolution.ts';
import { refusalOf, Steps } from './steps.ts';
import { CheckedCall, type MetCall } from './tool-call.ts';
import type { ExplainCallDeps, ExplainedCall } from './types.ts';

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
