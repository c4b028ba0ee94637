import { isTemperError } from '../../lib/errors.ts';
import { explainCall } from '../../engine/explain/explain-call.ts';
import type { ExplainedCall, ExternalTool } from '../../engine/explain/types.ts';
import { categoryOf } from '../../policy/category-decider.ts';
import { createDecider } from '../../policy/decider.ts';
import type { PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { askedTool } from './explain/asked-tool.ts';
import { explainedRun, type RunQuestion } from './explain/explained-run.ts';
import { forgedSource } from './explain/forged-source.ts';
import { type PolicyQuestion, questionOf, toPolicyRequest } from './policy-question.ts';
import { type AgentQuestion, loadSnapshot } from './policy-snapshot.ts';

export interface PolicyExplainOptions extends PolicyQuestion, AgentQuestion, RunQuestion {
  /** The cluster whose EmergentTools are looked up. */
  kubeconfig?: string;
  context?: string;
  output: 'text' | 'json';
}

/**
 * Prints the decision and every evaluated rule. Executes and records nothing.
 * Exit 0: allowed, or an approver would decide; 1: denied; 2: invalid question or unreadable manifests.
 */
export async function policyExplain(
  options: PolicyExplainOptions,
  services: readonly ExternalTool[],
  io: CliIo,
): Promise<number> {
  try {
    const question = questionOf(options);
    const { snapshot: ofPod, objects, loaded } = await loadSnapshot(options, io.cwd);
    const run = await explainedRun(options, loaded, ofPod, services, io);
    const snapshot = { ...ofPod, workspace: run.workspace };
    const source = forgedSource(options, { snapshot, objects, state: run.state }, io);
    const asked = options.tool === undefined ? [] : await askedTool(options.tool, options, run.external, source);
    const request = toPolicyRequest(question, options, asked[0]?.descriptor);
    const decider = createDecider(snapshot);
    const external = [...run.external, ...asked];
    const explained = explainCall({ ...run, decider, external, schemas: createSchemaCompiler(), snapshot }, request);
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

function writeJson(snapshot: PolicySnapshot, level: string, explained: ExplainedCall, io: CliIo): void {
  const { effect, rule, reason, risk, trace, refused = [] } = explained;
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
    ...(refused.length === 0 ? {} : { refused: [...refused] }),
    trace: trace.map((step) => ({ ...step })),
  });
}

const MARKS = { passed: '·', allowed: '✓', denied: '✗', escalated: '?', 'not-applicable': '-' } as const;

function textOf(snapshot: PolicySnapshot, level: string, explained: ExplainedCall): string {
  const { effect, rule, reason, risk, trace, refused = [] } = explained;
  const width = Math.max(...trace.map((step) => step.rule.length));
  const lines = trace.map((step) => `  ${MARKS[step.verdict]} ${step.rule.padEnd(width)}  ${step.detail}`);
  const marks = `${snapshot.tainted ? ' · tainted' : ''}${snapshot.hasPrivateData === true ? ' · private data' : ''}`;
  return [
    `${effect}  by ${rule}  (risk ${risk})`,
    reason,
    ...(refused.length === 0 ? [] : [`What the tool does then is refused: ${refused.join(', ')}.`]),
    '',
    `Agent ${snapshot.agent.name} · policy ${snapshot.policy.name} · level ${level}${marks}`,
    ...lines,
    '',
  ].join('\n');
}
