import type { Tier } from '../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { shortDigest, type Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { withTimeout } from '../lib/call-options.ts';
import type { HostCalls, Sandbox } from '../sandbox/port.ts';
import type { CallContext, CallerContext, Tool, ToolDescriptor } from '../tools/contract.ts';
import { sessionPath } from '../tools/session-path.ts';
import type { SchemaCompiler } from '../tools/json-schema/compiler.ts';
import { runSteps, type StepCall } from './compose/run.ts';
import { sandboxJob } from './sandbox-job.ts';
import { parseArtifact, type ParsedArtifact } from './parse-artifact.ts';
import { isPure } from './compose/purity.ts';
import { splitReference } from './request.ts';

/** Inputs of tests that describe a tool. */
const MAX_EXAMPLES = 3;

export interface ForgedToolDeps {
  sandbox: Sandbox;
  clock: Clock;
  schemas: SchemaCompiler;
  /** Host functions for calls of this tool; each call checks the permission. */
  hostCalls(artifact: ToolArtifact, caller: CallerContext): HostCalls;
  /** Describes a tool that a composed tool calls; an unknown tool counts as having side effects. */
  describe(tool: string): ToolDescriptor | undefined;
}

/**
 * Makes a callable tool from a registered artifact. A call throws TEMPER_TOOL_OUTPUT_INVALID when its output does not match
 * the declared schema. Throws TEMPER_PACKAGE_INVALID for an artifact that cannot be parsed or has another digest.
 */
export function createForgedTool(artifact: ToolArtifact, digest: Digest, tier: Tier, deps: ForgedToolDeps): Tool {
  const open = opened(artifact);
  if (open.digest !== digest) {
    throw new TemperError(
      'TEMPER_PACKAGE_INVALID',
      `"${artifact.name}" does not have the digest ${shortDigest(digest)}`,
    );
  }
  return {
    descriptor: describeTool(open, tier, deps),
    async call(input, context) {
      const output =
        open.plan === undefined
          ? await runSandboxed(open, input, context, deps)
          : await runComposed(open, input, context, deps);
      const problems = deps.schemas.check(open.outputSchema)(output);
      if (problems.length === 0) return output;
      throw new TemperError(
        'TEMPER_TOOL_OUTPUT_INVALID',
        `the output of "${artifact.name}" does not match its outputSchema: ${problems.join('; ')}`,
      );
    },
  };
}

/**
 * The descriptor of an artifact that was registered with this digest, also of one whose source is withheld. Throws TEMPER_PACKAGE_INVALID
 * for an artifact that cannot be parsed.
 */
export function forgedDescriptor(artifact: ToolArtifact, digest: Digest, tier: Tier, deps: Describing): ToolDescriptor {
  return describeTool({ ...opened(artifact), digest }, tier, deps);
}

/** What the policy decides about a forged tool by: the category, the action and the hosts that follow from what it requires. */
export function forgedPermissions({ apis, domains }: Pick<ToolArtifact['requires'], 'apis' | 'domains'>): {
  category: ToolDescriptor['category'];
  action: ToolDescriptor['action'];
  hosts?: readonly string[];
} {
  const category = 'code_execution';
  // A pure function and a chain of steps change nothing themselves; the policy decides each call of a step.
  return apis.includes('fetch')
    ? { category, action: 'comms:external', hosts: domains }
    : { category, action: 'code:read' };
}

function opened(artifact: ToolArtifact): ParsedArtifact {
  const open = parseArtifact(artifact);
  if ('malformed' in open) throw new TemperError('TEMPER_PACKAGE_INVALID', `"${artifact.name}": ${open.malformed}`);
  return open;
}

type Describing = Pick<ForgedToolDeps, 'describe'>;

function describeTool(open: ParsedArtifact, tier: Tier, deps: Describing): ToolDescriptor {
  const { name, description, requires, implementation } = open.artifact;
  const { category, action, hosts } = forgedPermissions(requires);
  const usesNetwork = hosts !== undefined;
  const effects = (implementation.steps ?? []).some(
    (step) => deps.describe(splitReference(step.tool).name)?.sideEffects !== false,
  );
  return {
    name,
    description,
    inputSchema: open.inputSchema,
    outputSchema: open.outputSchema,
    examples: open.tests.slice(0, MAX_EXAMPLES).map(({ input }) => input),
    category,
    action,
    sideEffects: usesNetwork || effects,
    locality: usesNetwork ? 'Brokered' : 'Local',
    forged: {
      digest: open.digest,
      tier,
      ...(implementation.steps === undefined
        ? {}
        : { steps: [...new Set(implementation.steps.map((step) => step.tool))] }),
      pure: isPure(open.artifact, (tool) => isPureTool(tool, deps)),
      ...(usesNetwork ? { hosts } : {}),
    },
  };
}

function isPureTool(tool: string, { describe }: Describing): boolean {
  return describe(splitReference(tool).name)?.forged?.pure === true;
}

async function runSandboxed(
  open: ParsedArtifact,
  input: Json,
  context: CallContext,
  deps: ForgedToolDeps,
): Promise<Json> {
  const { clock } = deps;
  const recorder = isPure(open.artifact, () => false) ? undefined : context.recorder;
  const host = deps.hostCalls(open.artifact, context);
  const timeAndRandomness = recorder?.startSandbox(clock);
  const owner = sessionPath(context);
  const job = sandboxJob(open, input, { owner, ...(timeAndRandomness === undefined ? {} : { timeAndRandomness }) });
  const outcome = await deps.sandbox.run(job, recorder?.hostCalls(host) ?? host, context.op);
  recorder?.endSandbox(outcome.usage.answers);
  if (outcome.ok) return outcome.output;
  throw new TemperError(outcome.code, outcome.message);
}

function runComposed(open: ParsedArtifact, input: Json, context: CallContext, deps: ForgedToolDeps): Promise<Json> {
  const isPureStep = (tool: string): boolean => isPureTool(tool, deps);
  const recorder = isPure(open.artifact, isPureStep) ? undefined : context.recorder;
  recorder?.startSteps();
  const call: StepCall = async ({ tool }, argument, stepOp) => {
    const result = await context.invoke(tool, argument, stepOp);
    if (!isPureStep(tool)) recorder?.step(tool, argument, result);
    return result;
  };
  return withTimeout(context.op, deps.clock, open.durationMilliseconds, (op) =>
    runSteps(open.plan?.steps ?? [], input, call, deps.clock, op),
  );
}
