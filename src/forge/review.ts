import { shortDigest } from '../lib/canonical.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { type Json, member } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Decider } from '../policy/types.ts';
import type { ToolView } from '../tools/contract.ts';
import { type EventSink, type Gate, type GateResult, GATES } from '../tools/events.ts';
import { asArtifact } from './artifact-validation.ts';
import { checkArtifactRules } from './gates/artifact-rules.ts';
import { GateRecorder, hasViolations } from './gate-recorder.ts';
import { checkSteps } from './gates/compose.ts';
import { checkPolicyLimits } from './gates/policy-limits.ts';
import { checkHiddenText } from './gates/hidden-text.ts';
import { checkSchemas } from './gates/schemas.ts';
import { checkSecrets } from './gates/secrets.ts';
import { checkSource } from './gates/static.ts';
import { countCases } from './gates/tests.ts';
import { parseArtifact, type ParsedArtifact } from './parse-artifact.ts';
import type { ForgeViolation } from './request.ts';
import type {
  AcceptedTool,
  ToolCandidate,
  ForgeCaller,
  ForgeResult,
  ForgeReview,
  Judge,
  RefusedTool,
  SessionToolRegistry,
  JudgeVerdict,
} from './types.ts';

export interface ForgeReviewDeps {
  /** When absent, every tool is refused. */
  judge?: Judge;
  sessionTools: SessionToolRegistry;
  /** The reviewing side's own current view of the caller; nothing in it comes from the candidate. */
  context(caller: ForgeCaller): { decider: Decider; view: ToolView; events: EventSink };
}

/** Trusts nothing of the candidate but its measurements, and grants nothing beyond the session. */
export function createForgeReview(deps: ForgeReviewDeps): ForgeReview {
  return {
    async submit(candidate, caller, op) {
      const context = deps.context(caller);
      const log = new GateRecorder(nameOf(candidate), context.events, reportedGates(candidate));
      const result = await review(deps, candidate, caller, op, log, context);
      if (!result.accepted) await deps.sessionTools.recordRejected(result, caller);
      return result;
    },
  };
}

/** Gates that the author's side may report as passed; the review runs the others itself. */
const AUTHOR_GATES: readonly Gate[] = GATES.slice(0, GATES.indexOf('policy'));

function reportedGates({ gates = [] }: ToolCandidate): GateResult[] {
  return AUTHOR_GATES.flatMap((gate) => {
    const reported = gates.find((result) => result.gate === gate && result.passed);
    return reported === undefined ? [] : [{ gate, passed: true, note: printable(reported.note, 120) }];
  });
}

function nameOf({ artifact }: ToolCandidate): string {
  const name = member(artifact as unknown as Json, 'name');
  return typeof name === 'string' ? printable(name, 64) : 'unnamed';
}

async function review(
  deps: ForgeReviewDeps,
  candidate: ToolCandidate,
  caller: ForgeCaller,
  op: CallOptions,
  log: GateRecorder,
  context: { decider: Decider; view: ToolView; events: EventSink },
): Promise<ForgeResult> {
  const open = recompute(candidate, log);
  if ('accepted' in open) return open;
  const { evidence } = candidate;
  const rules = checkArtifactRules(open);
  if (hasViolations(rules)) return log.refuse('shape', rules, { evidence });
  const code = open.artifact.implementation.source;
  const staticViolations =
    code === undefined ? checkSteps(open, context) : checkSource(code, open.artifact.requires.apis).violations;
  staticViolations.push(...checkSecrets(open.artifact));
  if (hasViolations(staticViolations)) return log.refuse('static', staticViolations, { evidence });
  const schemas = checkSchemas(open);
  if (hasViolations(schemas)) return log.refuse('schemas', schemas, { evidence });
  const testViolations = checkReportedTests(open, candidate);
  if (hasViolations(testViolations)) return log.refuse('tests', testViolations, { evidence });
  const ceilings = checkPolicyLimits(open, context.decider, context.view);
  if (hasViolations(ceilings)) return log.refuse('policy', ceilings, { evidence });
  log.pass('policy');
  const verdict = await askJudge(deps.judge, candidate, caller, op);
  if (!verdict.approved) return log.refuse('judge', [judgeViolation(verdict)], { evidence });
  log.pass('judge', judgeNote(verdict));
  const accepted: AcceptedTool = {
    accepted: true,
    artifact: open.artifact,
    digest: open.digest,
    evidence,
    verdict,
    gates: log.gates,
  };
  return register(deps, accepted, caller, log, context.events);
}

