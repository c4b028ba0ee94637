import { isTemperError, messageOf } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { type Json, member } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { Decider } from '../policy/types.ts';
import type { ToolView } from '../tools/contract.ts';
import type { EventSink, Gate, GateResult } from '../tools/events.ts';
import { asArtifact } from './artifact-form.ts';
import { GateLog, hasViolations } from './gate-log.ts';
import { checkSteps } from './gates/compose.ts';
import { checkCeilings } from './gates/policy.ts';
import { checkHiddenText } from './gates/hidden-text.ts';
import { checkSchemas } from './gates/schemas.ts';
import { checkSource } from './gates/static.ts';
import { countCases } from './gates/tests.ts';
import { openArtifact, type OpenArtifact } from './open-artifact.ts';
import type { Violation } from './request.ts';
import type {
  Accepted,
  Candidate,
  ForgeCaller,
  ForgeResult,
  ForgeReview,
  Judge,
  Refused,
  SessionTools,
  Verdict,
} from './types.ts';

export interface ForgeReviewDeps {
  /** Absent: everything is refused. */
  judge?: Judge;
  sessionTools: SessionTools;
  /** What the reviewing side itself knows of the caller at this moment. */
  world(caller: ForgeCaller): { decider: Decider; view: ToolView; events: EventSink };
}

/** Takes nothing from the candidate on trust but its measurements, and grants nothing beyond the session. */
export function createForgeReview(deps: ForgeReviewDeps): ForgeReview {
  return {
    async submit(candidate, caller, op) {
      const world = deps.world(caller);
      const log = new GateLog(nameOf(candidate), world.events, claimedGates(candidate));
      const result = await review(deps, candidate, caller, op, log, world);
      if (!result.accepted) await deps.sessionTools.keepRejected(result, caller);
      return result;
    },
  };
}

/** What the author's side may say it has passed; the rest is said here. */
const AUTHORS: readonly Gate[] = ['shape', 'static', 'schemas', 'build', 'tests', 'output-schema', 'measured'];

function claimedGates({ gates = [] }: Candidate): GateResult[] {
  return AUTHORS.flatMap((gate) => {
    const claimed = gates.find((result) => result.gate === gate && result.passed);
    return claimed === undefined ? [] : [{ gate, passed: true, note: printable(claimed.note, 120) }];
  });
}

function nameOf({ artifact }: Candidate): string {
  const name = member(artifact as unknown as Json, 'name');
  return typeof name === 'string' ? printable(name, 64) : 'unnamed';
}

async function review(
  deps: ForgeReviewDeps,
  candidate: Candidate,
  caller: ForgeCaller,
  op: Op,
  log: GateLog,
  world: { decider: Decider; view: ToolView; events: EventSink },
): Promise<ForgeResult> {
  const open = recompute(candidate, log);
  if ('accepted' in open) return open;
  const { evidence } = candidate;
  const code = open.artifact.implementation.source;
  const statically =
    code === undefined ? checkSteps(open, world) : checkSource(code, open.artifact.requires.apis).violations;
  if (hasViolations(statically)) return log.refuse('static', statically, { evidence });
  const schemas = checkSchemas(open);
  if (hasViolations(schemas)) return log.refuse('schemas', schemas, { evidence });
  const untested = checkClaims(open, candidate);
  if (hasViolations(untested)) return log.refuse('tests', untested, { evidence });
  const ceilings = checkCeilings(open, world.decider, world.view);
  if (hasViolations(ceilings)) return log.refuse('policy', ceilings, { evidence });
  log.pass('policy');
  const verdict = await ask(deps.judge, candidate, caller, op);
  if (!verdict.approved) return log.refuse('judge', [refusalOf(verdict)], { evidence });
  log.pass('judge', verdict.confidence.toFixed(2));
  const accepted: Accepted = {
    accepted: true,
    artifact: open.artifact,
    digest: open.digest,
    evidence,
    verdict,
    gates: log.gates,
  };
  return register(deps, accepted, caller, log, world.events);
}

/** The artifact as this side reads it, under the digest this side computes. */
function recompute(candidate: Candidate, log: GateLog): OpenArtifact | Refused {
  const artifact = asArtifact(candidate.artifact);
  const open = artifact === undefined ? { malformed: 'the artifact has not the form of one' } : openArtifact(artifact);
  if ('malformed' in open) return log.refuse('shape', [{ code: 'TEMPER_FORGE_SHAPE', message: open.malformed }]);
  log.digest = open.digest;
  const hidden = checkHiddenText(open.artifact);
  if (hasViolations(hidden)) return log.refuse('shape', hidden);
  if (open.digest === candidate.digest) return open;
  const message = `the artifact has digest ${open.digest}, not ${printable(candidate.digest, 80)} as submitted`;
  return log.refuse('build', [{ code: 'TEMPER_PACKAGE_INVALID', message }]);
}

/** Session acceptance may rest on claimed tests, but they must at least be claimed: every case, twice, passed, within the limits. */
function checkClaims(open: OpenArtifact, { evidence }: Candidate): Violation[] {
  const { failed } = countCases(open, evidence.tests);
  const violations: Violation[] = [];
  if (failed > 0) {
    const message = `${failed} of ${open.tests.length} test cases have not passed twice`;
    violations.push({ code: 'TEMPER_FORGE_TEST_FAILED', message });
  }
  if (evidence.milliseconds > open.durationMilliseconds || evidence.heapBytes > open.memoryBytes) {
    violations.push({ code: 'TEMPER_FORGE_LIMITS', message: 'a test used more than the limits of the tool' });
  }
  return violations;
}

async function ask(judge: Judge | undefined, candidate: Candidate, caller: ForgeCaller, op: Op): Promise<Verdict> {
  if (judge === undefined) return unusable('no judge is configured; name one in TrustPolicy spec.models.judge');
  try {
    return await judge.review(candidate, caller.authorModel, op);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE')) throw error;
    return unusable(`the judge failed: ${printable(messageOf(error), 400)}`);
  }
}

function unusable(reasoning: string): Verdict {
  return {
    approved: false,
    confidence: 0,
    code: 'TEMPER_JUDGE_UNAVAILABLE',
    reasoning,
    model: 'none',
    promptDigest: '',
  };
}

function refusalOf(verdict: Verdict): Violation {
  const code = verdict.code ?? 'TEMPER_JUDGE_REFUSED';
  return { code, message: printable(`the judge says no: ${verdict.reasoning}`, 1_000) };
}

async function register(
  deps: ForgeReviewDeps,
  accepted: Accepted,
  caller: ForgeCaller,
  log: GateLog,
  events: EventSink,
): Promise<ForgeResult> {
  const { digest, evidence } = accepted;
  try {
    await deps.sessionTools.register(accepted, caller);
  } catch (error) {
    // A store that is away has said nothing about the tool: whoever submitted it does so again.
    if (!isTemperError(error) || error.retry !== 'never') throw error;
    return log.refuse('register', [{ code: error.code, message: error.message }], { evidence });
  }
  log.pass('register', 'Session');
  events({ type: 'forge-accepted', tool: accepted.artifact.name, digest, tier: 'Session' });
  return { ...accepted, gates: log.gates };
}
