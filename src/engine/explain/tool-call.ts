import { conditionHolds } from '../../forge/compose/condition.ts';
import type { PlannedStep } from '../../forge/compose/plan.ts';
import { fillTemplate } from '../../forge/compose/references.ts';
import { splitReference } from '../../forge/request.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { withApprovedConnections } from '../../policy/private-data/approved-connections.ts';
import type { Decider, Decision, PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import { decideOrThrow, hostsOf, policyDenied, toolRequest } from '../../tools/authorize.ts';
import { assertCallable } from '../../tools/checks/admission.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import { toolsWithoutPorts } from '../built-in.ts';
import { compileToolSettings, type CompiledToolSettings } from '../settings/tool-settings.ts';
import { noteWork } from './noted-work.ts';
import type { Steps } from './steps.ts';
import type { ExplainCallDeps, ExternalTool } from './types.ts';
import { UnknownRepositories } from './unknown-repositories.ts';

/** What no check of a call refuses. */
export interface MetCall {
  decision: Decision;
  /** What the work of a forged tool would be refused. */
  refused: readonly string[];
}

type ToolQuestion = Extract<PolicyRequest, { kind: 'Tool' }>;

interface FoundTool {
  descriptor: ToolDescriptor;
  tool?: Tool;
  other?: ExternalTool;
}

/** As many calls within one another as the invoker allows. */
const MAX_DEPTH = 5;

/** Makes the checks of a call, and of those that its first step makes with these arguments. */
export class CheckedCall {
  readonly #deps: ExplainCallDeps;
  readonly #steps: Steps;
  readonly #tools: Tool[];
  readonly #unknown: UnknownRepositories | undefined;
  readonly #external: readonly ExternalTool[];
  /** The decider of the checks within the tool: an approver who permits the call permits its connections. */
  #within: Decider;

  constructor(deps: ExplainCallDeps, steps: Steps) {
    const { decider, snapshot, protectedFolders = [], external = [], repositories } = deps;
    this.#deps = deps;
    this.#steps = steps;
    this.#within = decider;
    this.#external = external;
    this.#unknown = repositories === 'Unknown' ? new UnknownRepositories() : undefined;
    this.#tools = toolsWithoutPorts({
      ...snapshot,
      protectedFolders,
      repositories: repositories === 'Unknown' ? this.#unknown : repositories,
      decide: (_caller, request) => steps.decide(request, this.#within),
    });
  }

  /** The decision whether the tool may be listed. Notes nothing. */
  listed(question: ToolQuestion): Decision {
    return this.#deps.decider.decide(toolRequest(this.#found(question).descriptor));
  }

  /** Throws TemperError as the call, and TEMPER_USAGE where neither a refusal nor a permission would be true. */
  meet(question: ToolQuestion, given: Json): MetCall {
    const settings = compileToolSettings(this.#deps.snapshot.agent.spec, this.#descriptors(), this.#deps.schemas);
    return this.#meet(this.#found(question), given, settings, 1);
  }

  #meet(found: FoundTool, given: Json, settings: CompiledToolSettings, depth: number): MetCall {
    const { decider, schemas, snapshot } = this.#deps;
    const { descriptor, other } = found;
    const decide = (request: PolicyRequest): Decision => this.#steps.decide(request);
    if (other?.unavailable !== undefined) throw notAvailable(other.unavailable);
    const quiet = (request: PolicyRequest): Decision => decider.decide(request);
    const listed = quiet(toolRequest(descriptor));
    if (listed.effect === 'Deny') throw policyDenied(decide(toolRequest(descriptor)));
    const input = settings.withDefaults(descriptor.name, given, CALLER);
    assertCallable(descriptor, input, { decide: quiet, schemas });
    this.#steps.note('input-schema', 'passed', 'the arguments match the input schema');
    const decision = decideOrThrow({ decide }, toolRequest(descriptor, input));
    noteChecksOfUse(this.#steps, snapshot.agent.spec);
    const approved = { rule: decision.rule, hosts: hostsOf(descriptor, input) };
    this.#within = decision.effect === 'Escalate' ? withApprovedConnections(decider, approved) : decider;
    this.#open(found, input);
    return this.#work(found, input, { decision, refused: [] }, settings, depth);
  }

  /** What the tool opens, and refuses by its arguments. */
  #open({ tool, other }: FoundTool, input: Json): void {
    const { agent } = this.#deps.snapshot;
    for (const request of other?.requests ?? []) {
      const opened = this.#steps.decide(request, this.#within);
      // An approver who permits the call permits what it opens.
      if (opened.effect === 'Deny') throw policyDenied(opened);
    }
    (tool ?? other)?.check?.(input, { ...CALLER, agent: agent.name, namespace: agent.namespace });
    this.#unknown?.note(this.#steps);
    if (other?.unknown !== undefined) this.#steps.note('connection', 'not-applicable', other.unknown);
  }

  /** The first step that runs has arguments that follow from those of the call; the others depend on its result. */
  #work({ other }: FoundTool, input: Json, own: MetCall, settings: CompiledToolSettings, depth: number): MetCall {
    const steps = other?.steps ?? [];
    const bindings = { input, prev: null, steps: new Map<string, Json>() };
    const first = steps.findIndex(({ condition }) => condition === undefined || conditionHolds(condition, bindings));
    const step = steps[first];
    if (step === undefined || depth >= MAX_DEPTH) return { ...own, refused: this.#noteWork(other?.requires, []) };
    this.#steps.note('step', 'passed', `${step.name} calls ${step.toolName}, with the checks that follow`);
    const met = this.#meetStep(step, fillTemplate(step.mapping, bindings) ?? {}, settings, depth + 1);
    const refused = [...met.refused, ...this.#noteWork(undefined, steps.slice(first + 1))];
    return { decision: own.decision.effect === 'Escalate' ? own.decision : met.decision, refused };
  }

  #noteWork(requires: ExternalTool['requires'], later: readonly PlannedStep[]): string[] {
    const { workspace } = this.#deps.snapshot;
    const deps = { decider: this.#within, workspace, tools: this.#descriptors() };
    return noteWork(this.#steps, { requires, steps: later.map(({ tool }) => tool) }, deps);
  }

  #meetStep(step: PlannedStep, input: Json, settings: CompiledToolSettings, depth: number): MetCall {
    const { name, digest } = splitReference(step.tool);
    const found = this.#lookUp(name);
    if (found === undefined || (digest !== undefined && found.descriptor.forged?.digest !== digest))
      throw new TemperError(
        'TEMPER_TOOL_NOT_FOUND',
        `step "${step.name}" calls "${step.toolName}", which is not known`,
      );
    try {
      return this.#meet(found, input, settings, depth);
    } catch (error) {
      if (!isTemperError(error) || error.code === 'TEMPER_USAGE') throw error;
      const message = `Step "${step.name}" (tool: "${step.toolName}") is refused: ${error.message}`;
      throw new TemperError(error.code, message, { details: error.details });
    }
  }

  /** The tool of the question, with the category and the action that it has there. */
  #found({ name, category, action }: ToolQuestion): FoundTool {
    const found = this.#lookUp(name);
    if (found === undefined) throw notAvailable(`no tool is named "${printable(name, 80)}"`);
    return { ...found, descriptor: { ...found.descriptor, category, action } };
  }

  #lookUp(name: string): FoundTool | undefined {
    const tool = this.#tools.find((one) => one.descriptor.name === name);
    if (tool !== undefined) return { descriptor: tool.descriptor, tool };
    const other = this.#external.find((one) => one.descriptor.name === name);
    return other && { descriptor: other.descriptor, other };
  }

  #descriptors(): ToolDescriptor[] {
    return [...this.#tools, ...this.#external].map(({ descriptor }) => descriptor);
  }
}

function notAvailable(why: string): TemperError {
  return new TemperError('TEMPER_TOOL_NOT_FOUND', why);
}

const CALLER: CallerContext = {
  agent: '',
  namespace: '',
  session: 'explained',
  rootMessage: 'explained',
  stack: [],
  origin: 'Agent',
};

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