/** Parses the artifact and computes its digest again on this side. */
function recompute(candidate: ToolCandidate, log: GateRecorder): ParsedArtifact | RefusedTool {
  const artifact = asArtifact(candidate.artifact);
  const open = artifact === undefined ? { malformed: 'the artifact is not valid' } : parseArtifact(artifact);
  if ('malformed' in open) return log.refuse('shape', [{ code: 'TEMPER_FORGE_SHAPE', message: open.malformed }]);
  log.digest = open.digest;
  const hidden = checkHiddenText(open.artifact);
  if (hasViolations(hidden)) return log.refuse('shape', hidden);
  if (open.digest === candidate.digest) return open;
  const message = `the artifact has digest ${shortDigest(open.digest)}, not ${shortDigest(candidate.digest)} as submitted`;
  return log.refuse('build', [{ code: 'TEMPER_PACKAGE_INVALID', message }]);
}

/** Acceptance for a session may rest on reported tests, but the report must be complete: every case passed twice, within the limits. */
function checkReportedTests(open: ParsedArtifact, { evidence }: ToolCandidate): ForgeViolation[] {
  const { failed } = countCases(open, evidence.tests);
  const violations: ForgeViolation[] = [];
  if (failed > 0) {
    const message = `${failed} of ${open.tests.length} test cases have not passed twice`;
    violations.push({ code: 'TEMPER_FORGE_TEST_FAILED', message });
  }
  if (evidence.milliseconds > open.durationMilliseconds || evidence.heapBytes > open.memoryBytes) {
    violations.push({ code: 'TEMPER_FORGE_LIMITS', message: 'a test used more than the limits of the tool' });
  }
  return violations;
}

async function askJudge(
  judge: Judge | undefined,
  candidate: ToolCandidate,
  caller: ForgeCaller,
  op: CallOptions,
): Promise<JudgeVerdict> {
  if (judge === undefined)
    return unavailableVerdict('no judge is configured; name one in TrustPolicy spec.models.judge');
  try {
    return await judge.review(candidate, caller.authorModel, op);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE')) throw error;
    return unavailableVerdict(`the judge failed: ${printable(messageOf(error), 400)}`);
  }
}

function unavailableVerdict(reasoning: string): JudgeVerdict {
  return {
    approved: false,
    confidence: 0,
    code: 'TEMPER_JUDGE_UNAVAILABLE',
    reasoning,
    model: 'none',
    promptDigest: '',
  };
}

/** The note of the passed gate: the confidence, and whether the author judged its own tool. */
export function judgeNote({ confidence, judgeIsAuthor }: JudgeVerdict): string {
  return `${confidence.toFixed(2)}${judgeIsAuthor === true ? ', judged by the model that wrote it' : ''}`;
}

function judgeViolation(verdict: JudgeVerdict): ForgeViolation {
  const code = verdict.code ?? 'TEMPER_JUDGE_REFUSED';
  return { code, message: printable(`the judge refused it: ${verdict.reasoning}`, 1_000) };
}

async function register(
  deps: ForgeReviewDeps,
  accepted: AcceptedTool,
  caller: ForgeCaller,
  log: GateRecorder,
  events: EventSink,
): Promise<ForgeResult> {
  const { digest, evidence } = accepted;
  try {
    await deps.sessionTools.register(accepted, caller);
  } catch (error) {
    // An unavailable store is no verdict on the tool: the caller submits the tool again.
    if (!isTemperError(error) || error.retry !== 'never') throw error;
    return log.refuse('registration', [{ code: error.code, message: error.message }], { evidence });
  }
  log.pass('registration', 'Session');
  events({ type: 'forge-accepted', tool: accepted.artifact.name, digest, tier: 'Session' });
  return { ...accepted, gates: log.gates };
}
