import type { ChainedRecord } from '../../audit/port.ts';
import { textAt } from '../../lib/json.ts';

/** The action of the record that the tests of a tool in service passed again; the fact `namespace` says where. */
export const VERIFIED = 'tool.verified';

/** When tools in service last passed their tests again, in epoch milliseconds, as the chain records it. */
export type VerificationTimes = Map<string, number>;

export function verificationKey(digest: string, namespace: string): string {
  return `${namespace} ${digest}`;
}

export function foldVerification(times: VerificationTimes, { subject, facts, time }: ChainedRecord): void {
  times.set(verificationKey(subject, textAt(facts, ['namespace'])), Date.parse(time));
}
