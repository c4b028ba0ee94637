import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { openRegistry } from './registry.ts';
import { aCaller, anAcceptance, anArtifact, aUse, aVerdict, aSourceStore } from '../tempering.testing.ts';

/**
 * Child process of the crash test: changes the registry in a folder until it is killed, and prints one line
 * `<state> <digest>` after each completed change. Arguments: folder, round.
 */
const [folder = '', round = ''] = process.argv.slice(2);
const records = fileRecordStore(folder);
const audit = await openAudit({ records, clock: systemClock });
const registry = await openRegistry({
  records,
  audit,
  clock: systemClock,
  builtIn: new Set(),
  sources: await aSourceStore(records),
});
const limits = { sessionTools: 100_000, agentTools: 100_000 };
const owner = { agent: 'analyst', namespace: 'team-a' };
const report = (state: string, digest: string): boolean => process.stdout.write(`${state} ${digest}\n`);

for (let number = 0; ; number += 1) {
  const artifact = anArtifact(`tool_${round}_${number}`);
  const accepted = anAcceptance(artifact);
  const session = `s-${number % 3}`;
  await registry.register(accepted, aCaller({ session }), limits);
  report('Session', accepted.digest);
  await registry.recordUse(aUse(artifact, { value: number }, { session }));
  if (number % 2 === 0) {
    await registry.promote({
      digest: accepted.digest,
      owner,
      to: 'Agent',
      verdicts: [aVerdict()],
      actor: 'system',
      limits,
      sourceWithheld: number % 4 === 0,
    });
    report('Agent', accepted.digest);
  }
  if (number % 5 === 4) {
    await registry.demote(accepted.digest, 'by hand', 'user/eve');
    report('demoted', accepted.digest);
  }
}
