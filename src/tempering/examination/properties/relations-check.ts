import { checkResult } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import type { CheckName, CheckResult, Consequence, Disagreement } from '../types.ts';
import { judgeRelation, type Relation } from './relation.ts';

type RelationCheck = Extract<
  CheckName,
  'key-order' | 'additional-members' | 'order-independence' | 'claimed-result' | 'idempotence' | 'inverse'
>;

/** What a broken relation leads to. A tool may return its input, so further members may well reach its output. */
const CONSEQUENCES: Readonly<Record<RelationCheck, Consequence>> = {
  'key-order': 'Ask',
  'additional-members': 'Note',
  'order-independence': 'Refuse',
  'claimed-result': 'Refuse',
  idempotence: 'Refuse',
  inverse: 'Ask',
};

export function judgeRelations(relations: readonly Relation[], runs: InputRuns): CheckResult[] {
  return (Object.keys(CONSEQUENCES) as RelationCheck[]).flatMap((check): CheckResult[] => {
    const judged = relations
      .filter((relation) => relation.check === check)
      .map((relation) => judgeRelation(relation, runs));
    const cases = judged.filter((result) => result !== undefined);
    const disagreements = cases.flatMap(({ disagreement }): Disagreement[] =>
      disagreement === undefined ? [] : [disagreement],
    );
    return cases.length === 0 ? [] : [checkResult(check, CONSEQUENCES[check], cases.length, disagreements)];
  });
}
