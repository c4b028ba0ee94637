import assert from 'node:assert/strict';
import type { Account } from '../../../src/ledger/account.ts';
import { accountKey } from '../../../src/nats/ledger/account-key.ts';
import { parseAccountRecord } from '../../../src/nats/ledger/account-record.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createDocumentStore } from '../../../src/nats/jetstream/document-store.ts';
import { BUCKETS } from '../../../src/nats/jetstream/names.ts';

/** What each answer of the model counts. */
export const ANSWER_USAGE = { inputTokens: 300, outputTokens: 40 };
const ANSWER_TOKENS = ANSWER_USAGE.inputTokens + ANSWER_USAGE.outputTokens;
/** What a gateway reserves ahead of an account without a quota. */
const ALLOCATION_TOKENS = 20_000;

/** An account, the answers that the model gave to its agents, and the gateways that were killed while they called the model for it. */
export interface TreeAccount {
  readonly account: string;
  readonly answers: number;
  readonly killed: number;
}

/**
 * The account is charged all answers of the model exactly once, after every gateway has ended. One that was killed leaves what it reserved
 * charged, and only it: the answers that it did not record are part of that.
 */
export async function assertCharged(
  connection: JetStreamConnection,
  { account, answers, killed }: TreeAccount,
): Promise<void> {
  const stored = await createDocumentStore(connection, BUCKETS.ledger).get(accountKey(account));
  const record = parseAccountRecord(stored?.value);
  assert.ok(record !== undefined, `${account} has no record`);
  const [spent, held] = [tokensIn(record.spent), tokensIn(record.held)];
  const unrecorded = answers * ANSWER_TOKENS - spent;
  const seen = `${account}: ${spent} tokens spent, ${held} reserved, ${answers} answers, ${killed} gateways killed`;
  assert.equal(spent % ANSWER_TOKENS, 0, seen);
  assert.ok(unrecorded >= 0 && unrecorded <= killed * ANSWER_TOKENS, seen);
  assert.ok(held >= unrecorded && held <= killed * ALLOCATION_TOKENS, seen);
}

function tokensIn({ month: { counts } }: Account): number {
  return counts.inputTokens + counts.outputTokens;
}
