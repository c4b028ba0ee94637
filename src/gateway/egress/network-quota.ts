import { quotaExceeded } from '../../ledger/quota-exceeded.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SharedLedger } from '../../nats/ledger/ledger.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import { accountsOf } from '../ledger/accounts.ts';

export interface NetworkQuotaDeps {
  ledger: Pick<SharedLedger, 'ledger'>;
  directory: Pick<AgentDirectory, 'policy'>;
}

/**
 * Charges bytes that passed to the agent, its policy and the agents that started it; with 0 bytes it only checks. Throws
 * TEMPER_QUOTA_EXCEEDED when nothing is left, TEMPER_LEDGER_UNAVAILABLE when the ledger does not respond.
 */
export async function chargeNetwork(
  state: AgentState,
  bytes: number,
  { ledger, directory }: NetworkQuotaDeps,
  op: CallOptions,
): Promise<void> {
  const accounts = ledger.ledger(accountsOf(state, directory));
  // The bytes have passed, so they count even when they are more than what is left: one byte stands for them in the check.
  const least = { networkBytes: 1 };
  const answer = await accounts.reserve(least, op);
  if (!answer.granted) throw quotaExceeded(answer, least);
  await accounts.commit(answer.id, { networkBytes: bytes });
}
