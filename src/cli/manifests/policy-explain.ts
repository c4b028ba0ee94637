import { isTemperError } from '../../lib/errors.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { explainCall } from '../../engine/explain/explain-call.ts';
import { categoryOf } from '../../policy/category-decider.ts';
import { createDecider } from '../../policy/decider.ts';
import type { ExplainedDecision, PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { capabilityTools } from './capability-tools.ts';
import { type PolicyQuestion, toPolicyRequest } from './policy-question.ts';
import { type AgentQuestion, loadSnapshot } from './policy-snapshot.ts';
import { explainedRun, type RunQuestion } from './explained-run.ts';

export interface PolicyExplainOptions extends PolicyQuestion, AgentQuestion, RunQuestion {
  output: 'text' | 'json';
}

/**
 * Prints the decision and every evaluated rule. Executes and records nothing.
 * Exit 0: allowed, or an approver would decide; 1: denied; 2: invalid question or unreadable manifests.
 */
export async function policyExplain(
  options: PolicyExplainOptions,
  services: readonly ToolDescriptor[],
  io: CliIo,
): Promise<number> {
  try {
    const { snapshot: ofPod, objects, loaded } = await loadSnapshot(options, io.cwd);
    const { workspace, protectedFolders, repositories } = await explainedRun(options, loaded, ofPod, io);
    const snapshot = { ...ofPod, workspace };
    const external = [
      ...services.map((descriptor) => ({ descriptor, requests: [] })),
      ...capabilityTools(objects, snapshot.agent.namespace),
    ];
    const known = [...builtInDescriptors(), ...external.map(({ descriptor }) => descriptor)];
    const request = toPolicyRequest(options, known);
    const decider = createDecider(snapshot);
    const explained = explainCall(
      { decider, external, schemas: createSchemaCompiler(), snapshot, protectedFolders, repositories },
      request,
    );
    const level = levelFor(request, snapshot) ?? decider.level;
    if (options.output === 'json') writeJson(snapshot, level, explained, io);
    else io.out(textOf(snapshot, level, explained));
    return explained.effect === 'Deny' ? EXIT.refused : EXIT.ok;
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_USAGE') && !isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE')) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
}

/** The level of the category of the request, if it has its own. */
function levelFor(request: PolicyRequest, { categoryLevels = {} }: PolicySnapshot): string | undefined {
  const category = categoryOf(request);
  return category === undefined ? undefined : categoryLevels[category];
}

function writeJson(snapshot: PolicySnapshot, level: string, explained: ExplainedDecision, io: CliIo): void {
  const { effect, rule, reason, risk, trace } = explained;
  writeJsonLine(io, {
    agent: snapshot.agent.name,
    policy: snapshot.policy.name,
    level,
    tainted: snapshot.tainted,
    private: snapshot.hasPrivateData === true,
    effect,
    rule,
    reason,
    risk,
    trace: trace.map((step) => ({ ...step })),
  });
}

const MARKS = { passed: '·', allowed: '✓', denied: '✗', escalated: '?', 'not-applicable': '-' } as const;

function textOf(snapshot: PolicySnapshot, level: string, explained: ExplainedDecision): string {
  const { effect, rule, reason, risk, trace } = explained;
  const width = Math.max(...trace.map((step) => step.rule.length));
  const lines = trace.map((step) => `  ${MARKS[step.verdict]} ${step.rule.padEnd(width)}  ${step.detail}`);
  const marks = `${snapshot.tainted ? ' · tainted' : ''}${snapshot.hasPrivateData === true ? ' · private data' : ''}`;
  return [
    `${effect}  by ${rule}  (risk ${risk})`,
    reason,
    '',
    `Agent ${snapshot.agent.name} · policy ${snapshot.policy.name} · level ${level}${marks}`,
    ...lines,
    '',
  ].join('\n');
}
