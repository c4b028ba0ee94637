import { isTemperError, messageOf } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { EventSink } from '../tools/events.ts';
import { GateRecorder, hasViolations, shownName } from './gate-recorder.ts';
import type { StaticGateContext } from './gates/policy-limits.ts';
import { countCases } from './gates/tests.ts';
import type { ParsedArtifact } from './parse-artifact.ts';
import { type ArtifactVetting, runStaticGates, vetArtifact } from './static-gates.ts';
import type { ForgeViolation } from './request.ts';
import type {
  AcceptedTool,
  ToolCandidate,
  ForgeCaller,
  ForgeResult,
  ForgeReview,
  Judge,
  JudgeMaterial,
  SessionToolRegistry,
  JudgeVerdict,
} from './types.ts';

export interface ReviewContext extends StaticGateContext {
  events: EventSink;
}

export interface ForgeReviewDeps {
  /** When absent, every tool is refused. */
  judge?: Judge;
  sessionTools: SessionToolRegistry;
  /** The reviewing side's own current view of the caller; nothing in it comes from the candidate. */
  context(caller: ForgeCaller): ReviewContext;
  /** Runs `vetArtifact` elsewhere, for example in another thread, which may build the judge's material too. Absent: in this thread. */
  vet?(artifact: Json, op: CallOptions): Promise<ArtifactVetting>;
}

/** Trusts nothing of the candidate but its measurements, and grants nothing beyond the session. */
export function createForgeReview(deps: ForgeReviewDeps): ForgeReview {
  return {
    async submit(candidate, caller, op) {
      const context = deps.context(caller);
      const log = new GateRecorder(shownName(candidate.artifact as unknown as Json), context.events, candidate);
      const result = await review(deps, candidate, caller, op, log, context);
      if (!result.accepted) await deps.sessionTools.recordRejected(result, caller);
      return result;
    },
  };
}

async function review(
  deps: ForgeReviewDeps,
  candidate: ToolCandidate,
  caller: ForgeCaller,
  op: CallOptions,
  log: GateRecorder,
  context: ReviewContext,
): Promise<ForgeResult> {
  const submitted = { artifact: candidate.artifact as unknown as Json, digest: candidate.digest };
  const vetting = await (deps.vet?.(submitted.artifact, op) ?? vetArtifact(submitted.artifact));
  const passed = runStaticGates(submitted, context, log, vetting);
  if ('accepted' in passed) return passed;
  const { open } = passed;
  const { evidence } = candidate;
  const tests = checkReportedTests(open, candidate);
  if (hasViolations(tests)) return log.refuse('tests', tests);
  log.pass('policy');
  const verdict = await askJudge(deps.judge, candidate, caller, op, vetting.material);
  if (!verdict.approved) return { ...log.refuse('judge', [judgeViolation(verdict)]), verdict };
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
  material: JudgeMaterial | undefined,
): Promise<JudgeVerdict> {
  if (judge === undefined)
    return unavailableVerdict('no judge is configured; name one in TrustPolicy spec.models.judge');
  try {
    return await judge.review(candidate, caller.authorModel, op, material);
  } catch (error) {
    if (isOutage(error)) throw error;
    return unavailableVerdict(`the judge failed: ${printable(messageOf(error), 400)}`);
  }
}

/** During an outage of a store no verdict has a basis: the caller asks again. */
function isOutage(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE') || isTemperError(error, 'TEMPER_BUS_UNAVAILABLE');
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
  try {
    await deps.sessionTools.register(accepted, caller);
  } catch (error) {
    // An unavailable store is no verdict on the tool: the caller submits the tool again.
    if (!isTemperError(error) || error.retry !== 'never') throw error;
    return log.refuse('registration', [{ code: error.code, message: error.message }]);
  }
  log.pass('registration', 'Session');
  events({ type: 'forge-accepted', tool: accepted.artifact.name, digest: accepted.digest, tier: 'Session' });
  return { ...accepted, gates: log.gates };
}
