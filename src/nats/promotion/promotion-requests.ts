import { type Digest, isDigest, sha256 } from '../../lib/canonical.ts';
import { isJsonObject, type Json, textAt, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { QUEUES, subjects } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { consumeQueue } from '../jetstream/queue-consumer.ts';

/** A gateway asks for the promotion of a tool whose reported uses meet the policy. It opens a verification and decides nothing. */
export interface PromotionRequest {
  agentUid: string;
  digest: Digest;
  /** A session that has the tool. */
  session: string;
}

/** Promotion requests, stored until the operator acknowledges them. */
export interface PromotionRequests {
  /**
   * Stored once per tool and `revision`, the revision of the state of its promotion, within 30 minutes; consumers must be idempotent
   * beyond that. Throws TEMPER_BUS_FULL when the agent has too many, and other TEMPER_BUS_*.
   */
  publish(request: PromotionRequest, revision: number): Promise<void>;
  /**
   * Calls `take` for each request until the signal is aborted. When `take` throws, `onFailure` is called and the request is redelivered.
   * Entries that are not valid requests are acknowledged without effect.
   */
  consume(
    take: (request: PromotionRequest) => Promise<void>,
    signal: AbortSignal,
    onFailure?: (error: unknown) => void,
  ): Promise<void>;
}

export function createPromotionRequests(connection: JetStreamConnection): PromotionRequests {
  return {
    async publish({ agentUid, digest, session }, revision) {
      const id = `${agentUid}:${sha256(`${digest}\n${revision}`)}`;
      await publish(connection, subjects.promotions(agentUid), { digest, session }, { id });
    },
    async consume(take, signal, onFailure = () => undefined) {
      const queue = { ...QUEUES.promotions, signal, onFailure };
      await consumeQueue(connection, queue, async ({ subject, data }) => {
        const request = parseRequest(subject.slice('temper.promotions.'.length), parseJsonBytes(data));
        if (request !== undefined) await take(request);
      });
    },
  };
}

function parseRequest(agentUid: string, value: Json | undefined): PromotionRequest | undefined {
  if (!isJsonObject(value) || !isDigest(value.digest)) return undefined;
  const session = textAt(value, ['session']);
  return session === '' ? undefined : { agentUid, digest: value.digest, session };
}
