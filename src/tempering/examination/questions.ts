import { printable } from '../../lib/printable.ts';
import { findCredential } from '../../policy/detect/credentials.ts';
import type { Disagreement, ExaminationReport } from './types.ts';
import type { ExaminationVerdict } from './verdict.ts';

/** What the examination leaves to a user, with the first cases. All texts are printable and bounded. */
export interface ExaminationQuestion {
  /** A check, or `testers`. */
  topic: string;
  reason: string;
  cases: Disagreement[];
}

const MAX_QUESTIONS = 16;
const MAX_CASES = 12;
const MAX_REASON = 400;
const MASKED = '[contains a credential]';

/** The questions of a verdict with the cases of the report. Pure. */
export function questionsOf(report: ExaminationReport, verdict: ExaminationVerdict): ExaminationQuestion[] {
  if (verdict.outcome !== 'Ask') return [];
  const shown = new Set<string>();
  let left = MAX_CASES;
  return verdict.reasons.slice(0, MAX_QUESTIONS).map((reason) => {
    const topic = verdict.topics.find((one) => reason.startsWith(`${one}:`)) ?? 'examination';
    const cases = shown.has(topic) ? [] : casesOf(report, topic).slice(0, left).map(withoutCredentials);
    shown.add(topic);
    left -= cases.length;
    return { topic, reason: printable(reason, MAX_REASON), cases };
  });
}

/** The inputs of uses may contain what no user who approves should see. */
function withoutCredentials({ input, expected, got, reason }: Disagreement): Disagreement {
  const masked = (text: string): string => (findCredential('', text) === undefined ? text : MASKED);
  const shown = { input: masked(input), got: masked(got), reason };
  return expected === undefined ? shown : { ...shown, expected: masked(expected) };
}

/** Topics once each, in their order. */
export function topicsOf(questions: readonly ExaminationQuestion[]): string[] {
  return [...new Set(questions.map(({ topic }) => topic))];
}

function casesOf({ checks, testers }: ExaminationReport, topic: string): Disagreement[] {
  if (topic !== 'testers') return checks.find(({ check }) => check === topic)?.examples ?? [];
  return testers.flatMap(({ verdict, disagreements, examples }) =>
    verdict === 'Disagrees' ? examples.slice(0, disagreements) : [],
  );
}
