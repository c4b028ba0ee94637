import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { CanaryOutcome, JudgeStanding, Suspension } from './standing.ts';
import type { JudgeStandings } from './standings.ts';
import { randomTwins, type ReviewerRole } from './twins.ts';

/** One question to a reviewer. */
interface ReviewCall {
  /** `provider/model`. */
  model: string;
  role: ReviewerRole;
  /** What the reviewer reads about the candidate. */
  material: string;
  /** The material of another tool in the form of this question. */
  present: (artifact: ToolArtifact) => string;
  /** Asks the model; the canary takes the same path as the candidate. */
  ask: (material: string) => Promise<JudgeVerdict>;
}

/** The verdict of a reviewer, or why its verdicts count for nothing. */
export type SupervisedVerdict = { verdict: JudgeVerdict } | { suspension: Suspension } | { unknown: string };

/** Puts known-bad tools before reviewers at random, and suspends a reviewer that approves one. */
export interface Canaries {
  /**
   * Throws what `ask` throws, and TEMPER_BUS_UNAVAILABLE: during an outage of the store the caller asks again, and no tool is refused for it.
   * A standing that cannot be read or written for another reason gives `unknown`.
   */
  review(call: ReviewCall): Promise<SupervisedVerdict>;
  /** The suspension of the first suspended model. Throws the errors of the store. */
  suspensionOf(models: readonly string[]): Promise<{ model: string; suspension: Suspension } | undefined>;
}

/** An outcome that was stored, for metrics, logs and the audit. */
export interface CanaryReport {
  standing: JudgeStanding;
  outcome: CanaryOutcome;
  role: ReviewerRole;
}

export interface CanaryDeps {
  standings: JudgeStandings;
  clock: Clock;
  /** At least 0 and below 1, unpredictable. */
  random: () => number;
  /** The share of questions that come with a canary. 0: none; a suspension stays. */
  percent: number;
  /** Returns the id of a suspension. */
  id(): string;
  /** The name under which the standing of a model is stored; default: its own. */
  standingOf?: (model: string) => string;
  /** Ids of suspensions that a user lifted in the configuration. */
  resumed?: readonly string[];
  report(report: CanaryReport): void | Promise<void>;
}

/** No canaries, and no reviewer is ever suspended. */
export const NO_CANARIES: Canaries = {
  review: async ({ ask, material }) => ({ verdict: await ask(material) }),
  suspensionOf: async () => undefined,
};

export function createCanaries(deps: CanaryDeps): Canaries {
  const suspensionOf = (model: string): Promise<Suspension | undefined> => currentSuspension(deps, model);
  return {
    async review(call) {
      const before = await readable(() => suspensionOf(call.model));
      if ('unknown' in before) return before;
      if (before.found !== undefined) return { suspension: before.found };
      if (deps.random() * 100 >= deps.percent) return { verdict: await call.ask(call.material) };
      const [verdict, after] = await Promise.all([call.ask(call.material), readable(() => tryCanary(deps, call))]);
      if ('unknown' in after) return after;
      return after.found === undefined ? { verdict } : { suspension: after.found };
    },
    async suspensionOf(models) {
      for (const model of models) {
        const suspension = await suspensionOf(model);
        if (suspension !== undefined) return { model, suspension };
      }
      return undefined;
    },
  };
}

async function currentSuspension(deps: CanaryDeps, model: string): Promise<Suspension | undefined> {
  const { standings, resumed = [] } = deps;
  const name = standingName(deps, model);
  const { suspension } = await standings.get(name);
  if (suspension === undefined || !resumed.includes(suspension.id)) return suspension;
  return (await standings.lift(name, suspension.id)).suspension;
}

function standingName({ standingOf }: CanaryDeps, model: string): string {
  return standingOf?.(model) ?? model;
}

/** Asks the reviewer about a canary and stores the outcome. An unusable answer is a refusal, and no outcome. */
async function tryCanary(deps: CanaryDeps, call: ReviewCall): Promise<Suspension | undefined> {
  const { malicious, mutation } = randomTwins(call.role, deps.random);
  let verdict: JudgeVerdict;
  try {
    verdict = await call.ask(call.present(malicious));
  } catch (error) {
    // No model was called.
    if (isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE')) return undefined;
    throw error;
  }
  if (verdict.code === 'TEMPER_JUDGE_UNAVAILABLE') return undefined;
  const outcome = { mutation, caught: !verdict.approved, time: deps.clock.now().toISOString() };
  const standing = await deps.standings.record(standingName(deps, call.model), outcome, deps.id());
  await deps.report({ standing, outcome, role: call.role });
  return standing.suspension;
}

/** Fails closed: without its standing, the verdicts of a reviewer may count for nothing. */
async function readable<Found>(read: () => Promise<Found>): Promise<{ found: Found } | { unknown: string }> {
  try {
    return { found: await read() };
  } catch (error) {
    if (isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) throw error;
    return { unknown: messageOf(error, 200) };
  }
}
