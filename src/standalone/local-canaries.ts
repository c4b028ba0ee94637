import { randomInt } from 'node:crypto';
import type { Audit } from '../audit/port.ts';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';
import type { RecordStore } from '../lib/record-store.ts';
import type { JudgeSettings } from '../models/named-models.ts';
import { type Canaries, createCanaries } from '../tempering/canary/canaries.ts';
import { suspensionRecord } from '../tempering/canary/suspension-record.ts';
import { createJudgeStandings, recordedStandings } from '../tempering/canary/standings.ts';

/** Canaries whose outcomes are stored in the state folder; a suspension is recorded on the chain. */
export function localCanaries(
  records: RecordStore,
  audit: Audit,
  { canaryPercent, resumed }: JudgeSettings = { canaryPercent: 0, resumed: [] },
): Canaries {
  return createCanaries({
    standings: createJudgeStandings(recordedStandings(records)),
    clock: systemClock,
    random: () => randomInt(2 ** 32) / 2 ** 32,
    percent: canaryPercent,
    resumed,
    id: () => ulids.next('suspension'),
    report: async (report) => {
      if (!report.outcome.caught) await audit.append(suspensionRecord(report));
    },
  });
}
