import { openCluster } from '../../../src/cli/cluster/cluster.ts';
import { GatewayUserClient } from '../../../src/cli/cluster/gateway-user-client.ts';
import type { SessionStreamLine } from '../../../src/gateway-api/user-api.ts';
import { pollAssertion, pollValue } from '../../support/poll.ts';
import { quietIo, readSessionLines } from './session-lines.ts';

export interface NamedSession {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly agent: string;
  readonly session: string;
}

const TIMEOUT_MS = 90_000;
const INTERVAL_MS = 500;
/** For a first message on a busy node. */
const REPLY_TIMEOUT_MS = 120_000;

/** Sends messages to one session, in this order, without a process for each of them. */
export async function sendAll(to: NamedSession, texts: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { kubeconfig, namespace, agent, session } = to;
  await using cluster = await openCluster({ kubeconfig, namespace }, quietIo(signal));
  const gateway = new GatewayUserClient(cluster, signal);
  for (const text of texts) {
    const idempotencyKey = `${session}-${process.hrtime.bigint()}`;
    const call = { method: 'POST', path: `agents/${agent}/messages`, body: { text, session }, idempotencyKey } as const;
    // A new installation may have no streams yet.
    await pollAssertion('the receipt of a message', () => gateway.call(call), { intervalMs: INTERVAL_MS });
  }
}

/** The ends of so many messages of the session, each its reply or its failure. */
export async function endsOf(session: NamedSession, count: number): Promise<string[]> {
  return pollValue(
    `${count} ends of messages in ${session.session}`,
    async () => ends(await readSessionLines(session.kubeconfig, session)),
    ({ length }) => length >= count,
    { timeoutMs: REPLY_TIMEOUT_MS, intervalMs: INTERVAL_MS },
  );
}

function ends(lines: readonly SessionStreamLine[]): string[] {
  return lines.flatMap((line) => {
    if (line.kind === 'reply') return [line.text];
    return line.kind === 'failed' ? [JSON.stringify(line)] : [];
  });
}
