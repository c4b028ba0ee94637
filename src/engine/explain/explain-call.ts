import type { Json } from '../../lib/json.ts';
import { validateTarget } from '../../net/targets.ts';
import { withApprovedConnections } from '../../policy/private-data/approved-connections.ts';
import type { Decider, Decision, ExplainedDecision, PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import type { Repositories } from '../../toolbox/git/remote/port.ts';
import { writtenPath, writtenTarget } from '../../toolbox/path-resolution.ts';
import { assertCallable } from '../../tools/checks/admission.ts';
import { decideOrThrow, hostsOf, policyDenied, toolRequest } from '../../tools/authorize.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { TemperError } from '../../lib/errors.ts';
import { toolsWithoutPorts } from '../built-in.ts';
import { compileToolSettings } from '../settings/tool-settings.ts';
import { refusalOf, Steps } from './steps.ts';

export interface ExplainCallDeps {
  decider: Decider;
  schemas: SchemaCompiler;
  /** The agent and the workspace of the decider. */
  snapshot: Pick<PolicySnapshot, 'agent' | 'workspace'>;
  /** Absolute paths that no tool may open, as in `EnginePorts.protectedPaths`. */
  protectedFolders?: readonly string[] | undefined;
  /** The repositories of the connections of a run; absent: none, or unknown. */
  repositories?: Repositories | undefined;
  /** The tools beside the built-in ones, as far as they are known. */
  external?: readonly ExternalTool[];
}

/** A tool that another process executes, and what the policy has to permit beside the call. */
export interface ExternalTool {
  descriptor: ToolDescriptor;
  requests: readonly PolicyRequest[];
}

/**
 * Explains what a real call would meet, with the functions of the call: the defaults of its arguments, listing, input schema, the policy
 * for these arguments, the quota that permits none, and what the tool refuses by its arguments alone. Executes nothing, and resolves
 * neither links nor names; both, the loop guard, hooks and used quotas may still refuse the call.
 */
export function explainCall(deps: ExplainCallDeps, request: PolicyRequest): ExplainedDecision {
  const { decider, snapshot } = deps;
  if (request.kind === 'Tool' && request.arguments !== undefined) {
    return explainToolCall(deps, request, request.arguments);
  }
  const steps = new Steps(decider);
  const decision = steps.decide(request);
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

type ToolQuestion = Extract<PolicyRequest, { kind: 'Tool' }>;

function explainToolCall(deps: ExplainCallDeps, question: ToolQuestion, given: Json): ExplainedDecision {
  const { decider, schemas, snapshot, protectedFolders = [], repositories } = deps;
  const { agent } = snapshot;
  const steps = new Steps(decider);
  // The decider of the checks within the tool: an approver who permits the call permits its connections.
  let within = decider;
  const tools = toolsWithoutPorts({
    ...snapshot,
    protectedFolders,
    repositories,
    decide: (_caller, request) => steps.decide(request, within),
  });
  const { descriptor, tool, requests } = toolOf(question, tools, deps.external);
  const descriptors = tools.map((one) => one.descriptor);
  const decide = (request: PolicyRequest): Decision => steps.decide(request);
  const quiet = (request: PolicyRequest): Decision => decider.decide(request);
  let decision = quiet(toolRequest(descriptor));
  const refusal = refusalOf(() => {
    if (decision.effect === 'Deny') throw policyDenied(decide(toolRequest(descriptor)));
    const input = compileToolSettings(agent.spec, descriptors, schemas).withDefaults(question.name, given, CALLER);
    assertCallable(descriptor, input, { decide: quiet, schemas });
    steps.note('input-schema', 'passed', 'the arguments match the input schema');
    decision = decideOrThrow({ decide }, toolRequest(descriptor, input));
    noteChecksOfUse(steps, agent.spec);
    if (decision.effect === 'Escalate') {
      within = withApprovedConnections(decider, { rule: decision.rule, hosts: hostsOf(descriptor, input) });
    }
    for (const request of requests) {
      const opened = steps.decide(request, within);
      // An approver who permits the call permits what it opens.
      if (opened.effect === 'Deny') throw policyDenied(opened);
    }
    tool?.check?.(input, { ...CALLER, agent: agent.name, namespace: agent.namespace });
  });
  return refusal === undefined ? steps.permitted(decision) : steps.refused(refusal, decision);
}

const CALLER: CallerContext = {
  agent: '',
  namespace: '',
  session: 'explained',
  rootMessage: 'explained',
  stack: [],
  origin: 'Agent',
};

/** The tool, or what the question says about one that is not known here. */
function toolOf(
  { name, category, action }: ToolQuestion,
  builtIn: readonly Tool[],
  external: readonly ExternalTool[] = [],
): { descriptor: ToolDescriptor; tool: Tool | undefined; requests: readonly PolicyRequest[] } {
  const known = builtIn.find((tool) => tool.descriptor.name === name);
  const other = external.find((tool) => tool.descriptor.name === name);
  const described = known?.descriptor ?? other?.descriptor;
  const unknown: ToolDescriptor = {
    name,
    description: '',
    inputSchema: {},
    category,
    action,
    sideEffects: true,
    locality: 'Brokered',
  };
  const descriptor = { ...(described ?? unknown), category, action };
  return { descriptor, tool: known, requests: known === undefined ? (other?.requests ?? []) : [] };
}

/** The checks between the policy and the call that depend on what was called before. A quota of none permits no call at all. */
function noteChecksOfUse(steps: Steps, { quotas, hooks = [] }: PolicySnapshot['agent']['spec']): void {
  steps.note('loop-guard', 'not-applicable', 'it refuses calls that repeat without a new result');
  const own = hooks.filter(({ events }) => events.includes('ToolCall'));
  if (own.length > 0) {
    steps.note('hooks', 'not-applicable', `${own.map(({ tool }) => tool).join(', ')} decide about each call`);
  }
  const limit = quotas?.toolCallsPerMinute;
  if (limit === 0) throw new TemperError('TEMPER_QUOTA_EXCEEDED', 'spec.quotas.toolCallsPerMinute of the agent is 0');
  if (limit === undefined) steps.note('quota', 'not-applicable', 'the agent has no quota of tool calls');
  else steps.note('quota', 'passed', `spec.quotas.toolCallsPerMinute allows ${limit}`);
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
