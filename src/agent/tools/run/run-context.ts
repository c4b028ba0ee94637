import type { AgentSpec } from '../../../api/v1alpha1/agent.ts';
import { sha256 } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { patternSet } from '../../../policy/patterns/pattern-set.ts';
import type { Decider } from '../../../policy/types.ts';
import type { CallerContext, RunContext, ToolFilter } from '../../../tools/contract.ts';
import { RUN_TOOL_NAME } from './run-descriptor.ts';
import type { RunRequest } from './nested-agent.ts';

/** Runs within runs. */
const MAX_RUN_DEPTH = 3;
const ID_CHARACTERS = 24;

/**
 * The context of a run below its caller. A run with a name has the same id in every message of the session, which is how it continues.
 * Throws TEMPER_TOOL_RECURSION for runs that are too deep, and TEMPER_PATTERN_INVALID.
 */
export function runContext(
  caller: CallerContext,
  { name, allowedTools }: RunRequest,
  { spec, key }: { spec: AgentSpec; key: string },
): RunContext {
  const around = caller.run?.ancestors ?? [];
  const ancestors = [...around, caller.run?.id ?? caller.rootMessage];
  if (ancestors.length > MAX_RUN_DEPTH) {
    const message = `runs of ${RUN_TOOL_NAME} are limited to a depth of ${MAX_RUN_DEPTH}; do the rest in this run`;
    throw new TemperError('TEMPER_TOOL_RECURSION', message);
  }
  const place = [caller.run?.id ?? '', name === undefined ? { key } : { name }];
  const id = sha256(JSON.stringify(place)).slice('sha256:'.length, 'sha256:'.length + ID_CHARACTERS);
  return { id, ancestors, tools: [...(caller.run?.tools ?? []), toolFilter(allowedTools)], spec };
}

/** Another run below a run only where its name is given, so that no pattern opens it. */
function toolFilter(allowed: readonly string[] | undefined): ToolFilter {
  if (allowed === undefined) {
    return { allows: (tool) => tool !== RUN_TOOL_NAME, describe: () => `all tools but ${RUN_TOOL_NAME}` };
  }
  const patterns = patternSet(allowed, 'tool');
  const mayRun = allowed.includes(RUN_TOOL_NAME);
  return {
    allows: (tool) => (tool === RUN_TOOL_NAME ? mayRun : patterns.has(tool)),
    describe: () => patterns.describe(),
  };
}

/** The policy for a call of a run: the run is allowed a part of what its agent is allowed. */
export function withinRun(decider: Decider, run: RunContext | undefined): Decider {
  if (run === undefined) return decider;
  return {
    forgeLimits: decider.forgeLimits,
    programs: decider.programs,
    level: decider.level,
    explain: (request) => decider.explain(request),
    decide(request) {
      const decision = decider.decide(request);
      if (request.kind !== 'Tool' || decision.effect === 'Deny') return decision;
      const refusing = run.tools.find((filter) => !filter.allows(request.name));
      if (refusing === undefined) return decision;
      const reason = `This run of ${RUN_TOOL_NAME} may call ${refusing.describe()}, and not "${request.name}".`;
      return { ...decision, effect: 'Deny', rule: 'agent_run.allowedTools', reason };
    },
  };
}
