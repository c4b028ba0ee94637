import { textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { applyDecisionsAbout } from '../decision-files.ts';
import { REQUESTS, storeDecision } from '../stored-decision.ts';

/** Records the decisions about levels that users made since the last run, before this run evaluates the levels. The other ones stay. */
export async function applyLevelDecisions(records: RecordStore, state: string): Promise<void> {
  const requests = await records.list(REQUESTS);
  const raises = requests.filter(({ value }) => textAt(value, ['spec', 'type']) === 'RaiseTrust');
  const names = new Set(raises.map(({ name }) => name));
  await applyDecisionsAbout(state, names, async (decision) => {
    await storeDecision(records, decision);
  });
}
